(* SPDX-License-Identifier: MIT *)
(* A module of the program's own is called Effect. *)
module Effect = struct
  let name = "its own"
end

open Effect

effect Number : int
type _ eff += Other : int eff
exception Stop

let ask () = Stdlib.Effect.perform Number

let with_values f =
  match f () with
  | n -> n
  | exception Stop -> 0
  | effect Number, k -> Stdlib.Effect.Deep.continue k 2

let with_effects f = try f () with effect Number, k -> Stdlib.Effect.Deep.continue k 3 | effect Other, _ -> 0

let () =
  Printf.printf "%s: %d %d\n" name
    (with_values (fun () -> ask () + ask ()))
    (with_effects (fun () -> ask () + ask ()))
