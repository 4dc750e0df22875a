(* The stand-in's interface: OCaml 5's, as far as translated programs and the tests use it. *)

type 'a eff = ..
type 'a t = 'a eff = ..

exception Unhandled : 'a t -> exn
exception Continuation_already_resumed

val perform : 'a t -> 'a

module Deep : sig
  type ('a, 'b) continuation

  val continue : ('a, 'b) continuation -> 'a -> 'b
  val discontinue : ('a, 'b) continuation -> exn -> 'b

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'b) continuation -> 'b) option;
  }

  val match_with : ('c -> 'a) -> 'c -> ('a, 'b) handler -> 'b

  type 'a effect_handler = { effc : 'b. 'b t -> (('b, 'a) continuation -> 'a) option }

  val try_with : ('b -> 'a) -> 'b -> 'a effect_handler -> 'a
end
(* SPDX-License-Identifier: MIT *)
