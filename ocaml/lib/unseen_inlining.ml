(* SPDX-License-Identifier: MIT *)
(* A rewriter for effect.ml: what is inlined has no locations, so that a backtrace shows the callers
   only. *)

open Parsetree

let is_inlined binding =
  List.exists (fun { attr_name; _ } -> attr_name.txt = "inline") binding.pvb_attributes

let mapper _ =
  let default = Ast_mapper.default_mapper in
  let without_location mapper expression =
    { (default.expr mapper expression) with pexp_loc = Location.none }
  in
  let value_binding mapper binding =
    if is_inlined binding then
      default.value_binding { mapper with Ast_mapper.expr = without_location } binding
    else default.value_binding mapper binding
  in
  { default with value_binding }

let () = Ast_mapper.run_main mapper
