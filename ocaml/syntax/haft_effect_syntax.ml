(* SPDX-License-Identifier: MIT *)
(* haft-effect-syntax: OCaml's effect syntax for stock compilers, as a preprocessor. *)

let usage =
  "Usage: haft-effect-syntax [OPTION]... FILE\n\
   Reads an OCaml file that declares effects (effect E : string -> int) and handles them\n\
   (| effect (E x), k -> ... or | effect (E x) k -> ... in match and try), and writes it for the\n\
   stock compiler with the library haft: as source on a terminal, otherwise as a binary syntax\n\
   tree, which the compilers (-pp), dune (preprocess) and ppxlib's drivers (-pp) read. In a tree,\n\
   errors are nodes [%%ocaml.error] at its beginning. A file that is such a tree is written as it is.\n\
   Options:"

type output = Source | Tree

let read_file file =
  let channel = open_in_bin file in
  Fun.protect
    ~finally:(fun () -> close_in channel)
    (fun () -> really_input_string channel (in_channel_length channel))

let is_tree text =
  let has_prefix prefix =
    String.length text >= String.length prefix && String.sub text 0 (String.length prefix) = prefix
  in
  has_prefix Config.ast_impl_magic_number || has_prefix Config.ast_intf_magic_number

(* Merlin gives its preprocessors a copy of what is in the editor, in a file of this prefix and six
   digits. *)
let name_in_editor file =
  let copied = "merlinpp" and name = Filename.basename file in
  let prefix = String.length copied + 6 in
  let is_digit = function '0' .. '9' | 'a' .. 'f' -> true | _ -> false in
  if
    String.length name > prefix
    && String.sub name 0 (String.length copied) = copied
    && String.for_all is_digit (String.sub name (String.length copied) 6)
  then String.sub name prefix (String.length name - prefix)
  else file

exception Refused of Location.error list

let in_order errors =
  let place error = error.Location.main.loc.loc_start.Lexing.pos_cnum in
  List.stable_sort (fun left right -> compare (place left) (place right)) (List.rev errors)

(* Translates the file, which is known as [name], to a function that writes it to a channel. Raises
   Refused if source is wanted of a file with errors, and the stock errors if nothing can be
   read. *)
let translation ~is_interface ~output ~for_library ~name text =
  Location.input_name := name;
  let errors = ref [] in
  let report error = errors := error :: !errors in
  let tokens = Effect_tokens.source_tokens ~tolerant:true text in
  let names = Hashtbl.create 64 in
  Array.iter (function Parser.LIDENT name, _, _ -> Hashtbl.replace names name () | _ -> ()) tokens;
  let rec fresh name = if Hashtbl.mem names name then fresh (name ^ "_") else name in
  let mapper = Effect_cases.mapper ~for_library ~report ~fresh in
  let extends_stdlib = Effect_tokens.needs_stdlib tokens in
  let renames_stdlib = for_library && not extends_stdlib in
  (* The nodes are at the beginning: the compilers stop at the first error. *)
  let with_errors extension tree =
    let node error = extension ~loc:error.Location.main.loc (Ast_mapper.extension_of_error error) in
    List.map node (in_order !errors) @ tree
  in
  let write magic print tree channel =
    match output with
    | Tree ->
        output_string channel magic;
        output_value channel name;
        output_value channel tree
    | Source -> Format.fprintf (Format.formatter_of_out_channel channel) "%a@." print tree
  in
  let write =
    if is_interface then
      let tree = Mending.parse ~renames_stdlib ~report Effect_tokens.interface text in
      let tree = mapper.signature mapper tree in
      let tree = if for_library then Predefined.in_signature ~extends_stdlib tree else tree in
      let extension ~loc node = Ast_helper.Sig.extension ~loc node in
      write Config.ast_intf_magic_number Pprintast.signature (with_errors extension tree)
    else
      let tree = Mending.parse ~renames_stdlib ~report Effect_tokens.implementation text in
      let tree = mapper.structure mapper tree in
      let tree = if for_library then Predefined.in_structure ~extends_stdlib tree else tree in
      let extension ~loc node = Ast_helper.Str.extension ~loc node in
      write Config.ast_impl_magic_number Pprintast.structure (with_errors extension tree)
  in
  if output = Source && !errors <> [] then raise (Refused (in_order !errors));
  write

let () =
  let file = ref None and kind = ref None and output = ref None and destination = ref None in
  let name = ref None and for_library = ref true in
  let set reference value = Arg.Unit (fun () -> reference := Some value) in
  let options =
    Arg.align
      [
        ("--impl", set kind `Implementation, " The file is an implementation, whatever its name");
        ("--intf", set kind `Interface, " The file is an interface, whatever its name");
        ("--source", set output Source, " Write source");
        ("--tree", set output Tree, " Write a binary syntax tree");
        ( "--for-ocaml-5",
          Arg.Clear for_library,
          " Write for OCaml 5, whose standard library has effects, rather than for the library haft" );
        ( "--source-name",
          Arg.String (fun file -> name := Some file),
          "NAME The file's name in messages and for editors" );
        ("-o", Arg.String (fun name -> destination := Some name), "FILE Write to FILE");
      ]
  in
  let fail message =
    prerr_endline ("haft-effect-syntax: " ^ message);
    exit 2
  in
  Arg.parse options
    (fun name -> if !file = None then file := Some name else fail "give one file")
    usage;
  match !file with
  | None -> fail "give a file; haft-effect-syntax --help tells more"
  | Some file -> (
      let is_interface =
        match !kind with
        | Some kind -> kind = `Interface
        | None -> Filename.extension (Option.value !name ~default:file) = ".mli"
      in
      let on_terminal = !destination = None && Unix.isatty Unix.stdout in
      let output = Option.value !output ~default:(if on_terminal then Source else Tree) in
      let name = Option.value !name ~default:(name_in_editor file) in
      try
        let text = read_file file in
        let write =
          if is_tree text then fun channel -> output_string channel text
          else translation ~is_interface ~output ~for_library:!for_library ~name text
        in
        match !destination with
        | None ->
            set_binary_mode_out stdout (output = Tree);
            write stdout
        | Some name ->
            let channel = open_out_bin name in
            Fun.protect ~finally:(fun () -> close_out channel) (fun () -> write channel)
      with
      | Sys_error message -> fail message
      | Refused errors ->
          List.iter (Location.print_report Format.err_formatter) errors;
          exit 2
      | error ->
          Location.report_exception Format.err_formatter error;
          exit 2)
