(* SPDX-License-Identifier: MIT *)
(* The functions of the C part (http_stubs.c, client_stubs.c), and its pointers, as integers; the modules of haft-io
   that all others use. *)
open Haft_io
module Loop = Haft_io__loop
module Fibers = Haft_io__fibers

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
