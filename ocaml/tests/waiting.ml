(* SPDX-License-Identifier: MIT *)
(* waiting COUNT CALLS: so many computations wait, each below so many calls, and all go on. Where memory is
   short, Out_of_memory is an exception, and those that wait go on. *)
open Effect
open Effect.Deep

type _ Effect.t += Wait : int t

let[@inline never] rec deep n = if n = 0 then perform Wait else 1 + deep (n - 1)

let () =
  let count = int_of_string Sys.argv.(1) and calls = int_of_string Sys.argv.(2) in
  let waiting : (int -> int) list ref = ref [] in
  let start () =
    try_with deep calls
      {
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Wait ->
                Some
                  (fun (k : (a, int) continuation) ->
                    waiting := continue k :: !waiting;
                    0)
            | _ -> None);
      }
  in
  let enough =
    match
      for _ = 1 to count do
        ignore (start ())
      done
    with
    | () -> true
    | exception Out_of_memory -> false
  in
  List.iter (fun go_on -> assert (go_on 7 = calls + 7)) !waiting;
  print_endline (if enough then "all" else "Out_of_memory")
