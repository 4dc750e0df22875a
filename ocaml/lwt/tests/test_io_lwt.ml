(* SPDX-License-Identifier: MIT *)
(* Promises of Lwt in tasks, and tasks as promises. *)
open Alcotest
open Haft_io

exception Broken

let case name f = test_case name `Quick (fun () -> run (fun () -> Haft_lwt.with_event_loop f))

let raises what expected f =
  match f () with _ -> failf "%s: it has returned" what | exception exn -> check bool what true (exn = expected)

let cases =
  [
    case "a promise is awaited, with its value or its failure" (fun () ->
        check int "at once" 1 (Haft_lwt.await (Lwt.return 1));
        check int "later" 2 (Haft_lwt.run_lwt (fun () -> Lwt.map (fun () -> 2) (Lwt_unix.sleep 0.002)));
        check int "paused" 3 (Haft_lwt.run_lwt (fun () -> Lwt.map (fun () -> 3) (Lwt.pause ())));
        let failing () = Lwt.bind (Lwt.pause ()) (fun () -> Lwt.fail Broken) in
        raises "failure" Broken (fun () -> Haft_lwt.run_lwt failing));
    case "both go on at a time" (fun () ->
        let order = ref [] in
        let note text = order := text :: !order in
        Fiber.all
          [
            (fun () -> Time.sleep clock 0.002; note "haft 2"; Time.sleep clock 0.004; note "haft 6");
            (fun () ->
              Haft_lwt.run_lwt (fun () ->
                  Lwt.bind (Lwt_unix.sleep 0.004) (fun () ->
                      note "lwt 4";
                      Lwt.map (fun () -> note "lwt 8") (Lwt_unix.sleep 0.004))));
          ];
        check (list string) "order" [ "haft 2"; "lwt 4"; "haft 6"; "lwt 8" ] (List.rev !order));
    case "a task is a promise" (fun () ->
        let promise = Haft_lwt.promise (fun () -> Time.sleep clock 0.001; 5) in
        check int "value" 6 (Haft_lwt.run_lwt (fun () -> Lwt.map succ promise));
        let failing = Haft_lwt.promise (fun () -> Fiber.yield (); raise Broken) in
        raises "failure" Broken (fun () -> Haft_lwt.await failing);
        let task = Haft_lwt.promise (fun () -> Fiber.yield (); "a") in
        let both = Lwt.both task (Lwt.map (fun () -> "b") (Lwt.pause ())) in
        check (pair string string) "both" ("a", "b") (Haft_lwt.await both));
    case "a cancel goes either way" (fun () ->
        let promise, _ = Lwt.task () in
        (match Time.with_timeout clock 0.002 (fun () -> Ok (Haft_lwt.await promise)) with
        | Ok () -> fail "it has returned"
        | Error `Timeout -> ());
        check bool "cancelled" true (Lwt.state promise = Lwt.Fail Lwt.Canceled);
        let cleaned = ref false in
        let clean () = cleaned := true in
        let task = Haft_lwt.promise (fun () -> Fun.protect ~finally:clean Fiber.await_cancel) in
        Lwt.cancel task;
        Fiber.yield ();
        Fiber.yield ();
        check bool "cleaned up" true !cleaned);
    case "Lwt's streams of bytes" (fun () ->
        let text =
          Haft_lwt.run_lwt (fun () ->
              let read_end, write_end = Lwt_io.pipe () in
              let written = Lwt_io.write write_end (String.make 200_000 'x') in
              let closed = Lwt.bind written (fun () -> Lwt_io.close write_end) in
              Lwt.map fst (Lwt.both (Lwt_io.read read_end) closed))
        in
        check int "size" 200_000 (String.length text));
    case "a server of Lwt and a client of Haft" (fun () ->
        let path = Filename.temp_file "haft" ".socket" in
        Sys.remove path;
        let handler _ (input, output) =
          Lwt.bind (Lwt_io.read_line input) (fun line ->
              Lwt.bind (Lwt_io.write output (line ^ "!")) (fun () -> Lwt_io.flush output))
        in
        let address = Unix.ADDR_UNIX path in
        let server = Haft_lwt.run_lwt (fun () -> Lwt_io.establish_server_with_client_address address handler) in
        Fiber.List.iter
          (fun i ->
            Switch.run (fun sw ->
                let flow = Net.connect ~sw net (`Unix path) in
                Flow.copy_string (Printf.sprintf "hello %d\n" i) flow;
                check string "answer" (Printf.sprintf "hello %d!" i) (Flow.read_all flow)))
          (List.init 20 Fun.id);
        Haft_lwt.run_lwt (fun () -> Lwt_io.shutdown_server server));
    case "work on Lwt's threads, and a process" (fun () ->
        let work () = Thread.delay 0.002; 7 in
        check int "detached" 7 (Haft_lwt.run_lwt (fun () -> Lwt_preemptive.detach work ()));
        check string "process" "hi" (Haft_lwt.run_lwt (fun () -> Lwt_process.pread_line ("", [| "echo"; "hi" |]))));
    test_case "Lwt has its own engine again" `Quick (fun () ->
        run (fun () -> Haft_lwt.with_event_loop (fun () -> Haft_lwt.run_lwt (fun () -> Lwt_unix.sleep 0.001)));
        check int "Lwt_main" 4 (Lwt_main.run (Lwt.map (fun () -> 4) (Lwt_unix.sleep 0.001))));
  ]

let () = Alcotest.run "haft-lwt" [ ("lwt", cases) ]
