(* SPDX-License-Identifier: MIT *)
(* `server PORT`: the answer of load.c by haft-http. *)
open Haft_io

let body = String.make 1024 'x'

let () =
  run @@ fun () ->
  Http.serve ~host:"127.0.0.1"
    ~port:(int_of_string Sys.argv.(1))
    ~limits:{ Http.Limits.default with connections = 20000; connections_of_client = 20000 }
  @@ fun request ->
  match Http.Request.path request with
  | [ "bench" ] -> Http.respond body
  | _ -> Http.respond ~status:`Not_found ""
