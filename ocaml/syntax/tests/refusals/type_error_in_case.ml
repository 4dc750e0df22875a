effect A : int -> string
let f g =
  match g () with
  | x -> x + 1
  | effect (A x) k ->
      Effect.Deep.continue k x
