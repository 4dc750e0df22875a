(* Haft.clone: multi-shot resumptions, with the caveat of the paper's supplement. *)
open Effect
open Effect.Deep

type _ Effect.t += E : unit t | Choose : bool t | Wait : unit t

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
                    let k' = Haft.clone k in
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
                  let k' = Haft.clone k in
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
  let before = Haft.clone k in
  Gc.compact ();
  let after = Haft.clone k in
  let copy = Haft.clone after in
  List.iter (fun k -> Gc.compact (); continue k ()) [ k; before; after; copy ];
  Alcotest.(check string) "each ran once" "012012012012" (Buffer.contents log);
  match Haft.clone k with
  | (_ : (unit, unit) continuation) -> Alcotest.fail "a used one was cloned"
  | exception Continuation_already_resumed -> ()

let refusals () =
  let rec deep n = if n = 0 then (perform Wait; 0) else 1 + deep (n - 1) in
  let k = capture (fun () -> ignore (Sys.opaque_identity (deep 10_000))) in
  (match Haft.clone k with
  | (_ : (unit, unit) continuation) -> Alcotest.fail "a large stack was cloned"
  | exception Invalid_argument _ -> ());
  continue k ()

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
            ("what cannot be copied is refused", refusals);
          ] );
    ]
