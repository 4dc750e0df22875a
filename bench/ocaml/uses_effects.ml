(* SPDX-License-Identifier: MIT *)
(* Linked into table 1's program to make it one that uses the library before its loops run. *)
open Effect.Deep

type _ Effect.t += Ask : int Effect.t

let () =
  let answer = try Effect.perform Ask with effect Ask, k -> continue k 42 in
  assert (answer = 42)
