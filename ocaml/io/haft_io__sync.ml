(* SPDX-License-Identifier: MIT *)
(* Synchronisation of tasks: semaphores, mutexes, conditions, streams, values that are computed once, pools. Waiters are
   served in the order in which they came. *)
open Haft_io__loop
open Haft_io__fibers

(* Lets the loop do it if the caller is another thread. *)
let in_loop f = if runs_here () then f () else call_in_loop f

module Semaphore = struct
  (* The list is closed while [count] is above 0, and open otherwise: so a release in a signal handler, while a task is
     on its way to the list, keeps it from there. A wait returns whether it was ended by a release. *)
  type t = { mutable count : int; waiters : bool waiters }

  let set semaphore count =
    semaphore.count <- count;
    let door = if count > 0 then Closed else Open in
    if semaphore.waiters.door != door then semaphore.waiters.door <- door

  let make count =
    if count < 0 then raise (Invalid_argument "n < 0");
    let semaphore = { count; waiters = Waiters.create () } in
    set semaphore count;
    semaphore

  (* The one that is released goes to the first waiter. *)
  let release semaphore =
    in_loop (fun () ->
        if not (Waiters.wake_one semaphore.waiters true) then set semaphore (semaphore.count + 1))

  let rec acquire semaphore =
    if semaphore.count > 0 then set semaphore (semaphore.count - 1)
    else if not (Waiters.wait semaphore.waiters "a semaphore") then acquire semaphore

  let get_value semaphore = semaphore.count
end

module Mutex = struct
  type state = Unlocked | Locked | Failed of exn
  type t = { mutable state : state; waiters : unit waiters }

  exception Poisoned of exn

  let create () = { state = Unlocked; waiters = Waiters.create () }

  let rec lock mutex =
    match mutex.state with
    | Unlocked -> mutex.state <- Locked
    | Failed exn -> raise (Poisoned exn)
    | Locked -> (
        (* It is handed over locked, or has failed. *)
        Waiters.wait mutex.waiters "a mutex";
        match mutex.state with Locked -> () | Unlocked -> lock mutex | Failed exn -> raise (Poisoned exn))

  let try_lock mutex =
    match mutex.state with
    | Unlocked ->
        mutex.state <- Locked;
        true
    | Locked -> false
    | Failed exn -> raise (Poisoned exn)

  let unlock mutex =
    match mutex.state with
    | Unlocked -> raise (Sys_error "Eio.Mutex.unlock: already unlocked!")
    | Failed exn -> raise (Poisoned exn)
    | Locked -> if not (Waiters.wake_one mutex.waiters ()) then mutex.state <- Unlocked

  let poison mutex exn =
    mutex.state <- Failed exn;
    Waiters.wake_all mutex.waiters ()

  let use_ro mutex body =
    lock mutex;
    match body () with
    | value ->
        unlock mutex;
        value
    | exception exn ->
        unlock mutex;
        raise exn

  let use_rw ~protect mutex body =
    lock mutex;
    match if protect then Cancel.protect body else body () with
    | value ->
        unlock mutex;
        value
    | exception exn ->
        in_any_case poison mutex exn (* Nothing is allocated between the trap and this. *);
        raise exn
end

module Condition = struct
  type t = { waiters : unit waiters }

  let create () = { waiters = Waiters.create () }

  (* In a signal handler, which may have interrupted a change of the lists, only the loop may touch them. *)
  let broadcast condition = call_in_loop (fun () -> Waiters.wake_all condition.waiters ())
  let await_no_mutex condition = Waiters.wait condition.waiters "a condition"

  (* Whatever cancels come, and whatever signal handlers raise: what raises has not locked it. [failure]: it is
     poisoned. *)
  let lock_again mutex failure =
    try if not (Mutex.try_lock mutex) then Cancel.protect (fun () -> Mutex.lock mutex)
    with Mutex.Poisoned _ as exn -> failure := Some exn

  let lock_in_any_case mutex failure =
    in_any_case lock_again mutex failure;
    match !failure with None -> () | Some exn -> raise exn

  (* No other task runs between the two, and a broadcast of another thread is done by the loop. *)
  let await condition mutex =
    let failure = ref None in
    Mutex.unlock mutex;
    match await_no_mutex condition with
    | () -> lock_in_any_case mutex failure
    | exception exn ->
        let backtrace = Printexc.get_raw_backtrace () in
        lock_in_any_case mutex failure;
        Printexc.raise_with_backtrace exn backtrace

  let rec loop_no_mutex condition update =
    match update () with
    | Some value -> value
    | None ->
        await_no_mutex condition;
        loop_no_mutex condition update
end

module Stream = struct
  (* A writer that waits, with what it brings, until it has been taken or the writer has been cancelled. *)
  type 'a offer = { item : 'a; mutable stands : bool; taken : unit -> unit }

  type 'a t = {
    capacity : int;
    items : 'a Queue.t;
    readers : 'a waiters;  (* none while there are items or offers *)
    mutable offers : 'a offer Queue.t;  (* none that stand while there is room *)
    mutable withdrawn : int;  (* of these; at most as many as stand, and some *)
  }

  let create capacity =
    if capacity < 0 then raise (Invalid_argument "Stream capacity must not be negative");
    { capacity; items = Queue.create (); readers = Waiters.create (); offers = Queue.create (); withdrawn = 0 }

  let forget_withdrawn stream =
    stream.offers <- Queue.of_seq (Seq.filter (fun offer -> offer.stands) (Queue.to_seq stream.offers));
    stream.withdrawn <- 0

  let withdraw stream offer =
    if offer.stands then (
      offer.stands <- false;
      stream.withdrawn <- stream.withdrawn + 1);
    if stream.withdrawn > 16 && 2 * stream.withdrawn > Queue.length stream.offers then forget_withdrawn stream

  let rec drop_withdrawn stream =
    if (not (Queue.is_empty stream.offers)) && not (Queue.peek stream.offers).stands then (
      ignore (Queue.take stream.offers);
      stream.withdrawn <- stream.withdrawn - 1;
      drop_withdrawn stream)

  let wait_to_offer stream item =
    suspend "room in a stream" (fun fiber resume ->
        let ended = Ok () in
        let taken () =
          resume ended;
          () (* not in tail position, for which the compiler would let signals be handled at the head *)
        in
        let offer = { item; stands = true; taken } in
        fiber.withdraw <-
          (fun exn ->
            withdraw stream offer;
            resume (Error exn));
        Queue.push offer stream.offers)

  let add stream item =
    if not (Waiters.wake_one stream.readers item) then
      if Queue.length stream.items < stream.capacity then Queue.push item stream.items
      else wait_to_offer stream item

  (* Nothing is allocated once anything has been taken, so a signal handler that raises leaves it all in the stream. *)
  let take_nonblocking stream =
    drop_withdrawn stream;
    let has_offer = not (Queue.is_empty stream.offers) in
    if not (Queue.is_empty stream.items) then (
      let taken = Some (Queue.peek stream.items) in
      if has_offer then (
        Queue.push (Queue.peek stream.offers).item stream.items;
        ignore (Queue.take stream.items);
        (Queue.take stream.offers).taken ())
      else ignore (Queue.take stream.items);
      taken)
    else if has_offer then (
      let taken = Some (Queue.peek stream.offers).item in
      (Queue.take stream.offers).taken ();
      taken)
    else None

  let take stream =
    match take_nonblocking stream with
    | Some item -> item
    | None -> Waiters.wait stream.readers "an item of a stream"

  let length stream = Queue.length stream.items
  let is_empty stream = length stream = 0

  let dump formatter stream =
    Format.fprintf formatter "<stream of %d of %d items>" (length stream) stream.capacity
end

module Lazy = struct
  type 'a state =
    | Value of 'a
    | Failed of exn
    | Waiting of (unit -> 'a)
    | Running of (unit, exn) result Promise.t
  type 'a t = { mutable state : 'a state; cancel : [ `Protect | `Restart | `Record ] }

  let from_val value = { state = Value value; cancel = `Record }
  let from_fun ~cancel compute = { state = Waiting compute; cancel }

  let rec force this =
    match this.state with
    | Value value -> value
    | Failed exn -> raise exn
    | Running ended ->
        ignore (Promise.await ended);
        force this
    | Waiting compute -> (
        let ended, end_ = Promise.create_with_label "a lazy value" in
        let running = Running ended in
        let end_in state =
          this.state <- state;
          ignore (Promise.try_resolve end_ (Ok ()))
        in
        let end_by_value value () = end_in (Value value) and end_by_failure exn () = end_in (Failed exn) in
        let waiting = this.state in
        let begin_again () () = end_in waiting in
        this.state <- running (* Nothing is allocated between this and the trap. *);
        match if this.cancel = `Protect then Cancel.protect compute else compute () with
        | value ->
            in_any_case end_by_value value ();
            value
        | exception (Cancelled _ as exn) when this.cancel = `Restart ->
            let backtrace = Printexc.get_raw_backtrace () in
            in_any_case begin_again () ();
            Printexc.raise_with_backtrace exn backtrace
        | exception exn ->
            let backtrace = Printexc.get_raw_backtrace () in
            in_any_case end_by_failure exn ();
            Printexc.raise_with_backtrace exn backtrace)
end

module Pool = struct
  type 'a t = {
    mutable made : int;
    size : int;
    idle : 'a Stack.t;
    waiters : 'a option waiters;  (* each gets one; or, if None, the place of one, to make it *)
    make : unit -> 'a;
    validate : 'a -> bool;
    dispose : 'a -> unit;
  }

  let create ?(validate = fun _ -> true) ?(dispose = ignore) size make =
    if size < 1 then invalid_arg "Pool.create: size must be at least 1";
    { made = 0; size; idle = Stack.create (); waiters = Waiters.create (); make; validate; dispose }

  (* One has gone: its place is the first waiter's, if there is one. *)
  let forget pool = if not (Waiters.wake_one pool.waiters None) then pool.made <- pool.made - 1

  (* Each of the two allocates before it changes anything. *)
  let put pool item =
    let given = Some item in
    if not (Waiters.wake_one pool.waiters given) then Stack.push item pool.idle

  let give_back pool item = in_any_case put pool item

  let make pool =
    try pool.make ()
    with exn ->
      forget pool;
      raise exn

  let discard pool item =
    try pool.dispose item
    with exn ->
      forget pool;
      raise exn

  let check pool item =
    match pool.validate item with
    | true -> item
    | false ->
        discard pool item;
        make pool
    | exception exn ->
        discard pool item;
        forget pool;
        raise exn

  (* (Stack.pop_opt allocates when it has popped.) *)
  let acquire pool =
    if not (Stack.is_empty pool.idle) then check pool (Stack.pop pool.idle)
    else if pool.made < pool.size then (
      pool.made <- pool.made + 1;
      make pool)
    else
      match Waiters.wait pool.waiters "an item of a pool" with
      | Some item -> check pool item
      | None -> make pool

  let use ?(never_block = false) pool body =
    if never_block && Stack.is_empty pool.idle && pool.made >= pool.size then (
      let item = pool.make () in
      match body item with
      | value ->
          pool.dispose item;
          value
      | exception exn ->
          pool.dispose item;
          raise exn)
    else
      let item = acquire pool in
      match body item with
      | value ->
          give_back pool item;
          value
      | exception exn ->
          give_back pool item;
          raise exn
end
