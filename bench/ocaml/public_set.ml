(* SPDX-License-Identifier: MIT *)
(* Programs of the public benchmark set in which a computation is resumed once, written from what they compute. *)
open Effect
open Effect.Deep

let modulus = 1_000_000_007
let operator x y = abs (x - (503 * y) + 37) mod 1009

type _ Effect.t += Get : int Effect.t | Put : int -> unit Effect.t

let countdown n =
  let rec count () =
    match perform Get with
    | 0 -> ()
    | i ->
        perform (Put (i - 1));
        count ()
  in
  let state = ref n in
  match count () with
  | () -> !state
  | effect Get, k -> continue k (!state : int)
  | effect (Put i), k ->
      state := i;
      continue k ()

let rec fibonacci n =
  if n < 2 then n else fibonacci (n - 1) + fibonacci (n - 2)

type _ Effect.t += Abort : int Effect.t

let product_early n =
  let rec product = function
    | [] -> 1
    | 0 :: _ -> perform Abort
    | head :: tail -> head * product tail
  in
  let list = List.init 1001 (fun i -> 1000 - i) in
  let once () = match product list with p -> p | effect Abort, _ -> 0 in
  let sum = ref 0 in
  for _ = 1 to n do
    sum := !sum + once ()
  done;
  !sum

type _ Effect.t += Emit : int -> unit Effect.t

let summed body =
  let sum = ref 0 in
  match body () with
  | () -> !sum
  | effect (Emit i), k ->
      sum := !sum + i;
      continue k ()

let iterator n =
  summed (fun () ->
      for i = 0 to n do
        perform (Emit i)
      done)

(* The complete tree of a height: both children of a node are the same node. *)
type tree = Empty | Node of tree * int * tree

let tree height =
  let rec above below value =
    if value > height then below
    else above (Node (below, value, below)) (value + 1)
  in
  above Empty 1

let generator height =
  let rec walk = function
    | Empty -> ()
    | Node (left, value, right) ->
        walk left;
        perform (Emit value);
        walk right
  in
  let rest = ref (fun () -> None) in
  let next () = !rest () in
  let start () =
    match walk (tree height) with
    | () -> None
    | effect (Emit value), k ->
        (rest := fun () -> continue k ());
        Some value
  in
  rest := start;
  let rec sum total =
    match next () with Some value -> sum (total + value) | None -> total
  in
  sum 0

type _ Effect.t += Read : char Effect.t | Stop : unit Effect.t

(* Adds up the dollars of each line of the characters that [next] gives, until another character. *)
let parsing (next : unit -> char) =
  let rec parse dollars =
    match perform Read with
    | '$' -> parse (dollars + 1)
    | '\n' ->
        perform (Emit dollars);
        parse 0
    | _ -> perform Stop
  in
  let fed () = try parse 0 with effect Read, k -> continue k (next ()) in
  summed (fun () -> try fed () with effect Stop, _ -> ())

let parsing_dollars lines =
  let line = ref 0 and left = ref 0 in
  parsing (fun () ->
      if !left > 0 then (
        decr left;
        '$')
      else if !line <= lines then (
        incr line;
        left := !line;
        '\n')
      else '.')

type _ Effect.t += Operate : int -> unit Effect.t

let resume_nontail n =
  let rec loop i start =
    if i = 0 then start
    else (
      perform (Operate i);
      loop (i - 1) start)
  in
  let once start =
    match loop n start with
    | result -> result
    | effect (Operate i), k -> operator i (continue k ())
  in
  let rec repeat times start =
    if times = 0 then start else repeat (times - 1) (once start)
  in
  repeat 1000 0

type _ Effect.t += Is_prime : int -> bool Effect.t

let handler_sieve n =
  let rec primes i sum =
    if i >= n then sum
    else if perform (Is_prime i) then
      match primes (i + 1) (sum + i) with
      | total -> total
      | effect (Is_prime e), k ->
          continue k (if e mod i = 0 then false else perform (Is_prime e))
    else primes (i + 1) sum
  in
  match primes 2 0 with
  | total -> total
  | effect (Is_prime _), k -> continue k true

let programs =
  ref
    [
      ("countdown", countdown);
      ("fibonacci_recursive", fibonacci);
      ("product_early", product_early);
      ("iterator", iterator);
      ("generator", generator);
      ("parsing_dollars", parsing_dollars);
      ("resume_nontail", resume_nontail);
      ("handler_sieve", handler_sieve);
    ]
