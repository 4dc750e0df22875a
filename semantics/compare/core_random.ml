(* SPDX-License-Identifier: MIT *)
(* Random programs of the core language: closed, and typed with few exceptions, so that most of them
   run for a while. *)

open Core_syntax
open QCheck.Gen

type typ = Integer | Arrow of language * typ * typ | Resumption of typ * typ

(* Types that the effects' performs take and give, and that the exceptions carry. *)
let effects =
  [
    ("Ask", (Integer, Integer));
    ("Tell", (Integer, Integer));
    ("Function", (Integer, Arrow (OCaml, Integer, Integer)));
    ("Apply", (Arrow (OCaml, Integer, Integer), Integer));
  ]

let exceptions = [ "Exit"; "Failure"; "Unhandled"; "Continuation_already_resumed" ]
let raised = [ "Exit"; "Failure" ]

let simple_type =
  frequencyl
    [
      (6, Integer); (2, Arrow (OCaml, Integer, Integer)); (1, Arrow (C, Integer, Integer));
      (1, Arrow (OCaml, Integer, Arrow (OCaml, Integer, Integer)));
    ]

(* Names shadow one another at random. *)
let fresh_name = oneofl [ "x"; "y"; "z"; "f"; "g"; "k" ]
let fresh_continuation = oneofl [ "k"; "k'" ]
let number = map (fun n -> Number n) (frequency [ (5, int_range 0 9); (1, int_range (-99) 99) ])

(* Where an expression stands: the language of the abstraction around it, the variables, and the effects and
   exceptions that are handled around it. In a loose program variables may be of another type than they should
   be. *)
type context = {
  language : language;
  scope : (string * typ) list;
  handled : string list;
  caught : string list;
  loose : bool;
}

let bind name typ context = { context with scope = (name, typ) :: context.scope }

(* The visible variables of a type. *)
let variables context wanted =
  let visible (seen, found) (name, typ) =
    if List.mem name seen then (seen, found)
    else (name :: seen, if typ = wanted || context.loose then name :: found else found)
  in
  snd (List.fold_left visible ([], []) context.scope)

let subset items =
  flatten_l (List.map (fun item -> map (fun keep -> if keep then [ item ] else []) bool) items)
  >|= List.concat

let labels = List.map fst

(* An expression of type [wanted], of about [size] nodes. It takes the random [state] itself, so
   that only the alternatives that are drawn are made. *)
let rec expression context wanted size state =
  let bound = variables context wanted in
  let variable = if bound = [] then [] else [ (6, map (fun x -> Variable x) (oneofl bound)) ] in
  if size <= 1 then frequency (variable @ [ (2, leaf context wanted) ]) state
  else
    let half = size / 2 in
    let only condition weight generator = if condition then [ (weight, generator) ] else [] in
    let in_ocaml = context.language = OCaml in
    let performs =
      List.filter_map
        (fun (label, (payload, result)) ->
          if result = wanted then
            let weight = if List.mem label context.handled then 12 else 1 in
            Some (weight, perform context label payload half)
          else None)
        effects
    in
    let continuations =
      List.filter_map
        (function
          | name, Resumption (argument, result) when result = wanted -> Some (name, argument)
          | _ -> None)
        context.scope
    in
    frequency
      (variable
      @ [ (1, leaf context wanted) ]
      @ (match wanted with
        | Integer -> [ (4, arithmetic context half) ]
        | Arrow (called, argument, result) ->
            [ (8, abstraction called context argument result (size - 1)) ]
        | Resumption _ -> [])
      @ [ (3, application context wanted half); (3, binding context wanted half) ]
      @ only (context.caught <> [] || not in_ocaml) 1 (raise_ context half)
      @ (if in_ocaml then performs else [])
      @ only in_ocaml 8 (match_ context wanted size)
      @ only (in_ocaml && context.handled <> []) 6 (meander context wanted half)
      @ only (in_ocaml && continuations <> []) 20
          (oneofl continuations >>= fun (k, argument) -> resume context k argument half))
      state

(* An expression that is always there. *)
and leaf context wanted =
  match wanted with
  | Integer -> number
  | Arrow (called, argument, result) -> abstraction called context argument result 1
  | Resumption _ -> raise_ context 1

and abstraction called context argument result size =
  fresh_name >>= fun name ->
  let inside = bind name argument { context with language = called } in
  map (fun body -> Abstraction (called, name, body)) (expression inside result (size - 1))

and arithmetic context half =
  frequencyl [ (8, Add); (6, Subtract); (4, Multiply); (1, Divide) ] >>= fun operator ->
  map2
    (fun left right -> Arithmetic (operator, left, right))
    (expression context Integer half) (expression context Integer half)

and application context wanted half =
  simple_type >>= fun argument ->
  frequencyl [ (4, context.language); (1, OCaml); (1, C) ] >>= fun called ->
  map2
    (fun f e -> Apply (f, e))
    (expression context (Arrow (called, argument, wanted)) half)
    (expression context argument half)

(* A call to C that calls OCaml back (§2), and goes on where the types allow it. *)
and meander context wanted half =
  let in_c = bind "y" Integer { context with language = C } in
  map3
    (fun argument (given, left) body ->
      let callback = Apply (Abstraction (OCaml, "z", body), argument) in
      let c_body = if wanted = Integer then Arithmetic (Add, left, callback) else callback in
      Apply (Abstraction (C, "y", c_body), given))
    (expression in_c Integer 2)
    (pair (expression context Integer 2) (expression in_c Integer 2))
    (expression (bind "z" Integer (bind "y" Integer context)) wanted half)

(* let x = e in e, of continuations too. *)
and binding context wanted half =
  let continuations =
    List.filter_map (function _, (Resumption _ as typ) -> Some typ | _ -> None) context.scope
  in
  frequency ((4, simple_type) :: (if continuations = [] then [] else [ (1, oneofl continuations) ]))
  >>= fun typ ->
  fresh_name >>= fun name ->
  map2
    (fun bound body -> Apply (Abstraction (context.language, name, body), bound))
    (expression context typ half)
    (expression (bind name typ context) wanted half)

and perform context label payload half =
  map (fun e -> Perform (label, e)) (expression context payload half)

and raise_ context half =
  let label = if context.caught = [] then oneofl raised else oneofl context.caught in
  map2 (fun label e -> Raise (label, e)) label (expression context Integer half)

and match_ context wanted size =
  frequency [ (3, return Integer); (1, simple_type) ] >>= fun matched ->
  subset exceptions >>= fun caught ->
  subset effects >>= fun handled ->
  let share = size / (3 + List.length caught + List.length handled) in
  let return_case =
    fresh_name >>= fun name ->
    map (fun e -> (name, e)) (expression (bind name matched context) wanted share)
  in
  let exception_case label =
    fresh_name >>= fun name ->
    map (fun e -> (label, (name, e))) (expression (bind name Integer context) wanted share)
  in
  let effect_case (label, (payload, result)) =
    fresh_name >>= fun name ->
    fresh_continuation >>= fun k ->
    (* The machine binds the payload over the continuation. *)
    let inside = bind name payload (bind k (Resumption (result, wanted)) context) in
    map (fun e -> (label, (name, k, e))) (expression inside wanted (share + 4))
  in
  let inside =
    {
      context with
      handled = labels handled @ context.handled;
      caught = List.filter (fun label -> List.mem label raised) caught @ context.caught;
    }
  in
  map2
    (fun (computation, return) (exceptions, effects) ->
      Match (computation, { return; exceptions; effects }))
    (pair (expression inside matched (size / 2)) return_case)
    (pair
       (flatten_l (List.map exception_case caught))
       (flatten_l (List.map effect_case handled)))

and resume context k argument half =
  let k = Variable k in
  frequency
    [
      (6, map (continue k) (expression context argument half));
      ( 1,
        map2 (discontinue k)
          (oneofl (if context.caught = [] then raised else context.caught))
          (expression context Integer half) );
      ( 2,
        simple_type >>= fun given ->
        fresh_name >>= fun name ->
        map2
          (fun body e -> Apply (Apply (k, Abstraction (OCaml, name, body)), e))
          (expression (bind name given context) argument half)
          (expression context given half) );
    ]

(* A whole program: execution begins in C, most often with a callback. *)
let program =
  int_range 8 80 >>= fun size ->
  frequencyl [ (30, false); (1, true) ] >>= fun loose ->
  let context = { language = C; scope = []; handled = []; caught = []; loose } in
  let inside = bind "x" Integer { context with language = OCaml } in
  frequency
    [
      ( 20,
        map
          (fun body -> Apply (Abstraction (OCaml, "x", body), Number 0))
          (expression inside Integer size) );
      (1, expression context Integer size);
    ]

(* Shrinking *)

let rec shrink expression yield =
  let sub rebuild part = shrink part (fun part -> yield (rebuild part)) in
  if expression <> Number 0 then yield (Number 0);
  match expression with
  | Number n -> if n > 1 || n < 0 then yield (Number 1)
  | Variable _ -> ()
  | Abstraction (language, x, e) -> sub (fun e -> Abstraction (language, x, e)) e
  | Arithmetic (operator, e1, e2) ->
      yield e1;
      yield e2;
      sub (fun e1 -> Arithmetic (operator, e1, e2)) e1;
      sub (fun e2 -> Arithmetic (operator, e1, e2)) e2
  | Apply (e1, e2) ->
      yield e1;
      yield e2;
      (match e1 with Abstraction (_, _, body) -> yield body | _ -> ());
      sub (fun e1 -> Apply (e1, e2)) e1;
      sub (fun e2 -> Apply (e1, e2)) e2
  | Raise (label, e) ->
      yield e;
      sub (fun e -> Raise (label, e)) e
  | Perform (label, e) ->
      yield e;
      sub (fun e -> Perform (label, e)) e
  | Match (e, ({ return = x, return; exceptions; effects } as handler)) ->
      yield e;
      yield return;
      let without rebuild cases =
        List.iteri
          (fun index _ -> yield (rebuild (List.filteri (fun i _ -> i <> index) cases)))
          cases
      in
      without (fun exceptions -> Match (e, { handler with exceptions })) exceptions;
      without (fun effects -> Match (e, { handler with effects })) effects;
      sub (fun e -> Match (e, handler)) e;
      sub (fun return -> Match (e, { handler with return = (x, return) })) return;
      let each rebuild part cases =
        List.iteri
          (fun index case ->
            part case (fun changed ->
                let replace i case = if i = index then changed else case in
                yield (rebuild (List.mapi replace cases))))
          cases
      in
      each
        (fun exceptions -> Match (e, { handler with exceptions }))
        (fun (label, (x, e)) yield -> shrink e (fun e -> yield (label, (x, e))))
        exceptions;
      each
        (fun effects -> Match (e, { handler with effects }))
        (fun (label, (x, k, e)) yield -> shrink e (fun e -> yield (label, (x, k, e))))
        effects

let arbitrary = QCheck.make ~print:(to_string ~margin:100) ~shrink program
