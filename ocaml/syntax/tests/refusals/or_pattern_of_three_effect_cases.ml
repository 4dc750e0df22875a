let f g = try g () with effect A, k | effect B, k | effect C, k -> 1
