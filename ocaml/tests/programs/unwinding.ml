(* A computation ends under its own handler, whatever ends it: what a finaliser (Fun.protect) performs comes to the
   handler's clauses. Every way to end x every kind of clause, as core/tests/test_unwinding.c has them for C. *)
open Effect

type _ Effect.t +=
  | Resumed : int -> int t
  | Tail_resumed : int -> int t
  | Kept : int -> int t
  | Wait : unit t

exception Stop

type way = Returns | Raises | Is_discontinued | Is_discontinued_later | Its_clause_discontinues_and_raises

let told = Buffer.create 100
let tell text = Buffer.add_string told text
let kept : (int, string) Deep.continuation option ref = ref None
let waiting : (unit, string) Deep.continuation option ref = ref None

let body way clean () =
  Fun.protect
    ~finally:(fun () -> tell ".")
    (fun () ->
      Fun.protect
        ~finally:(fun () ->
          tell (Printf.sprintf "(%d)" (perform clean)))
        (fun () ->
          match way with
          | Returns -> "body"
          | Raises -> raise Stop
          | _ -> perform Wait; "goes on"))

let handle way clean =
  Deep.try_with (body way clean) ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Resumed n ->
              Some
                (fun (k : (a, _) Deep.continuation) ->
                  let answer = Deep.continue k (n + 20) in
                  tell ("[" ^ answer ^ "]");
                  answer)
          | Tail_resumed n -> Some (fun (k : (a, _) Deep.continuation) -> Deep.continue k (n + 30))
          | Kept _ -> Some (fun (k : (a, _) Deep.continuation) -> kept := Some k; "keeps")
          | Wait ->
              Some
                (fun (k : (a, _) Deep.continuation) ->
                  match way with
                  | Is_discontinued -> Deep.discontinue k Stop
                  | Its_clause_discontinues_and_raises ->
                      (try ignore (Deep.discontinue k Stop : string) with Stop -> ());
                      raise Stop
                  | _ -> waiting := Some k; "waits")
          | _ -> None);
    }

let take place =
  let found = !place in
  place := None;
  found

let outcome f = match f () with answer -> answer | exception Stop -> "Stop"

(* Further out: not to be reached. *)
let under_another f =
  Deep.try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Resumed _ -> Some (fun (k : (a, _) Deep.continuation) -> tell "OUTER"; Deep.continue k 0)
          | Tail_resumed _ -> Some (fun (k : (a, _) Deep.continuation) -> tell "OUTER"; Deep.continue k 0)
          | Kept _ -> Some (fun (k : (a, _) Deep.continuation) -> tell "OUTER"; Deep.continue k 0)
          | _ -> None);
    }

let row name way clean =
  Buffer.clear told;
  let answer =
    under_another (fun () ->
        let answer = outcome (fun () -> handle way clean) in
        Option.iter (fun k -> tell ("<" ^ outcome (fun () -> Deep.discontinue k Stop) ^ ">")) (take waiting);
        Option.iter (fun k -> tell ("...<" ^ outcome (fun () -> Deep.continue k 41) ^ ">")) (take kept);
        answer)
  in
  Printf.printf "%s: %s %s\n" name (Buffer.contents told) answer

let () =
  List.iter
    (fun (name, way) ->
      row (name ^ ", resumed") way (Resumed 1);
      row (name ^ ", resumed at the end") way (Tail_resumed 1);
      row (name ^ ", kept") way (Kept 1))
    [
      ("it returns", Returns);
      ("it raises", Raises);
      ("it is discontinued", Is_discontinued);
      ("it is discontinued later", Is_discontinued_later);
      ("its clause discontinues it, and raises", Its_clause_discontinues_and_raises);
    ]
(* SPDX-License-Identifier: MIT *)
