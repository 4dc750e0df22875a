(* SPDX-License-Identifier: MIT *)
val exn : Format.formatter -> exn -> unit
