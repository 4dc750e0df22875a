effect A : string -> int
let f g = try g () with effect (A x)
let h g = try g () with effect (A x), k -> 1 | effect
let i = (effect A : int)
effect b : int
let j = 2
