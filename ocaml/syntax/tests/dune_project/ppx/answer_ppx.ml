(* [%answer] is 42. *)
open Ppxlib

let () =
  let expand ~ctxt =
    Ast_builder.Default.eint ~loc:(Expansion_context.Extension.extension_point_loc ctxt) 42
  in
  let extension =
    Extension.V3.declare "answer" Extension.Context.expression Ast_pattern.(pstr nil) expand
  in
  Driver.register_transformation "answer"
    ~rules:[ Context_free.Rule.extension extension ]
