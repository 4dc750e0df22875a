(* The semantics of §4, and what OCaml 5's documentation adds to it: a sentence a test. *)
open Cases
open Effect

external resident : unit -> int = "collector_resident"

type _ Effect.t +=
  | Ask : int t
  | Say : string -> unit t
  | Wait : unit t
  | Other : int t
  | Next : string t

exception Stop of int

let check_int = Alcotest.(check int)
let check_string = Alcotest.(check string)

(* [f ()], where Ask is answered with [n]. *)
let answering (n : int) f =
  Deep.try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask -> Some (fun (k : (a, _) Deep.continuation) -> Deep.continue k n)
          | _ -> None);
    }

(* [f ()] up to its first Wait. *)
external hold : (unit, int) Deep.continuation -> unit = "collector_hold"
external held : unit -> (unit, int) Deep.continuation = "collector_held"

let suspended f =
  let k : (unit, int) Deep.continuation option ref = ref None in
  let result =
    Deep.match_with f ()
      {
        retc = (fun n -> n);
        exnc = raise;
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Wait ->
                Some
                  (fun (k' : (a, _) Deep.continuation) ->
                    k := Some k';
                    -1)
            | _ -> None);
      }
  in
  check_int "it waits" (-1) result;
  Option.get !k

let deep =
  let open Deep in
  [
    ( "a continuation's hash stays the same, and it is not compared",
      fun () ->
        let deep_frames n = let rec deep n = if n = 0 then (perform Wait; 0) else 1 + deep (n - 1) in deep n in
        let check_refused what comparison =
          match comparison () with
          | (_ : bool) -> Alcotest.fail (what ^ ": it was compared")
          | exception Invalid_argument _ -> ()
        in
        let check frames =
          let k = suspended (fun () -> deep_frames frames) in
          let hash = Hashtbl.hash k and hash_deeply = Hashtbl.seeded_hash_param 500 256 1 k in
          let check_hash when_ =
            check_int when_ hash (Hashtbl.hash k);
            check_int when_ hash_deeply (Hashtbl.seeded_hash_param 500 256 1 k);
            check_refused when_ (fun () -> k = k);
            check_refused when_ (fun () -> (k, 1) = (k, 2));
            check_int when_ 0 (compare k k)
          in
          check_hash "suspended";
          Gc.minor ();
          check_hash "after a minor collection";
          Gc.full_major ();
          Gc.full_major ();
          check_hash "after two cycles of the major collector";
          Gc.compact ();
          check_hash "after a compaction";
          let other = suspended (fun () -> deep_frames frames) in
          check_refused "another" (fun () -> k = other);
          check_refused "another, in order" (fun () -> compare k other < 0);
          let copy = Haft.unsafe_clone k in
          check_hash "after it was copied";
          check_refused "a copy" (fun () -> k = copy);
          check_int "the copy" frames (continue copy ());
          check_int "the other" frames (continue other ());
          check_int "it" frames (continue k ());
          check_hash "resumed"
        in
        check 0;
        check 10;
        check 10_000 );
    ( "perform returns what the continuation is continued with",
      fun () -> check_int "sum" 21 (answering 10 (fun () -> 1 + perform Ask + perform Ask)) );
    ( "the return case makes the result, in the handler's context",
      fun () ->
        let result =
          answering 5 (fun () ->
              match_with
                (fun () -> answering 1 (fun () -> perform Ask))
                ()
                {
                  retc = (fun n -> Printf.sprintf "%d %d" n (perform Ask));
                  exnc = raise;
                  effc = (fun _ -> None);
                })
        in
        check_string "result" "1 5" result );
    ( "the exception case makes the result, in the handler's context",
      fun () ->
        let result =
          answering 5 (fun () ->
              match_with
                (fun () -> answering 1 (fun () -> raise (Stop (perform Ask))))
                ()
                {
                  retc = (fun () -> "no");
                  exnc =
                    (function
                    | Stop n -> Printf.sprintf "%d %d" n (perform Ask)
                    | e -> raise e);
                  effc = (fun _ -> None);
                })
        in
        check_string "result" "1 5" result );
    ( "the effect case runs outside of its handler",
      fun () ->
        let handle (n : int) f =
          try_with f ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Ask ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          continue k ((10 * perform Ask) + n))
                  | _ -> None);
            }
        in
        check_int "digits" 123
          (answering 1 (fun () -> handle 2 (fun () -> handle 3 (fun () -> perform Ask)))) );
    ( "a deep handler handles the rest of the computation, too",
      fun () ->
        let log = Buffer.create 16 in
        let result =
          match_with
            (fun () ->
              for i = 1 to 3 do
                perform (Say (string_of_int i))
              done;
              Buffer.contents log)
            ()
            {
              retc = (fun s -> s ^ "!");
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Say s ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          Buffer.add_string log s;
                          continue k () ^ s)
                  | _ -> None);
            }
        in
        check_string "result" "123!321" result );
    ( "the innermost handler that handles it is found, through any number of others",
      fun () ->
        let rec under (n : int) f =
          if n = 0 then f ()
          else
            try_with (under (n - 1)) f
              {
                effc =
                  (fun (type a) (effect : a t) ->
                    match effect with
                    | Other -> Some (fun (k : (a, _) continuation) -> continue k n)
                    | _ -> None);
              }
        in
        check_int "sum" 305
          (answering 300 (fun () ->
               under 100 (fun () -> perform Ask + (5 * perform Other)))) );
    ( "reperform works after a collection between the handlers, too",
      fun () ->
        let collecting collect f =
          try_with f ()
            {
              effc =
                (fun _ ->
                  collect ();
                  None);
            }
        in
        let kept = String.make 3 'k' in
        let body () =
          let inner = String.make 2 'i' in
          let n = perform Ask in
          n + String.length (kept ^ inner)
        in
        List.iter
          (fun collect ->
            check_int "sum" 15
              (answering 10 (fun () ->
                   collecting collect (fun () ->
                       collecting ignore (fun () -> collecting collect body)))))
          [ ignore; Gc.minor; Gc.full_major; Gc.compact ] );
    ( "an effect without a handler raises Unhandled at the perform",
      fun () ->
        let cleaned = ref 0 in
        let body () =
          match perform Ask with
          | (_ : int) -> Alcotest.fail "it returned"
          | exception Unhandled Ask ->
              incr cleaned;
              0
        in
        let none f = try_with f () { effc = (fun _ -> None) } in
        ignore (body ());
        ignore (none body);
        ignore (none (fun () -> none body));
        check_int "cleaned up" 3 !cleaned );
    ( "and resources are cleaned up by the handlers there",
      fun () ->
        let order = Buffer.create 16 in
        let finally name f =
          Fun.protect f ~finally:(fun () -> Buffer.add_string order name)
        in
        (match
           finally "a" (fun () ->
               try_with
                 (fun () ->
                   finally "b" (fun () ->
                       try_with
                         (fun () -> finally "c" (fun () -> perform Ask))
                         ()
                         { effc = (fun _ -> None) }))
                 ()
                 { effc = (fun _ -> None) })
         with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Unhandled Ask -> ());
        check_string "order" "cba" (Buffer.contents order) );
    ( "continuations are one-shot",
      fun () ->
        let k = suspended (fun () -> perform Wait; 7) in
        check_int "the first time" 7 (continue k ());
        let used what f =
          match f () with
          | (_ : int) -> Alcotest.fail (what ^ " a second time")
          | exception Continuation_already_resumed -> ()
        in
        used "continue" (fun () -> continue k ());
        used "discontinue" (fun () -> discontinue k Exit);
        Gc.full_major ();
        used "continue, after a collection," (fun () -> continue k ());
        let k = suspended (fun () -> perform Wait; 7) in
        Gc.full_major ();
        (match discontinue k Exit with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Exit -> ());
        used "discontinue" (fun () -> discontinue k Exit);
        let self () =
          try_with
            (fun () -> perform Ask)
            ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Ask ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          ignore (continue k 1);
                          continue k 2)
                  | _ -> None);
            }
        in
        used "continue in the handler" self );
    ( "continuations cannot be marshalled",
      fun () ->
        let nested () =
          match_with
            (fun () -> perform Wait; 7)
            ()
            { retc = Fun.id; exnc = raise; effc = (fun _ -> None) }
        in
        let refused k =
          match Marshal.to_string k [ Marshal.Closures ] with
          | (_ : string) -> Alcotest.fail "it was written"
          | exception Invalid_argument _ -> ()
        in
        List.iter
          (fun body ->
            let k = suspended body in
            refused k;
            Gc.full_major ();
            refused k;
            check_int "it is as it was" 7 (continue k ());
            refused k)
          [ (fun () -> perform Wait; 7); nested ] );
    ( "a copy of Weak's is resumed, or what it was copied from",
      fun () ->
        let nested () =
          match_with
            (fun () -> perform Wait; 7)
            ()
            { retc = Fun.id; exnc = raise; effc = (fun _ -> None) }
        in
        let rec deep n =
          if n = 0 then (perform Wait; 7) else Sys.opaque_identity (deep (n - 1))
        in
        let check ~collect body =
          let k = suspended body in
          if collect then Gc.full_major ();
          let weak = Weak.create 1 in
          Weak.set weak 0 (Some k);
          let copy = Option.get (Weak.get_copy weak 0) in
          (* Before a collection, the copy has nothing. *)
          let first, second = if collect then (copy, k) else (k, copy) in
          check_int "the first time" 7 (continue first ());
          match continue second () with
          | (_ : int) -> Alcotest.fail "it returned"
          | exception Continuation_already_resumed -> ()
        in
        let computations =
          [ (fun () -> perform Wait; 7); nested; (fun () -> deep 1000) ]
        in
        List.iter (check ~collect:false) computations;
        List.iter (check ~collect:true) computations );
    ( "a minor collection forgets what only dropped computations have",
      fun () ->
        let weak = Weak.create 1 in
        let drop () =
          let block = ref 1 in
          Weak.set weak 0 (Some block);
          ignore (suspended (fun () -> perform Wait; !(Sys.opaque_identity block)))
        in
        drop ();
        Gc.minor ();
        Alcotest.(check bool) "it is gone" false (Weak.check weak 0) );
    ( "a minor collection keeps what a chain of computations has, each of which has the next",
      fun () ->
        let rec chain length k =
          if length = 0 then k else chain (length - 1) (suspended (fun () -> perform Wait; 1 + continue k ()))
        in
        List.iter
          (fun length ->
            let block = Array.init 3 (fun i -> String.make 3 (Char.chr (97 + i))) in
            let first = suspended (fun () -> perform Wait; String.length (String.concat "" (Array.to_list block))) in
            let k = chain length first in
            Gc.minor ();
            ignore (Array.init 10_000 (fun i -> ref i));
            check_int "the innermost one, and those around it" (9 + length) (continue k ()))
          [ 0; 1; 7; 8; 9; 100 ] );
    ( "a continuation that a hook of the program finds last is kept",
      fun () ->
        let text = String.make 3 'a' in
        hold (suspended (fun () -> perform Wait; String.length (String.concat text [ "b"; "c" ])));
        Gc.minor ();
        ignore (Array.init 10_000 (fun i -> ref i));
        check_int "its length" 5 (continue (held ()) ()) );
    ( "discontinue raises where the effect was performed",
      fun () ->
        let body () =
          match perform Wait with
          | () -> 0
          | exception Stop n -> n
        in
        check_int "caught there" 5 (discontinue (suspended body) (Stop 5));
        let k = suspended (fun () -> perform Wait; 0) in
        Gc.compact ();
        match discontinue k (Stop 6) with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Stop n -> check_int "not caught" 6 n );
    ( "exceptions cross fibers in both directions",
      fun () ->
        let through f =
          answering 0 (fun () -> answering 1 (fun () -> answering 2 f))
        in
        (match through (fun () -> raise (Stop 1)) with
        | (_ : int) -> Alcotest.fail "it returned"
        | exception Stop n -> check_int "outwards" 1 n);
        check_int "inwards" 3
          (try_with
             (fun () ->
               through (fun () ->
                   match perform Wait with
                   | () -> 0
                   | exception Stop n -> n + perform Ask))
             ()
             {
               effc =
                 (fun (type a) (effect : a t) ->
                   match effect with
                   | Wait ->
                       Some (fun (k : (a, _) continuation) -> discontinue k (Stop 1))
                   | _ -> None);
             }) );
    ( "exceptions of the runtime and of C functions, too",
      fun () ->
        let array = [| 1 |] in
        let caught f =
          match answering 5 f with
          | (_ : int) -> "nothing"
          | exception (Failure _ | Invalid_argument _ | Division_by_zero | Not_found as e) ->
              Printexc.to_string e
        in
        check_string "C" "Failure(\"int_of_string\")"
          (caught (fun () -> int_of_string (string_of_int (perform Ask) ^ "?")));
        check_string "bounds" "Invalid_argument(\"index out of bounds\")"
          (caught (fun () -> array.(perform Ask)));
        check_string "division" "Division_by_zero"
          (caught (fun () -> perform Ask / (perform Ask - 5)));
        check_int "caught inside" 6
          (answering 5 (fun () ->
               match Sys.getenv "HAFT NO SUCH VARIABLE" with
               | (_ : string) -> 0
               | exception Not_found -> 1 + perform Ask)) );
    ( "continue in tail position takes no stack",
      fun () ->
        let count = ref 0 in
        answering 1 (fun () ->
            while !count < 10_000_000 do
              count := !count + perform Ask
            done;
            0)
        |> ignore;
        check_int "steps" 10_000_000 !count );
    ( "nor does a chain of tail calls through handlers",
      fun () ->
        let queue = Queue.create () in
        let steps = ref 0 in
        let next () = if Queue.is_empty queue then () else (Queue.pop queue) () in
        let spawn f =
          match_with f ()
            {
              retc = next;
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Wait ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          incr steps;
                          Queue.push (fun () -> continue k ()) queue;
                          next ())
                  | _ -> None);
            }
        in
        let body () =
          for _ = 1 to 100_000 do
            perform Wait
          done
        in
        for _ = 1 to 9 do
          Queue.push (fun () -> spawn body) queue
        done;
        spawn body;
        check_int "steps" 1_000_000 !steps );
    ( "whatever a clause ends with, however often the collector runs in between",
      fun () ->
        let shallowest = ref max_int and deepest = ref 0 in
        let step () =
          Gc.minor ();
          let frames =
            Printexc.(raw_backtrace_length (get_callstack 10_000))
          in
          shallowest := min !shallowest frames;
          deepest := max !deepest frames
        in
        let check name f =
          shallowest := max_int;
          deepest := 0;
          f ();
          (* A frame of the library's may be there or not. *)
          if !deepest > !shallowest + 2 then
            Alcotest.failf "%s: from %d to %d frames" name !shallowest !deepest
        in
        let wait_often () =
          for _ = 1 to 1000 do
            perform Wait
          done
        in
        (* [f ()] under a clause that ends with [last]. *)
        let ending_with (last : (unit, unit) continuation -> unit) f =
          try_with f ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Wait ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          step ();
                          last k)
                  | _ -> None);
            }
        in
        let waking = ending_with (fun k -> continue k ()) in
        check "continue" (fun () -> waking wait_often);
        check "declined" (fun () ->
            waking (fun () ->
                ignore (answering 1 (fun () -> wait_often (); 0))));
        check "discontinue" (fun () ->
            let ended = ref 0 in
            ending_with
              (fun k -> discontinue k Exit)
              (fun () ->
                while !ended < 1000 do
                  try perform Wait with Exit -> incr ended
                done));
        check "continue_with" (fun () ->
            let rec go : (unit, unit) Shallow.continuation -> unit =
             fun k ->
              Shallow.continue_with k ()
                {
                  retc = ignore;
                  exnc = raise;
                  effc =
                    (fun (type a) (effect : a t) ->
                      match effect with
                      | Wait ->
                          Some
                            (fun (k : (a, _) Shallow.continuation) ->
                              step ();
                              go k)
                      | _ -> None);
                }
            in
            go (Shallow.fiber wait_often));
        check "match_with" (fun () ->
            let rec spawn n =
              ending_with
                (fun _ -> if n > 0 then spawn (n - 1))
                (fun () -> perform Wait)
            in
            spawn 1000) );
    ( "what calls have left below the stack pointer does not matter",
      fun () ->
        let rec leave n = if n = 0 then 0 else leave (n + 1) + n in
        let program () =
          ignore (Sys.opaque_identity (leave (-40)));
          let answer = answering 1 (fun () -> perform Wait; 3) in
          answer + Sys.opaque_identity 4
        in
        (* On the second stack nothing is written in between. *)
        for _ = 1 to 2 do
          let k = suspended program in
          Gc.minor ();
          Gc.full_major ();
          check_int "answer" 7 (continue k ())
        done );
    ( "a continuation may be resumed under other handlers than it was captured under",
      fun () ->
        let k = ref None in
        let capture () =
          k :=
            Some
              (suspended (fun () ->
                   let before = perform Ask in
                   perform Wait;
                   (10 * before) + perform Ask));
          0
        in
        check_int "captured" 0 (answering 1 capture);
        check_int "digits" 12
          (answering 2 (fun () -> continue (Option.get !k) ())) );
    ( "floats, many arguments and registers survive a suspension",
      fun () ->
        let body a b c d e f g h (x : float) (y : float) =
          let z = (x *. y) +. float a in
          let n = perform Ask in
          let s = Printf.sprintf "%d%d%d%d%d%d%d%d" a b c d e f g h in
          check_string "arguments" "12345678" s;
          int_of_float (z +. (x *. float n))
        in
        check_int "result" 26
          (answering 10 (fun () -> body 1 2 3 4 5 6 7 8 2.0 2.5)) );
    ( "handlers are found by identity of constructors",
      fun () ->
        let module A = struct type _ Effect.t += Same : int t end in
        let module B = struct type _ Effect.t += Same : int t end in
        let handle_a f =
          try_with f ()
            {
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | A.Same -> Some (fun (k : (a, _) continuation) -> continue k 1)
                  | _ -> None);
            }
        in
        check_int "A" 1 (handle_a (fun () -> perform A.Same));
        match handle_a (fun () -> perform B.Same) with
        | (_ : int) -> Alcotest.fail "B was handled"
        | exception Unhandled B.Same -> () );
    ( "exceptions of the module print as those of OCaml 5",
      fun () ->
        check_string "Unhandled" "Stdlib.Effect.Unhandled(Dune__exe__Test_effects.Say(\"x\"))"
          (let s = Printexc.to_string (Unhandled (Say "x")) in
           (* The compilation unit's name depends on the build. *)
           let from = String.index s '(' + 1 and dot = String.rindex s '.' in
           String.sub s 0 from ^ "Dune__exe__Test_effects"
           ^ String.sub s dot (String.length s - dot));
        check_string "Continuation_already_resumed"
          "Stdlib.Effect.Continuation_already_resumed"
          (Printexc.to_string Continuation_already_resumed) );
    ( "a finaliser may discontinue what was dropped",
      fun () ->
        (* §5.6. *)
        let cleaned = ref 0 in
        for _ = 1 to 5 do
          let k =
            suspended (fun () ->
                Fun.protect
                  ~finally:(fun () -> incr cleaned)
                  (fun () -> perform Wait);
                0)
          in
          Gc.finalise (fun k -> try ignore (discontinue k Exit) with Exit -> ()) k
        done;
        Gc.full_major ();
        Gc.full_major ();
        check_int "cleaned up" 5 !cleaned );
    ( "one full collection finds what was dropped",
      fun () ->
        let[@inline never] rec deep n = if n = 0 then (perform Wait; 0) else 1 + deep (n - 1) in
        let cleaned = ref 0 and collected = ref 0 in
        let drop depth =
          let block = ref 0 in
          Gc.finalise_last (fun () -> incr collected) block;
          let k =
            suspended (fun () ->
                Fun.protect ~finally:(fun () -> incr cleaned) (fun () -> deep depth + !(Sys.opaque_identity block)))
          in
          Gc.finalise (fun k -> try ignore (discontinue k Exit) with Exit -> ()) k
        in
        List.iteri
          (fun before depth ->
            drop depth;
            Gc.full_major ();
            check_int "cleaned up" (before + 1) !cleaned)
          [ 0; 0; 3; 1000; 0 ];
        Gc.full_major ();
        check_int "collected" 5 !collected;
        let continuation = suspended (fun () -> deep 0) in
        Gc.full_major ();
        check_int "kept" 0 (continue continuation ()) );
    ( "deep stacks drive the major collector by their size",
      fun () ->
        let[@inline never] rec deep n =
          if n = 0 then (perform Wait; 0) else 1 + deep (n - 1)
        in
        (* On a heap that takes the collector some time. *)
        let heap = Array.init 1_000_000 (fun i -> [ i; i ]) in
        let collections () = (Gc.quick_stat ()).major_collections in
        Gc.full_major ();
        let before = collections () in
        let rec drop n =
          if collections () > before then ()
          else if n = 0 then Alcotest.fail "700 MB of dropped stacks and no collection"
          else begin
            let k = suspended (fun () -> deep 440_000) in
            Gc.minor ();
            ignore (Sys.opaque_identity k);
            ignore (Gc.major_slice 0);
            drop (n - 1)
          end
        in
        drop 100;
        ignore (Sys.opaque_identity heap) );
    ( "the memory of deep stacks comes back, and many stacks do",
      fun () ->
        let[@inline never] rec deep n =
          if n = 0 then (perform Wait; 0) else 1 + deep (n - 1)
        in
        Gc.compact ();
        let before = resident () in
        let hold count depth =
          let kept = List.init count (fun _ -> suspended (fun () -> deep depth)) in
          Gc.full_major ();
          let held = resident () - before in
          ignore (Sys.opaque_identity kept);
          held
        in
        (* 100 of more than 600 KiB each, dropped; and as many that have returned. *)
        if hold 100 40_000 < 60_000_000 then Alcotest.fail "they were not deep";
        List.init 100 (fun _ -> suspended (fun () -> deep 40_000))
        |> List.iter (fun k -> ignore (continue k ()));
        ignore (hold 5000 100);
        Gc.compact ();
        let left = resident () - before in
        (* A page of each stack stays. *)
        if left > 30_000_000 then
          Alcotest.fail (Printf.sprintf "%d bytes are resident" left) );
    ( "dropped continuations are collected, cycles included",
      fun () ->
        let collected = ref 0 in
        let make collect =
          let cycle = ref None in
          let block = ref 0 in
          Gc.finalise_last (fun () -> incr collected) block;
          let k =
            suspended (fun () ->
                answering 1 (fun () ->
                    perform Wait;
                    !(Sys.opaque_identity block)
                    + Option.fold ~none:0 ~some:(fun _ -> 1) !cycle))
          in
          cycle := Some k;
          collect ()
        in
        List.iter make [ ignore; Gc.minor; Gc.full_major; Gc.compact ];
        Gc.full_major ();
        Gc.full_major ();
        check_int "collected" 4 !collected );
  ]

let shallow =
  let open Shallow in
  let rec asked : type a. int -> (a, int) continuation -> a -> int =
   fun n k v ->
    continue_with k v
      {
        retc = (fun x -> x);
        exnc = raise;
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | Ask -> Some (fun (k : (a, _) continuation) -> asked (n + 1) k n)
            | _ -> None);
      }
  in
  [
    ( "each effect is up to the handler of the last resumption",
      fun () ->
        let f start = List.init 5 (fun _ -> perform Ask) |> List.fold_left ( + ) start in
        check_int "sum" 110 (asked 0 (fiber f) 100) );
    ( "a handler that handles nothing passes effects on",
      fun () ->
        let k = fiber (fun () -> perform Ask) in
        check_int "result" 3
          (answering 3 (fun () ->
               continue_with k ()
                 { retc = (fun x -> x); exnc = raise; effc = (fun _ -> None) })) );
    ( "discontinue_with raises where the computation waits",
      fun () ->
        let k = fiber (fun () -> 0) in
        (match
           discontinue_with k (Stop 1)
             { retc = (fun _ -> 0); exnc = (function Stop n -> n | e -> raise e);
               effc = (fun _ -> None) }
         with
        | n -> check_int "before the start" 1 n);
        match continue_with k () { retc = (fun x -> x); exnc = raise; effc = (fun _ -> None) } with
        | (_ : int) -> Alcotest.fail "a second time"
        | exception Continuation_already_resumed -> () );
    ( "a fiber that waits survives collections",
      fun () ->
        let k = fiber (fun s -> String.length s + perform Ask) in
        Gc.compact ();
        check_int "sum" 13 (asked 10 k "abc") );
    ( "fibers that are never started are collected",
      fun () ->
        let collected = ref 0 in
        for _ = 1 to 3 do
          let block = ref 0 in
          Gc.finalise_last (fun () -> incr collected) block;
          let k = fiber (fun () -> !(Sys.opaque_identity block)) in
          Gc.minor ();
          ignore (Sys.opaque_identity k)
        done;
        Gc.full_major ();
        Gc.full_major ();
        check_int "collected" 3 !collected );
    ( "producer and consumer",
      fun () ->
        (* Two computations, each of which handles the other's effects. *)
        let rec produce : (unit, unit) continuation -> (string, int) continuation -> int =
         fun p c ->
          continue_with p ()
            {
              retc = (fun () -> consume c "end" None);
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Say s -> Some (fun (p : (a, _) continuation) -> consume c s (Some p))
                  | _ -> None);
            }
        and consume :
            (string, int) continuation -> string -> (unit, unit) continuation option -> int =
         fun c s p ->
          continue_with c s
            {
              retc = (fun n -> n);
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Next -> Some (fun (c : (a, _) continuation) -> produce (Option.get p) c)
                  | _ -> None);
            }
        in
        let producer = fiber (fun () -> List.iter (fun s -> perform (Say s)) [ "a"; "bc"; "def" ]) in
        let consumer =
          fiber (fun first ->
              let rec count s n = if s = "end" then n else count (perform Next) (n + String.length s) in
              count first 0)
        in
        check_int "letters" 6 (produce producer consumer) );
  ]

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "effects"
    [ ("deep handlers", List.map case deep); ("shallow handlers", List.map case shallow) ]
(* SPDX-License-Identifier: MIT *)
