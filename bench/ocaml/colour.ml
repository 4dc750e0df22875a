(* SPDX-License-Identifier: MIT *)
(* Chameneos, and how their colours change when two meet. *)
type t = Blue | Red | Yellow

let complement one other =
  match (one, other) with
  | Blue, Blue | Red, Yellow | Yellow, Red -> Blue
  | Red, Red | Blue, Yellow | Yellow, Blue -> Red
  | Yellow, Yellow | Blue, Red | Red, Blue -> Yellow

let creatures = [ Blue; Red; Yellow; Blue ]
