let f g = try g () with Not_found | effect A, _ -> 1
