(* SPDX-License-Identifier: MIT *)
(* The calculus of appendix A of "High-level effect handlers in C", fine-grain call-by-value with
   sheep handlers, and its concrete syntax, which README.md describes. *)

type label = string

(* The primitive operations c. *)
type primitive = Add | Subtract | Multiply | Equal | Less

type value =
  | Variable of string
  | Number of int
  | Primitive of primitive
  | Lambda of string * computation
  | Rec of string * string * computation
  | Unit
  | Pair of value * value
  | Inject of label * value

and computation =
  | Apply of value * value
  | Split of string * string * value * computation  (* let (x, y) = V in N *)
  | Case of value * (label * string * computation) * (string * computation)
  | Return of value
  | Let of string * computation * computation
  | Newcont of value
  | Resume of label list * value * value
  | Perform of label * value

(* The label of a computation that has returned. *)
let ret = "Ret"

(* Programs as text *)

let primitives =
  [ ("add", Add); ("sub", Subtract); ("mul", Multiply); ("eq", Equal); ("less", Less) ]

let primitive_name primitive = fst (List.find (fun (_, p) -> p = primitive) primitives)

let rec print_value ~atom formatter value =
  let parenthesised = atom && match value with Lambda _ | Rec _ | Inject _ -> true | _ -> false in
  if parenthesised then Format.pp_print_string formatter "(";
  (match value with
  | Variable name -> Format.pp_print_string formatter name
  | Number number -> Format.pp_print_int formatter number
  | Primitive primitive -> Format.pp_print_string formatter (primitive_name primitive)
  | Lambda (x, body) -> Format.fprintf formatter "@[<hv 2>fun %s ->@ %a@]" x pp body
  | Rec (f, x, body) -> Format.fprintf formatter "@[<hv 2>rec %s %s ->@ %a@]" f x pp body
  | Unit -> Format.pp_print_string formatter "()"
  | Pair (left, right) -> Format.fprintf formatter "@[<hv 1>(%a,@ %a)@]" plain left plain right
  | Inject (label, value) -> Format.fprintf formatter "%s %a" label atomic value);
  if parenthesised then Format.pp_print_string formatter ")"

and plain formatter = print_value ~atom:false formatter
and atomic formatter = print_value ~atom:true formatter

and pp formatter = function
  | Apply (f, argument) -> Format.fprintf formatter "@[<hv 2>%a@ %a@]" atomic f atomic argument
  | Split (x, y, value, body) ->
      Format.fprintf formatter "@[<hv>let (%s, %s) = %a in@ %a@]" x y plain value pp body
  | Case (value, (label, x, matched), (y, other)) ->
      Format.fprintf formatter "@[<hv>case %a of@ | %s %s -> @[%a@]@ | %s -> @[%a@]@ end@]" plain
        value label x pp matched y pp other
  | Return value -> Format.fprintf formatter "return %a" plain value
  | Let (x, bound, body) ->
      Format.fprintf formatter "@[<hv>let %s = @[%a@] in@ %a@]" x pp bound pp body
  | Newcont value -> Format.fprintf formatter "newcont %a" atomic value
  | Resume (labels, k, argument) ->
      Format.fprintf formatter "@[<hv 2>resume {%s}@ %a@ %a@]" (String.concat ", " labels) atomic k
        atomic argument
  | Perform (label, value) -> Format.fprintf formatter "perform %s %a" label atomic value

(* A program as one line, or as several that fit the margin. *)
let to_string ?(margin = max_int - 1) computation =
  let buffer = Buffer.create 256 in
  let formatter = Format.formatter_of_buffer buffer in
  Format.pp_set_geometry formatter ~max_indent:(margin - 1) ~margin;
  Format.fprintf formatter "%a@?" pp computation;
  Buffer.contents buffer

(* Programs from text *)

let keywords =
  [ "fun"; "rec"; "let"; "in"; "case"; "of"; "end"; "return"; "newcont"; "resume"; "perform" ]
  @ List.map fst primitives

let variable source = Source.variable source ~keywords

let rec value source =
  match Source.peek source with
  | Label label ->
      Source.advance source;
      Inject (label, atom source)
  | Name "fun" ->
      Source.advance source;
      let x = variable source in
      Source.expect source (Symbol "->");
      Lambda (x, computation source)
  | Name "rec" ->
      Source.advance source;
      let f = variable source in
      let x = variable source in
      Source.expect source (Symbol "->");
      Rec (f, x, computation source)
  | _ -> atom source

and atom source =
  match (Source.peek source, Source.peek_second source) with
  | Number number, _ ->
      Source.advance source;
      Number number
  | Symbol "-", Number number ->
      Source.advance source;
      Source.advance source;
      Number (-number)
  | Symbol "()", _ ->
      Source.advance source;
      Unit
  | Symbol "(", _ ->
      Source.advance source;
      let first = value source in
      if Source.accept source (Symbol ",") then begin
        let second = value source in
        Source.expect source (Symbol ")");
        Pair (first, second)
      end
      else begin
        Source.expect source (Symbol ")");
        first
      end
  | Name name, _ when List.mem_assoc name primitives ->
      Source.advance source;
      Primitive (List.assoc name primitives)
  | Name name, _ when not (List.mem name keywords) ->
      Source.advance source;
      Variable name
  | _ -> Source.fail source "a value"

and computation source =
  match (Source.peek source, Source.peek_second source) with
  | Name "let", Symbol "(" ->
      Source.advance source;
      Source.advance source;
      let x = variable source in
      Source.expect source (Symbol ",");
      let y = variable source in
      Source.expect source (Symbol ")");
      Source.expect source (Symbol "=");
      let split = value source in
      Source.expect source (Name "in");
      Split (x, y, split, computation source)
  | Name "let", _ ->
      Source.advance source;
      let x = variable source in
      Source.expect source (Symbol "=");
      let bound = computation source in
      Source.expect source (Name "in");
      Let (x, bound, computation source)
  | Name "case", _ ->
      Source.advance source;
      let matched = value source in
      Source.expect source (Name "of");
      Source.expect source (Symbol "|");
      let label = Source.label source in
      let x = variable source in
      Source.expect source (Symbol "->");
      let first = computation source in
      Source.expect source (Symbol "|");
      let y = variable source in
      Source.expect source (Symbol "->");
      let other = computation source in
      Source.expect source (Name "end");
      Case (matched, (label, x, first), (y, other))
  | Name "return", _ ->
      Source.advance source;
      Return (value source)
  | Name "newcont", _ ->
      Source.advance source;
      Newcont (atom source)
  | Name "resume", _ ->
      Source.advance source;
      Source.expect source (Symbol "{");
      let labels =
        if Source.peek source = Symbol "}" then []
        else Source.separated source ~by:(Symbol ",") Source.label
      in
      Source.expect source (Symbol "}");
      let k = atom source in
      Resume (labels, k, atom source)
  | Name "perform", _ ->
      Source.advance source;
      let label = Source.label source in
      Perform (label, atom source)
  | _ ->
      let f = atom source in
      Apply (f, atom source)

let of_string text = Source.parse computation text
