(* SPDX-License-Identifier: MIT *)
(* Tasks, switches, cancels and what tasks wait by. Most cases note what happens, and compare the notes. *)
open Alcotest
open Haft_io

exception Broken
exception Broken_too

let notes : string list ref = ref []
let note format = Printf.ksprintf (fun text -> notes := text :: !notes) format
let case name f = test_case name `Quick f

(* The case runs as the first task, and leaves these notes. *)
let notes_case name expected f =
  case name (fun () ->
      notes := [];
      run f;
      check (list string) name expected (List.rev !notes))

let raises what expected f =
  match f () with
  | _ -> failf "%s: it has returned" what
  | exception exn -> check string what (Printexc.to_string expected) (Printexc.to_string exn)

let raises_case name expected f = case name (fun () -> raises name expected (fun () -> run f))
let nap () = Time.sleep clock 0.001

(* Whether the system gives no threads from now on. *)
external refuse_threads : bool -> unit = "test_refuse_threads"

let runs =
  [
    (* The first of all: no thread has been there before. *)
    notes_case "work for which there is no thread fails, or waits for one"
      [ "refused"; "refused"; "0 2"; "3" ] (fun () ->
        let try_work () = match run_in_systhread ignore with () -> note "done" | exception _ -> note "refused" in
        refuse_threads true;
        try_work ();
        try_work ();
        refuse_threads false;
        let gate, opener = Unix.pipe () and waits = ref false in
        let a, b =
          Fiber.pair
            (fun () -> run_in_systhread (fun () -> waits := true; Unix.read gate (Bytes.create 1) 0 1))
            (fun () ->
              while not !waits do nap () done;
              refuse_threads true;
              Fiber.first
                (fun () -> run_in_systhread (fun () -> 2))
                (fun () -> Unix.close opener; Fiber.await_cancel ()))
        in
        refuse_threads false;
        Unix.close gate;
        note "%d %d" a b;
        note "%d" (run_in_systhread (fun () -> 3)));
    case "a run returns what its task returns" (fun () -> check int "result" 5 (run (fun () -> 2 + 3)));
    raises_case "a run raises what its task raises" Broken (fun () -> raise Broken);
    case "a run follows another" (fun () ->
        for i = 1 to 100 do
          check int "result" i (run (fun () -> Fiber.yield (); i))
        done);
    case "a second run at a time is refused" (fun () ->
        run (fun () ->
            raises "run" (Invalid_argument "Haft_io.run: this process has a run already") (fun () -> run ignore)));
    case "outside of a run the functions of tasks are unhandled" (fun () ->
        match Fiber.yield () with () -> fail "it has returned" | exception Effect.Unhandled _ -> ());
    case "an effect of the program is handled around what waits" (fun () ->
        let ask : int Effect.t = let open struct type _ Effect.t += Ask : int Effect.t end in Ask in
        let answer =
          run (fun () ->
              Effect.Deep.try_with
                (fun () ->
                  nap ();
                  let first = Effect.perform ask in
                  Fiber.yield ();
                  first + Effect.perform ask)
                ()
                {
                  effc =
                    (fun (type a) (effect : a Effect.t) ->
                      if Obj.repr effect == Obj.repr ask then
                        Some (fun (k : (a, _) Effect.Deep.continuation) -> Effect.Deep.continue k (Obj.magic 20))
                      else None);
                })
        in
        check int "answer" 40 answer);
  ]

let fibers =
  [
    notes_case "both calls the first at once, and the second when that waits" [ "a1"; "b1"; "a2"; "b2" ] (fun () ->
        Fiber.both
          (fun () -> note "a1"; Fiber.yield (); note "a2")
          (fun () -> note "b1"; Fiber.yield (); note "b2"));
    notes_case "fork goes first, and its caller next" [ "task"; "caller"; "task again" ] (fun () ->
        Switch.run (fun sw ->
            Fiber.fork ~sw (fun () -> note "task"; Fiber.yield (); note "task again");
            note "caller"));
    notes_case "pair returns both results" [ "1 2" ] (fun () ->
        let a, b = Fiber.pair (fun () -> nap (); 1) (fun () -> 2) in
        note "%d %d" a b);
    notes_case "all waits for all" [ "3"; "1"; "2"; "end" ] (fun () ->
        Fiber.all (List.map (fun i () -> if i < 3 then Fiber.yield (); note "%d" i) [ 1; 2; 3 ]);
        note "end");
    notes_case "first cancels the other, which cleans up before first returns" [ "cleaned up"; "quick" ] (fun () ->
        let winner =
          Fiber.first
            (fun () -> Fun.protect ~finally:(fun () -> note "cleaned up") (fun () -> Fiber.await_cancel ()))
            (fun () -> nap (); "quick")
        in
        note "%s" winner);
    notes_case "first returns the first result though the second returns, too" [ "1" ] (fun () ->
        note "%d" (Fiber.first (fun () -> 1) (fun () -> 2)));
    notes_case "first combines two results if it is told how" [ "3" ] (fun () ->
        let slow () = (try Fiber.await_cancel () with Cancel.Cancelled _ -> ()); 2 in
        note "%d" (Fiber.first ~combine:( + ) slow (fun () -> 1)));
    raises_case "first raises a failure" Broken (fun () ->
        Fiber.first (fun () -> Fiber.await_cancel ()) (fun () -> raise Broken));
    raises_case "first raises what combine raises" Broken (fun () ->
        let slow () = try Fiber.await_cancel () with Cancel.Cancelled _ -> 2 in
        ignore (Fiber.first ~combine:(fun _ _ -> raise Broken) slow (fun () -> 1)));
    notes_case "a cancel of the caller comes before a result of any" [ "any: cancelled"; "n_any: cancelled" ] (fun () ->
        let stubborn () = try Fiber.await_cancel () with Cancel.Cancelled _ -> 1 in
        let under_cancel name f =
          match Cancel.sub (fun context -> f (fun () -> Cancel.cancel context Exit; stubborn ())) with
          | _ -> note "%s: returned" name
          | exception Cancel.Cancelled Exit -> note "%s: cancelled" name
        in
        under_cancel "any" (fun cancels -> Fiber.any [ stubborn; cancels ]);
        under_cancel "n_any" (fun cancels -> List.hd (Fiber.n_any [ stubborn; cancels ])));
    raises_case "a failure comes before a cancel of the caller" Broken (fun () ->
        Cancel.sub (fun context ->
            Fiber.first
              (fun () -> try Fiber.await_cancel () with Cancel.Cancelled _ -> raise Broken)
              (fun () -> Cancel.cancel context Exit; Fiber.check ())));
    notes_case "any of many" [ "3" ] (fun () ->
        note "%d" (Fiber.any (List.init 10 (fun i () -> if i = 3 then i else Fiber.await_cancel ()))));
    notes_case "n_any returns all that have returned" [ "0 2" ] (fun () ->
        let results = Fiber.n_any [ (fun () -> nap (); 0); (fun () -> Fiber.await_cancel ());
                                    (fun () -> try Fiber.await_cancel () with Cancel.Cancelled _ -> 2) ] in
        note "%s" (String.concat " " (List.map string_of_int (List.sort compare results))));
    notes_case "fork_promise keeps the result, and the failure" [ "7"; "broken" ] (fun () ->
        Switch.run (fun sw ->
            let good = Fiber.fork_promise ~sw (fun () -> nap (); 7) in
            let bad = Fiber.fork_promise ~sw (fun () -> nap (); raise Broken) in
            note "%d" (Promise.await_exn good);
            match Promise.await bad with Ok () -> note "ok" | Error Broken -> note "broken" | Error _ -> note "other"));
    raises_case "fork_promise_exn fails its switch" Broken (fun () ->
        Switch.run (fun sw -> Promise.await (Fiber.fork_promise_exn ~sw (fun () -> nap (); raise Broken))));
    notes_case "a daemon is cancelled when the others have ended" [ "daemon"; "body"; "daemon ends" ] (fun () ->
        Switch.run (fun sw ->
            Fiber.fork_daemon ~sw (fun () ->
                note "daemon";
                Fun.protect ~finally:(fun () -> note "daemon ends") (fun () -> Fiber.await_cancel ()));
            nap ();
            note "body"));
    raises_case "the failure of a daemon fails its switch" Broken (fun () ->
        Switch.run (fun sw ->
            Fiber.fork_daemon ~sw (fun () -> raise Broken);
            Fiber.await_cancel ()));
    notes_case "a sequence runs while it is asked" [ "make 1"; "got 1"; "make 2"; "got 2"; "end" ] (fun () ->
        Switch.run (fun sw ->
            let seq =
              Fiber.fork_seq ~sw (fun give -> List.iter (fun i -> note "make %d" i; give i) [ 1; 2 ])
            in
            Seq.iter (fun i -> note "got %d" i) seq;
            note "end"));
    notes_case "lists keep their order, and the limit" [ "1 4 9 16 25"; "most: 2" ] (fun () ->
        let now = ref 0 and most = ref 0 in
        let square i =
          incr now;
          most := max !most !now;
          Time.sleep clock (0.001 *. float (6 - i));
          decr now;
          i * i
        in
        let squares = Fiber.List.map ~max_fibers:2 square [ 1; 2; 3; 4; 5 ] in
        note "%s" (String.concat " " (List.map string_of_int squares));
        note "most: %d" !most);
    raises_case "the failure of one item cancels the others" Broken (fun () ->
        Fiber.List.iter (fun i -> if i = 2 then raise Broken else Fiber.await_cancel ()) [ 1; 2; 3 ]);
    notes_case "values are handed on to tasks, and end with their block" [ "1 2 1 none" ] (fun () ->
        let key = Fiber.create_key () in
        let get () = match Fiber.get key with Some i -> string_of_int i | None -> "none" in
        let inside =
          Fiber.with_binding key 1 (fun () ->
              let inner, outer =
                Fiber.pair (fun () -> Fiber.with_binding key 2 (fun () -> Fiber.yield (); get ())) (fun () -> get ())
              in
              get () ^ " " ^ inner ^ " " ^ outer)
        in
        note "%s %s" inside (get ()));
  ]

let switches =
  [
    notes_case "what was acquired is released at the end, the last first" [ "body"; "second"; "first" ] (fun () ->
        Switch.run (fun sw ->
            Switch.on_release sw (fun () -> note "first");
            Switch.on_release sw (fun () -> Fiber.yield (); note "second");
            note "body"));
    notes_case "a hook that is removed is not called" [ "true"; "false"; "other" ] (fun () ->
        Switch.run (fun sw ->
            let hook = Switch.on_release_cancellable sw (fun () -> note "hook") in
            Switch.on_release sw (fun () -> note "other");
            note "%b" (Switch.try_remove_hook hook);
            note "%b" (Switch.try_remove_hook hook);
            Switch.remove_hook Switch.null_hook));
    raises_case "a task's failure cancels the others, and is raised" Broken (fun () ->
        Switch.run (fun sw ->
            Fiber.fork ~sw (fun () -> Fiber.await_cancel ());
            Fiber.fork ~sw (fun () -> nap (); raise Broken);
            Fiber.await_cancel ()));
    raises_case "two failures are raised as one"
      (Exn.Multiple [ (Broken, Exn.empty_backtrace); (Broken_too, Exn.empty_backtrace) ])
      (fun () ->
        Switch.run (fun sw ->
            Fiber.fork ~sw (fun () -> try Fiber.await_cancel () with Cancel.Cancelled _ -> raise Broken_too);
            raise Broken));
    notes_case "a cancel is none beside a failure" [ "broken" ] (fun () ->
        match Switch.run (fun sw -> Fiber.fork ~sw (fun () -> raise Broken); Fiber.check ()) with
        | () -> note "returned"
        | exception Broken -> note "broken");
    raises_case "fail, from outside of its tasks" Broken (fun () ->
        Switch.run (fun sw -> Switch.fail sw Broken; Fiber.check ()));
    raises_case "a task that is forked in an ended switch is refused" (Invalid_argument "Switch finished!") (fun () ->
        let escaped = Switch.run Fun.id in
        Fiber.fork ~sw:escaped ignore);
    notes_case "a switch that is cancelled starts no task" [ "caught" ] (fun () ->
        try
          Switch.run (fun sw ->
              Switch.fail sw Broken;
              Fiber.fork ~sw (fun () -> note "started"))
        with Broken -> note "caught");
    notes_case "the failure of a release is raised, and the others are released" [ "second"; "broken" ] (fun () ->
        try
          Switch.run (fun sw ->
              Switch.on_release sw (fun () -> note "second");
              Switch.on_release sw (fun () -> raise Broken))
        with Broken -> note "broken");
    notes_case "a protected switch ends before the cancel is seen" [ "protected"; "cancelled" ] (fun () ->
        try
          Fiber.both
            (fun () ->
              Switch.run_protected (fun _ -> nap (); note "protected");
              try Fiber.check () with exn -> note "cancelled"; raise exn)
            (fun () -> raise Broken)
        with Broken -> ());
    notes_case "protect returns its result though a cancel has come, which the next wait raises"
      [ "protected"; "cancelled" ]
      (fun () ->
        try
          Fiber.both
            (fun () ->
              note "%s" (Cancel.protect (fun () -> nap (); "protected"));
              try nap () with exn -> note "cancelled"; raise exn)
            (fun () -> raise Broken)
        with Broken -> ());
    notes_case "what has finished says so, as an error" [ "finished"; "finished"; "finished" ] (fun () ->
        let context = Cancel.sub Fun.id and switch = Switch.run Fun.id in
        let tell = function Some (Invalid_argument _) -> note "finished" | _ -> note "something else" in
        tell (Cancel.get_error context);
        tell (Switch.get_error switch);
        tell (match Cancel.check context with () -> None | exception exn -> Some exn));
    raises_case "an exception that two tasks raise is raised once" Broken (fun () ->
        Fiber.both
          (fun () -> Fiber.yield (); raise Broken)
          (fun () -> try Fiber.await_cancel () with _ -> raise Broken));
    notes_case "a cancel of a context reaches the tasks in it only" [ "cancelled"; "go on" ] (fun () ->
        (try
           Cancel.sub (fun context ->
               Fiber.both (fun () -> Fiber.await_cancel ()) (fun () -> Cancel.cancel context Broken))
         with Cancel.Cancelled Broken -> note "cancelled");
        Fiber.check ();
        note "go on");
  ]

let between_tasks =
  [
    notes_case "a promise wakes all that wait, in their order" [ "a 5"; "b 5"; "peek 5" ] (fun () ->
        let promise, resolver = Promise.create () in
        Fiber.all
          [
            (fun () -> note "a %d" (Promise.await promise));
            (fun () -> note "b %d" (Promise.await promise));
            (fun () -> nap (); Promise.resolve resolver 5);
          ];
        note "peek %d" (Option.get (Promise.peek promise)));
    notes_case "a cancel reaches a task below 40,000 contexts" [ "cancelled" ] (fun () ->
        let rec deep n = if n = 0 then Fiber.await_cancel () else Switch.run (fun _ -> deep (n - 1)) in
        match Time.with_timeout clock 0.001 (fun () -> Ok (deep 40_000)) with
        | Ok () -> ()
        | Error `Timeout -> note "cancelled");
    case "a promise is resolved once" (fun () ->
        let _, resolver = Promise.create () in
        Promise.resolve resolver 1;
        check bool "again" false (Promise.try_resolve resolver 2);
        raises "resolve" (Invalid_argument "Can't resolve already-resolved promise") (fun () ->
            Promise.resolve resolver 3));
    notes_case "another thread resolves a promise, and the loop wakes" [ "9" ] (fun () ->
        let promise, resolver = Promise.create () in
        let thread = Thread.create (fun () -> Thread.delay 0.005; Promise.resolve resolver 9) () in
        note "%d" (Promise.await promise);
        run_in_systhread (fun () -> Thread.join thread));
    case "a promise that code resolves which interrupts a task, at any allocation, wakes its task" (fun () ->
        if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
          for moment = 1 to 60 do
            let wait promise () = Promise.await promise in
            simulate ~seed:1 (fun () ->
                let promise, resolver = Promise.create () in
                let allocations = ref 0 in
                let note_one _ =
                  incr allocations;
                  if !allocations = moment then ignore (Promise.try_resolve resolver ());
                  None
                in
                let tracker = { Gc.Memprof.null_tracker with alloc_minor = note_one; alloc_major = note_one } in
                Gc.Memprof.start ~callstack_size:0 ~sampling_rate:1. tracker;
                Fiber.both (wait promise) (fun () ->
                    Gc.Memprof.stop ();
                    ignore (Promise.try_resolve resolver ())))
          done);
    notes_case "a semaphore lets so many in, in their order" [ "1 in"; "2 in"; "1 out"; "2 out"; "3 in"; "3 out" ]
      (fun () ->
        let semaphore = Semaphore.make 2 in
        let task i () =
          Semaphore.acquire semaphore;
          note "%d in" i;
          Fiber.yield ();
          note "%d out" i;
          Semaphore.release semaphore;
          Fiber.yield ()
        in
        Fiber.all [ task 1; task 2; task 3 ]);
    notes_case "a waiter that is cancelled takes no semaphore" [ "1" ] (fun () ->
        let semaphore = Semaphore.make 0 in
        ignore (Time.with_timeout clock 0.001 (fun () -> Semaphore.acquire semaphore; Ok ()));
        Semaphore.release semaphore;
        note "%d" (Semaphore.get_value semaphore));
    notes_case "a mutex lets one in at a time" [ "a"; "a"; "b"; "b" ] (fun () ->
        let mutex = Mutex.create () in
        let task name () = Mutex.use_ro mutex (fun () -> note name; Fiber.yield (); note name) in
        Fiber.both (task "a") (task "b"));
    notes_case "a failure under a mutex poisons it for all that wait" [ "poisoned"; "poisoned" ] (fun () ->
        let mutex = Mutex.create () in
        let lock () = try Mutex.lock mutex with Mutex.Poisoned Broken -> note "poisoned" in
        Fiber.both
          (fun () ->
            try Mutex.use_rw ~protect:true mutex (fun () -> Fiber.yield (); raise Broken) with Broken -> ())
          lock;
        lock ());
    notes_case "a cancel in a protected block leaves the mutex sound" [ "done"; "locked" ] (fun () ->
        let mutex = Mutex.create () in
        ignore
          (Time.with_timeout clock 0.001 (fun () ->
               Mutex.use_rw ~protect:true mutex (fun () -> Time.sleep clock 0.01; note "done");
               Ok ()));
        Mutex.use_rw ~protect:false mutex (fun () -> note "locked"));
    notes_case "a protected lazy value keeps its value though a cancel comes" [ "compute"; "5" ] (fun () ->
        let value = Lazy.from_fun ~cancel:`Protect (fun () -> note "compute"; Time.sleep clock 0.01; 5) in
        ignore (Time.with_timeout clock 0.001 (fun () -> Ok (Lazy.force value)));
        note "%d" (Lazy.force value));
    raises_case "a mutex that is not locked cannot be unlocked" (Sys_error "Eio.Mutex.unlock: already unlocked!")
      (fun () -> Mutex.unlock (Mutex.create ()));
    notes_case "a condition wakes all that wait, with the mutex locked" [ "woken 1"; "woken 2" ] (fun () ->
        let mutex = Mutex.create () and condition = Condition.create () in
        let ready = ref false in
        let wait i () =
          Mutex.lock mutex;
          while not !ready do Condition.await condition mutex done;
          note "woken %d" i;
          Mutex.unlock mutex
        in
        let wake () = Mutex.use_ro mutex (fun () -> ready := true; Condition.broadcast condition) in
        Fiber.all [ wait 1; wait 2; wake ]);
    raises_case "a wait for a condition with a mutex that is not locked"
      (Sys_error "Eio.Mutex.unlock: already unlocked!")
      (fun () -> Condition.await (Condition.create ()) (Mutex.create ()));
    notes_case "a wait for a condition that is cancelled has the mutex again" [ "locked" ] (fun () ->
        let mutex = Mutex.create () and condition = Condition.create () in
        ignore
          (Time.with_timeout clock 0.001 (fun () ->
               Mutex.lock mutex;
               (try Condition.await condition mutex
                with Cancel.Cancelled _ as exn -> note (if Mutex.try_lock mutex then "free" else "locked"); raise exn);
               Ok ())));
    notes_case "a task that was cancelled before it waits for a condition has the mutex again" [ "locked"; "free" ]
      (fun () ->
        let mutex = Mutex.create () and condition = Condition.create () in
        (try
           Cancel.sub (fun context ->
               Mutex.lock mutex;
               Cancel.cancel context Exit;
               try Condition.await condition mutex
               with exn ->
                 note (if Mutex.try_lock mutex then "free" else "locked");
                 Mutex.unlock mutex;
                 raise exn)
         with Cancel.Cancelled Exit -> ());
        note (if Mutex.try_lock mutex then "free" else "locked"));
    notes_case "a stream keeps the order, and writers wait for room"
      [ "sent 1"; "sent 2"; "got 1"; "got 2"; "sent 3"; "got 3" ]
      (fun () ->
        let stream = Stream.create 2 in
        Fiber.both
          (fun () -> List.iter (fun i -> Stream.add stream i; note "sent %d" i) [ 1; 2; 3 ])
          (fun () ->
            note "got %d" (Stream.take stream);
            note "got %d" (Stream.take stream);
            Fiber.yield ();
            note "got %d" (Stream.take stream)));
    notes_case "a stream without room hands each item over" [ "got 1"; "sent 1"; "got 2"; "sent 2" ] (fun () ->
        let stream = Stream.create 0 in
        Fiber.both
          (fun () -> List.iter (fun i -> Stream.add stream i; note "sent %d" i) [ 1; 2 ])
          (fun () -> for _ = 1 to 2 do note "got %d" (Stream.take stream); Fiber.yield () done));
    notes_case "a writer that is cancelled takes its item back" [ "none" ] (fun () ->
        let stream = Stream.create 0 in
        ignore (Time.with_timeout clock 0.001 (fun () -> Stream.add stream 1; Ok ()));
        note "%s" (match Stream.take_nonblocking stream with None -> "none" | Some _ -> "some"));
    notes_case "what writers bring is taken in their order, without that of those who were cancelled meanwhile"
      [ "[1; 4; 7; 10]" ] (fun () ->
        let stream = Stream.create 1 and taken = ref [] in
        let add i () =
          if i mod 3 = 1 then Stream.add stream i
          else ignore (Time.with_timeout clock 0.001 (fun () -> Stream.add stream i; Ok ()))
        in
        Fiber.both
          (fun () -> Fiber.all (List.map add [ 1; 2; 3; 4; 5; 6; 7; 8; 9; 10 ]))
          (fun () ->
            Time.sleep clock 0.01;
            for _ = 1 to 4 do taken := Stream.take stream :: !taken done;
            check bool "no more" true (Stream.take_nonblocking stream = None));
        note "[%s]" (String.concat "; " (List.rev_map string_of_int !taken)));
    case "50,000 writers of a stream are cancelled, each in constant time" (fun () ->
        let stream = Stream.create 0 in
        run (fun () ->
            Fiber.first (fun () -> Fiber.all (List.init 50_000 (fun i () -> Stream.add stream i))) Fiber.yield;
            check bool "no more" true (Stream.take_nonblocking stream = None)));
    notes_case "a reader that is cancelled loses no item" [ "1" ] (fun () ->
        let stream = Stream.create 1 in
        ignore (Time.with_timeout clock 0.001 (fun () -> Ok (Stream.take stream)));
        Stream.add stream 1;
        note "%d" (Stream.take stream));
    notes_case "a lazy value is computed once" [ "compute"; "5 5" ] (fun () ->
        let value = Lazy.from_fun ~cancel:`Restart (fun () -> note "compute"; nap (); 5) in
        let a, b = Fiber.pair (fun () -> Lazy.force value) (fun () -> Lazy.force value) in
        note "%d %d" a b);
    notes_case "a lazy value that was cancelled starts again" [ "compute"; "compute"; "5" ] (fun () ->
        let value = Lazy.from_fun ~cancel:`Restart (fun () -> note "compute"; Time.sleep clock 0.01; 5) in
        ignore (Time.with_timeout clock 0.001 (fun () -> Ok (Lazy.force value)));
        note "%d" (Lazy.force value));
    notes_case "a pool makes so many, and shares them" [ "2" ] (fun () ->
        let made = ref 0 in
        let pool = Pool.create 2 (fun () -> incr made; !made) in
        Fiber.List.iter (fun _ -> Pool.use pool (fun _ -> nap ())) [ 1; 2; 3; 4; 5 ];
        note "%d" !made);
    notes_case "an item of a pool goes to the first that waits for it" [ "a"; "b"; "a"; "a" ] (fun () ->
        let pool = Pool.create 1 ignore in
        let use name () =
          Pool.use pool (fun () ->
              note "%s" name;
              Fiber.yield ())
        in
        Fiber.both (fun () -> for _ = 1 to 3 do use "a" () done) (use "b"));
    notes_case "a place of a pool whose item is not valid, or was not made, goes to the first that waits"
      [ "1 at a"; "dispose 1"; "2 at b"; "dispose 2"; "failed"; "4 at c" ] (fun () ->
        let made = ref 0 in
        let make () =
          incr made;
          if !made = 3 then raise Broken;
          !made
        in
        let dispose = note "dispose %d" in
        let pool = Pool.create 1 make ~dispose ~validate:(fun item -> item > 2) in
        let use name () =
          try
            Pool.use pool (fun item ->
                note "%d at %s" item name;
                Fiber.yield ())
          with Broken -> note "failed"
        in
        Fiber.all [ use "a"; use "b"; use "x"; use "c" ]);
  ]

let times =
  [
    notes_case "sleepers wake in the order of their times" [ "1"; "2"; "3" ] (fun () ->
        Fiber.List.iter (fun i -> Time.sleep clock (0.002 *. float i); note "%d" i) [ 3; 1; 2 ]);
    notes_case "a limit of time cancels, and says so" [ "cleaned up"; "timeout" ] (fun () ->
        match
          Time.with_timeout clock 0.001 (fun () ->
              Fun.protect ~finally:(fun () -> note "cleaned up") (fun () -> Ok (Fiber.await_cancel ())))
        with
        | Ok () -> note "ok"
        | Error `Timeout -> note "timeout");
    notes_case "inner and outer limits are told apart" [ "outer" ] (fun () ->
        match
          Time.with_timeout clock 0.001 (fun () ->
              match Time.with_timeout clock 10. (fun () -> Ok (Fiber.await_cancel ())) with
              | Ok () -> Ok "ok"
              | Error `Timeout -> Ok "inner")
        with
        | Ok text -> note "%s" text
        | Error `Timeout -> note "outer");
    raises_case "with_timeout_exn" Time.Timeout (fun () ->
        Time.with_timeout_exn clock 0.001 (fun () -> Fiber.await_cancel ()));
    notes_case "Timeout.run" [ "timeout"; "none" ] (fun () ->
        (match Time.Timeout.(run (seconds mono_clock 0.001)) (fun () -> Ok (Fiber.await_cancel ())) with
        | Ok () -> note "ok"
        | Error `Timeout -> note "timeout");
        match Time.Timeout.(run none) (fun () -> Ok "none") with Ok text -> note "%s" text | Error `Timeout -> ());
    notes_case "many timers of which most are cancelled" [ "1000" ] (fun () ->
        let fired = ref 0 in
        Fiber.all
          (List.init 3000 (fun i () ->
               if i mod 3 = 0 then (
                 Time.sleep clock (0.0001 *. float (i mod 50));
                 incr fired)
               else
                 ignore
                   (Time.with_timeout clock 100. (fun () ->
                        Fiber.yield ();
                        Ok ()))));
        note "%d" !fired);
    notes_case "a signal handler wakes a task while the loop sleeps" [ "woken" ] (fun () ->
        let condition = Condition.create () in
        let old = Sys.signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> Condition.broadcast condition)) in
        Fiber.both
          (fun () -> Condition.await_no_mutex condition; note "woken")
          (fun () ->
            run_in_systhread (fun () -> Thread.delay 0.005; Unix.kill (Unix.getpid ()) Sys.sigusr1));
        Sys.set_signal Sys.sigusr1 old);
    raises_case "an exception of a signal handler ends the run, and tasks clean up" Broken (fun () ->
        let old = Sys.signal Sys.sigalrm (Sys.Signal_handle (fun _ -> raise Broken)) in
        ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_value = 0.005; it_interval = 0. });
        Fun.protect
          ~finally:(fun () -> Sys.set_signal Sys.sigalrm old)
          (fun () -> Switch.run (fun sw -> Fiber.fork ~sw (fun () -> Fiber.await_cancel ()); Fiber.await_cancel ())));
    case "an exception of a signal handler is raised by the run, whatever its task makes of it" (fun () ->
        let has_raised = ref false in
        let handle _ =
          has_raised := true;
          raise Broken
        in
        let old = Sys.signal Sys.sigalrm (Sys.Signal_handle handle) in
        let wait nap () = while not !has_raised do nap () done in
        let check_case name main =
          has_raised := false;
          ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_value = 0.005; it_interval = 0. });
          raises name Broken (fun () -> run main)
        in
        check_case "protected" (fun () -> Cancel.protect (wait nap));
        check_case "on a thread" (fun () -> run_in_systhread (wait (fun () -> Thread.delay 0.001)));
        check_case "caught" (fun () -> try wait nap () with Cancel.Cancelled _ -> ());
        Sys.set_signal Sys.sigalrm old);
    case "a cancel comes to all tasks, also if signal handlers raise meanwhile, at any allocation" (fun () ->
        if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
          for moment = 1 to 150 do
            let told = ref 0 and allocations = ref 0 and cancels = ref false in
            let wait () = Fun.protect ~finally:(fun () -> incr told) Fiber.await_cancel in
            let three f = Fiber.all (List.init 3 (fun _ () -> Switch.run (fun _ -> f ()))) in
            let raise_two _ =
              if !cancels then incr allocations;
              if !cancels && (!allocations = moment || !allocations = moment + 9) then raise Broken;
              None
            in
            let tracker = { Gc.Memprof.null_tracker with alloc_minor = raise_two; alloc_major = raise_two } in
            let cancel () =
              let outer = (Effect.perform Haft_io__loop.This_fiber).context.parent in
              let backtrace = Printexc.get_callstack 0 in
              nap ();
              Gc.Memprof.start ~callstack_size:0 ~sampling_rate:1. tracker;
              cancels := true;
              while outer.state = On do
                try Haft_io__tasks.cancel_context outer Exit backtrace with Broken -> () (* it had not begun *)
              done;
              cancels := false;
              Gc.Memprof.stop ()
            in
            let both () = Fiber.both (fun () -> three (fun () -> three wait)) cancel in
            (try run (fun () -> Switch.run (fun _ -> both ())) with Broken | Exit | Cancel.Cancelled _ -> ());
            check int (Printf.sprintf "tasks that were told, at %d" moment) 9 !told
          done);
    notes_case "threads run while the loop sleeps" [ "true" ] (fun () ->
        let count = ref 0 and go_on = ref true in
        let thread = Thread.create (fun () -> while !go_on do incr count; Thread.yield () done) () in
        while !count = 0 do Time.sleep clock 0.005 done;
        go_on := false;
        note "%b" (!count > 0);
        run_in_systhread (fun () -> Thread.join thread));
    notes_case "work on threads overlaps, and hands exceptions on" [ "2 broken" ] (fun () ->
        let a, b =
          Fiber.pair
            (fun () -> run_in_systhread (fun () -> Thread.delay 0.005; 2))
            (fun () -> try run_in_systhread (fun () -> raise Broken) with Broken -> "broken")
        in
        note "%d %s" a b);
    notes_case "a function that ends its thread fails, and later ones have threads" [ "it has failed"; "5" ] (fun () ->
        (match run_in_systhread Thread.exit with
        | () -> note "it has returned"
        | exception Cancel.Cancelled _ -> note "it was cancelled"
        | exception _ -> note "it has failed");
        note "%d" (List.length (Fiber.List.map (fun i -> run_in_systhread (fun () -> i)) [ 1; 2; 3; 4; 5 ])));
  ]

(* ---- Simulations ---- *)

let service () =
  let trace = Buffer.create 100 in
  let stream = Stream.create 3 in
  Fiber.both
    (fun () ->
      Fiber.List.iter
        (fun i ->
          Time.sleep clock (float (i mod 3));
          Stream.add stream i)
        (List.init 10 Fun.id))
    (fun () -> for _ = 1 to 10 do Printf.bprintf trace "%d " (Stream.take stream) done);
  Printf.bprintf trace "at %g" (Time.now clock -. Float.of_int (int_of_float (Time.now clock)));
  Buffer.contents trace

let simulations =
  [
    case "hours pass at once" (fun () ->
        let slept =
          simulate ~seed:1 (fun () ->
              let before = Time.now clock in
              Time.sleep clock 36000.;
              Time.now clock -. before)
        in
        check bool "hours" true (slept >= 36000. && slept < 36001.));
    case "the same seed gives the same run, other seeds give others" (fun () ->
        let runs = List.init 20 (fun seed -> simulate ~seed:(seed + 1) service) in
        check (list string) "again" runs (List.init 20 (fun seed -> simulate ~seed:(seed + 1) service));
        check bool "others" true (List.length (List.sort_uniq compare runs) > 5));
    case "tasks of which none can go on clean up, which may take time" (fun () ->
        let cleaned = ref false in
        let clean () =
          Cancel.protect (fun () ->
              Time.sleep clock 5.;
              Fiber.yield ();
              Time.sleep clock 5.);
          cleaned := true
        in
        (match
           simulate ~seed:3 (fun () ->
               let never, _ = Promise.create () in
               try Promise.await never
               with Cancel.Cancelled _ as exn ->
                 (try clean () with Cancel.Cancelled _ -> cleaned := true);
                 raise exn)
         with
        | () -> fail "it has returned"
        | exception _ -> ());
        check bool "cleaned up" true !cleaned);
    case "tasks of which none can go on are ended" (fun () ->
        match simulate ~seed:3 (fun () -> Promise.await (fst (Promise.create ()))) with
        | () -> fail "it has returned"
        | exception exn -> check string "why" "Haft_io: no task can ever go on" (Printexc.to_string exn));
  ]

(* ---- The collector, and many tasks ---- *)

let random_collections body =
  let alarm = ref true in
  Fiber.first
    (fun () -> body (); alarm := false)
    (fun () ->
      let n = ref 0 in
      while !alarm do
        incr n;
        (match !n mod 50 with 0 -> Gc.compact () | 10 | 30 -> Gc.full_major () | _ -> Gc.minor ());
        Fiber.yield ()
      done)

let[@inline never] wait_for_a_promise promise =
  Promise.await promise;
  print_endline "it has a value"

let[@inline never] finalise f = Gc.finalise (fun _ -> f ()) (ref 0)

let collections =
  [
    notes_case "a finaliser wakes a task" [ "collected"; "woken" ] (fun () ->
        let promise, resolver = Promise.create () in
        Fiber.both
          (fun () -> Promise.await promise; note "woken")
          (fun () -> finalise (Promise.resolve resolver); Gc.full_major (); note "collected"));
    notes_case "a finaliser is no task: it cannot wait" [ "unhandled"; "go on" ] (fun () ->
        let wait () =
          match Fiber.yield () with () -> note "waited" | exception Effect.Unhandled _ -> note "unhandled"
        in
        Fiber.both
          (fun () -> finalise wait; Gc.full_major (); note "go on")
          (fun () -> Fiber.yield ()));
    notes_case "what a finaliser raises comes to the task that it interrupts" [ "broken"; "other" ] (fun () ->
        Fiber.both
          (fun () -> finalise (fun () -> raise Broken); try Gc.full_major () with Broken -> note "broken")
          (fun () -> Fiber.yield (); note "other"));
    notes_case "what tasks had is finalised when they have ended" [ "0"; "1000" ] (fun () ->
        let finalised = ref 0 in
        let wait () =
          let own = ref 0 in
          Gc.finalise (fun _ -> incr finalised) own;
          Fun.protect ~finally:(fun () -> incr own) Fiber.await_cancel
        in
        let all () = Fiber.all (List.init 1000 (fun _ -> wait)) in
        Fiber.first all (fun () -> Fiber.yield (); Gc.full_major (); note "%d" !finalised);
        Fiber.yield ();
        Gc.full_major ();
        note "%d" !finalised);
  ]

let many =
  [
    notes_case "a deep switch of tasks survives collections" [ "499500" ] (fun () ->
        let sum = ref 0 in
        random_collections (fun () ->
            Fiber.List.iter
              (fun i ->
                let text = String.make (i mod 100) 'x' in
                let rec deep n = if n = 0 then (Fiber.yield (); 0) else 1 + deep (n - 1) in
                let depth = deep (i mod 60) in
                Time.sleep clock (0.0001 *. float (i mod 7));
                if depth = i mod 60 && String.length text = i mod 100 then sum := !sum + i)
              (List.init 1000 Fun.id));
        note "%d" !sum);
    notes_case "100,000 tasks wait for a promise" [ "100000" ] (fun () ->
        let promise, resolver = Promise.create () in
        let woken = ref 0 in
        Switch.run (fun sw ->
            for _ = 1 to 100_000 do
              Fiber.fork ~sw (fun () -> woken := !woken + Promise.await promise)
            done;
            Promise.resolve resolver 1);
        note "%d" !woken);
    notes_case "a million switches take constant stack" [ "1000000" ] (fun () ->
        let count = ref 0 in
        let spin () = for _ = 1 to 500_000 do incr count; Fiber.yield () done in
        Fiber.both spin spin;
        note "%d" !count);
    notes_case "the dump says what tasks wait for" [ "true" ] (fun () ->
        let never, _ = Promise.create ~label:"the answer" () in
        Fiber.first
          (fun () -> Fiber.both (fun () -> Time.sleep clock 1.) (fun () -> Promise.await never))
          (fun () ->
            let text = dump () in
            let has part =
              let n = String.length part in
              let rec look i = i + n <= String.length text && (String.sub text i n = part || look (i + 1)) in
              look 0
            in
            note "%b" (has "task waits for: a time" && has "task waits for: the answer" && has "both")));
    test_case "exit in a task calls what at_exit has, and ends the process" `Quick (fun () ->
        let from_child, to_parent = Unix.pipe () in
        match Unix.fork () with
        | 0 ->
            let output = Unix.out_channel_of_descr to_parent in
            at_exit (fun () -> output_string output "first of all\n");
            at_exit (fun () -> output_string output "last\n");
            run (fun () ->
                Fiber.both
                  (fun () -> Fun.protect ~finally:(fun () -> output_string output "not\n") Fiber.await_cancel)
                  (fun () ->
                    Fiber.yield ();
                    exit 3))
        | child ->
            Unix.close to_parent;
            let input = Unix.in_channel_of_descr from_child in
            let lines = List.init 2 (fun _ -> input_line input) in
            check (list string) "output" [ "last"; "first of all" ] lines;
            check bool "end" true (match input_line input with _ -> false | exception End_of_file -> true);
            close_in input;
            check bool "status" true (Unix.waitpid [] child = (child, WEXITED 3)));
    test_case "the dump says where tasks wait" `Quick (fun () ->
        let text =
          run (fun () ->
              let never, _ = Promise.create () in
              Fiber.first
                (fun () ->
                  Fiber.both (fun () -> wait_for_a_promise never) (fun () -> while true do Fiber.yield () done);
                  "")
                (fun () ->
                  Fiber.yield ();
                  Fiber.yield ();
                  dump ()))
        in
        let has part =
          let n = String.length part in
          let rec look i = i + n <= String.length text && (String.sub text i n = part || look (i + 1)) in
          look 0
        in
        check bool "the function" true (has "wait_for_a_promise, test_io_tasks.ml, line ");
        check bool "none of the package's" false (has "haft_io__"));
  ]

let () =
  Alcotest.run "haft-io, tasks"
    [
      ("runs", runs);
      ("fibers", fibers);
      ("switches", switches);
      ("between tasks", between_tasks);
      ("times", times);
      ("simulations", simulations);
      ("collections", collections);
      ("many", many);
    ]
