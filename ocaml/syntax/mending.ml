(* SPDX-License-Identifier: MIT *)
(* The tree of a file with syntax errors, for editors: right except where the file is wrong.

   The file is split by its layout: an item begins a line, in the column of the items around it.
   Each item is parsed by itself. An item that the parser refuses is mended. If it is a module with
   items of its own, these are mended in the same way; otherwise tokens are added and left out until
   the stock parser accepts the item. An item that cannot be mended so is left out. *)

open Effect_tokens

(* Tokens that may be missing. An expression or a pattern can stand between any two of the
   others. *)
let hole : Parser.token list = [ LPAREN; ASSERT; FALSE; RPAREN ]

let missing : Parser.token list list =
  [
    [ RPAREN ]; [ END ]; [ RBRACKET ]; [ RBRACE ]; [ BARRBRACKET ]; [ GREATERRBRACE ]; [ DONE ]; [ IN ];
    [ MINUSGREATER ]; [ THEN ]; [ DO ]; [ WITH ]; [ EQUAL ]; [ UNDERSCORE ]; hole;
  ]

let depth_behind depth : Parser.token -> int = function
  | STRUCT | SIG | OBJECT | BEGIN -> depth + 1
  | END -> depth - 1
  | _ -> depth

(* The fewest of the missing tokens, at most [most] times, after which [is_right] holds of the
   parser and of the tokens. *)
let supply editing index state ~most ~is_right =
  let tries = ref 5000 in
  let rec supply state ~supplied ~last depth =
    if is_right state supplied then Some supplied
    else if depth = 0 then None
    else List.find_map (supply_with state ~supplied ~last depth) missing
  and supply_with state ~supplied ~last depth tokens =
    decr tries;
    (* (Any expression can be applied to another one.) *)
    if !tries < 0 || (tokens == hole && last == hole) then None
    else
      let next = List.fold_left (fun state token -> read state (at editing index token)) state tokens in
      if next = Refused then None
      else supply next ~supplied:(supplied @ tokens) ~last:tokens (depth - 1)
  in
  let rec deeper depth =
    if depth > most then None
    else
      match supply state ~supplied:[] ~last:[] depth with
      | None -> deeper (depth + 1)
      | found -> found
  in
  deeper 0

(* Whether the tokens from [first] up to [stop] and the [supplied] ones end an item: another one may
   follow, at the same depth. *)
let is_complete editing first stop state supplied =
  let rec depth_at index depth =
    if index = stop then depth
    else
      let { skipped; added; _ } = editing.edits.(index) in
      let depth = if skipped then depth else depth_behind depth (token_at editing.tokens index) in
      depth_at (index + 1) (List.fold_left depth_behind depth added)
  in
  accepts state [ at editing stop Parser.SEMISEMI ]
  && List.fold_left depth_behind (depth_at first 0) supplied = 0

let set_edits editing first stop edit = Array.fill editing.edits first (stop - first) edit

(* Adds tokens between those at [index - 1] and [index]: the state behind them. *)
let insert editing index tokens state =
  let edit = editing.edits.(index - 1) in
  editing.edits.(index - 1) <- { edit with added = edit.added @ tokens };
  List.fold_left (fun state token -> read state (at editing (index - 1) token)) state tokens

(* The items from [first] up to [stop], of which there is at least one token more. [refused] is told
   the index of a token that is refused, or behind an item that is not complete. The parser's state
   behind them. *)
let rec mend_items editing ~refused state first stop =
  let items_column = if first < stop then column editing.tokens.(first) else 0 in
  let rec item_behind index =
    if
      index >= stop
      || begins_line editing.tokens index
         && column editing.tokens.(index) <= items_column
         && begins_item (token_at editing.tokens index)
    then index
    else item_behind (index + 1)
  in
  let rec mend state first =
    if first >= stop then state
    else
      let behind = item_behind (first + 1) in
      let state_behind, index = walk editing state first behind in
      if is_complete editing first behind state_behind [] then mend state_behind behind
      else begin
        set_edits editing first behind unchanged;
        (* Where an item inside is not complete, what follows it was read as its end. *)
        let told_before = ref false in
        let refused_inside inside =
          if inside <= index then told_before := true;
          refused inside
        in
        let state_behind = mend_item editing ~refused:refused_inside state first behind in
        if not !told_before then refused index;
        mend state_behind behind
      end
  in
  mend state first

and mend_item editing ~refused state first stop =
  let or_else next = function Some state -> state | None -> set_edits editing first stop unchanged; next () in
  mend_inner_items editing ~refused state first stop
  |> or_else @@ fun () ->
     mend_tokens editing state first stop
     |> or_else @@ fun () ->
        set_edits editing first stop { unchanged with skipped = true };
        state

(* An item with items inside, one a line. *)
and mend_inner_items editing ~refused state first stop =
  let rec first_inner index =
    if index + 1 >= stop then None
    else
      match token_at editing.tokens index with
      | STRUCT | SIG
        when begins_line editing.tokens (index + 1)
             && column editing.tokens.(index + 1) > column editing.tokens.(first) ->
          Some (index + 1)
      | _ -> first_inner (index + 1)
  in
  Option.bind (first_inner first) @@ fun inner ->
  let rec behind_inner index =
    if
      index >= stop
      || (begins_line editing.tokens index && column editing.tokens.(index) < column editing.tokens.(inner))
    then index
    else behind_inner (index + 1)
  in
  let behind = behind_inner inner in
  match walk editing state first inner with
  | Refused, _ -> None
  | state, _ ->
      let state = mend_items editing ~refused state inner behind in
      let ended, _ = walk editing state behind stop in
      if is_complete editing first stop ended [] then Some ended
      else begin
        set_edits editing behind stop { unchanged with skipped = true };
        let ended = insert editing stop [ Parser.END ] state in
        if is_complete editing first stop ended [] then Some ended else None
      end

and mend_tokens editing state first stop =
  (* Tokens are added once before each of the source's: those may have a meaning that [goes_on] does
     not see. *)
  let rec mend ?(behind_added = false) state index =
    if index >= stop then
      supply editing stop state ~most:7 ~is_right:(is_complete editing first stop)
      |> Option.map (fun tokens -> insert editing stop tokens state)
    else
      match walk editing state index (index + 1) with
      | Refused, _ ->
          editing.edits.(index) <- unchanged;
          let goes_on state _ =
            accepts state
              (Array.to_list (Array.sub editing.tokens index (min 2 (stop - index))))
          in
          let added =
            if index = first || behind_added then None
            else supply editing index state ~most:2 ~is_right:goes_on
          in
          (match added with
          | Some tokens -> mend ~behind_added:true (insert editing index tokens state) index
          | _ ->
              editing.edits.(index) <- { unchanged with skipped = true };
              mend state (index + 1))
      | state, _ -> mend state (index + 1)
  in
  mend state first

let begins_with word text place =
  let length = String.length word in
  place + length <= String.length text && String.sub text place length = word

let place error = error.Location.main.loc.loc_start.Lexing.pos_cnum

(* [parse grammar text] as Effect_tokens.parse does; but errors are reported, too, and the tree is
   that of what is left. Raises the first error if nothing is. *)
let parse ~renames_stdlib ~report ((start, grammar) as whole) text =
  let found = ref [] in
  let collect error =
    if not (List.exists (fun other -> place error = place other) !found) then found := error :: !found
  in
  match Effect_tokens.parse ~renames_stdlib ~report:collect whole text with
  | tree ->
      List.iter report !found;
      tree
  | exception ((Syntaxerr.Error _ | Lexer.Error _) as first) -> (
      match Location.error_of_exn first with
      | None | Some `Already_displayed -> raise first
      | Some (`Ok first_error) ->
          found := [];
          let tokens = source_tokens ~tolerant:true text in
          let editing = start_editing ~renames_stdlib ~report:collect tokens in
          let refused index =
            collect (Location.errorf ~loc:(location tokens.(index) tokens.(index)) "Syntax error")
          in
          let stop = Array.length tokens - 1 in
          ignore (mend_items editing ~refused (settle (start Lexing.dummy_pos)) 0 stop);
          let tree =
            try without_warnings (fun () -> second_reading grammar next_token editing.edits text)
            with Syntaxerr.Error _ -> raise first
          in
          (* A token may seem wrong only because of an item before that is not complete; and what
             the lexer refuses is missing everywhere. *)
          let earlier error = place error < place first_error in
          (* Read as an application of a variable to what an incomplete item before it ends with. *)
          let is_declaration error = earlier error && begins_with "effect" text (place error) in
          (match first with
          | Syntaxerr.Error (Other _) when List.exists earlier !found -> List.iter report !found
          | Syntaxerr.Error _ when List.exists is_declaration !found -> List.iter report !found
          | Syntaxerr.Error _ ->
              report first_error;
              List.iter report (List.filter (fun error -> place error <> place first_error) !found)
          | _ -> report first_error);
          tree)
