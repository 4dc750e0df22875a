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
(** What each task of the run waits for, by the contexts of their cancels: a line for each. *)

val run_in_systhread : ?label:string -> (unit -> 'a) -> 'a
(** [run_in_systhread f] calls [f] on a thread of the system, and waits for it; meanwhile other tasks run. For functions
    that block in a blocking section, such as those of [Unix]. [f] is no task. No cancel ends the wait. *)

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

val clock : float Time.clock_ty Resource.t
val mono_clock : Time.Mono.ty Resource.t

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
