effect A : int -> int
let f g = try g () with effect (A _) -> 1
let h g = match g () with effect (A x), x -> x
