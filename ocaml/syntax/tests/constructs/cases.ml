(* Effect cases in both spellings, in match and in try, beside value and exception cases. *)
open Effect
open Effect.Deep

effect Ask : string -> int
effect Tell : int * int -> unit
effect Stop : unit

let program () =
  let n = perform (Ask "n") in
  perform (Tell (n, n + 1));
  if n = 7 then raise Not_found;
  if n = 8 then perform Stop;
  n

(* The cases as the paper writes them. *)
let spaced f (answer : int) =
  match f () with
  | n when n > 5 -> Printf.sprintf "large %d" n
  | n -> Printf.sprintf "value %d" n
  | exception Not_found -> "not found"
  | effect (Ask question) k -> Printf.printf "%s? " question; continue k answer
  | effect (Tell (a, b)) k -> Printf.printf "(%d, %d) " a b; continue k ()
  | effect Stop _ -> "stopped"

(* The cases as OCaml 5.3 writes them, with and without parentheses. *)
let with_commas f (answer : int) =
  match f () with
  | n -> Printf.sprintf "value %d" n
  | exception Not_found -> "not found"
  | effect Ask question, k -> Printf.printf "%s? " question; continue k answer
  | effect (Tell (a, b)), (k) -> Printf.printf "(%d, %d) " a b; continue k ()
  | effect Stop, _ -> "stopped"

let tries f (answer : int) =
  try Printf.sprintf "value %d" (f ()) with
  | Not_found -> "not found"
  | effect (Ask _) k -> continue k answer
  | effect (Tell _), k -> continue k ()
  | effect Stop k -> discontinue k Exit
  | Exit -> "exit"

let guarded f =
  try f () with
  | effect (Ask "n"), k when Random.bool () && false -> ignore k; 0
  | effect (Ask question) k when question = "n" -> continue k 1
  | effect (Ask _) k -> continue k 2
  | effect Tell _, k -> continue k ()

(* An or-pattern within the effect; the type of its result is that of none of them. *)
let or_pattern f =
  match f () with
  | n -> string_of_int n
  | effect (Ask "other" | Ask "n" | Stop), _ -> "asked or stopped"

(* Value and exception patterns in one case. *)
let value_or_exception f =
  match f () with
  | 1 | (exception (Not_found | Exit)) -> "one or none"
  | n -> string_of_int n
  | effect (Ask _) k -> continue k 1
  | effect _, k -> ignore k; "another effect"

let named f = try f () with effect (Ask _ as effect), k -> continue k (perform effect)

let () =
  List.iter (fun n -> print_endline (spaced program n)) [ 1; 6; 7; 8 ];
  List.iter (fun n -> print_endline (with_commas program n)) [ 1; 7; 8 ];
  List.iter (fun n -> print_endline (tries program n)) [ 1; 7; 8 ];
  Printf.printf "%d\n" (guarded program);
  Printf.printf "%d\n" (guarded (fun () -> perform (Ask "other")));
  print_endline (or_pattern program);
  print_endline (value_or_exception program);
  print_endline (value_or_exception (fun () -> perform (Ask "")));
  print_endline (value_or_exception (fun () -> raise Exit));
  print_endline (spaced (fun () -> named program) 2)
