(* same_tree FILE...: every file of stock OCaml has the same syntax tree, to the last location, by
   the stock parser and with the effect syntax. Files that are not OCaml have the same error. *)

type outcome = Tree of Obj.t | Error of string

let outcome parse =
  Docstrings.init ();
  match parse () with
  | tree -> Tree (Obj.repr tree)
  | exception error -> Error (Format.asprintf "%a" Location.report_exception error)

let read_file file =
  let channel = open_in_bin file in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  text

let differs file =
  Location.input_name := file;
  let text = read_file file in
  let stock parse () =
    let lexbuf = Lexing.from_string text in
    Location.init lexbuf file;
    Location.input_lexbuf := Some lexbuf;
    parse lexbuf
  in
  let stock, ours =
    if Filename.check_suffix file ".mli" then
      ( outcome (fun () -> Obj.repr (stock Parse.interface ())),
        outcome (fun () -> Obj.repr Effect_tokens.(parse ~renames_stdlib:true ~report:ignore interface text)) )
    else
      ( outcome (fun () -> Obj.repr (stock Parse.implementation ())),
        outcome (fun () -> Obj.repr Effect_tokens.(parse ~renames_stdlib:true ~report:ignore implementation text)) )
  in
  compare stock ours <> 0

let () =
  ignore (Warnings.parse_options false "-a");
  let files = List.tl (Array.to_list Sys.argv) in
  let different = List.filter differs files in
  List.iter (Printf.eprintf "%s is read differently\n") different;
  Printf.printf "%d files compared\n" (List.length files);
  exit (if different = [] && files <> [] then 0 else 1)
(* SPDX-License-Identifier: MIT *)
