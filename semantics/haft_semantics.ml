(* SPDX-License-Identifier: MIT *)
(* haft-semantics core|sheep FILE: runs a program on one of the papers' abstract machines. *)

let usage =
  "Usage: haft-semantics core|sheep [OPTION]... FILE\n\
   Runs the program in FILE, or on standard input if FILE is -, on an abstract machine:\n\
  \  core   of \"Retrofitting effect handlers onto OCaml\", figure 2\n\
  \  sheep  of \"High-level effect handlers in C\", appendix A\n\
   and prints how it ends. Exit status: 0 if it returns a value, 1 if not, 2 if it is no program.\n\
   Options:"

type options = { trace : bool; one_shot : bool; through_c : bool; fuel : int }

(* Prints every step: the rules, outermost first, and the configuration after them. *)
let tracer options pp_configuration rules configuration =
  if options.trace then
    Format.printf "@[<hv 2>%s:@ %a@]@." (String.concat " " rules) pp_configuration configuration

let start options pp_configuration configuration =
  tracer options pp_configuration [ "start" ] configuration

let finish pp_configuration configuration outcome ~is_value =
  Format.printf "%s@." outcome;
  if outcome = "stuck" then
    Format.printf "@[<hv 2>no rule for:@ %a@]@." pp_configuration configuration;
  exit (if is_value then 0 else 1)

let run_core options text =
  let open Core_machine in
  let program = Core_syntax.of_string text in
  start options pp_configuration (initial program);
  let { one_shot; through_c; fuel; _ } = options in
  let trace = tracer options pp_configuration in
  let last, ending = run ~one_shot ~through_c ~fuel ~trace program in
  let is_value = match ending with Returned _ -> true | _ -> false in
  finish pp_configuration last (outcome_text (map_outcome summary ending)) ~is_value

let run_sheep options text =
  let open Sheep_machine in
  let program = Sheep_syntax.of_string text in
  start options pp_configuration (initial program);
  let { one_shot; fuel; _ } = options in
  let trace rule = tracer options pp_configuration [ rule ] in
  let last, ending = run ~one_shot ~fuel ~trace program in
  let is_value = match ending with Returned _ -> true | _ -> false in
  finish pp_configuration last (outcome_text ending) ~is_value

let rules = function
  | "core" -> Some Core_machine.rules
  | "sheep" -> Some Sheep_machine.rules
  | _ -> None

let read_all file =
  let channel = if file = "-" then stdin else open_in_bin file in
  let rec lines text =
    match input_line channel with line -> lines (line :: text) | exception End_of_file -> text
  in
  String.concat "\n" (List.rev (lines []))

let () =
  let trace = ref false and one_shot = ref false and through_c = ref false in
  let fuel = ref 1_000_000 in
  let list_rules = ref false in
  let arguments = ref [] in
  let specification =
    Arg.align
      [
        ("--trace", Arg.Set trace, " Print every step: the rules and the configuration after it");
        ("--one-shot", Arg.Set one_shot, " A continuation may be resumed once, as in the library");
        ("--rules", Arg.Set list_rules, " Without a file: print the names of the machine's rules");
        ("--through-c", Arg.Set through_c, " Effects pass through C, as in the library (core)");
        ("--fuel", Arg.Set_int fuel, "N The most steps, a million if not given");
      ]
  in
  let fail message =
    prerr_endline ("haft-semantics: " ^ message);
    exit 2
  in
  Arg.parse specification (fun argument -> arguments := argument :: !arguments) usage;
  (match List.rev !arguments with
  | [ machine ] when !list_rules && rules machine <> None ->
      List.iter print_endline (Option.get (rules machine));
      exit 0
  | _ -> ());
  let options = { trace = !trace; one_shot = !one_shot; through_c = !through_c; fuel = !fuel } in
  let run, file =
    match List.rev !arguments with
    | [ "core"; file ] -> (run_core, file)
    | [ "sheep"; file ] -> (run_sheep, file)
    | _ -> fail "give core or sheep, and a file; --help tells more"
  in
  try run options (read_all file) with
  | Sys_error message -> fail message
  | Source.Error { line; column; message } ->
      Printf.eprintf "%s:%d:%d: %s\n" file line column message;
      exit 2
