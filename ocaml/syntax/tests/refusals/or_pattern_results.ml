effect A : int
effect B : int
let f g = try g () with effect (A | B), k -> Effect.Deep.continue k 1
