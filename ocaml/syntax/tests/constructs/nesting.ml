(* Handlers within handlers, in every position of one another. *)
open Effect
open Effect.Deep

effect A : unit
effect B : unit
effect Depth : int

let baz () = perform A
let bar () = try baz () with effect B k -> continue k ()
let foo () = try bar () with effect A k -> print_endline "A in foo"; continue k ()

let in_computation () =
  match match perform Depth with n -> n + 1 | effect B, k -> continue k () with
  | n -> n * 10
  | effect Depth, k -> continue k 4

let in_cases () =
  match perform Depth with
  | n -> ( try perform B; n with effect B, k -> continue k ())
  | effect Depth, k -> (
      let depth = perform Depth in
      match continue k depth with
      | n -> n + 1
      | effect Depth, _ -> 0)

let in_guard () =
  try perform B; 1 with
  | effect B, _ when (try perform Depth = 2 with effect Depth, k -> continue k 2) -> 5

let deep () =
  let rec count n = if n = 0 then 0 else perform Depth + count (n - 1) in
  match count 5 with n -> n | effect Depth, k -> continue k 3

let () =
  foo ();
  Printf.printf "%d\n" (in_computation ());
  Printf.printf "%d\n" (try in_cases () with effect Depth, k -> continue k 20);
  Printf.printf "%d\n" (in_guard ());
  Printf.printf "%d\n" (deep ())
