let f g = match g () with x -> x | (_ | effect A, _) -> 1
