(* SPDX-License-Identifier: MIT *)
(* Tasks, the contexts of their cancels, the queue of those that are ready, and the lists of those that wait.

   A task that waits is a continuation, in [continuation] of its record; the one that ends the wait pushes [ready] of it.
   The record is the node of the list in which the task waits, too: so a wait allocates nothing but its continuation, and
   a wake nothing at all.

   Invariants
   - A wait is ended once: by what it waits for or by a cancel, whichever comes first. The one that ends it takes the task
     out of its list, or sets [withdraw] of the task to [no_wait].
   - A task is in the queue at most once.
   - [push], [pop], [link_waiter], [wake_one] and [withdraw] of a waiter allocate nothing between the first word that they
     read and the last that they write. So signal handlers and other threads, which run only where something is allocated,
     may push, and signal handlers may end waits. *)
open Effect.Deep

external wake_c : unit -> unit = "haft_ocaml_io_wake"
external away : unit -> int = "haft_ocaml_io_away" [@@noalloc]

exception Cancelled of exn

type state = On | Cancelling of exn * Printexc.raw_backtrace | Finished

(* Where a task waits: in a list, from which a cancel takes it or none does. *)
type listing = Nowhere | Listed | Listed_to_the_end

(* How a task goes on. *)
type way = By_value | By_exception | Unless_cancelled

type fiber = {
  mutable context : context;  (* this and [state] in that: loop_stubs.c reads them; this and the next four: debuggers do *)
  mutable next : fiber;  (* of the context's; or nobody *)
  mutable previous : fiber;
  mutable continuation : Obj.t;  (* of its last wait; an integer: there was none *)
  mutable waits_for : string;
  mutable withdraw : exn -> unit;  (* ends a wait in no list by raising this; [no_wait]: none that can be cancelled *)
  mutable listing : listing;
  mutable list : Obj.t waiters;  (* in which it waits, or waited last *)
  mutable next_waiter : fiber;  (* in that; or [none] *)
  mutable previous_waiter : fiber;  (* of the first, the last; [none]: that is the first *)
  mutable way : way;
  mutable value : Obj.t;  (* or the exception; an integer when it has gone on *)
  mutable ready : item;  (* [Go_on] of itself *)
  mutable tell : unit -> unit;  (* in place of pushing [ready], if it is a task in a task of C *)
  mutable bindings : (int * exn) list;
}

and context = {
  mutable state : state;
  mutable name : string;
  protected : bool;
  parent : context;
  mutable fibers : fiber;  (* the last that came *)
  mutable children : context;  (* likewise *)
  mutable next_child : context;
  mutable previous_child : context;
}

(* Those that wait for one thing, first come first; each goes on with a value of this type. *)
and 'a waiters = { mutable first_waiter : fiber; mutable door : 'a door }

(* Closed: nobody waits any more. (A door has no value: the constructor ties the list to its type.) *)
and 'a door = Open | Closed | Of_type of 'a

(* What the loop does next. *)
and item =
  | Nothing
  | Go_on of fiber
  | Continue_with : fiber * ('a, unit) continuation * 'a -> item
  | Discontinue : fiber * ('a, unit) continuation * exn -> item
  | Start of fiber * (unit -> unit)
  | Call of (unit -> unit)

(* An integer: to overwrite it takes the collector's barrier less than it takes for a record. *)
let none : fiber = Obj.magic 0

let no_wait (_ : exn) = ()
let no_tell () = ()
let nothing = Obj.repr 0

let rec nobody =
  {
    context = nowhere;
    next = nobody;
    previous = nobody;
    continuation = Obj.repr 0;
    waits_for = "";
    withdraw = no_wait;
    listing = Nowhere;
    list = no_list;
    next_waiter = none;
    previous_waiter = none;
    way = By_value;
    value = Obj.repr 0;
    ready = Nothing;
    tell = no_tell;
    bindings = [];
  }

and nowhere =
  {
    state = Finished;
    name = "";
    protected = true;
    parent = nowhere;
    fibers = nobody;
    children = nowhere;
    next_child = nowhere;
    previous_child = nowhere;
  }

and no_list = { first_waiter = none; door = Closed }

let enter fiber context =
  fiber.context <- context;
  fiber.previous <- nobody;
  fiber.next <- context.fibers;
  if context.fibers != nobody then context.fibers.previous <- fiber;
  context.fibers <- fiber

let leave fiber =
  if fiber.previous != nobody then fiber.previous.next <- fiber.next else fiber.context.fibers <- fiber.next;
  if fiber.next != nobody then fiber.next.previous <- fiber.previous;
  fiber.next <- nobody;
  fiber.previous <- nobody

let new_fiber ?(tell = no_tell) context bindings =
  let fiber =
    {
      context;
      next = nobody;
      previous = nobody;
      continuation = nothing;
      waits_for = "";
      withdraw = no_wait;
      listing = Nowhere;
      list = no_list;
      next_waiter = none;
      previous_waiter = none;
      way = By_value;
      value = nothing;
      ready = Nothing;
      tell;
      bindings;
    }
  in
  fiber.ready <- Go_on fiber;
  enter fiber context;
  fiber

let new_context ?(protected = false) ?(name = "") parent =
  let context =
    {
      state = On;
      name;
      protected;
      parent;
      fibers = nobody;
      children = nowhere;
      next_child = parent.children;
      previous_child = nowhere;
    }
  in
  if parent != nowhere then (
    if parent.children != nowhere then parent.children.previous_child <- context;
    parent.children <- context);
  context

let end_context context =
  context.state <- Finished;
  let parent = context.parent in
  if parent != nowhere then (
    if context.previous_child != nowhere then context.previous_child.next_child <- context.next_child
    else parent.children <- context.next_child;
    if context.next_child != nowhere then context.next_child.previous_child <- context.previous_child)

(* From the oldest to the newest, as they stand now: what is called may change the lists. *)
let fibers_of context =
  let rec collect fiber all = if fiber == nobody then all else collect fiber.next (fiber :: all) in
  collect context.fibers []

let children_of context =
  let rec collect child all = if child == nowhere then all else collect child.next_child (child :: all) in
  collect context.children []

(* ---- The queue ---- *)

type queue = { mutable items : item array; mutable first : int; mutable count : int }

let ready = { items = Array.make 64 Nothing; first = 0; count = 0 }

let rec push item =
  let size = Array.length ready.items in
  if ready.count < size then (
    Array.unsafe_set ready.items ((ready.first + ready.count) land (size - 1)) item;
    ready.count <- ready.count + 1)
  else (
    grow ();
    push item)

and grow () =
  let larger = Array.make (2 * Array.length ready.items) Nothing in
  let size = Array.length ready.items in
  if Array.length larger = 2 * size && ready.count = size then (
    Array.blit ready.items ready.first larger 0 (size - ready.first);
    Array.blit ready.items 0 larger (size - ready.first) ready.first;
    ready.first <- 0;
    ready.items <- larger)

let rec push_first item =
  let size = Array.length ready.items in
  if ready.count < size then (
    ready.first <- (ready.first - 1) land (size - 1);
    Array.unsafe_set ready.items ready.first item;
    ready.count <- ready.count + 1)
  else (
    grow ();
    push_first item)

(* In a simulation: which of those that can go on does so. *)
let chance = ref None

let bring_any_to_front state =
  let mask = Array.length ready.items - 1 in
  let other = (ready.first + Random.State.int state ready.count) land mask in
  let item = ready.items.(other) in
  ready.items.(other) <- ready.items.(ready.first);
  ready.items.(ready.first) <- item

let pop () =
  if ready.count = 0 then Nothing
  else (
    (match !chance with None -> () | Some state -> bring_any_to_front state);
    let first = ready.first in
    let item = Array.unsafe_get ready.items first in
    Array.unsafe_set ready.items first Nothing;
    ready.first <- (first + 1) land (Array.length ready.items - 1);
    ready.count <- ready.count - 1;
    item)

(* Whether the loop sleeps, or is about to. *)
let sleeps = ref false

(* For code that may be in another thread or a task of C. *)
let push_from_anywhere item =
  push item;
  if !sleeps then wake_c ()

(* ---- Lists of those that wait ---- *)

let new_waiters () = { first_waiter = none; door = Open }

let remove_waiter waiters fiber =
  let next = fiber.next_waiter and previous = fiber.previous_waiter and first = waiters.first_waiter in
  if first == fiber then (
    waiters.first_waiter <- next;
    if next != none then (
      next.previous_waiter <- (if previous == next then none else previous);
      fiber.next_waiter <- none;
      fiber.previous_waiter <- none))
  else (
    previous.next_waiter <- next;
    if next != none then (
      next.previous_waiter <- previous;
      fiber.next_waiter <- none)
    else first.previous_waiter <- (if previous == first then none else previous);
    fiber.previous_waiter <- none);
  fiber.listing <- Nowhere

let link_waiter waiters fiber listing =
  let first = waiters.first_waiter in
  (if first == none then waiters.first_waiter <- fiber
   else
     let last = if first.previous_waiter == none then first else first.previous_waiter in
     fiber.previous_waiter <- last;
     last.next_waiter <- fiber;
     first.previous_waiter <- fiber);
  let list : Obj.t waiters = Obj.magic waiters in
  if fiber.list != list then fiber.list <- list;
  fiber.listing <- listing

let go_on fiber way value =
  fiber.way <- way;
  if fiber.value != value then fiber.value <- value;
  if fiber.tell == no_tell then push_from_anywhere fiber.ready else fiber.tell ()

let withdraw_waiter fiber exn =
  remove_waiter fiber.list fiber;
  go_on fiber By_exception (Obj.repr (exn : exn))

(* False: nobody waits. *)
let wake_one (waiters : 'a waiters) (value : 'a) =
  let fiber = waiters.first_waiter in
  fiber != none
  && (
    remove_waiter waiters fiber;
    go_on fiber By_value (Obj.repr value);
    true)

let rec wake_all waiters value = if wake_one waiters value then wake_all waiters value

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

external cancel_away : fiber -> unit = "haft_ocaml_io_cancel_away"

let cancel_fiber fiber exn =
  match fiber.listing with
  | Listed -> withdraw_waiter fiber (Cancelled exn)
  | Listed_to_the_end -> ()
  | Nowhere ->
      if fiber.withdraw != no_wait then fiber.withdraw (Cancelled exn) else if away () > 0 then cancel_away fiber

let rec cancel_context context exn backtrace =
  if context.state = On then (
    context.state <- Cancelling (exn, backtrace);
    List.iter (fun fiber -> cancel_fiber fiber exn) (fibers_of context);
    List.iter (fun child -> if not child.protected then cancel_context child exn backtrace) (children_of context))

(* The reason for which a task whose context is [context] has ended. A function of C that was waiting when the cancel
   came has failed with ECANCELED, and so Unix or a channel: that is the cancel. *)
let as_cancel context exn =
  match (context.state, exn) with
  | Cancelling (why, _), Unix.Unix_error (EUNKNOWNERR 125, _, _) -> Cancelled why
  | Cancelling (why, _), Sys_error text when text = "Operation canceled" -> Cancelled why
  | _ -> exn
