(* SPDX-License-Identifier: MIT *)
(* Threads that do nothing but yield to each other in turn. An operation is a turn. *)

(* The threads of a loop wait in a queue of their own while others run. *)
let compare name ready ~spawn ~turns threads =
  let mine = Fifo.create () in
  Loops.loop
    (Printf.sprintf "%s-%d" name threads)
    (fun n ->
      if Fifo.is_empty mine then
        for _ = 1 to if Loops.is_quick () then 10 else threads do
          spawn ()
        done
      else Fifo.move mine ready;
      Loops.start ();
      turns n;
      Fifo.move ready mine)

let rec yield_forever () =
  Effect.perform Threads.Yield;
  yield_forever ()

let rec yield_forever_in_monad () =
  Monad.bind Monad.yield yield_forever_in_monad

let () =
  List.iter
    (fun threads ->
      compare "round-robin" Threads.ready threads ~turns:Threads.turns
        ~spawn:(fun () -> Threads.spawn yield_forever);
      compare "monad/round-robin" Monad.ready threads ~turns:Monad.turns
        ~spawn:(fun () -> yield_forever_in_monad () ignore))
    [ 10; 100; 1000; 20000 ]
