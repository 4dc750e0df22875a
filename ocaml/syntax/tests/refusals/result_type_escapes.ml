effect A : 'a -> 'a
let f g = try g () with effect (A x) k -> x
