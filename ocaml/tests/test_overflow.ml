(* Deep recursion in fibers, and its end. *)
open Effect
open Effect.Deep

type _ Effect.t += Ask : int t

let answering f =
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask -> Some (fun (k : (a, _) continuation) -> continue k 1)
          | _ -> None);
    }

let[@inline never] rec deep n = if n = 0 then 0 else 1 + deep (n - 1)

(* How deep that goes on the main stack, or HAFT_TEST_CALLS: it takes 16 bytes a call. *)
let main_depth =
  let limits = open_in "/proc/self/limits" in
  let rec soft_limit () =
    let line = input_line limits in
    match Scanf.sscanf line "Max stack size %s" Fun.id with
    | "unlimited" -> 8 lsl 20
    | bytes -> int_of_string bytes
    | exception Scanf.Scan_failure _ -> soft_limit ()
  in
  let bytes = soft_limit () in
  close_in limits;
  min bytes (1 lsl 30) / 16

let main_depth =
  match Sys.getenv_opt "HAFT_TEST_CALLS" with
  | Some calls -> int_of_string calls
  | None -> main_depth

let check = Alcotest.(check int)

let tests =
  [
    ( "recursion as deep as the main stack allows works in a fiber",
      fun () ->
        let n = main_depth in
        check "depth" n (answering (fun () -> deep n));
        check "depth, in a nested fiber" n (answering (fun () -> answering (fun () -> deep n))) );
    ( "an effect at the bottom of a deep recursion",
      fun () ->
        let[@inline never] rec deep n = if n = 0 then perform Ask else 1 + deep (n - 1) in
        let n = min main_depth 100_000 in
        check "depth" (n + 1) (answering (fun () -> deep n)) );
    ( "Stack_overflow is raised where the stack overflows",
      fun () ->
        check "caught inside" 2
          (answering (fun () ->
               match deep max_int with
               | n -> n
               | exception Stack_overflow -> perform Ask + 1)) );
    ( "and crosses fibers like any exception",
      fun () ->
        match answering (fun () -> answering (fun () -> deep max_int)) with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Stack_overflow -> () );
    ( "over and over",
      fun () ->
        for _ = 1 to 200 do
          match answering (fun () -> perform Ask + deep max_int) with
          | (_ : int) -> Alcotest.fail "it returned"
          | exception Stack_overflow -> ()
        done );
    ( "fibers in fibers until memory for stacks is short are just deep",
      fun () ->
        let rec nest n = if n = 0 then perform Ask else answering (fun () -> 1 + nest (n - 1)) in
        check "depth" 2001 (answering (fun () -> nest 2000)) );
  ]

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "overflow" [ ("stacks", List.map case tests) ]
(* SPDX-License-Identifier: MIT *)
