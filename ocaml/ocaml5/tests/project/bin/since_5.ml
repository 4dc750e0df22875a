let () = print_endline (Domain.join (Domain.spawn (fun () -> "for " ^ Version.name)))
(* SPDX-License-Identifier: MIT *)
