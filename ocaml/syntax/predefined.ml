(* SPDX-License-Identifier: MIT *)
(* What OCaml 5.3 has in scope everywhere: the type `eff`, and Effect in Stdlib. A file that mentions the type before
   it opens Effect begins with

     open! Haft__syntax.Predefined [@@ocaml.warning "-33-66"]

   and one where a definition of Stdlib of its own, or another name for it, may tell what is meant, with

     open! Haft__syntax.Standard_library [@@ocaml.warning "-33-66"]

   where Stdlib has Effect. In any other file `Stdlib.Effect` is Haft__syntax.Effect (Effect_tokens), so that a
   Stdlib of an opened module keeps what else it has. *)

open Parsetree
open Ast_helper

exception Mentioned

(* Whether the type is mentioned in an item: [iterate] applies an iterator to it. *)
let mentions iterate =
  let is_eff { Location.txt; _ } = txt = Longident.Lident "eff" in
  let default = Ast_iterator.default_iterator in
  let typ iterator core_type =
    match core_type.ptyp_desc with
    | Ptyp_constr (path, _) when is_eff path -> raise Mentioned
    | _ -> default.typ iterator core_type
  in
  let type_extension iterator extension =
    if is_eff extension.ptyext_path then raise Mentioned
    else default.type_extension iterator extension
  in
  match iterate { default with typ; type_extension } with
  | () -> false
  | exception Mentioned -> true

(* The `open` of a module of the library's, whose name becomes what [expression] makes of it. *)
let opening expression modul =
  let loc = Location.none in
  let unused =
    Attr.mk { txt = "ocaml.warning"; loc } (PStr [ Str.eval (Exp.constant (Const.string "-33-66")) ])
  in
  let path = Longident.(Ldot (Lident Effect_tokens.library, modul)) in
  Opn.mk ~override:Override ~attrs:[ unused ] (expression { Location.txt = path; loc })

let is_effect { Location.txt; _ } =
  match Longident.flatten txt with
  | [ "Effect" ] -> true
  | [ root; "Effect" ] -> List.mem root [ "Stdlib"; Effect_tokens.library ]
  | _ -> false

let is_own_effect { Location.txt; _ } = txt = Some "Effect"

(* An `open Effect` behind a module of the program's own that is called so opens this one. *)
let rec needed ~defines_effect ~opens_effect ~mentions = function
  | [] -> false
  | item :: _ when opens_effect item -> false
  | item :: rest when defines_effect item -> List.exists mentions (item :: rest)
  | item :: rest -> mentions item || needed ~defines_effect ~opens_effect ~mentions rest

(* The modules to be opened. *)
let opened ~extends_stdlib ~defines_effect ~opens_effect ~mentions tree =
  (if needed ~defines_effect ~opens_effect ~mentions tree then [ "Predefined" ] else [])
  @ if extends_stdlib then [ "Standard_library" ] else []

let in_structure ~extends_stdlib tree =
  let defines_effect item =
    match item.pstr_desc with Pstr_module { pmb_name; _ } -> is_own_effect pmb_name | _ -> false
  in
  let opens_effect item =
    match item.pstr_desc with
    | Pstr_open { popen_expr = { pmod_desc = Pmod_ident name; _ }; _ } -> is_effect name
    | _ -> false
  in
  let mentions item = mentions (fun iterator -> iterator.structure_item iterator item) in
  let opened = opened ~extends_stdlib ~defines_effect ~opens_effect ~mentions tree in
  List.map (fun modul -> Str.open_ (opening (fun path -> Mod.ident path) modul)) opened @ tree

let in_signature ~extends_stdlib tree =
  let defines_effect item =
    match item.psig_desc with Psig_module { pmd_name; _ } -> is_own_effect pmd_name | _ -> false
  in
  let opens_effect item =
    match item.psig_desc with Psig_open { popen_expr; _ } -> is_effect popen_expr | _ -> false
  in
  let mentions item = mentions (fun iterator -> iterator.signature_item iterator item) in
  let opened = opened ~extends_stdlib ~defines_effect ~opens_effect ~mentions tree in
  List.map (fun modul -> Sig.open_ (opening Fun.id modul)) opened @ tree
