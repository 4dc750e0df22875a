(* SPDX-License-Identifier: MIT *)

(* The beginning of the module Haft__syntax, in native code and in bytecode: all of its interface but
   the functions, which native.ml and bytecode.ml have. *)

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
