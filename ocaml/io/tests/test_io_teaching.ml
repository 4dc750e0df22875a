(* SPDX-License-Identifier: MIT *)
(* The exception of a call that is a mistake of the program has the words of the library: what is wrong, with which
   value, and what to write instead. *)
open Haft_io
open Alcotest

let has_part text part =
  let size = String.length part in
  let rec from i = i + size <= String.length text && (String.sub text i size = part || from (i + 1)) in
  from 0

let says words call =
  match call () with
  | _ -> fail "it has returned"
  | exception exn ->
      let text = Printexc.to_string exn in
      if not (has_part text words) then failf "%s lacks: %s" text words

let long = String.make 108 'x'

let () =
  run "teaching"
    [
      ( "mistakes",
        [
          test_case "a path that is too long for a socket" `Quick (fun () ->
              Haft_io.run (fun () ->
                  Switch.run (fun sw ->
                      says
                        ("haft_io_listen_unix: '" ^ long
                        ^ "' is no path of a local socket: write one of 1 to 107 bytes")
                        (fun () -> Net.listen ~sw ~backlog:5 net (`Unix long)))));
          test_case "a port that is none" `Quick (fun () ->
              Haft_io.run (fun () ->
                  Switch.run (fun sw ->
                      let address = `Tcp (Net.Ipaddr.V4.loopback, 70000) in
                      let words = "a port is a number from 0 to 65535: 70000" in
                      says words (fun () -> ignore (Net.connect ~sw net address));
                      says words (fun () -> ignore (Net.listen ~sw ~backlog:5 net address)))));
          test_case "a source and a sink that do not say what they did" `Quick (fun () ->
              Haft_io.run (fun () ->
                  says "there is room for 0 bytes, and the source says that it has read 0" (fun () ->
                      ignore (Flow.single_read (Flow.source_of_read (fun _ -> 0)) Cstruct.empty));
                  says "there are 5 bytes, and the sink says that it has taken 6" (fun () ->
                      Flow.copy_string "hello" (Flow.sink_of_write (fun _ -> 6)))));
          test_case "a text with a NUL, of which C would take a part" `Quick (fun () ->
              Haft_io.run (fun () ->
                  says "Not_found" (fun () -> ignore (Path.load Path.(fs / "/dev/null\000x")));
                  says "Not_found" (fun () -> Path.rename Path.(fs / "/dev/null") Path.(fs / "/tmp\000x"));
                  says "a text with a NUL character" (fun () -> Process.run process_mgr [ "true"; "a\000b" ])));
          test_case "an error of the system after it" `Quick (fun () ->
              Haft_io.run (fun () ->
                  Switch.run (fun sw ->
                      says "listen" (fun () -> Net.listen ~sw ~backlog:5 net (`Unix "/no/such/folder/socket")))));
        ] );
    ]
