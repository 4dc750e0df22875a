(* SPDX-License-Identifier: MIT *)
(* The core language of "Retrofitting effect handlers onto OCaml", figure 2a, and its concrete
   syntax, which README.md describes. *)

type language = OCaml | C
type operator = Add | Subtract | Multiply | Divide
type label = string

type expression =
  | Number of int
  | Variable of string
  | Apply of expression * expression
  | Abstraction of language * string * expression
  | Arithmetic of operator * expression * expression
  | Raise of label * expression
  | Match of expression * handler
  | Perform of label * expression

and handler = {
  return : string * expression;
  exceptions : (label * (string * expression)) list;
  effects : (label * (string * string * expression)) list;
}

let identity = Abstraction (OCaml, "x", Variable "x")

(* §4.2.4: continue and discontinue are encoded. *)
let continue k argument = Apply (Apply (k, identity), argument)

let discontinue k label argument =
  Apply (Apply (k, Abstraction (OCaml, "x", Raise (label, Variable "x"))), argument)

(* Programs as text *)

let operator_text = function Add -> "+" | Subtract -> "-" | Multiply -> "*" | Divide -> "/"

(* Levels: 0 anything, 1 operand of + and -, 2 operand of * and /, 3 function, 4 argument. *)
let rec print level formatter expression =
  let own_level =
    match expression with
    | Abstraction _ -> 0
    | Arithmetic ((Add | Subtract), _, _) -> 1
    | Arithmetic ((Multiply | Divide), _, _) -> 2
    | Apply _ | Raise _ | Perform _ -> 3
    | Number number -> if number < 0 then 2 else 4
    | Variable _ | Match _ -> 4
  in
  let parenthesised = own_level < level in
  if parenthesised then Format.pp_print_string formatter "(";
  (match expression with
  | Number number -> Format.pp_print_int formatter number
  | Variable name -> Format.pp_print_string formatter name
  | Apply (f, argument) ->
      Format.fprintf formatter "@[<hv 2>%a@ %a@]" (print 3) f (print 4) argument
  | Abstraction (language, variable, body) ->
      let keyword = match language with OCaml -> "fun" | C -> "cfun" in
      Format.fprintf formatter "@[<hv 2>%s %s ->@ %a@]" keyword variable (print 0) body
  | Arithmetic (operator, left, right) ->
      Format.fprintf formatter "@[<hv>%a %s@ %a@]" (print own_level) left (operator_text operator)
        (print (own_level + 1)) right
  | Raise (label, argument) ->
      Format.fprintf formatter "@[<hv 2>raise %s@ %a@]" label (print 4) argument
  | Perform (label, argument) ->
      Format.fprintf formatter "@[<hv 2>perform %s@ %a@]" label (print 4) argument
  | Match (computation, { return = variable, body; exceptions; effects }) ->
      Format.fprintf formatter "@[<hv>match %a with@ | return %s -> @[%a@]" (print 0) computation
        variable (print 0) body;
      List.iter
        (fun (label, (variable, body)) ->
          Format.fprintf formatter "@ | exception %s %s -> @[%a@]" label variable (print 0) body)
        exceptions;
      List.iter
        (fun (label, (variable, k, body)) ->
          Format.fprintf formatter "@ | effect %s %s %s -> @[%a@]" label variable k (print 0) body)
        effects;
      Format.fprintf formatter "@ end@]");
  if parenthesised then Format.pp_print_string formatter ")"

let pp = print 0

(* A program as one line, or as several that fit the margin. *)
let to_string ?(margin = max_int - 1) expression =
  let buffer = Buffer.create 256 in
  let formatter = Format.formatter_of_buffer buffer in
  Format.pp_set_geometry formatter ~max_indent:(margin - 1) ~margin;
  Format.fprintf formatter "%a@?" pp expression;
  Buffer.contents buffer

(* Programs from text *)

let keywords =
  [
    "fun"; "cfun"; "let"; "in"; "raise"; "perform"; "match"; "with"; "return"; "exception";
    "effect"; "end"; "continue"; "discontinue";
  ]

(* [language] is that of the enclosing abstraction: `let` is an application in it. *)
let rec expression language source : expression =
  match Source.peek source with
  | Name "fun" -> abstraction OCaml source
  | Name "cfun" -> abstraction C source
  | Name "let" ->
      Source.advance source;
      let name = Source.variable source ~keywords in
      Source.expect source (Symbol "=");
      let bound = expression language source in
      Source.expect source (Name "in");
      Apply (Abstraction (language, name, expression language source), bound)
  | _ -> sum language source

and abstraction language source =
  Source.advance source;
  let name = Source.variable source ~keywords in
  Source.expect source (Symbol "->");
  Abstraction (language, name, expression language source)

and sum language source =
  let rec more left =
    let operator operator =
      Source.advance source;
      more (Arithmetic (operator, left, product language source))
    in
    match Source.peek source with
    | Symbol "+" -> operator Add
    | Symbol "-" -> operator Subtract
    | _ -> left
  in
  more (product language source)

and product language source =
  let rec more left =
    let operator operator =
      Source.advance source;
      more (Arithmetic (operator, left, operand language source))
    in
    match Source.peek source with
    | Symbol "*" -> operator Multiply
    | Symbol "/" -> operator Divide
    | _ -> left
  in
  more (operand language source)

and operand language source =
  match (Source.peek source, Source.peek_second source) with
  | Symbol "-", Number number ->
      Source.advance source;
      Source.advance source;
      Number (-number)
  | _ -> application language source

and application language source =
  let first =
    match Source.peek source with
    | Name "raise" ->
        Source.advance source;
        let label = Source.label source in
        Raise (label, argument language source)
    | Name "perform" ->
        Source.advance source;
        let label = Source.label source in
        Perform (label, argument language source)
    | Name "continue" ->
        Source.advance source;
        let k = argument language source in
        continue k (argument language source)
    | Name "discontinue" ->
        Source.advance source;
        let k = argument language source in
        let label = Source.label source in
        discontinue k label (argument language source)
    | _ -> argument language source
  in
  let rec more f =
    match Source.peek source with
    | Symbol "(" | Number _ | Name "match" -> more (Apply (f, argument language source))
    | Name name when not (List.mem name keywords) -> more (Apply (f, argument language source))
    | _ -> f
  in
  more first

and argument language source =
  match Source.peek source with
  | Number number ->
      Source.advance source;
      Number number
  | Symbol "(" ->
      Source.advance source;
      let inner = expression language source in
      Source.expect source (Symbol ")");
      inner
  | Name "match" -> match_ language source
  | Name name when not (List.mem name keywords) ->
      Source.advance source;
      Variable name
  | _ -> Source.fail source "an expression"

and match_ language source =
  Source.expect source (Name "match");
  let computation = expression language source in
  Source.expect source (Name "with");
  let rec cases return exceptions effects =
    let body source =
      Source.expect source (Symbol "->");
      expression language source
    in
    match (Source.peek source, Source.peek_second source) with
    | Symbol "|", Name "return" when return = None ->
        Source.advance source;
        Source.advance source;
        let variable = Source.variable source ~keywords in
        cases (Some (variable, body source)) exceptions effects
    | Symbol "|", Name "exception" ->
        Source.advance source;
        Source.advance source;
        let label = Source.label source in
        let variable = Source.variable source ~keywords in
        let body = body source in
        cases return ((label, (variable, body)) :: exceptions) effects
    | Symbol "|", Name "effect" ->
        Source.advance source;
        Source.advance source;
        let label = Source.label source in
        let variable = Source.variable source ~keywords in
        let k = Source.variable source ~keywords in
        let body = body source in
        cases return exceptions ((label, (variable, k, body)) :: effects)
    | Name "end", _ -> (
        match return with
        | Some return ->
            Source.advance source;
            { return; exceptions = List.rev exceptions; effects = List.rev effects }
        | None -> Source.fail source "a return case")
    | Symbol "|", _ ->
        Source.advance source;
        Source.fail source "one return case, an exception or an effect case"
    | _ -> Source.fail source "a case or `end'"
  in
  Match (computation, cases None [] [])

(* Execution begins in C (§4.2.2). *)
let of_string text = Source.parse (expression C) text
