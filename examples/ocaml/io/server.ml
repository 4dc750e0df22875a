(* SPDX-License-Identifier: MIT *)
(* The web server of "Retrofitting effect handlers onto OCaml" (§6.3) in direct style: a handler is a function, and
   what it waits for it calls. SIGINT or SIGTERM stops it.

     ocamlfind ocamlopt -package haft-http -linkpkg server.ml -o server && ./server 8080
     curl http://localhost:8080/hello/you *)
open Haft_io

let port () = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 8080

let () =
  run @@ fun () ->
  Http.serve ~port:(port ()) ~on_listening:(traceln "http://localhost:%d") @@ fun request ->
  match Http.Request.path request with
  | [ "hello"; name ] -> Http.respond_text ("Hello, " ^ name ^ "\n")
  | [ "sleep"; seconds ] ->
      Time.sleep clock (float_of_string seconds);
      Http.respond_text "Good morning\n"
  | _ -> Http.respond ~status:`Not_found ""
