(* SPDX-License-Identifier: MIT *)
(* The type `eff`, which OCaml 5.3 has in scope everywhere. A file that mentions it before it opens Effect begins
   with

     open! Haft.Syntax.Predefined [@@ocaml.warning "-33-66"] *)

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

(* The `open` of what [expression] makes of the module's name. *)
let opening expression =
  let loc = Location.none in
  let path = Option.get (Longident.unflatten [ "Haft"; "Syntax"; "Predefined" ]) in
  let unused =
    Attr.mk { txt = "ocaml.warning"; loc } (PStr [ Str.eval (Exp.constant (Const.string "-33-66")) ])
  in
  Opn.mk ~override:Override ~attrs:[ unused ] (expression { Location.txt = path; loc })

let is_effect { Location.txt; _ } =
  match Longident.flatten txt with [ "Effect" ] | [ ("Stdlib" | "Haft"); "Effect" ] -> true | _ -> false

let rec needed ~opens_effect ~mentions = function
  | [] -> false
  | item :: _ when opens_effect item -> false
  | item :: rest -> mentions item || needed ~opens_effect ~mentions rest

let in_structure tree =
  let opens_effect item =
    match item.pstr_desc with
    | Pstr_open { popen_expr = { pmod_desc = Pmod_ident name; _ }; _ } -> is_effect name
    | _ -> false
  in
  let mentions item = mentions (fun iterator -> iterator.structure_item iterator item) in
  if needed ~opens_effect ~mentions tree then Str.open_ (opening (fun path -> Mod.ident path)) :: tree else tree

let in_signature tree =
  let opens_effect item =
    match item.psig_desc with Psig_open { popen_expr; _ } -> is_effect popen_expr | _ -> false
  in
  let mentions item = mentions (fun iterator -> iterator.signature_item iterator item) in
  if needed ~opens_effect ~mentions tree then Sig.open_ (opening Fun.id) :: tree else tree
