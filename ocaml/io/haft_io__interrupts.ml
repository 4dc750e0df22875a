(* SPDX-License-Identifier: MIT *)
(* Exceptions of signal handlers.

   The runtime calls them where OCaml code allocates, at the heads of functions that end with a call of a function that
   the compiler does not know, or of themselves, and in loops. So what they raise may come there, and whatever is to be
   done in any case is done where none of these is, or again. *)
external wake_c : unit -> unit = "haft_ocaml_io_wake"

(* Why all tasks are to end: a signal handler has raised while the loop was between tasks, or the run was cancelled.
   Nothing is allocated where it is set, where the next signal handler could raise. *)
let interrupted = ref Exit
let is_interrupted = ref false

(* Whether the loop sleeps, or is about to. *)
let sleeps = ref false

let interrupt exn =
  if not !is_interrupted then interrupted := exn;
  is_interrupted := true;
  if !sleeps then wake_c ()

(* Calls [f x y], and again if it has not returned: what signal handlers raise meanwhile ends the run later. (OCaml 4.14
   may let them run at the head of a recursive function, and so outside of what that catches. If what is raised is the
   function's own, that has to end sometime.) *)
let rec insist tries f x y =
  try f x y
  with exn ->
    interrupt exn;
    if tries > 0 then insist (tries - 1) f x y

let in_any_case f x y =
  try f x y
  with exn -> (
    interrupt exn;
    try insist 1000 f x y with exn -> interrupt exn)
