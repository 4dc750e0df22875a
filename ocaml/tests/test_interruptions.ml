(* Finalisers, signal handlers and the callbacks of Gc.Memprof run inside whatever code happens to run.
   Their effects are not handled by that code's handlers. *)
open Cases
open Effect
open Effect.Deep

type _ Effect.t += Ask : int t

external call : ('a -> 'b) -> 'a -> 'b = "interruptions_call"
external interruptions_begin : unit -> unit = "interruptions_begin"
external interruptions_end : unit -> int = "interruptions_end"
external call_on_fiber : (unit -> 'a) -> 'a = "interruptions_call_on_fiber"
external pause : unit -> unit = "interruptions_pause"

let leaked = ref 0

let watching f =
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask ->
              Some
                (fun (k : (a, _) continuation) ->
                  incr leaked;
                  continue k 1)
          | _ -> None);
    }

let interruptions = ref 0

(* The action of every interruption. *)
let interrupt () =
  incr interruptions;
  (match perform Ask with
  | (_ : int) -> ()
  | exception Unhandled Ask -> ());
  (match call (fun () -> perform Ask + 0) () with
  | (_ : int) -> ()
  | exception Unhandled Ask -> ());
  (* Its own handlers work. *)
  let n =
    try_with
      (fun () -> perform Ask)
      ()
      {
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Ask -> Some (fun (k : (a, _) continuation) -> continue k 5)
            | _ -> None);
      }
  in
  if n <> 5 then failwith "a handler inside an interruption"

let nothing_leaks name run =
  ( name,
    fun () ->
      leaked := 0;
      interruptions := 0;
      watching run;
      (* With exception handlers on the stack as well. *)
      watching (fun () -> try run () with Not_found -> ());
      Alcotest.(check bool) "it was interrupted" true (!interruptions > 0);
      Alcotest.(check int) "nothing leaked" 0 !leaked )

let allocate () =
  for i = 1 to 200_000 do
    ignore (Sys.opaque_identity (Array.make 3 i))
  done

let finalisers () =
  for _ = 1 to 100 do
    Gc.finalise (fun (_ : int ref) -> interrupt ()) (ref 0)
  done;
  Gc.full_major ();
  for _ = 1 to 100 do
    Gc.finalise (fun (_ : int ref) -> interrupt ()) (ref 0)
  done;
  allocate ();
  Gc.finalise_last interrupt (ref 0);
  Gc.minor ();
  allocate ()

let signals () =
  let before =
    Sys.signal Sys.sigusr1 (Sys.Signal_handle (fun (_ : int) -> interrupt ()))
  in
  for _ = 1 to 50 do
    (* In a function of C, and at the next allocation. *)
    Unix.kill (Unix.getpid ()) Sys.sigusr1;
    ignore (Sys.opaque_identity (ref 0));
    Unix.kill (Unix.getpid ()) Sys.sigusr1;
    Unix.sleepf 0.0;
    allocate ()
  done;
  Sys.set_signal Sys.sigusr1 before

let timer () =
  let before =
    Sys.signal Sys.sigalrm (Sys.Signal_handle (fun (_ : int) -> interrupt ()))
  in
  ignore
    (Unix.setitimer Unix.ITIMER_REAL { it_interval = 0.001; it_value = 0.001 });
  while !interruptions < 20 do
    watching (fun () ->
        try allocate ()
        with Not_found -> ())
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { it_interval = 0.; it_value = 0. });
  Sys.set_signal Sys.sigalrm before

(* Signals write below the stack pointer, wherever that is. *)
let signals_overwrite_nothing () =
  let kept = List.init 50 string_of_int in
  let rec deep n f = if n = 0 then f () else String.length (List.nth kept n) - 1 + deep (n - 1) f in
  let leaves f = match deep 9 f with (_ : int) -> Alcotest.fail "it returned" | exception Exit -> () in
  let raises () = raise Exit in
  let pauses () = pause (); raises () in
  let asks () = if perform Ask = 1 then raises () else 0 in
  let on_fiber f () = deep 5 (fun () -> call_on_fiber f) in
  let round () =
    interruptions_begin ();
    leaves (fun () -> watching (fun () -> watching asks));
    leaves (on_fiber raises);
    leaves (on_fiber pauses);
    leaves (on_fiber (fun () -> call pauses ()));
    leaves (on_fiber (on_fiber pauses));
    leaves (on_fiber (fun () -> leaves (on_fiber pauses); pauses ()));
    leaves (fun () -> watching (on_fiber (fun () -> watching asks)));
    leaves (fun () -> watching (on_fiber asks));
    let signals = interruptions_end () in
    Alcotest.(check (list string)) "kept" (List.init 50 string_of_int) kept;
    signals
  in
  let rec rounds n signals =
    if n < 2_000 && signals < 20_000 then rounds (n + 1) (signals + round ())
    else Alcotest.(check bool) "there were signals" true (signals > 0)
  in
  rounds 0 0

let memprof () =
  let callback _ =
    interrupt ();
    None
  in
  Gc.Memprof.start ~sampling_rate:0.001
    {
      Gc.Memprof.null_tracker with
      alloc_minor = callback;
      alloc_major = callback;
    };
  for _ = 1 to 100 do
    ignore (Sys.opaque_identity (List.init 100 string_of_int));
    ignore (Sys.opaque_identity (Array.make 1000 0))
  done;
  Gc.Memprof.stop ()

(* The handler of the interrupted code goes on as if nothing had happened. *)
let code_goes_on () =
  let kept = List.init 50 string_of_int in
  let sum = ref 0 in
  try_with
    (fun () ->
      for i = 1 to 100 do
        Gc.finalise (fun (_ : int ref) -> interrupt ()) (ref 0);
        if i mod 10 = 0 then Gc.full_major ();
        sum := !sum + perform Ask
      done)
    ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask -> Some (fun (k : (a, _) continuation) -> continue k 2)
          | _ -> None);
    };
  Alcotest.(check int) "sum" 200 !sum;
  Alcotest.(check (list string)) "kept" (List.init 50 string_of_int) kept

(* Functions of C, in functions of OCaml, in functions of C: none of them on the runtime's own account. *)
let under_c () =
  let ask n = n + perform Ask in
  let twice n = call ask (ask n) + 0 in
  let sum = ref 0 in
  watching (fun () -> sum := call (fun n -> twice (call twice n) + 0) 0);
  Alcotest.(check int) "sum" 4 !sum

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "interruptions"
    [
      ( "effects do not leak from",
        List.map case
          [
            nothing_leaks "finalisers" finalisers;
            nothing_leaks "signal handlers" signals;
            nothing_leaks "signal handlers, at any time" timer;
            nothing_leaks "callbacks of memprof" memprof;
            nothing_leaks "finalisers, in code that C has called" (fun () -> call finalisers ());
            ("finalisers among effects", code_goes_on);
            ("signals while exceptions leave computations", signals_overwrite_nothing);
            ("and are handled under functions of C", under_c);
          ] );
    ]
(* SPDX-License-Identifier: MIT *)
