type _ Effect.t += Next : int Effect.t

let numbered f =
  let count = ref 0 in
  Effect.Deep.try_with f ()
    {
      effc =
        (fun (type a) (effect : a Effect.t) ->
          match effect with
          | Next ->
              Some
                (fun (k : (a, _) Effect.Deep.continuation) ->
                  incr count;
                  Effect.Deep.continue k !count)
          | _ -> None);
    }

let () =
  let lines = Jobs.run [ (fun () -> "one"); (fun () -> "two") ] in
  numbered (fun () -> List.iter (fun line -> Printf.printf "%d %s\n" (Effect.perform Next) line) lines);
  match Jobs.refuse "file" with
  | () -> ()
  | exception Unix.Unix_error (error, _, file) -> print_endline (file ^ ": " ^ Unix.error_message error)
(* SPDX-License-Identifier: MIT *)
