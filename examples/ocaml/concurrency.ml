(* SPDX-License-Identifier: MIT *)
(* Threads and promises in direct style: fork, yield and await are effects, and the scheduler is their
   handler. The threads know no scheduler, and their types do not tell that they wait. *)
open Effect
open Effect.Deep

type 'a state =
  | Waiting of (('a, exn) result -> unit) list
  | Done of ('a, exn) result

type 'a promise = { mutable state : 'a state }

effect Fork : (unit -> 'a) -> 'a promise
effect Yield : unit
effect Await : 'a promise -> 'a

let fork f = perform (Fork f)
let yield () = perform Yield
let await promise = perform (Await promise)

let run main =
  let ready = Queue.create () in
  let later f = Queue.push f ready in
  let finish promise result =
    match promise.state with
    | Done _ -> assert false
    | Waiting threads ->
        promise.state <- Done result;
        List.iter (fun thread -> later (fun () -> thread result)) threads
  in
  let resume k = function
    | Ok value -> continue k value
    | Error exn -> discontinue k exn
  in
  let rec start : 'a. 'a promise -> (unit -> 'a) -> unit =
   fun promise f ->
    match f () with
    | value -> finish promise (Ok value)
    | exception exn -> finish promise (Error exn)
    | effect Yield, k -> later (continue k)
    | effect (Fork f), k ->
        let promise = { state = Waiting [] } in
        later (fun () -> start promise f);
        continue k promise
    | effect (Await promise), k -> (
        match promise.state with
        | Done result -> resume k result
        | Waiting threads -> promise.state <- Waiting (resume k :: threads))
  in
  let promise = { state = Waiting [] } in
  start promise main;
  while not (Queue.is_empty ready) do
    (Queue.pop ready) ()
  done;
  match promise.state with
  | Done (Ok value) -> value
  | Done (Error exn) -> raise exn
  | Waiting _ -> failwith "every thread waits"

(* The program: a recipe whose steps overlap. *)
let work name steps =
  for step = 1 to steps do
    Printf.printf "%s, %d of %d\n" name step steps;
    yield ()
  done

let bake () =
  let dough = fork (fun () -> work "knead the dough" 3; "dough") in
  let filling = fork (fun () -> work "slice the apples" 2; "apples") in
  let cream = fork (fun () -> work "whip the cream" 1; failwith "it is sour") in
  let topping =
    try await cream
    with Failure reason ->
      Printf.printf "no cream: %s\n" reason;
      "sugar"
  in
  Printf.sprintf "%s, %s and %s" (await dough) (await filling) topping

let () = print_endline (run bake)
