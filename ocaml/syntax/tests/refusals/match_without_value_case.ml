let f g = match g () with effect A, k -> 1
