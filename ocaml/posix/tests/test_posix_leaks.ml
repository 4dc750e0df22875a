(* SPDX-License-Identifier: MIT *)
(* Very many connections, by tasks and by Unix, leave nothing behind (leaks.ml). *)
open Haft_io

let answer flow _ =
  let lines = Buf_read.of_flow flow ~max_size:100 in
  Flow.copy_string (Buf_read.line lines ^ "\n") flow

let ask_by_task address i =
  Switch.run (fun sw ->
      let flow = Net.connect ~sw net address in
      Flow.copy_string (Printf.sprintf "%d\n" i) flow;
      (* One in ten is cancelled. *)
      let wait () = Ok (Buf_read.line (Buf_read.of_flow flow ~max_size:100)) in
      if i mod 10 = 0 then ignore (Fiber.first wait (fun () -> Fiber.yield (); Ok "")) else ignore (wait ()))

let ask_by_unix port i =
  let from_server, to_server = Unix.open_connection (ADDR_INET (Unix.inet_addr_loopback, port)) in
  Printf.fprintf to_server "%d\n%!" i;
  if input_line from_server <> string_of_int i then failwith "another answer";
  close_in from_server

let () =
  run (fun () ->
      Switch.run (fun sw ->
          let socket = Net.listen ~sw ~backlog:200 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
          let port = match Net.listening_addr socket with `Tcp (_, port) -> port | `Unix _ -> assert false in
          let address = `Tcp (Net.Ipaddr.V4.loopback, port) in
          Fiber.fork_daemon ~sw (fun () -> Net.run_server socket answer ~on_error:ignore);
          Leaks.check (fun i -> if i mod 2 = 0 then ask_by_task address i else ask_by_unix port i)))
