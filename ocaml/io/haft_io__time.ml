(* SPDX-License-Identifier: MIT *)
(* Clocks, limits of time, and work on threads. *)
open Haft_io__loop
open Haft_io__fibers
open Haft_io__resource

module Mtime = struct
  type t = int64

  module Span = struct
    type t = int64

    let of_uint64_ns span = span
    let to_uint64_ns span = span
    let of_float_ns span = if span >= 0. then Some (Int64.of_float span) else None
    let to_float_ns = Int64.to_float
    let ns = 1L
    let us = 1_000L
    let ms = 1_000_000L
    let s = 1_000_000_000L
    let zero = 0L
    let ( * ) count span = Int64.mul (Int64.of_int count) span
    let add = Int64.add
    let compare = Int64.compare
  end

  let of_uint64_ns time = time
  let to_uint64_ns time = time
  let span first second = Int64.abs (Int64.sub first second)
  let add_span time span = Some (Int64.add time span)
  let compare = Int64.compare
end

module Time = struct
  (* Times are those of [now] here, in nanoseconds, for both kinds of clock. *)
  type clock = {
    read_wall : unit -> float;
    read : unit -> int;
    sleep_until : int -> unit;
    add_timer : int -> (unit -> unit) -> unit -> unit;  (* returns what removes it *)
    clock_mock : kind;  (* Plain: it is none *)
  }

  type kind += Clock of clock

  exception Timeout

  let clock_of object_ = match object_.kind with Clock clock -> clock | _ -> invalid_arg "this object is no clock"
  let nanoseconds seconds =
    let all = seconds *. 1e9 in
    if all >= 4e18 then max_int / 2 else if all <= 0. then 0 else int_of_float (Float.ceil all)

  let now clock = (clock_of clock).read_wall ()

  let sleep clock seconds =
    let clock = clock_of clock in
    if seconds <= 0. then Fiber.yield () else clock.sleep_until (clock.read () + nanoseconds seconds)

  let sleep_until clock time = sleep clock (time -. now clock)

  (* Calls [body] in a context that is cancelled at the time. *)
  let run_until clock time body =
    let exception Late in
    let late = ref false in
    let fiber = current () in
    let run context =
      let remove =
        clock.add_timer time (fun () ->
            match context.state with
            | On ->
                late := true;
                cancel_context context Late Exn.empty_backtrace
            | Cancelling _ | Finished -> ())
      in
      Fun.protect ~finally:remove body
    in
    match Cancel.sub_in fiber run with
    | value -> Ok value
    | exception Cancelled Late when !late ->
        check_context fiber.context;
        Error ()

  let run_for clock span body = run_until clock (clock.read () + span) body

  let with_timeout clock seconds body =
    match run_for (clock_of clock) (nanoseconds seconds) body with Ok result -> result | Error () -> Error `Timeout

  let with_timeout_exn clock seconds body =
    match run_for (clock_of clock) (nanoseconds seconds) body with Ok value -> value | Error () -> raise Timeout

  module Mono = struct
    let now clock = Int64.of_int ((clock_of clock).read ())
    let sleep = sleep

    let sleep_until clock time =
      let clock = clock_of clock in
      let time = Int64.to_int time in
      if time <= clock.read () then Fiber.yield () else clock.sleep_until time

    let sleep_span clock span = sleep clock (Int64.to_float span /. 1e9)
  end

  module Timeout = struct
    type t = Unlimited | After of clock * int

    let none = Unlimited
    let v clock span = After (clock_of clock, Int64.to_int span)
    let seconds clock seconds = After (clock_of clock, nanoseconds seconds)
    let run_limited timeout body =
      match timeout with
      | Unlimited -> Ok (body ())
      | After (clock, span) -> run_for clock span body

    let run timeout body = match run_limited timeout body with Ok result -> result | Error () -> Error `Timeout
    let run_exn timeout body = match run_limited timeout body with Ok value -> value | Error () -> raise Timeout

    let sleep = function
      | Unlimited -> Fiber.await_cancel ()
      | After (clock, span) -> clock.sleep_until (clock.read () + span)

    let pp formatter = function
      | Unlimited -> Format.pp_print_string formatter "(no timeout)"
      | After (_, span) -> Format.fprintf formatter "%gs" (float span /. 1e9)
  end

  let system_clock =
    {
      (* A simulation's clock is virtual. *)
      read_wall = (fun () -> if seed () <> 0 then float (Haft_io__loop.now ()) /. 1e9 else Unix.gettimeofday ());
      read = Haft_io__loop.now;
      sleep_until = Haft_io__loop.sleep_until;
      add_timer =
        (fun time fire ->
          let timer = Haft_io__loop.add_timer time fire in
          fun () -> remove_timer timer);
      clock_mock = Plain;
    }

  let system = { plain with kind = Clock system_clock }
end

(* ---- Work on threads ---- *)

module Systhreads = struct
  (* Threads of the system that have nothing to do wait for work. They hold OCaml's lock while they run OCaml code. An
     exception of a signal handler on the way to a job ends the run. *)
  let lock = Mutex.create ()
  let has_work = Condition.create ()
  let work : (unit -> unit) Queue.t = Queue.create ()
  let threads = ref 0
  let idle = ref 0

  let with_lock f =
    in_any_case (fun () () -> Mutex.lock lock) () ();
    match f () with
    | value ->
        Mutex.unlock lock;
        value
    | exception exn ->
        Mutex.unlock lock;
        raise exn

  let take_job () =
    incr idle;
    match
      while Queue.is_empty work do
        Condition.wait has_work lock
      done
    with
    | () ->
        decr idle;
        Queue.pop work
    | exception exn ->
        decr idle;
        raise exn

  let do_jobs () () =
    while true do
      try (with_lock take_job) () with exn -> interrupt exn
    done

  (* A signal handler that raises at the head of a loop must not end the thread, which is counted. (Each of the two
     gives up after a thousand exceptions.) *)
  let do_all_jobs () () =
    while true do
      in_any_case do_jobs () ()
    done

  (* (Not recursive: the compiler would let signals be handled at its head.) *)
  let serve () = in_any_case do_all_jobs () ()

  let take_back job () =
    let others = Queue.create () in
    Queue.iter (fun other -> if other != job then Queue.push other others) work;
    Queue.clear work;
    Queue.transfer others work

  let is_refusal = function
    | Sys_error text -> String.length text > 14 && String.sub text 0 14 = "Thread.create:"
    | Out_of_memory -> true
    | _ -> false

  (* Where the system gives no thread, those that there are do the job later. (Other exceptions are a signal
     handler's.) *)
  let thread_was_refused job why =
    if not (is_refusal why) then interrupt why;
    let forget () =
      decr threads;
      if !threads = 0 then in_any_case take_back job ();
      !threads = 0
    in
    if with_lock forget then raise why

  let begin_job job =
    let push () =
      Queue.push job work;
      let needs_thread = Queue.length work > !idle in
      if needs_thread then incr threads;
      Condition.signal has_work;
      needs_thread
    in
    if with_lock push then
      match Thread.create serve () with _ -> () | exception why -> thread_was_refused job why

  (* A number for work by a thread: when the thread has ended that, or itself, the function of the slot is called. *)
  external work_for : int -> int = "haft_ocaml_io_thread_work"
  external forget_work : int -> unit = "haft_ocaml_io_thread_forget" [@@noalloc]
  external begin_work_of_thread : int -> unit = "haft_ocaml_io_thread_begins" [@@noalloc]
  external end_work_of_thread : int -> unit = "haft_ocaml_io_thread_ends" [@@noalloc]

  let exited =
    Error (Failure "run_in_systhread: the function has ended its thread (Thread.exit): return or raise instead")

  (* The result of [f ()], which runs on such a thread. No cancel ends the wait. *)
  let run ?(label = "a thread") f =
    check_context (current ()).context;
    Effect.perform
      (Suspend
         (fun fiber resume ->
           fiber.waits_for <- label;
           let result = ref exited in
           let end_ _ =
             if !result == exited then decr threads;
             resume !result
           in
           let slot = new_slot end_ in
           let work = work_for slot in
           let fail exn () = result := Error exn in
           let job () =
             begin_work_of_thread work;
             (try result := result_of f () with exn (* of a signal handler *) -> in_any_case fail exn ());
             end_work_of_thread work
           in
           try begin_job job
           with exn ->
             forget_work work;
             free_slot slot;
             resume (Error exn)))
end
