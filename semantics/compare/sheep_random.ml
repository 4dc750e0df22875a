(* SPDX-License-Identifier: MIT *)
(* Random programs of the sheep calculus: closed, and typed with few exceptions, so that most of
   them run for a while. *)

open Sheep_syntax
open QCheck.Gen

type typ =
  | Integer
  | Truth
  | Nothing
  | Both of typ * typ
  | Function of typ * typ
  | Resumption of typ * typ  (* what it is resumed with, and what its computation returns *)

(* Types that the effects' performs take and give. *)
let effects =
  [
    ("Ask", (Integer, Integer));
    ("Tell", (Integer, Nothing));
    ("Get", (Nothing, Integer));
    ("Call", (Function (Integer, Integer), Integer));
  ]

type context = {
  scope : (string * typ) list;
  handled : string list;  (* around it *)
  loose : bool;  (* variables may be of another type than they should be *)
}

let bind name typ context = { context with scope = (name, typ) :: context.scope }

let simple_type =
  frequencyl
    [
      (6, Integer); (1, Truth); (1, Nothing); (1, Both (Integer, Truth));
      (2, Function (Integer, Integer)); (1, Function (Nothing, Integer));
    ]

let fresh_name = oneofl [ "x"; "y"; "z"; "f" ]
let fresh_continuation = oneofl [ "k"; "k'" ]

let visible context =
  List.fold_left
    (fun seen (name, typ) -> if List.mem_assoc name seen then seen else (name, typ) :: seen)
    [] context.scope

(* The visible variables of a type. *)
let variables context wanted =
  List.filter_map
    (fun (name, typ) -> if typ = wanted || context.loose then Some name else None)
    (visible context)

let number = map (fun n -> Number n) (frequency [ (5, int_range 0 9); (1, int_range (-99) 99) ])
let truth value = Inject ((if value then "True" else "False"), Unit)

let rec value context wanted size state =
  let bound = variables context wanted in
  let made =
    match wanted with
    | Integer -> number
    | Truth -> map truth bool
    | Nothing -> return Unit
    | Both (left, right) ->
        let half = size / 2 in
        map2 (fun v w -> Pair (v, w)) (value context left half) (value context right half)
    | Function (argument, result) ->
        fresh_name >>= fun x ->
        map
          (fun body -> Lambda (x, body))
          (computation (bind x argument context) result (size - 1))
    | Resumption _ -> return Unit
  in
  (if bound = [] then made
  else
    frequency
      [ (3, map (fun x -> Variable x) (oneofl bound)); ((if size > 2 then 2 else 1), made) ])
    state

(* A computation that returns a [wanted], of about [size] nodes. *)
and computation context wanted size state =
  let leaf =
    match wanted with
    | Resumption (argument, result) -> newcont context argument result 2
    | _ -> map (fun v -> Return v) (value context wanted 1)
  in
  if size <= 1 then leaf state
  else
    let half = size / 2 in
    let performs =
      List.filter_map
        (fun (label, (payload, result)) ->
          if result = wanted then
            Some
              ( (if List.mem label context.handled then 20 else 1),
                map (fun v -> Perform (label, v)) (value context payload half) )
          else None)
        effects
    in
    let made =
      match wanted with
      | Integer ->
          [
            ( 9,
              map3
                (fun primitive v w -> Apply (Primitive primitive, Pair (v, w)))
                (oneofl [ Add; Subtract; Multiply ])
                (value context Integer 1) (value context Integer 1) );
          ]
      | Truth ->
          [
            ( 18,
              map3
                (fun primitive v w -> Apply (Primitive primitive, Pair (v, w)))
                (oneofl [ Equal; Less ]) (value context Integer 1) (value context Integer 1) );
          ]
      | Resumption (argument, result) -> [ (36, newcont context argument result size) ]
      | _ -> [ (6, map (fun v -> Return v) (value context wanted size)) ]
    in
    frequency
      ([
         (3, leaf); (24, sequence context wanted half); (6, application context wanted half);
         (6, choice context wanted half); (6, split context wanted half);
         (15, start context wanted size);
       ]
      @ made @ performs @ performing context wanted size @ continue context wanted half)
      state

and newcont context argument result size =
  fresh_name >>= fun x ->
  map
    (fun body -> Newcont (Lambda (x, body)))
    (computation (bind x argument context) result (size - 1))

(* let x = M in N, of effects that are handled first of all. *)
and sequence context wanted half =
  simple_type >>= fun typ ->
  fresh_name >>= fun x ->
  map2
    (fun bound body -> Let (x, bound, body))
    (computation context typ half)
    (computation (bind x typ context) wanted half)

(* let x = perform L V in N, of an effect that is handled. *)
and performing context wanted size =
  if context.handled = [] then []
  else
    [
      ( 60,
        oneofl context.handled >>= fun label ->
        let payload, reply = List.assoc label effects in
        fresh_name >>= fun x ->
        map2
          (fun v body -> Let (x, Perform (label, v), body))
          (value context payload 2)
          (computation (bind x reply context) wanted (size - 4)) );
    ]

and application context wanted half =
  simple_type >>= fun argument ->
  map2
    (fun f v -> Apply (f, v))
    (value context (Function (argument, wanted)) half)
    (value context argument half)

and choice context wanted half =
  map3
    (fun bound yes no -> Let ("b", bound, Case (Variable "b", ("True", "u", yes), ("b", no))))
    (computation context Truth half)
    (computation context wanted half) (computation context wanted half)

and split context wanted half =
  pair fresh_name fresh_name >>= fun (x, y) ->
  map2
    (fun v body -> Split (x, y, v, body))
    (value context (Both (Integer, Truth)) half)
    (computation (bind y Truth (bind x Integer context)) wanted half)

(* A new continuation, resumed under a set of effects. *)
and start context wanted size =
  pair simple_type simple_type >>= fun (argument, result) ->
  labels >>= fun set ->
  let inside = { context with handled = set @ context.handled } in
  fresh_continuation >>= fun k ->
  newcont inside argument result (size / 2) >>= fun made ->
  let context = bind k (Resumption (argument, result)) context in
  let half = size / 2 in
  map
    (fun handled -> Let (k, made, handled))
    (frequency
       [
         (5, resume context wanted set k argument result half);
         (2, loop context wanted set k argument result half);
       ])

and labels =
  flatten_l
    (List.map (fun (label, _) -> map (fun keep -> if keep then [ label ] else []) bool) effects)
  >|= List.concat

(* Continuations in scope, resumed once more. *)
and continue context wanted half =
  let continuations =
    List.filter_map
      (function name, Resumption (argument, result) -> Some (name, argument, result) | _ -> None)
      (visible context)
  in
  if continuations = [] then []
  else
    [
      ( 24,
        oneofl continuations >>= fun (k, argument, result) ->
        labels >>= fun set -> resume context wanted set k argument result half );
    ]

(* resume {..} k v, and a case for each answer. *)
and resume context wanted set k argument result size =
  let share = size / (2 + List.length set) in
  let rec cases = function
    | [] -> computation context wanted 1
    | label :: rest ->
        let payload, reply = List.assoc label effects in
        fresh_name >>= fun x ->
        fresh_continuation >>= fun k ->
        let inside = bind k (Resumption (reply, result)) (bind x payload context) in
        map2
          (fun body other ->
            Case (Variable "r", (label, "p", Split (x, k, Variable "p", body)), ("r", other)))
          (computation inside wanted (share + 3))
          (cases rest)
  in
  fresh_name >>= fun x ->
  map3
    (fun v returned other ->
      Let ("r", Resume (set, Variable k, v), Case (Variable "r", (ret, x, returned), ("r", other))))
    (value context argument 2)
    (computation (bind x result context) wanted share)
    (cases set)

(* A recursive function that resumes with what it is given until the computation returns: the
   handlers of every day. Effects with another type of replies end it. *)
and loop context wanted set k argument result size =
  let share = size / (2 + List.length set) in
  let again = Variable "again" in
  let rec cases context = function
    | [] -> computation context wanted 1
    | label :: rest ->
        let payload, reply = List.assoc label effects in
        let inside = bind "x" payload context in
        let case =
          if reply = argument then
            map2
              (fun bound next -> Let ("y", bound, Apply (again, Pair (Variable "k", next))))
              (computation inside Integer share)
              (value (bind "y" Integer inside) reply 1)
          else computation (bind "k" (Resumption (reply, result)) inside) wanted share
        in
        map2
          (fun body other ->
            Case (Variable "r", (label, "p", Split ("x", "k", Variable "p", body)), ("r", other)))
          case (cases context rest)
  in
  map3
    (fun v returned other ->
      let answers = Case (Variable "r", (ret, "x", returned), ("r", other)) in
      let resume = Resume (set, Variable "k", Variable "v") in
      let body = Split ("k", "v", Variable "p", Let ("r", resume, answers)) in
      Apply (Rec ("again", "p", body), Pair (Variable k, v)))
    (value context argument 2)
    (computation (bind "x" result context) wanted share)
    (cases context set)

let program =
  int_range 8 55 >>= fun size ->
  frequencyl [ (30, false); (1, true) ] >>= fun loose ->
  let context = { scope = []; handled = []; loose } in
  frequency [ (3, start context Integer size); (1, computation context Integer size) ]

(* Shrinking *)

let rec shrink_value value yield =
  let sub rebuild part = shrink_value part (fun part -> yield (rebuild part)) in
  if value <> Unit then yield Unit;
  match value with
  | Variable _ | Primitive _ | Unit -> ()
  | Number n -> if n <> 0 then yield (Number 0)
  | Lambda (x, body) -> shrink body (fun body -> yield (Lambda (x, body)))
  | Rec (f, x, body) ->
      yield (Lambda (x, body));
      shrink body (fun body -> yield (Rec (f, x, body)))
  | Pair (v, w) ->
      yield v;
      yield w;
      sub (fun v -> Pair (v, w)) v;
      sub (fun w -> Pair (v, w)) w
  | Inject (label, v) ->
      yield v;
      sub (fun v -> Inject (label, v)) v

and shrink computation yield =
  let in_value rebuild part = shrink_value part (fun part -> yield (rebuild part)) in
  let sub rebuild part = shrink part (fun part -> yield (rebuild part)) in
  if computation <> Return Unit then yield (Return Unit);
  match computation with
  | Return v -> in_value (fun v -> Return v) v
  | Apply (v, w) ->
      yield (Return v);
      (match v with Lambda (_, body) | Rec (_, _, body) -> yield body | _ -> ());
      in_value (fun v -> Apply (v, w)) v;
      in_value (fun w -> Apply (v, w)) w
  | Split (x, y, v, body) ->
      yield body;
      in_value (fun v -> Split (x, y, v, body)) v;
      sub (fun body -> Split (x, y, v, body)) body
  | Case (v, (label, x, first), (y, other)) ->
      yield first;
      yield other;
      in_value (fun v -> Case (v, (label, x, first), (y, other))) v;
      sub (fun first -> Case (v, (label, x, first), (y, other))) first;
      sub (fun other -> Case (v, (label, x, first), (y, other))) other
  | Let (x, bound, body) ->
      yield bound;
      yield body;
      sub (fun bound -> Let (x, bound, body)) bound;
      sub (fun body -> Let (x, bound, body)) body
  | Newcont v ->
      yield (Return v);
      in_value (fun v -> Newcont v) v
  | Resume (labels, v, w) ->
      List.iter (fun label -> yield (Resume (List.filter (( <> ) label) labels, v, w))) labels;
      in_value (fun w -> Resume (labels, v, w)) w
  | Perform (label, v) ->
      yield (Return v);
      in_value (fun v -> Perform (label, v)) v

let arbitrary = QCheck.make ~print:(to_string ~margin:100) ~shrink program
