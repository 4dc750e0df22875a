(* SPDX-License-Identifier: MIT *)
(* Tasks, the contexts of their cancels, the queue of those that are ready, and the lists of those that wait.

   A task that waits is a continuation, in [continuation] of its record. The one that ends the wait writes into the
   record how the task goes on, and pushes it. A task has a number, its place in the table [tasks]; the queue and the
   lists have numbers, because a write of an address into an old block takes the collector's barrier, and one of a
   number does not. So a wait allocates nothing but its continuation, and a wake nothing at all.

   Invariants
   - A wait is ended once: by what it waits for or by a cancel, whichever comes first. The one that ends it sets
     [listing] of the task to [Nowhere].
   - A task is in the queue at most once.
   - [push], [pop], [link_waiter], [wake_one] and [withdraw_waiter] allocate nothing between the first word that they
     read and the last that they write, unless the queue has to grow. So signal handlers and other threads, which run
     only where something is allocated, may push, and signal handlers may end waits.
   - What a signal handler raises while a task is on its way to the queue or to a list does not keep it from there: the
     exception is kept, and ends the run ([interrupt]). *)
include Haft_io__interrupts

exception Cancelled of exn

type state = On | Cancelling of exn * Printexc.raw_backtrace | Finished

(* Where a task waits: in a list, from which a cancel takes it or none does; for a timer, its value; or for something
   else. *)
type listing = Nowhere | Listed | Listed_to_the_end | Sleeping | Suspended

(* How a task goes on. *)
type way =
  | By_value
  | By_exception
  | Unless_cancelled  (* by (); it has yielded *)
  | By_start  (* its value is its function *)
  | By_call  (* it is none: the loop calls its value *)

type fiber = {
  mutable context : context;  (* loop_stubs.c reads this, [state] in that, and [id]; debuggers read the first five *)
  mutable next : int;  (* of the context's; or -1 *)
  mutable previous : int;
  mutable continuation : Obj.t;  (* of its last wait; an integer: there was none *)
  mutable waits_for : string;
  mutable id : int;  (* its number in [tasks] *)
  mutable listing : listing;
  mutable withdraw : exn -> unit;  (* Suspended: ends the wait by raising this; [no_wait]: no cancel does *)
  mutable list : Obj.t waiters;  (* in which it waits, or waited last *)
  mutable next_waiter : int;  (* in that; or -1 *)
  mutable previous_waiter : int;  (* of the first, the last; -1: that is the first *)
  mutable way : way;
  mutable value : Obj.t;  (* or the exception; Sleeping: the timer; an integer when it has gone on *)
  mutable tell : unit -> unit;  (* called in place of a push, if it is a task in a task of C *)
  mutable bindings : (int * exn) list;
}

and context = {
  mutable state : state;
  mutable name : string;
  protected : bool;
  parent : context;
  mutable fibers : int;  (* the last that came; or -1 *)
  mutable children : context;  (* likewise *)
  mutable next_child : context;
  mutable previous_child : context;
  mutable live : int;  (* how many tasks have begun in it and have not ended *)
  mutable daemons : int;  (* of them *)
  mutable idle : unit waiters;  (* the task that waits until all others have ended *)
}

(* The tasks that wait for one thing, first come first; each goes on with a value of this type. *)
and 'a waiters = { mutable first_waiter : int; mutable door : 'a door }

(* Closed: nobody waits any more. (A door has no value: the constructor ties the list to its type.) *)
and 'a door = Open | Closed | Of_type of 'a

let no_wait (_ : exn) = ()
let no_tell () = ()
let nothing = Obj.repr 0

let rec nobody =
  {
    context = nowhere;
    next = -1;
    previous = -1;
    continuation = Obj.repr 0;
    waits_for = "";
    id = -1;
    listing = Nowhere;
    withdraw = no_wait;
    list = no_list;
    next_waiter = -1;
    previous_waiter = -1;
    way = By_value;
    value = Obj.repr 0;
    tell = no_tell;
    bindings = [];
  }

and nowhere =
  {
    state = Finished;
    name = "";
    protected = true;
    parent = nowhere;
    fibers = -1;
    children = nowhere;
    next_child = nowhere;
    previous_child = nowhere;
    live = 0;
    daemons = 0;
    idle = no_idle;
  }

and no_list = { first_waiter = -1; door = Closed }
and no_idle = { first_waiter = -1; door = Closed }

(* All tasks by their numbers. [free]: those that nobody has, among the first [used]. *)
type tasks = {
  mutable by_id : fiber array;  (* first: loop_stubs.c and debuggers read it *)
  mutable free : int array;
  mutable free_count : int;
  mutable used : int;
}

let tasks = { by_id = Array.make 64 nobody; free = Array.make 64 0; free_count = 0; used = 0 }
let[@inline] fiber_of id = Array.unsafe_get tasks.by_id id

(* The next number allocates nothing. *)
let rec reserve_number () =
  let size = Array.length tasks.by_id in
  if tasks.free_count = 0 && tasks.used = size then (
    let by_id = Array.make (2 * size) nobody and free = Array.make (2 * size) 0 in
    if Array.length tasks.by_id = size then (
      Array.blit tasks.by_id 0 by_id 0 size;
      Array.blit tasks.free 0 free 0 size;
      tasks.by_id <- by_id;
      tasks.free <- free);
    reserve_number ())

let number fiber =
  reserve_number ();
  (if tasks.free_count > 0 then (
     tasks.free_count <- tasks.free_count - 1;
     fiber.id <- tasks.free.(tasks.free_count))
   else (
     fiber.id <- tasks.used;
     tasks.used <- tasks.used + 1));
  tasks.by_id.(fiber.id) <- fiber

let enter fiber context =
  fiber.context <- context;
  fiber.previous <- -1;
  fiber.next <- context.fibers;
  if context.fibers >= 0 then (fiber_of context.fibers).previous <- fiber.id;
  context.fibers <- fiber.id

let leave fiber =
  if fiber.previous >= 0 then (fiber_of fiber.previous).next <- fiber.next else fiber.context.fibers <- fiber.next;
  if fiber.next >= 0 then (fiber_of fiber.next).previous <- fiber.previous;
  fiber.next <- -1;
  fiber.previous <- -1

let forget_number fiber =
  tasks.by_id.(fiber.id) <- nobody;
  tasks.free.(tasks.free_count) <- fiber.id;
  tasks.free_count <- tasks.free_count + 1

let make_fiber tell context way value bindings =
  {
    context;
    next = -1;
    previous = -1;
    continuation = nothing;
    waits_for = "";
    id = -1;
    listing = Nowhere;
    withdraw = no_wait;
    list = no_list;
    next_waiter = -1;
    previous_waiter = -1;
    way;
    value;
    tell;
    bindings;
  }

let register fiber =
  number fiber;
  enter fiber fiber.context

(* One that is to start with the function. *)
let make_task context bindings (body : unit -> unit) =
  make_fiber no_tell context By_start (Obj.repr body) bindings

(* The task is one of its context's from now on, which waits for it. *)
let register_task fiber ~is_daemon =
  register fiber;
  let context = fiber.context in
  context.live <- context.live + 1;
  if is_daemon then context.daemons <- context.daemons + 1

let has_not_begun fiber = fiber.way = By_value && not (Obj.is_block fiber.continuation)

(* The task is none of the run's any more. *)
let end_fiber fiber =
  leave fiber;
  forget_number fiber

(* It is in no list before it is linked, so that its maker may still allocate. *)
let make_context ~protected name parent =
  {
    state = On;
    name;
    protected;
    parent;
    fibers = -1;
    children = nowhere;
    next_child = nowhere;
    previous_child = nowhere;
    live = 0;
    daemons = 0;
    idle = no_idle;
  }

let link_context context =
  let parent = context.parent in
  context.next_child <- parent.children;
  if parent.children != nowhere then parent.children.previous_child <- context;
  parent.children <- context

let end_context context =
  context.state <- Finished;
  let parent = context.parent in
  if parent != nowhere then (
    if context.previous_child != nowhere then context.previous_child.next_child <- context.next_child
    else parent.children <- context.next_child;
    if context.next_child != nowhere then context.next_child.previous_child <- context.previous_child)

(* From the oldest to the newest, as they stand now: what is called may change the lists. *)
let fibers_of context =
  let rec collect id all =
    if id < 0 then all
    else
      let fiber = fiber_of id in
      collect fiber.next (fiber :: all)
  in
  collect context.fibers []

let children_of context =
  let rec collect child all = if child == nowhere then all else collect child.next_child (child :: all) in
  collect context.children []

(* ---- The queue ---- *)

type queue = { mutable ids : int array; mutable first : int; mutable count : int }

let ready = { ids = Array.make 64 0; first = 0; count = 0 }

let is_full () = ready.count = Array.length ready.ids

let grow () () =
  let larger = Array.make (2 * Array.length ready.ids) 0 in
  let size = Array.length ready.ids in
  if Array.length larger = 2 * size && ready.count = size then (
    Array.blit ready.ids ready.first larger 0 (size - ready.first);
    Array.blit ready.ids 0 larger (size - ready.first) ready.first;
    ready.first <- 0;
    ready.ids <- larger)

let[@inline never] make_room () =
  in_any_case grow () ();
  if is_full () then raise Out_of_memory

let push fiber =
  if is_full () then make_room ();
  Array.unsafe_set ready.ids ((ready.first + ready.count) land (Array.length ready.ids - 1)) fiber.id;
  ready.count <- ready.count + 1

let push_first fiber =
  if is_full () then make_room ();
  ready.first <- (ready.first - 1) land (Array.length ready.ids - 1);
  Array.unsafe_set ready.ids ready.first fiber.id;
  ready.count <- ready.count + 1

let is_ready fiber =
  let size = Array.length ready.ids in
  let rec is_from place =
    place < ready.count && (ready.ids.((ready.first + place) land (size - 1)) = fiber.id || is_from (place + 1))
  in
  is_from 0

(* In a simulation: which of those that can go on does so. *)
let chance = ref None

let bring_any_to_front state =
  let mask = Array.length ready.ids - 1 in
  let other = (ready.first + Random.State.int state ready.count) land mask in
  let id = ready.ids.(other) in
  ready.ids.(other) <- ready.ids.(ready.first);
  ready.ids.(ready.first) <- id

(* Its number; -1: the queue is empty. *)
let pop () =
  if ready.count = 0 then -1
  else (
    (match !chance with None -> () | Some state -> bring_any_to_front state);
    let first = ready.first in
    let id = Array.unsafe_get ready.ids first in
    ready.first <- (first + 1) land (Array.length ready.ids - 1);
    ready.count <- ready.count - 1;
    id)

(* For code that may be in another thread or a task of C. *)
let push_from_anywhere fiber =
  push fiber;
  if !sleeps then wake_c ()

(* The loop calls it, between two tasks. Any thread, and signal handlers. *)
let make_caller (f : unit -> unit) =
  let caller = make_fiber no_tell nowhere By_call (Obj.repr f) [] in
  number caller;
  caller

let call_in_loop f = push_from_anywhere (make_caller f)

(* The run has ended. A task that has begun and not ended, for whatever reason, keeps its number, which lists may
   have. *)
let forget_ready () =
  while ready.count > 0 do
    let fiber = fiber_of (pop ()) in
    match fiber.way with
    | By_call -> forget_number fiber
    | By_start -> end_fiber fiber
    | By_value | By_exception | Unless_cancelled -> ()
  done

(* ---- Lists of those that wait ---- *)

let new_waiters () = { first_waiter = -1; door = Open }

let remove_waiter waiters fiber =
  let next = fiber.next_waiter and previous = fiber.previous_waiter and first = waiters.first_waiter in
  (if first = fiber.id then waiters.first_waiter <- next else (fiber_of previous).next_waiter <- next);
  (if next >= 0 then (fiber_of next).previous_waiter <- (if first = fiber.id && previous = next then -1 else previous)
   else if first <> fiber.id then (fiber_of first).previous_waiter <- (if previous = first then -1 else previous));
  fiber.next_waiter <- -1;
  fiber.previous_waiter <- -1;
  fiber.listing <- Nowhere

let link_waiter waiters fiber listing =
  let first = waiters.first_waiter in
  (if first < 0 then waiters.first_waiter <- fiber.id
   else
     let first_one = fiber_of first in
     let last = if first_one.previous_waiter < 0 then first else first_one.previous_waiter in
     fiber.previous_waiter <- last;
     (fiber_of last).next_waiter <- fiber.id;
     first_one.previous_waiter <- fiber.id);
  let list : Obj.t waiters = Obj.magic waiters in
  if fiber.list != list then fiber.list <- list;
  fiber.listing <- listing

(* Here and below a function that must not be interrupted does not end with a call: for that the compiler could let
   signals be handled at its head (OCaml 4.14: if what it calls is unknown, or comes later, and flambda puts functions
   in another order). *)
let go_on fiber way value =
  fiber.way <- way;
  if fiber.value != value then fiber.value <- value;
  if fiber.tell == no_tell then (
    push_from_anywhere fiber;
    ())
  else (
    fiber.tell ();
    ())

(* Ends a wait that is in no list, if this is the wait that has this continuation, and has not ended. *)
let end_suspension fiber continuation way value =
  if fiber.listing = Suspended && fiber.continuation == continuation then (
    fiber.listing <- Nowhere;
    fiber.withdraw <- no_wait;
    go_on fiber way value;
    ())

(* Its timer has fired: not one of an earlier sleep, which a signal handler has ended while it began. *)
let wake_sleeper fiber =
  if fiber.listing = Sleeping && not (Haft_io__timers.is_to_fire (Obj.obj fiber.value)) then (
    fiber.listing <- Nowhere;
    go_on fiber By_value nothing;
    ())

let withdraw_sleeper fiber exn =
  Haft_io__timers.remove (Obj.obj fiber.value);
  fiber.listing <- Nowhere;
  go_on fiber By_exception (Obj.repr (exn : exn));
  ()

let withdraw_waiter fiber exn =
  remove_waiter fiber.list fiber;
  go_on fiber By_exception (Obj.repr (exn : exn));
  ()

(* False: nobody waits. *)
let wake_one (waiters : 'a waiters) (value : 'a) =
  waiters.first_waiter >= 0
  && (
    let fiber = fiber_of waiters.first_waiter in
    if fiber.next_waiter < 0 then (
      (* the only one *)
      waiters.first_waiter <- -1;
      fiber.listing <- Nowhere)
    else remove_waiter waiters fiber;
    go_on fiber By_value (Obj.repr value);
    true)

let rec wake_each waiters value = if wake_one waiters value then wake_each waiters value
let wake_all waiters value = in_any_case wake_each waiters value

(* The task has ended. This allocates nothing, so that the task that waits for it goes on in any case. *)
let end_task fiber =
  let context = fiber.context in
  end_fiber fiber;
  context.live <- context.live - 1;
  if context.live <= context.daemons then ignore (wake_one context.idle ())

(* The same, for good. *)
let close_waiters (waiters : unit waiters) =
  waiters.door <- Closed;
  wake_all waiters ()

let note_wait fiber what = if fiber.waits_for != what then fiber.waits_for <- what

(* The task, whose continuation is kept, waits in the list; or goes on, if its context is cancelled or the list is
   closed. *)
let list_waiter fiber (waiters : 'a waiters) what listing =
  match fiber.context.state with
  | Cancelling (exn, _) when listing = Listed ->
      go_on fiber By_exception (Obj.repr (try Cancelled exn with another (* of a signal handler *) -> another))
  | On | Finished | Cancelling _ -> (
      match waiters.door with
      | Closed -> go_on fiber By_value nothing
      | Open | Of_type _ ->
          note_wait fiber what;
          link_waiter waiters fiber listing)

(* ---- Cancels ---- *)

external cancel_wait_in_c : int -> unit = "haft_ocaml_io_cancel_wait"

let cancel_fiber fiber (cancelled : exn) =
  match fiber.listing with
  | Listed -> withdraw_waiter fiber cancelled
  | Listed_to_the_end -> ()
  | Sleeping -> withdraw_sleeper fiber cancelled
  | Suspended -> if fiber.withdraw != no_wait then fiber.withdraw cancelled
  | Nowhere -> cancel_wait_in_c fiber.id

(* An exception of a signal handler ends the run later: each of the tasks is told in any case, so what is left to do is
   in [contexts] and [fibers] wherever one may come. (The contexts may lie one inside another so deep that the stack of
   the loop would not do for a recursion.) *)
let cancel_context context exn backtrace =
  let reason = Cancelling (exn, backtrace) and cancelled = Cancelled exn in
  let contexts = ref [ context ] and fibers = ref [] in
  let rec go () () =
    match (!fibers, !contexts) with
    | fiber :: others, _ ->
        cancel_fiber fiber cancelled;
        fibers := others;
        go () ()
    | [], [] -> ()
    | [], ({ state = On; _ } as context) :: others ->
        let inside = List.filter (fun child -> not child.protected) (children_of context) in
        let left = List.rev_append (List.rev inside) others and own = fibers_of context in
        context.state <- reason;
        contexts := left;
        fibers := own;
        go () ()
    | [], { state = Cancelling _ | Finished; _ } :: others ->
        contexts := others;
        go () ()
  in
  in_any_case go () ()

(* The reason for which a task whose context has this state has ended. A function of C that was waiting when the cancel
   came has failed with ECANCELED, and so Unix or a channel: that is the cancel. *)
let as_cancel_by state exn =
  match (state, exn) with
  | Cancelling (why, _), Unix.Unix_error (EUNKNOWNERR 125, _, _) -> Cancelled why
  | Cancelling (why, _), Sys_error text when text = "Operation canceled" -> Cancelled why
  | _ -> exn

let as_cancel context exn = as_cancel_by context.state exn
