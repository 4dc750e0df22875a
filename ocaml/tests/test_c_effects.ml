(* One chain of handlers for OCaml and C: effects of OCaml under functions of C, and effects of C under
   OCaml code. *)
open Cases
open Effect
open Effect.Deep

external perform_ask : int -> int = "test_perform_ask"
external perform_tell : int -> unit = "test_perform_tell"
external call : ('a -> 'b) -> 'a -> 'b = "test_call"
external call_with_roots : ('a -> 'b) -> 'a -> 'b = "test_call_with_roots"
external answer : (unit -> 'a) -> int -> 'a = "test_answer"
external copy : (unit -> unit) -> string = "test_copy"
external count_in_place : (unit -> unit) -> int = "test_count_in_place"

type fiber

external start : (unit -> unit) -> fiber = "test_start"
external resume : fiber -> int -> int = "test_resume"
external drop : fiber -> unit = "test_drop"
external fibers : unit -> int = "test_fibers"

type _ Effect.t += Ask : int -> int t | Wait : unit t

exception Stop of string

let check = Alcotest.(check int)

(* Adds [number] to what [f] asks, after a collection. *)
let answering number f =
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask question ->
              Some
                (fun (k : (a, _) continuation) ->
                  Gc.compact ();
                  continue k (question + number))
          | _ -> None);
    }

let text n = String.concat "," (List.init n string_of_int)

let keeping f =
  let kept = text 20 in
  let result = f () in
  Alcotest.(check string) "kept over a suspension" (text 20) kept;
  result

let ocaml_effects =
  [
    ( "an effect performed in a callback is handled further out",
      fun () ->
        let ask () = keeping (fun () -> perform (Ask 1)) in
        check "one callback" 11 (answering 10 (fun () -> call ask ()));
        check "many" 33
          (answering 10 (fun () ->
               keeping (fun () ->
                   call_with_roots (fun () -> call ask () + call ask ()) ()
                   + call_with_roots ask ()))) );
    ( "the local roots of C functions survive, running and suspended",
      fun () ->
        let rec deep n =
          if n = 0 then (
            Gc.compact ();
            perform (Ask n))
          else
            call_with_roots
              (fun n ->
                answering n (fun () ->
                    if n mod 3 = 0 then ignore (perform (Ask n));
                    deep n))
              (n - 1)
        in
        check "nested" 0 (answering 5 (fun () -> deep 12)) );
    ( "reperform passes callbacks",
      fun () ->
        let through f =
          match_with f () { retc = succ; exnc = raise; effc = (fun _ -> None) }
        in
        check "sum" 13
          (answering 10 (fun () ->
               through (fun () ->
                   call_with_roots
                     (fun () -> through (fun () -> perform (Ask 1)))
                     ()))) );
    ( "a continuation with C frames is resumed after its handler has returned",
      fun () ->
        let kept : (unit, int) continuation option ref = ref None in
        let handle f =
          match_with f ()
            {
              retc = (fun n -> n);
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Wait ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          kept := Some k;
                          0)
                  | _ -> None);
            }
        in
        let body () =
          keeping (fun () ->
              call_with_roots
                (fun n ->
                  perform Wait;
                  n + 1)
                6)
        in
        check "suspended" 0 (handle body);
        Gc.compact ();
        check "resumed in another callback" 7
          (call (fun () -> continue (Option.get !kept) ()) ()) );
    ( "a dropped continuation with C frames is collected",
      fun () ->
        let collected = ref 0 in
        for _ = 1 to 10 do
          match_with
            (fun () ->
              call_with_roots
                (fun block ->
                  perform Wait;
                  Sys.opaque_identity (ignore (Sys.opaque_identity block)))
                (let block = ref 0 in
                 Gc.finalise (fun _ -> incr collected) block;
                 block))
            ()
            {
              retc = ignore;
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Wait -> Some (fun (_ : (a, _) continuation) -> Gc.minor ())
                  | _ -> None);
            }
        done;
        Gc.full_major ();
        Gc.full_major ();
        check "collected" 10 !collected );
    ( "an exception passes C and fibers",
      fun () ->
        match
          answering 1 (fun () ->
              call
                (fun () ->
                  answering 2 (fun () ->
                      call (fun n -> raise (Stop (text n))) 3))
                ())
        with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Stop text' ->
            Alcotest.(check string) "the exception" (text 3) text' );
  ]

let c_effects =
  [
    ( "an effect of C under OCaml code is handled by C",
      fun () ->
        check "on C's fiber" 12 (answer (fun () -> perform_ask 2) 10);
        check "on OCaml's" 12
          (answer (fun () -> answering 100 (fun () -> perform_ask 2)) 10) );
    ( "and the collector sees what is suspended by it",
      fun () ->
        let ask () =
          keeping (fun () ->
              let n = perform_ask 1 in
              Gc.compact ();
              n + call_with_roots perform_ask 2)
        in
        check "sum" 23 (answer ask 10);
        check "sum, on OCaml's fiber" 23
          (answer (fun () -> answering 100 ask) 10);
        check "many times" 2300
          (answer
             (fun () ->
               answering 0 (fun () ->
                   let sum = ref 0 in
                   for _ = 1 to 100 do
                     sum := !sum + call_with_roots ask ()
                   done;
                   !sum))
             10) );
    ( "both kinds at once, each to its handler",
      fun () ->
        check "sum" 1218
          (answering 1000 (fun () ->
               answer
                 (fun () ->
                   let a = answering 100 (fun () -> perform_ask 1) in
                   let b = perform (Ask 0) in
                   let c = answering 200 (fun () -> perform (Ask a)) in
                   a + b + c + perform_ask 1)
                 5)) );
    ( "what was asked on the fiber of C itself before is asked across OCaml's fibers",
      fun () ->
        check "sum" 66
          (answer
             (fun () ->
               let a = perform_ask 1 in
               let across () = keeping (fun () -> perform_ask a) in
               let b = answering 100 across in
               let c = answering 100 (fun () -> answering 100 (call across)) in
               a + b + c + answering 100 (fun () -> call_with_roots across ()) - 8)
             10);
        let fiber =
          start (fun () ->
              ignore (perform_ask 1);
              let ask () = raise (Stop (string_of_int (perform_ask 2))) in
              let caught () =
                match ask () with
                | () -> Alcotest.fail "it returned"
                | exception Stop reply ->
                    Gc.compact ();
                    int_of_string reply
              in
              check "a reply" 7 (answering 0 (fun () -> keeping (call caught))))
        in
        check "itself" 1 (resume fiber 0);
        let across () =
          let question = keeping (fun () -> resume fiber 6) in
          Gc.compact ();
          raise (Stop (string_of_int question))
        in
        (match across () with
        | () -> Alcotest.fail "it returned"
        | exception Stop text -> Alcotest.(check string) "across" "2" text);
        check "the end" (-1) (answering 0 (fun () -> resume fiber 7)) );
    ( "a handler of C in place",
      fun () ->
        check "sum" 55
          (count_in_place (fun () ->
               for i = 1 to 10 do
                 answering 0 (fun () ->
                     perform_tell i;
                     ignore (perform (Ask i)))
                 |> ignore
               done)) );
    ( "an effect of OCaml crosses a handler of C in place",
      fun () ->
        check "sum" 6
          (answering 1 (fun () ->
               count_in_place (fun () ->
                   perform_tell (perform (Ask 1));
                   perform_tell (perform (Ask 3))))) );
    ( "an effect of OCaml crosses a fiber of C",
      fun () ->
        check "sum" 22
          (answering 1 (fun () ->
               answer
                 (fun () ->
                   keeping (fun () ->
                       let a = perform (Ask 1) in
                       let b = perform_ask a in
                       let c = keeping (fun () -> perform (Ask b)) in
                       perform_ask (c - 1)))
                 10)) );
    ( "a fiber of C is resumed by OCaml code from different places",
      fun () ->
        let sum = ref 0 in
        let fiber =
          start (fun () ->
              keeping (fun () ->
                  for i = 1 to 5 do
                    sum := !sum + answering 0 (fun () -> perform_ask i)
                  done))
        in
        check "first" 1 (resume fiber 0);
        check "in a callback" 2 (call (resume fiber) 10);
        Gc.compact ();
        check "in a fiber" 3 (answering 0 (fun () -> resume fiber 20));
        check "deeper" 4
          (answering 0 (fun () ->
               call_with_roots (fun () -> answering 0 (fun () -> resume fiber 30)) ()));
        check "again" 5 (resume fiber 40);
        check "the end" (-1) (resume fiber 50);
        check "what it got" 150 !sum );
    ( "a fiber of C that waits over OCaml code is dropped",
      fun () ->
        let fiber = start (fun () -> ignore (call perform_ask 1)) in
        check "waits" 1 (resume fiber 0);
        drop fiber;
        let fiber =
          start (fun () -> ignore (answering 0 (fun () -> perform_ask 2)))
        in
        check "waits, on OCaml's fiber" 2 (resume fiber 0);
        drop fiber;
        Gc.compact () );
    ( "a fiber of C over handlers in handlers, and callbacks that were suspended there, is dropped",
      fun () ->
        let rec below depth f =
          if depth = 0 then f () else 1 + answering 0 (fun () -> below (depth - 1) f)
        in
        let start_below () =
          start (fun () ->
              let ask () =
                let a = perform (Ask 1) in
                a + perform_ask 3
              in
              check "the depth, and answers" 305 (below 300 (call ask)))
        in
        let dropped = start_below () and resumed = start_below () in
        check "waits" 3 (resume dropped 0);
        check "waits" 3 (resume resumed 0);
        drop dropped;
        check "depth" 300 (below 300 (fun () -> 0));
        check "ends" (-1) (resume resumed 4) );
    ( "an exception that nothing on a fiber of C catches reaches who resumed it",
      fun () ->
        let raises f =
          match f () with
          | (_ : int) -> Alcotest.fail "it returned"
          | exception Stop text' ->
              Gc.compact ();
              Alcotest.(check string) "the exception" (text 4) text'
        in
        let stop () = raise (Stop (text 4)) in
        raises (fun () -> resume (start stop) 0);
        raises (fun () -> answer stop 1);
        raises (fun () -> answering 0 (fun () -> answer stop 1));
        raises (fun () ->
            answer (fun () -> answering 0 (fun () -> call stop ())) 1);
        raises (fun () ->
            let fiber =
              start (fun () ->
                  ignore (perform_ask 1);
                  stop ())
            in
            check "waits" 1 (resume fiber 0);
            call (fun () -> answering 0 (fun () -> resume fiber 0)) ());
        check "the chain is as it was" 11 (answer (fun () -> perform_ask 1) 10)
    );
    ( "a computation of OCaml is not copied by C",
      fun () ->
        let question = ref 0 in
        let refusal = copy (fun () -> question := perform_ask 7) in
        check "it goes on" 7 !question;
        let expected = "because another language's frames may be among them." in
        let length = String.length refusal and last = String.length expected in
        Alcotest.(check string)
          "is refused" expected
          (if length < last then refusal
           else String.sub refusal (length - last) last) );
    ( "the fibers of OCaml are listed with those of C",
      fun () ->
        let before = fibers () in
        answering 0 (fun () ->
            check "one more" (before + 1) (fibers ());
            answer (fun () -> check "two more" (before + 2) (fibers ())) 0;
            0)
        |> ignore;
        check "as before" before (fibers ()) );
  ]

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "c_effects"
    [
      ("effects of OCaml", List.map case ocaml_effects);
      ("effects of C", List.map case c_effects);
    ]
(* SPDX-License-Identifier: MIT *)
