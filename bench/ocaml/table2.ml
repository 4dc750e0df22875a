(* SPDX-License-Identifier: MIT *)
(* Table 2: calls that are not tail calls, plain, surrounded by handlers, and as threads of a concurrency
   monad. *)
open Effect.Deep

type _ Effect.t += Never : unit Effect.t

let[@inline] handle f =
  match f () with x -> x | effect Never, k -> continue k ()

module Handled = struct
  let rec ack m n =
    if m = 0 then n + 1
    else if n = 0 then ack (m - 1) 1
    else ack (m - 1) (handle (fun () -> ack m (n - 1)))

  let rec fib n =
    if n < 2 then n
    else handle (fun () -> fib (n - 1)) + handle (fun () -> fib (n - 2))

  let rec motzkin n =
    if n < 2 then 1
    else
      let rec sum i =
        if i > n - 2 then 0
        else
          handle (fun () -> motzkin i) * handle (fun () -> motzkin (n - 2 - i))
          + handle (fun () -> sum (i + 1))
      in
      handle (fun () -> motzkin (n - 1)) + handle (fun () -> sum 0)

  let rec sudan n x y =
    if n = 0 then x + y
    else if y = 0 then x
    else
      let z = handle (fun () -> sudan n x (y - 1)) in
      sudan (n - 1) z (z + y)

  let rec tak x y z =
    if y >= x then z
    else
      tak
        (handle (fun () -> tak (x - 1) y z))
        (handle (fun () -> tak (y - 1) z x))
        (handle (fun () -> tak (z - 1) x y))
end

module Threaded = struct
  open Monad

  (* A thread for the call, and an MVar for its result. *)
  let call f =
    let* result = Mvar.create_empty () in
    let* () =
      fork (fun () ->
          let* value = f () in
          Mvar.put result value)
    in
    Mvar.take result

  let rec ack m n =
    if m = 0 then return (n + 1)
    else if n = 0 then ack (m - 1) 1
    else
      let* n = call (fun () -> ack m (n - 1)) in
      ack (m - 1) n

  let rec fib n =
    if n < 2 then return n
    else
      let* one = call (fun () -> fib (n - 1)) in
      let* two = call (fun () -> fib (n - 2)) in
      return (one + two)

  let rec motzkin n =
    if n < 2 then return 1
    else
      let rec sum i =
        if i > n - 2 then return 0
        else
          let* one = call (fun () -> motzkin i) in
          let* two = call (fun () -> motzkin (n - 2 - i)) in
          let* rest = call (fun () -> sum (i + 1)) in
          return ((one * two) + rest)
      in
      let* one = call (fun () -> motzkin (n - 1)) in
      let* rest = call (fun () -> sum 0) in
      return (one + rest)

  let rec sudan n x y =
    if n = 0 then return (x + y)
    else if y = 0 then return x
    else
      let* z = call (fun () -> sudan n x (y - 1)) in
      sudan (n - 1) z (z + y)

  let rec tak x y z =
    if y >= x then return z
    else
      let* one = call (fun () -> tak (x - 1) y z) in
      let* two = call (fun () -> tak (y - 1) z x) in
      let* three = call (fun () -> tak (z - 1) x y) in
      tak one two three
end

(* The three of them, which have to agree. *)
let compare name plain handled threaded =
  let threaded () = Monad.run (threaded ()) in
  let expected = plain () in
  let check f () = assert (f () = expected) in
  Loops.calls ("ocaml/" ^ name) (check plain);
  Loops.calls name (check handled);
  Loops.calls ("monad/" ^ name) (check threaded)

let () =
  let open Recursion in
  compare "ack"
    (fun () -> ack_of ack)
    (fun () -> ack_of Handled.ack)
    (fun () -> ack_of Threaded.ack);
  compare "fib"
    (fun () -> fib_of fib)
    (fun () -> fib_of Handled.fib)
    (fun () -> fib_of Threaded.fib);
  compare "motzkin"
    (fun () -> motzkin_of motzkin)
    (fun () -> motzkin_of Handled.motzkin)
    (fun () -> motzkin_of Threaded.motzkin);
  compare "sudan"
    (fun () -> sudan_of sudan)
    (fun () -> sudan_of Handled.sudan)
    (fun () -> sudan_of Threaded.sudan);
  compare "tak"
    (fun () -> tak_of tak)
    (fun () -> tak_of Handled.tak)
    (fun () -> tak_of Threaded.tak)
