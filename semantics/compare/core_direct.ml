(* SPDX-License-Identifier: MIT *)
(* The core language in direct style on the Effect module: handlers are Effect.Deep's, performing is
   Effect.perform, exceptions are OCaml's, and a call between the languages goes through a frame of
   C. A program must end here as it does on the machine. *)

open Core_syntax

type value =
  | Number of int
  | Closure of language * string * expression * environment
  | Continuation of (resumption, value) Effect.Deep.continuation
  | Partial of ((unit -> value) -> value)
      (* A continuation with its first argument, waiting for the second: in tail position it may
         meet it further out, anywhere else no rule applies to it. *)

(* A computation that is evaluated on top of a resumed continuation. *)
and resumption = unit -> value
and environment = (string * value) list

type _ Effect.t += Perform : label * value -> resumption Effect.t

exception Raised of label * value
exception Stuck

(* [call_through_c f x] is [f x] with a frame of C between. *)
external call_through_c : ('a -> 'b) -> 'a -> 'b = "haft_semantics_call"

(* Surroundings of the evaluation. In figure 2 a callback from C begins a new OCaml stack, past
   which effects do not go (EffUnHn); [under_c] tells that there is one below, [through_c] that they
   may. *)
type place = { language : language; under_c : bool; through_c : bool }

let rec evaluate place env : expression -> value = function
  | Number n -> Number n
  | Variable x -> ( match List.assoc_opt x env with Some value -> value | None -> raise Stuck)
  | Abstraction (language, x, e) -> Closure (language, x, e, env)
  | Arithmetic (operator, e1, e2) -> (
      let number e = match evaluate place env e with Number n -> n | _ -> raise Stuck in
      let left = number e1 in
      let right = number e2 in
      match Core_machine.arithmetic operator left right with
      | Some n -> Number n
      | None -> raise Stuck)
  | Raise (l, e) -> raise (Raised (l, strictly place env e))
  | Perform (l, e) -> (
      let value = strictly place env e in
      if place.language = C then raise Stuck;
      match Effect.perform (Perform (l, value)) with
      | resumption -> resumption ()
      | exception Effect.Unhandled (Perform _) -> raise (Raised ("Unhandled", Number 0)))
  | Match (e, handler) ->
      if place.language = C then raise Stuck;
      handle place env e handler
  | Apply (e1, e2) -> (
      match evaluate place env e1 with
      | Closure (language, x, e, env1) ->
          let value = strictly place env e2 in
          call place language e ((x, value) :: env1)
      | Continuation k -> Partial (resume place env k e2)
      | Partial resume -> resume (fun () -> strictly place env e2)
      | Number _ -> raise Stuck)

(* A value that anything but an application may take. *)
and strictly place env e =
  match evaluate place env e with Partial _ -> raise Stuck | value -> value

(* k e1 and then an argument: e1 gives the function that goes on with it. *)
and resume place env k e1 argument =
  match evaluate place env e1 with
  | Number _ | Continuation _ | Partial _ -> raise Stuck
  | Closure (language, x, body, env1) -> (
      let value = argument () in
      if place.language = C || language = C then raise Stuck;
      try
        match body with
        | Raise (l, Variable y) when x = y -> Effect.Deep.discontinue k (Raised (l, value))
        | _ ->
            let inside = { place with language = OCaml } in
            Effect.Deep.continue k (fun () -> strictly inside ((x, value) :: env1) body)
      with Effect.Continuation_already_resumed ->
        raise (Raised ("Continuation_already_resumed", Number 0)))

and call place language body env =
  match (place.language, language) with
  | OCaml, OCaml | C, C -> evaluate place env body
  | OCaml, C ->
      call_through_c (fun () -> strictly { place with language = C; under_c = true } env body) ()
  | C, OCaml ->
      let run () = strictly { place with language = OCaml } env body in
      let run = if place.under_c && not place.through_c then fun () -> callback run else run in
      call_through_c run ()

(* Effects that [run] does not handle are not handled at all. *)
and callback run =
  Effect.Deep.try_with run ()
    {
      effc =
        (fun (type result) (eff : result Effect.t) ->
          match eff with
          | Perform _ ->
              Some
                (fun (k : (result, _) Effect.Deep.continuation) ->
                  Effect.Deep.discontinue k (Raised ("Unhandled", Number 0)))
          | _ -> None);
    }

and handle place env computation { return = x, return; exceptions; effects } =
  Effect.Deep.match_with
    (fun () -> strictly place env computation)
    ()
    {
      retc = (fun value -> evaluate place ((x, value) :: env) return);
      exnc =
        (function
        | Raised (l, value) as exn -> (
            match List.assoc_opt l exceptions with
            | Some (x, e) -> evaluate place ((x, value) :: env) e
            | None -> raise exn)
        | exn -> raise exn);
      effc =
        (fun (type result) (eff : result Effect.t) ->
          match eff with
          | Perform (l, value) -> (
              match List.assoc_opt l effects with
              | None -> None
              | Some (x, r, e) ->
                  Some
                    (fun (k : (result, _) Effect.Deep.continuation) ->
                      evaluate place ((x, value) :: (r, Continuation k) :: env) e))
          | _ -> None);
    }

(* Result of the program, like that of Core_machine.run in one-shot runs. *)
let run ~through_c expression : string Core_machine.outcome =
  let summary = function
    | Number n -> string_of_int n
    | Closure (OCaml, _, _, _) -> "<fun>"
    | Closure (C, _, _, _) -> "<cfun>"
    | Continuation _ | Partial _ -> "<continuation>"
  in
  match strictly { language = C; under_c = false; through_c } [] expression with
  | value -> Returned (summary value)
  | exception Raised (label, value) -> Uncaught (label, summary value)
  | exception Stuck -> Stuck
