(* haft-effect-syntax: OCaml's effect syntax for stock compilers, as a preprocessor. *)

let usage =
  "Usage: haft-effect-syntax [OPTION]... FILE\n\
   Reads an OCaml file that declares effects (effect E : string -> int) and handles them\n\
   (| effect (E x), k -> ... or | effect (E x) k -> ... in match and try), and writes it for the\n\
   stock compiler with the library haft: as source on a terminal, otherwise as a binary syntax\n\
   tree, which the compilers (-pp), dune (preprocess) and ppxlib's drivers (-pp) read.\n\
   Options:"

type output = Source | Tree

let read_file file =
  let channel = open_in_bin file in
  Fun.protect
    ~finally:(fun () -> close_in channel)
    (fun () -> really_input_string channel (in_channel_length channel))

(* What is written for the file: a function of the channel. Raises the errors of Effect_tokens.parse
   and Effect_cases.mapper. *)
let translation ~is_interface ~output file =
  let text = read_file file in
  Location.input_name := file;
  let names = Hashtbl.create 64 in
  Array.iter
    (function Parser.LIDENT name, _, _ -> Hashtbl.replace names name () | _ -> ())
    (Effect_tokens.source_tokens text);
  let mapper = Effect_cases.mapper ~is_used:(Hashtbl.mem names) in
  let write magic print tree channel =
    match output with
    | Tree ->
        output_string channel magic;
        output_value channel file;
        output_value channel tree
    | Source -> Format.fprintf (Format.formatter_of_out_channel channel) "%a@." print tree
  in
  if is_interface then
    let tree = Effect_tokens.(parse interface text) in
    write Config.ast_intf_magic_number Pprintast.signature (mapper.signature mapper tree)
  else
    let tree = Effect_tokens.(parse implementation text) in
    write Config.ast_impl_magic_number Pprintast.structure (mapper.structure mapper tree)

let () =
  let file = ref None and kind = ref None and output = ref None and destination = ref None in
  let set reference value = Arg.Unit (fun () -> reference := Some value) in
  let options =
    Arg.align
      [
        ("--impl", set kind `Implementation, " The file is an implementation, whatever its name");
        ("--intf", set kind `Interface, " The file is an interface, whatever its name");
        ("--source", set output Source, " Write source");
        ("--tree", set output Tree, " Write a binary syntax tree");
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
        | None -> Filename.extension file = ".mli"
      in
      let on_terminal = !destination = None && Unix.isatty Unix.stdout in
      let output = Option.value !output ~default:(if on_terminal then Source else Tree) in
      try
        (* Nothing is written before the whole file is known to be right. *)
        let write = translation ~is_interface ~output file in
        match !destination with
        | None ->
            set_binary_mode_out stdout (output = Tree);
            write stdout
        | Some name ->
            let channel = open_out_bin name in
            Fun.protect ~finally:(fun () -> close_out channel) (fun () -> write channel)
      with
      | Sys_error message -> fail message
      | error ->
          Location.report_exception Format.err_formatter error;
          exit 2)
