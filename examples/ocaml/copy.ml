(* SPDX-License-Identifier: MIT *)
(* Asynchronous input and output for code that was written for blocking channels: copy is the function of
   the paper "Retrofitting effect handlers onto OCaml", §3, unchanged. Here one call of select serves three
   tasks, joined by two pipes. When the input ends, or a reader is gone, the clean-up of copy closes its
   channels. *)
open Effect
open Effect.Deep

type in_channel = { input : Unix.file_descr; mutable unread : string }
type out_channel = { output : Unix.file_descr }

effect In_line : in_channel -> string
effect Out_str : out_channel * string -> unit

let input_line ic = perform (In_line ic)
let output_string oc s = perform (Out_str (oc, s))
let close_in ic = Unix.close ic.input
let close_out oc = Unix.close oc.output

let copy ic oc =
  let rec loop () =
    output_string oc (input_line ic ^ "\n");
    loop ()
  in
  try loop () with
  | End_of_file -> close_in ic; close_out oc
  | e -> close_in ic; close_out oc; raise e

(* Goes on with every task whose channel is ready, until there are none. *)
let run tasks =
  let reading = ref [] and writing = ref [] in
  let bytes = Bytes.create 512 in
  let rec read ic k =
    match String.index_opt ic.unread '\n' with
    | Some at ->
        let line = String.sub ic.unread 0 at in
        ic.unread <- String.sub ic.unread (at + 1) (String.length ic.unread - at - 1);
        continue k line
    | None -> reading := (ic.input, fun () -> fill ic k) :: !reading
  and fill ic k =
    match Unix.read ic.input bytes 0 (Bytes.length bytes) with
    | 0 -> discontinue k End_of_file
    | n ->
        ic.unread <- ic.unread ^ Bytes.sub_string bytes 0 n;
        read ic k
  in
  let write oc s k () =
    match Unix.write_substring oc.output s 0 (String.length s) with
    | _ -> continue k ()
    | exception (Unix.Unix_error _ as e) -> discontinue k e
  in
  let spawn (name, task) =
    match task () with
    | () -> Printf.printf "%s has ended\n" name
    | exception Unix.Unix_error (error, _, _) ->
        Printf.printf "%s has failed: %s\n" name (Unix.error_message error)
    | effect (In_line ic), k -> read ic k
    | effect (Out_str (oc, s)), k -> writing := (oc.output, write oc s k) :: !writing
  in
  let take ready waiting =
    let now, still = List.partition (fun (channel, _) -> List.mem channel ready) !waiting in
    waiting := still;
    List.iter (fun (_, task) -> task ()) now
  in
  List.iter spawn tasks;
  while !reading <> [] || !writing <> [] do
    let readable, writable, _ =
      Unix.select (List.map fst !reading) (List.map fst !writing) [] (-1.)
    in
    take readable reading;
    take writable writing
  done

let pipe () =
  let input, output = Unix.pipe () in
  ({ input; unread = "" }, { output })

let dictate oc () =
  List.iter (output_string oc) [ "one\ntw"; "o\n"; "three\n"; "four\n" ];
  close_out oc

let rec recite ic lines =
  if lines = 0 then close_in ic
  else match input_line ic with
    | line -> print_endline line; recite ic (lines - 1)
    | exception End_of_file -> close_in ic

let pipeline lines =
  let from_dictation, dictation = pipe () and to_recite, copied = pipe () in
  run
    [ ("dictate", dictate dictation);
      ("copy", fun () -> copy from_dictation copied);
      ("recite", fun () -> recite to_recite lines) ]

let () =
  Sys.set_signal Sys.sigpipe Sys.Signal_ignore;
  pipeline 100;
  print_newline ();
  pipeline 2
