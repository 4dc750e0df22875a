(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

let main _env =
  Fiber.both
    (fun () -> for x = 1 to 3 do traceln "x = %d" x; Fiber.yield () done)
    (fun () -> for y = 1 to 3 do traceln "y = %d" y; Fiber.yield () done)

let () = Eio_main.run main
