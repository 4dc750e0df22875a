(* SPDX-License-Identifier: MIT *)
(* Very many connections to a web server, of which some fail or are given up, leave nothing behind (leaks.ml). *)
open Haft_io

let handle request =
  match Http.Request.path request with
  | [ "stream" ] ->
      Http.respond_stream (fun ~flush write ->
          for _ = 1 to 3 do
            write (String.make 500 'x');
            flush ()
          done)
  | [ "status" ] -> Http.fail `Conflict "taken\n"
  | [ "wait" ] ->
      Switch.run (fun sw ->
          Fiber.fork ~sw Fiber.yield;
          Time.sleep clock 0.0001);
      Http.respond_text "waited"
  | [ "late" ] -> (
      match Time.with_timeout clock 0.0001 (fun () -> Ok (Http.Request.text request)) with
      | Ok text -> Http.respond_text text
      | Error `Timeout -> Http.respond ~status:`Request_timeout "")
  | _ -> Http.respond_text "hello"

let requests =
  [|
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    "GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    "GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    "GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    "POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab";
    "GET /none HTTP/1.1\r\n\r\n";
  |]

(* One in seven closes its connection at once. *)
let ask address i =
  Switch.run (fun sw ->
      let flow = Net.connect ~sw net address in
      Flow.copy_string requests.(i mod Array.length requests) flow;
      if i mod 7 > 0 then
        match Flow.read_all flow with
        | "" -> failwith "no answer"
        | _ | (exception Io (Net.E (Connection_reset _), _)) -> ())

let () =
  Sys.set_signal Sys.sigpipe Sys.Signal_ignore;
  run (fun () ->
      let port, set_port = Promise.create () and stop, stopper = Promise.create () in
      Fiber.both
        (fun () ->
          Http.serve ~host:"127.0.0.1" ~port:0 ~signals:false ~stop ~on_listening:(Promise.resolve set_port) handle)
        (fun () ->
          let address = `Tcp (Net.Ipaddr.V4.loopback, Promise.await port) in
          Leaks.check (ask address);
          Promise.resolve stopper ()))
