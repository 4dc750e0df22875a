(* An exception that no case matches goes on with its backtrace: the frames below the handlers and those
   above, in the user's own file. *)
open Effect.Deep

effect E : int

let[@inline never] rec fails n = if n = 0 then failwith "deep" else 1 + fails (n - 1)
let[@inline never] without_cases () = match fails 2 with v -> v | effect E, k -> continue k 1

let[@inline never] not_matched () =
  1 + match without_cases () with v -> v | exception Not_found -> 0 | effect E, k -> continue k 1

let[@inline never] tried () = 1 + try not_matched () with Exit -> 2 | effect E, k -> continue k 1

let mentions_this_file line =
  let name = "\"backtraces.ml\"" in
  let rec from index =
    index + String.length name <= String.length line
    && (String.sub line index (String.length name) = name || from (index + 1))
  in
  from 0

let () =
  Printexc.record_backtrace true;
  match tried () with
  | _ -> print_endline "returned"
  | exception Failure _ ->
      String.split_on_char '\n' (Printexc.get_backtrace ())
      |> List.filter mentions_this_file |> List.iter print_endline
