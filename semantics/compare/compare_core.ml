(* SPDX-License-Identifier: MIT *)
(* compare_core [--through-c] [FILE...]: the machine of figure 2, or the one whose effects pass
   through C, against the library, on these programs or on random ones. See Campaign and
   Core_direct. *)

module Rules = Set.Make (String)

let machine ~through_c program =
  let taken = ref Rules.empty in
  let trace rules _ = List.iter (fun rule -> taken := Rules.add rule !taken) rules in
  let fuel = Campaign.fuel in
  let _, ending = Core_machine.run ~one_shot:true ~through_c ~fuel ~trace program in
  (Core_machine.(outcome_text (map_outcome summary ending)), Rules.elements !taken)

let library ~through_c program = Core_machine.outcome_text (Core_direct.run ~through_c program)

let () =
  let through_c, files =
    match List.tl (Array.to_list Sys.argv) with
    | "--through-c" :: files -> (true, files)
    | files -> (false, files)
  in
  let name = if through_c then "core language, effects through C" else "core language" in
  Campaign.main ~name ~arbitrary:Core_random.arbitrary ~parse:Core_syntax.of_string
    { machine = machine ~through_c; library = library ~through_c }
    files
