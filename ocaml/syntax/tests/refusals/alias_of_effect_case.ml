let f g = match g () with x -> x | effect A, k as y -> 1
