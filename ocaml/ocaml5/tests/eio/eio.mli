(* SPDX-License-Identifier: MIT *)
(* The part of Eio 1.3 that the page "Eio on OCaml 4.14" uses, with the types of Eio's manual. *)

module Resource : sig
  type -'tags t
end

module Switch : sig
  type t

  val run : ?name:string -> (t -> 'a) -> 'a
end

module Promise : sig
  type !'a t
end

module Domain_manager : sig
  type ty = [ `Domain_mgr ]
  type 'a t = ([> ty ] as 'a) Resource.t
end

module Std : sig
  module Switch = Switch
  module Promise = Promise

  type 'a r = 'a Resource.t

  val traceln : ?__POS__:string * int * int * int -> ('a, Format.formatter, unit, unit) format4 -> 'a
end

module Flow : sig
  type source_ty = [ `R | `Flow ]
  type 'a source = ([> source_ty ] as 'a) Resource.t
  type sink_ty = [ `W | `Flow ]
  type 'a sink = ([> sink_ty ] as 'a) Resource.t

  val copy_string : string -> _ sink -> unit
end

module Buf_read : sig
  type t
  type 'a parser = t -> 'a

  val of_flow : ?initial_size:int -> max_size:int -> _ Flow.source -> t
  val line : string parser
end

module Net : sig
  module Ipaddr : sig
    type 'a t = private string
    type v4v6 = [ `V4 | `V6 ] t

    module V4 : sig
      val loopback : [> `V4 ] t
    end
  end

  module Sockaddr : sig
    type stream = [ `Unix of string | `Tcp of Ipaddr.v4v6 * int ]
  end

  type socket_ty = [ `Socket | `Close ]

  type 'tag stream_socket_ty =
    [ `Stream | `Platform of 'tag | `Shutdown | socket_ty | Flow.source_ty | Flow.sink_ty ]

  type 'a stream_socket = 'a Resource.t constraint 'a = [> [> `Generic ] stream_socket_ty ]
  type 'tag listening_socket_ty = [ `Accept | `Platform of 'tag | socket_ty ]
  type 'a connection_handler = 'a stream_socket -> Sockaddr.stream -> unit
  type 'tag ty = [ `Network | `Platform of 'tag ]

  val listen :
    ?reuse_addr:bool ->
    ?reuse_port:bool ->
    backlog:int ->
    sw:Switch.t ->
    [> 'tag ty ] Resource.t ->
    Sockaddr.stream ->
    'tag listening_socket_ty Resource.t

  val run_server :
    ?max_connections:int ->
    ?additional_domains:_ Domain_manager.t * int ->
    ?stop:'a Promise.t ->
    on_error:(exn -> unit) ->
    [> 'tag listening_socket_ty ] Resource.t ->
    [< 'tag stream_socket_ty ] connection_handler ->
    'a
end
