(* SPDX-License-Identifier: MIT *)
(* Lwt's main loop is a task of the run. Its engine has a task for each descriptor and timer that is
   registered, which calls Lwt's callback when that has come; the loop itself waits until one
   has. *)
open Haft_io

(* While there is an event loop: the switch of its tasks, and how Lwt's loop is woken. *)
type loop = { switch : Switch.t; mutable is_woken : bool; changed : Condition.t }

let current : loop option ref = ref None
let the_loop () = match !current with Some loop -> loop | None -> invalid_arg "Haft_lwt: there is no event loop"

let wake loop =
  loop.is_woken <- true;
  Condition.broadcast loop.changed

(* Calls the callback each time that [wait ()] returns, until what is returned is called. *)
let repeat loop ~for_ever wait callback =
  let cancel = ref ignore in
  let stopped = ref false in
  Fiber.fork_daemon ~sw:loop.switch (fun () ->
      (try
         Cancel.sub (fun context ->
             cancel := (fun () -> Cancel.cancel context Exit);
             let rec go () =
               wait ();
               if not !stopped then (
                 callback ();
                 wake loop;
                 if for_ever then (
                   Fiber.yield ();
                   go ()))
             in
             go ())
       with Cancel.Cancelled Exit when !stopped -> ());
      `Stop_daemon);
  lazy
    (if not !stopped then (
       stopped := true;
       try !cancel () with Invalid_argument _ -> () (* it has ended *)))

class engine loop =
  object
    inherit Lwt_engine.abstract
    method private cleanup = ()

    method private register_readable descriptor callback =
      repeat loop ~for_ever:true (fun () -> await_readable descriptor) callback

    method private register_writable descriptor callback =
      repeat loop ~for_ever:true (fun () -> await_writable descriptor) callback

    method private register_timer delay repeats callback =
      repeat loop ~for_ever:repeats (fun () -> Time.sleep clock delay) callback

    method iter may_wait =
      if may_wait then
        while not loop.is_woken do
          Condition.await_no_mutex loop.changed
        done
      else Fiber.yield ();
      loop.is_woken <- false
  end

let with_event_loop body =
  if !current <> None then invalid_arg "Haft_lwt.with_event_loop: there is an event loop already";
  let before = Lwt_engine.get () in
  Switch.run ~name:"Lwt" (fun switch ->
      let loop = { switch; is_woken = false; changed = Condition.create () } in
      current := Some loop;
      Lwt_engine.set ~transfer:true ~destroy:false (new engine loop);
      let ended, end_ = Lwt.wait () in
      let main = Fiber.fork_promise ~sw:switch (fun () -> Lwt_main.run ended) in
      Fun.protect
        ~finally:(fun () ->
          Lwt.wakeup end_ ();
          wake loop;
          Cancel.protect (fun () -> ignore (Promise.await main));
          current := None;
          (* Registrations that Lwt keeps, such as its threads' notifications, move to [before]. *)
          Lwt_engine.set ~transfer:true ~destroy:false before)
        body)

let await promise =
  match Lwt.state promise with
  | Lwt.Return value -> value
  | Lwt.Fail exn -> raise exn
  | Lwt.Sleep -> (
      let loop = the_loop () in
      let ended, end_ = Promise.create ~label:"a promise of Lwt" () in
      Lwt.on_any promise
        (fun value -> ignore (Promise.try_resolve end_ (Ok value)))
        (fun exn -> ignore (Promise.try_resolve end_ (Error exn)));
      wake loop;
      match Promise.await ended with
      | Ok value -> value
      | Error exn -> raise exn
      | exception (Cancel.Cancelled _ as exn) ->
          Lwt.cancel promise;
          wake loop;
          raise exn)

let run_lwt f =
  let promise = f () in
  wake (the_loop ());
  await promise

let promise body =
  let loop = the_loop () in
  let result, resolver = Lwt.task () in
  let context = ref None in
  Lwt.on_cancel result (fun () ->
      match !context with
      | Some context -> ( try Cancel.cancel context Lwt.Canceled with Invalid_argument _ -> ())
      | None -> ());
  Fiber.fork ~sw:loop.switch (fun () ->
      let resolve =
        match
          Cancel.sub (fun inner ->
              context := Some inner;
              body ())
        with
        | value -> fun () -> Lwt.wakeup resolver value
        | exception exn -> fun () -> Lwt.wakeup_exn resolver exn
      in
      if Lwt.is_sleeping result then resolve ();
      wake loop);
  result
