(* Effects in every form; the compiler has nothing to warn of. *)
effect A : int -> int
effect B = A

type _ eff += C : unit eff

let matched f =
  match f () with
  | value -> value
  | exception Exit -> 0
  | effect A n, k -> Effect.Deep.continue k n

let matched_without_exceptions f =
  match f () with value -> value | effect (B _ | A _), _ -> 1

let tried f = try f () with effect C, k -> Stdlib.Effect.Deep.continue k ()
let tried_with_exceptions f = try f () with Exit -> () | effect C, k -> Effect.Deep.continue k ()
let () =
  ignore (matched (fun () -> Effect.perform (A 1)));
  ignore (matched_without_exceptions (fun () -> Effect.perform (B 1)));
  tried (fun () -> Effect.perform C);
  tried_with_exceptions (fun () -> Effect.perform C)
(* SPDX-License-Identifier: MIT *)
