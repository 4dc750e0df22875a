(* SPDX-License-Identifier: MIT *)
(* Tasks of C in the same run, and functions of C on the stack of a task that waits. *)
open Alcotest
open Haft_io

external spawn_visitor : int -> unit = "test_spawn_visitor"
external spawn_signal : unit -> unit = "test_spawn_signal"
external sorted_indices : int -> (int -> int -> int) -> int array = "example_sorted_indices"

exception Broken

let visit = ref (fun (_ : int) -> 0)
let () = Callback.register "visit" (fun number -> !visit number)
let case name f = test_case name `Quick (fun () -> run f)

let collect () =
  if Random.int 3 = 0 then Gc.compact () else Gc.minor ()

(* Spawns them, and waits until all have visited. *)
let with_visitors count f =
  let left = ref count and all, last = Promise.create () in
  visit :=
    (fun number ->
      let result = f number in
      decr left;
      if !left = 0 then Promise.resolve last ();
      result);
  for i = 1 to count do
    spawn_visitor i
  done;
  Promise.await all

let cases =
  [
    case "tasks of C call OCaml code, which waits as a task" (fun () ->
        let order = ref [] in
        with_visitors 30 (fun number ->
            as_task (fun () ->
                Time.sleep clock (float (30 - number) *. 0.0005);
                collect ();
                order := number :: !order;
                Fiber.yield ();
                number + 1));
        check int "all" 30 (List.length !order));
    case "they wait for promises of OCaml's tasks, and the other way" (fun () ->
        let question, ask = Promise.create () and answer, say = Promise.create () in
        Fiber.both
          (fun () ->
            with_visitors 1 (fun number ->
                as_task (fun () ->
                    let asked = Promise.await question in
                    collect ();
                    Promise.resolve say (asked ^ " answer");
                    number + 1)))
          (fun () ->
            Time.sleep clock 0.002;
            collect ();
            Promise.resolve ask "the";
            check string "answer" "the answer" (Promise.await answer)));
    case "tasks that they fork are the run's" (fun () ->
        with_visitors 5 (fun number ->
            as_task (fun () ->
                Switch.run (fun sw ->
                    let task () = Time.sleep clock 0.001; number + 1 in
                    let tasks = List.init 10 (fun _ -> Fiber.fork_promise ~sw task) in
                    List.iter (fun promise -> check int "result" (number + 1) (Promise.await_exn promise)) tasks);
                number + 1)));
    case "an exception stays in the call of the task of C" (fun () ->
        with_visitors 3 (fun number ->
            match as_task (fun () -> Fiber.yield (); raise Broken) with
            | () -> 0
            | exception Broken -> number + 1));
    case "their first wait may be ended as soon as it has begun" (fun () ->
        (* Other threads and signal handlers run at allocations; here it is a callback of the profiler. *)
        let end_wait = ref None and outcome = ref "" in
        let at_allocation _ =
          Option.iter (fun resume -> end_wait := None; resume (Ok ())) !end_wait;
          None
        in
        let wait () = Effect.perform (Haft_io__loop.Suspend (fun _ resume -> end_wait := Some resume)) in
        Gc.Memprof.start ~sampling_rate:1.
          { Gc.Memprof.null_tracker with alloc_minor = at_allocation; alloc_major = at_allocation };
        Fun.protect ~finally:Gc.Memprof.stop (fun () ->
            Fiber.both
              (fun () ->
                with_visitors 1 (fun number ->
                    (outcome := match as_task wait with () -> "ended" | exception exn -> Printexc.to_string exn);
                    number + 1))
              (fun () ->
                while !outcome = "" do
                  Fiber.yield () (* which allocates *)
                done));
        check string "outcome" "ended" !outcome);
    case "what a signal handler raises while they yield comes to them" (fun () ->
        let before = Sys.signal Sys.sigusr1 (Signal_handle (fun _ -> raise Broken)) and ended = ref false in
        let yield_to_signal () =
          spawn_signal ();
          Fun.protect ~finally:(fun () -> ended := true) (fun () -> while true do Fiber.yield () done)
        in
        with_visitors 1 (fun number ->
            match as_task yield_to_signal with () -> 0 | exception Broken -> number + 1);
        Sys.set_signal Sys.sigusr1 before;
        check bool "it has ended well" true !ended);
    case "a wait under a function of C suspends it, too" (fun () ->
        let sort words =
          let words = Array.of_list words in
          sorted_indices (Array.length words) (fun a b ->
              if Random.bool () then Fiber.yield () else Time.sleep clock 0.0001;
              collect ();
              compare words.(a) words.(b))
          |> Array.to_list
          |> List.map (Array.get words)
        in
        let first, second =
          Fiber.pair (fun () -> sort [ "tea"; "coffee"; "water"; "milk" ]) (fun () -> sort [ "fig"; "pear"; "apple" ])
        in
        check (list string) "first" [ "coffee"; "milk"; "tea"; "water" ] first;
        check (list string) "second" [ "apple"; "fig"; "pear" ] second);
    test_case "tasks of C that wait when the first task has ended are cancelled, and clean up" `Quick (fun () ->
        let ended = ref 0 in
        run (fun () ->
            let begun, all_begun = Promise.create () and count = ref 0 in
            (visit :=
               fun number ->
                 as_task (fun () ->
                     incr count;
                     if !count = 3 then Promise.resolve all_begun ();
                     (try Fiber.await_cancel () with Cancel.Cancelled _ -> incr ended);
                     number + 1));
            List.iter spawn_visitor [ 1; 2; 3 ];
            Promise.await begun);
        check int "ended" 3 !ended);
    test_case "without a run there is no task to be" `Quick (fun () ->
        match as_task ignore with () -> fail "it has returned" | exception Invalid_argument _ -> ());
  ]

let () = Alcotest.run "haft-io, with C" [ ("with C", cases) ]
