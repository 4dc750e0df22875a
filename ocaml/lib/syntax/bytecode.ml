(* SPDX-License-Identifier: MIT *)

(* The end of the module Haft__syntax in bytecode, behind names.ml. *)

(* By what Effect offers to all: an effect that is declined is performed again, outside. *)
let match_with f x { retc; exnc; effc } =
  Effect.Deep.match_with f x { retc; exnc; effc = (fun effect -> Option.Some (effc effect)) }

let decline effect k =
  match Effect.perform effect with
  | value -> Effect.Deep.continue k value
  | exception exn -> Effect.Deep.discontinue k exn

let decline_after_guards = decline
let reraise = raise
