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
    one loop with the tasks of C; while the loop sleeps, other threads run. Unless stated otherwise, the functions
    here are for tasks: elsewhere they raise {!Effect.Unhandled}. *)

(** {1 Running} *)

val run : ?backend:string -> ?dump_signal:int -> (unit -> 'a) -> 'a
(** [run main] calls [main] as the first task, and returns, or raises, what it does. A process has one run at a time.
    Operations of [main] that are still under way, such as a wait for a descriptor that was not closed, end with it. If
    a signal handler raises an exception while the loop sleeps, all tasks are cancelled and [run] raises it, whatever
    [main] returns or raises then.

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
(** Text with the wait of each task of the run, by the contexts of their cancels, and the calls that have led there, the
    innermost first, of code that was compiled with [-g]; but not the calls of a task that waits in a function of C. A
    handler of [haft-http] is a task, so requests are there, too. Signal handlers may call it. *)

val run_in_systhread : ?label:string -> (unit -> 'a) -> 'a
(** [run_in_systhread f] calls [f] on a thread of the system, and waits for it; meanwhile other tasks run. For functions
    that block in a blocking section, such as those of [Unix]. [f] is no task. No cancel ends the wait.
    @raise Failure if [f] ends the thread on OCaml 4.13 ([Thread.exit]); on 4.14 that is an exception of [f]. *)

val await_readable : Unix.file_descr -> unit
(** Waits until the descriptor, which functions of [Unix] and others use and close, can be read without blocking. When
    it has returned or raised, nothing refers to the descriptor. @raise Unix.Unix_error *)

val await_writable : Unix.file_descr -> unit
(** The same for room to write. *)

val as_task : (unit -> 'a) -> 'a
(** For OCaml code that a task of C calls back (one of [haft_io_spawn], in C, in the same run): [as_task f] calls [f] as
    a task of OCaml, on the stack of the task of C, which waits while [f] does. The function in C has called
    [haft_io_return_cancels(true)], and calls OCaml code by [caml_callback_exn].

    @raise Invalid_argument if there is no run. *)

(** {1 Failures and cancels} *)

module Exn : sig
  type with_bt = exn * Printexc.raw_backtrace

  type err = ..
  (** The kinds of errors, such as [Net.E]. *)

  type context
  (** Where it went wrong: texts that were added on the way out. *)

  exception Io of err * context
  (** Raised by operations that fail: the error, and where. *)

  exception Multiple of with_bt list
  (** Several tasks have failed. *)

  type err += X of exn  (** An error of another kind. *)

  val create : err -> exn
  (** [Io] of this error. *)

  val add_context : exn -> ('a, Format.formatter, unit, exn) format4 -> 'a
  (** The exception with one more text about where it went wrong, if it is an [Io]. *)

  val reraise_with_context : exn -> Printexc.raw_backtrace -> ('a, Format.formatter, unit, 'b) format4 -> 'a
  (** Raises the exception so, with this backtrace. *)

  val combine : with_bt -> with_bt -> with_bt
  (** One failure that stands for two. A cancel beside a failure is left out, and so is the same exception again. *)

  val empty_backtrace : Printexc.raw_backtrace
  (** One without calls. *)

  val pp : Format.formatter -> exn -> unit
  (** Prints what [Printexc.to_string] does, over several lines. *)

  val register_pp : (Format.formatter -> err -> bool) -> unit
  (** Adds a printer for errors of your own; it returns [false] for others. *)
end

exception Io of Exn.err * Exn.context
(** {!Exn.Io}. *)

(** Contexts of cancels form a tree. A cancel of one reaches all tasks in it and in those below, except protected ones:
    where a task waits, or next waits, its wait raises [Cancelled]. *)
module Cancel : sig
  type t

  exception Cancelled of exn
  (** Has the reason of the cancel. Let it pass: code that catches it has to raise it again. *)

  val sub : (t -> 'a) -> 'a
  (** Calls the function in a new context below the task's. *)

  val protect : (unit -> 'a) -> 'a
  (** Calls the function where no cancel from outside reaches, and returns what it does, even if one has come meanwhile:
      the next wait of the task raises that. *)

  val check : t -> unit
  (** @raise Cancelled if the context was cancelled. @raise Invalid_argument if its function has returned. *)

  val get_error : t -> exn option
  (** [Cancelled], if the context has been cancelled, or [Invalid_argument], if its function has returned. *)

  val cancel : t -> exn -> unit
  (** Cancels the context, for this reason. Does nothing if it was cancelled before. @raise Invalid_argument if its
      function has returned. *)

  val dump : Format.formatter -> t -> unit
  (** Prints its tasks and contexts, as {!Haft_io.dump}. *)
end

(** A switch owns tasks and resources: its function returns when all of them have ended and been released. *)
module Switch : sig
  type t

  val run : ?name:string -> (t -> 'a) -> 'a
  (** [run f] calls [f] with a new switch and waits for the tasks that were forked in it. If [f] or one of them raises,
      the others are cancelled, and [run] raises that, or {!Exn.Multiple}. Then what was given to {!on_release} is
      called, the last first. *)

  val run_protected : ?name:string -> (t -> 'a) -> 'a
  (** Like {!run}, but no cancel from outside reaches it. *)

  val check : t -> unit
  (** @raise Cancel.Cancelled if the switch has failed. @raise Invalid_argument if it has ended. *)

  val get_error : t -> exn option
  (** [Cancelled], if the switch has failed, or [Invalid_argument], if it has ended. *)

  val fail : ?bt:Printexc.raw_backtrace -> t -> exn -> unit
  (** Cancels the tasks of the switch; {!run} then raises the exception. *)

  val on_release : t -> (unit -> unit) -> unit
  (** The function is called when the switch ends, where no cancel reaches. If the switch has ended it is called at
      once, and [Invalid_argument] is raised. *)

  type hook

  val null_hook : hook
  (** One that removes nothing. *)

  val on_release_cancellable : t -> (unit -> unit) -> hook
  (** Like {!on_release}, but the hook may be removed again. *)

  val remove_hook : hook -> unit
  (** The function is not called any more. *)

  val try_remove_hook : hook -> bool
  (** Whether this call has removed it. *)

  val dump : Format.formatter -> t -> unit
  (** Prints its tasks and contexts, as {!Haft_io.dump}. *)
end

(** {1 Tasks} *)

(** Values that are set once. *)
module Promise : sig
  type !'a t
  type 'a u
  (** The end that sets it. *)

  type 'a or_exn = ('a, exn) result t

  val create : ?label:string -> unit -> 'a t * 'a u
  (** A promise and the end that sets it. [label]: what the dump shows. *)

  val create_resolved : 'a -> 'a t
  (** One that has its value. *)

  val await : 'a t -> 'a
  (** Its value, once it is set. *)

  val await_exn : 'a or_exn -> 'a
  (** The same, or raises what it was set to. *)

  val resolve : 'a u -> 'a -> unit
  (** Any thread may call it. @raise Invalid_argument if it was resolved before. *)

  val try_resolve : 'a u -> 'a -> bool
  (** Like {!resolve}; false: it was set before. *)

  val resolve_ok : ('a, 'b) result u -> 'a -> unit
  (** Sets it to [Ok value]. *)

  val resolve_error : ('a, 'b) result u -> 'b -> unit
  (** Sets it to [Error error]. *)

  val peek : 'a t -> 'a option
  (** Its value, if it is set. *)

  val is_resolved : 'a t -> bool
  (** Whether it is set. *)

  val id : 'a t -> int
  (** A number, for messages. Two promises may have the same. *)
end

module Fiber : sig
  val both : (unit -> unit) -> (unit -> unit) -> unit
  (** Calls both at a time, the first one first, and waits for both. If one raises, the other is cancelled. *)

  val pair : (unit -> 'a) -> (unit -> 'b) -> 'a * 'b
  (** Like {!both}, but returns both results. *)

  val all : (unit -> unit) list -> unit
  (** Like {!both}, for any number. *)

  val first : ?combine:('a -> 'a -> 'a) -> (unit -> 'a) -> (unit -> 'a) -> 'a
  (** The result of the one that returns first; the other is cancelled, and waited for. If that returns all the same,
      [combine] makes one of the two results, by default the first. If either raises, [first] raises that; otherwise, if
      the caller was cancelled meanwhile, [first] raises [Cancelled] in place of a result. *)

  val any : ?combine:('a -> 'a -> 'a) -> (unit -> 'a) list -> 'a
  (** Like {!first}, for any number; without any it waits for a cancel. *)

  val n_any : (unit -> 'a) list -> 'a list
  (** Like {!any}, but returns the results of all that have returned, in their order. *)

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
  (** Whether the context of the caller is cancelled. *)

  val yield : unit -> unit
  (** Lets the others go first. *)

  (** Lists, with a task for each item, at most [max_fibers] at a time. *)
  module List : sig
    val filter : ?max_fibers:int -> ('a -> bool) -> 'a list -> 'a list
    (** The elements for which the function returns [true], in their order. *)

    val map : ?max_fibers:int -> ('a -> 'b) -> 'a list -> 'b list
    (** The results, in their order. *)

    val filter_map : ?max_fibers:int -> ('a -> 'b option) -> 'a list -> 'b list
    (** The results but for [None], in their order. *)

    val iter : ?max_fibers:int -> ('a -> unit) -> 'a list -> unit
    (** Calls the function for each. *)
  end

  type 'a key
  (** A key of values that a task has, and that it hands on to tasks that it forks. *)

  val create_key : unit -> 'a key
  (** One that no task has a value for. *)

  val get : 'a key -> 'a option
  (** The value of the calling task, which it has from [with_binding] or from the task that forked it. *)

  val with_binding : 'a key -> 'a -> (unit -> 'b) -> 'b
  (** Calls the function with this value of the key; tasks that it forks have it, too. *)

  val without_binding : 'a key -> (unit -> 'b) -> 'b
  (** Calls the function without a value of the key. *)
end

(** {1 Between tasks} *)

module Semaphore : sig
  type t

  val make : int -> t
  (** With so many to be acquired. @raise Invalid_argument if it is negative. *)

  val acquire : t -> unit
  (** Takes one, once there is one. A task that is cancelled has taken none. *)

  val release : t -> unit
  (** Any thread may call it, and so may a signal handler. *)

  val get_value : t -> int
  (** How many there are. *)
end

module Mutex : sig
  type t

  exception Poisoned of exn
  (** The task that had locked it for writing has failed. *)

  val create : unit -> t
  (** One that is not locked. *)

  val lock : t -> unit
  (** Waits until it is unlocked, and locks it. @raise Poisoned *)

  val unlock : t -> unit
  (** Unlocks it, for the first that waits. @raise Sys_error if it is not locked. *)

  val try_lock : t -> bool
  (** Locks it if it is not locked; whether it did. @raise Poisoned *)

  val use_ro : t -> (unit -> 'a) -> 'a
  (** Calls the function with the lock, which it gives back whatever happens. *)

  val use_rw : protect:bool -> t -> (unit -> 'a) -> 'a
  (** If the function raises, the mutex is poisoned. [protect]: no cancel reaches the function. *)
end

module Condition : sig
  type t

  val create : unit -> t
  (** One for which nobody waits. *)

  val await : t -> Mutex.t -> unit
  (** Unlocks the mutex, waits, and locks it again. *)

  val await_no_mutex : t -> unit
  (** Like {!await}, without a mutex. *)

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
  (** Waits for room, and puts the item behind the others. *)

  val take : 'a t -> 'a
  (** Waits for an item, and takes the first. *)

  val take_nonblocking : 'a t -> 'a option
  (** The first item, if there is one. *)

  val length : 'a t -> int
  (** How many items there are. *)

  val is_empty : 'a t -> bool
  (** Whether there is none. *)

  val dump : Format.formatter -> 'a t -> unit
  (** Prints how many items there are. *)
end

module Lazy : sig
  type 'a t

  val from_fun : cancel:[ `Protect | `Restart | `Record ] -> (unit -> 'a) -> 'a t
  (** [cancel]: what a cancel of the first task that forces it does: it reaches the function only afterwards, or the
      next task starts it again, or it is the value's failure. *)

  val from_val : 'a -> 'a t
  (** One that has its value. *)

  val force : 'a t -> 'a
  (** Its value, which the first caller computes; others wait for that. Raises what it raised. *)
end

module Pool : sig
  type 'a t

  val create : ?validate:('a -> bool) -> ?dispose:('a -> unit) -> int -> (unit -> 'a) -> 'a t
  (** For at most so many, which the function makes when they are needed. One that is no more valid is disposed of. *)

  val use : ?never_block:bool -> 'a t -> ('a -> 'b) -> 'b
  (** Calls the function with one that nobody else uses, and waits for one if need be: who came first gets the
      first that is given back. [never_block]: it makes a further one instead, which is disposed of afterwards. *)
end

(** {1 Objects} *)

(** Memory outside of OCaml's heap, as in the library cstruct. *)
module Cstruct : sig
  type buffer = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
  type t = private { buffer : buffer; off : int; len : int }

  val empty : t
  (** No bytes. *)

  val create : int -> t
  (** So many zeros. *)

  val create_unsafe : int -> t
  (** So many bytes of any value. *)

  val length : t -> int
  (** How many bytes. *)

  val sub : t -> int -> int -> t
  (** [sub view off len] is this part of the same memory. @raise Invalid_argument if there is none. *)

  val shift : t -> int -> t
  (** Without so many bytes at the front. *)

  val split : t -> int -> t * t
  (** So many bytes, and the others. *)

  val of_bigarray : ?off:int -> ?len:int -> buffer -> t
  (** A view of this memory. *)

  val to_bigarray : t -> buffer
  (** The memory that it is a view of. *)

  val of_string : ?off:int -> ?len:int -> string -> t
  (** A copy of the text, or of a part of it. *)

  val of_bytes : ?off:int -> ?len:int -> bytes -> t
  (** The same of bytes. *)

  val to_string : ?off:int -> ?len:int -> t -> string
  (** A copy of the bytes, or of a part of them. *)

  val to_bytes : ?off:int -> ?len:int -> t -> bytes
  (** The same. *)

  val blit : t -> int -> t -> int -> int -> unit
  (** [blit source from target at len] copies bytes. *)

  val blit_from_string : string -> int -> t -> int -> int -> unit
  (** The same from a text. *)

  val blit_from_bytes : bytes -> int -> t -> int -> int -> unit
  (** The same from bytes. *)

  val blit_to_bytes : t -> int -> bytes -> int -> int -> unit
  (** The same to bytes. *)

  val get_char : t -> int -> char
  (** The character at this place. *)

  val set_char : t -> int -> char -> unit
  (** Writes it. *)

  val get_uint8 : t -> int -> int
  (** The byte at this place. *)

  val set_uint8 : t -> int -> int -> unit
  (** Writes its lowest eight bits. *)

  val concat : t list -> t
  (** A copy of all, one behind the other. *)

  val append : t -> t -> t
  (** A copy of both. *)

  val lenv : t list -> int
  (** How many bytes there are in all. *)

  val shiftv : t list -> int -> t list
  (** The views without so many bytes at the front. *)

  val equal : t -> t -> bool
  (** Whether the bytes are the same. *)
end

(** Flows, sockets and clocks; the parameter lists the operations of one. *)
module Resource : sig
  type -'tags t
  type close_ty = [ `Close ]

  val close : [> close_ty ] t -> unit
  (** Closes it; a second time does nothing. *)
end

(** {1 Time} *)

(** Times of the clock that never goes back, in nanoseconds, as in the library mtime. *)
module Mtime : sig
  type t

  module Span : sig
    type t

    val of_uint64_ns : int64 -> t
    (** A span of so many nanoseconds. *)

    val to_uint64_ns : t -> int64
    (** How many nanoseconds. *)

    val of_float_ns : float -> t option
    (** The same; [None] if it is negative. *)

    val to_float_ns : t -> float
    (** How many nanoseconds. *)

    val zero : t
    (** No time. *)

    val ns : t
    (** A nanosecond. *)

    val us : t
    (** A microsecond. *)

    val ms : t
    (** A millisecond. *)

    val s : t
    (** A second. *)

    val ( * ) : int -> t -> t
    (** So many of them. *)

    val add : t -> t -> t
    (** Both together. *)

    val compare : t -> t -> int
    (** By their length. *)
  end

  val of_uint64_ns : int64 -> t
  (** So many nanoseconds after the clock's begin. *)

  val to_uint64_ns : t -> int64
  (** The nanoseconds since the clock's begin. *)

  val span : t -> t -> Span.t
  (** How far apart they are. *)

  val add_span : t -> Span.t -> t option
  (** So much later. *)

  val compare : t -> t -> int
  (** The earlier first. *)
end

module Time : sig
  type 'a clock_ty = [ `Clock of 'a ]
  type 'a clock_base = 'a Resource.t constraint 'a = [> _ clock_ty ]
  type 'a clock = ([> float clock_ty ] as 'a) Resource.t

  exception Timeout
  (** The limit of time has passed. *)

  val now : _ clock -> float
  (** Seconds since 1970; in a simulation, since its begin. *)

  val sleep_until : _ clock -> float -> unit
  (** Until the clock shows this; if it does already, as a yield. *)

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
    (** Since some time before the program began. *)

    val sleep_until : _ t -> Mtime.t -> unit
    (** Until the clock shows this. *)

    val sleep : _ t -> float -> unit
    (** So many seconds. *)

    val sleep_span : _ t -> Mtime.Span.t -> unit
    (** For this time. *)
  end

  module Timeout : sig
    type t

    val v : _ Mono.t -> Mtime.Span.t -> t
    (** So long from when it is used. *)

    val seconds : _ Mono.t -> float -> t
    (** The same in seconds. *)

    val none : t
    (** No limit. *)

    val run : t -> (unit -> ('a, 'e) result) -> ('a, ([> `Timeout ] as 'e)) result
    (** Cancels the function then, and returns [Error `Timeout]. *)

    val run_exn : t -> (unit -> 'a) -> 'a
    (** The same; raises {!Timeout}. *)

    val sleep : t -> unit
    (** Waits for so long; without a limit, for a cancel. *)

    val pp : Format.formatter -> t -> unit
    (** Prints its length. *)
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
  (** Fills the view. @raise End_of_file if there are fewer bytes. *)

  val read_all : _ source -> string
  (** All bytes until the end. *)

  val write : _ sink -> Cstruct.t list -> unit
  (** Writes all of these bytes. *)

  val single_write : _ sink -> Cstruct.t list -> int
  (** Writes some of them; how many. *)

  val copy : _ source -> _ sink -> unit
  (** Writes to the sink all that the source has until its end. *)

  val copy_string : string -> _ sink -> unit
  (** Writes the text. *)

  val shutdown : [> shutdown_ty ] Resource.t -> shutdown_command -> unit
  (** Ends one direction of the connection, or both. *)

  val close : [> Resource.close_ty ] Resource.t -> unit
  (** Closes it; a second time does nothing. *)

  val string_source : string -> source_ty Resource.t
  (** A source of the text's bytes. *)

  val cstruct_source : Cstruct.t list -> source_ty Resource.t
  (** A source of these bytes. *)

  val buffer_sink : Buffer.t -> sink_ty Resource.t
  (** A sink that adds to the buffer. *)

  (** Flows of your own, by functions as those above. *)

  val source_of_read : (Cstruct.t -> int) -> source_ty Resource.t
  (** One whose reads call the function. It returns how many bytes it has put into the view, or raises [End_of_file].
      *)

  val sink_of_write : (Cstruct.t list -> int) -> sink_ty Resource.t
  (** One whose writes call the function. It returns how many of the bytes it has taken, at least one. *)

  val two_way :
    ?shutdown:(shutdown_command -> unit) ->
    ?close:(unit -> unit) ->
    read:(Cstruct.t -> int) ->
    write:(Cstruct.t list -> int) ->
    unit ->
    [ two_way_ty | Resource.close_ty ] Resource.t
  (** A connection of these functions; [shutdown] and [close] do nothing unless they are given. *)
end

(** Reading by parsers, from a buffer that is filled from a flow. *)
module Buf_read : sig
  exception Buffer_limit_exceeded
  (** The reader would need more than [max_size] bytes at a time. *)

  type t
  type 'a parser = t -> 'a
  (** Takes what it returns from the buffer. Raises [Failure], [End_of_file] or {!Buffer_limit_exceeded}. *)

  val of_flow : ?initial_size:int -> max_size:int -> _ Flow.source -> t
  (** A reader of the flow, which keeps at most [max_size] bytes that were not consumed. *)

  val of_string : string -> t
  (** A reader of the text. *)

  val of_buffer : Cstruct.buffer -> t
  (** A reader of these bytes. *)

  val as_flow : t -> Flow.source_ty Resource.t
  (** The rest, as a flow. *)

  val parse : ?initial_size:int -> max_size:int -> 'a parser -> _ Flow.source -> ('a, [> `Msg of string ]) result
  (** The parser's result, if nothing follows; or why there is none. *)

  val parse_exn : ?initial_size:int -> max_size:int -> 'a parser -> _ Flow.source -> 'a
  (** The same; raises what the parser does, or [Failure]. *)

  val parse_string : 'a parser -> string -> ('a, [> `Msg of string ]) result
  (** The same of a text. *)

  val parse_string_exn : 'a parser -> string -> 'a
  (** The same of a text. *)

  val line : string parser
  (** Without its end, which is ["\n"] or ["\r\n"]. *)

  val lines : string Seq.t parser
  (** All lines, each without its end, as they are asked for. *)

  val char : char -> unit parser
  (** This character. @raise Failure if another comes. *)

  val any_char : char parser
  (** Any character. *)

  val peek_char : char option parser
  (** The next character, which stays; [None] at the end. *)

  val string : string -> unit parser
  (** This text. @raise Failure if another comes. *)

  val uint8 : int parser
  (** A byte. *)

  module BE : sig
    val uint16 : int parser
    (** An integer of two bytes. *)

    val uint32 : int32 parser
    (** An integer of four bytes. *)

    val uint64 : int64 parser
    (** An integer of eight bytes. *)

    val float : float parser
    (** A number of four bytes. *)

    val double : float parser
    (** A number of eight bytes. *)
  end

  module LE : sig
    val uint16 : int parser
    (** An integer of two bytes. *)

    val uint32 : int32 parser
    (** An integer of four bytes. *)

    val uint64 : int64 parser
    (** An integer of eight bytes. *)

    val float : float parser
    (** A number of four bytes. *)

    val double : float parser
    (** A number of eight bytes. *)
  end

  val take : int -> string parser
  (** So many bytes. *)

  val take_all : string parser
  (** All bytes until the end. *)

  val take_while : (char -> bool) -> string parser
  (** The longest text of such characters, which may be empty. *)

  val take_while1 : ?on_error:(unit -> string) -> (char -> bool) -> string parser
  (** The same; raises [Failure], with [on_error]'s text, if it is empty. *)

  val skip_while : (char -> bool) -> unit parser
  (** Passes over such characters. *)

  val skip_while1 : ?on_error:(unit -> unit) -> (char -> bool) -> unit parser
  (** The same; [Failure] if there is none. *)

  val skip : int -> unit parser
  (** Passes over so many bytes. *)

  val at_end_of_input : bool parser
  (** Whether nothing follows. *)

  val end_of_input : unit parser
  (** Nothing. @raise Failure if something follows. *)

  val return : 'a -> 'a parser
  (** This value, which takes no bytes. *)

  val map : ('a -> 'b) -> 'a parser -> 'b parser
  (** The function of its result. *)

  val bind : 'a parser -> ('a -> 'b parser) -> 'b parser
  (** The parser that the function returns for its result. *)

  val pair : 'a parser -> 'b parser -> ('a * 'b) parser
  (** One after the other. *)

  val seq : ?stop:bool parser -> 'a parser -> 'a Seq.t parser
  (** Again and again, as they are asked for, until [stop] returns [true]; by default until the end. *)

  val format_errors : 'a parser -> ('a, [> `Msg of string ]) result parser
  (** Its failures as [Error]. *)

  module Syntax : sig
    val ( let+ ) : 'a parser -> ('a -> 'b) -> 'b parser
    (** Like {!map}. *)

    val ( let* ) : 'a parser -> ('a -> 'b parser) -> 'b parser
    (** Like {!bind}. *)

    val ( and+ ) : 'a parser -> 'b parser -> ('a * 'b) parser
    (** Like {!pair}. *)

    val ( and* ) : 'a parser -> 'b parser -> ('a * 'b) parser
    (** Like {!pair}. *)

    val ( <*> ) : 'a parser -> 'b parser -> ('a * 'b) parser
    (** Like {!pair}. *)

    val ( <* ) : 'a parser -> 'b parser -> 'a parser
    (** Both, and the first one's result. *)

    val ( *> ) : 'a parser -> 'b parser -> 'b parser
    (** Both, and the second one's result. *)
  end

  val buffered_bytes : t -> int
  (** How many bytes are at hand. *)

  val peek : t -> Cstruct.t
  (** The content of the buffer, valid until the next call. *)

  val ensure : t -> int -> unit
  (** Waits until so many bytes are at hand. @raise End_of_file *)

  val consume : t -> int -> unit
  (** Takes so many of them. *)

  val consumed_bytes : t -> int
  (** How many were taken so far. *)

  val eof_seen : t -> bool
  (** Whether the flow has ended. *)
end

(** Writing to a buffer, which a task of its own writes to a flow. *)
module Buf_write : sig
  type t

  val with_flow : ?initial_size:int -> _ Flow.sink -> (t -> 'a) -> 'a
  (** All is written when the function has returned. *)

  val string : t -> ?off:int -> ?len:int -> string -> unit
  (** Writes the text, or a part of it. *)

  val bytes : t -> ?off:int -> ?len:int -> bytes -> unit
  (** The same of bytes. *)

  val cstruct : t -> Cstruct.t -> unit
  (** The same of a view. *)

  val schedule_cstruct : t -> Cstruct.t -> unit
  (** Writes it without a copy: it must not be changed until it is flushed. *)

  val char : t -> char -> unit
  (** Writes a character. *)

  val uint8 : t -> int -> unit
  (** Writes a byte. *)

  module BE : sig
    val uint16 : t -> int -> unit
    (** Writes an integer of two bytes. *)

    val uint32 : t -> int32 -> unit
    (** Writes an integer of four bytes. *)

    val uint64 : t -> int64 -> unit
    (** Writes an integer of eight bytes. *)

    val float : t -> float -> unit
    (** Writes a number of four bytes. *)

    val double : t -> float -> unit
    (** Writes a number of eight bytes. *)
  end

  module LE : sig
    val uint16 : t -> int -> unit
    (** Writes an integer of two bytes. *)

    val uint32 : t -> int32 -> unit
    (** Writes an integer of four bytes. *)

    val uint64 : t -> int64 -> unit
    (** Writes an integer of eight bytes. *)

    val float : t -> float -> unit
    (** Writes a number of four bytes. *)

    val double : t -> float -> unit
    (** Writes a number of eight bytes. *)
  end

  val printf : t -> ('a, unit, string, unit) format4 -> 'a
  (** Writes text by a format. *)

  val make_formatter : t -> Format.formatter
  (** A formatter that writes here; flush it by [Format.pp_print_flush]. *)

  val flush : t -> unit
  (** Waits until all has been written. *)

  val close : t -> unit
  (** The flow still gets all that was written; a further write raises [Failure]. *)

  val pending_bytes : t -> int
  (** How many bytes were not written to the flow yet. *)

  val is_closed : t -> bool
  (** Whether {!close} was called. *)
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
      (** 0.0.0.0: all addresses of this host. *)

      val loopback : [> `V4 ] t
      (** 127.0.0.1: this host. *)
    end

    module V6 : sig
      val any : [> `V6 ] t
      (** [::]: all addresses of this host. *)

      val loopback : [> `V6 ] t
      (** [::1]: this host. *)
    end

    val of_raw : string -> v4v6
    (** The address of 4 or 16 bytes. @raise Invalid_argument for others. *)

    val of_unix : Unix.inet_addr -> v4v6
    (** The address as in Unix. *)

    val to_unix : _ t -> Unix.inet_addr
    (** For Unix. *)

    val fold : v4:([> `V4 ] t -> 'b) -> v6:([> `V6 ] t -> 'b) -> [< `V4 | `V6 ] t -> 'b
    (** Calls the function for its version. *)

    val pp : Format.formatter -> _ t -> unit
    (** Prints it as usual. *)
  end

  module Sockaddr : sig
    type stream = [ `Unix of string | `Tcp of Ipaddr.v4v6 * int ]
    type datagram = [ `Udp of Ipaddr.v4v6 * int | `Unix of string ]
    type t = [ stream | datagram ]

    val pp : Format.formatter -> [< t ] -> unit
    (** Prints the kind, the address and the port. *)
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
  (** Its address; the port is the one that it has got. *)

  val accept : sw:Switch.t -> _ listening_socket -> stream_socket_ty Resource.t * Sockaddr.stream
  (** Waits for a connection, which the switch closes, and its peer. *)

  type connection_handler = stream_socket_ty Resource.t -> Sockaddr.stream -> unit

  val accept_fork : sw:Switch.t -> _ listening_socket -> on_error:(exn -> unit) -> connection_handler -> unit
  (** The same, and calls the function with it in a task of the switch, which then closes it; what that raises goes to
      [on_error]. *)

  val run_server :
    ?max_connections:int ->
    ?additional_domains:unit * int ->
    ?stop:'a Promise.t ->
    on_error:(exn -> unit) ->
    _ listening_socket ->
    connection_handler ->
    'a
  (** Calls the handler for each connection, in a task of its own. When [stop] is resolved it accepts no more, waits for
      the handlers, and returns the promise's value. Connections for which the system has no descriptor left wait until
      there is one. [additional_domains] changes nothing. *)

  val datagram_socket :
    ?reuse_addr:bool ->
    ?reuse_port:bool ->
    sw:Switch.t ->
    _ t ->
    [< Sockaddr.datagram | `UdpV4 | `UdpV6 ] ->
    datagram_socket_ty Resource.t
  (** A socket of datagrams, which the switch closes. *)

  val send : _ datagram_socket -> ?dst:Sockaddr.datagram -> Cstruct.t list -> unit
  (** Sends one datagram. *)

  val recv : _ datagram_socket -> Cstruct.t -> Sockaddr.datagram * int
  (** Waits for a datagram: its sender, and how many bytes of the view it has filled. *)

  val getaddrinfo_stream : ?service:string -> _ t -> string -> Sockaddr.stream list
  (** The addresses of the name, for streams. *)

  val getaddrinfo_datagram : ?service:string -> _ t -> string -> Sockaddr.datagram list
  (** For datagrams. *)

  val close : [> `Close ] Resource.t -> unit
  (** Closes it; a second time does nothing. *)
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
  (** The system's data about it. *)

  val size : _ ro -> int64
  (** How many bytes it has. *)

  val pread : _ ro -> file_offset:int64 -> Cstruct.t list -> int
  (** Reads some bytes from this place on; how many. @raise End_of_file *)

  val pread_exact : _ ro -> file_offset:int64 -> Cstruct.t list -> unit
  (** Fills the views from there. @raise End_of_file *)

  val pwrite_all : _ rw -> file_offset:int64 -> Cstruct.t list -> unit
  (** Writes all bytes to this place. *)

  val sync : _ rw -> unit
  (** Waits until the disk has what was written. *)

  val seek : _ ro -> int64 -> [ `Set | `Cur | `End ] -> int64
  (** Moves the place of reads and writes; the new one. *)

  val truncate : _ rw -> int64 -> unit
  (** Cuts it, or makes it longer by zeros. *)
end

(** A path is a text in a directory. *)
module Path : sig
  type 'a t = 'a Fs.dir * string

  val ( / ) : 'a t -> string -> 'a t
  (** The path below it; an absolute path is itself. *)

  val native : _ t -> string option
  (** The path in the system. @raise Exn.Io (Fs.E (Permission_denied _)) if it leads out of {!Haft_io.cwd}. *)

  val native_exn : _ t -> string
  (** The same. *)

  val split : 'a t -> ('a t * string) option
  (** The folder, and the name in it; [None]: there is no folder above. *)

  val pp : Format.formatter -> _ t -> unit
  (** Prints the directory's name and the path: [<cwd:notes/today>]. *)

  val load : _ t -> string
  (** The whole contents. *)

  val save : ?append:bool -> create:Fs.create -> _ t -> string -> unit
  (** Writes the text as the file's whole contents, or behind them. *)

  val open_in : sw:Switch.t -> _ t -> File.ro_ty Resource.t
  (** Opens it for reading; the switch closes it. *)

  val open_out : sw:Switch.t -> ?append:bool -> create:Fs.create -> _ t -> File.rw_ty Resource.t
  (** Opens it for writing, too. *)

  val with_open_in : _ t -> (File.ro_ty Resource.t -> 'a) -> 'a
  (** The same around a function. *)

  val with_open_out : ?append:bool -> create:Fs.create -> _ t -> (File.rw_ty Resource.t -> 'a) -> 'a
  (** The same around a function. *)

  val with_lines : _ t -> (string Seq.t -> 'a) -> 'a
  (** Calls the function with its lines, which are read as they are asked for. *)

  val mkdir : perm:File.Unix_perm.t -> _ t -> unit
  (** Makes a folder. *)

  val mkdirs : ?exists_ok:bool -> perm:File.Unix_perm.t -> _ t -> unit
  (** And those above it. [exists_ok]: it may be there. *)

  val read_dir : _ t -> string list
  (** Sorted, without ["."] and [".."]. *)

  val stat : follow:bool -> _ t -> File.Stat.t
  (** The system's data about it; [follow]: about the target of a symbolic link. *)

  val kind : follow:bool -> _ t -> [ File.Stat.kind | `Not_found ]
  (** Its kind. *)

  val is_file : _ t -> bool
  (** Whether it is a regular file, or leads to one. *)

  val is_directory : _ t -> bool
  (** Whether it is a folder, or leads to one. *)

  val unlink : _ t -> unit
  (** Removes the file. *)

  val rmdir : _ t -> unit
  (** Removes the empty folder. *)

  val rmtree : ?missing_ok:bool -> _ t -> unit
  (** Removes the folder with all in it. [missing_ok]: there may be none. *)

  val rename : _ t -> _ t -> unit
  (** Gives it another name; a file of that name is replaced. *)

  val symlink : link_to:string -> _ t -> unit
  (** Makes a symbolic link to this text. *)

  val read_link : _ t -> string
  (** The text of a symbolic link. *)

  val chmod : follow:bool -> perm:File.Unix_perm.t -> _ t -> unit
  (** Sets its permissions. *)

  val open_dir : sw:Switch.t -> _ t -> [ `Close | Fs.dir_ty ] t
  (** A directory out of which no path with [..], and no absolute one, leads. Symbolic links are followed. *)

  val with_open_dir : _ t -> ([ `Close | Fs.dir_ty ] t -> 'a) -> 'a
  (** The folder, from which no path leads out, around a function. *)
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
  (** Its number. *)

  val await : _ t -> status
  (** Waits for its end. *)

  val await_exn : ?is_success:(int -> bool) -> _ t -> unit
  (** Waits for its end. @raise Exn.Io unless it has exited with 0, or with a code for which [is_success] is
      true. *)

  val signal : _ t -> int -> unit
  (** Sends it a signal of [Sys]. *)

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
  (** Starts it and waits for its end, which must be a success. *)

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
  (** The same, and what the parser makes of its output. *)

  val pipe :
    sw:Switch.t ->
    _ mgr ->
    [ Flow.source_ty | Resource.close_ty ] Resource.t * [ Flow.sink_ty | Resource.close_ty ] Resource.t
  (** A pipe, whose ends the switch closes. *)

  val pp_status : Format.formatter -> [< status ] -> unit
  (** Prints how it has ended. *)
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
  (** Calls the function once there is room; its result, or what it raised. *)

  val submit_exn : t -> weight:float -> (unit -> 'a) -> 'a
  (** The same; raises that. *)

  val submit_fork : sw:Switch.t -> t -> weight:float -> (unit -> 'a) -> 'a Promise.or_exn
  (** The same in a task of the switch. *)
end

(** {1 The world outside of the program} *)

val clock : float Time.clock_ty Resource.t
(** The time of the day; virtual in a simulation. *)

val mono_clock : Time.Mono.ty Resource.t
(** The monotonic clock, which is never set. *)

val net : [ `Generic | Net.ty ] Resource.t
(** The system's network; the simulation's in one. *)

val fs : Fs.dir_ty Path.t
(** All files: paths that do not begin with ["/"] are those of the current directory. *)

val cwd : Fs.dir_ty Path.t
(** The current directory. A path that leads out of it by its text is [Fs.Permission_denied]; symbolic links are
    followed. *)

val process_mgr : Process.mgr_ty Resource.t
(** Starts the system's processes. *)

val domain_mgr : Domain_manager.ty Resource.t
(** For {!Domain_manager.run}. *)

val secure_random : Flow.source_ty Resource.t
(** Random bytes for secrets; by the seed in a simulation. *)

val stdin : Flow.source_ty Resource.t
(** Standard input, which stays open. *)

val stdout : Flow.sink_ty Resource.t
(** Standard output. *)

val stderr : Flow.sink_ty Resource.t
(** Standard error. *)

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
  (** {!Haft_io.stdin}, of {!env}. *)

  val stdout : < stdout : 'a ; .. > -> 'a
  (** {!Haft_io.stdout}. *)

  val stderr : < stderr : 'a ; .. > -> 'a
  (** {!Haft_io.stderr}. *)

  val net : < net : 'a ; .. > -> 'a
  (** {!Haft_io.net}. *)

  val domain_mgr : < domain_mgr : 'a ; .. > -> 'a
  (** {!Haft_io.domain_mgr}. *)

  val process_mgr : < process_mgr : 'a ; .. > -> 'a
  (** {!Haft_io.process_mgr}. *)

  val clock : < clock : 'a ; .. > -> 'a
  (** {!Haft_io.clock}. *)

  val mono_clock : < mono_clock : 'a ; .. > -> 'a
  (** {!Haft_io.mono_clock}. *)

  val fs : < fs : 'a ; .. > -> 'a
  (** {!Haft_io.fs}. *)

  val cwd : < cwd : 'a ; .. > -> 'a
  (** {!Haft_io.cwd}. *)

  val secure_random : < secure_random : 'a ; .. > -> 'a
  (** {!Haft_io.secure_random}. *)

  val backend_id : < backend_id : string ; .. > -> string
  (** ["haft"]. *)
end

val env : Stdenv.base
(** All of the system's, for programs of Eio. *)

(** {1 The names that programs of Eio open} *)

module Std : sig
  module Promise = Promise
  module Fiber = Fiber
  module Switch = Switch

  type 'a r = 'a Resource.t

  val traceln : ('a, Format.formatter, unit, unit) format4 -> 'a
  (** Writes a line to standard error at once, with a ["+"] in front. *)
end

val traceln : ('a, Format.formatter, unit, unit) format4 -> 'a
(** {!Std.traceln}. *)

(** {1 Mocks} *)

(** Clocks, flows and networks that a test scripts, by Eio_mock's names. {!traceln} writes each call on them, so a test
    may compare its output. {!simulate} needs no script, and has both ends. *)
module Mock : sig
  module Action : sig
    (** An action of a mock's call: it returns, raises, waits for a promise, lets other tasks go first, or calls. *)
    type 'a t =
      [ `Return of 'a | `Raise of exn | `Await of 'a Promise.or_exn | `Yield_then of 'a t | `Run of unit -> 'a ]

    val run : 'a t -> 'a
    (** Does it. *)

    val map : ('a -> 'b) -> 'a t -> 'b t
    (** The same action, and the function of what it returns. *)
  end

  (** The actions of the calls of one kind, one after the other. *)
  module Handler : sig
    type 'a t
    type 'a actions = 'a Action.t list

    val make : 'a Action.t -> 'a t
    (** The action is the default, for calls without another one. *)

    val seq : 'a t -> 'a actions -> unit
    (** The next calls do these, in their order, and further ones the default. *)

    val set_handler : 'a t -> (unit -> 'a) -> unit
    (** Sets the function that calls run from now on. *)

    val run : 'a t -> 'a
    (** Does what the next call is to do. *)

    val run_default_action : 'a t -> 'a
    (** Does the default. *)
  end

  module Flow : sig
    type ty = [ Flow.two_way_ty | Net.socket_ty | `Stream | `Mock ]
    type t = ty Resource.t

    val make : ?pp:(Format.formatter -> string -> unit) -> string -> t
    (** A flow of that name, which is at its end until {!on_read} sets what comes, and takes what is written. [pp]
        prints the bytes in traces. *)

    val on_read : t -> string Handler.actions -> unit
    (** Sets the results of reads. A text for which the reader has no room is a [Failure]. *)

    val on_copy_bytes : t -> int Handler.actions -> unit
    (** How many bytes, at most, a write takes; 4096 by default. *)

    val attach_to_switch : t -> Switch.t -> unit
    (** The switch closes it. *)
  end

  module Net : sig
    type t = [ `Network | `Mock ] Resource.t
    type listening_socket = [ Net.listening_socket_ty | `Mock ] Resource.t

    val make : string -> t
    (** A network of that name, each call of which is a [Failure] until the functions below set its results. The
        caller's switch closes these. *)

    val on_connect : t -> _ Net.stream_socket Handler.actions -> unit
    (** Sets the results of [Net.connect]. *)

    val on_listen : t -> _ Net.listening_socket Handler.actions -> unit
    (** Sets the results of [Net.listen]. *)

    val on_datagram_socket : t -> _ Net.datagram_socket Handler.actions -> unit
    (** Sets the results of [Net.datagram_socket]. *)

    val on_getaddrinfo : t -> Net.Sockaddr.t list Handler.actions -> unit
    (** Sets the results of [Net.getaddrinfo] and its kin. *)

    val listening_socket : ?listening_addr:Net.Sockaddr.stream -> string -> listening_socket
    (** One for {!on_listen}. [listening_addr] is what [Net.listening_addr] returns: [0.0.0.0:0] by default. *)

    val on_accept : listening_socket -> (Flow.t * Net.Sockaddr.stream) Handler.actions -> unit
    (** Sets the results of [Net.accept]. *)
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
      (** It shows 0. *)

      val advance : t -> unit
      (** Like {!Clock.advance}. *)

      val try_advance : t -> bool
      (** Like {!Clock.try_advance}. *)

      val set_time : t -> Mtime.t -> unit
      (** Like {!Clock.set_time}. *)
    end
  end

  module Backend : sig
    exception Deadlock_detected
    (** All tasks wait, and nothing is left to wait for. *)

    val run : (unit -> 'a) -> 'a
    (** Like {!simulate}, but the tasks go on in the order in which they became ready.
        @raise Deadlock_detected if no task can ever go on. *)
  end
end

(** [open Haft_io.As_eio] in front of a program of Eio: its modules, by Eio's names. *)
module As_eio : sig
  module Eio : sig
    module Std = Std
    module Exn = Exn

    exception Io of Exn.err * Exn.context
    (** {!Exn.Io}. *)

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
    (** {!Std.traceln}. *)
  end

  module Eio_main : sig
    val run : (Stdenv.base -> 'a) -> 'a
    (** {!Haft_io.run} of a function that takes {!Haft_io.env}. *)
  end

  module Eio_unix : sig
    val run_in_systhread : ?label:string -> (unit -> 'a) -> 'a
    (** {!Haft_io.run_in_systhread}. *)

    val sleep : float -> unit
    (** {!Time.sleep} by the system's clock. *)

    val await_readable : Unix.file_descr -> unit
    (** {!Haft_io.await_readable}. *)

    val await_writable : Unix.file_descr -> unit
    (** {!Haft_io.await_writable}. *)
  end

  module Eio_mock = Mock
  module Cstruct = Cstruct
  module Mtime = Mtime
end
