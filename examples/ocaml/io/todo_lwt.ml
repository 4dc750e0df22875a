(* SPDX-License-Identifier: MIT *)
(* todo.ml under Lwt, with cohttp: the same business, the same answers. Lwt cannot suspend the binding of PostgreSQL, so
   a thread calls it; the user and the database are arguments of every function that needs them. *)
open Lwt.Syntax

exception Refused of Cohttp.Code.status_code * string

type context = { rows : string -> string array -> string array list Lwt.t; user : string }

(* ---- The business ---- *)

let refuse status text = Lwt.fail (Refused (status, text))
let most = 3

let item = function
  | [| id; what; done_ |] ->
      `Assoc [ ("id", `Int (int_of_string id)); ("what", `String what); ("done", `Bool (done_ = "t")) ]
  | _ -> assert false

let all { rows; user } =
  let+ found = rows "select id, what, done from todo where owner = $1 order by id" [| user |] in
  `List (List.map item found)

let add { rows; user } what =
  if String.trim what = "" then refuse `Bad_request "what is to be done?\n"
  else
    let* counted = rows "select count(*) from todo where owner = $1 and not done" [| user |] in
    match counted with
    | [ [| count |] ] when int_of_string count >= most -> refuse `Conflict "do something first\n"
    | _ ->
        let text = "insert into todo (owner, what) values ($1, $2) returning id, what, done" in
        let+ added = rows text [| user; what |] in
        item (List.hd added)

let finish { rows; user } id =
  let text = "update todo set done = true where owner = $1 and id = $2 returning id, what, done" in
  let* found = rows text [| user; string_of_int id |] in
  match found with
  | [ row ] -> Lwt.return (item row)
  | _ -> refuse `Not_found "there is no such item\n"

(* ---- The web ---- *)

let json value =
  let headers = Cohttp.Header.init_with "Content-Type" "application/json" in
  Cohttp_lwt_unix.Server.respond_string ~headers ~status:`OK ~body:(Yojson.Safe.to_string value ^ "\n") ()

let what_of text = Yojson.Safe.(Util.to_string (Util.member "what" (from_string text)))

let parse body =
  let* text = Cohttp_lwt.Body.to_string body in
  match what_of text with what -> Lwt.return what | exception exn -> refuse `Bad_request (Printexc.to_string exn ^ "\n")

let route context request body =
  let path = String.split_on_char '/' (Uri.path (Cohttp.Request.uri request)) in
  match (Cohttp.Request.meth request, path) with
  | `GET, [ ""; "todo" ] -> Lwt.bind (all context) json
  | `POST, [ ""; "todo" ] ->
      let* what = parse body in
      Lwt.bind (add context what) json
  | `PUT, [ ""; "todo"; id; "done" ] when int_of_string_opt id <> None ->
      Lwt.bind (finish context (int_of_string id)) json
  | _, ([ ""; "todo" ] | [ ""; "todo"; _; "done" ]) -> refuse `Method_not_allowed "method not allowed\n"
  | _ -> refuse `Not_found "not found\n"

let handle rows _ request body =
  Lwt.catch
    (fun () ->
      match Cohttp.Header.get (Cohttp.Request.headers request) "X-User" with
      | None -> refuse `Unauthorized "who are you?\n"
      | Some user -> route { rows; user } request body)
    (function
      | Refused (status, body) -> Cohttp_lwt_unix.Server.respond_string ~status ~body ()
      | exn -> Lwt.fail exn)

(* ---- The database ---- *)

let database conninfo =
  let pool = Lwt_pool.create 10 (Lwt_preemptive.detach (fun () -> new Postgresql.connection ~conninfo ())) in
  fun text params ->
    let ask (connection : Postgresql.connection) =
      (connection#exec ~expect:[ Postgresql.Tuples_ok; Command_ok ] ~params text)#get_all
    in
    Lwt.map Array.to_list (Lwt_pool.use pool (Lwt_preemptive.detach ask))

(* ---- Some questions ---- *)

let try_it port =
  let ask ?(user = "ann") ?(meth = `POST) ?(body = "") path =
    let headers = Cohttp.Header.init_with "X-User" user in
    let uri = Uri.of_string (Printf.sprintf "http://127.0.0.1:%d%s" port path) in
    let* response, body = Cohttp_lwt_unix.Client.call ~headers ~body:(Cohttp_lwt.Body.of_string body) meth uri in
    let+ text = Cohttp_lwt.Body.to_string body in
    Printf.printf "%d %s" (Cohttp.Code.code_of_status (Cohttp.Response.status response)) text
  in
  let add what = ask ~body:(Printf.sprintf "{\"what\": %S}" what) "/todo" in
  let* () = Lwt_list.iter_s add [ "tea"; "shopping"; "sleep"; "more" ] in
  let* () = ask ~meth:`PUT "/todo/1/done" in
  let* () = ask ~user:"bob" ~meth:`PUT "/todo/2/done" in
  let* () = ask ~body:"tea" "/todo" in
  ask ~meth:`GET "/todo"

let () =
  let rows = database Sys.argv.(1) in
  let port = if Array.length Sys.argv > 2 then int_of_string Sys.argv.(2) else 8123 in
  let server = Cohttp_lwt_unix.Server.make ~callback:(handle rows) () in
  Lwt_main.run
    (let* _ = rows "create table if not exists todo (id serial, owner text, what text, done bool default false)" [||] in
     let serving = Cohttp_lwt_unix.Server.create ~mode:(`TCP (`Port port)) server in
     if Array.length Sys.argv > 2 then serving else try_it port)
