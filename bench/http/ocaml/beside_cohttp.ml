(* SPDX-License-Identifier: MIT *)
(* `beside_cohttp PORT`: the answer of load.c by cohttp-lwt-unix. *)
let body = String.make 1024 'x'

let () =
  let callback _ _ _ = Cohttp_lwt_unix.Server.respond_string ~status:`OK ~body () in
  let mode = `TCP (`Port (int_of_string Sys.argv.(1))) in
  Lwt_main.run (Cohttp_lwt_unix.Server.create ~mode (Cohttp_lwt_unix.Server.make ~callback ()))
