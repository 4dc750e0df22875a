effect A : int -> string
let f x =
  effect B : int
