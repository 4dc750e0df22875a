(* SPDX-License-Identifier: MIT *)
(* The elements of a complete binary tree of depth 25, on demand (§6.3): by effects from the tree's
   iterator, by a traversal in a monad, and by one in continuation-passing style, defunctionalised. An
   operation is an element: two switches. Both children of a node are the same, so the tree lies in
   the cache. *)
open Effect
open Effect.Deep

type tree = Leaf | Node of tree * int * tree

let rec complete depth =
  if depth = 0 then Leaf
  else
    let child = complete (depth - 1) in
    Node (child, depth, child)

let rec iter visit = function
  | Leaf -> ()
  | Node (left, value, right) ->
      iter visit left;
      visit value;
      iter visit right

(* For any structure that has an iterator. *)
let generate (type a) (iter : (a -> unit) -> 'b -> unit) structure =
  let module M = struct
    type _ Effect.t += Yield : a -> unit Effect.t
  end in
  let rec step = ref first
  and first () =
    match iter (fun value -> perform (M.Yield value)) structure with
    | () ->
        (step := fun () -> None);
        None
    | effect (M.Yield value), k ->
        (step := fun () -> continue k ());
        Some value
  in
  fun () -> !step ()

let generate_in_monad tree =
  let open Monad in
  let element = ref None in
  let rec step = ref first
  and yield value k =
    element := Some value;
    step := k
  and iter = function
    | Leaf -> return ()
    | Node (left, value, right) ->
        let* () = iter left in
        let* () = yield value in
        iter right
  and first () = iter tree (fun () -> element := None) in
  fun () ->
    !step ();
    !element

(* The work left after the subtree at hand. *)
type rest = Done | Visit of int * tree * rest

let generate_by_hand tree =
  let rec descend rest = function
    | Leaf -> rest
    | Node (left, value, right) -> descend (Visit (value, right, rest)) left
  in
  let rest = ref (descend Done tree) in
  fun () ->
    match !rest with
    | Done -> None
    | Visit (value, right, after) ->
        rest := descend after right;
        Some value

let compare name generate =
  let next = ref (fun () -> None) in
  Loops.loop name (fun n ->
      let depth = if Loops.is_quick () then 5 else 25 in
      for _ = 1 to n do
        match !next () with
        | Some value -> ignore (Sys.opaque_identity value)
        | None -> next := generate (complete depth)
      done)

(* Each yields every element. *)
let check generate =
  let next = generate (complete 10) in
  let rec sum total =
    match next () with None -> total | Some value -> sum (total + value)
  in
  let expected = ref 0 in
  iter (fun value -> expected := !expected + value) (complete 10);
  assert (sum 0 = !expected)

let () =
  List.iter
    (fun (name, generate) ->
      check generate;
      compare name generate)
    [
      ("generator", generate iter);
      ("monad/generator", generate_in_monad);
      ("cps/generator", generate_by_hand);
    ]
