(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

(* A client, a server, and a timer, each with a mock of what is around it. *)

let ask ~net ~addr =
  Switch.run @@ fun sw ->
  traceln "Connecting to server at %a..." Eio.Net.Sockaddr.pp addr;
  let flow = Eio.Net.connect ~sw net addr in
  Eio.Flow.copy_string "Hello\nfrom the client\n" flow;
  Eio.Flow.shutdown flow `Send;
  traceln "Client received %S" (Eio.Flow.read_all flow)

let serve socket =
  Switch.run @@ fun sw ->
  let flow, addr = Eio.Net.accept ~sw socket in
  traceln "Server accepted connection from %a" Eio.Net.Sockaddr.pp addr;
  let lines = Eio.Buf_read.of_flow flow ~max_size:100 in
  Eio.Flow.copy_string (String.uppercase_ascii (Eio.Buf_read.line lines)) flow

let remind clock =
  Fiber.both
    (fun () ->
      Eio.Time.sleep clock 5.;
      traceln "five")
    (fun () ->
      match Eio.Time.with_timeout clock 3. (fun () -> Ok (Fiber.await_cancel ())) with
      | Ok () -> ()
      | Error `Timeout -> traceln "too late at %g" (Eio.Time.now clock))

let client_socket = `Tcp (Eio.Net.Ipaddr.V4.loopback, 37568)
let server_socket = `Tcp (Eio.Net.Ipaddr.V4.loopback, 8080)

let () =
  Eio_mock.Backend.run @@ fun () ->
  let net = Eio_mock.Net.make "mocknet" and flow = Eio_mock.Flow.make "socket" in
  Eio_mock.Net.on_connect net [ `Return flow ];
  Eio_mock.Flow.on_read flow [ `Return "(packet 1)"; `Yield_then (`Return "(packet 2)"); `Raise End_of_file ];
  Eio_mock.Flow.on_copy_bytes flow [ `Return 8 ];
  ask ~net ~addr:server_socket

let () =
  Eio_mock.Backend.run @@ fun () ->
  let listener = Eio_mock.Net.listening_socket "tcp/80" and connection = Eio_mock.Flow.make "connection" in
  let net = Eio_mock.Net.make "mocknet" in
  Eio_mock.Net.on_listen net [ `Return listener; `Raise (Failure "again") ];
  Switch.run (fun sw ->
      let socket = Eio.Net.listen ~sw ~backlog:5 net server_socket in
      Eio_mock.Net.on_accept listener [ `Return (connection, client_socket) ];
      Eio_mock.Flow.on_read connection [ `Return "hi "; `Return "there\nignored" ];
      serve socket;
      match Eio.Net.listen ~sw ~backlog:5 net server_socket with
      | _ -> traceln "it has listened"
      | exception Failure why -> traceln "listen: %s" why);
  Switch.run (fun sw ->
      match Eio.Net.connect ~sw net server_socket with
      | _ -> traceln "it has connected"
      | exception Failure why -> traceln "connect: %s" why)

let () =
  Eio_mock.Backend.run @@ fun () ->
  let clock = Eio_mock.Clock.make () in
  Fiber.both
    (fun () -> remind clock)
    (fun () ->
      Eio_mock.Clock.advance clock;
      Fiber.yield ();
      Eio_mock.Clock.set_time clock 4.;
      Fiber.yield ();
      Eio_mock.Clock.advance clock);
  traceln "%b" (Eio_mock.Clock.try_advance clock);
  let mono = Eio_mock.Clock.Mono.make () in
  Fiber.both
    (fun () -> Eio.Time.Mono.sleep_span mono Mtime.Span.ms)
    (fun () -> Eio_mock.Clock.Mono.advance mono)

let () =
  match Eio_mock.Backend.run (fun () -> Promise.await (fst (Promise.create ()))) with
  | () -> ()
  | exception Eio_mock.Backend.Deadlock_detected -> traceln "deadlock"
