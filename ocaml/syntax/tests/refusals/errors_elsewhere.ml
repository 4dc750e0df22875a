effect A : int

let f g = try g () with effect A, k -> Effect.Deep.continue k 1
let broken = (1 +
let h g = try g () with effect A, k -> Effect.Deep.continue k 1
