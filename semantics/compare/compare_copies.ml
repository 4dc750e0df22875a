(* SPDX-License-Identifier: MIT *)
(* compare_copies COPIES [FILE...]: the machine of figure 2, whose continuations go on as often as
   one likes, against copies of libhaft's resumptions, on these programs or on random ones. COPIES
   is the program of core_copies.c, which is fed a program a line; if one ends it, it is started
   again for the next. Programs that the library refuses are not compared. *)

open Core_syntax
module Rules = Set.Make (String)

let last_outcome = ref ""
let refused = ref 0

let machine program =
  let taken = ref Rules.empty in
  let trace rules _ = List.iter (fun rule -> taken := Rules.add rule !taken) rules in
  let _, ending = Core_machine.run ~through_c:true ~fuel:Campaign.fuel ~trace program in
  last_outcome := Core_machine.(outcome_text (map_outcome summary ending));
  (!last_outcome, Rules.elements !taken)

(* In prefix notation, each word with a space after it. *)
let prefix program =
  let buffer = Buffer.create 1000 in
  let word text =
    Buffer.add_string buffer text;
    Buffer.add_char buffer ' '
  in
  let rec add = function
    | Number n ->
        word "n";
        word (string_of_int n)
    | Variable x ->
        word "v";
        word x
    | Apply (f, e) ->
        word "a";
        add f;
        add e
    | Abstraction (language, x, e) ->
        word "f";
        word (match language with OCaml -> "O" | C -> "C");
        word x;
        add e
    | Arithmetic (operator, left, right) ->
        word "o";
        word (operator_text operator);
        add left;
        add right
    | Raise (label, e) ->
        word "r";
        word label;
        add e
    | Perform (label, e) ->
        word "p";
        word label;
        add e
    | Match (e, { return = x, return; exceptions; effects }) ->
        word "m";
        add e;
        word x;
        add return;
        word (string_of_int (List.length exceptions));
        List.iter
          (fun (label, (x, e)) ->
            word label;
            word x;
            add e)
          exceptions;
        word (string_of_int (List.length effects));
        List.iter
          (fun (label, (x, k, e)) ->
            word label;
            word x;
            word k;
            add e)
          effects
  in
  add program;
  Buffer.contents buffer

let running = ref None

let copies () =
  match !running with
  | Some channels -> channels
  | None ->
      let channels = Unix.open_process_args Sys.argv.(1) [| Sys.argv.(1) |] in
      running := Some channels;
      channels

let library program =
  let input, output = copies () in
  match
    output_string output (prefix program ^ "\n");
    flush output;
    input_line input
  with
  | "refused" ->
      incr refused;
      running := None;
      ignore (Unix.close_process (input, output));
      !last_outcome
  | line -> line
  | exception (End_of_file | Sys_error _) -> (
      running := None;
      match Unix.close_process (input, output) with
      | WEXITED status -> Printf.sprintf "exited with status %d" status
      | WSIGNALED signal | WSTOPPED signal -> Printf.sprintf "killed by OCaml's signal %d" signal)

let () =
  Sys.set_signal Sys.sigpipe Signal_ignore;
  Campaign.main ~name:"copied continuations" ~arbitrary:Core_random.arbitrary
    ~parse:Core_syntax.of_string { machine; library }
    (List.tl (List.tl (Array.to_list Sys.argv)));
  Printf.printf "Refused: %d\n" !refused
