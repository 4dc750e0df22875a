(* SPDX-License-Identifier: MIT *)
(* Computations resumed twice (triples and tree_explore of the public benchmark programs, written from what
   they compute), a run: 175 and 255 choices, each of which is a copy and two resumptions. *)
open Effect
open Effect.Deep

type _ Effect.t += Flip : bool Effect.t | Fail : 'a Effect.t

let rec pick n =
  if n < 1 then perform Fail else if perform Flip then n else pick (n - 1)

let triple n s =
  let a = pick n in
  let b = pick (a - 1) in
  let c = pick (b - 1) in
  if a + b + c = s then ((53 * a) + (2809 * b) + (148877 * c)) mod 1_000_000_007
  else perform Fail

let both join body =
  match body () with
  | n -> n
  | effect Flip, k ->
      let again = Haft.unsafe_clone k in
      let first = continue k (true : bool) in
      join first (continue again (false : bool))
  | effect Fail, _ -> 0

let triples n s =
  both (fun x y -> (x + y) mod 1_000_000_007) (fun () -> triple n s)

let state = ref 0
let op x y = abs (x - (503 * y) + 37) mod 1009

(* The tree of that height: its root's value is the height, and both children are the same tree. *)
let rec path height =
  if height = 0 then !state
  else
    let below = if perform Flip then height - 1 else height - 1 in
    state := op !state height;
    op height (path below)

let rec tree_explore times height =
  if times = 0 then !state
  else (
    state := both max (fun () -> path height);
    tree_explore (times - 1) height)

let () =
  assert (triples 10 10 = 779_312);
  assert (tree_explore 10 5 = 946);
  (* Choices that fail leave stacks to the next minor collection. Until the first one each gets a new stack. *)
  for _ = 1 to 200 do
    ignore (triples 10 10)
  done;
  Loops.calls "triples-10" (fun () -> triples 10 10);
  Loops.calls "tree-explore-8" (fun () -> both max (fun () -> path 8))
