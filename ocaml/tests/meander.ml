(* The example of §2 (figure 1), on a fiber: OCaml, C and OCaml again; then suspended there and resumed. *)
open Effect
open Effect.Deep

external ocaml_to_c : unit -> int = "ocaml_to_c"

exception E1
exception E2

type _ Effect.t += Pause : unit t

let c_to_ocaml () =
  perform Pause;
  raise E1

let () = Callback.register "c_to_ocaml" c_to_ocaml

let omain () =
  try (* h1 *)
    try (* h2 *) ocaml_to_c () with E2 -> 0
  with E1 -> 42

let handled () =
  try_with omain ()
    {
      effc =
        (fun (type a) (effect : a t) ->
          match effect with
          | Pause -> Some (fun (k : (a, _) continuation) -> continue k ())
          | _ -> None);
    }

let () =
  let n = handled () in
  Printf.printf "%d\n" n
(* SPDX-License-Identifier: MIT *)
