(* SPDX-License-Identifier: MIT *)
(* The recursive programs of tables 1 and 2, and their arguments. *)

let rec ack m n =
  if m = 0 then n + 1
  else if n = 0 then ack (m - 1) 1
  else ack (m - 1) (ack m (n - 1))

let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)

(* Paths of n steps that go up, down or straight on and never fall below their beginning. *)
let rec motzkin n =
  if n < 2 then 1
  else
    let rec sum i =
      if i > n - 2 then 0 else (motzkin i * motzkin (n - 2 - i)) + sum (i + 1)
    in
    motzkin (n - 1) + sum 0

let rec sudan n x y =
  if n = 0 then x + y
  else if y = 0 then x
  else
    let z = sudan n x (y - 1) in
    sudan (n - 1) z (z + y)

let rec tak x y z =
  if y >= x then z
  else tak (tak (x - 1) y z) (tak (y - 1) z x) (tak (z - 1) x y)

(* Around 100 microseconds each. *)
let ack_of f = f 3 5
let fib_of f = f 20
let motzkin_of f = f 11
let sudan_of f = f 2 5 2
let tak_of f = f 14 10 5
