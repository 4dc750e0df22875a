(* The value, exception and effect cases run outside their own handler: what they raise and perform
   goes to the handlers further out, and an exception that no case matches goes on. *)
open Effect
open Effect.Deep

effect E : string

let outer f =
  match f () with
  | v -> v
  | exception Exit -> "outer exception case"
  | effect E, k -> continue k "outer effect case"

let value_raises () =
  match () with () -> raise Exit | exception Exit -> "inner" | effect E, k -> continue k "inner"

let value_performs () = match () with () -> perform E | effect E, k -> continue k "inner"

let exception_performs () =
  match raise Not_found with
  | v -> v
  | exception Not_found -> perform E
  | effect E, k -> continue k "inner"

let effect_performs () =
  match perform E with v -> v ^ " through inner" | effect E, k -> continue k (perform E)

let effect_raises () = try perform E with Exit -> "inner" | effect E, _ -> raise Exit

let not_matched () =
  match raise Exit with v -> v | exception Not_found -> "inner" | effect E, _ -> ""

let () =
  List.iter
    (fun f -> print_endline (outer f))
    [
      value_raises; value_performs; exception_performs; effect_performs; effect_raises; not_matched;
    ]
