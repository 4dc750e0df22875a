(* SPDX-License-Identifier: MIT *)
(* A sequence from any iterator: the iterator passes its elements to a function, and the reader of the
   sequence takes them one at a time. In between the iterator is suspended, wherever it is. *)
open Effect
open Effect.Deep

(* The elements that [iterate] passes to its argument. They are computed when they are first asked
   for, and kept: a continuation is resumed once, a sequence may be read again. *)
let sequence (type element) (iterate : (element -> unit) -> unit) : element Seq.t =
  let module Generator = struct
    effect Yield : element -> unit
  end in
  let start () =
    match iterate (fun element -> perform (Generator.Yield element)) with
    | () -> Seq.Nil
    | effect (Generator.Yield element), k ->
        let rest = lazy (continue k ()) in
        Seq.Cons (element, fun () -> Lazy.force rest)
  in
  let first = lazy (start ()) in
  fun () -> Lazy.force first

let rec take n seq =
  match seq () with
  | Seq.Cons (element, rest) when n > 0 -> element :: take (n - 1) rest
  | _ -> []

(* Two trees have the same fringe if their leaves are the same from left to right. *)
type tree = Leaf of string | Node of tree * tree

let rec iter f = function
  | Leaf word -> f word
  | Node (left, right) ->
      iter f left;
      iter f right

let leaves tree = sequence (fun yield -> iter yield tree)

let rec difference a b =
  match (a (), b ()) with
  | Seq.Nil, Seq.Nil -> "the same"
  | Seq.Cons (x, a), Seq.Cons (y, b) when String.equal x y -> difference a b
  | Seq.Cons (x, _), Seq.Cons (y, _) -> Printf.sprintf "%s, not %s" x y
  | Seq.Nil, Seq.Cons (x, _) | Seq.Cons (x, _), Seq.Nil -> "then " ^ x

let ( ^^ ) a b = Node (a, b)
let the = Leaf "the" and quick = Leaf "quick" and brown = Leaf "brown" and fox = Leaf "fox"

let () =
  let numbers = sequence (fun yield -> List.iter yield [ 1; 2; 3 ]) in
  let letters = sequence (fun yield -> String.iter yield "abc") in
  let pairs =
    sequence (fun yield ->
        (* Generators in a generator: each has its own effect. *)
        Seq.iter (fun n -> Seq.iter (fun c -> yield (Printf.sprintf "%d%c" n c)) letters) numbers)
  in
  print_endline (String.concat " " (List.of_seq pairs));

  let powers =
    sequence (fun yield ->
        let rec from n = yield n; from (2 * n) in
        from 1)
  in
  print_endline (String.concat " " (List.map string_of_int (take 10 powers)));

  let fringe = leaves ((the ^^ quick) ^^ (brown ^^ fox)) in
  List.iter
    (fun tree -> print_endline (difference fringe (leaves tree)))
    [ the ^^ (quick ^^ (brown ^^ fox)); (the ^^ brown) ^^ fox; the ^^ quick ]
