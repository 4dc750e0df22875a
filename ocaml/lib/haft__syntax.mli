(* SPDX-License-Identifier: MIT *)
(** For the code that [haft-effect-syntax] generates. Not for use by hand.

    All that this code mentions is here, because a program may have modules, types and constructors
    of its own with any other name. *)

module Effect = Effect
module Obj = Stdlib.Obj

module Option : sig
  type 'a t = 'a option = None | Some of 'a
end

(** The types that OCaml 5.3 has in scope everywhere. *)
module Predefined : sig
  type 'a eff = 'a Effect.eff = ..
  type ('a, 'b) continuation = ('a, 'b) Effect.Deep.continuation
end

(** OCaml 5's [Stdlib.Effect]. *)
module Standard_library : sig
  module Stdlib : sig
    include module type of struct
      include Stdlib
    end

    module Effect = Effect
  end
end

type bool = Stdlib.Bool.t = false | true
type 'a ref = 'a Stdlib.ref

external ( ! ) : 'a ref -> 'a = "%field0"
external raise_notrace : exn -> 'a = "%raise_notrace"

(** Like {!Effect.Deep.handler}, but that [effc] is not asked for a clause: it is the clause, or
    {!decline}. (The runtime tells the two by the arity of [effc], or by what it returns.) *)
type ('a, 'b) handler = {
  retc : 'a -> 'b;
  exnc : exn -> 'b;
  effc : 'c. 'c Effect.t -> ('c, 'b) Effect.Deep.continuation -> 'b;
}

val match_with : ('c -> 'a) -> 'c -> ('a, 'b) handler -> 'b

val decline : 'a Effect.t -> ('a, 'b) Effect.Deep.continuation -> 'b
(** In tail position of [effc]: the next handler outwards is asked. *)

val decline_after_guards : 'a Effect.t -> ('a, 'b) Effect.Deep.continuation -> 'b
(** The same, where [effc] has run code of the program's before, so that the computation around it
    may have been copied. *)

val reraise : exn -> 'a
(** Raises the exception as if its caller did: the backtrace goes on with that function's
    callers. *)
