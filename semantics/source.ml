(* SPDX-License-Identifier: MIT *)
(* The tokens of both concrete syntaxes, and how a parser takes them. *)

type token =
  | Number of int
  | Name of string  (* a variable or keyword: begins with a small letter *)
  | Label of string  (* begins with a capital letter *)
  | Symbol of string
  | End

(* Where in the text, counted from 1, and what is wrong there. *)
exception Error of { line : int; column : int; message : string }

type t = { mutable tokens : (token * int * int) list }

let is_digit = function '0' .. '9' -> true | _ -> false
let is_small = function 'a' .. 'z' | '_' -> true | _ -> false
let is_capital = function 'A' .. 'Z' -> true | _ -> false
let is_inside c = is_small c || is_capital c || is_digit c || c = '\''

let symbols = [ "->"; "()"; "("; ")"; "{"; "}"; ","; "|"; "="; "+"; "-"; "*"; "/" ]

(* Comments are OCaml's, without strings in them. *)
let of_string text =
  let length = String.length text in
  let line = ref 1 and line_start = ref 0 in
  let fail index message =
    raise (Error { line = !line; column = index - !line_start + 1; message })
  in
  let newline index =
    incr line;
    line_start := index + 1
  in
  let starts index word =
    index + String.length word <= length && String.sub text index (String.length word) = word
  in
  let rec while_inside inside index =
    if index < length && inside text.[index] then while_inside inside (index + 1) else index
  in
  let rec comment depth index =
    if index >= length then fail index "this comment has no end"
    else if starts index "(*" then comment (depth + 1) (index + 2)
    else if starts index "*)" then if depth = 1 then index + 2 else comment (depth - 1) (index + 2)
    else begin
      if text.[index] = '\n' then newline index;
      comment depth (index + 1)
    end
  in
  let rec scan index tokens =
    let token behind token =
      scan behind ((token, !line, index - !line_start + 1) :: tokens)
    in
    if index >= length then List.rev ((End, !line, index - !line_start + 1) :: tokens)
    else
      match text.[index] with
      | '\n' ->
          newline index;
          scan (index + 1) tokens
      | ' ' | '\t' | '\r' -> scan (index + 1) tokens
      | '(' when starts index "(*" -> scan (comment 0 index) tokens
      | character when is_digit character -> (
          let behind = while_inside is_digit index in
          match int_of_string_opt (String.sub text index (behind - index)) with
          | Some number -> token behind (Number number)
          | None -> fail index "this number is too large")
      | character when is_small character ->
          let behind = while_inside is_inside index in
          token behind (Name (String.sub text index (behind - index)))
      | character when is_capital character ->
          let behind = while_inside is_inside index in
          token behind (Label (String.sub text index (behind - index)))
      | character -> (
          match List.find_opt (starts index) symbols with
          | Some symbol -> token (index + String.length symbol) (Symbol symbol)
          | None -> fail index (Printf.sprintf "the character %C means nothing" character))
  in
  { tokens = scan 0 [] }

let peek source =
  match source.tokens with (token, _, _) :: _ -> token | [] -> End

let peek_second source =
  match source.tokens with _ :: (token, _, _) :: _ -> token | _ -> End

let advance source =
  match source.tokens with [] | [ _ ] -> () | _ :: rest -> source.tokens <- rest

let describe = function
  | Number number -> string_of_int number
  | Name text | Label text | Symbol text -> "`" ^ text ^ "'"
  | End -> "the end of the program"

let fail source wanted =
  let token, line, column =
    match source.tokens with first :: _ -> first | [] -> (End, 1, 1)
  in
  let message = Printf.sprintf "%s was expected, not %s" wanted (describe token) in
  raise (Error { line; column; message })

let accept source token =
  peek source = token
  && begin
       advance source;
       true
     end

let expect source token = if not (accept source token) then fail source (describe token)

(* A variable that is none of the keywords. *)
let variable source ~keywords =
  match peek source with
  | Name name when not (List.mem name keywords) ->
      advance source;
      name
  | _ -> fail source "a variable"

let label source =
  match peek source with
  | Label label ->
      advance source;
      label
  | _ -> fail source "a label, which begins with a capital letter,"

(* [separated source ~by one] reads one or more. *)
let rec separated source ~by one =
  let first = one source in
  first :: (if accept source by then separated source ~by one else [])

(* [parse program text]: all of the text. Raises Error. *)
let parse program text =
  let source = of_string text in
  let parsed = program source in
  if peek source <> End then fail source "the end of the program";
  parsed
