(* Backtraces: of exceptions that cross fibers, of the running code, of suspended continuations. *)
open Effect
open Effect.Deep

type _ eff += Wait : unit eff | Nobody's : unit eff

exception Stop

(* The functions of a backtrace, innermost first: those of this file, without the anonymous ones. *)
let functions backtrace =
  let of_slot slot =
    match Printexc.Slot.name slot with
    | Some name when String.contains name '.' ->
        let from = String.rindex name '.' + 1 in
        let name = String.sub name from (String.length name - from) in
        let ours =
          match Printexc.Slot.location slot with
          | Some { filename; _ } -> Filename.basename filename = "test_backtraces.ml"
          | None -> false
        in
        if ours && name <> "(fun)" then Some name else None
    | _ -> None
  in
  match Printexc.backtrace_slots backtrace with
  | None -> []
  | Some slots -> List.filter_map of_slot (Array.to_list slots)

let check_functions = Alcotest.(check (list string))

(* The calls of [f] are no tail calls. *)
let[@inline never] inner f = f (); Sys.opaque_identity ()
let[@inline never] middle f = inner f; Sys.opaque_identity ()
let[@inline never] outer f = middle f; Sys.opaque_identity ()
let passing f x = try_with f x { effc = (fun _ -> None) }
let[@inline never] on_fibers f =
  passing (fun () -> outer (fun () -> passing (fun () -> middle f) (); Sys.opaque_identity ())) ();
  Sys.opaque_identity ()
let[@inline never] raising () = raise Stop

let caught f =
  match f () with
  | () -> Alcotest.fail "it returned"
  | exception Stop -> functions (Printexc.get_raw_backtrace ())

let suspended f =
  let k : (unit, unit) continuation option ref = ref None in
  try_with f ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Wait -> Some (fun (k' : (a, _) continuation) -> k := Some k')
          | _ -> None);
    };
  Option.get !k

let[@inline never] waiting () = perform Wait; Sys.opaque_identity ()

(* Whether no line of the backtrace is of the library, or of an exception that is raised again. *)
let is_of_the_program f =
  match f () with
  | () -> Alcotest.fail "it returned"
  | exception _ ->
      let mentions text line =
        let rec from index =
          index + String.length text <= String.length line
          && (String.sub line index (String.length text) = text || from (index + 1))
        in
        from 0
      in
      let backtrace = Printexc.get_backtrace () in
      mentions "test_backtraces.ml" backtrace
      && not (mentions "effect.ml" backtrace || mentions "Re-raised" backtrace)

let tests =
  [
    ( "show the program, not the library",
      fun () ->
        let check what f =
          let inside () = try_with f () { effc = (fun _ -> None) }; Sys.opaque_identity () in
          Alcotest.(check bool) what true (is_of_the_program inside)
        in
        check "passed on by handlers" (fun () -> on_fibers raising);
        check "unhandled" (fun () -> perform Nobody's; Sys.opaque_identity ());
        check "discontinued" (fun () -> discontinue (suspended (fun () -> outer waiting)) Stop);
        check "discontinued with a backtrace" (fun () ->
            discontinue_with_backtrace (suspended (fun () -> outer waiting)) Stop
              (Printexc.get_callstack 3));
        check "resumed twice" (fun () ->
            let k = suspended waiting in
            continue k ();
            continue k ());
        Alcotest.(check bool) "unhandled anywhere" true
          (is_of_the_program (fun () -> perform Nobody's; Sys.opaque_identity ())) );
    ( "of an exception that crosses fibers: the frames below and above",
      fun () ->
        check_functions "frames"
          [ "raising"; "inner"; "middle"; "inner"; "middle"; "outer"; "on_fibers"; "caught" ]
          (caught (fun () -> on_fibers raising; Sys.opaque_identity ())
          |> List.filter (fun name -> name <> "passing" && name <> "tests")) );
    ( "of the running code, through fibers",
      fun () ->
        let found = ref [] in
        on_fibers (fun () -> found := functions (Printexc.get_callstack 100));
        check_functions "frames"
          [ "inner"; "middle"; "inner"; "middle"; "outer"; "on_fibers" ]
          (List.filter (fun name -> name <> "passing" && name <> "tests") !found) );
    ( "of a suspended continuation",
      fun () ->
        let k = suspended (fun () -> outer waiting) in
        let check_stack what =
          check_functions what
            [ "waiting"; "inner"; "middle"; "outer" ]
            (List.filter
               (fun name -> name <> "tests" && name <> "perform")
               (functions (get_callstack k 100)))
        in
        check_stack "young";
        Gc.minor ();
        check_stack "after a collection";
        Gc.compact ();
        check_stack "after a compaction";
        Alcotest.(check bool) "some" true (Printexc.raw_backtrace_length (get_callstack k 2) <= 2);
        continue k ();
        check_functions "resumed" [] (functions (get_callstack k 100)) );
    ( "of a suspended continuation with fibers inside",
      fun () ->
        let k = suspended (fun () -> on_fibers waiting; Sys.opaque_identity ()) in
        Gc.minor ();
        check_functions "frames"
          [ "waiting"; "inner"; "middle"; "inner"; "middle"; "outer"; "on_fibers" ]
          (List.filter
             (fun name -> name <> "passing" && name <> "tests" && name <> "perform")
             (functions (get_callstack k 100)));
        continue k () );
    ( "discontinue raises with the frames of the computation",
      fun () ->
        let k = suspended (fun () -> outer waiting) in
        check_functions "frames"
          [ "waiting"; "inner"; "middle"; "outer" ]
          (List.filter
             (fun name -> List.mem name [ "waiting"; "inner"; "middle"; "outer" ])
             (caught (fun () -> discontinue k Stop))) );
    ( "discontinue_with_backtrace begins with the backtrace that it was given",
      fun () ->
        let k = suspended (fun () -> outer waiting) in
        let backtrace =
          match inner raising with
          | () -> assert false
          | exception Stop -> Printexc.get_raw_backtrace ()
        in
        check_functions "frames"
          [ "raising"; "inner"; "waiting"; "inner"; "middle"; "outer" ]
          (List.filter
             (fun name -> List.mem name [ "raising"; "waiting"; "inner"; "middle"; "outer" ])
             (caught (fun () -> discontinue_with_backtrace k Stop backtrace))) );
  ]

let () =
  Printexc.record_backtrace true;
  let case (name, test) = Alcotest.test_case name `Quick test in
  Alcotest.run "backtraces" [ ("backtraces", List.map case tests) ]
(* SPDX-License-Identifier: MIT *)
