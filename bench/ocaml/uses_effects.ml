(* SPDX-License-Identifier: MIT *)
(* Linked into table 1's program to make it one that uses the library before its loops run. *)
open Effect.Deep

type _ Effect.t += Ask : int Effect.t

let () =
  let answer =
    try_with Effect.perform Ask
      {
        effc =
          (fun (type a) (performed : a Effect.t) ->
            match performed with
            | Ask -> Some (fun (k : (a, _) continuation) -> continue k 42)
            | _ -> None);
      }
  in
  assert (answer = 42)
