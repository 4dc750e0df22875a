(* SPDX-License-Identifier: MIT *)
(* Like stuck.c: two transfers wait for each other, a reader for bytes, customers for a promise. *)
open Haft_io

type account = { mutex : Mutex.t; mutable cents : int }

let savings = { mutex = Mutex.create (); cents = 100_000 }
let household = { mutex = Mutex.create (); cents = 5_000 }

let transfer out into cents =
  Mutex.lock out.mutex;
  Fiber.yield ();
  (* while the manager signs it *)
  Mutex.lock into.mutex;
  out.cents <- out.cents - cents;
  into.cents <- into.cents + cents;
  Mutex.unlock into.mutex;
  Mutex.unlock out.mutex

let listen_to_branch () =
  let orders, _branch = Unix.pipe () in
  await_readable orders;
  print_endline "an order"

let open_bank () =
  let closing_time, _ = Promise.create () in
  Switch.run ~name:"bank" (fun sw ->
      Fiber.fork ~sw (fun () -> transfer household savings 500);
      Fiber.fork ~sw (fun () -> transfer savings household 700);
      Fiber.fork ~sw listen_to_branch;
      for _ = 1 to 50 do
        Fiber.fork ~sw (fun () -> Promise.await closing_time)
      done;
      for _ = 1 to 10 do
        Fiber.yield ()
      done;
      Unix.kill (Unix.getpid ()) Sys.sigabrt)

let () = run open_bank
