effect Ask : string -> int

val answering : (string -> int) -> (unit -> 'a) -> 'a
