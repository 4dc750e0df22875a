(* SPDX-License-Identifier: MIT *)
(* Signal handlers that raise, wherever the runtime lets them run: at each allocation of a run (a callback of Gc.Memprof
   raises there, as a signal handler would), and in a storm of signals. A run ends in any case, and each of its tasks
   that has begun has ended by then. If the tasks catch what is raised, and go on, none waits for ever. *)
open Alcotest
open Haft_io

exception Broken

let case name f = test_case name `Quick f
let began = ref 0
let ended = ref 0

(* Nothing is allocated between [began] and the trap. *)
let counted f () =
  incr began;
  match f () with
  | () -> incr ended
  | exception exn ->
      incr ended;
      raise exn

let numbers_in_use () =
  let tasks = Haft_io__tasks.tasks in
  tasks.used - tasks.free_count

let used_before = ref 0

(* True: it was interrupted, or has failed of that. *)
let run_interrupted f =
  began := 0;
  ended := 0;
  used_before := numbers_in_use ();
  match run f with () -> false | exception (Broken | Exn.Multiple _ | Cancel.Cancelled _ | Fun.Finally_raised _) -> true

let check_all_ended what =
  run ignore (* which forgets what a run has left that was interrupted when it was over *);
  if !ended <> !began then failf "%s: of %d tasks that have begun %d have ended" what !began !ended;
  let known = numbers_in_use () - !used_before in
  if known > 0 then failf "%s: %d tasks are still known" what known

(* ---- At each allocation ---- *)

let allocations = ref 0
let first = ref max_int
let second = ref max_int
let armed = ref false

let note_allocation _ =
  if !armed then (
    incr allocations;
    if !allocations = !first || !allocations = !second then raise Broken);
  None

let tracker = { Gc.Memprof.null_tracker with alloc_minor = note_allocation; alloc_major = note_allocation }

(* Runs it with an exception at the allocation [at], and at another one, [apart] after that. Returns whether there were
   so many. *)
let interrupt_at at apart f =
  allocations := 0;
  first := at;
  second := at + apart;
  let stop () =
    armed := false;
    Gc.Memprof.stop ()
  in
  Gc.Memprof.start ~callstack_size:0 ~sampling_rate:1. tracker;
  armed := true;
  (match run_interrupted f with
  | (_ : bool) -> stop ()
  | exception exn ->
      stop ();
      raise exn);
  !allocations >= at

let at_each_allocation name f =
  case name (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
        List.iter
          (fun apart ->
            let rec from at =
              if at < 6000 then (
                let reached = interrupt_at at apart f in
                check_all_ended (Printf.sprintf "%s, at allocation %d and %d later" name at apart);
                if reached then from (at + 1))
            in
            from 1)
          [ 1_000_000; 1; 3; 10; 40 ])

let tasks_and_switches () =
  let promise, resolver = Promise.create () in
  Switch.run (fun sw ->
      Switch.on_release sw ignore;
      Fiber.fork ~sw (counted (fun () -> Promise.await promise));
      Fiber.fork ~sw (counted Fiber.yield);
      Fiber.fork_daemon ~sw (fun () ->
          counted (fun () -> Fiber.await_cancel ()) ();
          `Stop_daemon);
      let five = Fiber.fork_promise ~sw (fun () -> counted Fiber.yield (); 5) in
      ignore (Promise.await_exn five);
      Promise.resolve resolver ());
  Switch.run_protected (fun sw -> Fiber.fork ~sw (counted Fiber.yield));
  try
    Switch.run (fun sw ->
        Fiber.fork ~sw (counted Fiber.await_cancel);
        Fiber.fork ~sw (counted (fun () -> raise Exit)))
  with Exit -> ()

let several_at_a_time () =
  Fiber.both (counted Fiber.yield) (counted Fiber.yield);
  Fiber.first (counted Fiber.yield) (counted Fiber.await_cancel);
  ignore (Fiber.n_any [ counted Fiber.yield; counted Fiber.await_cancel; counted Fiber.yield ]);
  ignore (Fiber.pair (counted Fiber.yield) (counted ignore));
  Fiber.List.iter ~max_fibers:2 (fun _ -> counted Fiber.yield ()) [ 1; 2; 3; 4 ];
  (try Fiber.first (counted (fun () -> raise Exit)) (counted Fiber.await_cancel) with Exit -> ());
  Cancel.protect (fun () -> Fiber.both (counted Fiber.yield) (counted Fiber.yield))

let times () =
  Fiber.all (List.init 3 (fun i -> counted (fun () -> Time.sleep clock (0.00001 *. float (3 - i)))));
  (match Time.with_timeout clock 0.00001 (fun () -> Ok (counted Fiber.await_cancel ())) with
  | Ok () -> ()
  | Error `Timeout -> ());
  Cancel.protect (fun () ->
      match Time.with_timeout clock 0.00001 (fun () -> Ok (counted Fiber.await_cancel ())) with
      | Ok () -> ()
      | Error `Timeout -> ())

let between_tasks () =
  let stream = Stream.create 1 and mutex = Mutex.create () and semaphore = Semaphore.make 1 in
  let condition = Condition.create () and is_set = ref false in
  Fiber.all
    [
      counted (fun () -> for i = 1 to 3 do Stream.add stream i done);
      counted (fun () -> for _ = 1 to 3 do ignore (Stream.take stream) done);
      counted (fun () -> Mutex.use_ro mutex Fiber.yield);
      counted (fun () -> Mutex.use_ro mutex Fiber.yield);
      counted (fun () ->
          Mutex.use_ro mutex (fun () ->
              while not !is_set do Condition.await condition mutex done));
      counted (fun () -> Semaphore.acquire semaphore; Fiber.yield (); Semaphore.release semaphore);
      counted (fun () ->
          Semaphore.acquire semaphore;
          Semaphore.release semaphore;
          is_set := true;
          Condition.broadcast condition);
    ]

let flows () =
  Switch.run (fun sw ->
      let socket = Net.listen ~sw ~reuse_addr:true ~backlog:5 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
      Fiber.both
        (counted (fun () ->
             let flow, _ = Net.accept ~sw socket in
             Flow.copy_string "hello\n" flow;
             Flow.close flow))
        (counted (fun () ->
             let flow = Net.connect ~sw net (Net.listening_addr socket) in
             ignore (Buf_read.line (Buf_read.of_flow flow ~max_size:100)))))

let threads_and_files () =
  ignore (run_in_systhread (fun () -> Sys.opaque_identity [ 1 ]));
  Fiber.both
    (counted (fun () -> ignore (Path.load Path.(fs / "/dev/null"))))
    (counted (fun () -> run_in_systhread ignore))

(* ---- The same, and the tasks go on ---- *)

let again f = try f () with Broken -> f ()
let nothing_waits_for_ever = 20. (* seconds, in which the tasks of a case have ended *)

(* [make] makes what the tasks share, and returns what they do. *)
let goes_on name make =
  case name (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
        let rec from at =
          let stuck = ref "" in
          let all_tasks () =
            armed := false;
            let body = make () in
            let watch () =
              Time.sleep clock nothing_waits_for_ever;
              armed := false;
              stuck := dump ()
            in
            let work () =
              armed := true;
              body ();
              armed := false
            in
            Fiber.first work watch
          in
          let reached = interrupt_at at 1_000_000 all_tasks in
          if !stuck <> "" then failf "%s, at allocation %d:\n%s" name at !stuck;
          if reached && at < 3000 then from (at + 1)
        in
        from 1)

let times_each count f () = for _ = 1 to count do again f done

let shared_stream capacity () =
  let stream = Stream.create capacity in
  fun () ->
    Fiber.both
      (times_each 8 (fun () -> Stream.add stream ()))
      (times_each 8 (fun () -> Stream.take stream))

let three f () = Fiber.all [ f; f; f ]

let shared_mutex () =
  let mutex = Mutex.create () in
  three (times_each 3 (fun () -> Mutex.use_ro mutex Fiber.yield))

let mutex_for_writing () =
  let mutex = Mutex.create () in
  let use () = try Mutex.use_rw ~protect:false mutex Fiber.yield with Broken | Mutex.Poisoned _ -> () in
  three (times_each 3 use)

let mutex_of_one_that_fails () =
  let mutex = Mutex.create () in
  let fail () =
    Fiber.yield ();
    raise Exit
  in
  let use () = try Mutex.use_rw ~protect:false mutex fail with Broken | Exit | Mutex.Poisoned _ -> () in
  three (times_each 3 use)

let shared_condition () =
  let mutex = Mutex.create () and condition = Condition.create () and is_set = ref false in
  let wait () =
    Mutex.use_ro mutex (fun () ->
        while not !is_set do Condition.await condition mutex done;
        Fiber.yield ())
  in
  let set () =
    Fiber.yield ();
    Mutex.use_ro mutex (fun () ->
        is_set := true;
        Fiber.yield ());
    Condition.broadcast condition
  in
  fun () -> Fiber.all [ (fun () -> again wait); (fun () -> again wait); (fun () -> again set) ]

let shared_lazy () =
  let value = Lazy.from_fun ~cancel:`Restart (fun () -> again Fiber.yield) in
  three (fun () -> again (fun () -> Lazy.force value))

let lazy_value_that_fails () =
  let compute () =
    Fiber.yield ();
    raise Exit
  in
  let value = Lazy.from_fun ~cancel:`Record compute in
  three (fun () -> again (fun () -> try Lazy.force value with Exit -> ()))

let shared_pool () =
  let pool = Pool.create 1 ignore in
  three (times_each 3 (fun () -> Pool.use pool Fiber.yield))

(* Each item that was made is in the pool at the end, or has been disposed of. ([made] and [disposed] are counted where
   nothing is allocated.) *)
let pool_of_resources () =
  let made = ref 0 and disposed = ref 0 in
  let pool =
    Pool.create 1
      (fun () -> incr made)
      ~validate:(fun () -> Sys.opaque_identity (ref !made) <> ref 2)
      ~dispose:(fun () -> incr disposed)
  in
  fun () ->
    three (times_each 3 (fun () -> Pool.use pool Fiber.yield)) ();
    again (fun () -> Pool.use ~never_block:true pool (fun () -> Pool.use ~never_block:true pool ignore));
    armed := false;
    if !made <> !disposed + 1 then failf "of %d items %d were disposed of" !made !disposed

(* A second thread is asked for while the first works, and a handler raises what a refused thread could. *)
let thread_whose_begin_is_interrupted =
  case "what a handler raises while a thread begins is no refused thread" (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
        let rec from at =
          let left = ref max_int and has_raised = ref false and waits = ref false in
          let note _ =
            decr left;
            if !left = 0 then (
              has_raised := true;
              failwith "of a handler");
            None
          in
          let gate, opener = Unix.pipe ~cloexec:true () in
          let occupy () =
            run_in_systhread (fun () ->
                waits := true;
                ignore (Unix.read gate (Bytes.create 1) 0 1))
          in
          (* Where there is no second thread, the first works for both. *)
          let give_back () =
            while not !waits do Cancel.protect (fun () -> Time.sleep clock 0.0001) done;
            Cancel.protect (fun () -> Time.sleep clock 0.001);
            Unix.close opener
          in
          let ask () =
            while not !waits do Time.sleep clock 0.0001 done;
            Gc.Memprof.start ~callstack_size:0 ~sampling_rate:1.
              { Gc.Memprof.null_tracker with alloc_minor = note; alloc_major = note };
            left := at;
            run_in_systhread (fun () -> left := max_int)
          in
          let ended =
            match run (fun () -> Fiber.all [ occupy; give_back; ask ]) with
            | () -> ""
            | exception exn -> Printexc.to_string exn
          in
          left := max_int;
          Gc.Memprof.stop ();
          Unix.close gate;
          if !has_raised && ended = "" then failf "at allocation %d the exception is lost" at;
          if !has_raised && at < 200 then from (at + 1)
        in
        from 1)

(* ---- A handler that releases ---- *)

let release_at_each_allocation =
  case "a semaphore that is released at each allocation of an acquire" (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
        let left = ref 0 in
        let rec from at =
          run (fun () ->
              let semaphore = Semaphore.make 0 and acquired = ref false in
              let note _ =
                decr left;
                if !left = 0 then Semaphore.release semaphore;
                None
              in
              Gc.Memprof.start ~callstack_size:0 ~sampling_rate:1.
                { Gc.Memprof.null_tracker with alloc_minor = note; alloc_major = note };
              Fiber.both
                (fun () ->
                  left := at;
                  Semaphore.acquire semaphore;
                  acquired := true)
                (fun () ->
                  left := min !left 1_000_000;
                  let released = !left <= 0 in
                  left := max_int;
                  Gc.Memprof.stop ();
                  for _ = 1 to 5 do Fiber.yield () done;
                  let was_acquired = !acquired in
                  if not was_acquired then Semaphore.release semaphore;
                  if released && not was_acquired then failf "at allocation %d the release is lost" at));
          if at < 40 then from (at + 1)
        in
        from 1)

(* ---- In a storm ---- *)

(* While it is above 0: seconds to the next signal, after the handler of the last has begun. (With a timer that goes on
   by itself a slow machine would do nothing else than handle signals.) *)
let pause = ref 0.
let set value = ignore (Unix.setitimer Unix.ITIMER_REAL { it_value = value; it_interval = 0. })
let go_on_blowing () = if !pause > 0. then set !pause

let blow_from start between =
  pause := between;
  set start

let calm () =
  pause := 0.;
  set 0.

let storm f =
  case "a run in a storm of signals whose handler raises" (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then (
        let signals = ref 0 and raised = ref 0 and interrupted = ref 0 in
        let on_signal _ =
          incr signals;
          go_on_blowing ();
          if !armed && !signals land 3 = 0 then (
            incr raised;
            raise Broken)
        in
        let before = Sys.signal Sys.sigalrm (Sys.Signal_handle on_signal) in
        let rounds = ref 0 in
        let seconds = match Sys.getenv_opt "HAFT_STORM_SECONDS" with Some text -> float_of_string text | None -> 2. in
        let until = Unix.gettimeofday () +. seconds in
        blow_from 20e-6 20e-6;
        while Unix.gettimeofday () < until do
          incr rounds;
          let body () =
            armed := true;
            f ()
          in
          if run_interrupted body then incr interrupted;
          armed := false;
          check_all_ended (Printf.sprintf "round %d" !rounds)
        done;
        calm ();
        Sys.set_signal Sys.sigalrm before;
        Printf.printf "%d rounds, %d interrupted, %d signals, %d raised\n%!" !rounds !interrupted !signals !raised;
        check bool "some raised" true (!raised > 0)))

(* Threads that are counted are there, and those that are counted as idle work. *)
let check_threads rounds =
  let all = Array.length (Sys.readdir "/proc/self/task") and counted = !Haft_io__time.Systhreads.threads in
  if all <= counted then failf "round %d: %d threads are counted, and there are %d, with the first" rounds counted all;
  let count = !Haft_io__time.Systhreads.idle and finished = ref 0 in
  let job () =
    run_in_systhread ignore;
    incr finished
  in
  run (fun () ->
      Fiber.first
        (fun () -> Fiber.all (List.init count (fun _ -> job)))
        (fun () -> Time.sleep clock nothing_waits_for_ever));
  if !finished < count then failf "round %d: of %d idle threads %d have worked" rounds count !finished

let storm_on_threads =
  case "threads in a storm of signals whose handler raises" (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then (
        let on_signal _ =
          go_on_blowing ();
          if !armed then raise Broken
        in
        let before = Sys.signal Sys.sigalrm (Sys.Signal_handle on_signal) in
        for round = 1 to 300 do
          let body () =
            armed := true;
            blow_from (0.00002 +. Random.float 0.001) 0.00005;
            Fiber.all (List.init 5 (fun _ () -> for _ = 1 to 5 do run_in_systhread Thread.yield done))
          in
          ignore (run_interrupted body);
          armed := false;
          calm ();
          Thread.delay 0.001;
          check_threads round
        done;
        Sys.set_signal Sys.sigalrm before))

let everything () =
  tasks_and_switches ();
  several_at_a_time ();
  times ();
  between_tasks ();
  flows ();
  threads_and_files ()

let () =
  Alcotest.run "interrupted"
    [
      ( "exceptions at each allocation of",
        [
          at_each_allocation "tasks and switches" tasks_and_switches;
          at_each_allocation "several at a time" several_at_a_time;
          at_each_allocation "times" times;
          at_each_allocation "what is between tasks" between_tasks;
          at_each_allocation "flows" flows;
          at_each_allocation "threads and files" threads_and_files;
        ] );
      ( "tasks go on, after an exception at each allocation, by",
        [
          goes_on "a stream" (shared_stream 1);
          goes_on "a stream without room" (shared_stream 0);
          goes_on "a mutex" shared_mutex;
          goes_on "a mutex for writing" mutex_for_writing;
          goes_on "a mutex of one that fails" mutex_of_one_that_fails;
          goes_on "a condition" shared_condition;
          goes_on "a lazy value" shared_lazy;
          goes_on "a lazy value that fails" lazy_value_that_fails;
          goes_on "a pool" shared_pool;
          goes_on "a pool of resources" pool_of_resources;
          thread_whose_begin_is_interrupted;
          release_at_each_allocation;
        ] );
      ("signals", [ storm everything; storm_on_threads ]);
    ]
