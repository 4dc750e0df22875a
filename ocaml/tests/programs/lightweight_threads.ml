(* Lightweight threading, from the slides. *)
open Effect
open Effect.Deep

type _ Effect.t += Fork : (unit -> unit) -> unit t | Yield : unit t

let run main =
  let queue = Queue.create () in
  let enqueue k = Queue.push k queue in
  let run_next () =
    match Queue.take_opt queue with
    | Some k -> continue k ()
    | None -> ()
  in
  let rec spawn f =
    match_with f ()
      {
        retc = run_next;
        exnc = raise;
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Yield ->
                Some
                  (fun (k : (a, _) continuation) ->
                    enqueue k;
                    run_next ())
            | Fork f ->
                Some
                  (fun (k : (a, _) continuation) ->
                    enqueue k;
                    spawn f)
            | _ -> None);
      }
  in
  spawn main

let fork f = perform (Fork f)
let yield () = perform Yield

let main () =
  fork (fun _ ->
      print_endline "1.a";
      yield ();
      print_endline "1.b");
  fork (fun _ ->
      print_endline "2.a";
      yield ();
      print_endline "2.b")

let () = run main
(* SPDX-License-Identifier: MIT *)
