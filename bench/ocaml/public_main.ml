(* SPDX-License-Identifier: MIT *)
(* public_set NAME N: prints the result of a program of the public benchmark set. *)
let () =
  let program = List.assoc Sys.argv.(1) !Public_set.programs in
  Printf.printf "%d\n" (program (int_of_string Sys.argv.(2)))
