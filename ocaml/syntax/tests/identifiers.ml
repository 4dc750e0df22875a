(* `effect` as an identifier: in expressions, patterns, types, labels, fields, classes. *)
let effect = 1
let f effect = effect + 1
let g = f effect
let h = (effect + effect : int)
type effect = Effect of int
let k (x : effect) = match x with Effect effect -> effect
let l = function effect, x -> effect + x
let m = function effect :: _ -> effect | [] -> 0
let n effect (x) = effect x
let o = n (fun x -> x) (effect)
let p = match [1] with | effect -> effect
let q = match 1, 2 with | effect, _ when effect = 3 -> effect | (effect as e), _ -> e + effect
type poly = [ `effect of int ]
let r (`effect x : poly) = x
let s = function `effect x -> x
type 'a e = 'a constraint 'a = effect
type record = { effect : int }
let t { effect } = { effect }
let u r = { r with effect = 3 }
let v = function { effect = e } -> e
let w = function (_ : effect list), (_ : (effect * effect) list) -> ()
module M = struct let effect x = x type effect = int end
let x = M.effect (Effect 1)
let effect c : int = c
let y = (effect 5 : int)
let z ~effect ?(effect' = effect) () = effect
class effect = object method effect = 1 end
exception E of effect
let aa = [%ocaml.extension_constructor E] [@effect]
let bb effect (E x : exn) = effect x [@@ocaml.warning "-8"]
let effect (E x) = x [@@ocaml.warning "-8"]
let cc = effect (E (new effect))
(* SPDX-License-Identifier: MIT *)
