(* SPDX-License-Identifier: MIT *)
(* Timers, by the time at which they fire.

   Most programs begin timers in the order in which these fire, because they wait equally long: those are in a queue,
   where each takes constant time. The others are in a heap. A timer that is later than the next one to be begun, as a
   long limit before short waits is, moves from the end of the queue to the heap, so that it does not bar the queue.

   A timer's [place] is its index in the heap; or -2 - n if it is number n of the queue; or -1: it has fired or was
   removed. The queue keeps the room of those that were removed from its middle, at most as much again as is in use.

   A signal handler may raise wherever something is allocated, and in any loop. So a timer is in the heap or the queue
   after each step of a loop, or has left it for good before the loop begins, and the heap is in order again in any
   case. *)
open Haft_io__interrupts

type timer = { at : int; mutable place : int; call : Obj.t -> unit; argument : Obj.t  (* of [call] *) }

let no_timer = { at = max_int; place = -1; call = ignore; argument = Obj.repr 0 }

(* ---- The heap ---- *)

type heap = { mutable timers : timer array; mutable size : int }

let heap = { timers = Array.make 16 no_timer; size = 0 }

let put timer place =
  heap.timers.(place) <- timer;
  timer.place <- place

let swap place other =
  let timer = heap.timers.(place) in
  put heap.timers.(other) place;
  put timer other

let rec rise place =
  let parent = (place - 1) / 2 in
  if place > 0 && heap.timers.(parent).at > heap.timers.(place).at then (
    swap place parent;
    rise parent)

let rec sink place =
  let left = (2 * place) + 1 in
  if left < heap.size then (
    let right = left + 1 in
    let least = if right < heap.size && heap.timers.(right).at < heap.timers.(left).at then right else left in
    if heap.timers.(least).at < heap.timers.(place).at then (
      swap place least;
      sink least))

let rise_timer timer () = rise timer.place
let sink_timer timer () = sink timer.place

let make_room_in_heap () =
  if heap.size = Array.length heap.timers then (
    let larger = Array.make (2 * heap.size) no_timer in
    Array.blit heap.timers 0 larger 0 heap.size;
    heap.timers <- larger)

let add_to_heap timer =
  make_room_in_heap ();
  heap.size <- heap.size + 1;
  put timer (heap.size - 1);
  in_any_case rise_timer timer ()

let remove_from_heap place =
  let last = heap.size - 1 in
  heap.size <- last;
  let moved = heap.timers.(last) in
  heap.timers.(last) <- no_timer;
  if place < last then (
    put moved place;
    in_any_case
      (if place > 0 && moved.at < heap.timers.((place - 1) / 2).at then rise_timer else sink_timer)
      moved ())

(* ---- The queue ---- *)

(* Numbers only grow, until the queue is numbered anew; [count] is all from the first to the last, [live] are those that
   have not been removed. The first and the last are live, if there are any, when it has been trimmed. *)
type queue = { mutable slots : timer array; mutable first : int; mutable count : int; mutable live : int }

let queue = { slots = Array.make 16 no_timer; first = 0; count = 0; live = 0 }
let slot number = number land (Array.length queue.slots - 1)
let in_queue number = Array.unsafe_get queue.slots (slot number)
let first_of_queue () = in_queue queue.first
let last_of_queue () = in_queue (queue.first + queue.count - 1)

(* Copies the live ones, with their order, to an array of this size, and numbers them anew. *)
let renumber size =
  let slots = Array.make size no_timer in
  let next = ref 0 in
  for number = queue.first to queue.first + queue.count - 1 do
    let timer = in_queue number in
    if timer != no_timer then (
      slots.(!next) <- timer;
      timer.place <- -2 - !next;
      incr next)
  done;
  queue.slots <- slots;
  queue.first <- 0;
  queue.count <- !next

let add_to_queue timer =
  let size = Array.length queue.slots in
  if queue.count = size then renumber (if queue.live > size / 2 then 2 * size else size);
  let number = queue.first + queue.count in
  queue.slots.(slot number) <- timer;
  timer.place <- -2 - number;
  queue.count <- queue.count + 1;
  queue.live <- queue.live + 1

let trim () =
  if queue.live = 0 then queue.count <- 0
  else (
    while first_of_queue () == no_timer do
      queue.first <- queue.first + 1;
      queue.count <- queue.count - 1
    done;
    while last_of_queue () == no_timer do
      queue.count <- queue.count - 1
    done)

let remove_from_queue number =
  queue.slots.(slot number) <- no_timer;
  queue.live <- queue.live - 1

(* ---- Both ---- *)

let remove timer =
  let place = timer.place in
  if place <> -1 then (
    timer.place <- -1;
    if place >= 0 then remove_from_heap place else remove_from_queue (-2 - place))

let make at (call : 'a -> unit) (argument : 'a) =
  { at; place = -1; call = Obj.magic call; argument = Obj.repr argument }
let is_to_fire timer = timer.place <> -1

let rec begin_ timer =
  trim ();
  if queue.live = 0 || (last_of_queue ()).at <= timer.at then add_to_queue timer
  else if queue.count = 1 || (in_queue (queue.first + queue.count - 2)).at <= timer.at then (
    let last = last_of_queue () in
    make_room_in_heap ();
    remove last;
    add_to_heap last;
    begin_ timer)
  else add_to_heap timer

(* The timer that fires first; [no_timer]: there is none. *)
let first () =
  trim ();
  let of_heap = if heap.size = 0 then no_timer else heap.timers.(0) in
  if queue.live > 0 && (first_of_queue ()).at <= of_heap.at then first_of_queue () else of_heap

let next_time () = (first ()).at

(* Hands those that are due to [fire]. *)
let rec fire_until time fire =
  let timer = first () in
  if timer.at <= time && timer != no_timer then (
    remove timer;
    fire timer;
    fire_until time fire)

let forget_all () =
  heap.size <- 0;
  queue.first <- 0;
  queue.count <- 0;
  queue.live <- 0;
  heap.timers <- Array.make 16 no_timer;
  queue.slots <- Array.make 16 no_timer
