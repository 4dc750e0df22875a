effect A : int
module M = struct
  let x = 1
  let y = foo (
  let z = 2
  module N = struct
    let a = List.
    let b = 3
  end
  let t = z
end
let f g = match g () with
  | x -> x
  | _ ->
let u = M.t + M.N.b
let i = function 1 -> 2 | -> 3 | 4 -> 5
let j x = if x then 
let k = [1; 2
let s = h `a $ 3
type t = { a : int; b }
type u = int list
let unknown = 1 \ 2
let z : t = 
