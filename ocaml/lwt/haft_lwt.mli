(* SPDX-License-Identifier: MIT *)
(** Lwt and {!Haft_io} in one program, on one loop: a program that uses Lwt moves function by
    function.

    {[
      let () =
        Haft_io.run (fun () ->
            Haft_lwt.with_event_loop (fun () ->
                let reply = Haft_lwt.await (Cohttp_lwt_unix.Client.get uri) in
                ...))
    ]}

    Lwt waits by an engine that waits in Haft's loop. Its callbacks run in tasks of the run, all on
    one thread: so the code of either may touch what the other has. *)

val with_event_loop : (unit -> 'a) -> 'a
(** Calls the function, inside of which Lwt's promises go on, in whichever task. Inside of it
    [Lwt_main.run] is not called. For a task of {!Haft_io.run}; one call at a time.

    @raise Invalid_argument if there is one already. *)

val await : 'a Lwt.t -> 'a
(** Waits, as a task, for the promise, and returns its value or raises its failure. If the task is
    cancelled, so is the promise ([Lwt.cancel]). *)

val run_lwt : (unit -> 'a Lwt.t) -> 'a
(** [run_lwt f] is [await (f ())]. *)

val promise : (unit -> 'a) -> 'a Lwt.t
(** A promise of what the function returns, which runs in a task of {!with_event_loop}'s, beginning
    at once. [Lwt.cancel] of the promise cancels the task. *)
