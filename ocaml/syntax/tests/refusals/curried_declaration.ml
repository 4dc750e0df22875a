effect A : int -> int -> int
