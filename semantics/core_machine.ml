(* SPDX-License-Identifier: MIT *)
(* The abstract machine of "Retrofitting effect handlers onto OCaml", §4.2 and figure 2. Every rule
   stands here under its name, in the figure's order.

   Two rules are not in the figure and are taken only where a run asks for them. ResumeAgain makes
   continuations one-shot (§5.2). EffFwdC lets effects pass through frames of C, which the library
   does and OCaml 5 refuses: the frames become part of the continuation. *)

open Core_syntax

type value =
  | Number of int
  | Continuation of { fibers : fiber list; shot : int }  (* k; [shot] tells captures apart *)
  | Closure of language * string * expression * environment
  | Effect of label * fiber list  (* eff l k *)
  | Exception of label  (* exn l *)

and frame =
  | Argument of expression * environment  (* <e, env>a *)
  | Function of value  (* <v>f *)
  | Left of operator * expression * environment  (* <op e, env>b1 *)
  | Right of operator * int  (* <op n>b2 *)

and fiber = {
  frames : frame list;
  handler : handler;
  scope : environment;
  over_c : frame list option;
      (* in continuations, by EffFwdC: the frames of C between this fiber and the next *)
}

and environment = (string * value) list

type ocaml_stack = Empty | Fibers of fiber list * c_stack
and c_stack = { c_frames : frame list; below : ocaml_stack }

type stack = In_c of c_stack | In_ocaml of fiber list * c_stack
type term = Expression of expression | Value of value
type configuration = { term : term; environment : environment; stack : stack }

(* An integer is a value as it stands. *)
let to_term : expression -> term = function
  | Number n -> Value (Number n)
  | expression -> Expression expression

let identity_handler = { return = ("x", Variable "x"); exceptions = []; effects = [] }
let identity_fiber = { frames = []; handler = identity_handler; scope = []; over_c = None }

(* ||e, 0, [[], .]c|| *)
let initial expression =
  { term = to_term expression; environment = []; stack = In_c { c_frames = []; below = Empty } }

(* Integers wrap as OCaml's; a division by zero has no value. *)
let arithmetic operator left right =
  match operator with
  | Add -> Some (left + right)
  | Subtract -> Some (left - right)
  | Multiply -> Some (left * right)
  | Divide -> if right = 0 then None else Some (left / right)

(* (c) Administrative reductions: the rule and the new (term, environment, frames). *)
let administrative term env frames =
  match (term, frames) with
  | Expression (Variable x), _ -> (
      match List.assoc_opt x env with
      | Some value -> Some ("Var", (Value value, env, frames))
      | None -> None)
  | Expression (Arithmetic (operator, e1, e2)), _ ->
      Some ("Arith1", (to_term e1, env, Left (operator, e2, env) :: frames))
  | Value (Number n1), Left (operator, e2, env) :: frames ->
      Some ("Arith2", (to_term e2, env, Right (operator, n1) :: frames))
  | Value (Number n2), Right (operator, n1) :: frames -> (
      match arithmetic operator n1 n2 with
      | Some n -> Some ("Arith3", (Value (Number n), env, frames))
      | None -> None)
  | Expression (Apply (e1, e2)), _ ->
      Some ("App1", (to_term e1, env, Argument (e2, env) :: frames))
  | Expression (Abstraction (language, x, e)), _ ->
      Some ("App2", (Value (Closure (language, x, e, env)), env, frames))
  | Value (Closure _ as f), Argument (e2, env2) :: frames ->
      Some ("App3", (to_term e2, env2, Function f :: frames))
  | Value (Continuation _ as k), Argument (e1, env1) :: (Argument _ :: _ as frames) ->
      Some ("Resume1", (to_term e1, env1, Function k :: frames))
  | Value (Closure _ as f), (Function (Continuation _) as k) :: Argument (e2, env2) :: frames ->
      Some ("Resume2", (to_term e2, env2, k :: Function f :: frames))
  | Expression (Perform (l, e)), _ ->
      Some ("Perform", (to_term e, env, Function (Effect (l, [ identity_fiber ])) :: frames))
  | Expression (Raise (l, e)), _ ->
      Some ("Raise", (to_term e, env, Function (Exception l) :: frames))
  | _ -> None

let in_c term environment c_frames below =
  { term; environment; stack = In_c { c_frames; below } }

let in_ocaml term environment fibers c_stack =
  { term; environment; stack = In_ocaml (fibers, c_stack) }

(* (d) C reductions *)
let c_step term env { c_frames; below } =
  match administrative term env c_frames with
  | Some (rule, (term, env, frames)) -> Some ([ "AdminC"; rule ], in_c term env frames below)
  | None -> (
      match (term, c_frames, below) with
      | Value v, Function (Closure (C, x, e, env)) :: frames, _ ->
          Some ([ "CallC" ], in_c (to_term e) ((x, v) :: env) frames below)
      | Value v, Function (Closure (OCaml, x, e, env)) :: frames, _ ->
          Some
            ( [ "Callback" ],
              in_ocaml (to_term e) ((x, v) :: env) [ identity_fiber ] { c_frames = frames; below } )
      | Value _, [], Fibers (k, c_stack) -> Some ([ "RetToO" ], in_ocaml term env k c_stack)
      | Value _, (Function (Exception _) as raised) :: _, Fibers (fiber :: k, c_stack) ->
          let fiber = { fiber with frames = raised :: fiber.frames } in
          Some ([ "ExnFwdO" ], in_ocaml term env (fiber :: k) c_stack)
      | _ -> None)

(* k @ k' on a stack; where the continuation has frames of C, its stack alternates as it did. *)
let append continuation (k, c_stack) =
  List.fold_right
    (fun fiber (k, c_stack) ->
      match fiber.over_c with
      | None -> (fiber :: k, c_stack)
      | Some c_frames ->
          ([ { fiber with over_c = None } ], { c_frames; below = Fibers (k, c_stack) }))
    continuation (k, c_stack)

(* (e) OCaml reductions, on the innermost fiber [fiber] and the others, [k]. [shot] is for what the
   step captures. *)
let ocaml_step ~through_c ~shot term env fiber k c_stack =
  let { handler; scope; _ } = fiber in
  match administrative term env fiber.frames with
  | Some (rule, (term, env, frames)) ->
      Some ([ "AdminO"; rule ], in_ocaml term env ({ fiber with frames } :: k) c_stack)
  | None -> (
      match (term, fiber.frames) with
      | Value v, Function (Closure (OCaml, x, e, env)) :: frames ->
          Some
            ( [ "CallO" ],
              in_ocaml (to_term e) ((x, v) :: env) ({ fiber with frames } :: k) c_stack )
      | Value v, Function (Closure (C, x, e, env)) :: frames ->
          let below = Fibers ({ fiber with frames } :: k, c_stack) in
          Some ([ "ExtCall" ], in_c (to_term e) ((x, v) :: env) [] below)
      | Value _, [] when k = [] ->
          Some ([ "RetToC" ], { term; environment = env; stack = In_c c_stack })
      | Value v, [] ->
          let x, e = handler.return in
          Some ([ "RetFib" ], in_ocaml (to_term e) ((x, v) :: scope) k c_stack)
      | Expression (Match (e, handler)), _ ->
          let inner = { identity_fiber with handler; scope = env } in
          Some ([ "Handle" ], in_ocaml (to_term e) env (inner :: fiber :: k) c_stack)
      | Value v, (Function (Exception l) as raised) :: _ -> (
          match (List.assoc_opt l handler.exceptions, k) with
          | Some (x, e), _ ->
              Some ([ "ExnHn" ], in_ocaml (to_term e) ((x, v) :: scope) k c_stack)
          | None, [] ->
              let c_frames = raised :: c_stack.c_frames in
              Some ([ "ExnFwdC" ], in_c term env c_frames c_stack.below)
          | None, outer :: k ->
              let outer = { outer with frames = raised :: outer.frames } in
              Some ([ "ExnFwdFib" ], in_ocaml term env (outer :: k) c_stack))
      | Value v, Function (Effect (l, captured)) :: frames -> (
          let inner = captured in
          let captured = captured @ [ { fiber with frames } ] in
          match (List.assoc_opt l handler.effects, k, c_stack.below) with
          | Some (x, r, e), _, _ ->
              let env = (x, v) :: (r, Continuation { fibers = captured; shot }) :: scope in
              Some ([ "EffHn" ], in_ocaml (to_term e) env k c_stack)
          | None, outer :: k, _ ->
              let outer = { outer with frames = Function (Effect (l, captured)) :: outer.frames } in
              Some ([ "EffFwd" ], in_ocaml term env (outer :: k) c_stack)
          | None, [], Fibers (outer :: k, below) when through_c ->
              let base = { fiber with frames; over_c = Some c_stack.c_frames } in
              let performed = Function (Effect (l, inner @ [ base ])) in
              let outer = { outer with frames = performed :: outer.frames } in
              Some ([ "EffFwdC" ], in_ocaml term env (outer :: k) below)
          | None, [], _ ->
              let raise_unhandled = Raise ("Unhandled", Number 0) in
              let k, c_stack = append captured ([], c_stack) in
              Some ([ "EffUnHn" ], in_ocaml (Expression raise_unhandled) [] k c_stack))
      | Value v, Function (Continuation resumed) :: Function (Closure (OCaml, x, e, env)) :: frames
        ->
          let k, c_stack = append resumed.fibers ({ fiber with frames } :: k, c_stack) in
          Some ([ "Resume" ], in_ocaml (to_term e) ((x, v) :: env) k c_stack)
      | _ -> None)

(* (b) Top-level reductions. The names of the rules that were taken, outermost first, and the
   configuration after them; none where no rule applies. *)
let step ~through_c ~shot { term; environment; stack } =
  match stack with
  | In_c c_stack ->
      Option.map (fun (rules, next) -> ("StepC" :: rules, next)) (c_step term environment c_stack)
  | In_ocaml (fiber :: k, c_stack) ->
      Option.map
        (fun (rules, next) -> ("StepO" :: rules, next))
        (ocaml_step ~through_c ~shot term environment fiber k c_stack)
  | In_ocaml ([], _) -> None

(* In one-shot runs ResumeAgain comes before Resume, and [used] holds the resumed shots. *)
module Shots = Set.Make (Int)

let step_once ~through_c ~shot ~used configuration =
  match (configuration.term, configuration.stack) with
  | Value _, In_ocaml (fiber :: fibers, c_stack) -> (
      match fiber.frames with
      | Function (Continuation k) :: Function (Closure (OCaml, _, _, _)) :: frames ->
          if Shots.mem k.shot used then
            let raise_again = Raise ("Continuation_already_resumed", Number 0) in
            let fibers = { fiber with frames } :: fibers in
            let next = in_ocaml (Expression raise_again) [] fibers c_stack in
            (Some ([ "StepO"; "ResumeAgain" ], next), used)
          else (step ~through_c ~shot configuration, Shots.add k.shot used)
      | _ -> (step ~through_c ~shot configuration, used))
  | _ -> (step ~through_c ~shot configuration, used)

(* The rules, for tests that each is taken somewhere. *)
let rules =
  [
    "StepC"; "StepO"; "Var"; "Arith1"; "Arith2"; "Arith3"; "App1"; "App2"; "App3"; "Resume1";
    "Resume2"; "Perform"; "Raise"; "AdminC"; "CallC"; "Callback"; "RetToO"; "ExnFwdO"; "AdminO";
    "CallO"; "ExtCall"; "RetToC"; "RetFib"; "Handle"; "ExnHn"; "ExnFwdC"; "ExnFwdFib"; "EffHn";
    "EffFwd"; "EffUnHn"; "Resume"; "ResumeAgain"; "EffFwdC";
  ]

(* How a run ends *)

type 'value outcome =
  | Returned of 'value
  | Uncaught of label * 'value  (* an exception that left the program *)
  | Stuck  (* no rule applies *)
  | Out_of_fuel

let outcome { term; stack; _ } =
  match (term, stack) with
  | Value v, In_c { c_frames = []; below = Empty } -> Returned v
  | Value v, In_c { c_frames = Function (Exception l) :: _; below = Empty } -> Uncaught (l, v)
  | _ -> Stuck

let map_outcome f = function
  | Returned value -> Returned (f value)
  | Uncaught (label, value) -> Uncaught (label, f value)
  | Stuck -> Stuck
  | Out_of_fuel -> Out_of_fuel

(* Runs at most [fuel] steps; [trace] sees every step's rules and the configuration after it. *)
let run ?(one_shot = false) ?(through_c = false) ?(fuel = max_int) ?(trace = fun _ _ -> ())
    expression =
  let rec go shot used configuration =
    if shot >= fuel then (configuration, Out_of_fuel)
    else
      let next, used =
        if one_shot then step_once ~through_c ~shot ~used configuration
        else (step ~through_c ~shot configuration, used)
      in
      match next with
      | None -> (configuration, outcome configuration)
      | Some (rules, configuration) ->
          trace rules configuration;
          go (shot + 1) used configuration
  in
  go 0 Shots.empty (initial expression)

(* Configurations as text, in the paper's notation *)

let space formatter () = Format.fprintf formatter "@ "
let list ?(empty = "[]") one = Format.(fun formatter -> function
  | [] -> pp_print_string formatter empty
  | items -> fprintf formatter "%a" (pp_print_list ~pp_sep:space one) items)

let rec pp_value formatter = function
  | (Number n : value) -> Format.pp_print_int formatter n
  | Continuation { fibers; _ } -> Format.fprintf formatter "@[<hv 1>k[%a]@]" (list pp_fiber) fibers
  | Closure (language, x, e, _) ->
      Format.fprintf formatter "(%a)" pp (Abstraction (language, x, e))
  | Effect (l, k) -> Format.fprintf formatter "@[<hv 1>eff %s [%a]@]" l (list pp_fiber) k
  | Exception l -> Format.fprintf formatter "exn %s" l

and pp_frame formatter = function
  | Argument (e, _) -> Format.fprintf formatter "<%a>a" pp e
  | Function v -> Format.fprintf formatter "<%a>f" pp_value v
  | Left (operator, e, _) -> Format.fprintf formatter "<%s %a>b1" (operator_text operator) pp e
  | Right (operator, n) -> Format.fprintf formatter "<%s %d>b2" (operator_text operator) n

and pp_fiber formatter { frames; handler; over_c; _ } =
  Format.fprintf formatter "@[<hv 1>(%a; {%s})@]" (list pp_frame) frames
    (String.concat " "
       (("return" :: List.map (fun (l, _) -> "exception " ^ l) handler.exceptions)
       @ List.map (fun (l, _) -> "effect " ^ l) handler.effects));
  Option.iter (Format.fprintf formatter "@ %ac" (list pp_frame)) over_c

let rec pp_c_stack formatter { c_frames; below } =
  Format.fprintf formatter "@[<hv 1>[%a,@ %a]c@]" (list pp_frame) c_frames pp_ocaml_stack below

and pp_ocaml_stack formatter = function
  | Empty -> Format.pp_print_string formatter "."
  | Fibers (k, c_stack) ->
      Format.fprintf formatter "@[<hv 1>[%a,@ %a]o@]" (list pp_fiber) k pp_c_stack c_stack

let pp_configuration formatter { term; environment; stack } =
  let pp_term formatter = function
    | Expression e -> pp formatter e
    | Value v -> pp_value formatter v
  in
  let pp_binding formatter (x, v) = Format.fprintf formatter "%s=%a" x pp_value v in
  (* Only the innermost binding of a variable can be seen. *)
  let visible =
    List.rev
      (List.fold_left
         (fun seen (x, v) -> if List.mem_assoc x seen then seen else (x, v) :: seen)
         [] environment)
  in
  let pp_stack formatter = function
    | In_c c_stack -> pp_c_stack formatter c_stack
    | In_ocaml (k, c_stack) -> pp_ocaml_stack formatter (Fibers (k, c_stack))
  in
  Format.fprintf formatter "@[<hv 3>|| %a,@ {%a},@ %a ||@]" pp_term term
    (list ~empty:"" pp_binding) visible pp_stack stack

(* The visible part of a value: two runs agree if it is the same. *)
let summary = function
  | (Number n : value) -> string_of_int n
  | Closure (OCaml, _, _, _) -> "<fun>"
  | Closure (C, _, _, _) -> "<cfun>"
  | Continuation _ -> "<continuation>"
  | Effect _ | Exception _ -> "<frame>"

let outcome_text = function
  | Returned text -> "value " ^ text
  | Uncaught (label, text) -> Printf.sprintf "uncaught exception %s %s" label text
  | Stuck -> "stuck"
  | Out_of_fuel -> "out of fuel"
