(* SPDX-License-Identifier: MIT *)
(* compare_sheep FIBERS [FILE...]: the machine of appendix A against libhaft, on these programs or
   on random ones. FIBERS is the program of sheep_fibers.c, which is fed a program a line; if one
   ends it, it is started again for the next. *)

module Rules = Set.Make (String)

let machine program =
  let taken = ref Rules.empty in
  let trace rule _ = taken := Rules.add rule !taken in
  let _, ending = Sheep_machine.run ~one_shot:true ~fuel:Campaign.fuel ~trace program in
  (Sheep_machine.outcome_text ending, Rules.elements !taken)

let running = ref None

let fibers () =
  match !running with
  | Some channels -> channels
  | None ->
      let channels = Unix.open_process_args Sys.argv.(1) [| Sys.argv.(1) |] in
      running := Some channels;
      channels

let library program =
  let input, output = fibers () in
  match
    output_string output (Sheep_syntax.to_string program ^ "\n");
    flush output;
    input_line input
  with
  | line -> line
  | exception (End_of_file | Sys_error _) -> (
      running := None;
      match Unix.close_process (input, output) with
      | WEXITED status -> Printf.sprintf "exited with status %d" status
      | WSIGNALED signal | WSTOPPED signal -> Printf.sprintf "killed by OCaml's signal %d" signal)

let () =
  Sys.set_signal Sys.sigpipe Signal_ignore;
  Campaign.main ~name:"sheep handlers" ~arbitrary:Sheep_random.arbitrary
    ~parse:Sheep_syntax.of_string { machine; library }
    (List.tl (List.tl (Array.to_list Sys.argv)))
