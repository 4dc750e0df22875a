(* SPDX-License-Identifier: MIT *)
(** Tasks and I/O in direct style, on libhaft-io: for native OCaml 4.13 and 4.14.

    {[
      open Haft_io

      let () =
        run (fun () ->
            Fiber.both
              (fun () -> Time.sleep clock 0.1; print_endline "second")
              (fun () -> print_endline "first"))
    ]}

    Names, types and meaning are those of Eio 1.x, where Eio has them: so a program moves to Eio by naming another
    library. docs/ocaml-io.md has a table of what differs.

    A task (a fiber) that waits is a continuation of some hundred bytes. All tasks of a process run on one thread, in
    one loop with the tasks of C; while the loop sleeps, other threads run. Unless said otherwise, the functions here
    are for tasks: elsewhere they raise {!Effect.Unhandled}. *)

(** {1 Running} *)

val run : ?backend:string -> ?dump_signal:int -> (unit -> 'a) -> 'a
(** [run main] calls [main] as the first task, and returns, or raises, what it does. A process has one run at a time.
    What the run has still under way for [main], such as a wait for a descriptor that nobody closed, ends with it. If a
    signal handler raises an exception while the loop sleeps, all tasks are cancelled and [run] raises it.

    [backend] is ["epoll"] or ["io_uring"]; without it, [HAFT_IO_BACKEND] in the environment decides, or else the best
    that the system has. On the signal [dump_signal] (of [Sys]) the run writes the tasks of C to standard error.

    @raise Invalid_argument if the process has a run.
    @raise Failure if the system refuses descriptors or memory. *)

val simulate :
  ?short_counts:bool -> ?faults_one_in:int -> ?switches_one_in:int -> seed:int -> (unit -> 'a) -> 'a
(** [simulate ~seed main] is {!run} for tests, and goes the same way for the same seed. The seed decides which task
    goes on. Time is virtual: it stands still while a task can go on, and then jumps to the next timer. Sockets and
    files are those of the simulation. With [faults_one_in] one in so many operations on them fails; with
    [short_counts] they read and write less than asked; with [switches_one_in] the tasks of C take turns at one in so
    many operations. {!run_in_systhread}, processes and functions of [Unix] are the system's, and not repeated.

    @raise Failure ["... Resource deadlock avoided"] if no task can ever go on. *)

val dump : unit -> string
(** What each task of the run waits for, by the contexts of their cancels. If [Printexc.record_backtrace] was on when
    the run began, the calls that have led there, the innermost first; those of a task that has called a function of C
    which waits are not shown. A handler of [haft-http] is a task, so requests are there, too. Signal handlers may call
    it. *)

val run_in_systhread : ?label:string -> (unit -> 'a) -> 'a
(** [run_in_systhread f] calls [f] on a thread of the system, and waits for it; meanwhile other tasks run. For functions
    that block in a blocking section, such as those of [Unix]. [f] is no task. No cancel ends the wait. *)

val await_readable : Unix.file_descr -> unit
(** Waits until the descriptor, which functions of [Unix] and others use and close, can be read without blocking. When
    it has returned or raised, nothing refers to the descriptor. @raise Unix.Unix_error *)

val await_writable : Unix.file_descr -> unit

val as_task : (unit -> 'a) -> 'a
(** For OCaml code that a task of C calls back (one of [haft_io_spawn], in C, in the same run): [as_task f] calls [f] as
    a task of OCaml, on the stack of the task of C, which waits while [f] does. The function in C has called
    [haft_io_return_cancels(true)], and calls OCaml code by [caml_callback_exn].

    @raise Invalid_argument if there is no run. *)

(** {1 Failures and cancels} *)

module Exn : sig
  type with_bt = exn * Printexc.raw_backtrace

  type err = ..
  (** What went wrong, by kind: such as [Net.E]. *)

  type context
  (** Where it went wrong: texts that were added on the way out. *)

  exception Io of err * context

  exception Multiple of with_bt list
  (** Several tasks have failed. *)

  type err += X of exn  (** An error of another kind. *)

  val create : err -> exn
  val add_context : exn -> ('a, Format.formatter, unit, exn) format4 -> 'a
  val reraise_with_context : exn -> Printexc.raw_backtrace -> ('a, Format.formatter, unit, 'b) format4 -> 'a

  val combine : with_bt -> with_bt -> with_bt
  (** One failure that stands for two. A cancel beside a failure is left out. *)

  val empty_backtrace : Printexc.raw_backtrace
  val pp : Format.formatter -> exn -> unit
  val register_pp : (Format.formatter -> err -> bool) -> unit
end

exception Io of Exn.err * Exn.context

(** Contexts of cancels form a tree. A cancel of one reaches all tasks in it and in those below, except protected ones:
    where a task waits, or next waits, its wait raises [Cancelled]. *)
module Cancel : sig
  type t

  exception Cancelled of exn
  (** Has the reason of the cancel. Let it pass: code that catches it has to raise it again. *)

  val sub : (t -> 'a) -> 'a
  (** Calls the function in a new context below the task's. *)

  val protect : (unit -> 'a) -> 'a
  (** Calls the function where no cancel from outside reaches. If one has come meanwhile, it is raised afterwards. *)

  val check : t -> unit
  (** @raise Cancelled if the context was cancelled. *)

  val get_error : t -> exn option
  val cancel : t -> exn -> unit

  val dump : Format.formatter -> t -> unit
end

(** A switch owns tasks and resources: its function returns when all of them have ended and been released. *)
module Switch : sig
  type t

  val run : ?name:string -> (t -> 'a) -> 'a
  (** [run f] calls [f] with a new switch and waits for the tasks that were forked in it. If [f] or one of them raises,
      the others are cancelled, and [run] raises that, or {!Exn.Multiple}. Then what was given to {!on_release} is
      called, the last first. *)

  val run_protected : ?name:string -> (t -> 'a) -> 'a
  (** As {!run}; no cancel from outside reaches it. *)

  val check : t -> unit
  (** @raise Cancel.Cancelled if the switch has failed. @raise Invalid_argument if it has ended. *)

  val get_error : t -> exn option
  val fail : ?bt:Printexc.raw_backtrace -> t -> exn -> unit
  (** Cancels the tasks of the switch; {!run} then raises the exception. *)

  val on_release : t -> (unit -> unit) -> unit
  (** The function is called when the switch ends, where no cancel reaches. If the switch has ended it is called at
      once, and [Invalid_argument] is raised. *)

  type hook

  val null_hook : hook
  val on_release_cancellable : t -> (unit -> unit) -> hook
  val remove_hook : hook -> unit
  val try_remove_hook : hook -> bool
  (** Whether this call has removed it. *)

  val dump : Format.formatter -> t -> unit
end

(** {1 Tasks} *)

(** Values that are set once. *)
module Promise : sig
  type !'a t
  type 'a u
  (** The end that sets it. *)

  type 'a or_exn = ('a, exn) result t

  val create : ?label:string -> unit -> 'a t * 'a u
  val create_resolved : 'a -> 'a t
  val await : 'a t -> 'a
  val await_exn : 'a or_exn -> 'a

  val resolve : 'a u -> 'a -> unit
  (** Any thread may call it. @raise Invalid_argument if it was resolved before. *)

  val try_resolve : 'a u -> 'a -> bool
  val resolve_ok : ('a, 'b) result u -> 'a -> unit
  val resolve_error : ('a, 'b) result u -> 'b -> unit
  val peek : 'a t -> 'a option
  val is_resolved : 'a t -> bool
  val id : 'a t -> int
end

module Fiber : sig
  val both : (unit -> unit) -> (unit -> unit) -> unit
  (** Calls both at a time, the first one first, and waits for both. If one raises, the other is cancelled. *)

  val pair : (unit -> 'a) -> (unit -> 'b) -> 'a * 'b
  val all : (unit -> unit) list -> unit

  val first : ?combine:('a -> 'a -> 'a) -> (unit -> 'a) -> (unit -> 'a) -> 'a
  (** The result of the one that returns first; the other is cancelled, and waited for. If that returns all the same,
      [combine] makes one of the two results, by default the first. *)

  val any : ?combine:('a -> 'a -> 'a) -> (unit -> 'a) list -> 'a

  val n_any : (unit -> 'a) list -> 'a list
  (** As {!any}; the results of all that have returned, in their order. *)

  val await_cancel : unit -> 'a
  (** Waits until the task is cancelled. *)

  val fork : sw:Switch.t -> (unit -> unit) -> unit
  (** Calls the function in a task of the switch. It goes first; the caller goes on when it waits. *)

  val fork_promise : sw:Switch.t -> (unit -> 'a) -> 'a Promise.or_exn
  (** A failure is the promise's, and not the switch's. *)

  val fork_promise_exn : sw:Switch.t -> (unit -> 'a) -> 'a Promise.t
  (** A failure is the switch's. *)

  val fork_seq : sw:Switch.t -> (('a -> unit) -> unit) -> 'a Seq.t
  (** The values that the function gives to its argument; it runs while one is asked for. To be read once. *)

  val fork_daemon : sw:Switch.t -> (unit -> [ `Stop_daemon ]) -> unit
  (** A task that the switch does not wait for: it is cancelled when all others have ended. *)

  val check : unit -> unit
  (** @raise Cancel.Cancelled if the task was cancelled. *)

  val is_cancelled : unit -> bool
  val yield : unit -> unit
  (** Lets the others go first. *)

  (** Lists, with a task for each item, at most [max_fibers] at a time. *)
  module List : sig
    val filter : ?max_fibers:int -> ('a -> bool) -> 'a list -> 'a list
    val map : ?max_fibers:int -> ('a -> 'b) -> 'a list -> 'b list
    val filter_map : ?max_fibers:int -> ('a -> 'b option) -> 'a list -> 'b list
    val iter : ?max_fibers:int -> ('a -> unit) -> 'a list -> unit
  end

  type 'a key
  (** Of values that a task has, and that it hands on to tasks that it forks. *)

  val create_key : unit -> 'a key
  val get : 'a key -> 'a option
  val with_binding : 'a key -> 'a -> (unit -> 'b) -> 'b
  val without_binding : 'a key -> (unit -> 'b) -> 'b
end

(** {1 Between tasks} *)

module Semaphore : sig
  type t

  val make : int -> t
  val acquire : t -> unit
  val release : t -> unit
  (** Any thread may call it. *)

  val get_value : t -> int
end

module Mutex : sig
  type t

  exception Poisoned of exn
  (** Who had locked it for writing has failed. *)

  val create : unit -> t
  val lock : t -> unit
  val unlock : t -> unit
  val try_lock : t -> bool
  val use_ro : t -> (unit -> 'a) -> 'a

  val use_rw : protect:bool -> t -> (unit -> 'a) -> 'a
  (** If the function raises, the mutex is poisoned. [protect]: no cancel reaches the function. *)
end

module Condition : sig
  type t

  val create : unit -> t

  val await : t -> Mutex.t -> unit
  (** Unlocks the mutex, waits, and locks it again. *)

  val await_no_mutex : t -> unit

  val broadcast : t -> unit
  (** Wakes all that wait, as soon as the caller lets others run. Signal handlers and other threads may call it. *)

  val loop_no_mutex : t -> (unit -> 'a option) -> 'a
  (** Calls the function until it returns [Some], at first and after each {!broadcast}. *)
end

(** Queues with a limit. *)
module Stream : sig
  type 'a t

  val create : int -> 'a t
  (** At most so many items; [0]: a writer waits until its item is taken. *)

  val add : 'a t -> 'a -> unit
  val take : 'a t -> 'a
  val take_nonblocking : 'a t -> 'a option
  val length : 'a t -> int
  val is_empty : 'a t -> bool
  val dump : Format.formatter -> 'a t -> unit
end

module Lazy : sig
  type 'a t

  val from_fun : cancel:[ `Protect | `Restart | `Record ] -> (unit -> 'a) -> 'a t
  (** [cancel]: what a cancel of the first task that forces it does: it reaches the function only afterwards, or the
      next task starts it again, or it is the value's failure. *)

  val from_val : 'a -> 'a t
  val force : 'a t -> 'a
end

module Pool : sig
  type 'a t

  val create : ?validate:('a -> bool) -> ?dispose:('a -> unit) -> int -> (unit -> 'a) -> 'a t
  val use : ?never_block:bool -> 'a t -> ('a -> 'b) -> 'b
end

(** {1 Objects} *)

(** Memory outside of OCaml's heap, as in the library cstruct. *)
module Cstruct : sig
  type buffer = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
  type t = private { buffer : buffer; off : int; len : int }

  val empty : t
  val create : int -> t
  val create_unsafe : int -> t
  val length : t -> int
  val sub : t -> int -> int -> t
  val shift : t -> int -> t
  val split : t -> int -> t * t
  val of_bigarray : ?off:int -> ?len:int -> buffer -> t
  val to_bigarray : t -> buffer
  val of_string : ?off:int -> ?len:int -> string -> t
  val of_bytes : ?off:int -> ?len:int -> bytes -> t
  val to_string : ?off:int -> ?len:int -> t -> string
  val to_bytes : ?off:int -> ?len:int -> t -> bytes
  val blit : t -> int -> t -> int -> int -> unit
  val blit_from_string : string -> int -> t -> int -> int -> unit
  val blit_from_bytes : bytes -> int -> t -> int -> int -> unit
  val blit_to_bytes : t -> int -> bytes -> int -> int -> unit
  val get_char : t -> int -> char
  val set_char : t -> int -> char -> unit
  val get_uint8 : t -> int -> int
  val set_uint8 : t -> int -> int -> unit
  val concat : t list -> t
  val append : t -> t -> t
  val lenv : t list -> int
  val shiftv : t list -> int -> t list
  val equal : t -> t -> bool
end

(** What flows, sockets and clocks are; the parameter says what one can do. *)
module Resource : sig
  type -'tags t
  type close_ty = [ `Close ]

  val close : [> close_ty ] t -> unit
end

(** {1 Time} *)

(** Times of the clock that never goes back, in nanoseconds, as in the library mtime. *)
module Mtime : sig
  type t

  module Span : sig
    type t

    val of_uint64_ns : int64 -> t
    val to_uint64_ns : t -> int64
    val of_float_ns : float -> t option
    val to_float_ns : t -> float
    val zero : t
    val ns : t
    val us : t
    val ms : t
    val s : t
    val ( * ) : int -> t -> t
    val add : t -> t -> t
    val compare : t -> t -> int
  end

  val of_uint64_ns : int64 -> t
  val to_uint64_ns : t -> int64
  val span : t -> t -> Span.t
  val add_span : t -> Span.t -> t option
  val compare : t -> t -> int
end

module Time : sig
  type 'a clock_ty = [ `Clock of 'a ]
  type 'a clock_base = 'a Resource.t constraint 'a = [> _ clock_ty ]
  type 'a clock = ([> float clock_ty ] as 'a) Resource.t

  exception Timeout

  val now : _ clock -> float
  (** Seconds since 1970; in a simulation, since its begin. *)

  val sleep_until : _ clock -> float -> unit
  val sleep : _ clock_base -> float -> unit
  (** Seconds; not positive: a yield. *)

  val with_timeout : _ clock -> float -> (unit -> ('a, 'e) result) -> ('a, ([> `Timeout ] as 'e)) result
  (** Cancels the function after so many seconds, and returns [Error `Timeout] then. *)

  val with_timeout_exn : _ clock -> float -> (unit -> 'a) -> 'a
  (** @raise Timeout *)

  module Mono : sig
    type ty = Mtime.t clock_ty
    type 'a t = ([> ty ] as 'a) Resource.t

    val now : _ t -> Mtime.t
    val sleep_until : _ t -> Mtime.t -> unit
    val sleep : _ t -> float -> unit
    val sleep_span : _ t -> Mtime.Span.t -> unit
  end

  module Timeout : sig
    type t

    val v : _ Mono.t -> Mtime.Span.t -> t
    val seconds : _ Mono.t -> float -> t
    val none : t
    val run : t -> (unit -> ('a, 'e) result) -> ('a, ([> `Timeout ] as 'e)) result
    val run_exn : t -> (unit -> 'a) -> 'a
    val sleep : t -> unit
    val pp : Format.formatter -> t -> unit
  end
end

(** {1 Streams of bytes} *)

module Flow : sig
  type source_ty = [ `R | `Flow ]
  type 'a source = ([> source_ty ] as 'a) Resource.t
  type sink_ty = [ `W | `Flow ]
  type 'a sink = ([> sink_ty ] as 'a) Resource.t
  type shutdown_ty = [ `Shutdown ]
  type shutdown_command = [ `Receive | `Send | `All ]
  type two_way_ty = [ source_ty | sink_ty | shutdown_ty ]
  type 'a two_way = ([> two_way_ty ] as 'a) Resource.t

  val single_read : _ source -> Cstruct.t -> int
  (** Waits for bytes, and returns how many were read. @raise End_of_file *)

  val read_exact : _ source -> Cstruct.t -> unit
  val read_all : _ source -> string
  val write : _ sink -> Cstruct.t list -> unit
  val single_write : _ sink -> Cstruct.t list -> int
  val copy : _ source -> _ sink -> unit
  val copy_string : string -> _ sink -> unit
  val shutdown : [> shutdown_ty ] Resource.t -> shutdown_command -> unit
  val close : [> Resource.close_ty ] Resource.t -> unit
  val string_source : string -> source_ty Resource.t
  val cstruct_source : Cstruct.t list -> source_ty Resource.t
  val buffer_sink : Buffer.t -> sink_ty Resource.t

  (** Flows of your own, by functions as those above. *)

  val source_of_read : (Cstruct.t -> int) -> source_ty Resource.t
  val sink_of_write : (Cstruct.t list -> int) -> sink_ty Resource.t

  val two_way :
    ?shutdown:(shutdown_command -> unit) ->
    ?close:(unit -> unit) ->
    read:(Cstruct.t -> int) ->
    write:(Cstruct.t list -> int) ->
    unit ->
    [ two_way_ty | Resource.close_ty ] Resource.t
end

(** Reading by parsers, from a buffer that is filled from a flow. *)
module Buf_read : sig
  exception Buffer_limit_exceeded

  type t
  type 'a parser = t -> 'a
  (** Takes what it returns from the buffer. Raises [Failure], [End_of_file] or {!Buffer_limit_exceeded}. *)

  val of_flow : ?initial_size:int -> max_size:int -> _ Flow.source -> t
  val of_string : string -> t
  val of_buffer : Cstruct.buffer -> t
  val as_flow : t -> Flow.source_ty Resource.t
  val parse : ?initial_size:int -> max_size:int -> 'a parser -> _ Flow.source -> ('a, [> `Msg of string ]) result
  val parse_exn : ?initial_size:int -> max_size:int -> 'a parser -> _ Flow.source -> 'a
  val parse_string : 'a parser -> string -> ('a, [> `Msg of string ]) result
  val parse_string_exn : 'a parser -> string -> 'a
  val line : string parser
  (** Without its end, which is ["\n"] or ["\r\n"]. *)

  val lines : string Seq.t parser
  val char : char -> unit parser
  val any_char : char parser
  val peek_char : char option parser
  val string : string -> unit parser
  val uint8 : int parser

  module BE : sig
    val uint16 : int parser
    val uint32 : int32 parser
    val uint64 : int64 parser
    val float : float parser
    val double : float parser
  end

  module LE : sig
    val uint16 : int parser
    val uint32 : int32 parser
    val uint64 : int64 parser
    val float : float parser
    val double : float parser
  end

  val take : int -> string parser
  val take_all : string parser
  val take_while : (char -> bool) -> string parser
  val take_while1 : ?on_error:(unit -> string) -> (char -> bool) -> string parser
  val skip_while : (char -> bool) -> unit parser
  val skip_while1 : ?on_error:(unit -> unit) -> (char -> bool) -> unit parser
  val skip : int -> unit parser
  val at_end_of_input : bool parser
  val end_of_input : unit parser
  val return : 'a -> 'a parser
  val map : ('a -> 'b) -> 'a parser -> 'b parser
  val bind : 'a parser -> ('a -> 'b parser) -> 'b parser
  val pair : 'a parser -> 'b parser -> ('a * 'b) parser
  val seq : ?stop:bool parser -> 'a parser -> 'a Seq.t parser
  val format_errors : 'a parser -> ('a, [> `Msg of string ]) result parser

  module Syntax : sig
    val ( let+ ) : 'a parser -> ('a -> 'b) -> 'b parser
    val ( let* ) : 'a parser -> ('a -> 'b parser) -> 'b parser
    val ( and+ ) : 'a parser -> 'b parser -> ('a * 'b) parser
    val ( and* ) : 'a parser -> 'b parser -> ('a * 'b) parser
    val ( <*> ) : 'a parser -> 'b parser -> ('a * 'b) parser
    val ( <* ) : 'a parser -> 'b parser -> 'a parser
    val ( *> ) : 'a parser -> 'b parser -> 'b parser
  end

  val buffered_bytes : t -> int
  val peek : t -> Cstruct.t
  (** What is in the buffer, until the next call. *)

  val ensure : t -> int -> unit
  val consume : t -> int -> unit
  val consumed_bytes : t -> int
  val eof_seen : t -> bool
end

(** Writing to a buffer, which a task of its own writes to a flow. *)
module Buf_write : sig
  type t

  val with_flow : ?initial_size:int -> _ Flow.sink -> (t -> 'a) -> 'a
  (** All is written when the function has returned. *)

  val string : t -> ?off:int -> ?len:int -> string -> unit
  val bytes : t -> ?off:int -> ?len:int -> bytes -> unit
  val cstruct : t -> Cstruct.t -> unit
  val schedule_cstruct : t -> Cstruct.t -> unit
  val char : t -> char -> unit
  val uint8 : t -> int -> unit

  module BE : sig
    val uint16 : t -> int -> unit
    val uint32 : t -> int32 -> unit
    val uint64 : t -> int64 -> unit
    val float : t -> float -> unit
    val double : t -> float -> unit
  end

  module LE : sig
    val uint16 : t -> int -> unit
    val uint32 : t -> int32 -> unit
    val uint64 : t -> int64 -> unit
    val float : t -> float -> unit
    val double : t -> float -> unit
  end

  val printf : t -> ('a, unit, string, unit) format4 -> 'a
  val make_formatter : t -> Format.formatter

  val flush : t -> unit
  (** Waits until all has been written. *)

  val pending_bytes : t -> int
  val is_closed : t -> bool
end

(** {1 The network} *)

module Net : sig
  type connection_failure = Refused of exn | No_matching_addresses | Timeout
  type error = Connection_reset of exn | Connection_failure of connection_failure
  type Exn.err += E of error

  module Ipaddr : sig
    type 'a t = private string
    (** The 4 or 16 bytes. *)

    type v4v6 = [ `V4 | `V6 ] t

    module V4 : sig
      val any : [> `V4 ] t
      val loopback : [> `V4 ] t
    end

    module V6 : sig
      val any : [> `V6 ] t
      val loopback : [> `V6 ] t
    end

    val of_raw : string -> v4v6
    val of_unix : Unix.inet_addr -> v4v6
    val to_unix : _ t -> Unix.inet_addr
    val fold : v4:([> `V4 ] t -> 'b) -> v6:([> `V6 ] t -> 'b) -> [< `V4 | `V6 ] t -> 'b
    val pp : Format.formatter -> _ t -> unit
  end

  module Sockaddr : sig
    type stream = [ `Unix of string | `Tcp of Ipaddr.v4v6 * int ]
    type datagram = [ `Udp of Ipaddr.v4v6 * int | `Unix of string ]
    type t = [ stream | datagram ]

    val pp : Format.formatter -> [< t ] -> unit
  end

  type socket_ty = [ `Socket | `Close ]
  type stream_socket_ty = [ `Stream | Flow.two_way_ty | socket_ty ]
  type 'a stream_socket = ([> stream_socket_ty ] as 'a) Resource.t
  type listening_socket_ty = [ `Accept | socket_ty ]
  type 'a listening_socket = ([> listening_socket_ty ] as 'a) Resource.t
  type datagram_socket_ty = [ `Datagram | socket_ty ]
  type 'a datagram_socket = ([> datagram_socket_ty ] as 'a) Resource.t
  type ty = [ `Network ]
  type 'a t = ([> ty ] as 'a) Resource.t

  val connect : sw:Switch.t -> _ t -> Sockaddr.stream -> stream_socket_ty Resource.t
  (** The socket is closed with the switch, at the latest. @raise Io *)

  val with_tcp_connect :
    ?timeout:Time.Timeout.t -> host:string -> service:string -> _ t -> (stream_socket_ty Resource.t -> 'b) -> 'b
  (** Connects to the first address of the host that answers. *)

  val listen :
    ?reuse_addr:bool ->
    ?reuse_port:bool ->
    backlog:int ->
    sw:Switch.t ->
    _ t ->
    [< Sockaddr.stream ] ->
    listening_socket_ty Resource.t
  (** [reuse_addr] is always so. Port 0: the system chooses one. *)

  val listening_addr : _ listening_socket -> Sockaddr.stream
  val accept : sw:Switch.t -> _ listening_socket -> stream_socket_ty Resource.t * Sockaddr.stream

  type connection_handler = stream_socket_ty Resource.t -> Sockaddr.stream -> unit

  val accept_fork : sw:Switch.t -> _ listening_socket -> on_error:(exn -> unit) -> connection_handler -> unit

  val run_server :
    ?max_connections:int ->
    ?additional_domains:unit * int ->
    ?stop:'a Promise.t ->
    on_error:(exn -> unit) ->
    _ listening_socket ->
    connection_handler ->
    'a
  (** Calls the handler for each connection, in a task of its own. When [stop] is resolved it accepts no more, waits for
      the handlers, and returns the promise's value. [additional_domains] changes nothing. *)

  val datagram_socket :
    ?reuse_addr:bool ->
    ?reuse_port:bool ->
    sw:Switch.t ->
    _ t ->
    [< Sockaddr.datagram | `UdpV4 | `UdpV6 ] ->
    datagram_socket_ty Resource.t

  val send : _ datagram_socket -> ?dst:Sockaddr.datagram -> Cstruct.t list -> unit
  val recv : _ datagram_socket -> Cstruct.t -> Sockaddr.datagram * int
  val getaddrinfo_stream : ?service:string -> _ t -> string -> Sockaddr.stream list
  val getaddrinfo_datagram : ?service:string -> _ t -> string -> Sockaddr.datagram list
  val close : [> `Close ] Resource.t -> unit
end

(** {1 Files} *)

module Fs : sig
  type error =
    | Already_exists of exn
    | Not_found of exn
    | Permission_denied of exn
    | File_too_large
    | Not_native of string

  type Exn.err += E of error
  type create = [ `Never | `If_missing of int | `Or_truncate of int | `Exclusive of int ]
  type dir_ty = [ `Dir ]
  type 'a dir = ([> dir_ty ] as 'a) Resource.t
end

module File : sig
  module Unix_perm : sig
    type t = int
  end

  module Stat : sig
    type kind =
      [ `Unknown | `Fifo | `Character_special | `Directory | `Block_device | `Regular_file | `Symbolic_link | `Socket ]

    type t = {
      dev : int64;
      ino : int64;
      kind : kind;
      perm : Unix_perm.t;
      nlink : int64;
      uid : int64;
      gid : int64;
      size : int64;
      atime : float;
      mtime : float;
      ctime : float;
    }
  end

  type ro_ty = [ `File | Flow.source_ty | Resource.close_ty ]
  type 'a ro = ([> ro_ty ] as 'a) Resource.t
  type rw_ty = [ ro_ty | Flow.sink_ty ]
  type 'a rw = ([> rw_ty ] as 'a) Resource.t

  val stat : _ ro -> Stat.t
  val size : _ ro -> int64
  val pread : _ ro -> file_offset:int64 -> Cstruct.t list -> int
  val pread_exact : _ ro -> file_offset:int64 -> Cstruct.t list -> unit
  val pwrite_all : _ rw -> file_offset:int64 -> Cstruct.t list -> unit
  val sync : _ rw -> unit
  val seek : _ ro -> int64 -> [ `Set | `Cur | `End ] -> int64
  val truncate : _ rw -> int64 -> unit
end

(** A path is a text in a directory. *)
module Path : sig
  type 'a t = 'a Fs.dir * string

  val ( / ) : 'a t -> string -> 'a t
  val native : _ t -> string option
  val native_exn : _ t -> string
  val split : 'a t -> ('a t * string) option
  val pp : Format.formatter -> _ t -> unit
  val load : _ t -> string
  val save : ?append:bool -> create:Fs.create -> _ t -> string -> unit
  val open_in : sw:Switch.t -> _ t -> File.ro_ty Resource.t
  val open_out : sw:Switch.t -> ?append:bool -> create:Fs.create -> _ t -> File.rw_ty Resource.t
  val with_open_in : _ t -> (File.ro_ty Resource.t -> 'a) -> 'a
  val with_open_out : ?append:bool -> create:Fs.create -> _ t -> (File.rw_ty Resource.t -> 'a) -> 'a
  val with_lines : _ t -> (string Seq.t -> 'a) -> 'a
  val mkdir : perm:File.Unix_perm.t -> _ t -> unit
  val mkdirs : ?exists_ok:bool -> perm:File.Unix_perm.t -> _ t -> unit
  val read_dir : _ t -> string list
  (** Sorted, without ["."] and [".."]. *)

  val stat : follow:bool -> _ t -> File.Stat.t
  val kind : follow:bool -> _ t -> [ File.Stat.kind | `Not_found ]
  val is_file : _ t -> bool
  val is_directory : _ t -> bool
  val unlink : _ t -> unit
  val rmdir : _ t -> unit
  val rmtree : ?missing_ok:bool -> _ t -> unit
  val rename : _ t -> _ t -> unit
  val symlink : link_to:string -> _ t -> unit
  val read_link : _ t -> string
  val chmod : follow:bool -> perm:File.Unix_perm.t -> _ t -> unit
  val open_dir : sw:Switch.t -> _ t -> [ `Close | Fs.dir_ty ] t
  (** A directory that no path leads out of, as far as the paths' texts say. *)

  val with_open_dir : _ t -> ([ `Close | Fs.dir_ty ] t -> 'a) -> 'a
end

(** {1 Processes} *)

module Process : sig
  type exit_status = [ `Exited of int | `Signaled of int ]
  type status = [ exit_status | `Stopped of int ]
  type error = Executable_not_found of string | Child_error of exit_status
  type Exn.err += E of error
  type ty = [ `Process ]
  type 'a t = ([> ty ] as 'a) Resource.t
  type mgr_ty = [ `Process_mgr ]
  type 'a mgr = ([> mgr_ty ] as 'a) Resource.t

  val spawn :
    sw:Switch.t ->
    _ mgr ->
    ?cwd:_ Path.t ->
    ?stdin:_ Flow.source ->
    ?stdout:_ Flow.sink ->
    ?stderr:_ Flow.sink ->
    ?env:string array ->
    ?executable:string ->
    string list ->
    ty Resource.t
  (** Starts a program, which is searched in PATH. It is killed when the switch ends, if it has not ended. *)

  val pid : _ t -> int
  val await : _ t -> status
  val await_exn : ?is_success:(int -> bool) -> _ t -> unit
  val signal : _ t -> int -> unit

  val run :
    _ mgr ->
    ?cwd:_ Path.t ->
    ?stdin:_ Flow.source ->
    ?stdout:_ Flow.sink ->
    ?stderr:_ Flow.sink ->
    ?is_success:(int -> bool) ->
    ?env:string array ->
    ?executable:string ->
    string list ->
    unit

  val parse_out :
    _ mgr ->
    'a Buf_read.parser ->
    ?cwd:_ Path.t ->
    ?stdin:_ Flow.source ->
    ?stderr:_ Flow.sink ->
    ?is_success:(int -> bool) ->
    ?env:string array ->
    ?executable:string ->
    string list ->
    'a

  val pipe :
    sw:Switch.t ->
    _ mgr ->
    [ Flow.source_ty | Resource.close_ty ] Resource.t * [ Flow.sink_ty | Resource.close_ty ] Resource.t

  val pp_status : Format.formatter -> [< status ] -> unit
end

(** {1 Stand-ins for domains: OCaml 4 has one} *)

module Domain_manager : sig
  type ty = [ `Domain_mgr ]
  type 'a t = ([> ty ] as 'a) Resource.t

  val run : _ t -> (unit -> 'a) -> 'a
  (** Calls the function here. *)

  val run_raw : _ t -> (unit -> 'a) -> 'a
  (** Calls the function, which is no task, on a thread of the system. *)
end

module Executor_pool : sig
  type t

  val create : sw:Switch.t -> domain_count:int -> _ Domain_manager.t -> t
  (** [domain_count] functions at a time run; they take turns on the one thread. *)

  val submit : t -> weight:float -> (unit -> 'a) -> ('a, exn) result
  val submit_exn : t -> weight:float -> (unit -> 'a) -> 'a
  val submit_fork : sw:Switch.t -> t -> weight:float -> (unit -> 'a) -> 'a Promise.or_exn
end

(** {1 What a program has from outside} *)

val clock : float Time.clock_ty Resource.t
val mono_clock : Time.Mono.ty Resource.t
val net : [ `Generic | Net.ty ] Resource.t
val fs : Fs.dir_ty Path.t
(** All files: paths that do not begin with ["/"] are those of the current directory. *)

val cwd : Fs.dir_ty Path.t
(** The current directory. A path that leads out of it by its text is [Fs.Permission_denied]; symbolic links are
    followed. *)

val process_mgr : Process.mgr_ty Resource.t
val domain_mgr : Domain_manager.ty Resource.t
val secure_random : Flow.source_ty Resource.t
val stdin : Flow.source_ty Resource.t
val stdout : Flow.sink_ty Resource.t
val stderr : Flow.sink_ty Resource.t

(** The same, as Eio gives it to a program. *)
module Stdenv : sig
  type base =
    < stdin : Flow.source_ty Resource.t
    ; stdout : Flow.sink_ty Resource.t
    ; stderr : Flow.sink_ty Resource.t
    ; net : [ `Generic | Net.ty ] Resource.t
    ; domain_mgr : Domain_manager.ty Resource.t
    ; process_mgr : Process.mgr_ty Resource.t
    ; clock : float Time.clock_ty Resource.t
    ; mono_clock : Time.Mono.ty Resource.t
    ; fs : Fs.dir_ty Path.t
    ; cwd : Fs.dir_ty Path.t
    ; secure_random : Flow.source_ty Resource.t
    ; backend_id : string >

  val stdin : < stdin : 'a ; .. > -> 'a
  val stdout : < stdout : 'a ; .. > -> 'a
  val stderr : < stderr : 'a ; .. > -> 'a
  val net : < net : 'a ; .. > -> 'a
  val domain_mgr : < domain_mgr : 'a ; .. > -> 'a
  val process_mgr : < process_mgr : 'a ; .. > -> 'a
  val clock : < clock : 'a ; .. > -> 'a
  val mono_clock : < mono_clock : 'a ; .. > -> 'a
  val fs : < fs : 'a ; .. > -> 'a
  val cwd : < cwd : 'a ; .. > -> 'a
  val secure_random : < secure_random : 'a ; .. > -> 'a
  val backend_id : < backend_id : string ; .. > -> string
end

val env : Stdenv.base

(** {1 What programs of Eio open} *)

module Std : sig
  module Promise = Promise
  module Fiber = Fiber
  module Switch = Switch

  type 'a r = 'a Resource.t

  val traceln : ('a, Format.formatter, unit, unit) format4 -> 'a
  (** Writes a line to standard error at once, with a ["+"] in front. *)
end

val traceln : ('a, Format.formatter, unit, unit) format4 -> 'a

(** {1 Mocks} *)

(** Clocks, flows and networks that a test scripts, by Eio_mock's names. What is done with them is written by
    {!traceln}, so a test may compare its output. {!simulate} needs no script, and has both ends. *)
module Mock : sig
  module Action : sig
    (** What a call of the mock does: returns, raises, waits for a promise, lets other tasks go first, or calls. *)
    type 'a t =
      [ `Return of 'a | `Raise of exn | `Await of 'a Promise.or_exn | `Yield_then of 'a t | `Run of unit -> 'a ]

    val run : 'a t -> 'a
    val map : ('a -> 'b) -> 'a t -> 'b t
  end

  (** What the calls of one kind do, one after the other. *)
  module Handler : sig
    type 'a t
    type 'a actions = 'a Action.t list

    val make : 'a Action.t -> 'a t
    (** The action is the default: what calls do that nothing else is set for. *)

    val seq : 'a t -> 'a actions -> unit
    (** The next calls do these, in their order, and further ones the default. *)

    val set_handler : 'a t -> (unit -> 'a) -> unit
    val run : 'a t -> 'a
    val run_default_action : 'a t -> 'a
  end

  module Flow : sig
    type ty = [ Flow.two_way_ty | Net.socket_ty | `Stream | `Mock ]
    type t = ty Resource.t

    val make : ?pp:(Format.formatter -> string -> unit) -> string -> t
    (** A flow of that name, which is at its end until {!on_read} says what comes, and takes what is written. [pp]
        prints the bytes in traces. *)

    val on_read : t -> string Handler.actions -> unit
    (** What reads return. A text for which the reader has no room is a [Failure]. *)

    val on_copy_bytes : t -> int Handler.actions -> unit
    (** How many bytes, at most, a write takes; 4096 by default. *)

    val attach_to_switch : t -> Switch.t -> unit
    (** The switch closes it. *)
  end

  module Net : sig
    type t = [ `Network | `Mock ] Resource.t
    type listening_socket = [ Net.listening_socket_ty | `Mock ] Resource.t

    val make : string -> t
    (** A network of that name, each call of which is a [Failure] until these say what it does. What they return the
        caller's switch closes. *)

    val on_connect : t -> _ Net.stream_socket Handler.actions -> unit
    val on_listen : t -> _ Net.listening_socket Handler.actions -> unit
    val on_datagram_socket : t -> _ Net.datagram_socket Handler.actions -> unit
    val on_getaddrinfo : t -> Net.Sockaddr.t list Handler.actions -> unit

    val listening_socket : ?listening_addr:Net.Sockaddr.stream -> string -> listening_socket
    (** One for {!on_listen}. [listening_addr] is what [Net.listening_addr] returns: [0.0.0.0:0] by default. *)

    val on_accept : listening_socket -> (Flow.t * Net.Sockaddr.stream) Handler.actions -> unit
  end

  (** A clock that stands still until the test moves it. *)
  module Clock : sig
    type t = float Time.clock_ty Resource.t

    val make : unit -> t
    (** It shows 0. *)

    val advance : t -> unit
    (** Goes on to the next time for which somebody waits. @raise Invalid_argument if nobody does. *)

    val try_advance : t -> bool
    (** The same; false: nobody waits. *)

    val set_time : t -> float -> unit
    (** Goes on to this time, and ends the waits until then. @raise Invalid_argument if that is earlier. *)

    module Mono : sig
      type t = Time.Mono.ty Resource.t

      val make : unit -> t
      val advance : t -> unit
      val try_advance : t -> bool
      val set_time : t -> Mtime.t -> unit
    end
  end

  module Backend : sig
    exception Deadlock_detected

    val run : (unit -> 'a) -> 'a
    (** As {!simulate}, with the tasks in the order in which they became ready.
        @raise Deadlock_detected if no task can ever go on. *)
  end
end

(** [open Haft_io.As_eio] in front of a program of Eio: its modules, by Eio's names. *)
module As_eio : sig
  module Eio : sig
    module Std = Std
    module Exn = Exn

    exception Io of Exn.err * Exn.context

    module Cancel = Cancel
    module Switch = Switch
    module Promise = Promise
    module Fiber = Fiber
    module Semaphore = Semaphore
    module Mutex = Mutex
    module Condition = Condition
    module Stream = Stream
    module Lazy = Lazy
    module Pool = Pool
    module Resource = Resource
    module Time = Time
    module Flow = Flow
    module Buf_read = Buf_read
    module Buf_write = Buf_write
    module Net = Net
    module Fs = Fs
    module File = File
    module Path = Path
    module Process = Process
    module Domain_manager = Domain_manager
    module Executor_pool = Executor_pool
    module Stdenv = Stdenv

    val traceln : ('a, Format.formatter, unit, unit) format4 -> 'a
  end

  module Eio_main : sig
    val run : (Stdenv.base -> 'a) -> 'a
  end

  module Eio_unix : sig
    val run_in_systhread : ?label:string -> (unit -> 'a) -> 'a
    val sleep : float -> unit
    val await_readable : Unix.file_descr -> unit
    val await_writable : Unix.file_descr -> unit
  end

  module Eio_mock = Mock
  module Cstruct = Cstruct
  module Mtime = Mtime
end
