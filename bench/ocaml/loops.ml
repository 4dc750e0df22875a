(* SPDX-License-Identifier: MIT *)
(* Loops of the microbenchmark harness (harness.h) in OCaml. *)

(* [loop name body]: [body n] performs [n] operations. *)
external loop : string -> (int -> unit) -> unit = "bench_loop"

(* Starts the clock: nothing that the body did before is timed. *)
external start : unit -> unit = "bench_start" [@@noalloc]

(* True for a smoke run, from the first time that a loop runs: small data, please. *)
external is_quick : unit -> bool = "bench_is_quick" [@@noalloc]

(* Runs all loops, by the program's arguments. *)
external run : string array -> int = "bench_run"

(* A result that is computed by [n] operations of [f]. *)
let calls name f =
  loop name (fun n ->
      for _ = 1 to n do
        ignore (Sys.opaque_identity (f ()))
      done)
