(* SPDX-License-Identifier: MIT *)
(* The functions in C for descriptors, files and processes. Results below zero are errors. *)
open Haft_io__loop

external read : int -> memory -> int -> int -> int = "haft_ocaml_io_read"
external write : int -> memory -> int -> int -> int = "haft_ocaml_io_write"
external accept : int -> int = "haft_ocaml_io_accept"
external close : int -> int = "haft_ocaml_io_close"
external shutdown : int -> int -> int = "haft_ocaml_io_shutdown"
external listen_tcp : string -> int -> int -> bool -> int = "haft_ocaml_io_listen_tcp"
external listen_unix : string -> int -> int = "haft_ocaml_io_listen_unix"
external port : int -> int = "haft_ocaml_io_port"
external socket : int -> bool -> int = "haft_ocaml_io_socket"
external bind : int -> Unix.sockaddr -> int = "haft_ocaml_io_bind"
external peer : int -> Unix.sockaddr = "haft_ocaml_io_peer"
external send_to : int -> memory -> int -> Unix.sockaddr -> int = "haft_ocaml_io_send_to"
external is_file : int -> bool = "haft_ocaml_io_is_file"
external random : memory -> int -> int -> int = "haft_ocaml_io_random"
external error : int -> Unix.error = "haft_ocaml_io_error"
external refusal : int -> string = "haft_ocaml_io_refusal"

(* These return an integer, the error, or a pair. *)
external socket_pair_or_error : bool -> Obj.t = "haft_ocaml_io_socket_pair"
external pipe_or_error : unit -> Obj.t = "haft_ocaml_io_pipe"
external receive_from_or_error : int -> memory -> int -> int -> Obj.t = "haft_ocaml_io_receive_from"

let pair_or_error result : ('a * 'b, int) result =
  if Obj.is_int result then Error (Obj.obj result) else Ok (Obj.obj result)
let eagain = -11
let enoent = -2

(* C would take what is before it for the whole. *)
let has_nul text = String.contains text '\000'

(* In the order of call_stubs.c. *)
type kind =
  | Open | Read | Write | Read_at | Write_at | Sync | List | Make | Remove | Rename | Status | Resolve | Connect | Start
  | Wait_child

type call = {
  kind : kind;
  descriptor : int;
  mode : int;
  offset : int;
  path : string;
  other : string;
  memory : memory;
  at : int;
  size : int;
}

let no_memory = Bigarray.Array1.create Bigarray.char Bigarray.c_layout 0

let call ?(descriptor = 0) ?(mode = 0) ?(offset = 0) ?(path = "") ?(other = "") ?(memory = no_memory) ?(at = 0)
    ?(size = 0) kind =
  { kind; descriptor; mode; offset; path; other; memory; at; size }

external begin_call : call -> int -> int = "haft_ocaml_io_call"
external connect : int -> Unix.sockaddr -> int -> int = "haft_ocaml_io_connect"
external start : string array * string array * string * int array -> int -> int = "haft_ocaml_io_start"
external taken_names : unit -> string array = "haft_ocaml_io_taken_names"
external taken_addresses : unit -> (Unix.sockaddr * int) list = "haft_ocaml_io_taken_addresses"
external taken_status : unit -> int * int * int * int * int * int * int * int * float * float * float
  = "haft_ocaml_io_taken_status"
external taken_ended : unit -> int = "haft_ocaml_io_taken_ended"

(* The library's words for a mistake of the program stand where the argument would. *)
let unix_error code what argument =
  let words = refusal code in
  Unix.Unix_error (error code, what, if words = "" then argument else words)

(* Does the call and returns [take code], or raises what that does. The memory lives until then. *)
let do_call what call take =
  if has_nul call.path || has_nul call.other then take enoent
  else
    work what
      (fun code ->
        ignore (Sys.opaque_identity call.memory);
        take code)
      (begin_call call)
