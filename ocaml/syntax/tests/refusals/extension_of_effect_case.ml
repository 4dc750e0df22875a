effect A : int
let f g = try g () with effect%ext A, k -> Effect.Deep.continue k 1
