(* SPDX-License-Identifier: MIT *)
(* Handlers of haft-http that wait in functions of Unix and in channels, by HTTP/1.1 and by HTTP/2. *)
open Alcotest
open Haft_io

external certificate : unit -> string * string * string = "test_certificate"
external forget_certificate : unit -> unit = "test_forget_certificate"

exception Broken

let tls =
  let chain, key, authority = certificate () in
  at_exit forget_certificate;
  Unix.putenv "SSL_CERT_FILE" authority;
  (chain, key)

let limits = { Http.Limits.default with grace = 1000. }

let with_server ?tls handler body =
  run (fun () ->
      let listening, is_listening = Promise.create () and stop, stopper = Promise.create () in
      Fiber.both
        (fun () ->
          Http.serve ~limits ~host:"127.0.0.1" ~port:0 ?tls ~stop ~signals:false
            ~on_listening:(Promise.resolve is_listening) handler)
        (fun () ->
          let scheme = if tls = None then "http" else "https" in
          let url = Printf.sprintf "%s://localhost:%d" scheme (Promise.await listening) in
          Fun.protect ~finally:(fun () -> Promise.resolve stopper ()) (fun () -> body url)))

(* One that nothing comes through. *)
let silent_pipe, _silent_end = Unix.pipe ~cloexec:true ()
let silent_channel = Unix.in_channel_of_descr (Unix.dup ~cloexec:true silent_pipe)
let read_silence () = ignore (Unix.read silent_pipe (Bytes.create 1) 0 1)
let select_silence () = ignore (Unix.select [ silent_pipe ] [] [] 1000.)

let cases tls =
  let case what f = test_case what `Quick (fun () -> f (with_server ?tls)) in
  [
    case "100 handlers at a time wait in Unix" (fun with_server ->
        with_server
          (fun _ ->
            Unix.sleepf 0.002;
            if Random.int 20 = 0 then Gc.compact ();
            Http.respond_text "slept")
          (fun url ->
            let ask _ = check string "body" "slept" (Http.Client.get url).body in
            Fiber.List.iter ask (List.init 100 Fun.id)));
    case "a limit of time ends what a handler waits for in Unix" (fun with_server ->
        let waits =
          [
            ("sleep", fun () -> Unix.sleepf 1000.);
            ("read", read_silence);
            ("select", select_silence);
            ("channel", fun () -> ignore (input_line silent_channel));
            ("several", fun () -> for _ = 1 to 10 do (try select_silence () with Unix.Unix_error _ -> ()) done);
          ]
        in
        with_server
          (fun request ->
            let wait = List.assoc (List.hd (Http.Request.path request)) waits in
            let limited = Time.with_timeout clock 0.001 (fun () -> Ok (wait ())) in
            Gc.minor ();
            (* The task's next wait is not ended. *)
            Unix.sleepf 0.0001;
            match limited with Ok () -> Http.respond_text "ended" | Error `Timeout -> Http.respond_text "late")
          (fun url ->
            Fiber.List.iter
              (fun (name, _) ->
                let body = (Http.Client.get (url ^ "/" ^ name)).body in
                (* A sleep returns early, without an error. *)
                if body <> "late" && not (body = "ended" && (name = "sleep" || name = "several")) then
                  failf "%s: %s" name body)
              (waits @ waits @ waits)));
    case "a cancel of the server ends what its handlers wait for in Unix" (fun with_server ->
        let waiting = ref 0 and ended = ref 0 in
        let handle request =
          incr waiting;
          Fun.protect
            ~finally:(fun () -> incr ended)
            (fun () ->
              (match Http.Request.path request with
              | [ "sleep" ] -> Unix.sleepf 1000.
              | [ "read" ] -> read_silence ()
              | [ "protected" ] -> Cancel.protect (fun () -> Unix.sleepf 0.03)
              | _ -> for _ = 1 to 3 do (try select_silence () with Unix.Unix_error _ -> ()) done);
              Http.respond_text "")
        in
        let ask url name = try ignore (Http.Client.get (url ^ name)) with Http.Client.Failed _ -> () in
        let names = List.concat (List.init 10 (fun _ -> [ "/sleep"; "/read"; "/protected"; "/select" ])) in
        (try
           with_server handle (fun url ->
               Fiber.first
                 (fun () -> Fiber.List.iter (ask url) names)
                 (fun () -> while !waiting < List.length names do Time.sleep clock 0.001 done);
               raise Broken)
         with Broken -> ());
        check int "ended" (List.length names) !ended);
    case "the error in Unix of a handler that is cancelled is no failure of it" (fun with_server ->
        let waits = ref false in
        (try
           with_server
             (fun _ ->
               waits := true;
               read_silence ();
               Http.respond_text "")
             (fun url ->
               Fiber.both
                 (fun () ->
                   match (Http.Client.get url).status with
                   | 500 -> fail "500"
                   | _ | (exception Http.Client.Failed _) -> ())
                 (fun () ->
                   while not !waits do Time.sleep clock 0.001 done;
                   raise Broken))
         with Broken -> ()));
  ]

let () =
  Alcotest.run "haft-posix, HTTP"
    [ ("handlers in Unix, HTTP/1.1", cases None); ("handlers in Unix, HTTP/2", cases (Some tls)) ]
