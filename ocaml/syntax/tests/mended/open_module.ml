module M = struct
  effect A : int
  let x = begin 1 + 

let y = M.x
