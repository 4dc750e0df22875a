effect A : int
let f g = match g () with Some x -> x | effect A, k -> 1
