(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

let address = `Tcp (Eio.Net.Ipaddr.V4.loopback, 47913)

(* Adds the numbers of the lines that come. *)
let serve flow peer =
  ignore peer;
  let lines = Eio.Buf_read.of_flow flow ~max_size:100 in
  let sum = Seq.fold_left (fun sum line -> sum + int_of_string line) 0 (Eio.Buf_read.lines lines) in
  Eio.Flow.copy_string (string_of_int sum) flow

let ask net numbers =
  Switch.run @@ fun sw ->
  let flow = Eio.Net.connect ~sw net address in
  List.iter (fun number -> Eio.Flow.copy_string (Printf.sprintf "%d\n" number) flow) numbers;
  Eio.Flow.shutdown flow `Send;
  traceln "the sum is %s" (Eio.Flow.read_all flow)

let () =
  Eio_main.run @@ fun env ->
  let net = Eio.Stdenv.net env in
  Switch.run @@ fun sw ->
  let socket = Eio.Net.listen net ~sw ~reuse_addr:true ~backlog:5 address in
  Fiber.fork_daemon ~sw (fun () -> Eio.Net.run_server socket serve ~on_error:raise);
  ask net [ 1; 2; 3 ];
  ask net []
