(* SPDX-License-Identifier: MIT *)

(** [Unix] that suspends: a program that is linked with this package has the functions of the C library answered by
    libhaft-posix.

    In a task of {!Haft_io}, [Unix.read], [write], [connect], [accept], [select], [sleep], [getaddrinfo], [waitpid] and
    their kin, channels ([input_line], [flush]), [Mutex], [Condition] and [Thread.join], and the functions of bindings
    to C libraries suspend the task that calls them, and no other. Anywhere else they are the system's.

    This holds for calls that release OCaml's lock, as all of these do while they wait. A binding that keeps the lock
    may have addresses of OCaml's values in hand, so no other OCaml code may run: such a call blocks the thread, as it
    does without Haft.

    A task that is cancelled during such a call finds it failed, as [Unix.Unix_error (EUNKNOWNERR 125, _, _)] or
    [Sys_error], "Operation canceled"; [Unix.sleep] returns early. If that error ends the task, or the function of a
    switch or a limit of time, it counts as {!Haft_io.Cancel.Cancelled}, which the next wait of [Haft_io] raises. Calls
    on regular files, mutexes and conditions run to their end. *)

val answers : unit -> bool
(** Whether the functions of the C library are this package's. False: another library that was linked or preloaded
    before has them. *)
