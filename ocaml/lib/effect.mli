(* SPDX-License-Identifier: MIT *)
(** Effect handlers: the module [Effect] of OCaml 5, for native OCaml 4.

    {[
      open Effect
      open Effect.Deep

      type _ Effect.t += Ask : string -> int Effect.t

      let program () = perform (Ask "how many?") + 1

      let answer =
        try_with program ()
          { effc = fun (type a) (effect : a t) ->
              match effect with
              | Ask _ -> Some (fun (k : (a, _) continuation) -> continue k 41)
              | _ -> None }
    ]}

    Numbers of sections (§) refer to "Retrofitting effect handlers onto OCaml". Beyond the paper and
    OCaml 5, an effect that is performed under a C function which has called OCaml code back is handled like
    any other, and the C function goes on when the continuation is resumed. Finalisers, signal handlers
    and the callbacks of [Gc.Memprof] are exceptions: they run on behalf of the runtime inside whatever
    code happens to run, so an effect that they do not handle themselves is {!Unhandled} there.

    Threads: each has handlers of its own. A continuation may be resumed by any thread. *)

type 'a eff = ..
(** The type of effects: [type _ eff += E : argument -> result eff] declares an effect which, when
    performed, returns a [result] (§4.1). OCaml 5.3 has this type in scope everywhere; the preprocessor sees
    to that. *)

type 'a t = 'a eff = ..
(** The same type under OCaml 5.0's name: [type _ Effect.t += E : argument -> result Effect.t]. *)

exception Unhandled : 'a t -> exn
(** Raised by {!perform}, where the effect was performed, if no handler handles it: so the code that
    performed it can clean up (§3). *)

exception Continuation_already_resumed
(** Raised by the functions that resume a continuation if it was resumed before: continuations are
    one-shot (§3). *)

val perform : 'a t -> 'a
(** [perform e] suspends the computation up to the innermost handler, and gives it the effect and the
    continuation. If that handler does not handle the effect, the next one outwards is asked. Returns, or
    raises, what the continuation is resumed with.

    @raise Unhandled if there is no handler that does. *)

(** Deep handlers: a continuation that was captured comes with the handler that captured it. *)
module Deep : sig
  type ('a, 'b) continuation
  (** A suspended computation that expects an ['a] and, together with its handler, ends in a ['b]. It
      keeps what the computation holds alive. If it is never resumed, it is collected with its stack,
      but without running the computation's cleanup code: to that end, {!discontinue} it. *)

  val continue : ('a, 'b) continuation -> 'a -> 'b
  (** [continue k v] resumes the computation: {!perform} returns [v] there. In tail position it takes no
      stack.

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue : ('a, 'b) continuation -> exn -> 'b
  (** [discontinue k e] resumes the computation by raising [e] where it was suspended (§3).

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue_with_backtrace :
    ('a, 'b) continuation -> exn -> Printexc.raw_backtrace -> 'b
  (** The same, with the origin of the exception that the backtrace tells. *)

  type ('a, 'b) handler = {
    retc : 'a -> 'b;  (** what a computation that returns ends in *)
    exnc : exn -> 'b;  (** and one that raises an exception *)
    effc : 'c. 'c t -> (('c, 'b) continuation -> 'b) option;
        (** what to do about an effect; [None]: ask the next handler outwards *)
  }
  (** A handler for a computation that returns an ['a], which makes a ['b] of it. Its functions run
      outside of it: what they raise and perform goes to the handlers further out. *)

  val match_with : ('c -> 'a) -> 'c -> ('a, 'b) handler -> 'b
  (** [match_with f x h] runs [f x] under the handler [h].

      @raise Out_of_memory if there is no memory for a stack. *)

  type 'a effect_handler = {
    effc : 'b. 'b t -> (('b, 'a) continuation -> 'a) option;
  }
  (** A handler that returns values and raises exceptions as they are. *)

  val try_with : ('b -> 'a) -> 'b -> 'a effect_handler -> 'a
  (** [try_with f x h] runs [f x] under the handler [h]. *)

  val get_callstack : ('a, 'b) continuation -> int -> Printexc.raw_backtrace
  (** [get_callstack k n] is where the computation was suspended: its innermost [n] calls. Empty if [k]
      was resumed. *)
end

(** Shallow handlers: they handle the first effect only, and the next one is up to the handler that the
    continuation is resumed with. *)
module Shallow : sig
  type ('a, 'b) continuation
  (** A suspended computation that expects an ['a] and returns a ['b]. *)

  val fiber : ('a -> 'b) -> ('a, 'b) continuation
  (** [fiber f] is the computation that applies [f] to what it is resumed with. *)

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'a) continuation -> 'b) option;
  }
  (** As {!Deep.handler}; the continuation comes without a handler. *)

  val continue_with : ('c, 'a) continuation -> 'c -> ('a, 'b) handler -> 'b
  (** [continue_with k v h] resumes the computation with [v] under the handler [h].

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue_with :
    ('c, 'a) continuation -> exn -> ('a, 'b) handler -> 'b
  (** [discontinue_with k e h] resumes it by raising [e], under the handler [h].

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue_with_backtrace :
    ('a, 'b) continuation ->
    exn ->
    Printexc.raw_backtrace ->
    ('b, 'c) handler ->
    'c
  (** The same, with the origin of the exception that the backtrace tells. *)

  val get_callstack : ('a, 'b) continuation -> int -> Printexc.raw_backtrace
  (** As {!Deep.get_callstack}. *)
end
