(* Run with little room for addresses (test_drop.sh): stacks of computations that were dropped make
   room for others before that is Out_of_memory, whichever operation needs one. *)
open Effect

type _ Effect.t += Pause : unit Effect.t | Other : unit Effect.t

exception Stop

let keeping = ref true
let kept : (unit, unit) Deep.continuation list ref = ref []
let dropped = ref 0

(* [f ()]; where it pauses is kept or dropped. *)
let pausing f =
  Deep.try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Pause ->
              Some
                (fun (k : (a, _) Deep.continuation) ->
                  if !keeping then kept := k :: !kept else incr dropped)
          | _ -> None);
    }

let shallow_pausing f =
  Shallow.continue_with (Shallow.fiber f) ()
    {
      retc = ignore;
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Pause ->
              Some (fun (_ : (a, _) Shallow.continuation) -> incr dropped)
          | _ -> None);
    }

let others f =
  Deep.try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Other ->
              Some (fun (k : (a, unit) Deep.continuation) -> Deep.continue k ())
          | _ -> None);
    }

let pause_twice () =
  (try perform Pause with Stop -> ());
  perform Pause

let take () =
  let k = List.hd !kept in
  kept := List.tl !kept;
  k

let () =
  let count = int_of_string Sys.argv.(1) in
  let often f =
    for _ = 1 to count do
      f ()
    done
  in
  for i = 1 to 2 * count do
    pausing pause_twice;
    if i mod 16 = 0 then Gc.full_major ()
  done;
  Gc.full_major ();
  (* They are images now: each takes a stack again when it goes on. *)
  keeping := false;
  often (fun () -> Deep.continue (take ()) ());
  often (fun () -> Deep.discontinue (take ()) Stop);
  often (fun () -> pausing (fun () -> perform Pause));
  often (fun () -> shallow_pausing (fun () -> perform Pause));
  often (fun () ->
      others (fun () ->
          pausing (fun () ->
              perform Other;
              perform Pause)));
  Printf.printf "%d dropped\n" !dropped;
  assert (!dropped = 5 * count)
(* SPDX-License-Identifier: MIT *)
