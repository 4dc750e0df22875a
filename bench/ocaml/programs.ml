(* SPDX-License-Identifier: MIT *)
(* The simplest loops of the public benchmark programs, written from what they compute: each step performs
   once or twice and is continued at once. *)
open Effect
open Effect.Deep

type _ Effect.t +=
  | Get : int Effect.t
  | Set : int -> unit Effect.t
  | Emit : int -> unit Effect.t
  | Read : char Effect.t
  | Stop : unit Effect.t

let rec count_down () =
  let i = perform Get in
  if i > 0 then (
    perform (Set (i - 1));
    count_down ())
  else i

(* A step is a Get and a Set. *)
let countdown n =
  let state = ref n in
  match_with count_down ()
    {
      retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (performed : a Effect.t) ->
          match performed with
          | Get -> Some (fun (k : (a, int) continuation) -> continue k (!state : int))
          | Set i ->
              Some
                (fun (k : (a, int) continuation) ->
                  state := i;
                  continue k ())
          | _ -> None);
    }

let summed body =
  let sum = ref 0 in
  match_with body ()
    {
      retc = (fun () -> !sum);
      exnc = raise;
      effc =
        (fun (type a) (performed : a Effect.t) ->
          match performed with
          | Emit i ->
              Some
                (fun (k : (a, int) continuation) ->
                  sum := !sum + i;
                  continue k ())
          | _ -> None);
    }

let iterator n =
  summed (fun () ->
      for i = 1 to n do
        perform (Emit i)
      done)

let rec parse dollars =
  match perform Read with
  | '$' -> parse (dollars + 1)
  | '\n' ->
      perform (Emit dollars);
      parse 0
  | _ -> perform Stop

let caught body =
  match_with body ()
    {
      retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (performed : a Effect.t) ->
          match performed with
          | Stop -> Some (fun (_ : (a, unit) continuation) -> ())
          | _ -> None);
    }

(* [left] characters, in lines of nine dollars. *)
let fed left body =
  let next () =
    if !left = 0 then '.'
    else (
      decr left;
      if !left mod 10 = 0 then '\n' else '$')
  in
  match_with body ()
    {
      retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (performed : a Effect.t) ->
          match performed with
          | Read ->
              Some (fun (k : (a, unit) continuation) -> continue k (next () : char))
          | _ -> None);
    }

let parsed characters =
  summed (fun () ->
      caught (fun () -> fed (ref characters) (fun () -> parse 0)))

let () =
  Loops.loop "countdown" (fun n -> assert (countdown n = 0));
  Loops.loop "iterator" (fun n -> assert (iterator n = n * (n + 1) / 2));
  Loops.loop "parsing-dollars" (fun n -> assert (parsed n = n - ((n + 9) / 10)))
