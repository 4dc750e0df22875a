let f g = match g () with x -> x | effect A x k -> 1
