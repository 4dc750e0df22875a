(* System threads: each has a chain of handlers of its own; continuations go from thread to thread. *)
open Cases
open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int t | Wait : unit t

external stacks : unit -> int = "collector_stacks"

let in_threads count f =
  let failures = ref [] in
  let guarded i =
    try f i with e -> failures := Printexc.to_string e :: !failures
  in
  List.iter Thread.join (List.init count (Thread.create guarded));
  Alcotest.(check (list string)) "no thread fails" [] !failures

let doubling ?(meanwhile = ignore) f =
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Ask n ->
              Some
                (fun (k : (a, _) continuation) ->
                  meanwhile ();
                  continue k (2 * n))
          | _ -> None);
    }

let text n = List.init 20 (fun i -> string_of_int (n + i))

(* Performs with values on the stack, while other threads run and collect. *)
let work seed () =
  for i = 1 to 200 do
    let sum =
      doubling ~meanwhile:Thread.yield (fun () ->
          let before = text seed in
          let a = perform (Ask i) in
          if i mod 7 = 0 then Thread.yield ();
          let b = doubling (fun () -> if i mod 50 = 0 then Gc.minor (); perform (Ask a)) in
          if before <> text seed then failwith "a value was lost";
          a + b)
    in
    if sum <> 6 * i then failwith "a handler of another thread answered"
  done

(* [f ()] up to its first Wait. *)
let suspended f =
  let k = ref None in
  match_with f ()
    {
      retc = ignore;
      exnc = raise;
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Wait ->
              Some (fun (k' : (a, _) continuation) -> k := Some (fun () -> continue k' ()))
          | _ -> None);
    };
  Option.get !k

let tests =
  [
    ("handlers in many threads", fun () -> in_threads 8 (fun i -> work (1000 * i) ()));
    ( "an effect is not handled by another thread's handlers",
      fun () ->
        doubling (fun () ->
            in_threads 2 (fun _ ->
                match perform (Ask 1) with
                | (_ : int) -> failwith "it was"
                | exception Unhandled (Ask 1) -> ());
            0)
        |> ignore );
    ( "a continuation is resumed by another thread",
      fun () ->
        List.iter
          (fun collect ->
            let log = ref [] in
            let slot = ref ignore in
            in_threads 1 (fun _ ->
                slot :=
                  suspended (fun () ->
                      let kept = text 5 in
                      let outer = Thread.id (Thread.self ()) in
                      perform Wait;
                      let n = doubling (fun () -> perform (Ask 4)) in
                      if kept <> text 5 then failwith "a value was lost";
                      log := [ n; outer - Thread.id (Thread.self ()) ]));
            collect ();
            in_threads 1 (fun _ -> !slot ());
            Alcotest.(check (list int)) "it went on elsewhere" [ 8; -1 ] !log)
          [ ignore; Gc.minor; Gc.compact ] );
    ( "many continuations go round among threads",
      fun () ->
        let queue = Queue.create () and lock = Mutex.create () in
        let rounds = ref 0 in
        let body i () =
          for _ = 1 to 50 do
            let kept = text i in
            perform Wait;
            if kept <> text i then failwith "a value was lost"
          done;
          incr rounds
        in
        let handle f =
          match_with f ()
            {
              retc = ignore;
              exnc = raise;
              effc =
                (fun (type a) (effect : a t) ->
                  match effect with
                  | Wait ->
                      Some
                        (fun (k : (a, _) continuation) ->
                          Mutex.lock lock;
                          Queue.push (fun () -> continue k ()) queue;
                          Mutex.unlock lock)
                  | _ -> None);
            }
        in
        for i = 1 to 100 do
          Queue.push (fun () -> handle (body i)) queue
        done;
        let rec run steps =
          Mutex.lock lock;
          let next = Queue.take_opt queue in
          Mutex.unlock lock;
          match next with
          | Some f ->
              f ();
              if steps mod 17 = 0 then Thread.yield ();
              if steps mod 1000 = 0 then Gc.full_major ();
              run (steps + 1)
          | None -> ()
        in
        in_threads 4 (fun _ -> run 1);
        run 1;
        Alcotest.(check int) "finished" 100 !rounds );
    ( "threads that end leave nothing behind",
      fun () ->
        let kept = ref [] in
        for i = 1 to 50 do
          in_threads 2 (fun _ ->
              kept := suspended (fun () -> let s = text i in perform Wait; ignore (List.hd s)) :: !kept)
        done;
        Gc.compact ();
        List.iteri (fun i f -> if i mod 2 = 0 then f ()) !kept;
        kept := [];
        Gc.compact () );
    ( "a thread that exits inside a handler",
      fun () ->
        (* Fibers on both sides of the threads' stacks. *)
        let rec nest n = if n = 0 then 1 else doubling (fun () -> nest (n - 1)) in
        let exits i () =
          let kept = text i in
          if i mod 2 = 0 then Thread.exit ();
          ignore (perform (Ask 1));
          Thread.exit ();
          List.length kept
        in
        for _ = 1 to 5 do
          ignore (nest 200);
          List.init 30 (fun i -> Thread.create (fun () -> ignore (doubling (exits i))) ())
          |> List.iter Thread.join;
          Gc.full_major ()
        done;
        work 1 ();
        (* The stacks come back, once the threads of the system are gone, too. *)
        let rec wait n =
          if stacks () > 0 then
            if n = 0 then Alcotest.fail (Printf.sprintf "%d stacks are in use" (stacks ()))
            else begin
              Thread.delay 0.01;
              ignore (Sys.opaque_identity (ref n));
              Gc.minor ();
              wait (n - 1)
            end
        in
        wait 1000 );
    ( "a thread that waits in a blocking section inside a fiber",
      fun () ->
        let from, into = Unix.pipe () in
        let reader =
          Thread.create
            (fun () ->
              doubling (fun () ->
                  let kept = text 1 in
                  let bytes = Bytes.create 1 in
                  let n = Unix.read from bytes 0 1 in
                  let n = perform (Ask n) in
                  if kept <> text 1 then failwith "a value was lost";
                  n))
            ()
        in
        work 1 ();
        Gc.compact ();
        ignore (Unix.write_substring into "x" 0 1);
        Thread.join reader );
    ( "a child process goes on with what its parent had suspended",
      fun () ->
        let resume =
          suspended (fun () ->
              let kept = text 3 in
              perform Wait;
              if kept <> text 3 then exit 1)
        in
        Gc.minor ();
        let pid =
          doubling (fun () ->
              match Unix.fork () with
              | 0 ->
                  let code =
                    try
                      resume ();
                      Gc.compact ();
                      work 1 ();
                      perform (Ask 21)
                    with _ -> 1
                  in
                  Unix._exit code
              | pid -> pid)
        in
        match Unix.waitpid [] pid with
        | _, Unix.WEXITED code -> Alcotest.(check int) "the child's code" 42 code
        | _ -> Alcotest.fail "the child was killed" );
  ]

let () =
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "threads" [ ("threads", List.map case tests) ]
(* SPDX-License-Identifier: MIT *)
