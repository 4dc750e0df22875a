let f g = match g () with x -> x | exception (effect A, k) -> 1
