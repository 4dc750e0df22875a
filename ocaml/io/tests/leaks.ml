(* SPDX-License-Identifier: MIT *)
(* Very many connections leave nothing behind: descriptors, values, memory. HAFT_TEST_CONNECTIONS=1000000 for a campaign
   by hand. *)
open Haft_io

let connections =
  match Sys.getenv_opt "HAFT_TEST_CONNECTIONS" with Some count -> int_of_string count | None -> 6_000

let resident () =
  let input = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line input) "%d %d" (fun _ resident -> resident) in
  close_in input;
  pages * 4096

type state = { descriptors : int; words : int; memory : int }

let state () =
  (* Tasks end a little later than their clients see. *)
  for _ = 1 to 100 do
    Fiber.yield ()
  done;
  Time.sleep clock 0.05;
  Gc.compact ();
  {
    descriptors = Array.length (Sys.readdir "/proc/self/fd");
    words = (Gc.stat ()).live_words;
    memory = resident ();
  }

(* Calls [ask] with the number of each connection, some at a time, and looks at what they have left. *)
let check ask =
  let rounds = max 1 (connections / 2_000) in
  let round () = Fiber.List.iter ~max_fibers:20 ask (List.init (connections / rounds) Fun.id) in
  round ();
  let before = state () in
  for _ = 1 to rounds do
    round ()
  done;
  let after = state () in
  Printf.printf "%d connections: %d descriptors more, %d words (of %d), %d KiB (of %d)\n" connections
    (after.descriptors - before.descriptors)
    (after.words - before.words) before.words
    ((after.memory - before.memory) / 1024)
    (before.memory / 1024);
  if after.descriptors > before.descriptors then failwith "descriptors are left";
  if after.words > before.words + 10_000 then failwith "values are left";
  if after.memory > before.memory + (16 * 1024 * 1024) then failwith "memory is left"
