(* Many handlers around one another. HAFT_TEST_DEPTH: how many, where a test is about that.
   HAFT_TEST_CALLS: how deep a recursion without handlers goes. *)
open Cases
open Effect
open Effect.Deep

type _ Effect.t +=
  | Ask : int t
  | Never : unit t
  | Keep : int t
  | Start : (unit -> int) -> int t
  | Prime : int -> bool t

external call : ('a -> 'b) -> 'a -> 'b = "nests_call"
external call_with_roots : ('a -> 'b) -> 'a -> 'b = "collector_call"
external call_on_fiber : ('a -> 'b) -> 'a -> 'b = "collector_call_on_fiber"
external be_an_old_kernel : unit -> bool = "nests_be_an_old_kernel"
external kibibytes : string -> int = "nests_kibibytes"
external pause : unit -> unit = "collector_pause"
external stacks : unit -> int = "collector_stacks"
external frames : unit -> int = "nests_frames" [@@noalloc]
external stacks_around : unit -> int = "nests_stacks_around" [@@noalloc]

let most =
  match Sys.getenv_opt "HAFT_TEST_DEPTH" with
  | Some depth -> int_of_string depth
  | None -> 30_000

let calls =
  match Sys.getenv_opt "HAFT_TEST_CALLS" with
  | Some calls -> int_of_string calls
  | None -> 1_000_000

(* More than those that have a stack each. *)
let some = 400
let check = Alcotest.(check int)

exception Stop

let others f =
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Never -> Some (fun (k : (a, _) continuation) -> continue k ())
          | _ -> None);
    }

(* [f ()], whose Ask [clause] answers. *)
let asking (clause : (int, 'b) continuation -> 'b) f =
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask -> Some (fun (k : (a, _) continuation) -> clause k)
          | _ -> None);
    }

let answering (n : int) f = asking (fun k -> continue k n) f

(* Answers with 1 when what a collection has not found is overwritten. *)
let collecting f =
  asking
    (fun k ->
      Gc.compact ();
      for i = 1 to 200_000 do
        ignore (Sys.opaque_identity (ref i))
      done;
      continue k 1)
    f

(* [f ()], each time that it asks one more than before. *)
let counting f =
  match_with f ()
    {
      retc = (fun x _ -> x);
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask -> Some (fun (k : (a, _) continuation) (n : int) -> continue k n (n + 1))
          | _ -> None);
    }
    0

let ask_twice () =
  let a = perform Ask in
  a + perform Ask

(* [f ()], answered with what [number] is when it asks, by a clause that goes on after that. *)
let counting_from number f =
  asking
    (fun k ->
      let result = continue k (number ()) in
      result)
    f

(* [f ()] up to where it performs Keep, or its result. *)
let keeping f =
  let kept : (int, int) continuation option ref = ref None in
  let result =
    try_with f ()
      {
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Keep ->
                Some
                  (fun (k : (a, int) continuation) ->
                    kept := Some k;
                    0)
            | _ -> None);
      }
  in
  (result, !kept)

(* The depth and what [f] returns, under so many handlers that do not handle what it performs. *)
let rec below depth f =
  if depth = 0 then f () else 1 + others (fun () -> below (depth - 1) f)

(* Returns the result of [f], under as many. *)
let rec below_of depth f = if depth = 0 then f () else others (fun () -> below_of (depth - 1) f)

(* The same with code of C, or local roots, or exception handlers, at each level. *)
let rec below_calls depth f =
  if depth = 0 then f ()
  else
    let deeper () = below_calls (depth - 1) f in
    match depth mod 7 with
    | 0 -> 1 + others (fun () -> call deeper ())
    | 1 -> 1 + call others deeper
    | 2 -> 1 + others (fun () -> call_with_roots deeper ())
    | 3 -> 1 + call_on_fiber others deeper
    | 4 -> 1 + others (fun () -> try deeper () with Stop -> raise Stop)
    | _ -> 1 + others deeper

let rec primes i n sum =
  if i >= n then sum
  else if perform (Prime i) then
    try_with
      (fun () -> primes (i + 1) n (sum + i))
      ()
      {
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Prime e ->
                Some
                  (fun (k : (a, _) continuation) ->
                    if e mod i = 0 then continue k false
                    else continue k (perform (Prime e)))
            | _ -> None);
      }
  else primes (i + 1) n sum

let sieve n =
  try_with
    (fun () -> primes 2 n 0)
    ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Prime _ -> Some (fun (k : (a, _) continuation) -> continue k true)
          | _ -> None);
    }

let use_many () =
  check "returns" most (below most (fun () -> 0));
  match below most (fun () -> raise Stop) with
  | (_ : int) -> Alcotest.fail "it returned"
  | exception Stop -> ()

(* Whether the test fails in a process of its own. *)
let apart test () =
  flush_all ();
  match Unix.fork () with
  | 0 -> (
      match test () with
      | () -> Unix._exit 0
      | exception exn ->
          prerr_endline (Printexc.to_string exn);
          Unix._exit 1)
  | child -> (
      match Unix.waitpid [] child with
      | _, Unix.WEXITED 0 -> ()
      | _ -> Alcotest.fail "the process has failed")

let tests =
  [
    ( "a computation on one of the first stacks, however deep, moves with a function of C inside it",
      apart (fun () ->
          let rec deep n f = if n = 0 then f () else 1 + deep (n - 1) f in
          let waits () = others (fun () -> call ask_twice ()) in
          let rec try_from depth =
            Gc.compact (); (* No stack is idle: the computation inside is nested, if it can be. *)
            if depth < 1_100_000 then
              match deep depth waits with
              | sum ->
                  check "sum" (depth + 2) sum;
                  try_from (depth + 12_000)
              | exception Stack_overflow -> ()
          in
          let keep () = snd (keeping (call (fun () -> perform Keep))) in
          answering 1 (fun () ->
              let kept = List.init 200 (fun _ -> Option.get (keep ())) in
              try_from 0;
              List.fold_left (fun sum k -> sum + continue k 1) 0 kept)
          |> check "kept" 200) );
    ("handlers in handlers end as calls do", use_many);
    ( "and take less than 1 KiB each",
      apart (fun () ->
          let before = kibibytes "VmRSS" + kibibytes "VmPTE" in
          ignore
            (below most (fun () ->
                 let now = kibibytes "VmRSS" + kibibytes "VmPTE" in
                 if now - before > most + 8192 then
                   Alcotest.fail (Printf.sprintf "%d KiB for %d handlers" (now - before) most);
                 0))) );
    ( "the same again takes no more memory",
      apart (fun () ->
          let levels = 250_000 in
          (* More than fit on one stack. *)
          let recur () = check "returns" levels (below levels (fun () -> 0)) in
          recur ();
          let before = kibibytes "VmRSS" in
          recur ();
          (match below levels (fun () -> raise Stop) with
          | (_ : int) -> Alcotest.fail "it returned"
          | exception Stop -> ());
          recur ();
          let more = kibibytes "VmRSS" - before in
          if more > before / 4 then
            Alcotest.fail (Printf.sprintf "%d KiB, and %d more" before more)) );
    ( "nor where nothing follows the handlers in their computations",
      apart (fun () ->
          let recur () = check "returns" 0 (below_of 250_000 (fun () -> 0)) in
          recur ();
          let before = kibibytes "VmRSS" in
          for _ = 1 to 10 do
            recur ()
          done;
          let more = kibibytes "VmRSS" - before in
          if more > before / 4 then
            Alcotest.fail (Printf.sprintf "%d KiB, and %d more" before more)) );
    ( "memory that nothing uses any more is given back",
      apart (fun () ->
          let before = kibibytes "VmRSS" in
          ignore (below 250_000 (fun () -> 0));
          let taken = kibibytes "VmRSS" - before in
          (* (A compaction would give all of it back at once.) *)
          Gc.set { (Gc.get ()) with max_overhead = 1_000_000 };
          let rec wait tries =
            ignore (Sys.opaque_identity (ref tries));
            Gc.minor ();
            let kept = kibibytes "VmRSS" - before in
            if kept > taken / 3 then
              if tries = 0 then Alcotest.fail (Printf.sprintf "%d KiB of %d" kept taken)
              else (
                Unix.sleepf 0.1;
                wait (tries - 1))
          in
          wait 600) );
    ( "a compaction that the program asks for gives it back at once",
      apart (fun () ->
          let before = kibibytes "VmRSS" in
          ignore (below 250_000 (fun () -> 0));
          let taken = kibibytes "VmRSS" - before in
          Gc.compact ();
          let kept = kibibytes "VmRSS" - before in
          if kept > taken / 3 then Alcotest.fail (Printf.sprintf "%d KiB of %d" kept taken)) );
    ( "handlers in handlers share stacks, however many there have been before",
      apart (fun () ->
          let rec apart_below depth f =
            if depth = 0 then f () else others (fun () -> call_with_roots (apart_below (depth - 1)) f)
          in
          let around () = below_of 1_000 stacks_around in
          let alone = around () in
          check "one each" 3_000 (apart_below 3_000 stacks_around);
          Gc.minor ();
          let again = around () in
          if again > alone * 3 / 2 then
            Alcotest.fail (Printf.sprintf "%d stacks, and %d before" again alone)) );
    ( "as many on kernels that split mappings for guards",
      apart (fun () -> if be_an_old_kernel () then below most (fun () -> 0) |> check "returns" most)
    );
    ( "an effect passes very many handlers, and comes back",
      apart (fun () -> check "sum" (most + 2) (answering 1 (fun () -> below most ask_twice))) );
    ( "and as many where mappings are split",
      apart (fun () ->
          if be_an_old_kernel () then
            check "sum" (most + 2) (answering 1 (fun () -> below most ask_twice))) );
    ( "that takes no memory of its own",
      apart (fun () ->
          let before = kibibytes "VmRSS" + kibibytes "VmPTE" in
          let answer = counting_from (fun () -> kibibytes "VmRSS" + kibibytes "VmPTE") in
          let now = answer (fun () -> below_of most (fun () -> perform Ask)) in
          if now - before > most + 8192 then
            Alcotest.fail (Printf.sprintf "%d KiB for %d handlers" (now - before) most)) );
    ( "what an effect has passed is kept, moved, collected around, resumed, discontinued, copied and dropped",
      fun () ->
        let stopped = ref 0 and alive = ref 0 in
        let body depth () =
          let text = Sys.opaque_identity (String.make 3 'x') in
          let block = ref (Sys.opaque_identity 1) in
          incr alive;
          Gc.finalise (fun _ -> decr alive) block;
          let n =
            below depth (fun () ->
                let first = try perform Keep with Stop -> incr stopped; 10 in
                first + perform Ask)
          in
          n + String.length text - 3 + !block - 1
        in
        let kept depth =
          match keeping (body depth) with
          | _, Some k -> k
          | _ -> Alcotest.fail "it is not kept"
        in
        let go depth =
          let later = kept depth in
          check "at once" (depth + 3) (answering 2 (fun () -> continue (kept depth) 1));
          check "discontinued" (depth + 12) (answering 2 (fun () -> discontinue (kept depth) Stop));
          ignore (kept depth);
          let copied = kept (min depth 20) in
          let copy = Haft.unsafe_clone copied in
          Gc.minor ();
          check "copied" (min depth 20 + 3) (answering 2 (fun () -> continue copied 1));
          check "the copy" (min depth 20 + 4) (answering 2 (fun () -> continue copy 2));
          check "the frames" (min 3 depth)
            (min (min 3 depth) (Printexc.raw_backtrace_length (Deep.get_callstack later 10)));
          Gc.compact ();
          check "collected around" (depth + 2) (collecting (fun () -> continue later 1));
          match continue later 1 with
          | (_ : int) -> Alcotest.fail "it went on twice"
          | exception Continuation_already_resumed -> ()
        in
        let depths = [ 1; 2; 64; 65; 1_000; most / 3 ] in
        check "depth" some (below some (fun () -> List.iter go depths; 0));
        check "depth" some (below some (fun () -> others (fun () -> List.iter go depths); 0));
        check "stopped" (2 * List.length depths) !stopped;
        Gc.full_major ();
        Gc.full_major ();
        check "alive" 0 !alive );
    ( "what an effect has passed is put away and goes on at each of many levels",
      apart (fun () ->
          let chain () =
            match keeping (fun () -> below 3 (fun () -> perform Keep)) with
            | _, Some k -> continue k 1
            | _ -> Alcotest.fail "it is not kept"
          in
          let rec levels n =
            if n = 0 then 0
            else
              let m = chain () in
              m + others (fun () -> levels (n - 1))
          in
          check "sum" (some + (4 * 1_000)) (below some (fun () -> levels 1_000))) );
    ( "what has moved with handlers that nothing follows in their computations ends",
      fun () ->
        (* Each calls the next in tail position: the place where its fiber ends is all that is on its stack. *)
        let go depth =
          let kept () =
            match keeping (fun () -> below_of depth (fun () -> 1 + perform Keep)) with
            | _, Some k -> k
            | _ -> Alcotest.fail "it is not kept"
          in
          List.iter
            (fun move ->
              let stopped = kept () in
              let k = kept () in
              move ();
              (match discontinue stopped Stop with
              | (_ : int) -> Alcotest.fail "it returned"
              | exception Stop -> ());
              check "result" 3 (continue k 2))
            [ ignore; Gc.minor; Gc.full_major ]
        in
        let rec fill n f = if n = 0 then f () else n + fill (n - 1) f in
        let rec use_stacks n = if n = 0 then 0 else others (fun () -> fill 1_000 (fun () -> use_stacks (n - 1))) in
        let all () =
          Gc.compact (); (* No stack is idle: the next fibers are nested. *)
          List.iter go [ 2; 65 ];
          check "the stacks are whole" (20 * 500_500) (use_stacks 20);
          0
        in
        check "depth" some (below some all) );
    ( "unwinders pass the clause of an effect that has passed handlers",
      fun () ->
        let seen depth =
          let found = ref 0 in
          let number () = found := frames (); 0 in
          ignore (below some (fun () -> counting_from number (fun () -> below_of depth (fun () -> perform Ask))));
          !found
        in
        List.iter
          (fun depth ->
            let found = seen depth in
            (* (Where there is a gap, that is one.) *)
            if found < 2 * some || abs (found - seen 0) > 1 then
              Alcotest.fail (Printf.sprintf "%d frames past %d handlers" found depth))
          [ 0; 1; 2; 64; 65 ] );
    ( "handlers on the way that collect, perform, raise or call",
      fun () ->
        let turn = ref 0 in
        let declining f =
          try_with f ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Never -> None
                  | _ ->
                      incr turn;
                      (match !turn mod 97 with
                      | 0 -> Gc.minor ()
                      | 1 -> ignore (Gc.major_slice 0)
                      | 2 -> if !turn mod 9 = 0 then Gc.compact ()
                      | 3 -> perform Never
                      | 4 -> call ignore ()
                      | _ -> ());
                      None);
            }
        in
        let rec under depth f =
          if depth = 0 then f ()
          else
            let text = Sys.opaque_identity (String.make (depth mod 9) 'z') in
            let n = declining (fun () -> under (depth - 1) f) in
            if text <> String.make (depth mod 9) 'z' then Alcotest.fail "a text is lost";
            n + 1
        in
        let rec often n = if n = 0 then 0 else perform Ask + often (n - 1) in
        let all f = others (fun () -> answering 1 f) in
        check "in place" (1_000 + 30) (below_of some (fun () -> all (fun () -> under 1_000 (fun () -> often 30))));
        check "counting" (100 + 45)
          (below_of some (fun () -> others (fun () -> counting (fun () -> under 100 (fun () -> often 10)))));
        let raising f =
          try_with f ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Ask -> raise Stop
                  | _ -> None);
            }
        in
        match below_of some (fun () -> raising (fun () -> under 1_000 (fun () -> often 1))) with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Stop -> () );
    ( "what waits in a clause that is dropped in a collection is not lost",
      fun () ->
        let kept : (int, int) continuation option ref = ref None in
        let inner () =
          let text = Sys.opaque_identity (String.make 5 'w') in
          let n = perform Keep in
          n + String.length text
        in
        (* Its clause keeps the continuation, performs, and is dropped itself. *)
        let waits () =
          try_with inner ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Keep ->
                      Some
                        (fun (k : (a, int) continuation) ->
                          kept := Some k;
                          perform Ask)
                  | _ -> None);
            }
        in
        let dropping f =
          asking
            (fun _ ->
              Gc.minor ();
              0)
            f
        in
        let rec fill n = if n = 0 then 0 else n - n + fill (n - 1) in
        let go depth () =
          let n = dropping (fun () -> below_of depth waits) in
          let m = fill 1000 in
          match !kept with
          | Some k -> n + m + continue k 1
          | None -> Alcotest.fail "it is not kept"
        in
        List.iter (fun depth -> check "rest" (some + 6) (below some (go depth))) [ 0; 1; 2; 100 ] );
    ( "each handles effects",
      fun () ->
        let rec sum depth = if depth = 0 then 0 else answering depth (fun () -> sum (depth - 1) + perform Ask) in
        check "sum" (some * (some + 1) / 2) (sum some);
        let rec twice depth =
          if depth = 0 then 0
          else
            answering depth (fun () ->
                let first = perform Ask in
                let below = twice (depth - 1) in
                first + below + perform Ask)
        in
        check "twice" (some * (some + 1)) (twice some) );
    ( "an effect passes handlers to the outermost",
      fun () ->
        check "sum" (some + 3)
          (counting (fun () ->
               below some (fun () ->
                   let a = perform Ask in
                   let b = perform Ask in
                   a + b + perform Ask))) );
    ( "with exception handlers and calls of C among them",
      fun () ->
        check "sum" (some + 3)
          (counting (fun () ->
               below_calls some (fun () ->
                   let a = perform Ask in
                   Gc.compact ();
                   let b = perform Ask in
                   a + b + perform Ask)));
        match counting (fun () -> below_calls some (fun () -> if perform Ask = 0 then raise Stop else 0)) with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Stop -> () );
    ( "a fiber on which functions of C wait is captured where it is, again and again",
      fun () ->
        let nested () = answering 1 (fun () -> call (fun () -> counting ask_twice + call ask_twice ()) ()) in
        let rec often n = if n = 0 then 0 else nested () + often (n - 1) in
        check "sum" ((some * 3) + some) (below some (fun () -> often some));
        check "sum" (some * 4)
          (let rec deep n = if n = 0 then 0 else nested () + 1 + others (fun () -> deep (n - 1)) in
           deep some) );
    ( "very many handlers around it move to few stacks",
      apart (fun () ->
          let before = ref 0 in
          let waits () =
            let n = perform Ask in
            let more = stacks () - !before in
            if more > 200 then Alcotest.fail (Printf.sprintf "%d stacks more" more);
            n
          in
          let body () =
            before := stacks ();
            call waits () + call ask_twice ()
          in
          check "sum" (most + 3) (answering 1 (fun () -> below most body))) );
    ( "each of them may be captured so, further in and further out",
      fun () ->
        let turn = ref 0 in
        let asks () =
          incr turn;
          if !turn mod 100 = 0 then Gc.compact (); (* No stack is idle: the next fiber is nested. *)
          others (fun () -> call ask_twice ())
        in
        let rec levels n =
          if n = 0 then 0
          else
            let first = if n mod 3 = 0 then asks () else 0 in
            let below = others (fun () -> levels (n - 1)) in
            first + below + asks ()
        in
        check "sum" (2 * (1_500 + 500)) (answering 1 (fun () -> levels 1_500));
        let stops () = try call (fun () -> if perform Ask = 1 then raise Stop else 0) () with Stop -> 1 in
        let rec stopping n =
          if n = 0 then 0
          else
            let below = others (fun () -> stopping (n - 1)) in
            below + others stops
        in
        check "sum" (some + 300) (below some (fun () -> answering 1 (fun () -> stopping 300))) );
    ( "so is one through which a handler of C was found",
      fun () ->
        let waits () = pause (); call (fun () -> perform Ask) () + call (fun () -> pause (); 1) () in
        let body () =
          Gc.compact (); (* No stack is idle: the next fiber is nested. *)
          others waits
        in
        let nested () = call_on_fiber (fun () -> answering 1 body) () in
        let rec often n = if n = 0 then 0 else nested () + often (n - 1) in
        check "sum" (some + 40) (below some (fun () -> often 20));
        Gc.minor () );
    ( "local roots around the fiber that had the stack are still found",
      fun () ->
        let body () = call (fun () -> perform Ask) () in
        let host () = answering 1 (fun () -> others (fun () -> answering 1 (fun () -> others body))) in
        let host_collecting () = others (fun () -> collecting (fun () -> others body)) in
        check "results" (some + 2)
          (below some (fun () -> call_with_roots host () + call_with_roots host_collecting ())) );
    ( "local roots inside a fiber that is suspended together with a nested one are still found",
      fun () ->
        let twice () =
          let a = perform Keep in
          a + perform Ask
        in
        check "sum" (some + 2)
          (below some (fun () ->
               match keeping (call_with_roots twice) with
               | _, Some k ->
                   Gc.compact (); (* No stack is idle: the next fibers are nested. *)
                   collecting (fun () -> others (fun () -> continue k 1))
               | _ -> Alcotest.fail "it is not kept")) );
    ( "what is kept goes on later, elsewhere",
      fun () ->
        let kept = ref [] in
        let start calls () =
          let body () =
            let a = perform Keep in
            a + perform Ask
          in
          let result, k = keeping (fun () -> if calls then call body () else body ()) in
          kept := Option.get k :: !kept;
          result
        in
        let rec many n = if n = 0 then 0 else start (n mod 5 = 0) () + many (n - 1) in
        check "starts" some (below some (fun () -> many some));
        Gc.minor ();
        check "starts" some (below some (fun () -> many some));
        check "kept" (2 * some) (List.length !kept);
        let sum =
          below some (fun () ->
              List.fold_left (fun sum k -> sum + answering 2 (fun () -> continue k 1)) 0 !kept)
        in
        (* Ask is performed under the handler of Keep, and found around the continue. *)
        check "sum" (some + (3 * 2 * some)) sum );
    ( "what was dropped is collected",
      fun () ->
        let alive = ref 0 in
        let body () =
          let block = ref (Sys.opaque_identity 1) in
          incr alive;
          Gc.finalise (fun _ -> decr alive) block;
          let n = perform Keep in
          n + !block
        in
        ignore
          (below some (fun () ->
               for i = 1 to some do
                 ignore (keeping (if i mod 3 = 0 then call body else body))
               done;
               0));
        Gc.full_major ();
        Gc.full_major ();
        check "alive" 0 !alive );
    ( "discontinued computations raise where they are",
      fun () ->
        let stopped = ref 0 in
        let body () = try perform Keep with Stop -> incr stopped; 1 in
        let go calls =
          match keeping (if calls then call body else body) with
          | _, Some k -> discontinue k Stop
          | _ -> Alcotest.fail "it is not kept"
        in
        check "results" (some + 2) (below some (fun () -> go false + go true));
        check "stopped" 2 !stopped );
    ( "what is cloned is resumed by each",
      fun () ->
        let body () =
            let a = perform Keep in
            a + perform Ask
          in
        check "sum" (some + 3 + 4)
          (below some (fun () ->
               match keeping body with
               | _, Some k ->
                   let copy = Haft.unsafe_clone k in
                   let first = answering 1 (fun () -> continue k 2) in
                   first + answering 2 (fun () -> continue copy 2)
               | _ -> Alcotest.fail "it is not kept")) );
    ( "a stack that overflows is an exception",
      fun () ->
        let[@inline never] rec deep n = if n = 0 then 0 else 1 + deep (n - 1) in
        check "caught" (some + 1)
          (below some (fun () ->
               match answering 1 (fun () -> deep max_int) with
               | n -> n
               | exception Stack_overflow -> answering 1 (fun () -> perform Ask)));
        check "deep" (some + calls) (below some (fun () -> deep calls)) );
    ( "a clause that returns, raises or drops the continuation leaves it as it was",
      fun () ->
        let kept : (int, int) continuation list ref = ref [] in
        let body i () =
          let text = String.make i 'x' in
          let a = perform Keep in
          a + String.length text
        in
        let start i () =
          try_with (body i) ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Keep ->
                      Some
                        (fun (k : (a, int) continuation) ->
                          kept := k :: !kept;
                          if i mod 3 = 0 then raise Stop;
                          if i mod 7 = 0 then ignore (perform Ask);
                          if i mod 5 = 0 then collecting (fun () -> 0) else i)
                  | _ -> None);
            }
        in
        let rec many n =
          if n = 0 then 0
          else
            let more = try answering 1 (start n) with Stop -> 1 in
            ignore more;
            1 + many (n - 1)
        in
        check "starts" (2 * some) (below some (fun () -> many some));
        check "kept" some (List.length !kept);
        let sum = List.fold_left (fun sum k -> sum + continue k 1) 0 !kept in
        check "sum" (some + (some * (some + 1) / 2)) sum;
        match continue (List.hd !kept) 1 with
        | (_ : int) -> Alcotest.fail "it went on twice"
        | exception Continuation_already_resumed -> () );
    ( "clauses that perform themselves find what they left, whatever is collected between",
      fun () ->
        let asked = ref 0 in
        let collect n =
          match n mod 97 with
          | 0 -> Gc.minor ()
          | 1 -> ignore (Gc.major_slice 0)
          | 2 -> Gc.full_major ()
          | 3 when n mod 5 = 0 -> Gc.compact ()
          | _ -> ()
        in
        let rec walk level f =
          if level = 0 then answering 1 f
          else
            walk (level - 1) (fun () ->
                let text = Sys.opaque_identity (String.make (level mod 9) 'y') in
                let result =
                  try_with f ()
                    {
                      effc =
                        (fun (type a) (effect : a t) ->
                          match effect with
                          | Ask ->
                              Some
                                (fun (k : (a, _) continuation) ->
                                  incr asked;
                                  collect !asked;
                                  let before = Sys.opaque_identity (ref level) in
                                  let n = try perform Ask with Stop -> 1 in
                                  collect !asked;
                                  if !before <> level then Alcotest.fail "a value is lost";
                                  match !asked mod 11 with
                                  | 0 -> (
                                      try continue k (n + 1) with Not_found -> assert false)
                                  | 1 ->
                                      let result = continue k (n + 1) in
                                      if !before <> level then Alcotest.fail "a value is lost";
                                      result
                                  | 2 when !asked mod 5 = 0 -> discontinue k Stop
                                  | _ -> continue k (n + 1))
                          | _ -> None);
                    }
                in
                if text <> String.make (level mod 9) 'y' then Alcotest.fail "a text is lost";
                result)
        in
        let rec body n = if n = 0 then 0 else (try perform Ask with Stop -> 1) + body (n - 1) in
        check "sum" 0 (0 * below some (fun () -> walk 60 (fun () -> body 20)));
        check "asked" 1200 !asked );
    ( "tasks that take turns, and start others, do not fill the stack",
      fun () ->
        let queue = Queue.create () in
        let next () = if Queue.is_empty queue then 0 else (Queue.pop queue) () in
        let rec task level n () =
          if n = 0 then 0
          else begin
            perform Never;
            if n mod 4 = 0 && level < 2 then ignore (perform (Start (task (level + 1) (n mod 3))));
            task level (n - 1) ()
          end
        and run f =
          match_with f ()
            {
              retc = (fun _ -> next ());
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Never ->
                      Some
                        (fun (k : (a, int) continuation) ->
                          Queue.push (fun () -> continue k ()) queue;
                          next ())
                  | Start f ->
                      Some
                        (fun (k : (a, int) continuation) ->
                          Queue.push (fun () -> continue k 0) queue;
                          run f)
                  | _ -> None);
            }
        in
        let more = ref 0 in
        check "end" some
          (below some (fun () ->
               ignore (run (task 0 5_000));
               let before = kibibytes "VmRSS" in
               let result = run (task 0 100_000) in
               more := kibibytes "VmRSS" - before;
               result));
        if !more > 4096 then Alcotest.fail (Printf.sprintf "%d KiB more" !more) );
    ( "a computation in which a clause waits is cloned",
      fun () ->
        let waits () =
          try_with
            (fun () ->
              let a = perform Keep in
              a + 1)
            ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Keep ->
                      Some
                        (fun (_ : (a, _) continuation) ->
                          let text = Sys.opaque_identity (String.make 3 'z') in
                          let a = perform Ask in
                          a + String.length text)
                  | _ -> None);
            }
        in
        let both () =
          try_with
            (fun () -> try 10 + waits () with Stop -> 0)
            ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Ask ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          let copies = List.init 3 (fun _ -> Haft.unsafe_clone k) in
                          let first = continue k 100 in
                          Gc.full_major ();
                          List.fold_left (fun sum copy -> sum + continue copy 200) first copies)
                  | _ -> None);
            }
        in
        check "alone" 752 (both ());
        check "nested" (some + 752) (below some both);
        let rec on_each n = if n = 0 then 0 else both () + others (fun () -> on_each (n - 1)) in
        check "on each" (752 * some) (on_each some) );
    ( "threads have nests of their own",
      fun () ->
        let results = Array.make 4 0 in
        let work i =
          results.(i) <-
            counting (fun () ->
                below some (fun () ->
                    let a = perform Ask in
                    Thread.yield ();
                    Gc.minor ();
                    a + perform Ask))
        in
        let threads = List.init 4 (Thread.create work) in
        List.iter Thread.join threads;
        Array.iter (check "sum" (some + 1)) results;
        let ends () = ignore (below some (fun () -> call (fun () -> Thread.exit (); 0) ())) in
        Thread.join (Thread.create ends ());
        check "after that" some (below some (fun () -> 0)) );
    ( "a sieve of handlers",
      fun () ->
        check "sum" 171_848_738
          (if most >= 60_000 then sieve 60_000 else 171_848_738);
        check "sum" 1_548_136 (sieve 5000) );
  ]

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "nests" [ ("nests", List.map case tests) ]
(* SPDX-License-Identifier: MIT *)
