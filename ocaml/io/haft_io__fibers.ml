(* SPDX-License-Identifier: MIT *)
(* Cancel, Switch, Promise and Fiber, on the loop. *)
open Haft_io__loop

let current = this_fiber

module Waiters = struct
  let create = new_waiters
  let wake_one = wake_one
  let wake_all = wake_all
  let wait waiters what = Effect.perform (Wait (waiters, what))
  let wait_to_the_end waiters what = Effect.perform (Wait_to_the_end (waiters, what))
end

(* Waits until a task of the context has ended that was the last one beside daemons, perhaps. *)
let wait_for_others context what =
  if context.idle == no_idle then context.idle <- new_waiters ();
  Waiters.wait_to_the_end context.idle what

(* ---- Exceptions ---- *)

module Exn = struct
  type with_bt = exn * Printexc.raw_backtrace
  type err = ..
  type context = { steps : string list }

  exception Io of err * context
  exception Multiple of with_bt list

  type err += X of exn

  let create err = Io (err, { steps = [] })

  let add_context exn format =
    Format.kasprintf
      (fun step -> match exn with Io (err, context) -> Io (err, { steps = step :: context.steps }) | exn -> exn)
      format

  let reraise_with_context exn backtrace format =
    Format.kasprintf
      (fun step ->
        let exn = add_context exn "%s" step in
        Printexc.raise_with_backtrace exn backtrace)
      format

  let empty_backtrace = Printexc.get_callstack 0

  (* Combines two failures: a cancel is none beside another one, nor is the same exception again. *)
  let combine (first : with_bt) (second : with_bt) =
    let is_second (exn, _) = exn == fst second in
    match (first, second) with
    | (Cancelled _, _), _ -> second
    | _, (Cancelled _, _) -> first
    | (Multiple all, _), _ when List.exists is_second all -> first
    | _ when is_second first -> first
    | (Multiple all, _), _ -> (Multiple (all @ [ second ]), empty_backtrace)
    | _ -> (Multiple [ first; second ], empty_backtrace)

  let raise_with_bt (exn, backtrace) = Printexc.raise_with_backtrace exn backtrace
  let get exn : with_bt = (exn, Printexc.get_raw_backtrace ())
  let printers : (Format.formatter -> err -> bool) list ref = ref []
  let register_pp printer = printers := printer :: !printers

  let pp_err formatter err =
    match err with
    | X exn -> Format.pp_print_string formatter (Printexc.to_string exn)
    | _ ->
        if not (List.exists (fun printer -> printer formatter err) !printers) then
          Format.pp_print_string formatter "an error"

  let pp formatter = function
    | Io (err, { steps }) ->
        Format.fprintf formatter "@[Io %a" pp_err err;
        List.iter (fun step -> Format.fprintf formatter ",@ %s" step) (List.rev steps);
        Format.fprintf formatter "@]"
    | Multiple all ->
        Format.fprintf formatter "Multiple exceptions:";
        List.iter (fun (exn, _) -> Format.fprintf formatter "@\n- %s" (Printexc.to_string exn)) all
    | exn -> Format.pp_print_string formatter (Printexc.to_string exn)

  let () =
    Printexc.register_printer (function
      | (Io _ | Multiple _) as exn -> Some (Format.asprintf "Haft_io.%a" pp exn)
      | Cancelled exn -> Some ("Cancelled: " ^ Printexc.to_string exn)
      | Stuck -> Some "Haft_io: no task can ever go on"
      | _ -> None)
end

(* ---- Cancels ---- *)

module Cancel = struct
  type t = context

  exception Cancelled = Cancelled

  let has_finished = Invalid_argument "Cancellation context finished!"

  let check context =
    match context.state with Finished -> raise has_finished | On | Cancelling _ -> check_context context

  let get_error context =
    match context.state with Cancelling (exn, _) -> Some (Cancelled exn) | Finished -> Some has_finished | On -> None

  let cancel context exn =
    match context.state with
    | Finished -> raise has_finished
    | On | Cancelling _ -> cancel_context context exn (Printexc.get_raw_backtrace ())

  (* Moves the task into the context while it calls [body]. *)
  let move fiber context =
    leave fiber;
    enter fiber context

  (* The task is in a new context while it calls [body]. It comes back before anything is allocated. *)
  let sub_in ?(protected = false) ?(name = "") fiber body =
    let outer = fiber.context in
    let context = make_context ~protected name outer in
    (match outer.state with Cancelling _ when not protected -> context.state <- outer.state | _ -> ());
    link_context context;
    move fiber context;
    match body context with
    | value ->
        move fiber outer;
        end_context context;
        value
    | exception exn ->
        move fiber outer;
        let state = context.state in
        end_context context;
        let backtrace = Printexc.get_raw_backtrace () in
        Printexc.raise_with_backtrace (as_cancel_by state exn) backtrace

  let sub body = sub_in (current ()) body

  let protect body = sub_in ~protected:true (current ()) (fun _ -> body ())

  let rec dump formatter context =
    Format.fprintf formatter "@[<v2>%s%s%s" (if context.name = "" then "context" else context.name)
      (if context.protected then " (protected)" else "")
      (match context.state with On -> "" | Cancelling _ -> " (cancelled)" | Finished -> " (finished)");
    List.iter
      (fun fiber ->
        (match fiber.listing with
        | Nowhere -> Format.fprintf formatter "@,@[<v2>task runs, is ready, or waits in a function of C"
        | Listed | Listed_to_the_end | Sleeping | Suspended ->
            Format.fprintf formatter "@,@[<v2>task waits for: %s" fiber.waits_for);
        List.iter (Format.fprintf formatter "@,%s") (calls_of fiber);
        Format.fprintf formatter "@]")
      (fibers_of context);
    List.iter (fun child -> Format.fprintf formatter "@,%a" dump child) (children_of context);
    Format.fprintf formatter "@]"
end

(* ---- Promises ---- *)

module Promise = struct
  type 'a state = Resolved of 'a | Unresolved of unit waiters
  type 'a t = { mutable state : 'a state; label : string }
  type 'a u = 'a t  (* the two ends are one object *)
  type 'a or_exn = ('a, exn) result t

  let create_with_label label =
    let promise = { state = Unresolved (Waiters.create ()); label } in
    (promise, promise)

  let create ?(label = "a promise") () = create_with_label label
  let create_resolved value = { state = Resolved value; label = "" }

  let rec await promise =
    match promise.state with
    | Resolved value -> value
    | Unresolved waiters ->
        Waiters.wait waiters promise.label;
        await promise

  let await_exn promise = match await promise with Ok value -> value | Error exn -> raise exn

  (* Another thread changes no lists: it finds out at once whether it was first, and the loop does the rest. (All
      that is allocated is there before anything changes.) *)
  let try_resolve promise value =
    let resolved = Resolved value in
    match promise.state with
    | Resolved _ -> false
    | Unresolved waiters when runs_here () ->
        promise.state <- resolved;
        close_waiters waiters;
        true
    | Unresolved waiters -> (
        let caller = make_caller (fun () -> close_waiters waiters) in
        match promise.state with
        | Resolved _ (* meanwhile *) ->
            forget_number caller;
            false
        | Unresolved _ ->
            promise.state <- resolved;
            push_from_anywhere caller;
            true)

  let resolve promise value =
    if not (try_resolve promise value) then invalid_arg "Can't resolve already-resolved promise"

  let resolve_ok promise value = resolve promise (Ok value)
  let resolve_error promise exn = resolve promise (Error exn)
  let peek promise = match promise.state with Resolved value -> Some value | Unresolved _ -> None
  let is_resolved promise = match promise.state with Resolved _ -> true | Unresolved _ -> false
  let id (promise : _ t) = Hashtbl.hash promise.label
end

(* ---- Switches ---- *)

module Switch = struct
  type t = {
    context : context;
    mutable failure : Exn.with_bt option;
    mutable hooks : hook;  (* the last that was added; or the null one *)
    mutable finished : bool;
  }

  and hook = {
    mutable release : (unit -> unit) option;  (* None: it is in no list *)
    owner : t option;
    mutable newer : hook;
    mutable older : hook;
  }

  let rec null_hook = { release = None; owner = None; newer = null_hook; older = null_hook }
  let check_open switch = if switch.finished then invalid_arg "Switch finished!"

  let check switch =
    check_open switch;
    check_context switch.context

  let get_error switch =
    if switch.finished then Some (Invalid_argument "Switch finished!") else Cancel.get_error switch.context

  let fail ?(bt = Exn.empty_backtrace) switch exn =
    check_open switch;
    let exn = as_cancel switch.context exn in
    switch.failure <-
      Some (match switch.failure with None -> (exn, bt) | Some failure -> Exn.combine failure (exn, bt));
    cancel_context switch.context exn bt

  let fail_with switch exn = fail ~bt:(Printexc.get_raw_backtrace ()) switch exn

  exception Stop

  (* Only daemons are left. *)
  let stop_daemons context () =
    cancel_context context Stop Exn.empty_backtrace;
    context.daemons <- 0

  (* The caller waits for the tasks, whatever cancels come: they have been cancelled, too. An exception of a signal
     handler fails the switch meanwhile. *)
  let await_idle switch () =
    let context = switch.context in
    while context.live > 0 do
      if context.live > context.daemons then (
        try wait_for_others context "the tasks of a switch" with exn -> in_any_case fail_with switch exn)
      else in_any_case stop_daemons context ()
    done

  let try_remove_hook hook =
    match (hook.release, hook.owner) with
    | Some _, Some switch ->
        hook.release <- None;
        if hook.newer != null_hook then hook.newer.older <- hook.older else switch.hooks <- hook.older;
        if hook.older != null_hook then hook.older.newer <- hook.newer;
        true
    | _ -> false

  let remove_hook hook = ignore (try_remove_hook hook)

  let note_failure switch failure =
    switch.failure <-
      Some (match switch.failure with None -> failure | Some first -> Exn.combine first failure)

  let rec release switch =
    let hook = switch.hooks in
    match hook.release with
    | None -> ()
    | Some call ->
        remove_hook hook;
        (try call () with exn -> note_failure switch (Exn.get exn));
        release switch

  let release_in fiber switch = Cancel.sub_in ~protected:true fiber (fun _ -> release switch)

  let run_in fiber ?(protected = false) ?name body =
    let finish switch =
      in_any_case await_idle switch ();
      if switch.hooks != null_hook then in_any_case release_in fiber switch;
      switch.finished <- true
    in
    Cancel.sub_in ~protected ?name fiber (fun context ->
        let switch = { context; failure = None; hooks = null_hook; finished = false } in
        match body switch with
        | value -> (
            finish switch;
            match switch.failure with None -> value | Some failure -> Exn.raise_with_bt failure)
        | exception exn -> (
            in_any_case fail_with switch exn;
            finish switch;
            match switch.failure with None -> raise exn | Some failure -> Exn.raise_with_bt failure))

  let run ?name body = run_in (current ()) ?name body
  let run_protected ?name body = run_in (current ()) ~protected:true ?name body

  let add_hook switch call =
    let hook = { release = Some call; owner = Some switch; newer = null_hook; older = switch.hooks } in
    if switch.hooks != null_hook then switch.hooks.newer <- hook;
    switch.hooks <- hook;
    hook

  (* Where the switch has ended, what was to be released with it is released now. *)
  let add_hook_or_release switch call =
    if switch.finished then (
      call ();
      invalid_arg "Switch finished!")
    else add_hook switch call

  let on_release_cancellable switch call = add_hook_or_release switch call
  let on_release switch call = ignore (add_hook_or_release switch call)
  let dump formatter switch = Cancel.dump formatter switch.context
end

(* ---- Tasks ---- *)

module Fiber = struct
  let yield () = Effect.perform Yield
  let check () = check_context (current ()).context
  let is_cancelled () = match (current ()).context.state with Cancelling _ -> true | On | Finished -> false
  let await_cancel () = suspend "a cancel" (fun fiber resume -> fiber.withdraw <- (fun exn -> resume (Error exn)))

  (* The new task has the values of the caller. *)
  let fork_in context ~is_daemon body =
    Effect.perform (Fork (make_task context (current ()).bindings body, is_daemon))

  let is_on (switch : Switch.t) =
    Switch.check_open switch;
    match switch.context.state with On -> true | Cancelling _ | Finished -> false

  let fork ~sw body =
    if is_on sw then
      fork_in sw.context ~is_daemon:false (fun () ->
          (try body () with exn -> in_any_case Switch.fail_with sw exn);
          end_this_task ())

  let fork_daemon ~sw body =
    if is_on sw then
      fork_in sw.context ~is_daemon:true (fun () ->
          (match body () with
          | `Stop_daemon -> ()
          | exception Cancelled Switch.Stop -> ()
          | exception exn -> in_any_case Switch.fail_with sw exn);
          if sw.context.daemons > 0 then sw.context.daemons <- sw.context.daemons - 1;
          end_this_task ())

  let settle_ok resolver value = ignore (Promise.try_resolve resolver (Ok value))
  let settle_error resolver exn = ignore (Promise.try_resolve resolver (Error exn))

  let fork_promise ~sw body =
    let promise, resolver = Promise.create_with_label "the result of a task" in
    (match (Switch.check_open sw, sw.context.state) with
    | (), On ->
        fork_in sw.context ~is_daemon:false (fun () ->
            (match body () with
            | value -> in_any_case settle_ok resolver value
            | exception exn -> in_any_case settle_error resolver exn);
            end_this_task ())
    | (), (Cancelling (exn, _)) -> Promise.resolve resolver (Error (Cancelled exn))
    | (), Finished -> assert false);
    promise

  let fork_promise_exn ~sw body =
    let promise, resolver = Promise.create_with_label "the result of a task" in
    fork ~sw (fun () -> Promise.resolve resolver (body ()));
    promise

  let all bodies = Switch.run (fun sw -> List.iter (fun body -> fork ~sw body) bodies)

  let both f g =
    Switch.run ~name:"both" (fun sw ->
        fork ~sw f;
        g ())

  let pair f g =
    Switch.run ~name:"pair" (fun sw ->
        let first = fork_promise_exn ~sw f in
        let second = g () in
        (Promise.await first, second))

  exception Not_first

  (* Runs them as tasks, of which the first that ends has the others cancelled, and calls [add] with the value of each
     that returns one. Raises what they have failed of, or else what the caller was cancelled for meanwhile. *)
  let race bodies add =
    let failure = ref None in
    let note (exn, backtrace) =
      failure := Some (match !failure with None -> (exn, backtrace) | Some first -> Exn.combine first (exn, backtrace))
    in
    Cancel.sub (fun context ->
        let stop () () =
          match context.state with On -> Cancel.cancel context Not_first | Cancelling _ | Finished -> ()
        in
        let end_by exn () =
          let exn, backtrace = Exn.get exn in
          match (as_cancel context exn, context.state) with
          | Cancelled _, (Cancelling _ | Finished) -> () (* as it was told to end *)
          | exn, _ ->
              note (exn, backtrace);
              stop () ()
        in
        let run_one body () =
          match add (body ()) with () -> in_any_case stop () () | exception exn -> in_any_case end_by exn ()
        in
        let fiber = current () in
        let rec start = function
          | [] -> ()
          | [ last ] -> run_one last ()
          | body :: others ->
              (match context.state with
              | On ->
                  let task () =
                    run_one body ();
                    end_this_task ()
                  in
                  Effect.perform (Fork (make_task context fiber.bindings task, false))
              | Cancelling _ | Finished -> ());
              start others
        in
        let interrupt_by exn () =
          note (Exn.get exn);
          stop () ()
        in
        (match context.state with Cancelling (exn, _) -> raise (Cancelled exn) | On | Finished -> ());
        let await_idle () () =
          while context.live > 0 do
            try wait_for_others context "tasks of which one is first" with exn -> in_any_case interrupt_by exn ()
          done
        in
        (try start bodies with exn (* of a signal handler *) -> in_any_case interrupt_by exn ());
        in_any_case await_idle () ());
    match !failure with None -> check () | Some failure -> Exn.raise_with_bt failure

  let keep_first first _ = first

  let any ?(combine = keep_first) bodies =
    if bodies = [] then await_cancel ()
    else
      let result = ref None in
      race bodies (fun value ->
          result := Some (match !result with None -> value | Some first -> combine first value));
      Option.get !result

  let first ?combine f g = any ?combine [ f; g ]

  let n_any bodies =
    if bodies = [] then await_cancel ()
    else
      let results = ref [] in
      race bodies (fun value -> results := value :: !results);
      List.rev !results

  let fork_seq ~sw produce =
    let request = ref None in
    let answer = ref None in
    let wake slot value =
      match !slot with
      | None -> ()
      | Some resolver ->
          slot := None;
          Promise.resolve resolver value
    in
    let started = ref false and ended = ref false in
    let body () =
      let give value =
        wake answer (Ok (Some value));
        let promise, resolver = Promise.create_with_label "the next demand" in
        request := Some resolver;
        Promise.await promise
      in
      (match produce give with
      | () ->
          ended := true;
          wake answer (Ok None)
      | exception exn ->
          ended := true;
          wake answer (Error exn);
          Switch.fail_with sw exn);
      `Stop_daemon
    in
    let rec next () =
      if !ended then Seq.Nil
      else (
        let promise, resolver = Promise.create_with_label "the next value" in
        answer := Some resolver;
        if !started then wake request ()
        else (
          started := true;
          fork_daemon ~sw body);
        match Promise.await_exn promise with None -> Seq.Nil | Some value -> Seq.Cons (value, next))
    in
    next

  (* ---- Lists, with at most so many tasks at a time ---- *)

  module List = struct
    let check_limit max_fibers = if max_fibers < 1 then invalid_arg "max_fibers must be at least 1"

    (* Calls [f] for each in tasks, in the list's order. *)
    let iter ?(max_fibers = max_int) f items =
      check_limit max_fibers;
      Switch.run ~name:"List.iter" (fun sw ->
          let running = ref 0 and room = Waiters.create () in
          let end_one () =
            decr running;
            ignore (Waiters.wake_one room ())
          in
          let rec go = function
            | [] -> ()
            | [ last ] when !running < max_fibers -> f last
            | item :: others as items ->
                if !running >= max_fibers then (
                  Waiters.wait room "room for a task";
                  go items)
                else (
                  incr running;
                  fork ~sw (fun () -> Fun.protect ~finally:end_one (fun () -> f item));
                  go others)
          in
          go items)

    let map ?max_fibers f items =
      let results = Array.make (List.length items) None in
      iter ?max_fibers (fun (i, item) -> results.(i) <- Some (f item)) (List.mapi (fun i item -> (i, item)) items);
      Array.to_list (Array.map Option.get results)

    let filter_map ?max_fibers f items = List.filter_map Fun.id (map ?max_fibers f items)

    let filter ?max_fibers f items =
      filter_map ?max_fibers (fun item -> if f item then Some item else None) items
  end

  (* ---- Values of tasks ---- *)

  type 'a key = { number : int; inject : 'a -> exn; project : exn -> 'a option }

  let keys = ref 0

  let create_key (type a) () =
    let exception Binding of a in
    incr keys;
    {
      number = !keys;
      inject = (fun value -> Binding value);
      project = (function Binding value -> Some value | _ -> None);
    }

  let get key =
    match Stdlib.List.assoc_opt key.number (current ()).bindings with
    | None -> None
    | Some value -> key.project value

  let with_bindings change body =
    let fiber = current () in
    let outer = fiber.bindings in
    fiber.bindings <- change outer;
    Fun.protect ~finally:(fun () -> fiber.bindings <- outer) body

  let with_binding key value body = with_bindings (fun outer -> (key.number, key.inject value) :: outer) body
  let without_binding key body = with_bindings (Stdlib.List.remove_assoc key.number) body
end
