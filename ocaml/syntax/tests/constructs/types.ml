(* Types known in the cases: the result of the performed effect, and the expected type of the
   whole. *)
open Effect
open Effect.Deep

effect Get : int
effect Put : int -> unit
effect Id : 'a -> 'a

let polymorphic f = match f () with v -> v | effect (Id v) k -> continue k v

(* The state is known to the effect cases from the value case. *)
let state f initial =
  (match f () with
  | v -> fun (s : int) -> (v, s)
  | effect Get, k -> fun s -> continue k s s
  | effect (Put s), k -> fun _ -> continue k () s)
    initial

type _ witness = Int : int witness | String : string witness

(* The value cases of a match on a GADT. *)
let default (type a) (f : unit -> a witness) : a =
  match f () with Int -> perform Get | String -> "default" | effect Get, k -> continue k 8

type record = { name : string }
type other = { name : int }

(* Fields and constructors of the expected type, and of the matched one. *)
let field (f : unit -> record) : record =
  match f () with { name } -> { name = name ^ "!" } | effect Get, _ -> { name = "got" }

(* The result of `continue`. *)
let continued (f : unit -> record) : record =
  match f () with { name } -> { name } | effect Get, k -> { name = (continue k 1).name ^ "!" }

let tried (f : unit -> record) : record = try f () with effect Get, _ -> { name = "got" }

(* An effect that nobody can perform. *)
type nothing = |

effect Never : nothing -> int

let refuted f = match f () with n -> n | effect (Never _), _ -> . | effect Get, k -> continue k 6

(* A handler within a polymorphic local function. *)
let local () =
  let run f = match f () with v -> [ v ] | effect Get, k -> continue k 5 in
  run (fun () -> string_of_int (List.hd (run (fun () -> perform Get))))

(* A user's own option, raise, expected and exn. *)
module Own = struct
  type 'a own = None | Some of 'a

  let raise = 1 and expected = 2 and exn = 3 and effect_result = 4
  let none : int own = None

  let shadowed f =
    match f () with
    | Some n -> n + raise + expected + exn + effect_result
    | None -> 0
    | exception Not_found -> exn
    | effect Get, k -> continue k expected
end

let () =
  Printf.printf "%d %s\n"
    (polymorphic (fun () -> perform (Id 3)))
    (polymorphic (fun () -> perform (Id "x")));
  let v, s = state (fun () -> perform (Put (perform Get + 1)); perform Get * 2) 3 in
  Printf.printf "%d %d\n" v s;
  Printf.printf "%s\n" (default (fun () -> ignore (perform Get); String));
  Printf.printf "%d\n" (try default (fun () -> Int) with effect Get, k -> continue k 9);
  Printf.printf "%s %s %s\n"
    (field (fun () -> { name = "a" })).name
    (continued (fun () -> { name = string_of_int (perform Get) })).name
    (tried (fun () -> ignore (perform Get); { name = "" })).name;
  print_endline (String.concat "," (local ()));
  Printf.printf "%d\n" (refuted (fun () -> perform Get));
  Printf.printf "%d %d\n"
    (Own.shadowed (fun () -> Own.Some (perform Get)))
    (Own.shadowed (fun () -> Own.none))
