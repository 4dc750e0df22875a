(* SPDX-License-Identifier: MIT *)
(* Flows, buffers, sockets, files and processes. *)
open Alcotest
open Haft_io

exception Broken

let case name f = test_case name `Quick f
let run_case name f = case name (fun () -> Haft_io.run f)
let text = check string

let raises what accepts f =
  match f () with
  | _ -> failf "%s: it has returned" what
  | exception exn -> if not (accepts exn) then failf "%s: %s" what (Printexc.to_string exn)

let loopback port = `Tcp (Net.Ipaddr.V4.loopback, port)
let is_part part whole =
  let size = String.length part in
  let rec from i = i + size <= String.length whole && (String.sub whole i size = part || from (i + 1)) in
  from 0

external limit_descriptors : int -> int = "test_limit_descriptors"

let listen sw = Net.listen ~sw ~backlog:128 net (loopback 0)
let nap () = Time.sleep clock 0.001

(* ---- Flows and buffers ---- *)

(* A source of these pieces. *)
let pieces texts =
  let rest = ref texts in
  Flow.source_of_read (fun view ->
      match !rest with
      | [] -> raise End_of_file
      | piece :: others ->
          let size = min (String.length piece) (Cstruct.length view) in
          Cstruct.blit_from_string piece 0 view 0 size;
          let left = String.sub piece size (String.length piece - size) in
          rest := if left = "" then others else left :: others;
          size)

let buffers =
  [
    case "copy and read_all" (fun () ->
        text "all" "one, two" (Flow.read_all (pieces [ "one,"; " two" ]));
        let buffer = Buffer.create 10 in
        Flow.copy (Flow.cstruct_source [ Cstruct.of_string "a"; Cstruct.empty; Cstruct.of_string "b" ])
          (Flow.buffer_sink buffer);
        text "copied" "ab" (Buffer.contents buffer));
    case "lines, with either end, in pieces" (fun () ->
        let lines = Buf_read.of_flow (pieces [ "one\nt"; "wo\r"; "\n\nlast" ]) ~max_size:100 in
        check (list string) "lines" [ "one"; "two"; ""; "last" ] (List.of_seq (Buf_read.lines lines)));
    case "a line that does not fit" (fun () ->
        let lines = Buf_read.of_flow (pieces [ String.make 20 'x' ]) ~initial_size:4 ~max_size:10 in
        raises "line" (( = ) Buf_read.Buffer_limit_exceeded) (fun () -> Buf_read.line lines));
    case "parsers" (fun () ->
        let open Buf_read.Syntax in
        let word = Buf_read.take_while1 (function 'a' .. 'z' -> true | _ -> false) in
        let pair =
          let* name = word <* Buf_read.char '=' in
          let+ number = Buf_read.take_while (function '0' .. '9' -> true | _ -> false) in
          (name, int_of_string number)
        in
        let of_pieces texts =
          match Buf_read.parse ~max_size:100 pair (pieces texts) with
          | Ok (name, number) -> Printf.sprintf "%s is %d" name number
          | Error (`Msg message) -> message
        in
        text "whole" "size is 12" (of_pieces [ "size=12" ]);
        text "pieces" "size is 12" (of_pieces [ "si"; "ze"; "="; "1"; "2" ]);
        text "another char" "Expected '=' but got ':'" (of_pieces [ "size:12" ]);
        text "too much" "Unexpected data after parsing" (of_pieces [ "size=12x" ]);
        text "too little" "Unexpected end-of-file" (of_pieces [ "size" ]));
    case "numbers, both ways" (fun () ->
        let buffer = Buffer.create 100 in
        run (fun () ->
            Buf_write.with_flow (Flow.buffer_sink buffer) (fun out ->
                Buf_write.BE.uint16 out 0x1234;
                Buf_write.LE.uint32 out 0x01020304l;
                Buf_write.BE.double out 0.5;
                Buf_write.uint8 out 200;
                Buf_write.printf out "%d items" 3));
        let read = Buf_read.of_string (Buffer.contents buffer) in
        check int "uint16" 0x1234 (Buf_read.BE.uint16 read);
        check bool "uint32" true (Buf_read.LE.uint32 read = 0x01020304l);
        check bool "double" true (Buf_read.BE.double read = 0.5);
        check int "uint8" 200 (Buf_read.uint8 read);
        text "rest" "3 items" (Buf_read.take_all read));
    run_case "small writes are gathered, and a flush waits for them" (fun () ->
        let writes = ref [] in
        let write views = writes := Cstruct.(to_string (concat views)) :: !writes; Cstruct.lenv views in
        let sink = Flow.sink_of_write write in
        Buf_write.with_flow sink (fun out ->
            Buf_write.string out "a";
            Buf_write.string out "b";
            Buf_write.flush out;
            check (list string) "flushed" [ "ab" ] !writes;
            Buf_write.char out 'c');
        check (list string) "all" [ "c"; "ab" ] !writes);
    run_case "a failing sink fails the writer" (fun () ->
        let sink = Flow.sink_of_write (fun _ -> raise Broken) in
        raises "with_flow" (( = ) Broken) (fun () ->
            Buf_write.with_flow sink (fun out -> Buf_write.string out "a"; Buf_write.flush out)));
    case "views of memory are checked" (fun () ->
        let view = Cstruct.of_string "hello" in
        text "sub" "ell" (Cstruct.to_string (Cstruct.sub view 1 3));
        raises "sub" (function Invalid_argument _ -> true | _ -> false) (fun () -> Cstruct.sub view 3 3);
        raises "negative" (function Invalid_argument _ -> true | _ -> false) (fun () -> Cstruct.sub view 2 (-1));
        raises "overflow" (function Invalid_argument _ -> true | _ -> false) (fun () -> Cstruct.sub view max_int 2));
  ]

(* ---- Sockets ---- *)

let echo flow _ = try Flow.copy flow flow with Io (Net.E (Connection_reset _), _) -> ()
let no_error exn = failf "a connection has failed: %s" (Printexc.to_string exn)

(* Calls [body] with the address of a server that echoes. *)
let with_echo body =
  Switch.run (fun sw ->
      let socket = listen sw in
      let stop, stopper = Promise.create () in
      Fiber.both
        (fun () -> Net.run_server socket echo ~stop ~on_error:no_error)
        (fun () ->
          body (Net.listening_addr socket);
          Promise.resolve stopper ()))

let ask sw address message =
  let flow = Net.connect ~sw net address in
  Flow.copy_string message flow;
  Flow.shutdown flow `Send;
  Flow.read_all flow

let sockets =
  [
    run_case "a server echoes, and stops when it is told to" (fun () ->
        with_echo (fun address -> Switch.run (fun sw -> text "echo" "hello" (ask sw address "hello"))));
    run_case "100 clients at a time" (fun () ->
        with_echo (fun address ->
            Fiber.List.iter
              (fun i -> Switch.run (fun sw -> text "echo" (string_of_int i) (ask sw address (string_of_int i))))
              (List.init 100 Fun.id)));
    run_case "a megabyte each way at once" (fun () ->
        with_echo (fun address ->
            Switch.run (fun sw ->
                let flow = Net.connect ~sw net address in
                let all = String.init 1_000_000 (fun i -> Char.chr (i * 7 / 13 land 255)) in
                let sent () = Flow.copy_string all flow; Flow.shutdown flow `Send in
                let (), got = Fiber.pair sent (fun () -> Flow.read_all flow) in
                check bool "the same" true (got = all))));
    run_case "at most so many connections are served" (fun () ->
        Switch.run (fun sw ->
            let socket = listen sw in
            let now = ref 0 and most = ref 0 in
            let stop, stopper = Promise.create () in
            let handler flow _ =
              incr now;
              most := max !most !now;
              ignore (Flow.read_all flow);
              decr now
            in
            Fiber.both
              (fun () -> Net.run_server socket handler ~max_connections:3 ~stop ~on_error:no_error)
              (fun () ->
                let visit _ =
                  Switch.run (fun sw ->
                      let flow = Net.connect ~sw net (Net.listening_addr socket) in
                      nap ();
                      Flow.close flow)
                in
                Fiber.List.iter visit (List.init 20 Fun.id);
                Promise.resolve stopper ());
            check int "most" 3 !most));
    run_case "the failure of a handler ends its connection only" (fun () ->
        Switch.run (fun sw ->
            let socket = listen sw in
            let errors = ref 0 in
            let stop, stopper = Promise.create () in
            Fiber.both
              (fun () ->
                Net.run_server socket (fun _ _ -> raise Broken) ~stop ~on_error:(fun exn ->
                    check bool "which" true (exn = Broken);
                    incr errors))
              (fun () ->
                for _ = 1 to 3 do
                  Switch.run (fun sw -> text "nothing" "" (try ask sw (Net.listening_addr socket) "" with Io _ -> ""))
                done;
                Promise.resolve stopper ());
            check int "errors" 3 !errors));
    run_case "a server that finds no descriptor for a connection pauses, and goes on later" (fun () ->
        Switch.run (fun sw ->
            let socket = listen sw in
            let stop, stopper = Promise.create () in
            (* One is left, for the client. *)
            let leave_one () =
              let next = Unix.dup ~cloexec:true Unix.stdin in
              Unix.close next;
              limit_descriptors (Obj.magic next + 1)
            in
            let rec wait_for_pause () =
              if not (is_part "task waits for: a time" (dump ())) then (
                Fiber.yield ();
                wait_for_pause ())
            in
            Fiber.both
              (fun () -> Net.run_server socket echo ~stop ~on_error:no_error)
              (fun () ->
                let before = leave_one () in
                Fiber.both
                  (fun () -> text "echo" "1" (ask sw (Net.listening_addr socket) "1"))
                  (fun () ->
                    wait_for_pause ();
                    ignore (limit_descriptors before));
                Promise.resolve stopper ())));
    run_case "a stop waits for connections that are served" (fun () ->
        Switch.run (fun sw ->
            let socket = listen sw in
            let stop, stopper = Promise.create () in
            let answered = ref false in
            let handler flow _ =
              Promise.resolve stopper ();
              nap ();
              Flow.copy_string "answer" flow;
              answered := true
            in
            Fiber.both
              (fun () -> Net.run_server socket handler ~stop ~on_error:no_error; check bool "answered" true !answered)
              (fun () ->
                Switch.run (fun sw ->
                    let flow = Net.connect ~sw net (Net.listening_addr socket) in
                    text "answer" "answer" Buf_read.(take 6 (of_flow flow ~max_size:10))))));
    run_case "a refused connection" (fun () ->
        let address = Switch.run (fun sw -> Net.listening_addr (listen sw)) in
        raises "connect"
          (function Io (Net.E (Connection_failure (Refused _)), _) -> true | _ -> false)
          (fun () -> Switch.run (fun sw -> Net.connect ~sw net address)));
    run_case "names are resolved, and connected to" (fun () ->
        with_echo (fun address ->
            let port = match address with `Tcp (_, port) -> port | `Unix _ -> 0 in
            let got =
              Net.with_tcp_connect ~host:"localhost" ~service:(string_of_int port) net (fun flow ->
                  Flow.copy_string "by name" flow;
                  Flow.shutdown flow `Send;
                  Flow.read_all flow)
            in
            text "echo" "by name" got));
    run_case "a name without addresses" (fun () ->
        raises "with_tcp_connect"
          (function Io (Net.E (Connection_failure No_matching_addresses), _) -> true | _ -> false)
          (fun () -> Net.with_tcp_connect ~host:"localhost" ~service:"no such service" net ignore));
    run_case "Unix sockets" (fun () ->
        let path = Filename.temp_file "haft" ".socket" in
        Sys.remove path;
        Switch.run (fun sw ->
            let socket = Net.listen ~sw ~backlog:5 net (`Unix path) in
            let stop, stopper = Promise.create () in
            Fiber.both
              (fun () -> Net.run_server socket echo ~stop ~on_error:no_error)
              (fun () ->
                text "echo" "hi" (Switch.run (fun sw -> ask sw (`Unix path) "hi"));
                Promise.resolve stopper ()));
        Sys.remove path);
    run_case "datagrams" (fun () ->
        Switch.run (fun sw ->
            let first = Net.datagram_socket ~sw net (`Udp (Net.Ipaddr.V4.loopback, 47911)) in
            let second = Net.datagram_socket ~sw net (`Udp (Net.Ipaddr.V4.loopback, 47912)) in
            let view = Cstruct.create 100 in
            let (sender, size), () =
              Fiber.pair
                (fun () -> Net.recv first view)
                (fun () ->
                  Net.send second ~dst:(`Udp (Net.Ipaddr.V4.loopback, 47911))
                    [ Cstruct.of_string "da"; Cstruct.of_string "ta" ])
            in
            text "data" "data" (Cstruct.to_string ~len:size view);
            check bool "sender" true (sender = `Udp (Net.Ipaddr.V4.loopback, 47912))));
  ]

(* ---- A cancel at each wait; nothing stays open ---- *)

let descriptors () = Array.length (Sys.readdir "/proc/self/fd")

let ends_by_cancel name wait =
  run_case name (fun () ->
      (* (The resolver and the back end open some at first.) *)
      for round = 1 to 3 do
        let before = descriptors () in
        (match Time.with_timeout clock 0.002 (fun () -> Ok (Switch.run wait)) with
        | Ok () -> fail "it has returned"
        | Error `Timeout -> ());
        Fiber.yield ();
        nap ();
        if round > 1 then check int "descriptors" before (descriptors ())
      done)

let pair sw =
  let socket = listen sw in
  let client, (server, _) =
    Fiber.pair (fun () -> Net.connect ~sw net (Net.listening_addr socket)) (fun () -> Net.accept ~sw socket)
  in
  (client, server)

let cancels =
  [
    ends_by_cancel "a cancel ends a read" (fun sw -> ignore (Flow.read_all (fst (pair sw))));
    ends_by_cancel "a cancel ends a write" (fun sw -> Flow.copy_string (String.make 100_000_000 'x') (fst (pair sw)));
    ends_by_cancel "a cancel ends an accept" (fun sw -> ignore (Net.accept ~sw (listen sw)));
    ends_by_cancel "a cancel ends a connect" (fun sw ->
        (* The queue of this listener is full. *)
        let socket = Net.listen ~sw ~backlog:0 net (loopback 0) in
        let rec fill () = ignore (Net.connect ~sw net (Net.listening_addr socket)); fill () in
        fill ());
    ends_by_cancel "a cancel ends a receive" (fun sw ->
        ignore (Net.recv (Net.datagram_socket ~sw net (`Udp (Net.Ipaddr.V4.loopback, 0))) (Cstruct.create 10)));
    ends_by_cancel "a cancel ends a read of a pipe" (fun sw ->
        ignore (Flow.read_all (fst (Process.pipe ~sw process_mgr))));
    ends_by_cancel "a cancel ends a server with its connections" (fun sw ->
        let socket = listen sw in
        Fiber.both
          (fun () -> Net.run_server socket (fun flow _ -> ignore (Flow.read_all flow)) ~on_error:no_error)
          (fun () -> ignore (Flow.read_all (Net.connect ~sw net (Net.listening_addr socket)))));
    ends_by_cancel "a cancel ends a process" (fun sw -> Process.(await_exn (spawn ~sw process_mgr [ "sleep"; "100" ])));
    run_case "what a cancelled read has left is read next" (fun () ->
        Switch.run (fun sw ->
            let client, server = pair sw in
            let read () = Buf_read.(take 5 (of_flow client ~max_size:10)) in
            (match Time.with_timeout clock 0.002 (fun () -> Ok (read ())) with
            | Ok _ -> fail "it has read"
            | Error `Timeout -> ());
            Flow.copy_string "later" server;
            text "read" "later" (read ())));
    run_case "a wait for a descriptor that was closed is none for the next one of its number" (fun () ->
        Switch.run (fun sw ->
            let client, _server = pair sw in
            let before = Hashtbl.length Haft_io__loop.watches in
            Fiber.first (fun () -> ignore (Flow.read_all client)) ignore;
            check int "while it is open" (before + 1) (Hashtbl.length Haft_io__loop.watches);
            Flow.close client;
            check int "when it is closed" before (Hashtbl.length Haft_io__loop.watches)));
    run_case "descriptors of others are waited for, and may be closed and be others next" (fun () ->
        for _ = 1 to 20 do
          let read_end, write_end = Unix.pipe () in
          await_writable write_end;
          (match Time.with_timeout clock 0.001 (fun () -> Ok (await_readable read_end)) with
          | Ok () -> fail "it has returned"
          | Error `Timeout -> ());
          Fiber.both (fun () -> await_readable read_end) (fun () -> ignore (Unix.write_substring write_end "x" 0 1));
          ignore (Unix.read read_end (Bytes.create 1) 0 1);
          Fiber.both (fun () -> await_readable read_end) (fun () -> Unix.close write_end);
          check int "end" 0 (Unix.read read_end (Bytes.create 1) 0 1);
          Unix.close read_end
        done;
        raises "closed" (function Unix.Unix_error (Unix.EBADF, _, _) -> true | _ -> false) (fun () ->
            let read_end, write_end = Unix.pipe () in
            Unix.close read_end;
            Unix.close write_end;
            await_readable read_end));
    run_case "a flow that another task closes ends the read" (fun () ->
        Switch.run (fun sw ->
            let client, _ = pair sw in
            Fiber.both
              (fun () ->
                let by_close = function Io _ | Invalid_argument _ -> true | _ -> false in
                raises "read" by_close (fun () -> Flow.read_all client))
              (fun () -> nap (); Flow.close client)));
  ]

(* ---- Files ---- *)

let with_folder body =
  let name = Filename.temp_file "haft" ".folder" in
  Sys.remove name;
  let folder = Path.(fs / name) in
  Path.mkdir ~perm:0o700 folder;
  Fun.protect ~finally:(fun () -> Path.rmtree folder) (fun () -> body folder)

let not_found = function Io (Fs.E (Not_found _), _) -> true | _ -> false

let files =
  [
    run_case "save, load, append" (fun () ->
        with_folder (fun folder ->
            let file = Path.(folder / "a") in
            Path.save ~create:(`Exclusive 0o600) file "one\ntwo\n";
            Path.save ~append:true ~create:`Never file "three\n";
            text "load" "one\ntwo\nthree\n" (Path.load file);
            check (list string) "lines" [ "one"; "two"; "three" ] (Path.with_lines file List.of_seq);
            raises "exclusive"
              (function Io (Fs.E (Already_exists _), _) -> true | _ -> false)
              (fun () -> Path.save ~create:(`Exclusive 0o600) file "")));
    run_case "directories" (fun () ->
        with_folder (fun folder ->
            Path.mkdirs ~perm:0o700 Path.(folder / "x/y/z");
            Path.mkdirs ~exists_ok:true ~perm:0o700 Path.(folder / "x/y/z");
            Path.save ~create:(`If_missing 0o600) Path.(folder / "x" / "b") "12345";
            check (list string) "read_dir" [ "b"; "y" ] (Path.read_dir Path.(folder / "x"));
            check bool "kind" true (Path.kind ~follow:true Path.(folder / "x") = `Directory);
            check bool "missing" true (Path.kind ~follow:true Path.(folder / "q") = `Not_found);
            check bool "size" true ((Path.stat ~follow:true Path.(folder / "x/b")).size = 5L);
            Path.rename Path.(folder / "x/b") Path.(folder / "c");
            check bool "renamed" true (Path.is_file Path.(folder / "c"));
            Path.symlink ~link_to:"c" Path.(folder / "link");
            text "link" "c" (Path.read_link Path.(folder / "link"));
            check bool "the link" true (Path.kind ~follow:false Path.(folder / "link") = `Symbolic_link);
            Path.unlink Path.(folder / "link");
            Path.rmdir Path.(folder / "x/y/z");
            raises "unlink" not_found (fun () -> Path.unlink Path.(folder / "nothing"));
            raises "load" not_found (fun () -> Path.load Path.(folder / "nothing"))));
    run_case "an error says which path" (fun () ->
        match Path.load Path.(cwd / "no/such/file") with
        | _ -> fail "it has returned"
        | exception exn ->
            let shown = Printexc.to_string exn in
            let part = "opening \"no/such/file\"" in
            let n = String.length part in
            let rec has i = i + n <= String.length shown && (String.sub shown i n = part || has (i + 1)) in
            if not (has 0) then fail shown);
    run_case "no path leads out of cwd" (fun () ->
        let refused = function Io (Fs.E (Permission_denied _), _) -> true | _ -> false in
        List.iter
          (fun path -> raises path refused (fun () -> Path.load Path.(cwd / path)))
          [ "/etc/passwd"; "../x"; "a/../../x"; ".." ]);
    run_case "parts of files" (fun () ->
        with_folder (fun folder ->
            Path.with_open_out ~create:(`Exclusive 0o600) Path.(folder / "f") (fun file ->
                File.pwrite_all file ~file_offset:3L [ Cstruct.of_string "lo"; Cstruct.of_string "!" ];
                File.pwrite_all file ~file_offset:0L [ Cstruct.of_string "hel" ];
                File.sync file;
                check bool "size" true (File.size file = 6L);
                let view = Cstruct.create 3 in
                File.pread_exact file ~file_offset:2L [ view ];
                text "part" "llo" (Cstruct.to_string view);
                ignore (File.seek file 1L `Set);
                text "from there" "ello!" (Flow.read_all file);
                File.truncate file 2L);
            text "truncated" "he" (Path.load Path.(folder / "f"))));
  ]

let processes =
  [
    run_case "the output of a program, and its input" (fun () ->
        text "out" "hello" (Process.parse_out process_mgr Buf_read.line [ "echo"; "hello" ]);
        text "in" "TEXT"
          (Process.parse_out process_mgr Buf_read.take_all ~stdin:(Flow.string_source "text") [ "tr"; "a-z"; "A-Z" ]));
    run_case "its folder and environment" (fun () ->
        text "cwd" "/" (Process.parse_out process_mgr Buf_read.line ~cwd:Path.(fs / "/") [ "pwd" ]);
        text "env" "5" (Process.parse_out process_mgr Buf_read.line ~env:[| "A=5" |] [ "/bin/sh"; "-c"; "echo $A" ]));
    run_case "its end" (fun () ->
        Switch.run (fun sw ->
            check bool "code" true (Process.(await (spawn ~sw process_mgr [ "sh"; "-c"; "exit 3" ])) = `Exited 3);
            let sleeper = Process.spawn ~sw process_mgr [ "sleep"; "100" ] in
            Process.signal sleeper Sys.sigterm;
            check bool "signal" true (Process.await sleeper = `Signaled Sys.sigterm));
        raises "run"
          (function Io (Process.E (Child_error (`Exited 1)), _) -> true | _ -> false)
          (fun () -> Process.run process_mgr [ "false" ]);
        raises "no program"
          (function Io (Process.E (Executable_not_found "/no/program"), _) -> true | _ -> false)
          (fun () -> Process.run process_mgr [ "/no/program" ]));
    run_case "a pipe between two programs" (fun () ->
        Switch.run (fun sw ->
            let read_end, write_end = Process.pipe ~sw process_mgr in
            let first = Process.spawn ~sw process_mgr ~stdout:write_end [ "echo"; "through" ] in
            Flow.close write_end;
            text "out" "through" (Process.parse_out process_mgr Buf_read.line ~stdin:read_end [ "cat" ]);
            Process.await_exn first));
  ]

(* ---- Simulations ---- *)

let simulated () =
  let log = Buffer.create 100 in
  Switch.run (fun sw ->
      let socket = Net.listen ~sw ~backlog:10 net (loopback 7000) in
      let stop, stopper = Promise.create () in
      let handler flow _ =
        let lines = Buf_read.of_flow flow ~max_size:100 in
        let number = int_of_string (Buf_read.line lines) in
        Time.sleep clock (float number);
        Flow.copy_string (string_of_int (number * number) ^ "\n") flow
      in
      Fiber.both
        (fun () -> Net.run_server socket handler ~stop ~on_error:(fun _ -> Buffer.add_string log "error "))
        (fun () ->
          Fiber.List.iter
            (fun (n, i) ->
              Switch.run (fun sw ->
                  match
                    let flow = Net.connect ~sw net (loopback 7000) in
                    Flow.copy_string (string_of_int i ^ "\n") flow;
                    Buf_read.(line (of_flow flow ~max_size:100))
                  with
                  | answer -> Printf.bprintf log "%d:%s " n answer
                  | exception (Io _ | End_of_file) -> Printf.bprintf log "%d:failed " n))
            (List.mapi (fun n i -> (n, i)) [ 1; 2; 3; 2; 1 ]);
          Path.mkdir ~perm:0o700 Path.(fs / "/data");
          Path.save ~create:(`Exclusive 0o600) Path.(fs / "/data/f") "kept";
          Buffer.add_string log (Path.load Path.(fs / "/data/f"));
          Promise.resolve stopper ()));
  Buffer.contents log

let simulations =
  [
    case "a service with its clients and files, by the seed" (fun () ->
        let results = List.init 20 (fun seed -> simulate ~seed:(seed + 1) ~short_counts:true simulated) in
        check (list string) "again" results
          (List.init 20 (fun seed -> simulate ~seed:(seed + 1) ~short_counts:true simulated));
        check bool "orders differ" true (List.length (List.sort_uniq compare results) > 1);
        let length = String.length "0:1 1:4 2:9 3:4 4:1 kept" in
        List.iter (fun log -> check int "all answered" length (String.length log)) results);
    case "its faults" (fun () ->
        let run seed =
          match simulate ~seed ~faults_one_in:20 simulated with log -> log | exception exn -> Printexc.to_string exn
        in
        let results = List.init 50 (fun seed -> run (seed + 1)) in
        check (list string) "again" results (List.init 50 (fun seed -> run (seed + 1)));
        check bool "some fail" true (List.length (List.sort_uniq compare results) > 5));
  ]

let () =
  Sys.set_signal Sys.sigpipe Sys.Signal_ignore;
  Alcotest.run "haft-io, streams"
    [
      ("buffers", buffers);
      ("sockets", sockets);
      ("cancels", cancels);
      ("files", files);
      ("processes", processes);
      ("simulations", simulations);
    ]
