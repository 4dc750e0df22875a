(* The program has its own names for everything that effect cases are made of. *)
[@@@ocaml.warning "-60-65"]

effect Number : int
effect Stop : string -> int

module Effect_ = Stdlib.Effect

let print = Printf.printf

module Stdlib = struct end
module Haft = struct end
module Effect = struct end
module Option = struct end
module Obj = struct end

type 'a own_option = None | Some of 'a
type own_unit = ()
type own_bool = true | false
type 'a ref = Own_reference of 'a
type exn = Own_exception
type ('a, 'b) continuation = Own_continuation
type 'a t = Own of { retc : 'a; exnc : 'a; effc : 'a }

let ref () = 0
let ( ! ) _ = 0
let raise _ = 0
let raise_notrace _ = 0
let reraise = 0
let match_with = 0
let try_with = 0

effect After : int

let with_everything f =
  match f 0 with
  | n -> n
  | exception Exit -> -1
  | effect Number, k -> Effect_.Deep.continue k 2
  | effect After, k -> Effect_.Deep.continue k 2
  | effect Stop _, _ -> -2

let with_values f = match f 0 with n -> n | effect Number, k -> Effect_.Deep.continue k 3
let with_effects f = try f 0 with effect Number, k -> Effect_.Deep.continue k 4
let with_exceptions f = try f 0 with Exit -> 5 | effect Number, k -> Effect_.Deep.continue k 5

module Inner (Haft : sig end) (Stdlib : sig end) = struct
  effect Inside : int

  let handle f = match f 0 with n -> n | effect Inside, k -> Effect_.Deep.continue k 6
end

module Applied = Inner (Haft) (Stdlib)

let number _ = Effect_.perform Number + Effect_.perform Number

let _ =
  print "%d %d %d %d %d %d %d\n" (with_everything number)
    (with_everything (fun _ -> Effect_.perform After))
    (with_everything (fun _ -> Effect_.perform (Stop "")))
    (with_values number) (with_effects number) (with_exceptions number)
    (Applied.handle (fun _ -> Effect_.perform Applied.Inside))
