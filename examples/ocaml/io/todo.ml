(* SPDX-License-Identifier: MIT *)
(* A to-do list: JSON by yojson, kept by PostgreSQL through the distribution's binding, which with the package
   haft-posix suspends the task that calls it. Database and user are effects: middleware handles them, and a test may
   handle them otherwise. todo_lwt.ml is the same under Lwt. Without a port the program asks itself some questions.

     ocamlfind ocamlopt -package haft-http,haft-posix,postgresql,yojson -linkpkg -pp haft-effect-syntax todo.ml -o todo
     ./todo "host=/run/postgresql" 8080 & curl -H 'X-User: ann' localhost:8080/todo --json '{"what": "tea"}' *)
open Haft_io

effect Rows : string * string array -> string array list
effect User : string

(* ---- The business ---- *)
let rows text values = Effect.perform (Rows (text, values))
let user () = Effect.perform User
let most = 3

let item = function
  | [| id; what; done_ |] ->
      `Assoc [ ("id", `Int (int_of_string id)); ("what", `String what); ("done", `Bool (done_ = "t")) ]
  | _ -> assert false

let all () = `List (List.map item (rows "select id, what, done from todo where owner = $1 order by id" [| user () |]))

let add what =
  if String.trim what = "" then Http.fail `Bad_request "what is to be done?\n";
  match rows "select count(*) from todo where owner = $1 and not done" [| user () |] with
  | [ [| count |] ] when int_of_string count >= most -> Http.fail `Conflict "do something first\n"
  | _ ->
      let text = "insert into todo (owner, what) values ($1, $2) returning id, what, done" in
      item (List.hd (rows text [| user (); what |]))

let finish id =
  let text = "update todo set done = true where owner = $1 and id = $2 returning id, what, done" in
  match rows text [| user (); string_of_int id |] with
  | [ row ] -> item row
  | _ -> Http.fail `Not_found "there is no such item\n"

(* ---- The web ---- *)
let json value = Http.respond_json (Yojson.Safe.to_string value ^ "\n")
let what_of text = Yojson.Safe.(Util.to_string (Util.member "what" (from_string text)))

let routes =
  let open Http.Route in
  [
    get (s "todo") (fun _ -> json (all ()));
    post (s "todo") (fun request -> json (add (Http.Request.parse request what_of)));
    put (s "todo" / int / s "done") (fun id _ -> json (finish id));
  ]

let with_user next request =
  match Http.Request.header request "X-User" with
  | None -> Http.fail `Unauthorized "who are you?\n"
  | Some name -> ( match next request with response -> response | effect User, k -> Effect.Deep.continue k name)

(* ---- The database ---- *)
let with_database conninfo next =
  let pool = Pool.create 10 (fun () -> new Postgresql.connection ~conninfo ()) in
  let query (text, params) =
    let ask (connection : Postgresql.connection) =
      (connection#exec ~expect:[ Postgresql.Tuples_ok; Command_ok ] ~params text)#get_all
    in
    Array.to_list (Pool.use pool ask)
  in
  ignore (query ("create table if not exists todo (id serial, owner text, what text, done bool default false)", [||]));
  fun request ->
    match next request with
    | response -> response
    | effect (Rows (text, values)), k -> (
        match query (text, values) with
        | rows -> Effect.Deep.continue k rows
        | exception exn -> Effect.Deep.discontinue k exn)

let service conninfo = with_database conninfo (with_user (Http.router routes))

(* ---- Some questions ---- *)
let try_it conninfo =
  let port, set_port = Promise.create () and stop, stopper = Promise.create () in
  Fiber.both
    (fun () ->
      Http.serve ~host:"127.0.0.1" ~port:0 ~stop ~on_listening:(Promise.resolve set_port) (service conninfo))
    (fun () ->
      let ask ?(user = "ann") ?meth ?body path =
        let url = Printf.sprintf "http://127.0.0.1:%d%s" (Promise.await port) path in
        let reply = Http.Client.request ~headers:[ ("X-User", user) ] ?meth ?body url in
        Printf.printf "%d %s" reply.status reply.body
      in
      let add what = ask ~body:(Printf.sprintf "{\"what\": %S}" what) "/todo" in
      List.iter add [ "tea"; "shopping"; "sleep"; "more" ];
      ask ~meth:"PUT" "/todo/1/done";
      ask ~user:"bob" ~meth:"PUT" "/todo/2/done";
      ask ~body:"tea" "/todo";
      ask "/todo";
      Promise.resolve stopper ())

let () =
  match Sys.argv with
  | [| _; conninfo |] -> run (fun () -> try_it conninfo)
  | [| _; conninfo; port |] -> run (fun () -> Http.serve ~port:(int_of_string port) (service conninfo))
  | _ -> prerr_endline "usage: todo CONNINFO [PORT]"
