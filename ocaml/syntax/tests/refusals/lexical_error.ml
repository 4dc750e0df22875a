effect A : int
let s = "abc
