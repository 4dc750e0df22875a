type answer = { text : string; length : int } [@@deriving show { with_path = false }]

effect Ask : string -> answer

let () =
  print_endline
    (show_answer
       (try Effect.perform (Ask "who?")
        with effect Ask text, k -> Effect.Deep.continue k { text; length = String.length text }))
(* SPDX-License-Identifier: MIT *)
