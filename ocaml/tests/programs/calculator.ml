(* The calculator of §1.1, with both semantics of division by zero, and with input (§1.2). *)
open Effect
open Effect.Deep

type sign = P | N
type number = Z of int | Error | Inf of sign
type exp = Val of number | Add of exp * exp | Div of exp * exp | Inp
type _ Effect.t += DivBy0 : int -> number t | Read : string -> string t

let rec eval = function
  | Val v -> v
  | Inp -> Z (int_of_string (perform (Read "stdin")))
  | Add (e1, e2) -> (
      match (eval e1, eval e2) with
      | Z v1, Z v2 -> Z (v1 + v2)
      | Error, _ | _, Error -> Error
      | Inf P, Inf N | Inf N, Inf P -> Error
      | Inf s, _ | _, Inf s -> Inf s)
  | Div (e1, e2) -> (
      match (eval e1, eval e2) with
      | Z v1, Z v2 -> if v2 = 0 then perform (DivBy0 v1) else Z (v1 / v2)
      | Error, _ | _, Error -> Error
      | Inf s, _ -> Inf s
      | _, Inf _ -> Z 0)

let ios e =
  match_with eval e
    {
      retc = (fun v -> v);
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | DivBy0 _ -> Some (fun (k : (a, _) continuation) -> continue k Error)
          | _ -> None);
    }

let gsearch e =
  match_with eval e
    {
      retc = (fun v -> v);
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | DivBy0 v ->
              Some
                (fun (k : (a, _) continuation) ->
                  if v = 0 then continue k Error
                  else if v > 0 then continue k (Inf P)
                  else continue k (Inf N))
          | _ -> None);
    }

let waiting : (string -> number) option ref = ref None

(* Registers what waits for a line, and goes on with the user interface. *)
let run e =
  match_with gsearch e
    {
      retc = (fun v -> Some v);
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Read _ ->
              Some
                (fun (k : (a, number option) continuation) ->
                  waiting := Some (fun line -> Option.get (continue k line));
                  None)
          | _ -> None);
    }

let show = function
  | Z n -> string_of_int n
  | Error -> "Error"
  | Inf P -> "Infinity"
  | Inf N -> "-Infinity"

let ( / ) n d = Div (Val (Z n), Val (Z d))

let () =
  List.iter
    (fun (n, d) ->
      Printf.printf "%d / %d: ios %s, gsearch %s\n" n d
        (show (ios (n / d)))
        (show (gsearch (n / d))))
    [ (6, 3); (1, 0); (-1, 0); (0, 0) ];
  match run (Div (Val (Z 84), Inp)) with
  | Some _ -> print_endline "it did not wait"
  | None ->
      print_endline "the user interface goes on";
      Printf.printf "84 / input: %s\n" (show ((Option.get !waiting) "2"))
(* SPDX-License-Identifier: MIT *)
