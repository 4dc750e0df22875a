(* SPDX-License-Identifier: MIT *)
(* The loop: tasks of OCaml as continuations in a queue, in a task of libhaft-io, its carrier.

   A task of OCaml that waits is a continuation: it is in no queue, and the one that ends the wait puts it into [ready].
   The loop resumes one after the other. It lets the tasks of C go first after [turn] of them, and when there is none
   it sleeps in libhaft-io until something is done there (loop_stubs.c) or the earliest timer is due.

   Invariants
   - A wait is ended once: by what it waits for or by a cancel, whichever comes first. The one that ends it sets
     [withdraw] of the task to [no_wait].
   - [push] and [pop] allocate nothing between the first word that they read and the last that they write. So signal
     handlers and other threads, which run only where something is allocated, may push.
   - [!here] is the lane of the carrier that runs, and its [running] the task that runs on it, or ran last. (A task of
     OCaml in a task of C is none of the loop's.) A carrier that is away, with a task that waits in a function of C
     (loop_stubs.c), finds its lane there when it goes on.
   - A clause of [effc] that has put the continuation somewhere ends with [schedule], in tail position: so a million
     switches take constant stack. *)
open Effect
open Effect.Deep

type carrier = int

external run_c : string -> int -> (carrier -> unit) -> int = "haft_ocaml_io_run"
external simulate_c : int * bool * int * int -> (carrier -> unit) -> int = "haft_ocaml_io_simulate"
external is_current : carrier -> bool = "haft_ocaml_io_is_current" [@@noalloc]
external park : carrier -> bool = "haft_ocaml_io_park"
external away : unit -> int = "haft_ocaml_io_away" [@@noalloc]
external wait_c : int -> int = "haft_ocaml_io_wait"
external yield_c : unit -> int = "haft_ocaml_io_yield"
external wake_c : unit -> unit = "haft_ocaml_io_wake"
external runs_here : unit -> bool = "haft_ocaml_io_runs_here" [@@noalloc]
external now : unit -> int = "haft_ocaml_io_now"
external seed : unit -> int = "haft_ocaml_io_seed"
external take_done : unit -> int = "haft_ocaml_io_take_done"
external taken_result : unit -> int = "haft_ocaml_io_taken_result"
external watch_c : int -> int -> int -> int = "haft_ocaml_io_watch"
external look_c : int -> bool -> int -> int = "haft_ocaml_io_look"
external withdraw_c : int -> unit = "haft_ocaml_io_withdraw"
external error_text : int -> string = "haft_ocaml_io_error_text"
external dump_c : int -> int = "haft_ocaml_io_dump"
external show : 'lane ref -> unit = "haft_ocaml_io_show"

type memory = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t

external event_size : unit -> int = "haft_ocaml_io_event_size"
external event_set : memory -> unit = "haft_ocaml_io_event_set"
external event_wait : memory -> int = "haft_ocaml_io_event_wait"
external event_wait_to_the_end : memory -> unit = "haft_ocaml_io_event_wait_to_the_end"

exception Cancelled of exn

(* ---- Tasks, and the contexts of their cancels ---- *)

type state = On | Cancelling of exn * Printexc.raw_backtrace | Finished

type fiber = {
  mutable context : context;  (* first, and [state] in that: loop_stubs.c reads them *)
  mutable next : fiber;  (* of the context's; or nobody *)
  mutable previous : fiber;
  mutable withdraw : exn -> unit;  (* ends the wait by raising this; [no_wait]: none that can be cancelled *)
  mutable waits_for : string;
  mutable suspended : Obj.t;  (* its last continuation, for backtraces; an integer: none *)
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

let no_wait (_ : exn) = ()

let rec nobody =
  {
    context = nowhere;
    next = nobody;
    previous = nobody;
    withdraw = no_wait;
    waits_for = "";
    suspended = Obj.repr 0;
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

let new_fiber context bindings =
  let fiber =
    {
      context;
      next = nobody;
      previous = nobody;
      withdraw = no_wait;
      waits_for = "";
      suspended = Obj.repr 0;
      bindings;
    }
  in
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

external cancel_away : fiber -> unit = "haft_ocaml_io_cancel_away"

let cancel_fiber fiber exn =
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

(* ---- Effects ---- *)

(* How the one that ends a wait says so: a task of the loop goes on by its continuation. *)
type 'a end_of_wait = Go of ('a, unit) continuation | Tell of (('a, exn) result -> unit)

(* A list from which any waiter can be taken, in constant time. [previous] of the first is the last; [End] if it is the
   first itself. So a list of one is written to once. [Closed]: nobody waits any more, because this has come. *)
type 'a waiter =
  | End
  | Closed of 'a
  | Waiter of {
      mutable next : 'a waiter;
      mutable previous : 'a waiter;
      fiber : fiber;
      ends : 'a end_of_wait;
    }

type 'a waiters = { mutable first_waiter : 'a waiter }

type _ Effect.t +=
  | Wait : 'a waiters * string -> 'a Effect.t  (* in this list, for what the text says *)
  | Wait_to_the_end : 'a waiters * string -> 'a Effect.t  (* the same, whatever cancels come *)
  | Suspend : (fiber -> (('a, exn) result -> unit) -> unit) -> 'a Effect.t
        (* calls the function, which keeps what ends the wait *)
  | This_fiber : fiber Effect.t
  | Yield : unit Effect.t
  | Fork : fiber * (unit -> unit) -> unit Effect.t  (* the new task goes first; the function raises nothing *)
  | On_c_stack : (unit -> 'a) -> 'a Effect.t  (* for code in a task of C (run_in_c): the function may wait in C *)

let check_context context =
  match context.state with Cancelling (exn, _) -> raise (Cancelled exn) | On | Finished -> ()

(* Waits for what [begin_ fiber resume] begins; it sets [withdraw] if a cancel can end the wait, and raises nothing. *)
let suspend what begin_ =
  perform
    (Suspend
       (fun fiber resume ->
         match fiber.context.state with
         | Cancelling (exn, _) -> resume (Error (Cancelled exn))
         | On | Finished ->
             fiber.waits_for <- what;
             begin_ fiber resume))

(* ---- The queue ---- *)

type item =
  | Nothing
  | Continue : fiber * (unit, unit) continuation -> item
  | Continue_yielded : fiber * (unit, unit) continuation -> item
  | Continue_with : fiber * ('a, unit) continuation * 'a -> item
  | Discontinue : fiber * ('a, unit) continuation * exn -> item
  | Start of fiber * (unit -> unit)
  | Call of (unit -> unit)

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

let resume_by fiber k = function
  | Ok value -> push_from_anywhere (Continue_with (fiber, k, value))
  | Error exn -> push_from_anywhere (Discontinue (fiber, k, exn))

(* ---- Lists of those that wait ---- *)

(* Signal handlers, which run where something is allocated, may end waits: so each change of a list allocates nothing,
   and what was read before an allocation is read again. *)

let remove_waiter waiters waiter =
  match (waiter, waiters.first_waiter) with
  | Waiter { next; previous; _ }, (Waiter first as the_first) -> (
      let is_first = the_first == waiter in
      (if is_first then waiters.first_waiter <- next
       else match previous with Waiter before -> before.next <- next | End | Closed _ -> ());
      match next with
      | Waiter after -> after.previous <- (if is_first && previous == next then End else previous)
      | End | Closed _ -> if not is_first then first.previous <- (if previous == the_first then End else previous))
  | _ -> ()

let link_waiter waiters waiter =
  match (waiters.first_waiter, waiter) with
  | (Waiter first as the_first), Waiter this ->
      let last = match first.previous with End -> the_first | last -> last in
      this.previous <- last;
      (match last with Waiter before -> before.next <- waiter | End | Closed _ -> ());
      first.previous <- waiter
  | _ -> waiters.first_waiter <- waiter

(* The list has been closed, or has the waiter, from which no cancel takes it if it [waits_to_the_end]. *)
let add_waiter ?(waits_to_the_end = false) waiters fiber ends =
  let waiter = Waiter { next = End; previous = End; fiber; ends } in
  let withdraw exn =
    fiber.withdraw <- no_wait;
    remove_waiter waiters waiter;
    match ends with Go k -> push_from_anywhere (Discontinue (fiber, k, exn)) | Tell resume -> resume (Error exn)
  in
  match waiters.first_waiter with
  | Closed value -> (
      match ends with Go k -> push (Continue_with (fiber, k, value)) | Tell resume -> resume (Ok value))
  | End | Waiter _ ->
      link_waiter waiters waiter;
      if not waits_to_the_end then fiber.withdraw <- withdraw

(* False: nobody waits. *)
let rec wake_one waiters value =
  match waiters.first_waiter with
  | End | Closed _ -> false
  | Waiter { fiber; ends = Go k; _ } as waiter ->
      let item = Continue_with (fiber, k, value) in
      if waiters.first_waiter == waiter then (
        remove_waiter waiters waiter;
        fiber.withdraw <- no_wait;
        push_from_anywhere item;
        true)
      else wake_one waiters value
  | Waiter { fiber; ends = Tell resume; _ } as waiter ->
      remove_waiter waiters waiter;
      fiber.withdraw <- no_wait;
      resume (Ok value);
      true

let rec wake_all waiters value = if wake_one waiters value then wake_all waiters value

(* The same, for good. *)
let close_waiters waiters value =
  let closed = Closed value in
  wake_all waiters value;
  waiters.first_waiter <- closed

(* ---- Running them ---- *)

let note_wait fiber what = if fiber.waits_for != what then fiber.waits_for <- what

(* The lane of a carrier, laid out as in loop_stubs.c. *)
type lane = { mutable running : fiber; mutable left : int  (* how many are resumed before the head of the loop *) }

external enter_lane : carrier -> lane -> unit = "haft_ocaml_io_enter_lane"
external keep_lane : lane ref -> unit = "haft_ocaml_io_keep"

(* Whether tasks that wait can tell where, as exceptions can (Printexc.record_backtrace). *)
let keeps_backtraces = ref false

let turn = 256
let here = ref { running = nobody; left = 0 }
let () = keep_lane here
let () = show here

(* The calling task. (A thread beside the run, and code of the loop itself, are none.) *)
let this_fiber () =
  let fiber = !here.running in
  if fiber != nobody && runs_here () then fiber else perform This_fiber

let rec schedule () =
  let lane = !here in
  if lane.left <= 0 then ()
  else (
    lane.left <- lane.left - 1;
    match pop () with
    | Nothing -> ()
    | Continue (fiber, k) ->
        lane.running <- fiber;
        continue k ()
    | Continue_yielded (fiber, k) -> (
        lane.running <- fiber;
        match fiber.context.state with
        | Cancelling (exn, _) -> discontinue k (Cancelled exn)
        | On | Finished -> continue k ())
    | Continue_with (fiber, k, value) ->
        lane.running <- fiber;
        continue k value
    | Discontinue (fiber, k, exn) ->
        lane.running <- fiber;
        discontinue k exn
    | Start (fiber, body) -> start fiber body
    | Call f ->
        f ();
        schedule ())

and start fiber body =
  !here.running <- fiber;
  Haft__syntax.match_with body () handler

(* As the `effect` syntax makes handlers, whose functions for effects are the clauses: so a perform allocates nothing but
   its continuation. *)
and handler =
  {
    Haft__syntax.retc =
      (fun () ->
        leave !here.running;
        schedule ());
    exnc =
      (fun exn ->
        leave !here.running;
        raise exn);
    effc =
      (fun (type a) (effect : a Effect.t) (k : (a, unit) continuation) ->
        match effect with
        | Wait (waiters, what) ->
            let fiber = !here.running in
            if !keeps_backtraces then fiber.suspended <- Obj.repr k;
            (try
               match fiber.context.state with
               | Cancelling (exn, _) -> push (Discontinue (fiber, k, Cancelled exn))
               | On | Finished ->
                   note_wait fiber what;
                   add_waiter waiters fiber (Go k)
             with exn -> push (Discontinue (fiber, k, exn)));
            schedule ()
        | Yield ->
            (try push (Continue_yielded (!here.running, k))
             with exn -> push (Discontinue (!here.running, k, exn)));
            schedule ()
        | Wait_to_the_end (waiters, what) ->
            let fiber = !here.running in
            if !keeps_backtraces then fiber.suspended <- Obj.repr k;
            (try
               note_wait fiber what;
               add_waiter ~waits_to_the_end:true waiters fiber (Go k)
             with exn -> push (Discontinue (fiber, k, exn)));
            schedule ()
        | Fork (other, body) ->
            push_first (Continue (!here.running, k));
            start other body
        | Suspend begin_ ->
            let fiber = !here.running in
            if !keeps_backtraces then fiber.suspended <- Obj.repr k;
            (try begin_ fiber (resume_by fiber k) with exn -> push (Discontinue (fiber, k, exn)));
            schedule ()
        | This_fiber -> continue k !here.running
        | On_c_stack _ -> discontinue k (Invalid_argument "only the task that serves a request may use it")
        | _ -> Haft__syntax.decline effect k);
  }

(* ---- Backtraces ---- *)

(* The calls of a task that is suspended, the innermost first; empty for one that is not. Without those of this
   package. *)
let calls_of fiber =
  let is_of_package file = String.length file > 7 && String.sub file 0 7 = "haft_io" in
  let of_continuation (k : (unit, unit) continuation) = get_callstack k 100 in
  let rec of_queue i =
    if i = ready.count then None
    else
      match ready.items.((ready.first + i) land (Array.length ready.items - 1)) with
      | Continue_yielded (other, k) | Continue (other, k) when other == fiber -> Some (of_continuation k)
      | _ -> of_queue (i + 1)
  in
  let backtrace =
    match of_queue 0 with
    | Some backtrace -> Some backtrace
    | None when Obj.is_block fiber.suspended -> Some (of_continuation (Obj.obj fiber.suspended))
    | None -> None
  in
  match Option.map Printexc.backtrace_slots backtrace with
  | None | Some None -> []
  | Some (Some slots) ->
      let call slot =
        match Printexc.Slot.location slot with
        | Some { filename; line_number; _ } when not (is_of_package filename) ->
            let name = Option.value (Printexc.Slot.name slot) ~default:"" in
            Some (Printf.sprintf "%s, %s, line %d" name filename line_number)
        | _ -> None
      in
      List.filter_map call (Array.to_list slots)

(* ---- Timers ---- *)

let add_timer at fire =
  let timer = Haft_io__timers.add at fire in
  if !sleeps && Haft_io__timers.first () == timer then wake_c () (* the caller is in a task of C *);
  timer

let remove_timer = Haft_io__timers.remove
let fire_timers () = if Haft_io__timers.next_time () < max_int then Haft_io__timers.fire_until (now ())

let sleep_until time =
  suspend "a time" (fun fiber resume ->
      let timer =
        add_timer time (fun () ->
            fiber.withdraw <- no_wait;
            resume (Ok ()))
      in
      fiber.withdraw <-
        (fun exn ->
          fiber.withdraw <- no_wait;
          remove_timer timer;
          resume (Error exn)))

(* ---- Work of libhaft-io ---- *)

type slots = { mutable waiting : (int -> unit) array; mutable free : int list; mutable used : int }

let slots = { waiting = Array.make 64 ignore; free = []; used = 0 }

let new_slot call =
  match slots.free with
  | slot :: free ->
      slots.free <- free;
      slots.waiting.(slot) <- call;
      slot
  | [] ->
      let size = Array.length slots.waiting in
      if slots.used = size then (
        let larger = Array.make (2 * size) ignore in
        Array.blit slots.waiting 0 larger 0 size;
        slots.waiting <- larger);
      let slot = slots.used in
      slots.used <- slot + 1;
      slots.waiting.(slot) <- call;
      slot

let free_slot slot =
  slots.waiting.(slot) <- ignore;
  slots.free <- slot :: slots.free

let rec take_all_done () =
  let slot = take_done () in
  if slot >= 0 then (
    let call = slots.waiting.(slot) in
    free_slot slot;
    call (taken_result ());
    take_all_done ())

(* Begins work in C and calls [finished] with its result, in the loop: it must not wait. *)
let begin_work begin_c finished =
  let slot = new_slot finished in
  let code = begin_c slot in
  if code <> 0 then (
    free_slot slot;
    finished code)

(* Waits for the end of work in C, and returns what [take] makes of its result. No cancel ends the wait: the work has
   memory of the caller's. *)
let work what take begin_c =
  perform
    (Suspend
       (fun fiber resume ->
         fiber.waits_for <- what;
         begin_work begin_c (fun code -> resume (match take code with value -> Ok value | exception exn -> Error exn))))

(* ---- Readiness ---- *)

(* One task of C for all that wait for one direction of a descriptor. It is not withdrawn with them: a descriptor is
   mostly waited for again, and otherwise closed. *)
type watch = { mutable asked : bool; mutable watchers : watcher list }
and watcher = { mutable ended : bool; done_ : (int, exn) result -> unit }

let watches : (int, watch) Hashtbl.t = Hashtbl.create 64

(* The kinds of waits of loop_stubs.c. *)
let for_reading = 0
let for_writing = 1
let perhaps_for_reading = 2

(* Waits until the descriptor may be ready. Returns the events, or a negative error. *)
let wait_ready descriptor kind =
  let key = (2 * descriptor) + (kind land 1) in
  suspend
    (if kind = for_writing then "room to write" else "bytes to read")
    (fun fiber resume ->
      let watch =
        match Hashtbl.find_opt watches key with
        | Some watch -> watch
        | None ->
            let watch = { asked = false; watchers = [] } in
            Hashtbl.add watches key watch;
            watch
      in
      let watcher =
        {
          ended = false;
          done_ =
            (fun result ->
              fiber.withdraw <- no_wait;
              resume result);
        }
      in
      watch.watchers <- watcher :: watch.watchers;
      fiber.withdraw <-
        (fun exn ->
          watcher.ended <- true;
          watch.watchers <- List.filter (fun other -> other != watcher) watch.watchers;
          watcher.done_ (Error exn));
      if not watch.asked then (
        watch.asked <- true;
        begin_work (watch_c descriptor kind) (fun code ->
            Hashtbl.remove watches key;
            let watchers = List.rev watch.watchers in
            watch.watchers <- [];
            List.iter
              (fun watcher ->
                if not watcher.ended then (
                  watcher.ended <- true;
                  watcher.done_ (Ok code)))
              watchers)))

(* The same for descriptors that others read and close. When it has returned or raised, nobody waits for the descriptor
   any more. *)
let await_ready descriptor ~writes =
  suspend
    (if writes then "room to write" else "bytes to read")
    (fun fiber resume ->
      let cancelled = ref None in
      let slot =
        new_slot (fun code ->
            fiber.withdraw <- no_wait;
            resume (match !cancelled with Some exn -> Error exn | None -> Ok code))
      in
      let pointer = look_c descriptor writes slot in
      if pointer <= 0 then (
        free_slot slot;
        resume (Ok pointer))
      else
        fiber.withdraw <-
          (fun exn ->
            fiber.withdraw <- no_wait;
            cancelled := Some exn;
            withdraw_c pointer))

(* ---- The run ---- *)

exception Stuck

(* Why all tasks end: a signal handler has raised while the loop was between tasks, or the run was cancelled. Nothing is
   allocated where it is set, where the next signal handler could raise. *)
let interrupted = ref Exit
let is_interrupted = ref false

let interrupt exn =
  if not !is_interrupted then interrupted := exn;
  is_interrupted := true

(* Tasks of OCaml in tasks of C. *)
let guests = ref 0

let is_over finished = !finished && !guests = 0 && away () = 0

(* Whether the carrier is to go on with the loop. Another one may sleep in it, and does not know what was done here. *)
let rec stays_current carrier finished =
  is_current carrier
  ||
  (if !sleeps && (ready.count > 0 || !finished || !is_interrupted) then wake_c ();
   park carrier && stays_current carrier finished)

let rec loop carrier root finished =
  match
    while stays_current carrier finished && not (is_over finished) do
      if !finished then interrupt Exit (* which the guests are told *);
      (if !is_interrupted then
         match root.state with
         | On -> cancel_context root !interrupted (Printexc.get_raw_backtrace ())
         | Cancelling _ | Finished -> ());
      !here.left <- turn;
      take_all_done ();
      fire_timers ();
      schedule ();
      !here.running <- nobody;
      if !finished && not !is_interrupted then () (* the next turn tells the guests, if there are any *)
      else if is_current carrier && not (is_over finished) then
        if ready.count > 0 then (if yield_c () < 0 then interrupt Stuck)
        else (
          sleeps := true;
          let code = if ready.count > 0 then 0 else wait_c (Haft_io__timers.next_time ()) in
          sleeps := false;
          if code < 0 then interrupt Stuck)
    done
  with
  | () -> ()
  | exception exn ->
      if is_current carrier then sleeps := false else if !sleeps then wake_c ();
      interrupt exn;
      loop carrier root finished

let is_running = ref false
let root_of_run = ref nowhere

(* Calls [main] as a task, and returns its result when it has ended. *)
let run_by run_c main =
  if !is_running then invalid_arg "Haft_io.run: this process has a run already";
  is_running := true;
  is_interrupted := false;
  keeps_backtraces := Printexc.backtrace_status ();
  let result = ref None and finished = ref false in
  let root = new_context ~name:"run" nowhere in
  root_of_run := root;
  let body () =
    (result :=
       match main () with
       | value -> Some (Ok value)
       | exception exn ->
           let backtrace = Printexc.get_raw_backtrace () in
           Some (Error (as_cancel root exn, backtrace)));
    finished := true
  in
  let carry carrier =
    let lane = { running = nobody; left = 0 } in
    enter_lane carrier lane;
    here := lane;
    loop carrier root finished
  in
  push (Start (new_fiber root [], body));
  let code =
    Fun.protect
      ~finally:(fun () ->
        is_running := false;
        guests := 0;
        root_of_run := nowhere;
        chance := None;
        Hashtbl.reset watches;
        Haft_io__timers.forget_all ();
        Array.fill ready.items 0 (Array.length ready.items) Nothing;
        ready.count <- 0;
        slots.used <- 0;
        slots.free <- [])
      (fun () -> run_c carry)
  in
  match !result with
  | Some (Error (Cancelled _, backtrace)) when !is_interrupted -> Printexc.raise_with_backtrace !interrupted backtrace
  | Some (Error (exn, backtrace)) -> Printexc.raise_with_backtrace exn backtrace
  | Some (Ok value) -> value
  | None -> failwith ("Haft_io.run: " ^ error_text code)

(* ---- OCaml code in a task of C ---- *)

(* Calls [body] as a task of OCaml on the stack of the task of C that the caller is: while it waits, so does that. *)
let run_in_c (type r) context (body : unit -> r) : r =
  let fiber = new_fiber context [] and outside = !here in
  here := { running = fiber; left = 0 };
  incr guests;
  let go () =
    here := outside;
    leave fiber;
    decr guests;
    if !guests = 0 && !sleeps then wake_c ()
  in
  (* The task allocates its event before its first wait begins. From then on another thread or a signal handler may end
     the wait, and each of them may run at any allocation. *)
  let event = ref None in
  let own_event () =
    match !event with
    | Some event -> event
    | None ->
        let made = Bigarray.Array1.init Bigarray.char Bigarray.c_layout (event_size ()) (fun _ -> '\000') in
        event := Some made;
        made
  in
  let rec wait_for : type a. memory -> (a, exn) result option ref -> (a, exn) result =
   fun event slot ->
    match !slot with
    | Some result -> result
    | None ->
        if fiber.withdraw == no_wait then event_wait_to_the_end event
        else if event_wait event < 0 then fiber.withdraw (Cancelled Exit);
        wait_for event slot
  in
  let suspend_in_c : type a. (a, r) continuation -> (((a, exn) result -> unit) -> unit) -> r =
   fun k begin_ ->
    match own_event () with
    | exception exn -> discontinue k exn
    | event -> (
        let slot = ref None in
        if !keeps_backtraces then fiber.suspended <- Obj.repr k;
        let resume result =
          slot := Some result;
          event_set event
        in
        (try begin_ resume with exn -> resume (Error exn));
        match wait_for event slot with Ok value -> continue k value | Error exn -> discontinue k exn)
  in
  let effc (type a) (effect : a Effect.t) (k : (a, r) continuation) : r =
    match effect with
    | Wait (waiters, what) ->
        suspend_in_c k (fun resume ->
            match fiber.context.state with
            | Cancelling (exn, _) -> resume (Error (Cancelled exn))
            | On | Finished ->
                note_wait fiber what;
                add_waiter waiters fiber (Tell resume))
    | Yield -> (
        match yield_c () with
        | exception exn (* of a signal handler *) -> discontinue k exn
        | code -> if code < 0 then discontinue k (Cancelled Exit) else continue k ())
    | Wait_to_the_end (waiters, what) ->
        suspend_in_c k (fun resume ->
            note_wait fiber what;
            add_waiter ~waits_to_the_end:true waiters fiber (Tell resume))
    | Fork (other, body) ->
        push_from_anywhere (Start (other, body));
        continue k ()
    | Suspend begin_ -> suspend_in_c k (begin_ fiber)
    | This_fiber -> continue k fiber
    | On_c_stack f -> ( match f () with value -> continue k value | exception exn -> discontinue k exn)
    | _ -> Haft__syntax.decline effect k
  in
  match Haft__syntax.match_with body () { retc = Fun.id; exnc = raise; effc } with
  | value ->
      go ();
      value
  | exception exn ->
      go ();
      raise exn
