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
    OCaml 5, an effect that is performed under a function of C which has called OCaml code back is
    handled like any other, and the function of C goes on when the continuation is resumed. The
    runtime calls finalisers, signal handlers and the callbacks of [Gc.Memprof] inside whatever code
    happens to run: an effect that they do not handle themselves raises {!Unhandled} in them.

    Threads: each has handlers of its own. Any thread may resume a continuation. *)

type 'a eff = ..
(** The type of effects: [type _ eff += E : argument -> result eff] declares an effect which, when
    performed, returns a [result] (§4.1). In OCaml 5.3 this type is in scope everywhere; so it is in
    files that the preprocessor translates. *)

type 'a t = 'a eff = ..
(** The same type under OCaml 5.0's name: [type _ Effect.t += E : argument -> result Effect.t]. *)

exception Unhandled : 'a t -> exn
(** {!perform} raises this where the effect was performed if no handler handles the effect, so that
    the code that performed it can clean up (§3). *)

exception Continuation_already_resumed
(** The functions that resume a continuation raise this if it was resumed before: continuations are
    one-shot (§3). *)

val perform : 'a t -> 'a
(** [perform e] suspends the computation up to the innermost handler, and gives the handler the
    effect and the continuation. If that handler does not handle the effect, the next handler
    outwards is asked. [perform e] returns, or raises, what the continuation is resumed with.

    @raise Unhandled if no handler handles the effect. *)

(** Deep handlers: a continuation that was captured comes with the handler that captured it. *)
module Deep : sig
  type ('a, 'b) continuation
  (** A suspended computation that expects an ['a] and, together with its handler, ends in a ['b].
      It keeps everything that the computation refers to alive. A continuation without references is
      collected with its stack, and the computation's cleanup code does not run: {!discontinue} it
      to run that code. *)

  val continue : ('a, 'b) continuation -> 'a -> 'b
  (** [continue k v] resumes the computation: its {!perform} returns [v]. A call in tail position
      takes no stack.

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue : ('a, 'b) continuation -> exn -> 'b
  (** [discontinue k e] resumes the computation by raising [e] where it was suspended (§3).

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue_with_backtrace :
    ('a, 'b) continuation -> exn -> Printexc.raw_backtrace -> 'b
  (** [discontinue_with_backtrace k e b] is [discontinue k e], with [b] as the beginning of the
      exception's backtrace. *)

  type ('a, 'b) handler = {
    retc : 'a -> 'b;  (** applied to the value that the computation returns *)
    exnc : exn -> 'b;  (** applied to the exception that the computation raises *)
    effc : 'c. 'c t -> (('c, 'b) continuation -> 'b) option;
        (** applied to an effect: [Some f] handles it by [f]; [None]: the next handler outwards is
            asked *)
  }
  (** A handler makes a ['b] of a computation that returns an ['a]. Its functions run outside of the
      handler: what they raise and perform goes to the handlers further out. *)

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
  (** [get_callstack k n] is the innermost [n] calls of the computation, as it was suspended. Empty
      if [k] was resumed. *)
end

(** Shallow handlers: a shallow handler handles only the first effect. The code that resumes the
    continuation gives it the handler for the next one. *)
module Shallow : sig
  type ('a, 'b) continuation
  (** A suspended computation that expects an ['a] and returns a ['b]. *)

  val fiber : ('a -> 'b) -> ('a, 'b) continuation
  (** [fiber f] is the computation that applies [f] to the value with which it is resumed. *)

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'a) continuation -> 'b) option;
  }
  (** Like {!Deep.handler}; the continuation comes without a handler. *)

  val continue_with : ('c, 'a) continuation -> 'c -> ('a, 'b) handler -> 'b
  (** [continue_with k v h] resumes the computation with [v] under the handler [h].

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue_with :
    ('c, 'a) continuation -> exn -> ('a, 'b) handler -> 'b
  (** [discontinue_with k e h] resumes the computation by raising [e] in it, under the handler [h].

      @raise Continuation_already_resumed if [k] was resumed before. *)

  val discontinue_with_backtrace :
    ('a, 'b) continuation ->
    exn ->
    Printexc.raw_backtrace ->
    ('b, 'c) handler ->
    'c
  (** Like {!Deep.discontinue_with_backtrace}, under the given handler. *)

  val get_callstack : ('a, 'b) continuation -> int -> Printexc.raw_backtrace
  (** Like {!Deep.get_callstack}. *)
end
