effect A : int
let f g = (try g () with effect A, k -> k) + 1
