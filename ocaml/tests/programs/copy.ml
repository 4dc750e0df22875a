(* The copy function of §3, unchanged, over effects: it becomes asynchronous, and its clean-up code still
   runs, at the end of the file and when a channel fails. *)
open Effect
open Effect.Deep

type in_channel = { name : string; mutable lines : string list; mutable input_open : bool }
type out_channel = { buffer : Buffer.t; mutable output_open : bool }
type _ Effect.t += In_line : in_channel -> string t | Out_str : out_channel * string -> unit t

let input_line ic = perform (In_line ic)
let output_string oc s = perform (Out_str (oc, s))

let close_in ic =
  if ic.input_open then print_endline ("close " ^ ic.name);
  ic.input_open <- false

let close_out oc = oc.output_open <- false

let copy ic oc =
  let rec loop () =
    output_string oc (input_line ic ^ "\n");
    loop ()
  in
  try loop () with
  | End_of_file -> close_in ic; close_out oc
  | e -> close_in ic; close_out oc; raise e

(* An event loop: every operation takes a turn. *)
let run tasks =
  let ready = Queue.create () in
  let later f = Queue.push f ready in
  let spawn task =
    match_with task ()
      {
        retc = ignore;
        exnc = (fun e -> print_endline ("failed: " ^ Printexc.to_string e));
        effc =
          (fun (type a) (effect : a t) ->
            match effect with
            | In_line ic ->
                Some
                  (fun (k : (a, _) continuation) ->
                    later (fun () ->
                        match ic.lines with
                        | [] -> discontinue k End_of_file
                        | line :: lines ->
                            ic.lines <- lines;
                            print_endline (ic.name ^ ": " ^ line);
                            continue k line))
            | Out_str (oc, s) ->
                Some
                  (fun (k : (a, _) continuation) ->
                    later (fun () ->
                        if oc.output_open then (
                          Buffer.add_string oc.buffer s;
                          continue k ())
                        else discontinue k (Sys_error "closed")))
            | _ -> None);
      }
  in
  List.iter spawn tasks;
  while not (Queue.is_empty ready) do
    (Queue.pop ready) ()
  done

let () =
  let input name lines = { name; lines; input_open = true } in
  let output () = { buffer = Buffer.create 16; output_open = true } in
  let first = output () and second = output () and closed = output () in
  close_out closed;
  run
    [
      (fun () -> copy (input "first" [ "a"; "b" ]) first);
      (fun () -> copy (input "second" [ "x"; "y"; "z" ]) second);
      (fun () -> copy (input "third" [ "lost" ]) closed);
    ];
  Printf.printf "%S %S\n" (Buffer.contents first.buffer) (Buffer.contents second.buffer)
(* SPDX-License-Identifier: MIT *)
