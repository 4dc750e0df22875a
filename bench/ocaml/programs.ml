(* SPDX-License-Identifier: MIT *)
(* The simplest loops of the public benchmark programs, written from what they compute: each step performs
   once or twice and is continued at once. *)
open Effect
open Effect.Deep

type _ Effect.t +=
  | Get : int Effect.t
  | Set : int -> unit Effect.t
  | Emit : int -> unit Effect.t
  | Read : char Effect.t
  | Stop : unit Effect.t

let rec count_down () =
  let i = perform Get in
  if i > 0 then (
    perform (Set (i - 1));
    count_down ())
  else i

(* A step is a Get and a Set. *)
let countdown n =
  let state = ref n in
  match count_down () with
  | i -> i
  | effect Get, k -> continue k (!state : int)
  | effect (Set i), k ->
      state := i;
      continue k ()

let summed body =
  let sum = ref 0 in
  match body () with
  | () -> !sum
  | effect (Emit i), k ->
      sum := !sum + i;
      continue k ()

let iterator n =
  summed (fun () ->
      for i = 1 to n do
        perform (Emit i)
      done)

let rec parse dollars =
  match perform Read with
  | '$' -> parse (dollars + 1)
  | '\n' ->
      perform (Emit dollars);
      parse 0
  | _ -> perform Stop

let caught body = try body () with effect Stop, _ -> ()

(* [left] characters, in lines of nine dollars. *)
let fed left body =
  let next () =
    if !left = 0 then '.'
    else (
      decr left;
      if !left mod 10 = 0 then '\n' else '$')
  in
  try body () with effect Read, k -> continue k (next () : char)

let parsed characters =
  summed (fun () ->
      caught (fun () -> fed (ref characters) (fun () -> parse 0)))

let () =
  Loops.loop "countdown" (fun n -> assert (countdown n = 0));
  Loops.loop "iterator" (fun n -> assert (iterator n = n * (n + 1) / 2));
  Loops.loop "parsing-dollars" (fun n -> assert (parsed n = n - ((n + 9) / 10)))
