(* SPDX-License-Identifier: MIT *)
(* Where `effect` is a keyword, and the tokens that the stock parser reads in its place.

   The stock parser decides. It runs once over the source's tokens, and at each identifier `effect`
   it is asked whether it can go on with that identifier and the token behind it. If it can, the
   identifier stays: a program that stock OCaml accepts reads exactly as before. If it cannot, it
   reads the tokens on the right in its place:

     effect E : t             where a definition may begin:  exception[@haft.effect] E : t
     effect E = M.F           in the same way
     let effect E : t in      as an expression:              let exception[@haft.effect] E : t in
     effect p, k / effect p k where a pattern may begin:     [%haft.effect? p, k]
     effect[@a] p, k          there, too:                    [%haft.effect? _[@a], p, k]

   They stand at the places of those they replace, so that every location is the user's own.
   Effect_cases gives both their meaning. *)

module Machine = Parser.MenhirInterpreter

(* Name of the attribute and the extension that stand for [effect]. No other program uses it. *)
let marker = "haft.effect"

(* The module of the library that has all that generated code mentions. No program calls one so. *)
let library = "Haft__syntax"

type source_token = Parser.token * Lexing.position * Lexing.position

(* Result of one token of the source: itself, a replacement or nothing, then the tokens added. *)
type edit = { skipped : bool; replacement : Parser.token option; added : Parser.token list }

let unchanged = { skipped = false; replacement = None; added = [] }

let location (_, loc_start, _) (_, _, loc_end) = { Location.loc_start; loc_end; loc_ghost = false }

let error first last (message, hint) =
  let sub = [ Location.msg "@[Hint: %s@]" hint ] in
  Location.errorf ~loc:(location first last) ~sub "%s" message

let written = "write an effect case as `effect (E x), k -> ...' or `effect (E x) k -> ...'"

(* Brackets and the extent of patterns *)

let opens : Parser.token -> bool = function
  | LPAREN | LBRACE | LBRACELESS | LBRACKET | LBRACKETBAR | LBRACKETLESS | LBRACKETGREATER
  | LBRACKETAT | LBRACKETATAT | LBRACKETATATAT | LBRACKETPERCENT | LBRACKETPERCENTPERCENT | BEGIN
  | STRUCT | SIG | OBJECT ->
      true
  | _ -> false

let closes : Parser.token -> bool = function
  | RPAREN | RBRACE | GREATERRBRACE | RBRACKET | BARRBRACKET | GREATERRBRACKET | END | EOF -> true
  | _ -> false

let token_at (tokens : source_token array) index : Parser.token =
  if index < Array.length tokens then
    let token, _, _ = tokens.(index) in
    token
  else EOF

(* Whether only scopes tell which modules have an Effect that is Stdlib's: the program names Stdlib
   as a whole, to define such a module or to give it another name, and has paths that end with
   Effect. *)
let needs_stdlib tokens =
  let followed_by is_right name =
    let found = ref false in
    Array.iteri
      (fun index (token, _, _) -> if token = name && is_right (token_at tokens (index + 1)) then found := true)
      tokens;
    !found
  in
  followed_by (( <> ) Parser.DOT) (UIDENT "Stdlib") && followed_by (( = ) (Parser.UIDENT "Effect")) DOT

(* The index behind the bracket that closes the one at [index]. *)
let rec behind_group tokens index =
  let rec inside index =
    let token = token_at tokens index in
    if token = EOF then index
    else if closes token then index + 1
    else if opens token then inside (behind_group tokens index)
    else inside (index + 1)
  in
  inside (index + 1)

let rec behind_attributes tokens index =
  if token_at tokens index = LBRACKETAT then behind_attributes tokens (behind_group tokens index) else index

let behind_extension tokens index =
  let rec behind_name index = if token_at tokens index = DOT then behind_name (index + 2) else index in
  if token_at tokens index = PERCENT then behind_name (index + 2) else index

(* Where the `effect` at [index] declares an effect: the index of its name, behind an extension and
   attributes, and the index behind the name. *)
let declared_name tokens index =
  let name = behind_attributes tokens (behind_extension tokens (index + 1)) in
  match (token_at tokens name, token_at tokens (name + 1), token_at tokens (name + 2)) with
  | (UIDENT _ | LIDENT _ | TRUE | FALSE), _, _ -> Some (name, name + 1)
  | LPAREN, RPAREN, _ | LBRACKET, RBRACKET, _ -> Some (name, name + 2)
  | LPAREN, COLONCOLON, RPAREN -> Some (name, name + 3)
  | _ -> None

(* The index behind the simple pattern that begins at [index], or none. *)
let behind_simple_pattern tokens index =
  let rec behind index =
    match token_at tokens index with
    | UIDENT _ when token_at tokens (index + 1) = DOT -> behind (index + 2)
    | UIDENT _ | LIDENT _ | UNDERSCORE | INT _ | CHAR _ | STRING _ | FLOAT _ | TRUE | FALSE ->
        Some (index + 1)
    | BACKQUOTE | HASH | MINUS | MINUSDOT | PLUS | PLUSDOT -> Some (index + 2)
    | LPAREN | LBRACE | LBRACKET | LBRACKETBAR | LBRACKETPERCENT -> Some (behind_group tokens index)
    | _ -> None
  in
  Option.map (behind_attributes tokens) (behind index)

let ends_pattern (token : Parser.token) =
  closes token
  ||
  match token with
  | MINUSGREATER | WHEN | BAR | AS | EQUAL | COLON | IN | LET | TYPE | OPEN | EXTERNAL | INCLUDE -> true
  | _ -> false

(* The index of the comma that parts the effect's pattern, which begins at [index], from its
   continuation. *)
let rec comma tokens index =
  match token_at tokens index with
  | COMMA -> Some index
  | token when ends_pattern token -> None
  | token when opens token -> comma tokens (behind_group tokens index)
  | _ -> comma tokens (index + 1)

(* The last token of the effect's pattern, which begins at [first], that of the continuation's, and
   whether a comma stands between them, for the `effect` at [index]; or what is wrong, and the last
   token of the effect's pattern and whether a comma follows, where there is one. *)
let effect_pattern (tokens : source_token array) index ~first =
  let effect_token = tokens.(index) in
  let no_continuation last found =
    Error (error effect_token tokens.(last) ("This effect case names no continuation.", written), found)
  in
  match comma tokens first with
  | Some comma -> (
      match behind_simple_pattern tokens (comma + 1) with
      | Some behind -> Ok (comma - 1, behind - 1, true)
      | None -> no_continuation comma (Some (comma, true)))
  | None -> (
      match behind_simple_pattern tokens first with
      | None -> no_continuation index None
      | Some continuation -> (
          match behind_simple_pattern tokens continuation with
          | None -> no_continuation (continuation - 1) (Some (continuation - 1, false))
          | Some behind when ends_pattern (token_at tokens behind) ->
              Ok (continuation - 1, behind - 1, false)
          | Some behind ->
              Error
                ( error effect_token tokens.(behind)
                    ("This effect case has more than an effect and a continuation.", written),
                  None )))

(* The layout of the source *)

let column (_, start, _) = start.Lexing.pos_cnum - start.Lexing.pos_bol

let begins_line (tokens : source_token array) index =
  index = 0
  ||
  let _, _, stop_before = tokens.(index - 1) and _, start, _ = tokens.(index) in
  stop_before.Lexing.pos_bol <> start.Lexing.pos_bol

let begins_item : Parser.token -> bool = function
  | LET | TYPE | MODULE | OPEN | EXCEPTION | VAL | EXTERNAL | INCLUDE | CLASS | SEMISEMI
  | LBRACKETATATAT | LBRACKETPERCENTPERCENT
  | LIDENT "effect" ->
      true
  | _ -> false

(* Whether an item can be expected at [index] by the layout: behind the beginning of the items, or
   right below the item before. *)
let is_laid_out_as_item tokens index =
  let rec item_above above =
    above >= 0
    &&
    if begins_line tokens above && column tokens.(above) <= column tokens.(index) then
      column tokens.(above) = column tokens.(index)
      && (begins_item (token_at tokens above) || token_at tokens above = AND)
    else item_above (above - 1)
  in
  index = 0
  ||
  match token_at tokens (index - 1) with
  | STRUCT | SEMISEMI -> true
  | _ -> begins_line tokens index && item_above (index - 1)

(* The stock parser as a judge *)

type 'a state = Reading of 'a Machine.checkpoint | Finished | Refused

let rec settle checkpoint =
  match checkpoint with
  | Machine.InputNeeded _ -> Reading checkpoint
  | Machine.Shifting _ | Machine.AboutToReduce _ -> settle (Machine.resume checkpoint)
  | Machine.Accepted _ -> Finished
  | Machine.HandlingError _ | Machine.Rejected -> Refused

let read state token =
  match state with
  | Reading checkpoint -> (
      try settle (Machine.offer checkpoint token)
      with Syntaxerr.Error _ | Syntaxerr.Escape_error -> Refused)
  | Finished | Refused -> Refused

let accepts state tokens = List.fold_left read state tokens <> Refused

(* The edits of a file in the making. [report] is told what is wrong with effect cases. *)
type editing = {
  tokens : source_token array;
  edits : edit array;
  report : Location.error -> unit;
  renames_stdlib : bool;  (** `Stdlib.Effect` becomes the library's *)
}

let start_editing ~renames_stdlib ~report tokens =
  { tokens; edits = Array.make (Array.length tokens) unchanged; report; renames_stdlib }

(* [token] in the place of the one at [index]. *)
let at editing index token =
  let _, start, stop = editing.tokens.(index) in
  (token, start, stop)

let replace editing index replacement =
  editing.edits.(index) <- { (editing.edits.(index)) with replacement = Some replacement }

(* Adds tokens behind one. The latest addition comes first: it is the inner pattern's. *)
let add editing index added =
  let edit = editing.edits.(index) in
  editing.edits.(index) <- { edit with added = added @ edit.added }

(* The token at [index] as it is edited. *)
let read_edited editing state index =
  let { skipped; replacement; added } = editing.edits.(index) in
  let state =
    match replacement with
    | _ when skipped -> state
    | Some token -> read state (at editing index token)
    | None -> read state editing.tokens.(index)
  in
  List.fold_left (fun state token -> read state (at editing index token)) state added

let is_rebinding { tokens; _ } index =
  match declared_name tokens index with
  | Some (name, behind) -> (
      match (token_at tokens name, token_at tokens behind, token_at tokens (behind + 1)) with
      | LIDENT _, _, _ -> false
      | _, EQUAL, UIDENT _ -> is_laid_out_as_item tokens index
      | _ -> false)
  | None -> false

(* Whether [let effect E : t] at [index] ends with [in]: otherwise it defines a function. *)
let is_local_declaration { tokens; _ } index =
  let rec ends_with_in index =
    match token_at tokens index with
    | IN -> true
    | EQUAL -> false
    | token when closes token -> false
    | token when opens token -> ends_with_in (behind_group tokens index)
    | _ -> ends_with_in (index + 1)
  in
  index > 0
  && token_at tokens (index - 1) = LET
  &&
  match declared_name tokens index with
  | Some (_, behind) -> token_at tokens behind = COLON && ends_with_in (behind + 1)
  | None -> false

let is_identifier ({ tokens; _ } as editing) state index =
  let last =
    match declared_name tokens index with
    | Some (_, behind) when token_at tokens behind = COLON -> behind
    | _ -> behind_attributes tokens (index + 1)
  in
  (not (is_rebinding editing index || is_local_declaration editing index))
  && accepts state
       (Array.to_list (Array.sub tokens index (min (last + 1) (Array.length tokens) - index)))

(* The `effect` at [index] is a keyword and declares an effect. *)
let declaration ({ tokens; _ } as editing) index =
  replace editing index Parser.EXCEPTION;
  add editing (behind_extension tokens (index + 1) - 1) [ Parser.LBRACKETAT; LIDENT marker; RBRACKET ]

(* The `effect` at [index] is a keyword and begins a pattern. *)
let pattern ({ tokens; _ } as editing) index =
  let first = behind_attributes tokens (index + 1) in
  let mark () =
    replace editing index Parser.LBRACKETPERCENT;
    if first > index + 1 then begin
      add editing index [ Parser.LIDENT marker; QUESTION; UNDERSCORE ];
      add editing (first - 1) [ Parser.COMMA ]
    end
    else add editing index [ Parser.LIDENT marker; QUESTION ]
  in
  match effect_pattern tokens index ~first with
  | Ok (last_of_effect, last_of_continuation, has_comma) ->
      mark ();
      if not has_comma then add editing last_of_effect [ Parser.COMMA ];
      add editing last_of_continuation [ Parser.RBRACKET ]
  | Error (error, found) -> (
      editing.report error;
      match found with
      | None ->
          let rec skip index =
            if not (ends_pattern (token_at tokens index)) then begin
              editing.edits.(index) <- { unchanged with skipped = true };
              skip (index + 1)
            end
          in
          replace editing index Parser.UNDERSCORE;
          skip (index + 1)
      | Some (last, has_comma) ->
          mark ();
          let continuation = [ Parser.UNDERSCORE; RBRACKET ] in
          add editing last (if has_comma then continuation else COMMA :: continuation))

(* The `effect` at [index] is a keyword: its edits. *)
let keyword ({ tokens; _ } as editing) state index =
  let may_come possible = accepts state (List.map (at editing index) possible) in
  let declared =
    match declared_name tokens index with
    | Some (name, behind) when may_come [ EXCEPTION ] -> Some (name, token_at tokens name, token_at tokens behind)
    | _ -> None
  in
  match declared with
  | Some (name, LIDENT text, COLON) ->
      declaration editing index;
      replace editing name (Parser.UIDENT (String.capitalize_ascii text));
      editing.report
        (error tokens.(name) tokens.(name)
           ( Printf.sprintf "The effect %s needs a name that begins with a capital letter." text,
             "an effect is a constructor of Effect.t, as in `effect Read : in_channel -> string'." ))
  | Some (_, (UIDENT _ | TRUE | FALSE | LPAREN | LBRACKET), (COLON | EQUAL)) -> declaration editing index
  | _ ->
      (* `0 as` begins a pattern, and nothing else. *)
      if may_come [ INT ("0", None); AS ] then pattern editing index

(* Reads the tokens from [index] up to [stop], and makes the edits that the stock grammar needs.
   Ends with the index of the token that is refused, or [stop]. *)
let rec walk editing state index stop =
  if index >= stop then (state, stop)
  else begin
    (match token_at editing.tokens index with
    | LIDENT "effect" when not (is_identifier editing state index) -> keyword editing state index
    | UIDENT "Stdlib" when editing.renames_stdlib -> (
        match (token_at editing.tokens (index + 1), token_at editing.tokens (index + 2)) with
        | DOT, UIDENT "Effect" -> replace editing index (Parser.UIDENT library)
        | _ -> ())
    | _ -> ());
    match read_edited editing state index with
    | Refused -> (Refused, index)
    | state -> walk editing state (index + 1) stop
  end

(* The readings *)

let rewind text =
  let lexbuf = Lexing.from_string text in
  Location.init lexbuf !Location.input_name;
  Docstrings.init ();
  Lexer.init ();
  Lexer.skip_hash_bang lexbuf;
  lexbuf

let without_warnings f =
  let warnings = Warnings.backup () in
  ignore (Warnings.parse_options false "-a");
  Fun.protect f ~finally:(fun () -> Warnings.restore warnings)

(* The next token that the lexer accepts. *)
let rec next_token lexbuf =
  match Lexer.token lexbuf with
  | token -> token
  | exception Lexer.Error _ ->
      Lexer.init ();
      next_token lexbuf

(* The tokens of [text]: up to the first that the lexer refuses, which the second reading reports;
   or with [tolerant], without those. *)
let source_tokens ?(tolerant = false) text =
  without_warnings @@ fun () ->
  let lexbuf = rewind text in
  let rec collect tokens =
    match (if tolerant then next_token else Lexer.token) lexbuf with
    | token ->
        let tokens = (token, Lexing.lexeme_start_p lexbuf, Lexing.lexeme_end_p lexbuf) :: tokens in
        if token = EOF then tokens else collect tokens
    | exception Lexer.Error _ -> tokens
  in
  Array.of_list (List.rev (collect []))

(* The lexer of the second reading: the source's tokens, by [lexer], with the edits made. Added
   tokens have no width and stand where the token before them ends. *)
let edited_lexer lexer edits =
  let index = ref 0 and added = ref [] in
  let rec next lexbuf =
    match !added with
    | token :: rest ->
        added := rest;
        lexbuf.Lexing.lex_start_p <- lexbuf.Lexing.lex_curr_p;
        token
    | [] ->
        let token = lexer lexbuf in
        let edit = if !index < Array.length edits then edits.(!index) else unchanged in
        incr index;
        added := edit.added;
        if edit.skipped then next lexbuf else Option.value edit.replacement ~default:token
  in
  next

(* [second_reading grammar lexer edits text] is the syntax tree. The lexer's and the parser's errors
   are the stock ones. *)
let second_reading grammar lexer edits text =
  let lexbuf = rewind text in
  Location.input_lexbuf := Some lexbuf;
  try grammar (edited_lexer lexer edits) lexbuf
  with Parser.Error | Syntaxerr.Escape_error ->
    let loc = Location.curr lexbuf in
    raise (Syntaxerr.Error (Syntaxerr.Other loc))

(* [parse grammar text] is the syntax tree of [text] by [grammar], one of the two below, with the
   markers in it. [report] is told of effect cases that are not complete. *)
let parse ~renames_stdlib ~report (start, grammar) text =
  let tokens = source_tokens text in
  let editing = start_editing ~renames_stdlib ~report tokens in
  ignore (walk editing (settle (start Lexing.dummy_pos)) 0 (Array.length tokens));
  second_reading grammar Lexer.token editing.edits text

let implementation = (Parser.Incremental.implementation, Parser.implementation)
let interface = (Parser.Incremental.interface, Parser.interface)
