(* SPDX-License-Identifier: MIT *)
(* The simplest programs of the public set, a step: each step performs once or twice and is continued at once. *)
open Public_set

(* So many characters, in lines of nine dollars. *)
let parsed characters =
  let left = ref characters in
  parsing (fun () ->
      if !left = 0 then '.'
      else (
        decr left;
        if !left mod 10 = 0 then '\n' else '$'))

let () =
  Loops.loop "countdown" (fun n -> assert (countdown n = 0));
  Loops.loop "iterator" (fun n -> assert (iterator n = n * (n + 1) / 2));
  Loops.loop "parsing-dollars" (fun n -> assert (parsed n = n - ((n + 9) / 10)))
