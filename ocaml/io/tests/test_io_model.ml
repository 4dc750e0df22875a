(* SPDX-License-Identifier: MIT *)
(* Random programs of tasks, switches, cancels and limits of time, in simulations, against a model made from Eio's
   documentation. The model knows no tasks: it computes when each part of a program ends, and how, from the time at
   which its context is cancelled.

   Each branch begins with a sleep, and no two sleeps are the same, so no two things that matter happen at one time; in
   which order the others happen, the simulation's seed decides. *)
open Haft_io

type program =
  | Note of int
  | Sleep of int  (* seconds *)
  | Fail of int
  | Seq of program * program
  | Catch of program  (* all but Cancelled *)
  | Finally of program * program
  | Protect of program
  | Both of program * program
  | First of program * program
  | Within of int * program
  | Switch of program list * program  (* tasks that are forked, and the body *)
  | Daemon of program * program

let rec show = function
  | Note n -> Printf.sprintf "note %d" n
  | Sleep d -> Printf.sprintf "sleep %d" d
  | Fail n -> Printf.sprintf "fail %d" n
  | Seq (p, q) -> Printf.sprintf "(%s; %s)" (show p) (show q)
  | Catch p -> Printf.sprintf "catch (%s)" (show p)
  | Finally (p, q) -> Printf.sprintf "finally (%s) (%s)" (show p) (show q)
  | Protect p -> Printf.sprintf "protect (%s)" (show p)
  | Both (p, q) -> Printf.sprintf "both (%s) (%s)" (show p) (show q)
  | First (p, q) -> Printf.sprintf "first (%s) (%s)" (show p) (show q)
  | Within (d, p) -> Printf.sprintf "within %d (%s)" d (show p)
  | Switch (tasks, p) -> Printf.sprintf "switch [%s] (%s)" (String.concat " | " (List.map show tasks)) (show p)
  | Daemon (p, q) -> Printf.sprintf "daemon (%s) (%s)" (show p) (show q)

(* ---- The model ---- *)

let never = max_int

type outcome = Done | Failed of int list (* sorted *) | Cancelled

(* How both together end: failures are told, cancels only if there are none. *)
let together first second =
  match (first, second) with
  | Failed some, Failed others -> Failed (List.sort_uniq compare (some @ others))
  | (Failed _ as failed), _ | _, (Failed _ as failed) -> failed
  | Cancelled, _ | _, Cancelled -> Cancelled
  | Done, Done -> Done

(* The outcome of the program, when it ends, and what it notes, with the times; begun at [now], in a context that is
   cancelled at [cancel]. *)
let rec model program now cancel =
  match program with
  | Note n -> (Done, now, [ (n, now) ])
  | Sleep d ->
      if cancel <= now then (Cancelled, now, [])
      else if cancel < now + d then (Cancelled, cancel, [])
      else (Done, now + d, [])
  | Fail n -> (Failed [ n ], now, [])
  | Seq (p, q) -> (
      match model p now cancel with
      | Done, at, notes ->
          let outcome, at, others = model q at cancel in
          (outcome, at, notes @ others)
      | ended -> ended)
  | Catch p -> (
      match model p now cancel with Failed _, at, notes -> (Done, at, notes) | ended -> ended)
  | Finally (p, q) ->
      let outcome, at, notes = model p now cancel in
      let last, at, others = model q at cancel in
      ((match last with Done -> outcome | _ -> last), at, notes @ others)
  | Protect p -> model p now never
  | Both (p, q) -> switch [ p ] q now cancel
  | Switch (tasks, p) -> switch tasks p now cancel
  | First (p, q) -> (
      (* The first that is not cancelled wins, and the other is cancelled then. *)
      let ((_, end_of_p, _) as of_p) = model p now cancel and ((_, end_of_q, _) as of_q) = model q now cancel in
      let wins (outcome, at, _) = if outcome = Cancelled then never else at in
      let (of_winner, at_winner, notes), (of_loser, at_loser, others) =
        if wins of_p = never && wins of_q = never then (of_p, of_q)
        else if wins of_p < wins of_q then (of_p, model q now (min cancel end_of_p))
        else (of_q, model p now (min cancel end_of_q))
      in
      let at = max at_winner at_loser in
      match (of_winner, of_loser) with
      | Done, (Done | Cancelled) ->
          (* A result is lost if its caller has been cancelled meanwhile. *)
          ((if cancel <= at then Cancelled else Done), at, notes @ others)
      | _ -> (together of_winner of_loser, at, notes @ others))
  | Within (d, p) -> (
      match model p now (min cancel (now + d)) with
      | Cancelled, at, notes when now + d < cancel && at < cancel -> (Done, at, (-d, at) :: notes)
      | ended -> ended)
  | Daemon (p, q) ->
      let of_daemon, end_of_daemon, _ = model p now cancel and _, end_of_q, _ = model q now cancel in
      let fails = match of_daemon with Failed _ -> end_of_daemon < end_of_q | Done | Cancelled -> false in
      let of_p, at_p, notes = model p now (if fails then cancel else min cancel end_of_q) in
      let of_q, at_q, others = model q now (if fails then min cancel end_of_daemon else cancel) in
      let outcome = match of_p with Failed _ -> together of_p of_q | Done | Cancelled -> of_q in
      (outcome, max at_p at_q, notes @ others)

(* The first that fails cancels the others. *)
and switch tasks body now cancel =
  let all = body :: tasks in
  let failure p = match model p now cancel with Failed _, at, _ -> at | (Done | Cancelled), _, _ -> never in
  let first = List.fold_left (fun first p -> min first (failure p)) never all in
  let ended = List.map (fun p -> model p now (if failure p = first then cancel else min cancel first)) all in
  List.fold_left
    (fun (outcome, at, notes) (other, until, others) -> (together outcome other, max at until, notes @ others))
    (Done, now, []) ended

(* ---- The tasks ---- *)

exception Wrong of int

let begun = ref 0.
let time () = int_of_float (Time.now clock -. !begun)

let rec execute note program =
  match program with
  | Note n ->
      if n mod 20 = 0 then Gc.compact () else if n mod 5 = 0 then Gc.minor ();
      note n
  | Sleep d -> Time.sleep clock (float d)
  | Fail n -> raise (Wrong n)
  | Seq (p, q) ->
      execute note p;
      execute note q
  | Catch p -> ( try execute note p with Wrong _ | Exn.Multiple _ -> ())
  | Finally (p, q) -> (
      match execute note p with
      | () -> execute note q
      | exception exn ->
          execute note q;
          raise exn)
  | Protect p -> Cancel.protect (fun () -> execute note p)
  | Both (p, q) -> Fiber.both (fun () -> execute note p) (fun () -> execute note q)
  | First (p, q) -> Fiber.first (fun () -> execute note p) (fun () -> execute note q)
  | Within (d, p) -> (
      match Time.with_timeout clock (float d) (fun () -> Ok (execute note p)) with
      | Ok () -> ()
      | Error `Timeout -> note (-d))
  | Switch (tasks, body) ->
      Switch.run (fun sw ->
          List.iter (fun task -> Fiber.fork ~sw (fun () -> execute note task)) tasks;
          execute note body)
  | Daemon (daemon, body) ->
      Switch.run (fun sw ->
          Fiber.fork_daemon ~sw (fun () ->
              execute note daemon;
              `Stop_daemon);
          execute note body)

let rec failures = function
  | Wrong n -> [ n ]
  | Exn.Multiple all -> List.concat_map (fun (exn, _) -> failures exn) all
  | exn -> raise exn

let really seed program =
  let notes = ref [] in
  let outcome, at =
    simulate ~seed (fun () ->
        begun := Time.now clock;
        let outcome =
          match execute (fun n -> notes := (n, time ()) :: !notes) program with
          | () -> Done
          | exception Cancel.Cancelled _ -> Cancelled
          | exception exn -> Failed (List.sort_uniq compare (failures exn))
        in
        (outcome, time ()))
  in
  (outcome, at, !notes)

(* ---- The test ---- *)

let program =
  let open QCheck2.Gen in
  let duration = no_shrink (int_range 1 1_000_000) and name = int_bound 1000 in
  let rec later size = pure () >>= fun () -> program size
  and program size =
    if size <= 1 then
      frequency
        [ (3, map (fun d -> Sleep d) duration); (2, map (fun n -> Note n) name); (1, map (fun n -> Fail n) name) ]
    else
      let half = later (size / 2) in
      let branch = map2 (fun d p -> Seq (Sleep d, p)) duration half in
      frequency
        [
          (4, map2 (fun p q -> Seq (p, q)) half half);
          (1, map (fun p -> Catch p) (later (size - 1)));
          (2, map2 (fun p q -> Finally (p, q)) half half);
          (1, map (fun p -> Protect p) (later (size - 1)));
          (2, map2 (fun p q -> Both (p, q)) branch branch);
          (2, map2 (fun p q -> First (p, q)) branch branch);
          (2, map2 (fun d p -> Within (d, p)) duration (later (size - 1)));
          (2, map2 (fun tasks p -> Switch (tasks, p)) (list_size (int_bound 3) branch) branch);
          (1, map2 (fun p q -> Daemon (p, q)) branch branch);
        ]
  in
  sized_size (int_bound 40) program

let print (outcome, at, notes) =
  Printf.sprintf "%s at %d, %s"
    (match outcome with
    | Done -> "done"
    | Cancelled -> "cancelled"
    | Failed all -> "failed: " ^ String.concat " " (List.map string_of_int all))
    at
    (String.concat ", " (List.map (fun (n, at) -> Printf.sprintf "%d at %d" n at) notes))

let sorted (outcome, at, notes) = (outcome, at, List.sort compare notes)

let obeys (seed, program) =
  let expected = sorted (model program 0 never) and found = sorted (really seed program) in
  expected = found
  || QCheck2.Test.fail_reportf "expected: %s@.found:    %s" (print expected) (print found)

let repeats (seed, program) = really seed program = really seed program

let () =
  let programs = match Sys.getenv_opt "HAFT_TEST_PROGRAMS" with Some count -> int_of_string count | None -> 1000 in
  let test name count property =
    QCheck2.Test.make ~count ~name
      ~print:(fun (seed, program) -> Printf.sprintf "seed %d: %s" seed (show program))
      QCheck2.Gen.(pair (int_range 1 1_000_000) program)
      property
  in
  let tests =
    [
      test "random programs of tasks do what Eio's rules say" programs obeys;
      test "the same seed gives the same run, to the order of what happens at one time" (programs / 5) repeats;
    ]
  in
  exit (QCheck_base_runner.run_tests ~colors:false ~rand:(Random.State.make [| 38 |]) tests)
