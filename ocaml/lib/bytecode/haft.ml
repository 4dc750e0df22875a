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

  let reraise = raise
end

type _ Effect.t += Unsafe_clone : 'a Effect.t

let unsafe_clone _ = Effect.perform Unsafe_clone
