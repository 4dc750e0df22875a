effect Compare : string -> bool

let () =
  let agree () = Effect.perform (Compare (Both.where ())) in
  print_endline
    (if try agree () with effect Compare text, k -> Effect.Deep.continue k (text = Plain.nowhere) then
       Plain.nowhere
     else "they differ")
(* SPDX-License-Identifier: MIT *)
