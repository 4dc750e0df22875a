(* SPDX-License-Identifier: MIT *)
(* Channels, files and the system. Unix's modules are included and not named: see
   haft_ocaml5__threads.ml. *)

open! Haft_ocaml5__shared
module Of_4_14 = Haft_ocaml5__of_4_14

module In_channel = struct
  include Latest.In_channel

  let rec fold_lines f result channel =
    match input_line channel with None -> result | Some line -> fold_lines f (f result line) channel

  let input_lines channel = List.rev (fold_lines (fun lines line -> line :: lines) [] channel)
  let isatty channel = Unix.isatty (Unix.descr_of_in_channel channel)

  let input_bigarray channel array position length =
    let chars = Chars.of_array "input_bigarray" array position length in
    let buffer = Bytes.create (min length 65536) in
    let count = input channel buffer 0 (Bytes.length buffer) in
    Chars.of_bytes chars position buffer count;
    count

  let rec really_input_bigarray channel array position length =
    ignore (Chars.of_array "really_input_bigarray" array position length);
    if length = 0 then Some ()
    else
      match input_bigarray channel array position length with
      | 0 -> None
      | count -> really_input_bigarray channel array (position + count) (length - count)

  (* (POSIX has no other mode.) *)
  let is_binary_mode (_ : t) = true
end

module Out_channel = struct
  include Latest.Out_channel

  let isatty channel = Unix.isatty (Unix.descr_of_out_channel channel)

  let rec output_bigarray channel array position length =
    let chars = Chars.of_array "output_bigarray" array position length in
    let count = min length 65536 in
    output channel (Chars.to_bytes chars position count) 0 count;
    if length > count then output_bigarray channel array (position + count) (length - count)
  let is_binary_mode (_ : t) = true
end

module Filename = struct
  include Stdlib.Filename

  let temp_dir ?temp_dir ?(perms = 0o700) prefix suffix =
    let rec attempt left =
      let name = temp_file ?temp_dir prefix suffix in
      Sys.remove name;
      match Sys.mkdir name perms with
      | () -> name
      | exception Sys_error _ when left > 0 -> attempt (left - 1)
    in
    attempt 100
end

module Scanf = struct
  include Stdlib.Scanf

  type ('a, 'b, 'c, 'd) scanner_opt = ('a, Scanning.in_channel, 'b, 'c, 'a -> 'd option, 'd) format6 -> 'c

  open struct
    exception Refused
  end

  let bscanf_opt channel format receiver =
    match kscanf channel (fun _ _ -> raise_notrace Refused) format receiver with
    | result -> Some result
    | exception Refused -> None

  let sscanf_opt text format receiver = bscanf_opt (Scanning.from_string text) format receiver
  let scanf_opt format receiver = bscanf_opt Scanning.stdin format receiver
end

module Sys = struct
  include Of_4_14.Sys
  include Stdlib.Sys

  let io_buffer_size = 65536

  (* (At an allocation, OCaml 4 runs what is pending.) *)
  let poll_actions () = ignore (opaque_identity (ref ()))

  let is_regular_file name =
    match Unix.LargeFile.stat name with
    | { st_kind; _ } -> st_kind = Unix.S_REG
    | exception Unix.Unix_error (error, _, _) -> raise (Sys_error (name ^ ": " ^ Unix.error_message error))
end

module Unix = struct
  include Unix

  module LargeFile = struct
    include LargeFile
  end

  open struct
    (* [transfer] a part, of at most 64 KiB. *)
    let part name array position length transfer =
      let chars = Chars.of_array ("Unix." ^ name) array position length in
      transfer chars (min length 65536)
  end

  let read_bigarray descriptor array position length =
    part "read_bigarray" array position length (fun chars room ->
        let buffer = Bytes.create room in
        let count = read descriptor buffer 0 room in
        Chars.of_bytes chars position buffer count;
        count)

  let single_write_bigarray descriptor array position length =
    part "single_write_bigarray" array position length (fun chars count ->
        single_write descriptor (Chars.to_bytes chars position count) 0 count)

  let write_bigarray descriptor array position length =
    let rec from position left =
      if left > 0 then
        let written =
          part "write_bigarray" array position left (fun chars count ->
              write descriptor (Chars.to_bytes chars position count) 0 count)
        in
        from (position + written) (left - written)
    in
    ignore (Chars.of_array "Unix.write_bigarray" array position length);
    from position length;
    length
end

module UnixLabels = struct
  include UnixLabels

  module LargeFile = struct
    include LargeFile
  end

  let read_bigarray descriptor ~buf ~pos ~len = Unix.read_bigarray descriptor buf pos len
  let write_bigarray descriptor ~buf ~pos ~len = Unix.write_bigarray descriptor buf pos len
  let single_write_bigarray descriptor ~buf ~pos ~len = Unix.single_write_bigarray descriptor buf pos len
end
