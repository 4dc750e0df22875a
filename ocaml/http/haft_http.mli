(* SPDX-License-Identifier: MIT *)
(** Web services and their clients in direct style, on libhaft-http: its parser and limits, TLS, HTTP/2, WebSocket,
    compression, static files and counters.

    {[
      open Haft_io

      let () = run @@ fun () ->
        Http.serve ~port:8080 @@ fun request ->
          match Http.Request.path request with
          | ["hello"; name] -> Http.respond_text ("Hello, " ^ name ^ "\n")
          | _ -> Http.respond ~status:`Not_found ""
    ]}

    A handler is a function from a request to a response, called in a task of its own for each request: it may wait as
    any task of {!Haft_io}. Middleware is a function around a handler, and may handle the effects that it performs. *)

open Haft_io

(** {1 Requests} *)

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

val code_of_status : status -> int
(** The code in HTTP: 200 to 599. *)

exception Error of status * string
(** A handler that raises it answers with this status and text. Any other exception is logged with its backtrace, and
    the client gets status 500. *)

val fail : status -> string -> 'a
(** Raises {!Error}. *)

type headers = (string * string) list

(** A request may be used until its handler has returned, and functions that read its body by the handler's own task
    only. *)
module Request : sig
  type t

  val meth : t -> [ `GET | `HEAD | `POST | `PUT | `PATCH | `DELETE | `OPTIONS | `Other of string ]
  (** Its method. *)

  val target : t -> string
  (** The target as it came: ["/a%20b?c=d"]. *)

  val path : t -> string list
  (** Its parts, decoded: [["a b"]]. [[]] for ["/"]; a slash at the end is a part [""]. *)

  val version : t -> string
  (** ["HTTP/1.1"], ["HTTP/2.0"]. *)

  val query : t -> string -> string option
  (** The first parameter of this name, decoded. *)

  val queries : t -> (string * string) list
  (** All parameters, in their order. *)

  val header : t -> string -> string option
  (** The case of the name does not matter. Several fields of one name are joined by [", "]. *)

  val headers : t -> headers
  (** All fields, in their order. *)

  val cookie : t -> string -> string option
  (** The cookie of this name. *)

  val peer : t -> string
  (** The address of the peer; [""]: it has none. *)

  val client_address : t -> string
  (** That of the client, if the peer is a proxy that is trusted. *)

  val limit_body : t -> int -> unit
  (** Another limit than {!Limits.t} has, for this request. *)

  val text : t -> string
  (** Reads the body. @raise Error (413, 408, 400) if it is too large, too slow, or none. If the client has gone, this
      and the functions below that read the body raise an exception that ends the handler, and is not logged. *)

  val body : t -> Flow.source_ty Resource.t
  (** A flow that reads the body. *)

  val form : t -> (string * string) list
  (** Reads the fields of a body of the type application/x-www-form-urlencoded; none for other types. *)

  val field : t -> string -> string option
  (** Reads the first field of this name in the form. *)

  val parse : t -> (string -> 'a) -> 'a
  (** Reads the body and gives it to the function: [Request.parse request Yojson.Safe.from_string]. An exception of the
      function, but for {!Error}, gives status 400 with the exception's text. *)

  type part = {
    name : string;  (** of the form's field *)
    file_name : string option;
        (** The client's name of the file: any bytes, also ["../"]; never use it as a path. [None]: it is no file. *)
    content_type : string option;  (** as the client has it *)
    content : Flow.source_ty Resource.t;  (** while the function runs *)
  }

  val iter_parts : t -> (part -> unit) -> unit
  (** Reads the parts of a body of the type multipart/form-data as they come, and calls the function for each; what it
      leaves of a part is skipped. The body has the limit of {!Limits.t}, or of {!limit_body}.
      @raise Error (415, 413, 408, 400) if it has another type, is too large, too slow, or malformed. *)
end

(** {1 Responses} *)

module Response : sig
  type t

  val status : t -> int
  (** Its code. *)

  val headers : t -> headers
  (** The fields that were given. *)

  val with_header : string -> string -> t -> t
  (** With one more field. *)

  val with_status : status -> t -> t
  (** With another status. *)

  val body_text : t -> string option
  (** If it was given whole. *)

  val with_cookie :
    ?path:string ->
    ?domain:string ->
    ?max_age:int ->
    ?for_scripts:bool ->
    ?for_http:bool ->
    ?same_site:[ `Lax | `Strict | `None ] ->
    string ->
    string ->
    t ->
    t
  (** [with_cookie name value response]. The cookie is Secure unless it is [for_http], and HttpOnly unless it is
      [for_scripts]. [max_age] is in seconds; 0: until the browser ends. *)

  val without_cookie : ?path:string -> ?domain:string -> string -> t -> t
  (** Removes the cookie; path and domain are those with which it was set. *)
end

val respond : ?status:status -> ?headers:headers -> ?content_type:string -> string -> Response.t
(** An answer with this body, of status 200 unless [status] is given. *)

val respond_text : ?status:status -> ?headers:headers -> string -> Response.t
(** The same, of the type text/plain. *)

val respond_html : ?status:status -> ?headers:headers -> string -> Response.t
(** An answer of the type text/html. *)

val respond_json : ?status:status -> ?headers:headers -> string -> Response.t
(** An answer of the type application/json, with this text. *)

val respond_file : ?headers:headers -> ?content_type:string -> string -> Response.t
(** The file of this path, which no client should choose: see [files] of {!serve}. 404 if there is none. *)

val respond_stream :
  ?status:status ->
  ?headers:headers ->
  ?content_type:string ->
  ?size:int ->
  (flush:(unit -> unit) -> (string -> unit) -> unit) ->
  Response.t
(** [respond_stream (fun ~flush write -> ...)]: a body piece by piece. The pieces are gathered; [flush ()] sends them.
    If the client has gone, both raise an exception that ends the handler, and is not logged. *)

val respond_events : ?headers:headers -> ((?kind:string -> ?id:string -> string -> unit) -> unit) -> Response.t
(** [respond_events (fun send -> ...)]: server-sent events, each sent at once. *)

val redirect : ?status:status -> string -> Response.t
(** An answer that sends the client to this location, of status 303 unless [status] is given. *)

(** {1 Serving} *)

type handler = Request.t -> Response.t
type middleware = handler -> handler

(** Limits on the sizes and times of a client's requests, in bytes and seconds; 0: the default of libhaft-http, as in
    {!Limits.default}. *)
module Limits : sig
  type t = {
    body : int;  (** 1 MiB *)
    connections : int;  (** at a time: 10000 *)
    connections_of_client : int;  (** from one address: 1000 *)
    idle_time : float;  (** between two requests: 75 s *)
    head_time : float;  (** for a head: 10 s *)
    body_time : float;  (** without progress of a body: 10 s *)
    write_time : float;  (** without progress of an answer: 30 s *)
    grace : float;  (** for requests that have come when the server stops: 10 s *)
  }

  val default : t
  (** All 0. *)
end

val serve :
  ?host:string ->
  ?port:int ->
  ?unix_path:string ->
  ?backlog:int ->
  ?limits:Limits.t ->
  ?tls:string * string ->
  ?files:(string * string) list ->
  ?counters:string ->
  ?debug:string ->
  ?compress:bool ->
  ?access_log:[ `Common | `Combined | `Json ] ->
  ?trust_proxies:string * string ->
  ?stop:unit Promise.t ->
  ?signals:bool ->
  ?on_listening:(int -> unit) ->
  handler ->
  unit
(** Listens at [port] (8080; 0: the system chooses) of [host] (all addresses), or at the Unix socket [unix_path], and
    serves until [stop] is resolved, or SIGINT or SIGTERM comes: then it accepts no more, closes idle connections, and
    lets requests that have come go on for [grace]. A second signal, or a cancel, cancels the handlers,
    also where they wait for bytes of a body or a WebSocket, for a client that does not read, or in functions of [Unix]
    (package [haft-posix]).

    - [tls]: files of a certificate's chain and key, in PEM format. HTTP/2 is spoken, too.
    - [files]: [("/static", "folder")] answers for paths below the prefix with the files below the folder.
    - [counters]: the path of a page of counters for Prometheus.
    - [debug]: below this prefix ["/tasks"] has the tasks of C, for the operator only. {!Haft_io.dump} has OCaml's.
    - [compress]: answers are compressed (zstd, Brotli, gzip) for clients that ask for it; [true].
    - [access_log]: a line on standard output for each request.
    - [trust_proxies]: networks, and the field by which proxies there name their client: [("10.0.0.0/8",
      "X-Forwarded-For")].
    - [signals]: [false] leaves SIGINT and SIGTERM alone.
    - [on_listening] is called with the port when connections can come.

    @raise Failure if it cannot listen. *)

(** {1 Routes} *)

(** Paths with types: in [get (s "hello" / string / int) f] the function [f] gets a [string] and an [int], and returns a
    handler. *)
module Route : sig
  type ('f, 'r) path
  (** A path for functions of the type ['f], which return an ['r] when they have got the path's parts. *)

  val root : ('r, 'r) path
  (** No parts: the path ["/"], or that of a scope. *)

  val s : string -> ('r, 'r) path
  (** This text. *)

  val string : (string -> 'r, 'r) path
  (** Any one part. *)

  val int : (int -> 'r, 'r) path
  (** A part that is an integer. *)

  val float : (float -> 'r, 'r) path
  (** A part that is a number. *)

  val part : (string -> 'a option) -> ('a -> string) -> ('a -> 'r, 'r) path
  (** A part of a type of your own: [None] fits no path. *)

  val rest : (string list -> 'r, 'r) path
  (** All further parts. *)

  val ( / ) : ('f, 'g) path -> ('g, 'r) path -> ('f, 'r) path
  (** One behind the other. *)

  val link : ('f, string) path -> 'f
  (** [link (s "hello" / string) "you"] is ["/hello/you"]. A path that serves a route and a link is a function:
      [let hello () = s "hello" / string]. *)

  type t

  val get : ('f, handler) path -> 'f -> t
  (** Also HEAD. *)

  val post : ('f, handler) path -> 'f -> t
  (** For POST. *)

  val put : ('f, handler) path -> 'f -> t
  (** For PUT. *)

  val patch : ('f, handler) path -> 'f -> t
  (** For PATCH. *)

  val delete : ('f, handler) path -> 'f -> t
  (** For DELETE. *)

  val scope : string -> middleware -> t list -> t list
  (** Below a prefix, in middleware of their own. *)

  val router : ?otherwise:handler -> t list -> handler
  (** The first that fits. 405 if one does but for its method; [otherwise], by default 404, if none does. *)
end

val router : ?otherwise:handler -> Route.t list -> handler
(** {!Route.router}. *)

(** {1 Sessions} *)

(** Values remembered for a browser, in memory, by a cookie with a random name. *)
module Session : sig
  val middleware : ?cookie:string -> ?lifetime:float -> ?for_http:bool -> unit -> middleware
  (** Gives the requests inside of it a session. [lifetime]: in seconds, since its last request (two weeks).
      [for_http]: the cookie is sent without TLS, too. *)

  val get : string -> string option
  (** The value remembered under this name. *)

  val put : string -> string -> unit
  (** Remembers it. *)

  val remove : string -> unit
  (** Forgets it. *)

  val finish : unit -> unit
  (** Forgets the session: for a logout. *)

  val csrf_token : unit -> string
  (** For a field ["csrf"] of forms. *)

  val check_csrf : Request.t -> unit
  (** Reads the form. @raise Error (403) if neither its field ["csrf"] nor the field [X-CSRF-Token] of the head has the
      session's token. *)
end

(** {1 WebSocket} *)

module Websocket : sig
  type t
  type message = Text of string | Binary of string

  exception Closed
  (** The connection is closed, in whatever way. A handler that raises it ends well. *)

  val receive : t -> message
  (** By the handler's own task. It also answers pings, so the task should be here most of the time. @raise Closed *)

  val iter : (message -> unit) -> t -> unit
  (** Calls the function for each message until the connection is closed. *)

  val send : t -> message -> unit
  (** Any task may send. @raise Closed *)

  val send_text : t -> string -> unit
  (** Sends a text. @raise Closed *)

  val close : ?code:int -> ?reason:string -> t -> unit
  (** Closes it with a code (1000) and a reason. Does nothing if it is closed. *)
end

val websocket : ?origins:string -> (Websocket.t -> unit) -> Response.t
(** Answers a request for a WebSocket, and calls the function with it; it is closed when that returns. [origins]: whose
    pages may connect, with commas between, ["*"] for all; by default those of the host that the request names. *)

(** {1 The client} *)

module Client : sig
  type t
  (** Keeps connections to the servers that it has asked. *)

  type reply = { status : int; headers : headers; body : string }

  exception Failed of string
  (** Why there is no answer. *)

  val create :
    ?kept:int -> ?connections:int -> ?redirects:int -> ?body_limit:int -> ?cookies:bool -> unit -> t
  (** [kept]: connections of a server that wait for a question (8). [connections]: at most so many to a server. At most
      [redirects] are followed (10; negative: none). [body_limit]: bytes (16 MiB). [cookies]: cookies are kept and
      sent. It lives as long as the process. *)

  val get : ?client:t -> ?headers:headers -> string -> reply
  (** Asks for this URL, by a client that the program shares unless one is given. {!Haft_io.Time.with_timeout}
      limits how long it takes. @raise Failed *)

  val post : ?client:t -> ?headers:headers -> ?content_type:string -> body:string -> string -> reply
  (** Sends this body. @raise Failed *)

  val request :
    ?client:t -> ?meth:string -> ?headers:headers -> ?content_type:string -> ?body:string -> string -> reply
  (** Any question; GET without a body, POST with one. @raise Failed *)

  val header : reply -> string -> string option
  (** The field of this name; its case does not matter. *)

  val stream :
    ?client:t ->
    ?meth:string ->
    ?headers:headers ->
    ?content_type:string ->
    ?body:string ->
    string ->
    (reply -> Flow.source_ty Resource.t -> 'a) ->
    'a
  (** Calls the function with the head of the answer, whose [body] is [""], and a flow that reads the body as it comes,
      without a limit of its size. The connection is kept if the function has read it to its end.
      @raise Failed also where the flow is read. *)

  val websocket :
    ?client:t -> ?headers:headers -> ?protocols:string list -> string -> (Websocket.t -> 'a) -> 'a
  (** Connects to the WebSocket of this URL (ws, wss, http, https), calls the function with it, and closes the
      connection, without a close frame if {!Websocket.close} was not called. [protocols] are offered. One task at a
      time receives, any may send. @raise Failed if the server does not agree. *)
end

(** {1 Texts of URLs} *)

val encode : string -> string
(** [%]-encodes what is not unreserved. *)

val decode : string -> string
(** The text of a [%]-encoded one. *)
