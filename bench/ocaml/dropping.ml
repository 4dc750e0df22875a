(* SPDX-License-Identifier: MIT *)
(* dropping COUNT: so many computations are made, of which 100,000 wait at any time, each below up to 31 calls.
   A new one takes the place of another, no matter how long that has waited: every other time it goes on and
   ends, else it is dropped. *)
open Effect
open Effect.Deep

type _ Effect.t += Wait : int t
type place = Empty | Waits of (int, int) continuation

let[@inline never] rec deep n = if n = 0 then perform Wait else 1 + deep (n - 1)

let start place calls =
  match deep calls with
  | n -> n
  | effect Wait, k ->
      place := Waits k;
      0

let () =
  let count = int_of_string Sys.argv.(1) in
  let places = Array.init 100_000 (fun _ -> ref Empty) in
  let sum = ref 0 and random = ref 1 in
  for i = 1 to count do
    random := ((!random * 1_103_515_245) + 12_345) land 0x3fffffff;
    let place = places.((!random lsr 8) mod Array.length places) in
    (match !place with
    | Waits k when i land 1 = 0 -> sum := !sum + continue k 1
    | Waits _ | Empty -> ());
    assert (start place (i land 31) = 0)
  done;
  Printf.printf "%d\n" !sum
