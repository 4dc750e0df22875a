(* SPDX-License-Identifier: MIT *)
(** Additions of Haft to OCaml 5's [Effect]. *)

val unsafe_clone :
  ('a, 'b) Effect.Deep.continuation -> ('a, 'b) Effect.Deep.continuation
(** [unsafe_clone k] is a copy of the suspended computation [k]; [k] stays as it is, and each of the
    two can be resumed once. So a program can run the rest of a computation several times, for
    backtracking search or probabilistic programs (§A, "Experimental support for multi-shot
    continuations").

    {b Unsafe.} OCaml code is written and compiled for calls that return once. The compiler's
    optimisations decide what the copies share: each copy has its own of a reference that does not
    escape, which lies on the stack; they share any other. Each copy closes, unlocks and frees what
    the computation closes, unlocks and frees at its end. Inferred types do not show that a
    continuation is a copy.

    The handlers inside [k] are copied with it, so that each copy has its own. A continuation that
    was captured inside [k] is not copied: if [k] waits in an [effc] that has been given a
    continuation, both copies have this one, and the second copy that resumes it, or declines the
    effect, gets {!Effect.Continuation_already_resumed}. Making and resuming a copy takes time
    proportional to what is on its stacks.

    @raise Effect.Continuation_already_resumed if [k] was resumed before.
    @raise Invalid_argument if functions of C are on the stack: they cannot be copied.
    @raise Out_of_memory if there is no memory for the copy. *)
