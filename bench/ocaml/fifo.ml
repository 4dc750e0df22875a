(* SPDX-License-Identifier: MIT *)
(* Queues for schedulers. A cell that was taken forgets the next one: of Stdlib.Queue, once a taken cell
   is in the major heap, minor collections keep all that were added after it. *)
type 'a cell = Nil | Cons of { content : 'a; mutable next : 'a cell }
type 'a t = { mutable first : 'a cell; mutable last : 'a cell }

let create () = { first = Nil; last = Nil }

let is_empty queue =
  match queue.first with Nil -> true | Cons _ -> false

let push content queue =
  let cell = Cons { content; next = Nil } in
  (match queue.last with
  | Nil -> queue.first <- cell
  | Cons last -> last.next <- cell);
  queue.last <- cell

let clear queue =
  queue.first <- Nil;
  queue.last <- Nil

let pop queue =
  match queue.first with
  | Nil -> raise Not_found
  | Cons { content; next = Nil } ->
      clear queue;
      content
  | Cons taken ->
      queue.first <- taken.next;
      taken.next <- Nil;
      taken.content

(* Moves all that is in [queue] to [empty]. *)
let move queue empty =
  empty.first <- queue.first;
  empty.last <- queue.last;
  clear queue
