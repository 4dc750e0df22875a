(* SPDX-License-Identifier: MIT *)
(* The loop: tasks of OCaml as continuations in a queue (haft_io__tasks.ml), in a task of libhaft-io, its carrier.

   The loop resumes one after the other. It lets the tasks of C go first after [turn] of them, and when there is none
   it sleeps in libhaft-io until something is done there (work_stubs.c) or the earliest timer is due.

   Invariants
   - [!here] is the lane of the carrier that runs, and its [running] the task that runs on it, or ran last. (A task of
     OCaml in a task of C is none of the loop's.) A carrier that is away, with a task that waits in a function of C
     (loop_stubs.c), finds its lane there when it goes on.
   - A clause of [effc] that has put the continuation somewhere ends with [schedule], in tail position: so a million
     switches take constant stack. *)
open Effect
open Effect.Deep

type carrier = int

external run_c : string -> int -> (carrier -> Obj.t -> unit) -> int = "haft_ocaml_io_run"
external simulate_c : int * bool * int * int -> (carrier -> Obj.t -> unit) -> int = "haft_ocaml_io_simulate"
external is_current : carrier -> bool = "haft_ocaml_io_is_current" [@@noalloc]
external away : unit -> int = "haft_ocaml_io_away" [@@noalloc]
external park : carrier -> bool = "haft_ocaml_io_park"
external wait_c : int -> int = "haft_ocaml_io_wait"
external yield_c : unit -> int = "haft_ocaml_io_yield"
external runs_here : unit -> bool = "haft_ocaml_io_runs_here" [@@noalloc]
external now : unit -> int = "haft_ocaml_io_now"
external seed : unit -> int = "haft_ocaml_io_seed"
external take_done : unit -> int = "haft_ocaml_io_take_done"
external taken_result : unit -> int = "haft_ocaml_io_taken_result"
external watch_c : int -> int -> int -> int = "haft_ocaml_io_watch"
external look_c : int -> bool -> int -> int = "haft_ocaml_io_look"
external forget_watches_c : int -> unit = "haft_ocaml_io_forget_watches" [@@noalloc]
external withdraw_c : int -> unit = "haft_ocaml_io_withdraw"
external error_text : int -> string = "haft_ocaml_io_error_text"
external dump_c : int -> int = "haft_ocaml_io_dump"
external show : 'lane ref -> 'tasks -> unit = "haft_ocaml_io_show"

type memory = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t

external event_size : unit -> int = "haft_ocaml_io_event_size"
external event_set : memory -> unit = "haft_ocaml_io_event_set"
external event_wait : memory -> int = "haft_ocaml_io_event_wait"
external event_wait_to_the_end : memory -> unit = "haft_ocaml_io_event_wait_to_the_end"
external begin_guest : unit -> int = "haft_ocaml_io_begin_guest" [@@noalloc]
external end_guest : int -> unit = "haft_ocaml_io_end_guest" [@@noalloc]

include Haft_io__tasks

(* ---- Effects ---- *)

type _ Effect.t +=
  | Wait : 'a waiters * string -> 'a Effect.t  (* in this list; the text is for debuggers *)
  | Wait_to_the_end : 'a waiters * string -> 'a Effect.t  (* the same, whatever cancels come *)
  | Suspend : (fiber -> (('a, exn) result -> unit) -> unit) -> 'a Effect.t
        (* calls the function, which keeps what ends the wait *)
  | Sleep_until : int -> unit Effect.t
  | This_fiber : fiber Effect.t
  | Yield : unit Effect.t
  | Fork : fiber * bool -> unit Effect.t
        (* a new task, which goes first, raises nothing, and ends with [end_this_task]; whether it is a daemon *)
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

(* Begins such a wait of the task, whose continuation is kept. *)
let begin_suspension fiber begin_ =
  let continuation = fiber.continuation in
  fiber.listing <- Suspended;
  try
    begin_ fiber (function
      | Ok value -> end_suspension fiber continuation By_value (Obj.repr value)
      | Error exn -> end_suspension fiber continuation By_exception (Obj.repr (exn : exn)))
  with exn -> end_suspension fiber continuation By_exception (Obj.repr exn)

(* The lane of a carrier or a guest, laid out as in loop_stubs.c. *)
type lane = {
  mutable running : int;  (* the number of the task; negative: there is none, or it waits in C ([hidden]) *)
  mutable left : int;  (* how many are resumed before the head of the loop *)
  mutable transit : int;  (* task that performed last, or is to start, on its way to a list; or -1 *)
}

external enter_lane : carrier -> lane -> unit = "haft_ocaml_io_enter_lane"
external keep_lane : lane ref -> unit = "haft_ocaml_io_keep"

let turn = 256
let here = ref { running = -1; left = 0; transit = -1 }
let () = keep_lane here
let () = show here tasks

(* The calling task. (A thread beside the run, and code of the loop itself, are none.) *)
let this_fiber () =
  let id = !here.running in
  if id >= 0 && runs_here () then fiber_of id else perform This_fiber

(* The last that a task calls. *)
let end_this_task () = end_task (fiber_of !here.running)

(* ---- Timers ---- *)

(* The loop wakes if it sleeps longer than that: a task in a task of C may begin a timer. *)
let begin_timer timer =
  Haft_io__timers.begin_ timer;
  if !sleeps && Haft_io__timers.first () == timer then wake_c ()

let add_timer at fire =
  let timer = Haft_io__timers.make at fire () in
  begin_timer timer;
  timer

let remove_timer = Haft_io__timers.remove
let fire (timer : Haft_io__timers.timer) () = timer.call timer.argument
let fire_in_any_case timer = in_any_case fire timer ()

let fire_timers () =
  if Haft_io__timers.next_time () < max_int then Haft_io__timers.fire_until (now ()) fire_in_any_case

(* The task, whose continuation is kept, waits for the time. (Its timer is all that a sleep leaves to the collector.) *)
let begin_sleep fiber time =
  let timer = Haft_io__timers.make time wake_sleeper fiber in
  begin_timer timer;
  match fiber.context.state with
  | Cancelling (exn, _) ->
      Haft_io__timers.remove timer;
      go_on fiber By_exception (Obj.repr (Cancelled exn))
  | On | Finished ->
      note_wait fiber "a time";
      fiber.value <- Obj.repr timer;
      fiber.listing <- Sleeping

let sleep_until time = perform (Sleep_until time)

(* ---- Running them ---- *)

(* The handler around each task; below. *)
let handler : (unit, unit) Haft__syntax.handler ref =
  ref { Haft__syntax.retc = Fun.id; exnc = raise; effc = Haft__syntax.decline }

let rec schedule () =
  let lane = !here in
  if lane.left <= 0 then ()
  else (
    lane.left <- lane.left - 1;
    let id = pop () in
    if id >= 0 then (
      lane.running <- id;
      lane.transit <- -1;
      let fiber = fiber_of id in
      let k : (Obj.t, unit) continuation = Obj.obj fiber.continuation and value = fiber.value in
      let way = fiber.way in
      if Obj.is_block value && way != By_start then fiber.value <- nothing;
      match way with
      | By_value -> continue k value
      | By_exception -> discontinue k (Obj.obj value : exn)
      | Unless_cancelled -> (
          match fiber.context.state with
          | Cancelling (exn, _) ->
              discontinue k (try Cancelled exn with another (* of a signal handler *) -> another)
          | On | Finished -> continue k value)
      | By_start ->
          lane.transit <- id (* signal handlers may run at the head of [start] *);
          start fiber
      | By_call ->
          lane.running <- -1;
          forget_number fiber;
          (Obj.obj value : unit -> unit) ();
          schedule ()))

and start fiber =
  let lane = !here and body : unit -> unit = Obj.obj fiber.value in
  lane.running <- fiber.id;
  lane.transit <- -1;
  fiber.way <- By_value;
  fiber.value <- nothing;
  Haft__syntax.match_with body () !handler

let[@inline never] serve (type a) (effect : a Effect.t) fiber =
  match effect with
  | Wait (waiters, what) ->
      list_waiter fiber waiters what Listed;
      schedule ()
  | Yield ->
      fiber.way <- Unless_cancelled;
      push fiber;
      schedule ()
  | Wait_to_the_end (waiters, what) ->
      list_waiter fiber waiters what Listed_to_the_end;
      schedule ()
  | Fork (other, is_daemon) ->
      register_task other ~is_daemon;
      fiber.way <- By_value;
      push_first fiber;
      !here.transit <- other.id;
      start other
  | Sleep_until time ->
      (try begin_sleep fiber time with exn -> go_on fiber By_exception (Obj.repr exn));
      schedule ()
  | Suspend begin_ ->
      begin_suspension fiber begin_;
      schedule ()
  | _ -> (
      !here.transit <- -1;
      let k : (a, unit) continuation = Obj.obj fiber.continuation in
      match effect with
      | This_fiber -> continue k fiber
      | On_c_stack _ -> discontinue k (Invalid_argument "only the task that serves a request may use it")
      | _ -> Haft__syntax.decline effect k)

(* The handler is one as the `effect` syntax makes: its function for effects is the clauses, so a perform allocates
   nothing but its continuation. The compiler lets signal handlers run at the head of functions, but of none that ends
   with a call of an earlier function: so the continuation is kept before any of them raises. *)
let () =
  let effc (type a) (effect : a Effect.t) (k : (a, unit) continuation) =
    let lane = !here in
    let fiber = fiber_of lane.running in
    fiber.continuation <- Obj.repr k;
    lane.transit <- lane.running;
    serve effect fiber
  in
  handler :=
    {
      Haft__syntax.retc =
        schedule (* the task has ended itself, because signals may be handled before this *);
      exnc =
        (fun exn (* of a signal handler: tasks raise nothing *) ->
          end_task (fiber_of !here.running);
          raise exn);
      effc;
    }

(* A signal handler has raised in the loop: the task that was about to wait gets the exception; if there is none, it
   ends the run. (It changes nothing before it knows; another signal handler may raise until then.) *)
let take_exception exn () =
  let lane = !here in
  let fiber = if lane.transit >= 0 then fiber_of lane.transit else nobody in
  let is_lost = fiber != nobody && fiber.listing = Nowhere && not (has_not_begun fiber || is_ready fiber) in
  lane.transit <- -1;
  if is_lost && fiber.way <> By_start then go_on fiber By_exception (Obj.repr (exn : exn))
  else (
    if is_lost then push fiber;
    interrupt exn)

(* ---- Backtraces ---- *)

(* The calls of a task that is suspended, the innermost first; empty for one that is not. Without those of this
   package. *)
let calls_of fiber =
  let is_of_package file = String.length file > 7 && String.sub file 0 7 = "haft_io" in
  let of_continuation (k : (unit, unit) continuation) = get_callstack k 100 in
  let backtrace =
    if Obj.is_block fiber.continuation then Some (of_continuation (Obj.obj fiber.continuation)) else None
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

let call_waiting slot code = slots.waiting.(slot) code

(* The slot is free when its function has returned, which may be called more than once. *)
let rec take_all_done () =
  let slot = take_done () in
  if slot >= 0 then (
    in_any_case call_waiting slot (taken_result ());
    free_slot slot;
    take_all_done ())

(* Begins work in C and calls [finished] with its result, in the loop: it must not wait. *)
let begin_work begin_c finished =
  let slot = new_slot finished in
  let code = begin_c slot in
  if code <> 0 then (
    free_slot slot;
    finished code)

let result_of take code = match take code with value -> Ok value | exception exn -> Error exn

(* Waits for the end of work in C, and returns what [take] makes of its result. No cancel ends the wait: the work has
   memory of the caller's. *)
let work what take begin_c =
  perform
    (Suspend
       (fun fiber resume ->
         fiber.waits_for <- what;
         begin_work begin_c (fun code -> resume (result_of take code))))

(* ---- Readiness ---- *)

(* One task of C for all that wait for one direction of a descriptor. It is not withdrawn with them: a descriptor is
   mostly waited for again, and otherwise closed. *)
type watch = { mutable asked : bool; mutable watchers : watcher list }
and watcher = { mutable ended : bool; done_ : (int, exn) result -> unit }

let watches : (int, watch) Hashtbl.t = Hashtbl.create 64

(* The kinds of waits of readiness_stubs.c. *)
let for_reading = 0
let for_writing = 1
let perhaps_for_reading = 2

(* The descriptor is about to be closed: one that gets its number next has waits of its own. *)
let forget_watches descriptor =
  forget_watches_c descriptor;
  Hashtbl.remove watches (2 * descriptor);
  Hashtbl.remove watches ((2 * descriptor) + 1)

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
      let watcher = { ended = false; done_ = resume } in
      watch.watchers <- watcher :: watch.watchers;
      fiber.withdraw <-
        (fun exn ->
          watch.watchers <- List.filter (fun other -> other != watcher) watch.watchers;
          watcher.done_ (Error exn);
          watcher.ended <- true);
      if not watch.asked then (
        begin_work (watch_c descriptor kind) (fun code ->
            let result = Ok code in
            List.iter
              (fun watcher ->
                if not watcher.ended then (
                  watcher.done_ result;
                  watcher.ended <- true))
              (List.rev watch.watchers);
            match Hashtbl.find_opt watches key with
            | Some other when other == watch -> Hashtbl.remove watches key
            | _ -> ());
        watch.asked <- true))

(* The same for descriptors that others read and close. When it has returned or raised, nobody waits for the descriptor
   any more. *)
let await_ready descriptor ~writes =
  suspend
    (if writes then "room to write" else "bytes to read")
    (fun fiber resume ->
      let cancelled = ref None in
      let slot =
        new_slot (fun code ->
            resume (match !cancelled with Some exn -> Error exn | None -> Ok code))
      in
      let pointer = look_c descriptor writes slot in
      if pointer <= 0 then (
        free_slot slot;
        resume (Ok pointer))
      else
        fiber.withdraw <-
          (fun exn ->
            cancelled := Some exn;
            withdraw_c pointer;
            fiber.withdraw <- no_wait))

(* ---- The run ---- *)

exception Stuck

(* The first task has ended. *)
exception Over

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
      if !finished then interrupt Over (* which the guests are told *);
      (if !is_interrupted then
         match root.state with
         | On -> cancel_context root !interrupted (Printexc.get_raw_backtrace ())
         | Cancelling _ | Finished -> ());
      !here.left <- turn;
      take_all_done ();
      fire_timers ();
      schedule ();
      !here.running <- -1;
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
      in_any_case take_exception exn ();
      loop carrier root finished

let is_running = ref false
let root_of_run = ref nowhere

let forget_run () =
  is_running := false;
  guests := 0;
  root_of_run := nowhere;
  forget_ready ();
  Haft_io__timers.forget_all ();
  slots.used <- 0;
  slots.free <- [];
  Hashtbl.reset watches

(* Calls [main] as a task, and returns its result when it has ended. *)
let run_by run_c main =
  if !is_running then invalid_arg "Haft_io.run: this process has a run already";
  forget_run () (* again: a signal handler may have raised then *);
  is_interrupted := false;
  let result = ref None and finished = ref false in
  let root = make_context ~protected:false "run" nowhere in
  let body () =
    (try
       result :=
         match main () with
         | value -> Some (Ok value)
         | exception exn ->
             let backtrace = Printexc.get_raw_backtrace () in
             Some (Error (as_cancel root exn, backtrace))
     with exn (* of a signal handler *) -> interrupt exn);
    finished := true;
    end_this_task ()
  in
  (* [why]: the exception that has kept an earlier call from coming to the loop; or no block. *)
  let carry carrier why =
    if Obj.is_block why then interrupt (Obj.obj why : exn);
    let lane = { running = -1; left = 0; transit = -1 } in
    enter_lane carrier lane;
    here := lane;
    loop carrier root finished
  in
  let first = make_task root [] body in
  let code =
    Fun.protect
      ~finally:(fun () ->
        chance := None;
        forget_run ())
      (fun () ->
        is_running := true;
        root_of_run := root;
        register_task first ~is_daemon:false;
        push first;
        run_c carry)
  in
  let was_ended = !is_interrupted && !interrupted != Over in
  match !result with
  | Some (Error (Cancelled _, backtrace)) when was_ended -> Printexc.raise_with_backtrace !interrupted backtrace
  | Some (Error (exn, backtrace)) -> Printexc.raise_with_backtrace exn backtrace
  | Some (Ok _) when was_ended && !interrupted != Stuck (* of a signal handler, whatever the task made of it *) ->
      raise !interrupted
  | Some (Ok value) -> value
  | None when was_ended -> raise !interrupted
  | None -> failwith ("Haft_io.run: " ^ error_text code)

(* ---- OCaml code in a task of C ---- *)

(* The number by which loop_stubs.c hides a task that waits in C. *)
let hidden number = -2 - number

(* Calls [f], which may wait in C, for the task of this lane, in whose task of C the caller is. A cancel ends that
   wait. *)
let call_on_c_stack lane fiber f =
  let come () =
    lane.running <- fiber.id;
    check_context fiber.context
  in
  check_context fiber.context;
  lane.running <- hidden fiber.id;
  match f () with
  | value ->
      come ();
      value
  | exception exn ->
      come ();
      raise exn

(* Calls [body] as a task of OCaml on the stack of the task of C that the caller is: while it waits, so does that. *)
let run_in_c (type r) context (body : unit -> r) : r =
  (* The task allocates its event before its first wait begins. From then on another thread or a signal handler may end
     the wait, and each of them may run at any allocation. *)
  let event = ref None in
  let tell () = Option.iter event_set !event in
  let fiber = make_fiber tell context By_value nothing [] and outside = !here in
  let lane = { running = -1; left = 0; transit = -1 } in
  let come () =
    register fiber;
    lane.running <- fiber.id;
    here := lane;
    incr guests;
    begin_guest ()
  in
  let go guest =
    end_guest guest;
    lane.running <- -1 (* for guests that began while this one waited, and go back to this lane *);
    here := outside;
    end_fiber fiber;
    decr guests;
    if !guests = 0 && !sleeps then wake_c ()
  in
  let own_event () =
    match !event with
    | Some event -> event
    | None ->
        let made = Bigarray.Array1.init Bigarray.char Bigarray.c_layout (event_size ()) (fun _ -> '\000') in
        event := Some made;
        made
  in
  let rec wait_until_told event =
    match fiber.listing with
    | Nowhere -> ()
    | Listed_to_the_end ->
        event_wait_to_the_end event;
        wait_until_told event
    | Suspended when fiber.withdraw == no_wait ->
        event_wait_to_the_end event;
        wait_until_told event
    | Suspended | Sleeping | Listed ->
        if event_wait event < 0 then cancel_fiber fiber (Cancelled Exit);
        wait_until_told event
  in
  (* [begin_] begins a wait of the task, as for those of the loop. *)
  let wait_in_c : type a. (a, r) continuation -> (unit -> unit) -> r =
   fun k begin_ ->
    match own_event () with
    | exception exn -> discontinue k exn
    | event -> (
        fiber.continuation <- Obj.repr k;
        (try begin_ () with exn -> go_on fiber By_exception (Obj.repr exn));
        lane.running <- -1 (* for code in other tasks of C, which finds this lane *);
        wait_until_told event;
        lane.running <- fiber.id;
        let value = fiber.value in
        fiber.value <- nothing;
        match fiber.way with
        | By_exception -> discontinue k (Obj.obj value : exn)
        | By_value | Unless_cancelled | By_start | By_call -> continue k (Obj.obj value : a))
  in
  let effc (type a) (effect : a Effect.t) (k : (a, r) continuation) : r =
    match effect with
    | Wait (waiters, what) -> wait_in_c k (fun () -> list_waiter fiber waiters what Listed)
    | Yield -> (
        lane.running <- -1;
        let code = try Ok (yield_c ()) with exn (* of a signal handler *) -> Error exn in
        lane.running <- fiber.id;
        match code with
        | Error exn -> discontinue k exn
        | Ok code -> if code < 0 then discontinue k (Cancelled Exit) else continue k ())
    | Wait_to_the_end (waiters, what) -> wait_in_c k (fun () -> list_waiter fiber waiters what Listed_to_the_end)
    | Sleep_until time -> wait_in_c k (fun () -> begin_sleep fiber time)
    | Fork (other, is_daemon) -> (
        match register_task other ~is_daemon with
        | () ->
            push_from_anywhere other;
            continue k ()
        | exception exn (* of a signal handler *) -> discontinue k exn)
    | Suspend begin_ -> wait_in_c k (fun () -> begin_suspension fiber begin_)
    | This_fiber -> continue k fiber
    | On_c_stack f -> (
        match call_on_c_stack lane fiber f with value -> continue k value | exception exn -> discontinue k exn)
    | _ -> Haft__syntax.decline effect k
  in
  let handler = { Haft__syntax.retc = Fun.id; exnc = raise; effc } in
  let guest = come () in
  match Haft__syntax.match_with body () handler with
  | value ->
      go guest;
      value
  | exception exn ->
      let backtrace = Printexc.get_raw_backtrace () in
      go guest;
      Printexc.raise_with_backtrace (as_cancel context exn) backtrace
