(* SPDX-License-Identifier: MIT *)
(* The server and the client over TLS, by HTTP/2. *)
open Alcotest
open Haft_io

external certificate : unit -> string * string * string = "test_certificate"
external forget_certificate : unit -> unit = "test_forget_certificate"

let with_server tls handler body =
  run (fun () ->
      let listening, is_listening = Promise.create () and stop, stopper = Promise.create () in
      Fiber.both
        (fun () ->
          Http.serve ~host:"127.0.0.1" ~port:0 ~tls ~stop ~signals:false ~on_listening:(Promise.resolve is_listening)
            handler)
        (fun () ->
          let url = Printf.sprintf "https://localhost:%d" (Promise.await listening) in
          Fun.protect ~finally:(fun () -> Promise.resolve stopper ()) (fun () -> body url)))

let handle request =
  let name = String.concat "/" (Http.Request.path request) in
  Time.sleep clock 0.001;
  if name = "fail" then failwith "as asked"
  else if name = "pieces" then
    Http.respond_stream (fun ~flush write ->
        for i = 1 to 100 do
          write (String.make 1000 (Char.chr (97 + (i mod 26))));
          if i mod 30 = 0 then (flush (); Gc.compact ())
        done)
  else Http.respond_text (Printf.sprintf "%s %s %s" (Http.Request.version request) name (Http.Request.text request))

let tls =
  let chain, key, authority = certificate () in
  at_exit forget_certificate;
  Unix.putenv "SSL_CERT_FILE" authority;
  (chain, key)

let case name body = test_case name `Quick (fun () -> with_server tls handle body)

let cases =
  [
    case "many requests at a time, on a connection by HTTP/2" (fun url ->
        Fiber.List.iter
          (fun i ->
            let body = String.make (i * 700) 'x' in
            let reply = Http.Client.post ~body (Printf.sprintf "%s/%d" url i) in
            check string "reply" (Printf.sprintf "HTTP/2.0 %d %s" i body) reply.body)
          (List.init 60 Fun.id));
    case "a body piece by piece" (fun url ->
        check int "size" 100_000 (String.length (Http.Client.get (url ^ "/pieces")).body);
        let read _ body = String.length (Flow.read_all body) in
        check int "as a flow" 100_000 (Http.Client.stream (url ^ "/pieces") read));
    case "the failure of a handler ends its request only" (fun url ->
        check int "status" 500 (Http.Client.get (url ^ "/fail")).status;
        check string "next" "HTTP/2.0 next " (Http.Client.get (url ^ "/next")).body);
    case "a question that is cancelled, and the next one" (fun url ->
        for _ = 1 to 10 do
          ignore (Time.with_timeout clock 0.0005 (fun () -> Ok (Http.Client.get (url ^ "/slow"))))
        done;
        check string "next" "HTTP/2.0 next " (Http.Client.get (url ^ "/next")).body);
    case "a server whose certificate has another name is refused" (fun url ->
        let port = List.nth (String.split_on_char ':' url) 2 in
        match Http.Client.get (Printf.sprintf "https://ip6-localhost:%s/" port) with
        | _ -> fail "it has returned"
        | exception Http.Client.Failed _ -> ());
  ]

let () = Alcotest.run "haft-http, TLS" [ ("TLS", cases) ]
