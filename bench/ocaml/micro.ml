(* SPDX-License-Identifier: MIT *)
(* The operations of effect handlers (§6.3), calls between OCaml and C, and exception handlers. *)
open Effect
open Effect.Deep

type _ Effect.t +=
  | Tick : unit Effect.t
  | Increment : int -> int Effect.t
  | Never : unit Effect.t

external identity : int -> int = "bench_identity"
external identity_noalloc : int -> int = "bench_identity" [@@noalloc]
external call : (int -> int) -> int -> int = "bench_call"
external call_often : (int -> int) -> int -> unit = "bench_call_often"

let same x = x

let[@inline] ticking f x =
  try f x with
  | effect Tick, k -> continue k ()
  | effect (Increment i), k -> continue k (i + 1)

let[@inline] others f x = try f x with effect Never, k -> continue k ()

let () =
  Loops.loop "install-return" (fun n ->
      for i = 1 to n do
        ignore (match same i with x -> x | effect Never, k -> continue k ())
      done);
  Loops.loop "try-with-return" (fun n ->
      for i = 1 to n do
        ignore (ticking same i)
      done);
  Loops.loop "ocaml/exception-handler" (fun n ->
      for i = 1 to n do
        ignore (try Sys.opaque_identity i with Exit -> 0)
      done);
  Loops.loop "ocaml/unknown-call" (fun n ->
      for i = 1 to n do
        ignore ((Sys.opaque_identity same) i)
      done)

let ticks n =
  for _ = 1 to n do
    perform Tick
  done

let rec ticks_below depth n =
  if depth = 0 then ticks n
  else others (fun () -> ticks_below (depth - 1) n) ()

let () =
  Loops.loop "perform-continue" (ticking ticks);
  Loops.loop "perform-continue-payload" (fun n ->
      ticking
        (fun n ->
          for i = 1 to n do
            ignore (perform (Increment i))
          done)
        n);
  Loops.loop "install-perform-continue-return" (fun n ->
      for i = 1 to n do
        ignore (ticking (fun i -> perform (Increment i)) i)
      done);
  List.iter
    (fun depth ->
      Loops.loop
        (Printf.sprintf "reperform-%d" depth)
        (ticking (ticks_below depth)))
    [ 1; 10; 100 ]

let () =
  Loops.loop "external-call" (fun n ->
      for i = 1 to n do
        ignore (identity i)
      done);
  Loops.loop "external-call-noalloc" (fun n ->
      for i = 1 to n do
        ignore (identity_noalloc i)
      done);
  Loops.loop "external-call-and-callback" (fun n ->
      for i = 1 to n do
        ignore (call same i)
      done);
  Loops.loop "callback" (fun n -> call_often same n)
