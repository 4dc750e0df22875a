(* SPDX-License-Identifier: MIT *)
(* Threads, what each has of its own, and domains. A domain is a thread of the system, so one domain
   at a time runs OCaml code. Modules of OCaml's libraries of threads are included and not named:
   the compiler does not find what an alias names where it is not told that library's folder, as
   under dune's (implicit_transitive_deps false). *)

open! Haft_ocaml5__shared

open struct
  module Threads = struct
    exception Exit

    (* State of each thread. It is forgotten when the thread ends. *)
    type own = { domain : int; local : (int, Obj.t) Hashtbl.t }

    let main = { domain = 0; local = Hashtbl.create 8 }
    let main_thread = Thread.id (Thread.self ())
    let owns : (int, own) Hashtbl.t = Hashtbl.create 8
    let lock = Mutex.create ()

    let locked f =
      Mutex.lock lock;
      Fun.protect f ~finally:(fun () -> Mutex.unlock lock)

    let own () =
      let thread = Thread.id (Thread.self ()) in
      if thread = main_thread then main
      else
        locked @@ fun () ->
        match Hashtbl.find_opt owns thread with
        | Some own -> own
        | None ->
            let own = { domain = 0; local = Hashtbl.create 8 } in
            Hashtbl.add owns thread own;
            own

    let report_uncaught what exn backtrace =
      Printf.eprintf "Thread %d %s %s\n" (Thread.id (Thread.self ())) what (Printexc.to_string exn);
      Printexc.print_raw_backtrace stderr backtrace;
      flush stderr

    let default_uncaught_exception_handler exn =
      report_uncaught "killed on uncaught exception" exn (Printexc.get_raw_backtrace ())

    let uncaught_exception_handler = ref default_uncaught_exception_handler
    let set_uncaught_exception_handler handler = uncaught_exception_handler := handler

    let handle_uncaught exn =
      let backtrace = Printexc.get_raw_backtrace () in
      flush stdout;
      flush stderr;
      try !uncaught_exception_handler exn with
      | Exit -> ()
      | failure ->
          let failure_backtrace = Printexc.get_raw_backtrace () in
          report_uncaught "killed on uncaught exception" exn backtrace;
          report_uncaught "uncaught exception handler raised" failure failure_backtrace

    let create_with own f x =
      Polling.let_others_run := Thread.yield;
      Polling.others_run := true;
      let body () =
        let thread = Thread.id (Thread.self ()) in
        locked (fun () -> Hashtbl.replace owns thread own);
        Fun.protect
          (fun () -> try ignore (f x) with Exit -> () | exn -> handle_uncaught exn)
          ~finally:(fun () -> locked (fun () -> Hashtbl.remove owns thread))
      in
      Thread.create body ()
  end
end

module Thread = struct
  include Thread

  exception Exit = Threads.Exit

  let default_uncaught_exception_handler = Threads.default_uncaught_exception_handler
  let set_uncaught_exception_handler = Threads.set_uncaught_exception_handler
  let create f x = Threads.create_with { domain = (Threads.own ()).domain; local = Hashtbl.create 8 } f x
  let exit () : unit = raise Exit
end

(* [attempt object_], which gets it without a wait, or not. *)
let[@inline] counted attempt object_ =
  Polling.note_question object_;
  attempt object_
  || begin
       Polling.note_refusal object_;
       false
     end

module Mutex = struct
  include Mutex

  let lock mutex =
    Polling.note_question mutex;
    lock mutex

  let try_lock mutex = counted try_lock mutex

  let protect mutex f =
    lock mutex;
    match f () with
    | result ->
        unlock mutex;
        result
    | exception exn ->
        let backtrace = Printexc.get_raw_backtrace () in
        unlock mutex;
        Printexc.raise_with_backtrace exn backtrace
end

module Condition = struct
  include Condition
end

module Semaphore = struct
  module Counting = struct
    include Semaphore.Counting

    let try_acquire semaphore = counted try_acquire semaphore
  end

  module Binary = struct
    include Semaphore.Binary

    let try_acquire semaphore = counted try_acquire semaphore
  end
end

module Domain : sig
  type !'a t
  type id = private int

  val spawn : (unit -> 'a) -> 'a t
  val join : 'a t -> 'a
  val get_id : 'a t -> id
  val self : unit -> id
  val self_index : unit -> int
  val is_main_domain : unit -> bool
  val cpu_relax : unit -> unit
  val recommended_domain_count : unit -> int
  val before_first_spawn : (unit -> unit) -> unit
  val at_exit : (unit -> unit) -> unit

  module DLS : sig
    type 'a key

    val new_key : ?split_from_parent:('a -> 'a) -> (unit -> 'a) -> 'a key
    val get : 'a key -> 'a
    val set : 'a key -> 'a -> unit
  end
end = struct
  type id = int

  module DLS = struct
    type 'a key = { index : int; initial : unit -> 'a }

    let count = Atomic.make 0

    (* For each key that is inherited: what a child gets of the parent's values. *)
    let inherited : (Threads.own -> Threads.own -> unit) list ref = ref []

    let get_in (own : Threads.own) key =
      match Hashtbl.find_opt own.local key.index with
      | Some value -> Obj.obj value
      | None ->
          let value = key.initial () in
          Hashtbl.replace own.local key.index (Obj.repr value);
          value

    let set_in (own : Threads.own) key value = Hashtbl.replace own.local key.index (Obj.repr value)
    let get key = get_in (Threads.own ()) key
    let set key value = set_in (Threads.own ()) key value

    let new_key ?split_from_parent initial =
      let key = { index = Atomic.fetch_and_add count 1; initial } in
      Option.iter
        (fun split ->
          inherited := (fun parent child -> set_in child key (split (get_in parent key))) :: !inherited)
        split_from_parent;
      key
  end

  type 'a t = {
    id : id;
    thread : Thread.t;
    result : ('a, exn * Printexc.raw_backtrace) result option ref;
  }

  let last_id = Atomic.make 0
  let recommended_domain_count () = 1
  let cpu_relax () = Thread.yield ()
  let self () = (Threads.own ()).domain
  let self_index = self
  let is_main_domain () = self () = 0
  let get_id domain = domain.id
  let spawned = ref false
  let first = ref []

  let before_first_spawn f =
    if !spawned then invalid_arg "Domain.before_first_spawn: a domain has been spawned";
    first := f :: !first

  let exits : (unit -> unit) list ref DLS.key = DLS.new_key (fun () -> ref [])

  let at_exit f =
    if is_main_domain () then Stdlib.at_exit f
    else
      let exits = DLS.get exits in
      exits := f :: !exits

  let rec run_exits () =
    let exits = DLS.get exits in
    match !exits with
    | [] -> ()
    | f :: rest ->
        exits := rest;
        f ();
        run_exits ()

  let spawn f =
    if not !spawned then begin
      spawned := true;
      List.iter (fun f -> f ()) (List.rev !first)
    end;
    let id = 1 + Atomic.fetch_and_add last_id 1 in
    let own = { Threads.domain = id; local = Hashtbl.create 8 } in
    let parent = Threads.own () in
    List.iter (fun inherit_ -> inherit_ parent own) !DLS.inherited;
    let result = ref None in
    let body () =
      let outcome f = match f () with value -> Ok value | exception exn -> Error (exn, Printexc.get_raw_backtrace ()) in
      let ended = outcome f in
      let left = outcome run_exits in
      result := Some (match (ended, left) with Ok _, Error failure -> Error failure | _ -> ended)
    in
    { id; thread = Threads.create_with own body (); result }

  let join domain =
    Thread.join domain.thread;
    match !(domain.result) with
    | Some (Ok value) -> value
    | Some (Error (exn, backtrace)) -> Printexc.raise_with_backtrace exn backtrace
    | None -> failwith "Domain.join: the domain's thread has ended without a result"
end
