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
          test_case "an error of the system after it" `Quick (fun () ->
              Haft_io.run (fun () ->
                  Switch.run (fun sw ->
                      says "listen" (fun () -> Net.listen ~sw ~backlog:5 net (`Unix "/no/such/folder/socket")))));
        ] );
    ]
