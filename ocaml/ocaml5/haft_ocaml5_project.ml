(* SPDX-License-Identifier: MIT *)
(* haft-ocaml5-project FOLDER...: changes the dune files of a project that was written for OCaml 5,
   so that it is built by OCaml 4 with the package haft.ocaml5: every library and program gets the
   package, in place of runtime_events; the flag that opens Haft_ocaml5; and for its functions in C,
   haft_ocaml5.h. A library or program that has the package already stays as it is. OCaml 4's
   threads, which the package has, need `unix`: no program can forbid it. Conditions on OCaml's
   version, by which dune leaves stanzas out, become what they are on OCaml 5. *)

(* ---- A dune file, with where things stand in it ---- *)

type item = { first : int; after : int; content : content }
and content = Atom of string | List of item list

exception Wrong of int

let end_of_line text at =
  Option.value (String.index_from_opt text at '\n') ~default:(String.length text)

(* The items from [at] on, and where they end: at a parenthesis, or the end of the text. *)
let rec items text at =
  let at = past_blanks text at in
  if at = String.length text || text.[at] = ')' then ([], at)
  else
    let item = item text at in
    let rest, last = items text item.after in
    (item :: rest, last)

and item text first =
  if first = String.length text then raise (Wrong first);
  match text.[first] with
  | '(' ->
      let inside, last = items text (first + 1) in
      if last = String.length text then raise (Wrong first);
      { first; after = last + 1; content = List inside }
  | '"' ->
      (* A string up to its end, or that of the line. *)
      let begins = String.sub text first (min 3 (String.length text - first)) in
      let to_end_of_line = begins = {|"\||} || begins = {|"\>|} in
      let after = if to_end_of_line then end_of_line text first else past_string text (first + 1) in
      { first; after; content = Atom (String.sub text first (after - first)) }
  | _ ->
      let after = ref first in
      let ends = function ' ' | '\t' | '\n' | '\r' | '(' | ')' | ';' -> true | _ -> false in
      while !after < String.length text && not (ends text.[!after]) do
        incr after
      done;
      { first; after = !after; content = Atom (String.sub text first (!after - first)) }

and past_string text at =
  if at >= String.length text then raise (Wrong at);
  match text.[at] with '"' -> at + 1 | '\\' -> past_string text (at + 2) | _ -> past_string text (at + 1)

and past_blanks text at =
  if at = String.length text then at
  else
    match text.[at] with
    | ' ' | '\t' | '\n' | '\r' -> past_blanks text (at + 1)
    | ';' -> past_blanks text (end_of_line text at)
    | _ -> at

let atoms = List.filter_map (fun item -> match item.content with Atom text -> Some (item, text) | List _ -> None)

(* The field of that name: its name, and the items after. *)
let field name =
  List.find_map (fun item ->
      match item.content with
      | List (({ content = Atom text; _ } as head) :: rest) when text = name -> Some (head, rest)
      | _ -> None)

(* ---- What is to be changed: the text between two places becomes another one ---- *)

let insert at text = (at, at, text)

(* The flags come first, before those that open modules of the project. *)
let add_flags stanza fields flags =
  match field "flags" fields with
  | Some (head, _ :: _) -> [ insert head.after (" " ^ flags) ]
  | Some (head, []) -> [ insert head.after (" :standard " ^ flags) ]
  | None -> [ insert (stanza.after - 1) (Printf.sprintf "\n (flags (:standard %s))" flags) ]

let add_library stanza fields =
  match field "libraries" fields with
  | None -> [ insert (stanza.after - 1) "\n (libraries haft.ocaml5)" ]
  | Some (head, libraries) -> (
      let names_events item =
        match item.content with
        | Atom "runtime_events" | List [ { content = Atom "re_export"; _ }; { content = Atom "runtime_events"; _ } ] ->
            true
        | _ -> false
      in
      match List.filter names_events libraries with
      | [] -> [ insert head.after " haft.ocaml5" ]
      | first :: others ->
          (first.first, first.after, "haft.ocaml5") :: List.map (fun item -> (item.first, item.after, "")) others)

let allow_unix fields =
  match field "forbidden_libraries" fields with
  | None -> []
  | Some (_, libraries) ->
      List.filter_map
        (fun (item, name) ->
          if List.mem name [ "unix"; "threads"; "threads.posix" ] then Some (item.first, item.after, "") else None)
        (atoms libraries)

let add_header fields =
  List.concat_map
    (fun stubs ->
      match stubs.content with
      | List ({ content = Atom "foreign_stubs"; _ } :: inside)
        when Option.map (fun (_, language) -> List.map snd (atoms language)) (field "language" inside)
             = Some [ "c" ] ->
          add_flags stubs inside "-include haft_ocaml5.h"
      | _ -> [])
    fields

let has_package fields =
  match field "libraries" fields with
  | Some (_, libraries) -> List.exists (fun (_, name) -> name = "haft.ocaml5") (atoms libraries)
  | None -> false

(* Compares the version of OCaml whose names the package has with another one, as dune does: 5.3 is
   before 5.3.0, and so is 5.3.0~beta1. None: the text is no version. *)
let compare_version other =
  let numbers, if_equal =
    match (String.index_opt other '~', String.index_opt other '+') with
    | Some at, _ -> (String.sub other 0 at, 1)
    | None, Some at -> (String.sub other 0 at, -1)
    | None, None -> (other, 0)
  in
  match List.map int_of_string (String.split_on_char '.' numbers) with
  | numbers -> Some (match compare [ 5; 3; 0 ] numbers with 0 -> if_equal | order -> order)
  | exception Failure _ -> None

let unquoted text =
  let length = String.length text in
  if length > 1 && text.[0] = '"' then String.sub text 1 (length - 2) else text

(* Result that a comparison with OCaml's version has on OCaml 5; None: it is another comparison. *)
let decided operator left right =
  let is_version text = List.mem text [ "%{ocaml_version}"; "%{ocaml-config:version}" ] in
  let order =
    match (unquoted left, unquoted right) with
    | ours, other when is_version ours -> compare_version other
    | other, ours when is_version ours -> Option.map Int.neg (compare_version other)
    | _ -> None
  in
  match (order, operator) with
  | Some order, "=" -> Some (order = 0)
  | Some order, "<>" -> Some (order <> 0)
  | Some order, "<" -> Some (order < 0)
  | Some order, "<=" -> Some (order <= 0)
  | Some order, ">" -> Some (order > 0)
  | Some order, ">=" -> Some (order >= 0)
  | _ -> None

let rec decide condition =
  match condition.content with
  | Atom _ -> []
  | List [ { content = Atom operator; _ }; { content = Atom left; _ }; { content = Atom right; _ } ] -> (
      match decided operator left right with
      | Some holds -> [ (condition.first, condition.after, string_of_bool holds) ]
      | None -> [])
  | List inside -> List.concat_map decide inside

let rec decide_conditions item =
  match item.content with
  | List ({ content = Atom ("enabled_if" | "build_if"); _ } :: conditions) -> List.concat_map decide conditions
  | List inside -> List.concat_map decide_conditions inside
  | Atom _ -> []

let rec changes_of_stanza stanza =
  match stanza.content with
  | List ({ content = Atom ("library" | "executable" | "executables" | "test" | "tests"); _ } :: fields)
    when not (has_package fields) ->
      add_library stanza fields
      @ add_flags stanza fields "-open Haft_ocaml5"
      @ allow_unix fields @ add_header fields
  | List ({ content = Atom "subdir"; _ } :: stanzas) -> List.concat_map changes_of_stanza stanzas
  | _ -> []

let changed text =
  let stanzas, last = items text 0 in
  if last < String.length text then raise (Wrong last);
  let changes = List.concat_map changes_of_stanza stanzas @ List.concat_map decide_conditions stanzas in
  let latest_first (first, _, _) (other, _, _) = compare other first in
  List.fold_left
    (fun text (first, after, new_text) ->
      String.sub text 0 first ^ new_text ^ String.sub text after (String.length text - after))
    text
    (List.stable_sort latest_first (List.rev changes))

(* ---- Files ---- *)

let read name =
  let channel = open_in_bin name in
  Fun.protect
    (fun () -> really_input_string channel (in_channel_length channel))
    ~finally:(fun () -> close_in channel)

let change name =
  let text = read name in
  match changed text with
  | new_text when new_text = text -> ()
  | new_text ->
      let channel = open_out_bin name in
      output_string channel new_text;
      close_out channel;
      print_endline name
  | exception Wrong at ->
      Printf.eprintf "%s: not a dune file, from its character %d on\n" name (at + 1);
      exit 1

let rec walk folder =
  Array.iter
    (fun base ->
      let name = Filename.concat folder base in
      if base = "dune" && not (Sys.is_directory name) then change name
      else if base.[0] <> '.' && base.[0] <> '_' && Sys.is_directory name then walk name)
    (let names = Sys.readdir folder in
     Array.sort compare names;
     names)

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [] | "-help" :: _ | "--help" :: _ ->
      prerr_endline "usage: haft-ocaml5-project FOLDER...";
      exit 2
  | folders -> (
      try List.iter walk folders
      with Sys_error reason ->
        prerr_endline ("haft-ocaml5-project: " ^ reason);
        exit 1)
