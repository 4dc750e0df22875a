effect A : int
# 40 "grammar.mly"
let f g = try g () with effect (A) -> 1
