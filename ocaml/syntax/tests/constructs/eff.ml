(* OCaml 5.3's name for the type of effects is in scope without `open Effect`, and so is Stdlib.Effect. *)
type _ eff += Ask : string -> int eff | Stop : 'a eff

module type S = sig
  type _ eff += Local : int eff
end

module M : S = struct
  type _ eff += Local : int eff
end

effect Tell : string -> unit

let name : type a. a eff -> string = function
  | Ask _ -> "Ask"
  | Tell _ -> "Tell"
  | M.Local -> "Local"
  | _ -> "other"

let run (type a) (f : unit -> a) : a option =
  match f () with
  | value -> Some value
  | effect Ask question, k -> Stdlib.Effect.Deep.continue k (String.length question)
  | effect Tell text, k ->
      print_endline text;
      Stdlib.Effect.Deep.continue k ()
  | effect M.Local, k -> Stdlib.Effect.Deep.continue k 1
  | effect Stop, _ -> None

let () =
  let open Stdlib.Effect in
  print_endline (String.concat " " [ name (Ask ""); name (Tell ""); name M.Local; name Stop ]);
  let show = function Some n -> string_of_int n | None -> "stopped" in
  print_endline (show (run (fun () -> perform (Tell "told"); perform (Ask "four") + perform M.Local)));
  print_endline (show (run (fun () -> perform Stop)))
