(* SPDX-License-Identifier: MIT *)
module Effect = Effect
module Obj = Stdlib.Obj
module Option = Stdlib.Option

module Predefined = struct
  type 'a eff = 'a Effect.eff = ..
  type ('a, 'b) continuation = ('a, 'b) Effect.Deep.continuation
end

module Standard_library = struct
  module Stdlib = struct
    include Stdlib
    module Effect = Effect
  end
end

type bool = Stdlib.Bool.t = false | true
type 'a ref = 'a Stdlib.ref

external ( ! ) : 'a ref -> 'a = "%field0"
external raise_notrace : exn -> 'a = "%raise_notrace"

type ('a, 'b) handler = {
  retc : 'a -> 'b;
  exnc : exn -> 'b;
  effc : 'c. 'c Effect.t -> ('c, 'b) Effect.Deep.continuation -> 'b;
}

(* By what Effect offers to all: an effect that is declined is performed again, outside. *)
let match_with f x { retc; exnc; effc } =
  Effect.Deep.match_with f x { retc; exnc; effc = (fun effect -> Option.Some (effc effect)) }

let decline effect k =
  match Effect.perform effect with
  | value -> Effect.Deep.continue k value
  | exception exn -> Effect.Deep.discontinue k exn

let decline_after_guards = decline
let reraise = raise
