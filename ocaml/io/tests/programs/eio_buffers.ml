(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

module R = Eio.Buf_read
module W = Eio.Buf_write

let message =
  let open R.Syntax in
  let* name = R.string "Name: " *> R.line in
  let+ size = R.string "Size: " *> R.line in
  (name, int_of_string size)

let ( / ) = Eio.Path.( / )

let () =
  Eio_main.run @@ fun env ->
  let input = Eio.Flow.string_source "Name: box\nSize: 3\n" in
  let name, size = R.parse_exn ~max_size:1024 message input in
  W.with_flow (Eio.Stdenv.stdout env) (fun out ->
    W.string out name;
    W.char out ' ';
    W.printf out "%d\n" size);
  let dir = Eio.Stdenv.fs env / Filename.get_temp_dir_name () / Printf.sprintf "haft-%d" (Unix.getpid ()) in
  Eio.Path.mkdir ~perm:0o700 dir;
  Eio.Path.save ~create:(`Exclusive 0o600) (dir / "output.txt") "the data";
  traceln "%s" (Eio.Path.load (dir / "output.txt"));
  (match Eio.Path.load (dir / "missing") with
   | _ -> ()
   | exception Eio.Io (Eio.Fs.E (Not_found _), _) -> traceln "Not_found");
  Eio.Path.rmtree dir;
  traceln "%s" (Eio.Process.parse_out (Eio.Stdenv.process_mgr env) R.line [ "echo"; "hi" ])
