(* SPDX-License-Identifier: MIT *)
external unsafe_clone :
  ('a, 'b) Effect.Deep.continuation -> ('a, 'b) Effect.Deep.continuation
  = "haft_ocaml_clone"
