(* SPDX-License-Identifier: MIT *)
(* Bytes outside of the heap, and what programs hold: flows, sockets, clocks. *)
open Haft_io__loop

module Cstruct = struct
  type buffer = memory
  type t = { buffer : buffer; off : int; len : int }

  external unsafe_blit_string : string -> int -> memory -> int -> int -> unit = "haft_ocaml_io_blit_from" [@@noalloc]
  external unsafe_blit_bytes : memory -> int -> bytes -> int -> int -> unit = "haft_ocaml_io_blit_to" [@@noalloc]

  let create_unsafe len =
    { buffer = Bigarray.Array1.create Bigarray.char Bigarray.c_layout len; off = 0; len }

  let create len =
    let made = create_unsafe len in
    Bigarray.Array1.fill made.buffer '\000';
    made

  let empty = create 0
  let length view = view.len

  let check view off len what =
    if off < 0 || len < 0 || off > view.len - len then
      invalid_arg (Printf.sprintf "Cstruct.%s: %d bytes from %d on are not in %d" what len off view.len)

  let sub view off len =
    check view off len "sub";
    { view with off = view.off + off; len }

  let shift view count = sub view count (view.len - count)
  let split view count = (sub view 0 count, shift view count)

  let of_bigarray ?(off = 0) ?len buffer =
    let all = { buffer; off = 0; len = Bigarray.Array1.dim buffer } in
    sub all off (match len with Some len -> len | None -> all.len - off)

  let to_bigarray view = Bigarray.Array1.sub view.buffer view.off view.len

  let blit_from_string source from view off len =
    check view off len "blit_from_string";
    if from < 0 || from > String.length source - len then invalid_arg "Cstruct.blit_from_string";
    unsafe_blit_string source from view.buffer (view.off + off) len

  let blit_from_bytes source from view off len = blit_from_string (Bytes.unsafe_to_string source) from view off len

  let blit_to_bytes view off target at len =
    check view off len "blit_to_bytes";
    if at < 0 || at > Bytes.length target - len then invalid_arg "Cstruct.blit_to_bytes";
    unsafe_blit_bytes view.buffer (view.off + off) target at len

  let blit source from target at len =
    check source from len "blit";
    check target at len "blit";
    Bigarray.Array1.blit
      (Bigarray.Array1.sub source.buffer (source.off + from) len)
      (Bigarray.Array1.sub target.buffer (target.off + at) len)

  let of_string ?(off = 0) ?len text =
    let len = match len with Some len -> len | None -> String.length text - off in
    let view = create_unsafe len in
    blit_from_string text off view 0 len;
    view

  let of_bytes ?off ?len bytes = of_string ?off ?len (Bytes.unsafe_to_string bytes)

  let to_bytes ?(off = 0) ?len view =
    let len = match len with Some len -> len | None -> view.len - off in
    check view off len "to_bytes";
    let bytes = Bytes.create len in
    unsafe_blit_bytes view.buffer (view.off + off) bytes 0 len;
    bytes

  let to_string ?off ?len view = Bytes.unsafe_to_string (to_bytes ?off ?len view)

  let get_char view at =
    check view at 1 "get_char";
    Bigarray.Array1.unsafe_get view.buffer (view.off + at)

  let set_char view at char =
    check view at 1 "set_char";
    Bigarray.Array1.unsafe_set view.buffer (view.off + at) char

  let get_uint8 view at = Char.code (get_char view at)
  let set_uint8 view at byte = set_char view at (Char.unsafe_chr (byte land 255))
  let lenv views = List.fold_left (fun sum view -> sum + view.len) 0 views

  let concat views =
    let all = create_unsafe (lenv views) in
    let put at view =
      blit view 0 all at view.len;
      at + view.len
    in
    ignore (List.fold_left put 0 views);
    all

  let append first second = concat [ first; second ]
  let equal first second = to_string first = to_string second

  let rec shiftv views count =
    match views with
    | view :: others when count >= view.len -> shiftv others (count - view.len)
    | view :: others -> if count = 0 then views else shift view count :: others
    | [] -> if count = 0 then [] else invalid_arg "Cstruct.shiftv"
end

(* Each line with a plus, on standard error. *)
let traceln format =
  Format.kasprintf
    (fun text ->
      String.split_on_char '\n' text |> List.iter (fun line -> prerr_string ("+" ^ line ^ "\n"));
      flush stderr)
    format

(* The kinds of objects beside flows. *)
type kind = ..
type kind += Plain

type shutdown = [ `Receive | `Send | `All ]

type any = {
  read : Cstruct.t -> int;  (* some bytes; raises End_of_file *)
  write : Cstruct.t list -> int;  (* some of them *)
  shutdown : shutdown -> unit;
  close : unit -> unit;
  kind : kind;
}

(* The parameter lists what the object can do; haft_io.mli makes the type abstract. *)
type 'tags t = any

let cannot what _ = invalid_arg ("this object cannot " ^ what)

let plain =
  {
    read = cannot "be read";
    write = cannot "be written to";
    shutdown = cannot "be shut down";
    close = ignore;
    kind = Plain;
  }
