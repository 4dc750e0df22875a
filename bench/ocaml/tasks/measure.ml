(* SPDX-License-Identifier: MIT *)
(* Processor time and memory, for tasks.ml and tasks_lwt.ml. *)
let row name count body =
  Gc.compact ();
  let before = Sys.time () in
  body ();
  Printf.printf "%-40s %8.1f ns\n%!" name ((Sys.time () -. before) *. 1e9 /. float count)

let live_words () = (Gc.stat ()).Gc.live_words

let bytes_each before count =
  Printf.printf "%-40s %8d bytes\n%!" "  each of them" ((live_words () - before) * 8 / count)
