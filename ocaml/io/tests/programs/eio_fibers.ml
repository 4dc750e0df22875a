(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

(* Two clocks that strike in turn, and a third that is stopped with the first failure. *)
let strike name times =
  for hour = 1 to times do
    traceln "%s strikes %d" name hour;
    Fiber.yield ()
  done

let () =
  Eio_main.run @@ fun _env ->
  Fiber.both (fun () -> strike "the church" 2) (fun () -> strike "the tower" 2);
  match Fiber.all [ (fun () -> strike "the station" 5); (fun () -> Fiber.yield (); failwith "midnight") ] with
  | () -> ()
  | exception Failure reason -> traceln "stopped: %s" reason
