(* SPDX-License-Identifier: MIT *)
(* A function of C in the middle: qsort of the C library asks OCaml code which of two elements comes
   first, and the comparison performs an effect. So the sort waits for the answer, with the frames of qsort
   on its stack; here two sorts take turns, as if each question went to somebody who has to think. *)
open Effect
open Effect.Deep

(* The indices 0 to n - 1 in order, by the C library: sorting_stubs.c. *)
external sorted_indices : int -> (int -> int -> int) -> int array = "example_sorted_indices"

effect Better : string * string -> bool

let ranking elements =
  let compare a b =
    if a = b then 0 else if perform (Better (elements.(a), elements.(b))) then -1 else 1
  in
  sorted_indices (Array.length elements) compare
  |> Array.map (Array.get elements)
  |> Array.to_list

(* Two tastes. *)
let shorter a b = String.length a < String.length b
let earlier_in_the_alphabet a b = a < b

(* Which questions are asked, and in which order, is up to the C library. *)
let run sorts =
  let questions = Queue.create () in
  let asked = ref [] in
  let sort (person, (better : string -> string -> bool), elements) =
    match ranking elements with
    | ranks -> Printf.printf "%s: %s\n" person (String.concat ", " ranks)
    | effect (Better (a, b)), k ->
        Queue.push
          (fun () ->
            asked := person :: !asked;
            continue k (better a b))
          questions
  in
  List.iter sort sorts;
  while not (Queue.is_empty questions) do
    (Queue.pop questions) ()
  done;
  List.rev !asked

let () =
  let asked =
    run
      [
        ("Ann", shorter, [| "cherry"; "banana split"; "apple"; "fig"; "pear"; "pomegranate" |]);
        ("Bob", earlier_in_the_alphabet, [| "tea"; "coffee"; "water" |]);
      ]
  in
  print_endline ("asked: " ^ String.concat ", " (List.filteri (fun i _ -> i < 4) asked) ^ ", ...")
