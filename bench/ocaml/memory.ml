(* SPDX-License-Identifier: MIT *)
(* Memory and time of continuations that are all live at once: made, resumed to their next suspension,
   resumed to the end. The argument is their number; the output is memory.h's, where resume_and_free
   is both resumptions, and peak: the process's peak resident bytes, by continuation. *)
open Effect
open Effect.Deep

external stage : int -> unit = "bench_stage"
external print_stages : int -> unit = "bench_print_stages"

type _ Effect.t += Pause : unit Effect.t
type state = Finished | Paused of (unit, state) continuation

let pause_twice () =
  perform Pause;
  perform Pause;
  Finished

let start () =
  try pause_twice () with effect Pause, k -> Paused k

let resume = function Finished -> assert false | Paused k -> continue k ()

let () =
  let count = int_of_string Sys.argv.(1) in
  let states = Array.make count Finished in
  stage 0;
  for i = 0 to count - 1 do
    states.(i) <- start ()
  done;
  stage 1;
  for i = 0 to count - 1 do
    states.(i) <- resume states.(i)
  done;
  for i = 0 to count - 1 do
    states.(i) <- resume states.(i)
  done;
  stage 2;
  assert (Array.for_all (fun state -> state = Finished) states);
  print_stages count
