(* SPDX-License-Identifier: MIT *)
(** What Haft has beyond OCaml 5's [Effect]. *)

val unsafe_clone :
  ('a, 'b) Effect.Deep.continuation -> ('a, 'b) Effect.Deep.continuation
(** [unsafe_clone k] is a copy of the suspended computation [k], which stays as it is: each of the two can be
    resumed once. So a computation can be gone through several times, for backtracking search or
    probabilistic programs (§A, "Experimental support for multi-shot continuations").

    {b Unsafe.} OCaml code is written and compiled for calls that return once. What a computation that is
    resumed twice shares, and what each copy has for itself, is up to the compiler's optimisations: a
    reference that does not escape lives on the stack and is copied, any other is shared. What is closed,
    unlocked or freed at the end is so twice. In types that are inferred nothing tells.

    The handlers inside [k] go with it, so that each copy has its own. What is captured inside stays one: if
    [k] waits in an [effc] that has been given a continuation, both copies have that one, and the second that
    declines the effect, or resumes it, gets {!Effect.Continuation_already_resumed}. A copy costs what is on the
    stacks, to make and to resume.

    @raise Effect.Continuation_already_resumed if [k] was resumed before.
    @raise Invalid_argument if functions of C are on the stack: they cannot be copied.
    @raise Out_of_memory *)

module Effect = Effect
(** For programs that write [Stdlib.Effect]: the preprocessor reads [Haft.Effect]. *)

(** What the code uses that [haft-effect-syntax] generates. It is not for use by hand. *)
module Syntax : sig
  (** What is in scope everywhere in OCaml 5.3. *)
  module Predefined : sig
    type 'a eff = 'a Effect.eff = ..
  end

  (** {!Effect.Deep.handler}, with labels that nothing else has here. *)
  type ('a, 'b) handler = ('a, 'b) Effect.Deep.handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c Effect.t -> (('c, 'b) Effect.Deep.continuation -> 'b) option;
  }

  val reraise : exn -> 'a
  (** Raises in its caller's place: the backtrace goes on with the callers of that. *)
end
