(* The first program of both slide decks, and "handlers can be nested" from them. *)
open Effect
open Effect.Deep

type _ Effect.t += E : string t | A : unit t | B : unit t

let comp () =
  print_string "0 ";
  print_string (perform E);
  print_string "3 "

let main () =
  try_with comp ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | E ->
              Some
                (fun (k : (a, _) continuation) ->
                  print_string "1 ";
                  continue k "2 ";
                  print_string "4 ")
          | _ -> None);
    }

let baz () = perform A

let bar () =
  try_with baz ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | B -> Some (fun (k : (a, _) continuation) -> continue k ())
          | _ -> None);
    }

let foo () =
  try_with bar ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | A ->
              Some
                (fun (k : (a, _) continuation) ->
                  print_string "A passed bar";
                  continue k ())
          | _ -> None);
    }

let () =
  main ();
  print_newline ();
  foo ();
  print_newline ()
(* SPDX-License-Identifier: MIT *)
