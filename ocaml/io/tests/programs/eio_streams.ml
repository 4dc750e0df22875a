(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

let cancelled_in_time stream clock =
  match Eio.Time.with_timeout clock 0.01 (fun () -> Ok (Eio.Stream.take stream)) with
  | Ok item -> Printf.sprintf "got %d" item
  | Error `Timeout -> "nothing"

let () =
  Eio_main.run @@ fun env ->
  let stream = Eio.Stream.create 2 in
  Fiber.both
    (fun () ->
      for i = 1 to 5 do
        traceln "writing %d" i;
        Eio.Stream.add stream i
      done)
    (fun () ->
      for i = 1 to 5 do
        let x = Eio.Stream.take stream in
        traceln "read %d" x;
        Fiber.yield ()
      done);
  traceln "%s" (cancelled_in_time stream (Eio.Stdenv.clock env));
  Switch.run @@ fun sw ->
  let promise, resolver = Promise.create () in
  Fiber.both
    (fun () ->
      traceln "waiting";
      let x = Promise.await promise in
      traceln "x = %d" x)
    (fun () ->
      traceln "resolving";
      Promise.resolve resolver 42);
  let p = Fiber.fork_promise ~sw (fun () -> Fiber.yield (); "done") in
  traceln "%s" (Promise.await_exn p)
