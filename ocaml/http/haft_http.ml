(* SPDX-License-Identifier: MIT *)
(* A request's handler runs as a task of OCaml on the stack of a task of C (run_in_c): what it asks of libhaft-http that
   may wait it asks on that stack (On_c_stack). *)
open Haft_io
module Loop = Haft_io__loop
module Fibers = Haft_io__fibers

(* Pointers of C, as integers. *)
type server_pointer = private int
type request_pointer = private int
type socket_pointer = private int
type client_pointer = private int
type reply_pointer = private int
type multipart_pointer = private int

module C = struct
  external server : (request_pointer -> int) -> server_pointer = "haft_ocaml_http_server"
  external server_free : server_pointer -> unit = "haft_ocaml_http_server_free"
  external set_limits : server_pointer -> int * int * int * int * int * int * int * int -> int
    = "haft_ocaml_http_set_limits"

  external serve_files : server_pointer -> string -> string -> int = "haft_ocaml_http_serve_files"
  external serve_counters : server_pointer -> string -> int = "haft_ocaml_http_serve_counters"
  external debug_pages : server_pointer -> string -> int = "haft_ocaml_http_debug_pages"
  external compress : server_pointer -> bool -> unit = "haft_ocaml_http_compress"
  external access_log : server_pointer -> int -> unit = "haft_ocaml_http_access_log"
  external trust_proxies : server_pointer -> string -> string -> int = "haft_ocaml_http_trust_proxies"
  external tls : server_pointer -> string -> string -> int = "haft_ocaml_http_tls"
  external stop : server_pointer -> unit = "haft_ocaml_http_stop"
  external serve : server_pointer -> int -> int -> int = "haft_ocaml_http_serve"
  external meth : request_pointer -> string = "haft_ocaml_http_method"
  external target : request_pointer -> string = "haft_ocaml_http_target"
  external version : request_pointer -> string = "haft_ocaml_http_version"
  external peer : request_pointer -> string = "haft_ocaml_http_peer"
  external client_address : request_pointer -> string = "haft_ocaml_http_client_address"
  external header : request_pointer -> string -> string option = "haft_ocaml_http_header"
  external query : request_pointer -> string -> string option = "haft_ocaml_http_query"
  external cookie : request_pointer -> string -> string option = "haft_ocaml_http_cookie"
  external header_at : request_pointer -> int -> Obj.t = "haft_ocaml_http_header_at"
  external limit_body : request_pointer -> int -> unit = "haft_ocaml_http_limit_body"
  external read : request_pointer -> Cstruct.buffer -> int -> int -> int = "haft_ocaml_http_read"
  external body : request_pointer -> Obj.t = "haft_ocaml_http_body"
  external multipart : request_pointer -> multipart_pointer = "haft_ocaml_http_multipart"
  external next_part : multipart_pointer -> Obj.t = "haft_ocaml_http_next_part"
  external read_part : multipart_pointer -> Cstruct.buffer -> int -> int -> int = "haft_ocaml_http_read_part"
  external set_header : request_pointer -> string -> string -> int = "haft_ocaml_http_set_header"
  external set_cookie : request_pointer -> string -> string -> string * string * int * bool * bool * string -> int
    = "haft_ocaml_http_set_cookie"

  external answer : request_pointer -> int -> string -> string -> int = "haft_ocaml_http_answer"
  external answer_file : request_pointer -> string -> string -> int = "haft_ocaml_http_answer_file"
  external begin_ : request_pointer -> int -> string -> int -> int = "haft_ocaml_http_begin"
  external write : request_pointer -> string -> int = "haft_ocaml_http_write"
  external flush : request_pointer -> int = "haft_ocaml_http_flush"
  external note_failure : request_pointer -> string -> unit = "haft_ocaml_http_note_failure"
  external events_begin : request_pointer -> int = "haft_ocaml_http_events_begin"
  external events_send : request_pointer -> string -> string -> string -> int = "haft_ocaml_http_events_send"
  external websocket : request_pointer -> string -> socket_pointer = "haft_ocaml_http_websocket"
  external websocket_receive : socket_pointer -> Obj.t = "haft_ocaml_http_websocket_receive"
  external websocket_send : socket_pointer -> int -> string -> int -> int = "haft_ocaml_http_websocket_send"
  external client : int * int * int * int * bool -> client_pointer = "haft_ocaml_http_client"

  external ask :
    client_pointer -> string * string * string * string * (string * string) array * string * int -> int -> int
    = "haft_ocaml_http_ask"

  external cancel : int -> unit = "haft_ocaml_http_cancel"
  external taken_reply_object : unit -> reply_pointer = "haft_ocaml_http_taken_object"
  external taken_socket : unit -> socket_pointer = "haft_ocaml_http_taken_object"
  external reply_read : reply_pointer -> Cstruct.buffer -> int -> int -> int -> int = "haft_ocaml_http_reply_read"
  external reply_free : reply_pointer -> unit = "haft_ocaml_http_reply_free"
  external client_socket_receive : socket_pointer -> int -> int = "haft_ocaml_http_client_socket_receive"
  external taken_message : unit -> bool * string = "haft_ocaml_http_taken_message"
  external client_socket_free : socket_pointer -> unit = "haft_ocaml_http_client_socket_free"
  external taken_reply : unit -> int * (string * string) list * string = "haft_ocaml_http_taken_reply"
  external taken_failure : unit -> string = "haft_ocaml_http_taken_failure"
end

(* ---- Status codes ---- *)

type status =
  [ `OK
  | `Created
  | `Accepted
  | `No_content
  | `Moved_permanently
  | `Found
  | `See_other
  | `Not_modified
  | `Temporary_redirect
  | `Permanent_redirect
  | `Bad_request
  | `Unauthorized
  | `Forbidden
  | `Not_found
  | `Method_not_allowed
  | `Not_acceptable
  | `Request_timeout
  | `Conflict
  | `Gone
  | `Content_too_large
  | `Unsupported_media_type
  | `Unprocessable_content
  | `Too_many_requests
  | `Internal_server_error
  | `Not_implemented
  | `Bad_gateway
  | `Service_unavailable
  | `Gateway_timeout
  | `Code of int ]

let code_of_status : status -> int = function
  | `OK -> 200
  | `Created -> 201
  | `Accepted -> 202
  | `No_content -> 204
  | `Moved_permanently -> 301
  | `Found -> 302
  | `See_other -> 303
  | `Not_modified -> 304
  | `Temporary_redirect -> 307
  | `Permanent_redirect -> 308
  | `Bad_request -> 400
  | `Unauthorized -> 401
  | `Forbidden -> 403
  | `Not_found -> 404
  | `Method_not_allowed -> 405
  | `Not_acceptable -> 406
  | `Request_timeout -> 408
  | `Conflict -> 409
  | `Gone -> 410
  | `Content_too_large -> 413
  | `Unsupported_media_type -> 415
  | `Unprocessable_content -> 422
  | `Too_many_requests -> 429
  | `Internal_server_error -> 500
  | `Not_implemented -> 501
  | `Bad_gateway -> 502
  | `Service_unavailable -> 503
  | `Gateway_timeout -> 504
  | `Code code -> code

exception Error of status * string

let fail status text = raise (Error (status, text))

let () =
  Printexc.register_printer (function
    | Error (status, text) -> Some (Printf.sprintf "Haft_http.Error (%d, %S)" (code_of_status status) text)
    | _ -> None)

type headers = (string * string) list

let find_header headers name =
  let name = String.lowercase_ascii name in
  Option.map snd (List.find_opt (fun (key, _) -> String.lowercase_ascii key = name) headers)

(* ---- %-decoding ---- *)

let hex = function
  | '0' .. '9' as c -> Char.code c - 48
  | 'a' .. 'f' as c -> Char.code c - 87
  | 'A' .. 'F' as c -> Char.code c - 55
  | _ -> -1

let decode_with ~plus text =
  let buffer = Buffer.create (String.length text) in
  let length = String.length text in
  let rec go i =
    if i < length then
      match text.[i] with
      | '%' when i + 2 < length && hex text.[i + 1] >= 0 && hex text.[i + 2] >= 0 ->
          Buffer.add_char buffer (Char.chr ((16 * hex text.[i + 1]) + hex text.[i + 2]));
          go (i + 3)
      | '+' when plus ->
          Buffer.add_char buffer ' ';
          go (i + 1)
      | c ->
          Buffer.add_char buffer c;
          go (i + 1)
  in
  go 0;
  Buffer.contents buffer

let decode text = decode_with ~plus:false text

let encode text =
  let buffer = Buffer.create (String.length text) in
  String.iter
    (function
      | ('A' .. 'Z' | 'a' .. 'z' | '0' .. '9' | '-' | '.' | '_' | '~') as c -> Buffer.add_char buffer c
      | c -> Printf.bprintf buffer "%%%02X" (Char.code c))
    text;
  Buffer.contents buffer

(* The parameters of a query or a form, in their order. *)
let parameters text =
  if text = "" then []
  else
    String.split_on_char '&' text
    |> List.filter (fun part -> part <> "")
    |> List.map (fun part ->
           let decode = decode_with ~plus:true in
           match String.index_opt part '=' with
           | None -> (decode part, "")
           | Some at ->
               let rest = String.sub part (at + 1) (String.length part - at - 1) in
               (decode (String.sub part 0 at), decode rest))

(* ---- Requests ---- *)

let on_c_stack f = Effect.perform (Loop.On_c_stack f)

(* Waits for work in C that a cancel ends, and returns what [take] makes of its result. [begin_] returns what
   [C.cancel] takes, or 0. *)
let stoppable what begin_ take =
  Loop.suspend what (fun fiber resume ->
      let cancelled = ref None and work = ref 0 in
      let finish code =
        resume
          (match !cancelled with
          | Some exn -> Result.Error exn
          | None -> ( match take code with value -> Ok value | exception exn -> Result.Error exn))
      in
      fiber.withdraw <-
        (fun exn ->
          cancelled := Some exn;
          C.cancel !work;
          fiber.withdraw <- Loop.no_wait);
      let slot = Loop.new_slot finish in
      work := begin_ slot;
      if !work = 0 then (
        Loop.free_slot slot;
        resume (Result.Error Out_of_memory)))

(* The client has gone, which is no failure of the handler. *)
exception Gone

let () = Printexc.register_printer (function Gone -> Some "Haft_http: the client has gone" | _ -> None)

module Request = struct
  type t = {
    mutable pointer : request_pointer option;  (* None: it has been answered *)
    mutable path : string list option;
    mutable read_body : string option;
  }

  let pointer request =
    match request.pointer with
    | Some pointer -> pointer
    | None -> invalid_arg "this request has been answered"

  let meth request =
    match C.meth (pointer request) with
    | "GET" -> `GET
    | "HEAD" -> `HEAD
    | "POST" -> `POST
    | "PUT" -> `PUT
    | "PATCH" -> `PATCH
    | "DELETE" -> `DELETE
    | "OPTIONS" -> `OPTIONS
    | other -> `Other other

  let target request = C.target (pointer request)

  let raw_path request =
    let target = target request in
    match String.index_opt target '?' with None -> target | Some at -> String.sub target 0 at

  (* Parts between slashes, decoded; a slash at the end is a part "", as in "/a/". *)
  let path request =
    match request.path with
    | Some path -> path
    | None ->
        let path =
          match String.split_on_char '/' (raw_path request) with
          | [ ""; "" ] -> []
          | "" :: parts -> List.map decode parts
          | parts -> List.map decode parts
        in
        request.path <- Some path;
        path

  let version request = C.version (pointer request)
  let peer request = C.peer (pointer request)
  let client_address request = C.client_address (pointer request)
  let header request name = C.header (pointer request) name

  let headers request : headers =
    let pointer = pointer request in
    let rec collect number all =
      let found = C.header_at pointer number in
      if Obj.is_int found then List.rev all else collect (number + 1) (Obj.obj found :: all)
    in
    collect 0 []

  let query request name = C.query (pointer request) name

  let queries request =
    let target = target request in
    match String.index_opt target '?' with
    | None -> []
    | Some at -> parameters (String.sub target (at + 1) (String.length target - at - 1))

  let cookie request name = C.cookie (pointer request) name
  let limit_body request size = C.limit_body (pointer request) size

  let check_body code =
    if code < 0 then
      match Haft_io__calls.error code with
      | Unix.EMSGSIZE -> fail `Content_too_large "the body is too large\n"
      | Unix.ETIMEDOUT -> fail `Request_timeout "the body is too slow\n"
      | Unix.EUNKNOWNERR 74 (* EBADMSG *) -> fail `Bad_request "the body is none\n"
      | Unix.EPIPE | Unix.ECONNRESET -> raise Gone
      | _ -> Haft_io__flow.raise_code code "body" ""

  let text request =
    match request.read_body with
    | Some text -> text
    | None ->
        let pointer = pointer request in
        let body = on_c_stack (fun () -> C.body pointer) in
        if Obj.is_int body then check_body (Obj.obj body);
        let text : string = Obj.obj body in
        request.read_body <- Some text;
        text

  let body request =
    Flow.source_of_read (fun view ->
        let pointer = pointer request in
        let got = on_c_stack (fun () -> C.read pointer view.buffer view.off view.len) in
        check_body got;
        if got = 0 then raise End_of_file;
        got)

  let parse request of_text =
    match of_text (text request) with
    | value -> value
    | exception ((Error _ | Gone | Cancel.Cancelled _ | Out_of_memory | Stack_overflow) as exn) -> raise exn
    | exception exn -> fail `Bad_request (Printexc.to_string exn ^ "\n")

  type part = {
    name : string;
    file_name : string option;
    content_type : string option;
    content : Flow.source_ty Resource.t;
  }

  let iter_parts request f =
    let pointer = pointer request in
    let multipart = on_c_stack (fun () -> C.multipart pointer) in
    if (multipart :> int) = -95 (* EOPNOTSUPP *) then
      fail `Unsupported_media_type "this takes a form of the type multipart/form-data\n";
    check_body (min (multipart :> int) 0);
    let rec next () =
      let part = on_c_stack (fun () -> C.next_part multipart) in
      if Obj.is_int part then check_body (Obj.obj part)
      else
        let name, file_name, content_type = Obj.obj part in
        let reads = ref true in
        let read (view : Cstruct.t) =
          if not !reads then invalid_arg "this part has been passed";
          let got = on_c_stack (fun () -> C.read_part multipart view.buffer view.off view.len) in
          check_body got;
          if got = 0 then raise End_of_file;
          got
        in
        Fun.protect
          ~finally:(fun () -> reads := false)
          (fun () -> f { name; file_name; content_type; content = Flow.source_of_read read });
        next ()
    in
    next ()

  let is_form request =
    match header request "Content-Type" with
    | None -> false
    | Some kind ->
        let kind = match String.index_opt kind ';' with None -> kind | Some at -> String.sub kind 0 at in
        String.lowercase_ascii (String.trim kind) = "application/x-www-form-urlencoded"

  let form request = if is_form request then parameters (text request) else []
  let field request name = List.assoc_opt name (form request)
end

(* ---- Responses ---- *)

module Websocket = struct
  type t = {
    mutable socket : socket_pointer option;  (* None: its handler has ended *)
    of_client : bool;
    mutable sending : int;
    idle : unit Loop.waiters;
  }

  type message = Text of string | Binary of string

  exception Closed

  let socket_of it = match it.socket with Some socket -> socket | None -> raise Closed

  (* Messages are sent by tasks of C: by any task, in the order of the calls. *)
  let send_kind it kind text =
    let socket = socket_of it in
    let begin_ = C.websocket_send socket kind text in
    let sent () =
      it.sending <- it.sending - 1;
      if it.sending = 0 then Fibers.Waiters.wake_all it.idle ()
    in
    it.sending <- it.sending + 1;
    let code =
      match Loop.work "a message to be sent" Fun.id begin_ with
      | code ->
          sent ();
          code
      | exception exn (* of a signal handler *) ->
          sent ();
          raise exn
    in
    if code < 0 then
      match Haft_io__calls.error code with
      | Unix.EPIPE -> raise Closed
      | Unix.EINVAL -> invalid_arg "Websocket: the text is not UTF-8, or no such code may be sent"
      | _ -> Haft_io__flow.raise_code code "websocket" ""

  let send it = function Text text -> send_kind it 1 text | Binary bytes -> send_kind it 2 bytes
  let send_text it text = send_kind it 1 text
  let close ?(code = 1000) ?(reason = "") it = try send_kind it code reason with Closed -> ()

  let message (binary, bytes) = if binary then Binary bytes else Text bytes

  let raise_code code =
    if code = -125 (* ECANCELED *) then (
      Fiber.check ();
      raise Closed)
    else if Haft_io__calls.error code = Unix.EPIPE then raise Closed
    else Haft_io__flow.raise_code code "websocket" ""

  let receive it =
    let socket = socket_of it in
    if it.of_client then
      match
        stoppable "a message" (C.client_socket_receive socket) (fun code ->
            if code = 0 then Ok (message (C.taken_message ())) else Result.Error code)
      with
      | Ok message -> message
      | Error code -> raise_code code
    else
      let received = on_c_stack (fun () -> C.websocket_receive socket) in
      if Obj.is_int received then raise_code (Obj.obj received) else message (Obj.obj received)

  let rec iter f it =
    match receive it with
    | message ->
        f message;
        iter f it
    | exception Closed -> ()

  let await_idle it () =
    while it.sending > 0 do
      Fibers.Waiters.wait_to_the_end it.idle "messages that are sent"
    done

  (* When the handler has ended, nobody sends any more. *)
  let finish it =
    it.socket <- None;
    Loop.in_any_case await_idle it ()
end

type cookie = {
  name : string;
  value : string;
  path : string;
  domain : string;
  max_age : int;
  for_scripts : bool;
  for_http : bool;
  same_site : string;
}

module Response = struct
  type body =
    | Whole of string
    | Stream of int * ((string -> unit) -> (unit -> unit) -> unit)
    | File of string
    | Events of ((?kind:string -> ?id:string -> string -> unit) -> unit)
    | Socket of string * (Websocket.t -> unit)

  type t = { status : int; content_type : string; headers : headers; cookies : cookie list; body : body }

  let status response = response.status
  let headers response = response.headers
  let with_header name value response = { response with headers = response.headers @ [ (name, value) ] }
  let with_status status response = { response with status = code_of_status status }
  let body_text response = match response.body with Whole text -> Some text | _ -> None

  let with_cookie ?(path = "/") ?(domain = "") ?(max_age = 0) ?(for_scripts = false) ?(for_http = false)
      ?(same_site = `Lax) name value response =
    let same_site = match same_site with `Lax -> "Lax" | `Strict -> "Strict" | `None -> "None" in
    let cookie = { name; value; path; domain; max_age; for_scripts; for_http; same_site } in
    { response with cookies = response.cookies @ [ cookie ] }

  let without_cookie ?path ?domain name response = with_cookie ?path ?domain ~max_age:(-1) name "" response
end

type handler = Request.t -> Response.t
type middleware = handler -> handler

let make ?(status = `OK) ?(headers = []) content_type body : Response.t =
  { status = code_of_status status; content_type; headers; cookies = []; body }

let respond ?status ?headers ?(content_type = "") text = make ?status ?headers content_type (Whole text)
let respond_text ?status ?headers text = make ?status ?headers "text/plain; charset=utf-8" (Whole text)
let respond_html ?status ?headers text = make ?status ?headers "text/html; charset=utf-8" (Whole text)
let respond_json ?status ?headers text = make ?status ?headers "application/json" (Whole text)
let respond_file ?headers ?(content_type = "") path = make ?headers content_type (File path)

let respond_stream ?status ?headers ?(content_type = "") ?(size = -1) write =
  make ?status ?headers content_type (Stream (size, fun give flush -> write ~flush give))

let respond_events ?headers send = make ?headers "" (Events send)
let redirect ?(status = `See_other) location = make ~status ~headers:[ ("Location", location) ] "" (Whole "")
let websocket ?(origins = "") body = make "" (Socket (origins, body))

(* ---- Serving ---- *)

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

(* ---- Routes ---- *)

module Route = struct
  type ('f, 'r) path =
    | End : ('r, 'r) path
    | Text : string * ('f, 'r) path -> ('f, 'r) path
    | Part : (string -> 'a option) * ('a -> string) * ('f, 'r) path -> ('a -> 'f, 'r) path
    | Rest : (string list -> 'r, 'r) path

  let root = End
  let s text = Text (text, End)
  let part of_text to_text = Part (of_text, to_text, End)
  let string = Part (Option.some, Fun.id, End)
  let int = Part (int_of_string_opt, string_of_int, End)
  let float = Part (float_of_string_opt, string_of_float, End)
  let rest = Rest

  let rec ( / ) : type f g r. (f, g) path -> (g, r) path -> (f, r) path =
   fun first second ->
    match first with
    | End -> second
    | Text (text, path) -> Text (text, path / second)
    | Part (of_text, to_text, path) -> Part (of_text, to_text, path / second)
    | Rest -> invalid_arg "Route: `rest` is the last part"

  let rec apply : type f r. (f, r) path -> f -> string list -> r option =
   fun path f parts ->
    match (path, parts) with
    | End, [] -> Some f
    | Text (text, path), part :: parts when text = part -> apply path f parts
    | Part (of_text, _, path), part :: parts -> (
        match of_text part with Some value -> apply path (f value) parts | None -> None)
    | Rest, parts -> Some (f parts)
    | _ -> None

  let rec link : type f. string -> (f, string) path -> f =
   fun before path ->
    match path with
    | End -> if before = "" then "/" else before
    | Text (text, path) -> link (before ^ "/" ^ encode text) path
    | Part (_, to_text, path) -> fun value -> link (before ^ "/" ^ encode (to_text value)) path
    | Rest -> fun parts -> List.fold_left (fun before part -> before ^ "/" ^ encode part) before parts

  let link path = link "" path

  type t = { meth : string; handle : string list -> handler option }

  let make meth path f = { meth; handle = (fun parts -> apply path f parts) }
  let get path f = make "GET" path f
  let post path f = make "POST" path f
  let put path f = make "PUT" path f
  let patch path f = make "PATCH" path f
  let delete path f = make "DELETE" path f

  let matches meth route = route.meth = meth || (meth = "HEAD" && route.meth = "GET")

  (* The first route that fits; 405 if one does but for its method; 404. *)
  let router ?(otherwise = fun _ -> respond_text ~status:`Not_found "not found\n") routes request =
    let path = Request.path request and meth = C.meth (Request.pointer request) in
    let rec find allowed = function
      | [] ->
          if allowed = [] then otherwise request
          else
            let allow = String.concat ", " (List.sort_uniq compare allowed) in
            if meth = "OPTIONS" then respond ~status:`No_content ~headers:[ ("Allow", allow) ] ""
            else respond_text ~status:`Method_not_allowed ~headers:[ ("Allow", allow) ] "method not allowed\n"
      | route :: routes -> (
          match route.handle path with
          | Some handler when matches meth route -> handler request
          | Some _ -> find (route.meth :: allowed) routes
          | None -> find allowed routes)
    in
    find [] routes

  let scope prefix (middleware : middleware) routes =
    let parts = String.split_on_char '/' prefix |> List.filter (fun part -> part <> "") in
    let rec strip parts path =
      match (parts, path) with
      | [], path -> Some path
      | part :: parts, first :: path when part = first -> strip parts path
      | _ -> None
    in
    List.map
      (fun route ->
        {
          route with
          handle = (fun path -> Option.bind (strip parts path) (fun path -> Option.map middleware (route.handle path)));
        })
      routes
end

let router = Route.router

(* ---- Sessions ---- *)

module Session = struct
  type t = { id : string; token : string; mutable fields : headers; mutable used : float; mutable ended : bool }

  type _ Effect.t += Current : t Effect.t

  let current () = Effect.perform Current
  let get name = List.assoc_opt name (current ()).fields

  let put name value =
    let it = current () in
    it.fields <- (name, value) :: List.remove_assoc name it.fields

  let remove name =
    let it = current () in
    it.fields <- List.remove_assoc name it.fields

  let finish () = (current ()).ended <- true

  let random () =
    let view = Cstruct.create 16 in
    Flow.read_exact secure_random view;
    String.concat "" (List.init 16 (fun i -> Printf.sprintf "%02x" (Cstruct.get_uint8 view i)))

  let csrf_token () = (current ()).token

  let check_csrf request =
    let given =
      match Request.header request "X-CSRF-Token" with
      | Some token -> Some token
      | None -> Request.field request "csrf"
    in
    if given <> Some (current ()).token then fail `Forbidden "the form is not from this site, or too old\n"

  let middleware ?(cookie = "session") ?(lifetime = 14. *. 86400.) ?(for_http = false) () : middleware =
    let sessions : (string, t) Hashtbl.t = Hashtbl.create 64 in
    let next_cleaning = ref 0. in
    let clean now =
      if now > !next_cleaning then (
        next_cleaning := now +. 60.;
        Hashtbl.filter_map_inplace (fun _ it -> if it.used +. lifetime < now then None else Some it) sessions)
    in
    fun next request ->
      let now = Time.now clock in
      clean now;
      let known = Option.bind (Request.cookie request cookie) (Hashtbl.find_opt sessions) in
      let session =
        match known with
        | Some it ->
            it.used <- now;
            it
        | None -> { id = random (); token = random (); fields = []; used = now; ended = false }
      in
      let response =
        Effect.Deep.try_with next request
          {
            effc =
              (fun (type a) (effect : a Effect.t) ->
                match effect with
                | Current -> Some (fun (k : (a, _) Effect.Deep.continuation) -> Effect.Deep.continue k session)
                | _ -> None);
          }
      in
      if session.ended then (
        Hashtbl.remove sessions session.id;
        Response.without_cookie cookie response)
      else if known = None then (
        Hashtbl.replace sessions session.id session;
        Response.with_cookie ~for_http cookie session.id response)
      else response
end

(* ---- The client ---- *)

module Client = struct
  type t = client_pointer
  type reply = { status : int; headers : headers; body : string }

  exception Failed of string

  let create ?(kept = 0) ?(connections = 0) ?(redirects = 0) ?(body_limit = 0) ?(cookies = false) () =
    let client = C.client (kept, connections, redirects, body_limit, cookies) in
    if (client :> int) = 0 then raise Out_of_memory;
    client

  let shared = ref None

  (* (A lazy value would stay a failure for good if a signal handler raised here.) *)
  let shared_client () =
    match !shared with
    | Some client -> client
    | None ->
        let client = create () in
        shared := Some client;
        client

  let ask ?client ?(meth = "") ?(headers = []) ?(content_type = "") ?(body = "") ?(protocols = "") url kind take =
    let client = match client with Some client -> client | None -> shared_client () in
    stoppable "an answer"
      (C.ask client (meth, url, content_type, body, Array.of_list headers, protocols, kind))
      (fun code ->
        if code = 0 then take ()
        else
          let why = match C.taken_failure () with "" -> Loop.error_text code | text -> text in
          raise (Failed (url ^ ": " ^ why)))

  let take_reply () =
    let status, headers, body = C.taken_reply () in
    { status; headers = List.rev headers; body }

  let request ?client ?meth ?headers ?content_type ?body url =
    ask ?client ?meth ?headers ?content_type ?body url 0 take_reply

  let stream ?client ?meth ?headers ?content_type ?body url f =
    let taken : reply_pointer ref = ref (Obj.magic 0) and reads = ref true in
    let read (view : Cstruct.t) =
      if not !reads then invalid_arg "the function that got this reply has returned";
      let got =
        stoppable "bytes of an answer" (C.reply_read !taken view.buffer view.off view.len) (fun code ->
            ignore (Sys.opaque_identity view.buffer);
            code)
      in
      if got < 0 then raise (Failed (url ^ ": " ^ Loop.error_text got));
      if got = 0 then raise End_of_file;
      got
    in
    Fun.protect
      ~finally:(fun () ->
        reads := false;
        if (!taken :> int) <> 0 then C.reply_free !taken)
      (fun () ->
        let reply =
          ask ?client ?meth ?headers ?content_type ?body url 1 (fun () ->
              let reply = take_reply () in
              taken := C.taken_reply_object ();
              reply)
        in
        f reply (Flow.source_of_read read))

  let websocket ?client ?headers ?(protocols = []) url f =
    let taken : socket_pointer ref = ref (Obj.magic 0) in
    let it : Websocket.t = { socket = None; of_client = true; sending = 0; idle = Fibers.Waiters.create () } in
    Fun.protect
      ~finally:(fun () ->
        Websocket.finish it;
        if (!taken :> int) <> 0 then C.client_socket_free !taken)
      (fun () ->
        ask ?client ?headers ~protocols:(String.concat ", " protocols) url 2 (fun () ->
            taken := C.taken_socket ());
        it.socket <- Some !taken;
        f it)

  let get ?client ?headers url = request ?client ?headers url

  let post ?client ?headers ?(content_type = "application/octet-stream") ~body url =
    request ?client ~meth:"POST" ?headers ~content_type ~body url

  let header reply name = find_header reply.headers name

  let () =
    Printexc.register_printer (function
      | Failed why -> Some ("Haft_http.Client.Failed: " ^ why)
      | _ -> None)
end
