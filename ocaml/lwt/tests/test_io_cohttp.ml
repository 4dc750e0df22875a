(* SPDX-License-Identifier: MIT *)
(* The client of cohttp-lwt-unix asks a server of haft-http, in one process. *)
open Haft_io

let () =
  run (fun () ->
      Haft_lwt.with_event_loop (fun () ->
          let port, set_port = Promise.create () and stop, stopper = Promise.create () in
          Fiber.both
            (fun () ->
              Http.serve ~host:"127.0.0.1" ~port:0 ~stop ~signals:false ~on_listening:(Promise.resolve set_port)
                (fun request ->
                  Time.sleep clock 0.001;
                  Http.respond_text (String.concat "/" (Http.Request.path request))))
            (fun () ->
              let url = Printf.sprintf "http://127.0.0.1:%d/a/" (Promise.await port) in
              let ask i =
                let body =
                  Haft_lwt.run_lwt (fun () ->
                      Lwt.bind (Cohttp_lwt_unix.Client.get (Uri.of_string (url ^ string_of_int i))) (fun (_, body) ->
                          Cohttp_lwt.Body.to_string body))
                in
                if body <> Printf.sprintf "a/%d" i then failwith body
              in
              Fiber.List.iter ~max_fibers:10 ask (List.init 30 Fun.id);
              Promise.resolve stopper ())))
