effect A : int
let f g = try g () with effect A k when Effect.Deep.continue k 1 = 1 -> 1
