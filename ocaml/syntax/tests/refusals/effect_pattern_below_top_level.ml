let f g = match g () with x -> x | [effect A, k] -> 1
