(* Two domains, each of which polls until it is its turn: the one that polls in vain lets the other one go on, long
   before the tick of 50 ms, in which a loop goes round a million times and more. *)

let rounds = 200

(* [wait polls me] polls until it is [me]'s turn, and counts how often. *)
let play name ~wait ~pass =
  let polls = [| 0; 0 |] in
  let player me () =
    for _ = 1 to rounds do
      wait (fun () -> polls.(me) <- polls.(me) + 1) me;
      pass (1 - me)
    done
  in
  let begun = ref false in
  let other = Domain.spawn (fun () -> begun := true; player 1 ()) in
  (* (Until it has, only the system can let it run.) *)
  while not !begun do Domain.cpu_relax () done;
  player 0 ();
  Domain.join other;
  if polls.(0) + polls.(1) > rounds * 200_000 then
    Printf.printf "%s: %d polls in %d rounds\n" name (polls.(0) + polls.(1)) rounds

let () =
  let turn = Atomic.make 0 in
  let pass = Atomic.set turn in
  play "cpu_relax" ~pass ~wait:(fun poll me -> while Atomic.get turn <> me do poll (); Domain.cpu_relax () done);
  play "get" ~pass ~wait:(fun poll me -> while Atomic.get turn <> me do poll () done);
  (* (It allocates nothing, and calls no function.) *)
  play "bare get" ~pass ~wait:(fun _ me -> while Atomic.get turn <> me do () done);
  let other = Atomic.make 0 in
  play "two atomics" ~pass
    ~wait:(fun poll me -> while Atomic.get other <> 0 || Atomic.get turn <> me do poll () done);
  (* A thread that looks for work at all the others does so. *)
  let queues = List.init 9 Atomic.make in
  play "many atomics" ~pass
    ~wait:(fun poll me ->
      while List.exists (fun queue -> Atomic.get queue < 0) queues || Atomic.get turn <> me do poll () done);
  play "compare_and_set" ~pass ~wait:(fun poll me -> while not (Atomic.compare_and_set turn me 2) do poll () done)

(* The thread that has the lock reads [turn]. *)
let with_lock name ~take ~give =
  let turn = ref 0 in
  let rec taken poll = if not (take ()) then begin poll (); taken poll end in
  let rec wait poll me =
    taken poll;
    let mine = !turn = me in
    if not mine then begin
      give ();
      poll ();
      wait poll me
    end
  in
  play name ~wait ~pass:(fun next -> turn := next; give ())

let () =
  let mutex = Mutex.create () and atomic = Atomic.make false in
  let give () = Mutex.unlock mutex in
  with_lock "try_lock" ~take:(fun () -> Mutex.try_lock mutex) ~give;
  with_lock "lock" ~take:(fun () -> Mutex.lock mutex; true) ~give;
  with_lock "exchange" ~take:(fun () -> not (Atomic.exchange atomic true)) ~give:(fun () -> Atomic.set atomic false);
  let counting = Semaphore.Counting.make 1 and binary = Semaphore.Binary.make true in
  with_lock "counting semaphore"
    ~take:(fun () -> Semaphore.Counting.try_acquire counting)
    ~give:(fun () -> Semaphore.Counting.release counting);
  with_lock "binary semaphore"
    ~take:(fun () -> Semaphore.Binary.try_acquire binary)
    ~give:(fun () -> Semaphore.Binary.release binary)

let () = print_endline "each had its turn"
(* SPDX-License-Identifier: MIT *)
