effect A : int -> int
let f g = try g () with effect A k, k -> Effect.Deep.continue k 1
