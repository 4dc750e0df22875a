(* SPDX-License-Identifier: MIT *)
(* Names that OCaml 5.3 has in scope everywhere: the types `eff` and `continuation`, and Effect in
   Stdlib. A file that mentions one of the types before it defines a type of that name, or opens the
   module of Effect that has it, begins with

     open! Haft__syntax.Predefined [@@ocaml.warning "-33-66"]

   A file where a definition of Stdlib of its own, or another name for it, may change the meaning
   begins with

     open! Haft__syntax.Standard_library [@@ocaml.warning "-33-66"]

   There Stdlib has Effect. In any other file `Stdlib.Effect` is Haft__syntax.Effect
   (Effect_tokens), so that a Stdlib of an opened module keeps what else it has. *)

open Parsetree
open Ast_helper

exception Mentioned

(* The types, each with the paths below Effect of the modules that have it. *)
let types = [ ("eff", [ [] ]); ("continuation", [ [ "Deep" ]; [ "Shallow" ] ]) ]

(* Whether the type of this name is mentioned in an item: [iterate] applies an iterator to it. *)
let mentions name iterate =
  let is_type { Location.txt; _ } = txt = Longident.Lident name in
  let default = Ast_iterator.default_iterator in
  let typ iterator core_type =
    match core_type.ptyp_desc with
    | Ptyp_constr (path, _) when is_type path -> raise Mentioned
    | _ -> default.typ iterator core_type
  in
  let type_extension iterator extension =
    if is_type extension.ptyext_path then raise Mentioned
    else default.type_extension iterator extension
  in
  match iterate { default with typ; type_extension } with
  | () -> false
  | exception Mentioned -> true

let declares name (recursive, declarations) =
  recursive = Asttypes.Recursive && List.exists (fun { ptype_name; _ } -> ptype_name.txt = name) declarations

(* The `open` of a module of the library's, whose name becomes what [expression] makes of it. *)
let opening expression modul =
  let loc = Location.none in
  let unused =
    Attr.mk { txt = "ocaml.warning"; loc } (PStr [ Str.eval (Exp.constant (Const.string "-33-66")) ])
  in
  let path = Longident.(Ldot (Lident Effect_tokens.library, modul)) in
  Opn.mk ~override:Override ~attrs:[ unused ] (expression { Location.txt = path; loc })

(* The path below Effect of the module of this name. *)
let below_effect { Location.txt; _ } =
  match Longident.flatten txt with
  | "Effect" :: path -> Some path
  | root :: "Effect" :: path when List.mem root [ "Stdlib"; Effect_tokens.library ] -> Some path
  | _ -> None

let is_own_effect { Location.txt; _ } = txt = Some "Effect"

(* An `open Effect` behind a module of the program's own that is called so opens this one. *)
let rec needed ~defines_effect ~has ~mentions = function
  | [] -> false
  | item :: _ when has item -> false
  | item :: rest when defines_effect item -> List.exists mentions (item :: rest)
  | item :: rest -> mentions item || needed ~defines_effect ~has ~mentions rest

(* Functions that find the types in the items of a structure, or of a signature. *)
type 'item reading = {
  defines_effect : 'item -> bool;
  opens : 'item -> Longident.t Location.loc option;
  declared : 'item -> (Asttypes.rec_flag * type_declaration list) option;
  iterate : 'item -> Ast_iterator.iterator -> unit;
}

(* The modules to be opened. *)
let opened ~extends_stdlib { defines_effect; opens; declared; iterate } tree =
  let is_needed (name, modules) =
    let has item =
      (match Option.bind (opens item) below_effect with Some path -> List.mem path modules | None -> false)
      || match declared item with Some declarations -> declares name declarations | None -> false
    in
    needed ~defines_effect ~has ~mentions:(fun item -> mentions name (iterate item)) tree
  in
  (if List.exists is_needed types then [ "Predefined" ] else [])
  @ if extends_stdlib then [ "Standard_library" ] else []

let in_structure ~extends_stdlib tree =
  let reading =
    {
      defines_effect =
        (fun item -> match item.pstr_desc with Pstr_module { pmb_name; _ } -> is_own_effect pmb_name | _ -> false);
      opens =
        (fun item ->
          match item.pstr_desc with
          | Pstr_open { popen_expr = { pmod_desc = Pmod_ident name; _ }; _ } -> Some name
          | _ -> None);
      declared =
        (fun item -> match item.pstr_desc with Pstr_type (flag, types) -> Some (flag, types) | _ -> None);
      iterate = (fun item iterator -> iterator.structure_item iterator item);
    }
  in
  let open_ modul = Str.open_ (opening (fun path -> Mod.ident path) modul) in
  List.map open_ (opened ~extends_stdlib reading tree) @ tree

let in_signature ~extends_stdlib tree =
  let reading =
    {
      defines_effect =
        (fun item -> match item.psig_desc with Psig_module { pmd_name; _ } -> is_own_effect pmd_name | _ -> false);
      opens = (fun item -> match item.psig_desc with Psig_open { popen_expr; _ } -> Some popen_expr | _ -> None);
      declared =
        (fun item -> match item.psig_desc with Psig_type (flag, types) -> Some (flag, types) | _ -> None);
      iterate = (fun item iterator -> iterator.signature_item iterator item);
    }
  in
  let open_ modul = Sig.open_ (opening Fun.id modul) in
  List.map open_ (opened ~extends_stdlib reading tree) @ tree
