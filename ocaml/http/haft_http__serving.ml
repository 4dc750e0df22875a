(* SPDX-License-Identifier: MIT *)
(* The server. A request's handler runs as a task of OCaml on the stack of a task of C (run_in_c): what it asks of
   libhaft-http that may wait it asks on that stack (On_c_stack). *)
open Haft_io
open Haft_http__calls
open Haft_http__values
open Haft_http__request
open Haft_http__websocket
open Haft_http__response

let check_sent code = if code < 0 then raise Gone

(* The library's own words tell more, where it has some. *)
let check_field code thing name value =
  if code < 0 then
    match Haft_io__calls.refusal code with
    | "" -> invalid_arg (Printf.sprintf "no %s can be %S: %S" thing name value)
    | words -> invalid_arg words

let set_head pointer (response : Response.t) =
  List.iter (fun (name, value) -> check_field (C.set_header pointer name value) "header" name value) response.headers;
  List.iter
    (fun cookie ->
      let { name; value; path; domain; max_age; for_scripts; for_http; same_site } = cookie in
      let code = C.set_cookie pointer name value (path, domain, max_age, for_scripts, for_http, same_site) in
      check_field code "cookie" name value)
    response.cookies

(* Sends the answers that need a task of OCaml meanwhile. *)
let send_from_task pointer (response : Response.t) =
  match response.body with
  | Whole _ | File _ -> ()
  | Stream (size, write) ->
      let code = on_c_stack (fun () -> C.begin_ pointer response.status response.content_type size) in
      check_sent code;
      write
        (fun text -> check_sent (on_c_stack (fun () -> C.write pointer text)))
        (fun () -> check_sent (on_c_stack (fun () -> C.flush pointer)))
  | Events send ->
      check_sent (on_c_stack (fun () -> C.events_begin pointer));
      send (fun ?(kind = "") ?(id = "") data ->
          check_sent (on_c_stack (fun () -> C.events_send pointer kind id data)))
  | Socket (origins, body) -> (
      match on_c_stack (fun () -> C.websocket pointer origins) with
      | socket when (socket :> int) = 0 -> ()
      | socket ->
          let it : Websocket.t =
            { socket = Some socket; of_client = false; sending = 0; idle = Fibers.Waiters.create () }
          in
          Fun.protect
            ~finally:(fun () -> Websocket.finish it)
            (fun () -> try body it with Websocket.Closed -> ()))

let answer_here pointer (response : Response.t) =
  match response.body with
  | Whole text -> C.answer pointer response.status response.content_type text
  | File path -> (
      match C.answer_file pointer path response.content_type with
      | -2 (* ENOENT *) | -22 (* EINVAL *) | -13 (* EACCES *) -> C.answer pointer 404 "" ""
      | code -> code)
  | Stream _ | Events _ | Socket _ -> 0

(* Calls the handler for a request, in a task of C. 0, or an error that the library logs. *)
let handle context (handler : handler) pointer =
  let request : Request.t = { pointer = Some pointer; path = None; read_body = None } in
  let outcome =
    Loop.run_in_c context (fun () ->
        match
          let response = handler request in
          set_head pointer response;
          send_from_task pointer response;
          response
        with
        | response -> Ok response
        | exception Error (status, text) -> Ok (respond_text ~status text)
        | exception exn ->
            let backtrace = Printexc.get_raw_backtrace () in
            Result.Error (Loop.as_cancel context exn, backtrace))
  in
  request.pointer <- None;
  match outcome with
  | Ok response -> answer_here pointer response
  | Result.Error (Gone, _) -> -32 (* EPIPE *)
  | Result.Error (Cancel.Cancelled _, _) -> (
      match C.answer pointer 503 "" "" (* the server ends *) with
      | -114 (* EALREADY: a part of the answer has been sent *) -> -32 (* EPIPE *)
      | code -> code)
  | Result.Error (exn, backtrace) ->
      C.note_failure pointer
        (String.trim (Printexc.to_string exn ^ "\n" ^ Printexc.raw_backtrace_to_string backtrace));
      -5 (* EIO *)

module Limits = struct
  type t = {
    body : int;
    connections : int;
    connections_of_client : int;
    idle_time : float;
    head_time : float;
    body_time : float;
    write_time : float;
    grace : float;
  }

  let default =
    {
      body = 0;
      connections = 0;
      connections_of_client = 0;
      idle_time = 0.;
      head_time = 0.;
      body_time = 0.;
      write_time = 0.;
      grace = 0.;
    }

  let for_c limits =
    let time seconds = int_of_float (seconds *. 1e9) in
    ( limits.body,
      limits.connections,
      limits.connections_of_client,
      time limits.idle_time,
      time limits.head_time,
      time limits.body_time,
      time limits.write_time,
      time limits.grace )
end

let check_set code what = if code < 0 then failwith (Printf.sprintf "Http.serve: %s: %s" what (Loop.error_text code))

(* Waits until the server has stopped, which a cancel makes it do: the handlers have been cancelled, too. The server
   takes the listener, and leaves a negative number. *)
let serve_to_the_end server listener =
  let code =
    Loop.suspend "requests" (fun fiber resume ->
        let cancelled = ref None in
        fiber.withdraw <-
          (fun exn ->
            cancelled := Some exn;
            C.stop server;
            fiber.withdraw <- Loop.no_wait);
        let begin_ slot =
          let given = !listener in
          listener := -1;
          C.serve server given slot
        in
        Loop.begin_work begin_ (fun code ->
            resume (match !cancelled with Some exn -> Result.Error exn | None -> Ok code)))
  in
  check_set (if code = -110 (* ETIMEDOUT: requests were cut off *) then 0 else code) "the server"

(* SIGINT and SIGTERM stop it; a second one cancels what it does. *)
let with_signals (sw : Switch.t) stop body =
  let context = (Obj.magic sw : Fibers.Switch.t).context in
  let asked = ref false in
  let call () =
    if !asked then Loop.cancel_context context Exit Exn.empty_backtrace
    else (
      asked := true;
      stop ())
  in
  let handler = Sys.Signal_handle (fun _ -> Loop.call_in_loop call) in
  let signals = [ Sys.sigint; Sys.sigterm ] in
  let old = List.map (fun signal -> Sys.signal signal handler) signals in
  Fun.protect ~finally:(fun () -> List.iter2 Sys.set_signal signals old) body

let serve ?(host = "::") ?(port = 8080) ?(unix_path = "") ?(backlog = 0) ?(limits = Limits.default) ?tls ?(files = [])
    ?counters ?debug ?(compress = true) ?access_log ?trust_proxies ?stop ?(signals = true) ?(on_listening = ignore)
    (handler : handler) =
  Switch.run ~name:"Http.serve" (fun sw ->
      let context = (Obj.magic sw : Fibers.Switch.t).context in
      let server = C.server (handle context handler) in
      if (server :> int) = 0 then raise Out_of_memory;
      Switch.on_release sw (fun () -> C.server_free server);
      check_set (C.set_limits server (Limits.for_c limits)) "limits";
      Option.iter (fun (chain, key) -> check_set (C.tls server chain key) "tls") tls;
      List.iter (fun (prefix, folder) -> check_set (C.serve_files server prefix folder) folder) files;
      Option.iter (fun path -> check_set (C.serve_counters server path) path) counters;
      Option.iter (fun prefix -> check_set (C.debug_pages server prefix) prefix) debug;
      C.compress server compress;
      Option.iter
        (fun format -> C.access_log server (match format with `Common -> 0 | `Combined -> 1 | `Json -> 2))
        access_log;
      Option.iter
        (fun (networks, field) -> check_set (C.trust_proxies server networks field) "trust_proxies")
        trust_proxies;
      let listener = ref (-1) in
      Switch.on_release sw (fun () -> if !listener >= 0 then ignore (Haft_io__calls.close !listener));
      (listener :=
         if unix_path <> "" then Haft_io__calls.listen_unix unix_path backlog
         else Haft_io__calls.listen_tcp host port backlog false);
      check_set !listener (if unix_path <> "" then unix_path else Printf.sprintf "%s, port %d" host port);
      Option.iter
        (fun stop ->
          Fiber.fork_daemon ~sw (fun () ->
              Promise.await stop;
              C.stop server;
              `Stop_daemon))
        stop;
      let serve () =
        on_listening (if unix_path = "" then Haft_io__calls.port !listener else 0);
        serve_to_the_end server listener
      in
      if signals then with_signals sw (fun () -> C.stop server) serve else serve ())
