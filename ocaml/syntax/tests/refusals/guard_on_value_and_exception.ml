let f g = match g () with x | exception (Failure x) when x = "" -> x | effect A, k -> ""
