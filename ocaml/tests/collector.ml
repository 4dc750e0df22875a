(* The garbage collector's test: computations with values of all kinds on their stacks, captured, kept,
   resumed, discontinued and dropped at random, among collections. Every value is checked whenever it is
   seen again, and at the end everything that was dropped has to be gone.
   Its arguments are how many computations to start and, if one likes, where the chance begins. *)
open Cases
open Effect
open Effect.Deep

type _ Effect.t += Swap : string -> string t | Depth : int t | Drop : unit t | None_handles : int t

(* Texts that tell their own contents. *)
let text n = String.init n (fun i -> Char.chr (97 + ((n + i) mod 26)))

let check s =
  if s <> text (String.length s) then (
    print_endline "a value is corrupt";
    exit 1)

let () =
  Random.init
    (if Array.length Sys.argv > 2 then int_of_string Sys.argv.(2) else 20261122)

let random = Random.int
let alive = ref 0

(* A block whose end is counted. *)
let counted () =
  let block = ref (text 4) in
  incr alive;
  Gc.finalise_last (fun () -> decr alive) block;
  block

external call : ('a -> 'b) -> 'a -> 'b = "collector_call"
external call_on_fiber : ('a -> 'b) -> 'a -> 'b = "collector_call_on_fiber"
external pause : unit -> unit = "collector_pause"
external stacks : unit -> int = "collector_stacks"
external hold : 'a -> unit = "collector_hold"

(* Mutable: what is computed from it is computed at once, and kept. *)
let offset = [| -0.5 |]

let rec body depth =
  let a = text (random 20)
  and b = [ text (random 30); text 3 ]
  and c = Array.init (random 5) text
  and d = counted ()
  and x = offset.(0) -. float depth in
  let below =
    if depth = 0 then String.length (perform (Swap (text 5)))
    else
      match random 8 with
      | 0 | 1 ->
          match_with body (depth - 1)
            {
              retc = (fun n -> check a; n);
              exnc = (fun e -> check a; raise e);
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Depth ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          check (text 4);
                          continue k (depth + 1))
                  | _ ->
                      if random 20 = 0 then Gc.minor ();
                      None);
            }
      | 2 -> call body (depth - 1)
      | 3 -> call_on_fiber body (depth - 1)
      | _ -> body (depth - 1)
  in
  if random 4 = 0 then pause ();
  let s = perform (Swap a) in
  check s;
  check a;
  List.iter check b;
  Array.iter check c;
  check !d;
  let n = try perform Depth with Unhandled Depth -> 0 in
  (match perform None_handles with
  | (_ : int) -> exit 2
  | exception Unhandled None_handles -> ());
  if x <> -0.5 -. float depth then exit 3;
  if random 50 = 0 then (try raise_notrace Exit with Exit -> check a);
  if random 300 = 0 then failwith a;
  if random 300 = 0 then perform Drop;
  below + String.length s + (0 * n)

(* A copy, or what was copied; the other one is dropped. *)
let copied k =
  match Haft.unsafe_clone k with
  | copy -> if Random.bool () then copy else k
  | exception Invalid_argument _ -> k (* functions of C *)

let nothing () = ()
let kept = Array.make 500 nothing

(* So many that stacks have to be put elsewhere. *)
let crowd = Array.make 2500 nothing
let finished = ref 0
let failed = ref 0
let discontinued = ref 0
let dropped = ref 0

type _ Effect.t += Hold : unit t

(* The same, by a computation that waits meanwhile: only its stack leads to the function. *)
let within resume =
  let held = ref nothing in
  match_with
    (fun () -> perform Hold; resume ())
    ()
    {
      retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Hold -> Some (fun (k : (a, _) continuation) -> held := fun () -> continue k ())
          | _ -> None);
    };
  !held

let start ?(kept = kept) ?(depth = 12) i =
  let tag = text (1 + (i mod 7)) in
  match_with body (random depth)
    {
      retc = (fun (_ : int) -> check tag; incr finished);
      exnc =
        (function
        | Failure a -> check tag; check a; incr failed
        | Exit -> check tag; incr discontinued
        | e -> raise e);
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Swap s ->
              Some
                (fun (k : (a, _) continuation) ->
                  check s;
                  let reply = text (random 10) in
                  let k = if random 4 = 0 then copied k else k in
                  if random 40 = 0 then discontinue k Exit
                  else if random 3 = 0 then continue k reply
                  else
                    let place = random (Array.length kept) in
                    let before = kept.(place) in
                    let resume () = check reply; continue k reply in
                    kept.(place) <- (if random 10 = 0 then within (within resume) else resume);
                    if random 30 = 0 then incr dropped else before ())
          | Drop -> Some (fun (_ : (a, _) continuation) -> incr dropped)
          | _ -> None);
    }

let () =
  (* With a hook of the program's own a minor collection scans all stacks at once. *)
  if Sys.getenv_opt "HAFT_TEST_HOOK" <> None then hold (ref 0);
  let count = int_of_string Sys.argv.(1) in
  for i = 1 to count do
    start i;
    if i mod 1000 = 0 then
      for j = 1 to 1000 do
        start ~kept:crowd ~depth:2 j;
        if j mod 300 = 0 then Gc.minor ()
      done;
    if i mod 101 = 0 then Gc.minor ();
    if i mod 997 = 0 then Gc.full_major ();
    if i mod 3001 = 0 then Gc.compact ()
  done;
  let finish kept =
    for _ = 1 to 50 do
      Array.iteri (fun i resume -> kept.(i) <- nothing; resume ()) kept
    done;
    Array.fill kept 0 (Array.length kept) nothing
  in
  finish kept;
  finish crowd;
  Gc.compact ();
  Gc.compact ();
  Printf.printf "%d finished, %d failed, %d discontinued, at least %d dropped; %d values are still alive\n"
    !finished !failed !discontinued !dropped !alive;
  if !finished = 0 || !failed = 0 || !discontinued = 0 || !dropped = 0 then exit 4;
  if !alive > 0 then exit 5;
  if stacks () > 0 then (
    Printf.printf "%d stacks are still in use\n" (stacks ());
    exit 7)
(* SPDX-License-Identifier: MIT *)
