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

external magic : 'a -> 'b = "%identity"
external closure : int -> Obj.t = "haft_ocaml_closure" [@@noalloc]

(* Closures of data.S, as in effect.ml. *)
let runstack_closure = closure 2

let[@inline] match_with f x handler =
  (magic runstack_closure : ('a -> 'b) -> 'a -> Obj.t -> 'c) f x (Obj.repr handler)

(* Their code is in switch.S: see place_jumps.sh. *)
let[@inline never] decline effect k = (magic k : 'a Effect.t -> 'b) effect
let[@inline never] decline_after_guards effect k = (magic k : 'a Effect.t -> 'b) effect

let reraise : exn -> 'a = magic (closure 7)
