(* SPDX-License-Identifier: MIT *)
(* A debug build reports the fiber whose fields do not agree, at the next operation. *)
open Effect
open Effect.Deep

type _ Effect.t += Wait : unit t

external are_checked : unit -> bool = "invariants_are_checked"
external break : (unit, unit) continuation -> int -> bool = "invariants_break"

let waiting () =
  let kept : (unit, unit) continuation option ref = ref None in
  try_with perform Wait
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Wait -> Some (fun (k : (a, unit) continuation) -> kept := Some k)
          | _ -> None);
    };
  Option.get !kept

(* Returns the output of a process that does this, and how it ends. *)
let apart f =
  flush_all ();
  let output, input = Unix.pipe () in
  match Unix.fork () with
  | 0 ->
      Unix.dup2 input Unix.stderr;
      f ();
      Unix._exit 0
  | child ->
      Unix.close input;
      let channel = Unix.in_channel_of_descr output in
      let rec read said = match input_line channel with line -> read (said ^ line) | exception End_of_file -> said in
      let said = read "" in
      close_in channel;
      (said, snd (Unix.waitpid [] child))

let contains text part =
  let n = String.length part in
  let rec at i = i + n <= String.length text && (String.sub text i n = part || at (i + 1)) in
  at 0

let is_reported which =
  let said, status =
    apart (fun () ->
        let k = waiting () in
        if break k which then (
          Gc.minor ();
          Unix._exit 1)
        else Unix._exit 2)
  in
  match status with
  | Unix.WEXITED 2 -> ()
  | Unix.WSIGNALED signal when signal = Sys.sigabrt ->
      Alcotest.(check bool) "the invariant is named" true (contains said "haft_ocaml_is_valid")
  | _ -> Alcotest.fail "it is not reported"

let () =
  if not (are_checked ()) then exit 77;
  let case which name = Alcotest.test_case name `Quick (fun () -> is_reported which) in
  Alcotest.run "invariants"
    [
      ( "a broken invariant is reported",
        List.mapi case
          [ "an odd stack pointer"; "no handlers of OCaml"; "an empty stack"; "an open gate"; "the wrong kind" ] );
    ]
