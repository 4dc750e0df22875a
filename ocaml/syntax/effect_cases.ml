(* SPDX-License-Identifier: MIT *)
(* The meaning of effect declarations and effect cases, as functions of the Effect module.

     effect E : s -> t               type _ Effect.t += E : s -> t Effect.t
     let effect E : s -> t in e      let open struct type _ Effect.t += E : s -> t Effect.t end in e

     match e with                    Haft__syntax.match_with (fun _ -> e) 0
     | v -> e1                         { retc = (function v -> e1);
     | exception X -> e2                 exnc = (fun exn -> try raise_notrace exn with X -> e2);
     | effect (E x), k when g -> e3      effc = (fun (type result) performed continuation ->
                                           match performed with
                                           | E x when g -> (match continuation with k -> e3)
                                           | _ -> decline performed continuation) }

   Handlers are deep. The value, exception and effect cases run outside the handler, in tail
   position; between a perform and its clause nothing is allocated, so that no signal's handler runs
   there. An exception that no case matches is raised on with its backtrace: the `try` above
   re-raises it, and without any exception case there is Haft__syntax.reraise in its place. The
   continuation is not in scope of the guard. Code that OCaml 5.3 refuses is refused here with its
   message: it is reported, and the tree is that of the rest. Names that the cases could capture are
   fresh.

   Everything is named by its path from Haft__syntax, because programs have modules, types and
   constructors of their own called Effect, Stdlib, ref, Some, false or (). The labels are those of
   Haft__syntax, where nothing else has them. A tree for OCaml 5, which has no such module, has
   Stdlib in its place, and the functions of Stdlib.Effect.Deep, where a case is `Some (fun k ->
   e3)`.

   An application gives its arguments no expected type, but the type of the whole must be known in
   the cases, as it is in those of a plain match: GADT and record patterns, and constructors, need
   it. So the handler stands in

     let expected = (Obj.magic 0 : _ ref) in if false then !expected else ...

   and its functions in the like with [fun _ -> !expected], and the bodies of cases, too: with
   -principal they do not know what is around them. For the same reason the effect and the
   continuation of an effect case have their types written. `expected` is never read, and native
   code has no trace of it. *)

open Parsetree
open Ast_helper

type context = {
  report : Location.error -> unit;
  fresh : string -> string;  (** a name that the source does not have *)
  for_library : bool;
}

(* The path of what generated code mentions. *)
let known context path = (if context.for_library then Effect_tokens.library else "Stdlib") :: path
let in_effect context path = known context ("Effect" :: path)

let error context ~loc ?hint message =
  let sub = match hint with None -> [] | Some hint -> [ Location.msg "@[Hint: %s@]" hint ] in
  context.report (Location.errorf ~loc ~sub "%s" message)

let name ~loc path =
  let longident =
    match path with
    | [] -> invalid_arg "name"
    | head :: rest ->
        List.fold_left (fun path name -> Longident.Ldot (path, name)) (Longident.Lident head) rest
  in
  { Location.txt = longident; loc }

let value ~loc path = Exp.ident ~loc (name ~loc path)

(* Declarations *)

(* The extension of Effect.t by the constructor: [t] becomes [t Effect.t] where it is the
   constructor's result, the type that ends last. *)
let declare context ~loc ~attrs constructor =
  let default = Ast_mapper.default_mapper in
  let last = ref Lexing.dummy_pos in
  let find _ core_type =
    let stop = core_type.ptyp_loc.loc_end in
    if stop.pos_cnum > !last.pos_cnum then last := stop;
    core_type
  in
  let wrap _ core_type =
    let loc = core_type.ptyp_loc in
    if loc.loc_end = !last then Typ.constr ~loc (name ~loc (in_effect context [ "t" ])) [ core_type ]
    else core_type
  in
  ignore (default.extension_constructor { default with typ = find } constructor);
  let constructor = default.extension_constructor { default with typ = wrap } constructor in
  let parameter = (Typ.any ~loc (), (Asttypes.NoVariance, Asttypes.NoInjectivity)) in
  Te.mk ~loc ~attrs ~params:[ parameter ] (name ~loc (in_effect context [ "t" ])) [ constructor ]

(* The attributes without our mark; none if they do not have it. *)
let unmarked attributes =
  match List.partition (fun attribute -> attribute.attr_name.txt = Effect_tokens.marker) attributes with
  | [], _ -> None
  | _, others -> Some others

(* The extension of Effect.t for a marked exception; none for one that the user declared. *)
let declaration context { ptyexn_constructor = constructor; ptyexn_attributes = attrs; ptyexn_loc = loc } =
  Option.map
    (fun pext_attributes -> declare context ~loc ~attrs { constructor with pext_attributes })
    (unmarked constructor.pext_attributes)

(* Patterns *)

let effect_pattern pattern =
  match pattern.ppat_desc with
  | Ppat_extension ({ txt; _ }, PPat ({ ppat_desc = Ppat_tuple parts; _ }, None))
    when txt = Effect_tokens.marker -> (
      match parts with
      | [ performed; continuation ] -> Some (performed, continuation)
      | [ { ppat_attributes = attributes; _ }; performed; continuation ] ->
          Some ({ performed with ppat_attributes = attributes @ performed.ppat_attributes }, continuation)
      | _ -> None)
  | _ -> None

let is_effect_pattern pattern = effect_pattern pattern <> None
let is_effect_case case = is_effect_pattern case.pc_lhs

let below_top_level context ?hint pattern =
  error context ~loc:pattern.ppat_loc ?hint
    "Effect patterns must be at the top level of a match case."

let rec has_only_effects pattern =
  match pattern.ppat_desc with
  | Ppat_or (left, right) -> has_only_effects left && has_only_effects right
  | _ -> is_effect_pattern pattern

(* Without the effect patterns that are not a whole case; they are refused. *)
let checked_pattern context mapper pattern =
  let hint_for_parts =
    match pattern.ppat_desc with
    | Ppat_or _ when has_only_effects pattern ->
        "put the or-pattern inside, as in `effect (A | B), k', or write a case for each effect."
    | Ppat_or _ -> "write the effect case apart from the value and exception cases."
    | Ppat_exception _ -> "an effect is no exception: leave out `exception'."
    | Ppat_alias _ -> "name parts of the effect inside, as in `effect (E x as e), k'."
    | _ -> "an effect case stands in a `match' or a `try', as a whole case."
  in
  let without_effects part =
    match effect_pattern part with
    | None -> mapper.Ast_mapper.pat mapper part
    | Some _ ->
        below_top_level context part ~hint:hint_for_parts;
        Pat.any ~loc:part.ppat_loc ()
  in
  if is_effect_pattern pattern then without_effects pattern
  else Ast_mapper.default_mapper.pat { mapper with pat = (fun _ -> without_effects) } pattern

(* The value and the exception part of a pattern. *)
let rec split pattern =
  match pattern.ppat_desc with
  | Ppat_or (left, right) ->
      let or_ left right =
        match (left, right) with
        | Some left, Some right -> Some { pattern with ppat_desc = Ppat_or (left, right) }
        | part, None | None, part -> part
      in
      let left_value, left_exception = split left and right_value, right_exception = split right in
      (or_ left_value right_value, or_ left_exception right_exception)
  | Ppat_open (path, inner) ->
      let open_ = Option.map (fun part -> { pattern with ppat_desc = Ppat_open (path, part) }) in
      let value, exception_ = split inner in
      (open_ value, open_ exception_)
  | Ppat_exception inner -> (None, Some inner)
  | _ -> (Some pattern, None)

(* Whether the pattern matches every effect, so that no case can follow. *)
let rec matches_everything pattern =
  match pattern.ppat_desc with
  | Ppat_any | Ppat_var _ -> true
  | Ppat_alias (inner, _) | Ppat_constraint (inner, _) | Ppat_open (_, inner) ->
      matches_everything inner
  | Ppat_or (left, right) -> matches_everything left || matches_everything right
  | _ -> false

let variables pattern =
  let found = ref [] in
  let pat iterator pattern =
    (match pattern.ppat_desc with
    | Ppat_var { txt; _ } | Ppat_alias (_, { txt; _ }) -> found := txt :: !found
    | _ -> ());
    Ast_iterator.default_iterator.pat iterator pattern
  in
  let iterator = { Ast_iterator.default_iterator with pat } in
  iterator.pat iterator pattern;
  !found

(* The continuation's pattern beside that of the effect, as far as it is right. *)
let checked_continuation context performed pattern =
  let refuse message =
    error context ~loc:pattern.ppat_loc message;
    Pat.any ~loc:pattern.ppat_loc ()
  in
  match pattern.ppat_desc with
  | Ppat_var { txt; _ } when List.mem txt (variables performed) ->
      refuse (Printf.sprintf "Variable \"%s\" is bound several times in this matching" txt)
  | Ppat_var _ | Ppat_any -> pattern
  | _ -> refuse "Invalid continuation pattern: only variables and _ are allowed."

(* (The cases become those of a match, which may have exceptions.) *)
let checked_effect context pattern =
  match split pattern with
  | _, None -> pattern
  | value, Some _ ->
      error context ~loc:pattern.ppat_loc "Exception patterns are not allowed in this position.";
      Option.value value ~default:(Pat.any ~loc:pattern.ppat_loc ())

(* Handlers *)

(* Adds code that only the type checker sees: [if false then typed else expression]. *)
let typed_as context ~loc typed expression =
  let false_ = Exp.construct ~loc (name ~loc [ "false" ]) None in
  let known_false =
    if context.for_library then
      let library = Mod.ident ~loc (name ~loc [ Effect_tokens.library ]) in
      Exp.open_ ~loc (Opn.mk ~loc ~override:Override library) false_
    else false_
  in
  Exp.ifthenelse ~loc known_false typed (Some expression)

(* [!expected] *)
let expected_value context ~loc expected =
  Exp.apply ~loc (value ~loc (known context [ "!" ])) [ (Nolabel, value ~loc [ expected ]) ]

(* The body of a case, that knows the type of [expected]. *)
let body_as context ~expected body =
  let loc = { body.pexp_loc with loc_ghost = true } in
  match body.pexp_desc with
  | Pexp_unreachable -> body
  | _ -> typed_as context ~loc (expected_value context ~loc expected) body

let cases_as context mapper ~expected cases =
  let case_as case = { case with pc_rhs = body_as context ~expected case.pc_rhs } in
  List.map case_as (mapper.Ast_mapper.cases mapper cases)

(* An expression of any type. *)
let magic context ~loc =
  Exp.apply ~loc (value ~loc (known context [ "Obj"; "magic" ])) [ (Nolabel, Exp.constant ~loc (Const.int 0)) ]

(* [expression], that knows the type of [expected]. *)
let with_expected context ~loc ~expected expression =
  let reference = Typ.constr ~loc (name ~loc (known context [ "ref" ])) [ Typ.any ~loc () ] in
  let magic = Exp.constraint_ ~loc (magic context ~loc) reference in
  Exp.let_ ~loc Nonrecursive
    [ Vb.mk ~loc (Pat.var ~loc { txt = expected; loc }) magic ]
    (typed_as context ~loc (expected_value context ~loc expected) expression)

let ignoring ~loc body = Exp.fun_ ~loc Nolabel None (Pat.any ~loc ()) body

let option context ~loc constructor argument =
  Exp.construct ~loc (name ~loc (known context [ "Option"; constructor ])) argument

(* The function for the effects is asked: its type variable, its arguments. *)
type asked = { result : string; performed : string; captured : string }

let ask context =
  {
    result = context.fresh "effect_result";
    performed = context.fresh "performed";
    captured = context.fresh "captured";
  }

let continuation_type context ~loc asked =
  let result_type = Typ.constr ~loc (name ~loc [ asked.result ]) [] in
  Typ.constr ~loc (name ~loc (in_effect context [ "Deep"; "continuation" ])) [ result_type; Typ.any ~loc () ]

(* The answer of a case: [body], where the continuation has this pattern. *)
let clause context ~loc asked pattern body =
  let pattern = Pat.constraint_ ~loc pattern (continuation_type context ~loc asked) in
  if context.for_library then Exp.match_ ~loc (value ~loc [ asked.captured ]) [ Exp.case pattern body ]
  else option context ~loc "Some" (Some (Exp.fun_ ~loc Nolabel None pattern body))

let forces pattern =
  let found = ref false in
  let pat iterator pattern =
    (match pattern.ppat_desc with Ppat_lazy _ -> found := true | _ -> ());
    Ast_iterator.default_iterator.pat iterator pattern
  in
  let iterator = { Ast_iterator.default_iterator with pat } in
  iterator.pat iterator pattern;
  !found

(* The answer where no case matches. Code of the program's has run before it if there are guards or
   lazy patterns: that may have been suspended, and copied. *)
let declined context ~loc asked cases =
  if context.for_library then
    let runs_code case = case.pc_guard <> None || forces case.pc_lhs in
    let decline = if List.exists runs_code cases then "decline_after_guards" else "decline" in
    Exp.apply ~loc
      (value ~loc (known context [ decline ]))
      [ (Nolabel, value ~loc [ asked.performed ]); (Nolabel, value ~loc [ asked.captured ]) ]
  else option context ~loc "None" None

(* The case of the effect function for an effect case. *)
let effect_case context mapper ~expected asked case =
  match effect_pattern case.pc_lhs with
  | None -> invalid_arg "effect_case"
  | Some (performed, continuation) ->
      let continuation = checked_continuation context performed continuation in
      let body = mapper.Ast_mapper.expr mapper case.pc_rhs in
      let loc = { body.pexp_loc with loc_ghost = true } in
      Exp.case
        (mapper.pat mapper (checked_effect context performed))
        ?guard:(Option.map (mapper.expr mapper) case.pc_guard)
        (match body.pexp_desc with
        | Pexp_unreachable -> body (* It is the effect that cannot be. *)
        | _ -> clause context ~loc asked continuation (body_as context ~expected body))

let effect_function context ~loc ~expected mapper cases =
  let asked = ask context in
  let is_last_case case =
    match effect_pattern case.pc_lhs with
    | Some (performed, _) -> case.pc_guard = None && matches_everything performed
    | None -> false
  in
  let others =
    if List.exists is_last_case cases then []
    else [ Exp.case (Pat.any ~loc ()) (declined context ~loc asked cases) ]
  in
  let typed =
    let variable = "continuation" in
    let continued =
      Exp.apply ~loc
        (value ~loc (in_effect context [ "Deep"; "continue" ]))
        [ (Nolabel, value ~loc [ variable ]); (Nolabel, magic context ~loc) ]
    in
    clause context ~loc asked
      (Pat.var ~loc { txt = variable; loc })
      (typed_as context ~loc (expected_value context ~loc expected) continued)
  in
  let argument name_ type_ body =
    Exp.fun_ ~loc Nolabel None (Pat.constraint_ ~loc (Pat.var ~loc { txt = name_; loc }) type_) body
  in
  let result_type = Typ.constr ~loc (name ~loc [ asked.result ]) [] in
  let effect_type = Typ.constr ~loc (name ~loc (in_effect context [ "t" ])) [ result_type ] in
  let cases = List.map (effect_case context mapper ~expected asked) cases @ others in
  let answer = typed_as context ~loc typed (Exp.match_ ~loc (value ~loc [ asked.performed ]) cases) in
  Exp.newtype ~loc { txt = asked.result; loc }
    (argument asked.performed effect_type
       (if context.for_library then argument asked.captured (continuation_type context ~loc asked) answer
       else answer))

(* The call that handles the computation with these functions. *)
let handle context ~loc ~attrs ~expected computation functions =
  let ghost = { loc with Location.loc_ghost = true } in
  let known path = if context.for_library then known context path else in_effect context ("Deep" :: path) in
  let fields = List.map (fun (field, expression) -> (name ~loc:ghost (known [ field ]), expression)) functions in
  let computation =
    Exp.fun_ ~loc:computation.pexp_loc Nolabel None (Pat.any ~loc:ghost ()) computation
  in
  let handled =
    Exp.apply ~loc
      (value ~loc:ghost (known [ "match_with" ]))
      [
        (Nolabel, computation);
        (Nolabel, Exp.constant ~loc:ghost (Const.int 0));
        (Nolabel, Exp.record ~loc:ghost fields None);
      ]
  in
  { (with_expected context ~loc:ghost ~expected handled) with pexp_attributes = attrs }

(* [fun exn -> try raise_notrace exn with cases], or what raises the exception on. *)
let exception_function context ~loc cases =
  let variable = context.fresh "exn" in
  let argument = value ~loc [ variable ] in
  let raise_here =
    Exp.apply ~loc (value ~loc (known context [ "raise_notrace" ])) [ (Nolabel, argument) ]
  in
  if cases <> [] then
    Exp.fun_ ~loc Nolabel None
      (Pat.var ~loc { txt = variable; loc })
      (Exp.try_ ~loc raise_here cases)
  else value ~loc (known context [ (if context.for_library then "reraise" else "raise") ])

let handler_of_match context mapper expression computation cases =
  let loc = { expression.pexp_loc with loc_ghost = true } in
  let effect_cases, others = List.partition is_effect_case cases in
  let with_pattern case = Option.map (fun pattern -> { case with pc_lhs = pattern }) in
  let divide case =
    let value, exception_ = split case.pc_lhs in
    if value <> None && exception_ <> None && case.pc_guard <> None then
      error context ~loc:case.pc_lhs.ppat_loc
        "Mixing value and exception patterns under when-guards is not supported.";
    (with_pattern case value, with_pattern case exception_)
  in
  let value_cases, exception_cases = List.split (List.map divide others) in
  let value_cases = List.filter_map Fun.id value_cases in
  let exception_cases = List.filter_map Fun.id exception_cases in
  let expected = context.fresh "expected" in
  let value_function =
    if value_cases = [] then begin
      error context ~loc:expression.pexp_loc
        "None of the patterns in this 'match' expression match values."
        ~hint:"add a case for the value, or write `try ... with' to return it unchanged.";
      ignoring ~loc (expected_value context ~loc expected)
    end
    else Exp.function_ ~loc (cases_as context mapper ~expected value_cases)
  in
  handle context ~loc:expression.pexp_loc ~expected
    ~attrs:(mapper.attributes mapper expression.pexp_attributes)
    (mapper.expr mapper computation)
    [
      ("retc", typed_as context ~loc (ignoring ~loc (expected_value context ~loc expected)) value_function);
      ("exnc", exception_function context ~loc (cases_as context mapper ~expected exception_cases));
      ("effc", effect_function context ~loc ~expected mapper effect_cases);
    ]

let handler_of_try context mapper expression computation cases =
  let loc = { expression.pexp_loc with loc_ghost = true } in
  let effect_cases, exception_cases = List.partition is_effect_case cases in
  let expected = context.fresh "expected" in
  let computation =
    typed_as context ~loc (expected_value context ~loc expected) (mapper.Ast_mapper.expr mapper computation)
  in
  let variable = context.fresh "value" in
  let identity =
    Exp.fun_ ~loc Nolabel None (Pat.var ~loc { txt = variable; loc }) (value ~loc [ variable ])
  in
  handle context ~loc:expression.pexp_loc ~expected
    ~attrs:(mapper.attributes mapper expression.pexp_attributes)
    computation
    [
      ("retc", identity);
      ("exnc", exception_function context ~loc (cases_as context mapper ~expected exception_cases));
      ("effc", effect_function context ~loc ~expected mapper effect_cases);
    ]

(* The expression is [let effect constructor in body]. *)
let local_declaration context mapper expression ~attributes constructor body =
  let loc = constructor.pext_loc in
  let declared = Str.type_extension ~loc (declare context ~loc ~attrs:[] constructor) in
  Exp.open_ ~loc:expression.pexp_loc
    ~attrs:(mapper.Ast_mapper.attributes mapper attributes)
    (Opn.mk ~loc (Mod.structure ~loc [ mapper.structure_item mapper declared ]))
    (mapper.expr mapper body)

(* The mapper from trees that Effect_tokens.parse makes to trees of stock OCaml. [fresh name] is
   a name that does not occur in the source. [report] is told what is refused. *)
let mapper ~for_library ~report ~fresh =
  let context = { report; fresh; for_library } in
  let default = Ast_mapper.default_mapper in
  let expr mapper expression =
    match expression.pexp_desc with
    | Pexp_match (computation, cases) when List.exists is_effect_case cases ->
        handler_of_match context mapper expression computation cases
    | Pexp_try (computation, cases) when List.exists is_effect_case cases ->
        handler_of_try context mapper expression computation cases
    | Pexp_letexception (constructor, body) -> (
        match unmarked expression.pexp_attributes with
        | Some attributes -> local_declaration context mapper expression ~attributes constructor body
        | None -> default.expr mapper expression)
    | _ -> default.expr mapper expression
  in
  let structure_item mapper item =
    default.structure_item mapper
      (match item.pstr_desc with
      | Pstr_exception exception_ -> (
          match declaration context exception_ with
          | Some declared -> { item with pstr_desc = Pstr_typext declared }
          | None -> item)
      | _ -> item)
  in
  let signature_item mapper item =
    default.signature_item mapper
      (match item.psig_desc with
      | Psig_exception exception_ -> (
          match declaration context exception_ with
          | Some declared -> { item with psig_desc = Psig_typext declared }
          | None -> item)
      | _ -> item)
  in
  { default with expr; pat = checked_pattern context; structure_item; signature_item }
