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

let passing =
  { retc = same; exnc = raise; effc = (fun (type a) (_ : a Effect.t) -> None) }

let ticking =
  {
    effc =
      (fun (type a) (performed : a Effect.t) ->
        match performed with
        | Tick -> Some (fun (k : (a, _) continuation) -> continue k ())
        | Increment i ->
            Some (fun (k : (a, _) continuation) -> continue k (i + 1))
        | _ -> None);
  }

let others =
  {
    effc =
      (fun (type a) (performed : a Effect.t) ->
        match performed with
        | Never -> Some (fun (k : (a, unit) continuation) -> continue k ())
        | _ -> None);
  }

let () =
  Loops.loop "install-return" (fun n ->
      for i = 1 to n do
        ignore (match_with same i passing)
      done);
  Loops.loop "try-with-return" (fun n ->
      for i = 1 to n do
        ignore (try_with same i ticking)
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
  else try_with (fun () -> ticks_below (depth - 1) n) () others

let () =
  Loops.loop "perform-continue" (fun n -> try_with ticks n ticking);
  Loops.loop "perform-continue-payload" (fun n ->
      try_with
        (fun n ->
          for i = 1 to n do
            ignore (perform (Increment i))
          done)
        n ticking);
  Loops.loop "install-perform-continue-return" (fun n ->
      for i = 1 to n do
        ignore (try_with (fun i -> perform (Increment i)) i ticking)
      done);
  List.iter
    (fun depth ->
      Loops.loop
        (Printf.sprintf "reperform-%d" depth)
        (fun n -> try_with (ticks_below depth) n ticking))
    [ 1; 10 ]

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
