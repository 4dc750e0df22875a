(* SPDX-License-Identifier: MIT *)
(* The abstract machine of appendix A of "High-level effect handlers in C", for sheep handlers.
   Every rule stands here under its name, in the paper's order. *)

open Sheep_syntax

type machine_value =
  | Number of int
  | Primitive of primitive
  | Closure of environment * string * computation
  | Rec_closure of environment * string * string * computation
  | Unit
  | Pair of machine_value * machine_value
  | Inject of label * machine_value
  | Continuation of { outer : continuation; pure : pure; shot : int }
      (* (k, s); [shot] tells captures apart *)

and environment = (string * machine_value) list
and pure = (environment * string * computation) list
and continuation = (pure * label list) list

type configuration = {
  control : computation;
  environment : environment;
  continuation : continuation;
}

(* The paper leaves the initial continuation open: one pure continuation without handler. *)
let initial control = { control; environment = []; continuation = [ ([], []) ] }

exception Unbound

(* The interpretation of value terms. *)
let rec interpret env : value -> machine_value = function
  | Variable x -> ( match List.assoc_opt x env with Some v -> v | None -> raise Unbound)
  | Number n -> Number n
  | Primitive c -> Primitive c
  | Lambda (x, body) -> Closure (env, x, body)
  | Rec (f, x, body) -> Rec_closure (env, f, x, body)
  | Unit -> Unit
  | Pair (v, w) ->
      let v = interpret env v in
      Pair (v, interpret env w)
  | Inject (label, v) -> Inject (label, interpret env v)

(* Result of a primitive, where it is defined. *)
let apply_primitive primitive argument =
  match (primitive, argument) with
  | Add, Pair (Number m, Number n) -> Some (Number (m + n))
  | Subtract, Pair (Number m, Number n) -> Some (Number (m - n))
  | Multiply, Pair (Number m, Number n) -> Some (Number (m * n))
  | Equal, Pair (Number m, Number n) -> Some (Inject ((if m = n then "True" else "False"), Unit))
  | Less, Pair (Number m, Number n) -> Some (Inject ((if m < n then "True" else "False"), Unit))
  | _ -> None

(* [handles label k] is ((k', s'), k''), where k handles the label. *)
let rec handles label : continuation -> _ = function
  | [] -> None
  | (pure, labels) :: rest when List.mem label labels -> Some ((([], pure), rest))
  | part :: rest ->
      Option.map (fun ((outer, pure), rest) -> ((part :: outer, pure), rest)) (handles label rest)

(* The machine puts machine values into terms only through variables of the environment. *)
let returning value environment continuation =
  { control = Return (Variable "x"); environment = ("x", value) :: environment; continuation }

(* The rule that was taken and the configuration after it; none where no rule applies. [shot] is for
   what the step captures. *)
let step ~shot { control; environment = env; continuation } =
  match (control, continuation) with
  | Apply (v, w), k -> (
      match interpret env v with
      | Closure (env', x, m) ->
          let env' = (x, interpret env w) :: env' in
          Some ("M-Lam", { control = m; environment = env'; continuation = k })
      | Rec_closure (env', f, x, m) as closure ->
          let env' = (x, interpret env w) :: (f, closure) :: env' in
          Some ("M-Rec", { control = m; environment = env'; continuation = k })
      | Primitive c ->
          Option.map
            (fun value -> ("M-Const", returning value env k))
            (apply_primitive c (interpret env w))
      | _ -> None)
  | Split (x, y, v, n), k -> (
      match interpret env v with
      | Pair (v, w) ->
          let env = (y, w) :: (x, v) :: env in
          Some ("M-Split", { control = n; environment = env; continuation = k })
      | _ -> None)
  | Case (v, (label, x, m), (y, n)), k -> (
      match interpret env v with
      | Inject (l, v) when l = label ->
          Some ("M-CaseMatch", { control = m; environment = (x, v) :: env; continuation = k })
      | Inject _ as v ->
          Some ("M-CaseDef", { control = n; environment = (y, v) :: env; continuation = k })
      | _ -> None)
  | Let (x, m, n), (pure, labels) :: k ->
      let continuation = ((env, x, n) :: pure, labels) :: k in
      Some ("M-Let", { control = m; environment = env; continuation })
  | Return v, ((env', x, n) :: pure, labels) :: k ->
      let environment = (x, interpret env v) :: env' in
      Some ("M-RetCont", { control = n; environment; continuation = (pure, labels) :: k })
  | Newcont v, k ->
      let value = interpret env v in
      let pure = [ ([ ("v", value) ], "y", Apply (Variable "v", Variable "y")) ] in
      Some ("M-NewCont", returning (Continuation { outer = []; pure; shot }) env k)
  | Resume (labels, v, w), k -> (
      match interpret env v with
      | Continuation { outer; pure; _ } ->
          Some ("M-Resume", returning (interpret env w) env (outer @ ((pure, labels) :: k)))
      | _ -> None)
  | Perform (label, v), k -> (
      let value = interpret env v in
      match handles label k with
      | Some ((outer, pure), k) ->
          let request = Inject (label, Pair (value, Continuation { outer; pure; shot })) in
          Some ("M-Perform", returning request env k)
      | None -> None)
  | Return v, ([], _) :: k ->
      Some ("M-RetHandler", returning (Inject (ret, interpret env v)) env k)
  | (Let _ | Return _), [] -> None

let step ~shot configuration = try step ~shot configuration with Unbound -> None

let rules =
  [
    "M-Lam"; "M-Rec"; "M-Const"; "M-Split"; "M-CaseMatch"; "M-CaseDef"; "M-Let"; "M-RetCont";
    "M-NewCont"; "M-Resume"; "M-Perform"; "M-RetHandler";
  ]

(* How a run ends. The appendix's continuations may be resumed again; in one-shot runs, as in the
   library, doing so ends the program. *)
type outcome = Returned of machine_value | Stuck | Resumed_again | Out_of_fuel

module Shots = Set.Make (Int)

let resumed { control; environment; _ } =
  match control with
  | Resume (_, v, _) -> (
      match interpret environment v with
      | Continuation { shot; _ } -> Some shot
      | _ -> None
      | exception Unbound -> None)
  | _ -> None

let outcome { control; environment; continuation } =
  match (control, continuation) with
  | Return v, [] -> (
      match interpret environment v with Inject (_, value) -> Returned value | _ -> Stuck)
  | _ -> Stuck

(* Runs at most [fuel] steps; [trace] sees every step's rule and the configuration after it. *)
let run ?(one_shot = false) ?(fuel = max_int) ?(trace = fun _ _ -> ()) computation =
  let rec go shot used configuration =
    let resumes = if one_shot then resumed configuration else None in
    match resumes with
    | Some shot when Shots.mem shot used -> (configuration, Resumed_again)
    | _ when shot >= fuel -> (configuration, Out_of_fuel)
    | _ -> (
        match step ~shot configuration with
        | None -> (configuration, outcome configuration)
        | Some (rule, next) ->
            trace rule next;
            let used = Option.fold resumes ~none:used ~some:(fun shot -> Shots.add shot used) in
            go (shot + 1) used next)
  in
  go 0 Shots.empty (initial computation)

(* Configurations as text, in the paper's notation *)

let list one formatter = function
  | [] -> Format.pp_print_string formatter "[]"
  | items ->
      Format.fprintf formatter "@[<hv 1>[%a]@]"
        (Format.pp_print_list ~pp_sep:(fun formatter () -> Format.fprintf formatter "@ ") one)
        items

let rec pp_machine_value formatter = function
  | Number n -> Format.pp_print_int formatter n
  | Primitive c -> Format.pp_print_string formatter (primitive_name c)
  | Closure (_, x, m) -> Format.fprintf formatter "(%a)" plain (Lambda (x, m))
  | Rec_closure (_, f, x, m) -> Format.fprintf formatter "(%a)" plain (Rec (f, x, m))
  | Unit -> Format.pp_print_string formatter "()"
  | Pair (v, w) -> Format.fprintf formatter "(%a, %a)" pp_machine_value v pp_machine_value w
  | Inject (label, v) -> Format.fprintf formatter "(%s %a)" label pp_machine_value v
  | Continuation { outer; pure; _ } ->
      Format.fprintf formatter "@[<hv 1>(%a,@ %a)@]" pp_continuation outer pp_pure pure

and pp_pure formatter =
  list (fun formatter (_, x, n) -> Format.fprintf formatter "(%s, %a)" x pp n) formatter

and pp_continuation formatter =
  list
    (fun formatter (pure, labels) ->
      Format.fprintf formatter "@[<hv 1>(%a,@ {%s})@]" pp_pure pure (String.concat ", " labels))
    formatter

let pp_configuration formatter { control; environment; continuation } =
  let visible =
    List.rev
      (List.fold_left
         (fun seen (x, v) -> if List.mem_assoc x seen then seen else (x, v) :: seen)
         [] environment)
  in
  let pp_binding formatter (x, v) = Format.fprintf formatter "%s=%a" x pp_machine_value v in
  Format.fprintf formatter "@[<hv 2>< %a@ | %a@ | %a >@]" pp control (list pp_binding) visible
    pp_continuation continuation

(* The visible part of a value: two runs agree if it is the same. *)
let rec summary = function
  | Number n -> string_of_int n
  | Primitive c -> primitive_name c
  | Closure _ | Rec_closure _ -> "<fun>"
  | Unit -> "()"
  | Pair (v, w) -> Printf.sprintf "(%s, %s)" (summary v) (summary w)
  | Inject (label, v) -> Printf.sprintf "(%s %s)" label (summary v)
  | Continuation _ -> "<continuation>"

let outcome_text = function
  | Returned value -> "value " ^ summary value
  | Stuck -> "stuck"
  | Resumed_again -> "resumed again"
  | Out_of_fuel -> "out of fuel"
