(* SPDX-License-Identifier: MIT *)
external answers : unit -> bool = "haft_ocaml_posix_answers"
external watch_channels : unit -> unit = "haft_ocaml_posix_watch_channels"

let () = watch_channels ()
