(* SPDX-License-Identifier: MIT *)
(* Handlers around one another: recursion with a handler at each level, a level (of a million, all of them); the
   same with an effect that passes them all; a sieve whose numbers pass a handler for each prime, a sieve; and
   minor collections below handlers that functions of C with local roots have called, a hundred
   collections. *)
open Effect
open Effect.Deep

type _ Effect.t +=
  | Never : unit Effect.t
  | Ask : int Effect.t
  | Prime : int -> bool Effect.t

let rec deep asks depth =
  if depth = 0 then if asks then perform Ask else 0
  else
    match deep asks (depth - 1) with
    | n -> n + 1
    | effect Never, k -> continue k ()

let passing depth = try deep true depth with effect Ask, k -> continue k 0

let rec primes i limit sum =
  if i >= limit then sum
  else if perform (Prime i) then
    try primes (i + 1) limit (sum + i)
    with effect (Prime n), k ->
      if n mod i = 0 then continue k false
      else continue k (perform (Prime n))
  else primes (i + 1) limit sum

let sieve limit =
  try primes 2 limit 0 with effect (Prime _), k -> continue k true

external call_often : (int -> unit) -> int -> unit = "bench_call_often"

let rec below depth bottom =
  if depth = 0 then bottom ()
  else
    let level _ =
      try below (depth - 1) bottom with effect Never, k -> continue k ()
    in
    call_often level 1

let minor_collections depth =
  (* So many that what is around them takes little of the time. *)
  let times = 100 in
  Loops.loop
    (Printf.sprintf "hundred-minor-collections-%d" depth)
    (fun n ->
      below depth (fun () ->
          Loops.start ();
          for i = 1 to n * times do
            (* OCaml 4 does not collect an empty minor heap. *)
            ignore (Sys.opaque_identity (ref i));
            Gc.minor ()
          done))

let () =
  let levels name f depth =
    Loops.loop
      (Printf.sprintf "%s-%d" name depth)
      (fun n ->
        let left = ref n in
        while !left > 0 do
          let levels = min depth !left in
          assert (f levels = levels);
          left := !left - levels
        done)
  in
  let depths = [ 10; 300; 3_000; 10_000; 100_000 ] in
  List.iter (levels "nested" (deep false)) depths;
  List.iter (levels "nested-pass" passing) depths;
  (* A whole recursion: a loop may have fewer levels. *)
  let whole name f =
    Loops.calls (name ^ "-1000000") (fun () ->
        let depth = if Loops.is_quick () then 1_000 else 1_000_000 in
        assert (f depth = depth))
  in
  whole "nested" (deep false);
  whole "nested-pass" passing;
  List.iter minor_collections [ 10; 300; 3_000 ];
  Loops.calls "sieve-4000" (fun () -> assert (sieve 4000 = 1_013_507));
  let large limit sum =
    Loops.calls (Printf.sprintf "sieve-%d" limit) (fun () ->
        if Loops.is_quick () then assert (sieve 10 = 17)
        else assert (sieve limit = sum))
  in
  large 10_000 5_736_396;
  large 20_000 21_171_191
