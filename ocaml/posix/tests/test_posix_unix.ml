(* SPDX-License-Identifier: MIT *)
(* Code that knows only Unix and channels, in tasks. *)
open Alcotest
module Of_threads = struct
  module Mutex = Mutex
  module Condition = Condition
end
open Haft_io

external spawn_visitor : int -> unit = "test_spawn_visitor"

let visit = ref (fun (_ : int) -> 0)
let () = Callback.register "visit" (fun number -> !visit number)

let case name f = test_case name `Quick (fun () -> run f)
let collect () = if Random.int 10 = 0 then Gc.compact () else Gc.minor ()

(* ---- As somebody has written it, without Haft ---- *)

let listen () =
  let socket = Unix.socket ~cloexec:true PF_INET SOCK_STREAM 0 in
  Unix.bind socket (ADDR_INET (Unix.inet_addr_loopback, 0));
  Unix.listen socket 200;
  (socket, Unix.getsockname socket)

let ask address question =
  let from_server, to_server = Unix.open_connection address in
  Printf.fprintf to_server "%s\n%!" question;
  let answer = input_line from_server in
  Unix.shutdown_connection from_server;
  close_in from_server;
  answer

let answer_all (connection, _) =
  let input = Unix.in_channel_of_descr connection and output = Unix.out_channel_of_descr connection in
  (try
     while true do
       let line = input_line input in
       Unix.sleepf 0.001;
       collect ();
       Printf.fprintf output "%s!\n%!" (String.uppercase_ascii line)
     done
   with End_of_file -> ());
  close_out output

(* ---- The tests ---- *)

let cases =
  [
    case "the functions of the C library are libhaft-posix's" (fun () ->
        check bool "answers" true (Haft_posix.answers ()));
    case "a hundred clients of Unix and their server take turns on one thread" (fun () ->
        let socket, address = listen () in
        let clients = 100 in
        let answers =
          Switch.run (fun sw ->
              Fiber.fork ~sw (fun () ->
                  for _ = 1 to clients do
                    let connection = Unix.accept ~cloexec:true socket in
                    Fiber.fork ~sw (fun () -> answer_all connection)
                  done);
              Fiber.List.map
                (fun i ->
                  collect ();
                  ask address (Printf.sprintf "client %d" i))
                (List.init clients Fun.id))
        in
        Unix.close socket;
        check (list string) "answers" (List.init clients (Printf.sprintf "CLIENT %d!")) answers);
    case "while one sleeps, reads, selects or waits for a child, others go on" (fun () ->
        let turns = ref 0 in
        let among_others f =
          let before = !turns in
          f ();
          if !turns <= before then fail "nothing else has run"
        in
        let from_pipe, to_pipe = Unix.pipe ~cloexec:true () in
        Fiber.first
          (fun () ->
            while true do
              Time.sleep clock 0.0002;
              incr turns
            done)
          (fun () ->
            among_others (fun () -> Unix.sleepf 0.005);
            among_others (fun () -> ignore (Unix.select [ from_pipe ] [] [] 0.005));
            Fiber.both
              (fun () ->
                among_others (fun () ->
                    check int "read" 3 (Unix.read from_pipe (Bytes.create 10) 0 10)))
              (fun () ->
                Unix.sleepf 0.005;
                ignore (Unix.write_substring to_pipe "one" 0 3));
            among_others (fun () ->
                match Unix.system "sleep 0.01; exit 3" with
                | WEXITED 3 -> ()
                | _ -> fail "the child has failed"));
        Unix.close from_pipe;
        Unix.close to_pipe);
    case "tasks that wait for a mutex or a condition wait alone" (fun () ->
        let mutex = Of_threads.Mutex.create () and condition = Of_threads.Condition.create () in
        let count = ref 0 in
        Fiber.all
          ((fun () ->
             Of_threads.Mutex.lock mutex;
             while !count < 10 do
               Of_threads.Condition.wait condition mutex
             done;
             Of_threads.Mutex.unlock mutex)
          :: List.init 10 (fun _ () ->
                 Of_threads.Mutex.lock mutex;
                 Unix.sleepf 0.0005;
                 incr count;
                 Of_threads.Condition.signal condition;
                 Of_threads.Mutex.unlock mutex)));
    case "other threads run meanwhile, and may be joined" (fun () ->
        let finished = ref 0 in
        let compute () =
          let sum = ref 0 in
          for i = 1 to 2_000_000 do
            sum := !sum + (i mod 7);
            if i mod 100_000 = 0 then ignore (Sys.opaque_identity (List.init 100 Fun.id))
          done;
          Unix.sleepf 0.001;
          incr finished
        in
        let threads = List.init 4 (fun _ -> Thread.create compute ()) in
        Fiber.all
          (List.init 20 (fun i () ->
               for _ = 1 to 20 do
                 Unix.sleepf (0.0001 *. float (1 + (i mod 3)));
                 collect ()
               done)
          @ List.map (fun thread () -> Thread.join thread) threads);
        check int "finished" 4 !finished);
    case "a cancel ends a wait in Unix with an error" (fun () ->
        let from_pipe, to_pipe = Unix.pipe ~cloexec:true () in
        let ended = ref "" in
        for _ = 1 to 50 do
          Fiber.first
            (fun () ->
              match Unix.read from_pipe (Bytes.create 1) 0 1 with
              | _ -> fail "it has read something"
              | exception Unix.Unix_error (EUNKNOWNERR 125, "read", _) -> ended := "cancelled")
            (fun () -> Time.sleep clock 0.0005);
          (* Others find nothing of that. *)
          Fiber.all (List.init 5 (fun _ () -> Unix.sleepf 0.0001))
        done;
        check string "ended" "cancelled" !ended;
        Unix.close from_pipe;
        Unix.close to_pipe);
    case "each wait in Unix of a cancelled task ends, also one that begins after the cancel" (fun () ->
        let from_pipe, to_pipe = Unix.pipe ~cloexec:true () in
        let errors = ref 0 in
        Fiber.first
          (fun () ->
            for _ = 1 to 5 do
              match Unix.select [ from_pipe ] [] [] 1000. with
              | _ -> fail "it has selected"
              | exception Unix.Unix_error (EUNKNOWNERR 125, _, _) -> incr errors
            done;
            Unix.sleepf 1000.)
          (fun () -> Time.sleep clock 0.0005);
        check int "errors" 5 !errors;
        (match
           Switch.run (fun sw ->
               Switch.fail sw Exit;
               Unix.sleepf 1000.;
               ignore (Unix.read from_pipe (Bytes.create 1) 0 1))
         with
        | () -> fail "it has read"
        | exception Exit -> ());
        Unix.close from_pipe;
        Unix.close to_pipe);
    case "the cancel is what ends the task, and not the error in Unix" (fun () ->
        let from_pipe, to_pipe = Unix.pipe ~cloexec:true () in
        let input = Unix.in_channel_of_descr from_pipe in
        let limited f = Time.with_timeout clock 0.001 (fun () -> Ok (f ())) in
        let selected = limited (fun () -> ignore (Unix.select [ from_pipe ] [] [] 1000.)) in
        check bool "limit of time" true (selected = Error `Timeout);
        check bool "of a channel" true (limited (fun () -> ignore (input_line input)) = Error `Timeout);
        (match
           Fiber.both
             (fun () -> ignore (input_line input))
             (fun () ->
               Unix.sleepf 0.001;
               raise Not_found)
         with
        | () -> fail "it has read"
        | exception Not_found -> ());
        close_in input;
        Unix.close to_pipe);
    case "a signal handler may wait in Unix, in a task or while the loop sleeps" (fun () ->
        let handled = ref 0 in
        let handle _ =
          Unix.sleepf 0.0005;
          incr handled
        in
        let old = Sys.signal Sys.sigusr1 (Sys.Signal_handle handle) in
        let signal () = Unix.kill (Unix.getpid ()) Sys.sigusr1 in
        for i = 1 to 20 do
          Fiber.both
            (fun () -> Time.sleep clock 0.002)
            (fun () -> if i mod 2 = 0 then signal () else run_in_systhread (fun () -> Thread.delay 0.0005; signal ()));
          Time.sleep clock 0.002
        done;
        Sys.set_signal Sys.sigusr1 old;
        check int "handled" 20 !handled);
    test_case "a signal handler that raises ends waits in Unix, and the run" `Quick (fun () ->
        let old = Sys.signal Sys.sigusr1 (Signal_handle (fun _ -> raise Exit)) in
        (match
           run (fun () ->
               Fiber.both
                 (fun () -> Unix.sleepf 1000.)
                 (fun () ->
                   Unix.sleepf 0.001;
                   ignore (Unix.system (Printf.sprintf "kill -USR1 %d" (Unix.getpid ())));
                   ignore (Unix.select [] [] [] 1000.)))
         with
        | () -> fail "it has ended"
        | exception Exit -> ());
        Sys.set_signal Sys.sigusr1 old);
    case "an exception in the middle of a channel's use leaves the channels of others alone" (fun () ->
        let from_pipe, to_pipe = Unix.pipe ~cloexec:true () in
        let input = Unix.in_channel_of_descr from_pipe in
        let other_from, other_to = Unix.pipe ~cloexec:true () in
        let other = Unix.in_channel_of_descr other_from in
        Fiber.both
          (fun () ->
            Fiber.first
              (fun () -> match input_line input with _ -> fail "read" | exception Sys_error _ -> ())
              (fun () -> Unix.sleepf 0.002))
          (fun () ->
            Fiber.both
              (fun () -> check string "line" "hello" (input_line other))
              (fun () ->
                Unix.sleepf 0.005;
                ignore (Unix.write_substring other_to "hello\n" 0 6)));
        ignore (Unix.write_substring to_pipe "again\n" 0 6);
        check string "line" "again" (input_line input);
        close_in input;
        close_in other;
        Unix.close to_pipe;
        Unix.close other_to);
    case "code in a task of C is no task of OCaml, whatever task waits in Unix meanwhile" (fun () ->
        let count = 30 in
        let left = ref count and found = ref 0 in
        visit :=
          (fun number ->
            (match Fiber.check () with () -> incr found | exception Effect.Unhandled _ -> ());
            decr left;
            number + 1);
        for i = 1 to count do
          spawn_visitor i
        done;
        Fiber.all
          (List.init 3 (fun _ () ->
               while !left > 0 do
                 Unix.sleepf 0.0001
               done));
        check int "found" 0 !found);
    case "code in a task of C finds no task that waits in Unix in another task of C" (fun () ->
        let waiting = 20 and left = ref 40 and found = ref 0 and all, last = Promise.create () in
        (visit :=
           fun number ->
             if number <= waiting then as_task (fun () -> for _ = 1 to 10 do Unix.sleepf 0.0003 done)
             else
               for _ = 1 to 10 do
                 match Fiber.check () with () -> incr found | exception Effect.Unhandled _ -> ()
               done;
             decr left;
             if !left = 0 then Promise.resolve last ();
             number + 1);
        for i = 1 to 40 do
          spawn_visitor i
        done;
        Promise.await all;
        check int "found" 0 !found);
    case "a cancel ends what tasks in tasks of C wait for in Unix, one inside another, too" (fun () ->
        let left = ref 20 and outcomes = ref [] and all, last = Promise.create () in
        let limited f = Time.with_timeout clock 0.001 (fun () -> Ok (f ())) in
        let note outcome = outcomes := (outcome = Error `Timeout) :: !outcomes in
        (visit :=
           fun number ->
             as_task (fun () ->
                 let from_pipe, to_pipe = Unix.pipe ~cloexec:true () in
                 let read () = ignore (Unix.read from_pipe (Bytes.create 1) 0 1) in
                 note (limited read);
                 collect ();
                 as_task (fun () -> note (limited read));
                 note (limited read);
                 Unix.close from_pipe;
                 Unix.close to_pipe;
                 decr left;
                 if !left = 0 then Promise.resolve last ();
                 number + 1));
        for i = 1 to 20 do
          spawn_visitor i
        done;
        Promise.await all;
        check int "outcomes" 60 (List.length !outcomes);
        check bool "all are late" true (List.for_all Fun.id !outcomes));
    case "tasks of C that call OCaml code may use Unix, too" (fun () ->
        let left = ref 30 and all, last = Promise.create () in
        (visit :=
           fun number ->
             as_task (fun () ->
                 Unix.sleepf (float (30 - number) *. 0.0002);
                 collect ();
                 Fiber.yield ();
                 decr left;
                 if !left = 0 then Promise.resolve last ();
                 number + 1));
        Fiber.both
          (fun () -> for i = 1 to 30 do spawn_visitor i done; Promise.await all)
          (fun () -> for _ = 1 to 30 do Unix.sleepf 0.0001 done));
    test_case "a run that ends leaves nothing behind" `Quick (fun () ->
        for _ = 1 to 20 do
          run (fun () -> Fiber.all (List.init 50 (fun _ () -> Unix.sleepf 0.0002)))
        done);
  ]

let () = Alcotest.run "haft-posix" [ ("Unix", cases) ]
