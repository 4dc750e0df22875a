(* SPDX-License-Identifier: MIT *)
(* An effect is declared in every way that an exception is: with attributes, under the names that are no
   identifiers, locally; and effect patterns have attributes as exception patterns do. *)
open Effect
open Effect.Deep

let before = 1
effect [@ocaml.doc "in front"] [@ocaml.warning "-38"] First : int
let function_ f = f
effect[@ocaml.doc "in front"] Second : { left : int; right : int } -> int [@ocaml.doc "behind"] [@@ocaml.doc "item"]

module Names = struct
  let apply = function_
  effect (::) : int * int -> int
  effect [] : int
  effect true : int -> int

  let f x = x
  effect [@ocaml.doc "attribute"] false : int
  effect () : int
end

effect [@ocaml.doc "rebound"] Third = First

module type NAMES = sig
  effect [] : int
  val f : int -> int

  effect [@ocaml.doc "in a signature"] () : int
end

module Same : NAMES = Names

let special f =
  match f () with
  | n -> n
  | effect Names.(n :: m), k -> continue k (n + m)
  | effect Same.[], k -> continue k 10
  | effect[@ocaml.warning "-8"] Names.(true n), (k [@ocaml.doc "continuation"]) -> continue k (n + 1)
  | effect[@ocaml.warning "-8"] [@ocaml.doc "or"] (Names.(false) | Third) _ -> 20
  | effect[@ocaml.doc "of a record"] Second { left; right }, k when left < right -> continue k 30
  | effect [@ocaml.doc "any"] _, k -> discontinue k Exit

(* A local effect is new in each call: the inner one does not get the outer one's. *)
let rec local depth =
  let effect Depth : int -> int in
  let inner () = if depth = 0 then 0 else local (depth - 1) in
  try perform (Depth depth) + inner () with effect Depth n, k -> continue k (n * n)

let local_record x =
  let effect [@ocaml.doc "local"] Pair : { a : int; b : int list -> int } -> int [@ocaml.doc "behind"] in
  try perform (Pair { a = x; b = List.length }) with effect Pair { a; b }, k -> continue k (a + b [ 1; 2 ])

(* A function, as stock OCaml reads it. *)
let defined x =
  let effect true : int = x [@@ocaml.warning "-8"] in
  effect true

let results =
  [
    special (fun () -> perform Names.(1 :: 2)); special (fun () -> perform Names.[]);
    special (fun () -> perform Names.(true 3)); special (fun () -> perform Names.(false));
    special (fun () -> perform First); special (fun () -> perform (Second { left = 1; right = 2 }));
    (match special (fun () -> perform (Second { left = 2; right = 1 })) with n -> n | exception Exit -> 40);
    local 3; local_record 5; defined 6; before;
  ]

let () = List.iter (Printf.printf "%d\n") results
