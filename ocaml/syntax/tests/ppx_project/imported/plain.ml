type place = [%import: Stdlib.Lexing.position] [@@deriving show { with_path = false }]

let nowhere = show_place Lexing.dummy_pos
(* SPDX-License-Identifier: MIT *)
