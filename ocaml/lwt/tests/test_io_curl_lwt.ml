(* SPDX-License-Identifier: MIT *)
(* libcurl's multi interface for Lwt, which has Lwt's engine watch its descriptors and its timer, asks a server of
   haft-http in the same process and on the same loop: many transfers at a time, of which none is answered before all
   have been asked. *)
open Haft_io

let clients = 30

let fetch url () =
  let body = Buffer.create 16 and curl = Curl.init () in
  Curl.set_url curl url;
  Curl.set_writefunction curl (fun text ->
      Buffer.add_string body text;
      String.length text);
  Lwt.bind (Curl_lwt.perform curl) (fun code ->
      Curl.cleanup curl;
      match code with
      | Curl.CURLE_OK -> Lwt.return (Buffer.contents body)
      | code -> Lwt.fail (Failure (Curl.strerror code)))

let () =
  run (fun () ->
      let port, set_port = Promise.create () and stop, stopper = Promise.create () in
      let asked = ref 0 and all, last = Promise.create () in
      let handler request =
        incr asked;
        if !asked = clients then Promise.resolve last ();
        Promise.await all;
        Http.respond_text (String.concat "/" (Http.Request.path request))
      in
      Fiber.both
        (fun () ->
          Http.serve ~host:"127.0.0.1" ~port:0 ~stop ~signals:false ~on_listening:(Promise.resolve set_port) handler)
        (fun () ->
          Haft_lwt.with_event_loop (fun () ->
              let names = List.init clients string_of_int in
              let url name = Printf.sprintf "http://127.0.0.1:%d/%s" (Promise.await port) name in
              let bodies = Fiber.List.map (fun name -> Haft_lwt.run_lwt (fetch (url name))) names in
              if bodies <> names then failwith (String.concat " " bodies));
          Promise.resolve stopper ()))
