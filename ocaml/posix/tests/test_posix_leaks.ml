(* SPDX-License-Identifier: MIT *)
(* Very many connections, by tasks and by Unix, leave nothing behind: descriptors, values, memory.
   HAFT_TEST_CONNECTIONS=1000000 for a campaign by hand. *)
open Haft_io

let connections =
  match Sys.getenv_opt "HAFT_TEST_CONNECTIONS" with Some count -> int_of_string count | None -> 6_000

let at_a_time = 20

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

let ask_many address port count =
  Fiber.List.iter ~max_fibers:at_a_time
    (fun i -> if i mod 2 = 0 then ask_by_task address i else ask_by_unix port i)
    (List.init count Fun.id)

let resident () =
  let input = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line input) "%d %d" (fun _ resident -> resident) in
  close_in input;
  pages * 4096

type state = { descriptors : int; words : int; memory : int }

let state () =
  (* Tasks end a little later than their clients see. *)
  for _ = 1 to 100 do
    Fiber.yield ()
  done;
  Time.sleep clock 0.05;
  Gc.compact ();
  {
    descriptors = Array.length (Sys.readdir "/proc/self/fd");
    words = (Gc.stat ()).live_words;
    memory = resident ();
  }

let () =
  run (fun () ->
      Switch.run (fun sw ->
          let socket = Net.listen ~sw ~backlog:200 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
          let port = match Net.listening_addr socket with `Tcp (_, port) -> port | `Unix _ -> assert false in
          let address = `Tcp (Net.Ipaddr.V4.loopback, port) in
          Fiber.fork_daemon ~sw (fun () -> Net.run_server socket answer ~on_error:ignore);
          let rounds = max 1 (connections / 2_000) in
          let round () = ask_many address port (connections / rounds) in
          round ();
          let before = state () in
          for _ = 1 to rounds do
            round ()
          done;
          let after = state () in
          Printf.printf "%d connections: %d descriptors more, %d words, %d KiB\n" connections
            (after.descriptors - before.descriptors)
            (after.words - before.words)
            ((after.memory - before.memory) / 1024);
          if after.descriptors > before.descriptors then failwith "descriptors are left";
          if after.words > before.words + 10_000 then failwith "values are left";
          if after.memory > before.memory + (16 * 1024 * 1024) then failwith "memory is left"))
