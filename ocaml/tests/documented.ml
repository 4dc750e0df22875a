(* SPDX-License-Identifier: MIT *)
(* documented FILE.mli...: fails, and names them, if public values or exceptions have no documentation of their
   own. *)
open Parsetree

let missing = ref 0

let is_documentation { attr_name = { txt; _ }; attr_payload; _ } =
  match attr_payload with
  | PStr [ { pstr_desc = Pstr_eval ({ pexp_desc = Pexp_constant (Pconst_string (text, _, _)); _ }, _); _ } ] ->
      txt = "ocaml.doc" && String.trim text <> ""
  | _ -> false

let require file (name : string Location.loc) attributes =
  if not (List.exists is_documentation attributes) then (
    incr missing;
    Printf.printf "%s:%d: %s\n" file name.loc.loc_start.pos_lnum name.txt)

let check file =
  let item (iterator : Ast_iterator.iterator) item =
    (match item.psig_desc with
    | Psig_value value -> require file value.pval_name value.pval_attributes
    | Psig_exception { ptyexn_constructor = { pext_name; pext_attributes; _ }; ptyexn_attributes; _ } ->
        require file pext_name (pext_attributes @ ptyexn_attributes)
    | _ -> ());
    Ast_iterator.default_iterator.signature_item iterator item
  in
  let iterator = { Ast_iterator.default_iterator with signature_item = item } in
  iterator.signature iterator (Pparse.parse_interface ~tool_name:"documented" file)

let () =
  Array.iteri (fun i file -> if i > 0 then check file) Sys.argv;
  if !missing > 0 then exit 1
