(* `effect` is an identifier wherever it is one in stock OCaml. *)

let effect = 1
let f effect = effect + 1

type boxed = E of int | F

let apply effect (E x) = effect x [@@ocaml.warning "-8"]
let typed effect F : int = effect [@@ocaml.warning "-8"]

type effect = Effect of int
type poly = [ `effect of int ]
type record = { effect : int }

let cases = function effect, [] -> effect | _, effect :: _ -> effect
let polymorphic (`effect x : poly) = x
let patterns = function { effect = e } -> e
let types = function (_ : (effect * effect) list) -> ()
let labelled ~effect ?(other = effect) () = effect + other

effect E : int -> int

let guarded n =
  match n with
  | effect when effect > 3 -> "large"
  | 1 | 2 as effect -> string_of_int effect
  | effect -> "other " ^ string_of_int effect
  | effect (E x), k -> Effect.Deep.continue k x

let () =
  types [ (Effect 1, Effect 2) ];
  Printf.printf "%d %d %d %d %d %d\n" (f effect) (cases (1, [ 2 ])) (polymorphic (`effect 3))
    (patterns { effect = 4 }) (labelled ~effect ()) (apply (fun x -> x) (E 5));
  Printf.printf "%s, %s, %s\n" (guarded 5) (guarded 2) (guarded 0);
  print_int (typed 6 F);
  print_newline ()
