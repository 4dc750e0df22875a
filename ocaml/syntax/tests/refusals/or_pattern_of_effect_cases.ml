let f g = match g () with
  | x -> x
  | effect A, k | effect B, k -> 1
