(* SPDX-License-Identifier: MIT *)
(* Names for Haft and Stdlib that nothing in the program hides. Where generated code uses them, the file begins
   with, in an interface and in an implementation,

     module Haft_unit := Haft
     open! struct module Haft_unit = Haft end [@@ocaml.warning "-33-60-66"] *)

open Ast_helper

type t = {
  fresh : string -> string;  (** a module's name that the source does not have *)
  mutable used : (string * string) list;  (** the names that were given, with their units *)
}

let create fresh = { fresh; used = [] }

(* The name of the compilation unit. *)
let name units unit =
  let name = units.fresh (unit ^ "_unit") in
  if not (List.mem_assoc name units.used) then units.used <- (name, unit) :: units.used;
  name

let loc = Location.none
let lident name = { Location.txt = Longident.Lident name; loc }

let in_structure units tree =
  let alias (name, unit) = Str.module_ (Mb.mk { txt = Some name; loc } (Mod.ident (lident unit))) in
  let unused =
    Attr.mk { txt = "ocaml.warning"; loc } (PStr [ Str.eval (Exp.constant (Const.string "-33-60-66")) ])
  in
  match units.used with
  | [] -> tree
  | used ->
      Str.open_ (Opn.mk ~override:Override ~attrs:[ unused ] (Mod.structure (List.map alias used))) :: tree

let in_signature units tree =
  List.map (fun (name, unit) -> Sig.mod_subst (Ms.mk { txt = name; loc } (lident unit))) units.used @ tree
