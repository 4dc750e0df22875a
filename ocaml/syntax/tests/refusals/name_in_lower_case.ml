effect read : int -> string
