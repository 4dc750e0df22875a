(* Haft.unsafe_clone: multi-shot resumptions, with the caveat of the paper's supplement. *)
open Cases
open Effect
open Effect.Deep

type _ Effect.t +=
  | E : unit t
  | Choose : bool t
  | Wait : unit t
  | Get : int t
  | Put : int -> unit t

external call : ('a -> 'b) -> 'a -> 'b = "collector_call"

let supplement () =
  (* The reference lives on the stack: each copy has its own. Without the optimisation it would be 1 2. *)
  let foo () = perform E in
  let bar f =
    let r = ref 0 in
    f ();
    r := !r + 1;
    !r
  in
  let printed =
    match_with bar foo
      {
        retc = string_of_int;
        exnc = raise;
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | E ->
                Some
                  (fun (k : (a, _) continuation) ->
                    let k' = Haft.unsafe_clone k in
                    let r1 = continue k () in
                    let r2 = continue k' () in
                    r1 ^ " " ^ r2)
            | _ -> None);
      }
  in
  Alcotest.(check string) "printed" "1 1" printed

(* All results of [f]. *)
let all f =
  match_with f ()
    {
      retc = (fun x -> [ x ]);
      exnc = (function Not_found -> [] | e -> raise e);
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Choose ->
              Some
                (fun (k : (a, _) continuation) ->
                  let k' = Haft.unsafe_clone k in
                  let results = continue k true in
                  Gc.minor ();
                  results @ continue k' false)
          | _ -> None);
    }

let rec choose low high =
  if low = high then raise Not_found
  else if perform Choose then low
  else choose (low + 1) high

let search () =
  let pythagorean () =
    let a = choose 1 20 in
    let b = choose a 20 in
    let c = choose b 20 in
    if (a * a) + (b * b) = c * c then Printf.sprintf "%d %d %d" a b c
    else raise Not_found
  in
  Alcotest.(check (list string))
    "triples"
    [ "3 4 5"; "5 12 13"; "6 8 10"; "8 15 17"; "9 12 15" ]
    (all pythagorean)

let capture f =
  let k : (unit, unit) continuation option ref = ref None in
  match_with f ()
    {
      retc = ignore;
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Wait -> Some (fun (k' : (a, _) continuation) -> k := Some k')
          | _ -> None);
    };
  Option.get !k

let copies () =
  let log = Buffer.create 16 in
  let k =
    capture (fun () ->
        let kept = List.init 3 string_of_int in
        perform Wait;
        Buffer.add_string log (String.concat "" kept))
  in
  let before = Haft.unsafe_clone k in
  Gc.compact ();
  let after = Haft.unsafe_clone k in
  let copy = Haft.unsafe_clone after in
  List.iter (fun k -> Gc.compact (); continue k ()) [ k; before; after; copy ];
  Alcotest.(check string) "each ran once" "012012012012" (Buffer.contents log);
  match Haft.unsafe_clone k with
  | (_ : (unit, unit) continuation) -> Alcotest.fail "a used one was cloned"
  | exception Continuation_already_resumed -> ()

(* Handlers of its own, a state among them, go with the computation: each way that the search takes has its
   own. *)
let nested () =
  let with_state (initial : int) f =
    let state = ref initial in
    match_with f ()
      {
        retc = (fun x -> (x, !state));
        exnc = raise;
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Get -> Some (fun (k : (a, _) continuation) -> continue k !state)
            | Put n ->
                Some (fun (k : (a, _) continuation) -> state := n; continue k ())
            | _ -> None);
      }
  in
  let passed = Array.init 4 string_of_int in
  let body () =
    with_state 1 (fun () ->
        let mine = [ passed.(2); passed.(3) ] in
        match
          with_state 10 (fun () ->
              try
                let x = if perform Choose then 2 else 3 in
                if perform Choose then raise Exit;
                x
              with Exit -> 100)
        with
        | x, _ -> String.concat "" mine ^ string_of_int (x * perform Get))
  in
  Alcotest.(check (list (pair string int)))
    "every way"
    [ ("23100", 1); ("232", 1); ("23100", 1); ("233", 1) ]
    (all body)

(* Computations of any depth, with a collection between. *)
let large () =
  let rec deep n = if n = 0 then if perform Choose then 1 else 2 else 1 + deep (n - 1) in
  Alcotest.(check (list int)) "both" [ 10_001; 10_002 ] (all (fun () -> deep 10_000));
  let count = ref 0 in
  let rec waits n = if n = 0 then perform Wait else (waits (n - 1); incr count) in
  let k = capture (fun () -> waits 10_000) in
  Gc.full_major ();
  let k' = Haft.unsafe_clone k in
  continue k ();
  continue k' ();
  Alcotest.(check int) "both" 20_000 !count

(* So many handlers inside one another that each has a stack of many. *)
let deeply_nested () =
  let rec inside n f =
    if n = 0 then f ()
    else
      1
      + match_with
          (fun () -> inside (n - 1) f)
          ()
          { retc = Fun.id; exnc = raise; effc = (fun _ -> None) }
  in
  Alcotest.(check (list int))
    "both" [ 1001; 1002 ]
    (all (fun () -> inside 1000 (fun () -> if perform Choose then 1 else 2)))

(* A computation that waits in a handler that will decline: only one of its copies can. *)
let declining () =
  let body () =
    match_with
      (fun () -> perform Get)
      ()
      {
        retc = Fun.id;
        exnc = raise;
        effc =
          (fun (type a) (_ : a t) ->
            perform Wait;
            (None : ((a, int) continuation -> int) option));
      }
  in
  let answers = ref [] in
  let k =
    capture (fun () ->
        match_with body ()
          {
            retc = (fun n -> answers := n :: !answers);
            exnc = raise;
            effc =
              (fun (type a) (effect : a t) ->
                match effect with
                | Get -> Some (fun (k : (a, _) continuation) -> continue k 42)
                | _ -> None);
          })
  in
  let k' = Haft.unsafe_clone k in
  continue k ();
  (match continue k' () with
  | () -> Alcotest.fail "it declined twice"
  | exception Continuation_already_resumed -> ());
  Alcotest.(check (list int)) "one has" [ 42 ] !answers

let refusals () =
  let k = capture (fun () -> List.iter perform (List.sort (fun _ _ -> 0) [ Wait ])) in
  continue (Haft.unsafe_clone k) ();
  continue k ();
  let k = capture (fun () -> call perform Wait) in
  List.iter
    (fun collect ->
      if collect then Gc.full_major ();
      match Haft.unsafe_clone k with
      | (_ : (unit, unit) continuation) -> Alcotest.fail "frames of C were cloned"
      | exception Invalid_argument reason ->
          Alcotest.(check string)
            "the reason" "Haft.unsafe_clone: there are functions of C on the computation's stack" reason)
    [ false; true ];
  continue k ()

type _ Effect.t += Ask : int t

(* The function of a handler waits while it is asked about [Ask]. Both copies of it decline, but there is
   one continuation to pass on. *)
let asked collects () =
  let waiting : (unit, int) continuation option ref = ref None in
  let passed_on : (int, int) continuation option ref = ref None in
  let declining () =
    try_with
      (fun () -> 1 + perform Ask)
      ()
      {
        effc =
          (fun (type a) (effect : a t) ->
            (match effect with Ask -> perform Wait | _ -> ());
            (None : ((a, int) continuation -> int) option));
      }
  in
  let handling () =
    try_with declining ()
      {
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Ask ->
                Some
                  (fun (k : (a, int) continuation) ->
                    if !passed_on <> None then Alcotest.fail "passed on twice";
                    passed_on := Some k;
                    0)
            | _ -> None);
      }
  in
  let started =
    try_with handling ()
      {
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Wait ->
                Some
                  (fun (k : (a, int) continuation) ->
                    waiting := Some k;
                    -1)
            | _ -> None);
      }
  in
  Alcotest.(check int) "it waits" (-1) started;
  if collects then Gc.full_major ();
  let k = Option.get !waiting in
  let copy = Haft.unsafe_clone k in
  Alcotest.(check int) "the first passes it on" 0 (continue k ());
  (match continue copy () with
  | (_ : int) -> Alcotest.fail "the copy had one, too"
  | exception Continuation_already_resumed -> ());
  Alcotest.(check int) "answered" 6 (continue (Option.get !passed_on) 5)

(* However many copies, and whatever of the minor heap is free, and whenever it is collected. *)
let among_collections () =
  let text n = String.init (n mod 40) (fun i -> Char.chr (97 + ((n + i) mod 26))) in
  let rec body n =
    let mine = text n and number = float n in
    let below = if n mod 40 = 0 then if perform Choose then 1 else 2 else body (n - 1) in
    if mine <> text n || number <> float n then Alcotest.fail "a value is corrupt";
    below
  in
  let start n =
    match_with body n
      {
        retc = Fun.id;
        exnc = raise;
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Choose ->
                Some
                  (fun (k : (a, int) continuation) ->
                    if n mod 5 = 0 then Gc.minor ();
                    if n mod 97 = 0 then Gc.full_major ();
                    let copies = List.init (n mod 4) (fun _ -> Haft.unsafe_clone k) in
                    if n mod 3 = 0 then Gc.minor ();
                    let first = continue k true in
                    List.fold_left (fun sum copy -> sum + continue copy false) first copies)
            | _ -> None);
      }
  in
  for n = 1 to 2000 do
    Alcotest.(check int) "sum" (1 + (2 * (n mod 4))) (start n);
    ignore (Sys.opaque_identity (Array.make (n mod 61) n))
  done

(* Copies that wait, of computations of all sizes, with exception handlers: on stacks, on shelves, and in the
   heap, where there are too many for either. [held]: how many stacks others have. *)
let many_wait held copies () =
  let rec body n depth =
    if depth = 0 then if perform Choose then n else -n
    else
      let mine = string_of_int (n + depth) in
      match body n (depth - 1) with
      | below ->
          if mine <> string_of_int (n + depth) then Alcotest.fail "a value is corrupt";
          if depth = 1 && below < 0 then raise Exit;
          below
      | exception Exit when depth = 2 -> -n
  in
  let waiting : (int * (bool, int) continuation) list ref = ref [] in
  let start n =
    match_with (body n) (if n mod 16 = 0 then 90 else n mod 12)
      {
        retc = Fun.id;
        exnc = (function Exit -> -n | e -> raise e);
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Choose ->
                Some
                  (fun (k : (a, int) continuation) ->
                    let copy = Haft.unsafe_clone k in
                    waiting := (n, copy) :: !waiting;
                    continue k true)
            | _ -> None);
      }
  in
  let others = List.init held (fun _ -> capture (fun () -> perform Wait)) in
  for n = 1 to copies do
    if start n <> n then Alcotest.fail "the first is wrong"
  done;
  Gc.minor ();
  for n = copies + 1 to 2 * copies do
    if start n <> n then Alcotest.fail "the first is wrong"
  done;
  List.iteri
    (fun i (n, copy) ->
      if i = copies / 2 then Gc.full_major ();
      if i mod 3 > 0 && continue copy false <> -n then Alcotest.fail "a copy is wrong")
    !waiting;
  List.iter (fun k -> continue k ()) others

(* Copies of stacks with gaps: of clauses that run in place. *)
let in_nests () =
  let rec inside depth f =
    if depth = 0 then f ()
    else
      match_with (fun () -> inside (depth - 1) f) ()
        {
          retc = (fun n -> n + 1);
          exnc = raise;
          effc =
            (fun (type a) (effect : a t) ->
              match effect with
              | Get ->
                  Some
                    (fun (k : (a, int) continuation) ->
                      let result = continue k 0 in
                      if perform Choose then result else result + 1000)
              | _ -> None);
        }
  in
  List.iter
    (fun depth ->
      Alcotest.(check (list int))
        (Printf.sprintf "%d deep" depth)
        (List.map (( + ) (depth + 7)) [ 0; 1000; 1000; 2000 ])
        (all (fun () ->
             inside depth (fun () ->
                 let first = perform Get in
                 let second = perform Get in
                 7 + first + second))))
    [ 1; 2; 100; 200; 300 ]

(* Where addresses are limited, only the first stacks are large. *)
let from_the_first_stacks () =
  let rec deep n = if n = 0 then (perform Wait; 0) else 1 + deep (n - 1) in
  let results = ref 0 in
  let waits calls = capture (fun () -> results := !results + deep calls) in
  let large = waits 100_000 in
  let others = List.init 100 (fun _ -> waits 1_000) in
  Gc.full_major ();
  let copies = List.init 3 (fun _ -> Haft.unsafe_clone large) in
  List.iter (fun k -> continue k ()) ((large :: copies) @ others);
  Alcotest.(check int) "results" 500_000 !results

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "clone"
    [
      ( "clone",
        List.map case
          [
            ("the example of the supplement", supplement);
            ("backtracking", search);
            ("copies are independent, before and after collections", copies);
            ("handlers go with the computation", nested);
            ("large computations", large);
            ("large computations, where most stacks are small", from_the_first_stacks);
            ("many handlers inside one another", deeply_nested);
            ("a handler that declines in one copy", declining);
            ("a handler that is asked while it is copied", asked false);
            ("the same after a collection", asked true);
            ("functions of C are refused", refusals);
            ("among collections", among_collections);
            ("many copies that wait", many_wait 0 1000);
            ("more than there are shelves for", many_wait 2500 35_000);
            ("between clauses that run in place", in_nests);
          ] );
    ]
(* SPDX-License-Identifier: MIT *)
