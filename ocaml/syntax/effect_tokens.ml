(* Where `effect` is a keyword, and the tokens that the stock parser reads in its place.

   The stock parser decides. It runs once over the source's tokens, and at each identifier `effect`
   it is asked whether it can go on with that identifier and the token behind it. If it can, the
   identifier stays: a program that stock OCaml accepts reads exactly as before. If it cannot, then

     effect E : t             where a definition may begin, becomes   exception[@haft.effect] E : t
     effect p, k / effect p k where a pattern may begin, becomes      [%haft.effect? p, k]

   in tokens that stand at the places of those they replace, so that every location is the user's
   own. Effect_cases gives both their meaning. *)

module Machine = Parser.MenhirInterpreter

(* What was written for [effect]: in attributes and extensions no other program uses. *)
let marker = "haft.effect"

type source_token = Parser.token * Lexing.position * Lexing.position

(* What becomes of one token of the source: itself or a replacement, then the tokens added. *)
type edit = { replacement : Parser.token option; added : Parser.token list }

let unchanged = { replacement = None; added = [] }

let error (_, loc_start, _) (_, _, loc_end) (message, hint) =
  let loc = { Location.loc_start; loc_end; loc_ghost = false } in
  raise
    (Location.Error
       (Location.errorf ~loc ~sub:[ Location.msg "@[Hint: %s@]" hint ] "%s" message))

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
  let rec attributes index =
    if token_at tokens index = LBRACKETAT then attributes (behind_group tokens index) else index
  in
  Option.map attributes (behind index)

let ends_pattern (token : Parser.token) =
  closes token
  || match token with MINUSGREATER | WHEN | BAR | AS | EQUAL | COLON | IN -> true | _ -> false

(* The index of the comma that parts the effect's pattern, which begins at [index], from its
   continuation. *)
let rec comma tokens index =
  match token_at tokens index with
  | COMMA -> Some index
  | token when ends_pattern token -> None
  | token when opens token -> comma tokens (behind_group tokens index)
  | _ -> comma tokens (index + 1)

(* The last token of the effect's pattern, that of the continuation's, and whether a comma stands
   between them, for the `effect` at [index]. *)
let effect_pattern (tokens : source_token array) index =
  let effect_token = tokens.(index) in
  let no_continuation last =
    error effect_token tokens.(last) ("This effect case names no continuation.", written)
  in
  match comma tokens (index + 1) with
  | Some comma -> (
      match behind_simple_pattern tokens (comma + 1) with
      | Some behind -> (comma - 1, behind - 1, true)
      | None -> no_continuation comma)
  | None -> (
      match behind_simple_pattern tokens (index + 1) with
      | None -> no_continuation index
      | Some continuation -> (
          match behind_simple_pattern tokens continuation with
          | None -> no_continuation (continuation - 1)
          | Some behind when ends_pattern (token_at tokens behind) ->
              (continuation - 1, behind - 1, false)
          | Some behind ->
              error effect_token tokens.(behind)
                ("This effect case has more than an effect and a continuation.", written)))

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
      try settle (Machine.offer checkpoint token) with Syntaxerr.Error _ -> Refused)
  | Finished | Refused -> Refused

let accepts state tokens = List.fold_left read state tokens <> Refused

(* The edits that make the stock grammar's program of [tokens]. What follows a syntax error is left
   as it is, for the stock parser to report the error. *)
let edits start (tokens : source_token array) =
  let edits = Array.make (Array.length tokens) unchanged in
  let replace index replacement = edits.(index) <- { edits.(index) with replacement } in
  (* Of two additions behind one token, the inner pattern's, found later, comes first. *)
  let add index added =
    edits.(index) <- { edits.(index) with added = added @ edits.(index).added }
  in
  let at index token =
    let _, start, stop = tokens.(index) in
    (token, start, stop)
  in
  let is_identifier state index =
    let behind =
      match (token_at tokens (index + 1), token_at tokens (index + 2)) with
      | (UIDENT _ | LIDENT _), COLON -> 2
      | _ -> 1
    in
    accepts state (Array.to_list (Array.sub tokens index (behind + 1)))
  in
  let rec walk state index =
    if index < Array.length tokens && state <> Refused then
      match token_at tokens index with
      | LIDENT "effect" when not (is_identifier state index) -> keyword state index
      | _ -> walk (read_edited state index) (index + 1)
  and read_edited state index =
    let { replacement; added } = edits.(index) in
    let first =
      match replacement with Some token -> at index token | None -> tokens.(index)
    in
    List.fold_left (fun state token -> read state (at index token)) (read state first) added
  and keyword state index =
    let may_come possible = accepts state (List.map (at index) possible) in
    (match (token_at tokens (index + 1), token_at tokens (index + 2)) with
    | UIDENT _, COLON when may_come [ EXCEPTION ] ->
        replace index (Some Parser.EXCEPTION);
        add index [ Parser.LBRACKETAT; LIDENT marker; RBRACKET ]
    | LIDENT name, COLON when may_come [ EXCEPTION ] ->
        error tokens.(index + 1) tokens.(index + 1)
          ( Printf.sprintf "The effect %s needs a name that begins with a capital letter." name,
            "an effect is a constructor of Effect.t, as in `effect Read : in_channel -> string'." )
    | _ ->
        (* `0 as` begins a pattern, and nothing else. *)
        if may_come [ INT ("0", None); AS ] then begin
          let last_of_effect, last_of_continuation, has_comma = effect_pattern tokens index in
          replace index (Some Parser.LBRACKETPERCENT);
          add index [ Parser.LIDENT marker; QUESTION ];
          if not has_comma then add last_of_effect [ Parser.COMMA ];
          add last_of_continuation [ Parser.RBRACKET ]
        end);
    walk (read_edited state index) (index + 1)
  in
  walk (settle start) 0;
  edits

(* The two readings *)

let rewind text =
  let lexbuf = Lexing.from_string text in
  Location.init lexbuf !Location.input_name;
  Docstrings.init ();
  Lexer.init ();
  Lexer.skip_hash_bang lexbuf;
  lexbuf

(* The tokens of [text], up to the first that the lexer refuses: the second reading reports it. *)
let source_tokens text =
  let warnings = Warnings.backup () in
  ignore (Warnings.parse_options false "-a");
  let lexbuf = rewind text in
  let rec collect tokens =
    match Lexer.token lexbuf with
    | token ->
        let tokens = (token, Lexing.lexeme_start_p lexbuf, Lexing.lexeme_end_p lexbuf) :: tokens in
        if token = EOF then tokens else collect tokens
    | exception Lexer.Error _ -> tokens
  in
  let tokens = Array.of_list (List.rev (collect [])) in
  Warnings.restore warnings;
  tokens

(* The lexer of the second reading: the source's tokens with the edits made. Added tokens have no
   width and stand where the token before them ends. *)
let edited_lexer edits =
  let index = ref 0 and added = ref [] in
  fun lexbuf ->
    match !added with
    | token :: rest ->
        added := rest;
        lexbuf.Lexing.lex_start_p <- lexbuf.Lexing.lex_curr_p;
        token
    | [] ->
        let token = Lexer.token lexbuf in
        let edit = if !index < Array.length edits then edits.(!index) else unchanged in
        incr index;
        added := edit.added;
        Option.value edit.replacement ~default:token

(* [parse grammar text] is the syntax tree of [text] by [grammar], one of the two below, with the
   markers in it. The lexer's and the parser's errors are the stock ones; Location.Error is raised
   for an effect case that is not complete. *)
let parse (start, grammar) text =
  let edits = edits (start Lexing.dummy_pos) (source_tokens text) in
  let lexbuf = rewind text in
  Location.input_lexbuf := Some lexbuf;
  try grammar (edited_lexer edits) lexbuf
  with Parser.Error ->
    let loc = Location.curr lexbuf in
    raise (Syntaxerr.Error (Syntaxerr.Other loc))

let implementation = (Parser.Incremental.implementation, Parser.implementation)
let interface = (Parser.Incremental.interface, Parser.interface)
