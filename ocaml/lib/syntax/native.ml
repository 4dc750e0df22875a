(* SPDX-License-Identifier: MIT *)

(* The end of the module Haft__syntax in native code, behind names.ml. *)

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
