let f g = match g () with x -> x | effect (A x) -> 1
