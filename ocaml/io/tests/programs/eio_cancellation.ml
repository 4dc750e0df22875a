(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

let () =
  Eio_main.run @@ fun env ->
  let clock = Eio.Stdenv.clock env in
  let result =
    Fiber.first
      (fun () -> Eio.Time.sleep clock 1000.; "slow")
      (fun () -> Eio.Time.sleep clock 0.01; "fast")
  in
  traceln "%s" result;
  (try
     Fiber.both
       (fun () -> for x = 1 to 3 do traceln "x = %d" x; Fiber.yield () done)
       (fun () -> failwith "Simulated error")
   with Failure msg -> traceln "Error: %s" msg);
  Switch.run ~name:"main" (fun sw ->
    for i = 1 to 3 do
      Fiber.fork ~sw (fun () ->
        for j = i downto 1 do
          traceln "%d: %d" i j;
          Fiber.yield ()
        done)
    done)
