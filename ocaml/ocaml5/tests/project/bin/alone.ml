let () = print_endline (Option.get (In_channel.input_line In_channel.stdin))
(* SPDX-License-Identifier: MIT *)
