let f g = match g () with x -> x
  | effect A (k : (int, int) continuation) -> 1
