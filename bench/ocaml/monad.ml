(* SPDX-License-Identifier: MIT *)
(* A concurrency monad: a thread is a function of what is to be done with its result, threads that can go
   on wait in a queue. *)
type 'a t = ('a -> unit) -> unit

let return value : 'a t = fun k -> k value
let bind (m : 'a t) (f : 'a -> 'b t) : 'b t = fun k -> m (fun v -> f v k)
let ( let* ) = bind
let ready : (unit -> unit) Fifo.t = Fifo.create ()

let fork (f : unit -> unit t) : unit t =
 fun k ->
  Fifo.push (fun () -> f () ignore) ready;
  k ()

let yield : unit t = fun k -> Fifo.push k ready

(* Until [n] threads have had their turn, or none is ready. *)
let rec turns n =
  if n > 0 && not (Fifo.is_empty ready) then begin
    (Fifo.pop ready) ();
    turns (n - 1)
  end

(* The result of a thread when all threads wait or have finished. *)
let run (m : 'a t) =
  let result = ref None in
  m (fun value -> result := Some value);
  turns max_int;
  Option.get !result

module Mvar = struct
  type 'a mvar = {
    mutable content : 'a option;
    takers : ('a -> unit) Fifo.t;
    putters : ('a * (unit -> unit)) Fifo.t;
  }

  let create content : 'a mvar t =
   fun k ->
    k { content; takers = Fifo.create (); putters = Fifo.create () }

  let create_empty () = create None

  let put mvar value : unit t =
   fun k ->
    if not (Fifo.is_empty mvar.takers) then begin
      let taker = Fifo.pop mvar.takers in
      Fifo.push (fun () -> taker value) ready;
      k ()
    end
    else if Option.is_none mvar.content then begin
      mvar.content <- Some value;
      k ()
    end
    else Fifo.push (value, k) mvar.putters

  let take mvar : 'a t =
   fun k ->
    match mvar.content with
    | None -> Fifo.push k mvar.takers
    | Some value ->
        if Fifo.is_empty mvar.putters then mvar.content <- None
        else begin
          let next, putter = Fifo.pop mvar.putters in
          mvar.content <- Some next;
          Fifo.push putter ready
        end;
        k value
end
