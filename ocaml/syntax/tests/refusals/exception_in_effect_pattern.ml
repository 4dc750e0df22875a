effect A : int
let f g = match g () with x -> x | effect (exception Not_found), k -> 1
