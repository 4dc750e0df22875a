(* SPDX-License-Identifier: MIT *)
(* The program has modules, types, constructors and functions of its own with the names of the standard library
   and of the package; and Stdlib.Effect is the one in scope. *)
[@@@ocaml.warning "-60-65"]

let ignore = ignore
let print = Printf.printf
let perform = Stdlib.Effect.perform
let continue = Effect.Deep.continue

type number = int
type 'a effect = 'a eff

module Standard = Stdlib

module Extended = struct
  module Stdlib = struct
    include Stdlib
    module Effect = struct include Stdlib.Effect let number = 1 end
  end

  effect Extended : number

  let handle () = try Stdlib.Effect.(perform Extended + number) with effect Extended, k -> continue k 6
end

module Stdlib = struct
  module Effect = struct let number = 10 end
end

module Haft = struct end
module Option = struct type t = None | Some end
module Obj = struct end
module Effect = struct type 'a t = Performed of 'a end
module Bool = struct end

type option = None | Some
type done_ = unit
type unit = ()
type bool = false | true
type list = [] | ( :: ) of number * list
type ref = Ref
type exn = Exn
type int = Int
type 'a eff = Nothing
type handler = { retc : int; exnc : int; effc : int }

let ref = ()
let raise = Exn
let raise_notrace = Exn
let reraise = Exn
let ( ! ) = false
let ( = ) = true
let magic = Some
let match_with = None
let try_with = None
let expected = None
let exn = Exn
let effect_result = Nothing
let value = { retc = Int; exnc = Int; effc = Int }

effect Number : number
effect Text : int -> number

let with_values f =
  match f () with
  | n -> n
  | exception Not_found -> 0
  | effect Number, k -> continue k 2

let without_exceptions f = match f () with n -> n | effect Number, k -> continue k 3
let with_effects f = try f () with effect Number, k -> continue k 4 | effect Text Int, k -> continue k 5
let with_exceptions f = try f () with Not_found -> 6 | effect Number, k -> continue k 7

let describe (effect : number effect) = match effect with Number -> 8 | Text _ -> 9 | _ -> 10

module Inner (Haft : sig end) (Stdlib : sig end) = struct
  effect Inside : number

  let handle f = match f () with n -> n | effect Inside, k -> Standard.Effect.Deep.continue k 9
end

module Applied = Inner (Haft) (Stdlib)

let own =
  ( Some, ref, ( ! ), ( = ), 1 :: [], Ref, raise, raise_notrace, effect_result, value, Effect.Performed Int,
    Option.Some, magic, expected, exn, reraise, match_with, try_with )

let (_ : done_) =
  ignore own;
  print "%d %d %d %d %d %d %d\n"
    (with_values (fun () -> perform Number))
    (without_exceptions (fun () -> perform Number))
    (with_effects (fun () -> perform (Text Int)))
    (with_exceptions (fun () -> perform Number))
    (describe Number + Stdlib.Effect.number)
    (Applied.handle (fun () -> perform Applied.Inside))
    (Extended.handle ())
