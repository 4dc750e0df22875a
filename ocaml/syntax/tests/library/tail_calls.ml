(* A tail call in a case takes no stack: ten million continues, and a million handlers, each installed
   in the value case of the one before. *)
open Effect
open Effect.Deep

effect E : int

let rec perform_often n =
  if n > 0 then begin
    ignore (perform E);
    perform_often (n - 1)
  end

let rec handle_often n =
  if n = 0 then print_endline "handled"
  else match () with () -> handle_often (n - 1) | effect E, k -> continue k 1

let () =
  (match perform_often 10_000_000 with
  | () -> print_endline "performed"
  | effect E, k -> continue k 1);
  handle_often 1_000_000
