(* SPDX-License-Identifier: MIT *)
(* Threads in direct style, and MVars for them, by effects. *)
open Effect
open Effect.Deep

type 'a mvar = {
  mutable content : 'a option;
  takers : ('a, unit) continuation Fifo.t;
  putters : ('a * (unit, unit) continuation) Fifo.t;
}

type _ Effect.t +=
  | Yield : unit Effect.t
  | Take : 'a mvar -> 'a Effect.t
  | Put : 'a mvar * 'a -> unit Effect.t

type resumable = Resumable : ('a, unit) continuation * 'a -> resumable

let ready : resumable Fifo.t = Fifo.create ()
let remaining_turns = ref max_int

let next () =
  if !remaining_turns > 0 && not (Fifo.is_empty ready) then begin
    decr remaining_turns;
    let (Resumable (k, value)) = Fifo.pop ready in
    continue k value
  end

(* A thread, up to where it waits. *)
let fork f =
  match f () with
  | () -> next ()
  | effect Yield, k ->
      Fifo.push (Resumable (k, ())) ready;
      next ()
  | effect (Take mvar), k ->
      Fifo.push k mvar.takers;
      next ()
  | effect (Put (mvar, value)), k ->
      Fifo.push (value, k) mvar.putters;
      next ()

(* A thread that has its first turn when the others have theirs. *)
let spawn f =
  remaining_turns := 0;
  fork (fun () ->
      perform Yield;
      f ())

(* Until [n] threads have had their turn, or none is ready. *)
let turns n =
  remaining_turns := n;
  next ()

module Mvar = struct
  let create content =
    { content; takers = Fifo.create (); putters = Fifo.create () }

  let put mvar value =
    if not (Fifo.is_empty mvar.takers) then
      Fifo.push (Resumable (Fifo.pop mvar.takers, value)) ready
    else if Option.is_none mvar.content then mvar.content <- Some value
    else perform (Put (mvar, value))

  let take mvar =
    match mvar.content with
    | None -> perform (Take mvar)
    | Some value ->
        if Fifo.is_empty mvar.putters then mvar.content <- None
        else begin
          let next, putter = Fifo.pop mvar.putters in
          mvar.content <- Some next;
          Fifo.push (Resumable (putter, ())) ready
        end;
        value
end
