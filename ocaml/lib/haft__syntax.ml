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

type ('a, 'b) handler = ('a, 'b) Effect.Deep.handler = {
  retc : 'a -> 'b;
  exnc : exn -> 'b;
  effc : 'c. 'c Effect.t -> (('c, 'b) Effect.Deep.continuation -> 'b) option;
}

external closure : int -> Obj.t = "haft_ocaml_closure" [@@noalloc]

let reraise : exn -> 'a = Obj.magic (closure 7)
