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

(* True: [f x y] has returned. Signal handlers run in nothing but [f], so nothing is raised here. *)
let[@inline never] once f x y =
  match f x y with
  | () -> true
  | exception exn ->
      interrupt exn;
      false

(* OCaml 4.14 lets signal handlers run at the head of a function that ends with a call of itself, and so outside of what
   it catches: this does not end with that call. (If what is raised is [f]'s own, it has to end sometime.) *)
let rec insist tries f x y =
  if tries > 0 && not (once f x y) then (
    insist (tries - 1) f x y;
    ())

(* Calls [f x y], and again if it has not returned: what signal handlers raise meanwhile ends the run later. *)
let in_any_case f x y = insist 1000 f x y
