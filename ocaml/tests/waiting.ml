(* SPDX-License-Identifier: MIT *)
(* waiting COUNT CALLS [below-c]: so many computations wait, each below so many calls, or below a function of C, too,
   and all go on. Where memory is short, Out_of_memory is an exception, and those that wait go on. Prints which of the
   two, and the most memory that was resident, in bytes a computation. *)
open Effect
open Effect.Deep

type _ Effect.t += Wait : int t

external call : ('a -> 'b) -> 'a -> 'b = "collector_call"

(* In kibibytes. *)
let most_resident () =
  let status = open_in "/proc/self/status" in
  let rec find () =
    match Scanf.sscanf (input_line status) "VmHWM: %d kB" Fun.id with
    | most -> most
    | exception Scanf.Scan_failure _ -> find ()
  in
  Fun.protect find ~finally:(fun () -> close_in status)

let[@inline never] rec deep n = if n = 0 then perform Wait else 1 + deep (n - 1)

let () =
  let count = int_of_string Sys.argv.(1) and calls = int_of_string Sys.argv.(2) in
  let below_c = Array.length Sys.argv > 3 in
  let run n = if below_c then call deep n else deep n in
  let waiting : (int -> int) list ref = ref [] in
  let start () =
    try_with run calls
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
  Printf.printf "%s %d\n" (if enough then "all" else "Out_of_memory") (most_resident () * 1024 / count)
