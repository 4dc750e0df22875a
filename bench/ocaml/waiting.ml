(* SPDX-License-Identifier: MIT *)
(* waiting COUNT CALLS: so many computations wait at the same time, each below so many calls; then all go on.
   The results are the process's peak memory and its time. *)
open Effect
open Effect.Deep

type _ Effect.t += Wait : int t

let waiting : (int, int) continuation list ref = ref []
let[@inline never] rec deep n = if n = 0 then perform Wait else 1 + deep (n - 1)

let start calls =
  match deep calls with
  | n -> n
  | effect Wait, k ->
      waiting := k :: !waiting;
      0

let () =
  let count = int_of_string Sys.argv.(1) in
  let calls = int_of_string Sys.argv.(2) in
  for _ = 1 to count do
    assert (start calls = 0)
  done;
  let sum = List.fold_left (fun sum k -> sum + continue k 1) 0 !waiting in
  Printf.printf "%d\n" sum
