(* SPDX-License-Identifier: MIT *)
(* A chat over WebSocket: what one user writes, all get. The user of a request is an effect, which middleware
   handles: so the page and the chat ask for it where they need it, and a test would answer otherwise.

     ocamlfind ocamlopt -package haft-http -linkpkg -pp haft-effect-syntax chat.ml -o chat && ./chat
     open http://localhost:8080/?name=Ann in two windows *)
open Haft_io

effect User : string

let with_user next request =
  let name = Option.value (Http.Request.query request "name") ~default:"somebody" in
  match next request with
  | response -> response
  | effect User, k -> Effect.Deep.continue k name

(* ---- The room ---- *)

let members : Http.Websocket.t list ref = ref []

let say text =
  let tell socket = try Http.Websocket.send_text socket text with Http.Websocket.Closed -> () in
  Fiber.List.iter tell !members

let join socket =
  let name = Effect.perform User in
  members := socket :: !members;
  say (name ^ " has come");
  Fun.protect
    ~finally:(fun () ->
      members := List.filter (( != ) socket) !members;
      say (name ^ " has gone"))
    (fun () ->
      Http.Websocket.iter
        (function Text text -> say (name ^ ": " ^ text) | Binary _ -> ())
        socket)

(* ---- The page ---- *)

let page name =
  Printf.sprintf
    {|<!doctype html><title>Chat</title><pre id=all></pre><input id=line autofocus>
<script>
  const socket = new WebSocket("ws://" + location.host + "/chat?name=" + encodeURIComponent("%s"));
  socket.onmessage = message => all.textContent += message.data + "\n";
  line.onchange = () => { socket.send(line.value); line.value = ""; };
</script>|}
    (Http.encode name)

let () =
  let open Http.Route in
  let routes =
    [
      get root (fun _ -> Http.respond_html (page (Effect.perform User)));
      get (s "chat") (fun _ -> Http.websocket join);
    ]
  in
  run (fun () -> Http.serve ~port:8080 (with_user (router routes)))
