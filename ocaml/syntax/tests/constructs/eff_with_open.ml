(* With `open Effect` the type's name is that of the module. *)
open Effect
open Effect.Deep

type _ eff += Ask : int eff
type _ t += Tell : int -> unit t

let () =
  match
    perform (Tell 1);
    perform Ask
  with
  | value -> Printf.printf "%d\n" value
  | effect Ask, k -> continue k 42
  | effect Tell n, k ->
      Printf.printf "%d\n" n;
      continue k ()
