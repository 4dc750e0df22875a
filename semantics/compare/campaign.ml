(* SPDX-License-Identifier: MIT *)
(* Common parts of the random comparisons: the number of programs, the seed, and the report. *)

(* HAFT_SEMANTICS_PROGRAMS, or as many as the campaign is long. *)
let programs =
  match (Sys.getenv_opt "HAFT_SEMANTICS_PROGRAMS", Sys.getenv_opt "HAFT_CAMPAIGN") with
  | Some count, _ -> int_of_string count
  | None, Some "long" -> 30_000
  | None, _ -> 5_000

(* HAFT_SEMANTICS_SEED repeats a run. *)
let seed =
  match Sys.getenv_opt "HAFT_SEMANTICS_SEED" with
  | Some seed -> int_of_string seed
  | None ->
      Random.self_init ();
      Random.bits ()

(* The most steps of the machine that a program may take to be compared. *)
let fuel = 3_000

let add counts key =
  Hashtbl.replace counts key (1 + Option.value (Hashtbl.find_opt counts key) ~default:0)

(* QCheck keeps the programs of a test, so a batch of them is one. *)
let batch = 1_000

let () =
  if Sys.getenv_opt "OCAMLRUNPARAM" = None then
    Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 20; space_overhead = 200 }

(* A comparison: [machine program] and [library program], both outcomes as text; the machine's
   answer also lists the rules that it took. Programs that run out of fuel are not compared. *)
type 'program comparison = {
  machine : 'program -> string * string list;
  library : 'program -> string;
}

let mismatch comparison outcome program =
  if outcome = Core_machine.(outcome_text Out_of_fuel) then None
  else
    let found = comparison.library program in
    if found = outcome then None
    else Some (Printf.sprintf "the machine: %s\nthe library: %s" outcome found)

(* On random programs, with a report of how many took each rule. A mismatch is shrunk and printed;
   then the exit status is 1. *)
let run ~name ~arbitrary comparison =
  let rules = Hashtbl.create 64 and endings = Hashtbl.create 8 in
  let agrees program =
    let outcome, taken = comparison.machine program in
    Option.iter (QCheck.Test.fail_reportf "%s") (mismatch comparison outcome program);
    add endings (List.hd (String.split_on_char ' ' outcome));
    List.iter (add rules) taken;
    true
  in
  Printf.printf "%s: %d programs, HAFT_SEMANTICS_SEED=%d\n%!" name programs seed;
  let rand = Random.State.make [| seed |] in
  let rec batches left =
    if left > 0 then begin
      let count = min batch left in
      QCheck.Test.check_exn ~rand (QCheck.Test.make ~name ~count arbitrary agrees);
      batches (left - count)
    end
  in
  (try batches programs
   with (QCheck.Test.Test_fail _ | QCheck.Test.Test_error _) as failure ->
     prerr_endline (Printexc.to_string failure);
     exit 1);
  let report title counts =
    let all = List.sort compare (List.of_seq (Hashtbl.to_seq counts)) in
    Printf.printf "%s: %s\n" title
      (String.concat ", " (List.map (fun (key, count) -> Printf.sprintf "%s %d" key count) all))
  in
  report "Endings" endings;
  report "Programs that took a rule" rules

(* On the programs in files. *)
let run_files ~parse comparison files =
  let agrees file =
    let channel = open_in_bin file in
    let program = parse (really_input_string channel (in_channel_length channel)) in
    close_in channel;
    match mismatch comparison (fst (comparison.machine program)) program with
    | None -> true
    | Some difference ->
        Printf.eprintf "%s:\n%s\n" file difference;
        false
  in
  let agreed = List.filter agrees files in
  Printf.printf "%d of %d programs agree\n" (List.length agreed) (List.length files);
  if List.compare_lengths agreed files <> 0 then exit 1

(* Files if there are any, otherwise random programs. *)
let main ~name ~arbitrary ~parse comparison = function
  | [] -> run ~name ~arbitrary comparison
  | files -> run_files ~parse comparison files
