(* SPDX-License-Identifier: MIT *)
let () = exit (Loops.run Sys.argv)
