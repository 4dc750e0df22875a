type place = [%import: Stdlib.Lexing.position] [@@deriving show { with_path = false }]

effect Where : place

let where () =
  show_place (try Effect.perform Where with effect Where, k -> Effect.Deep.continue k Lexing.dummy_pos)
(* SPDX-License-Identifier: MIT *)
