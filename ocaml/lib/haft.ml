(* SPDX-License-Identifier: MIT *)
module Effect = Effect

module Syntax = struct
  module Predefined = struct
    type 'a eff = 'a Effect.eff = ..
  end

  type ('a, 'b) handler = ('a, 'b) Effect.Deep.handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c Effect.t -> (('c, 'b) Effect.Deep.continuation -> 'b) option;
  }

  external closure : int -> Obj.t = "haft_ocaml_closure" [@@noalloc]

  let reraise : exn -> 'a = Obj.magic (closure 7)
end

external unsafe_clone :
  ('a, 'b) Effect.Deep.continuation -> ('a, 'b) Effect.Deep.continuation
  = "haft_ocaml_clone"
