(* SPDX-License-Identifier: MIT *)
(* Additions of 4.14's standard library, for 4.13. *)

module In_channel = struct
  type t = in_channel

  type open_flag = Stdlib.open_flag =
    | Open_rdonly
    | Open_wronly
    | Open_append
    | Open_creat
    | Open_trunc
    | Open_excl
    | Open_binary
    | Open_text
    | Open_nonblock

  let stdin = stdin
  let open_bin = open_in_bin
  let open_text = open_in
  let open_gen = open_in_gen
  let close = close_in
  let close_noerr = close_in_noerr

  open struct
    let with_channel channel f = Fun.protect (fun () -> f channel) ~finally:(fun () -> close_noerr channel)
    let until_end read channel = match read channel with value -> Some value | exception End_of_file -> None
  end

  let with_open_bin name f = with_channel (open_bin name) f
  let with_open_text name f = with_channel (open_text name) f
  let with_open_gen flags mode name f = with_channel (open_gen flags mode name) f
  let input_char channel = until_end Stdlib.input_char channel
  let input_byte channel = until_end Stdlib.input_byte channel
  let input_line channel = until_end Stdlib.input_line channel
  let input = input

  let really_input channel buffer position length =
    until_end (fun channel -> Stdlib.really_input channel buffer position length) channel

  let really_input_string channel length =
    until_end (fun channel -> Stdlib.really_input_string channel length) channel

  let input_all channel =
    let all = Buffer.create 65536 and chunk = Bytes.create 65536 in
    let rec read () =
      let count = input channel chunk 0 (Bytes.length chunk) in
      if count > 0 then begin
        Buffer.add_subbytes all chunk 0 count;
        read ()
      end
    in
    read ();
    Buffer.contents all

  let seek = LargeFile.seek_in
  let pos = LargeFile.pos_in
  let length = LargeFile.in_channel_length
  let set_binary_mode = set_binary_mode_in
end

module Out_channel = struct
  type t = out_channel

  type open_flag = Stdlib.open_flag =
    | Open_rdonly
    | Open_wronly
    | Open_append
    | Open_creat
    | Open_trunc
    | Open_excl
    | Open_binary
    | Open_text
    | Open_nonblock

  let stdout = stdout
  let stderr = stderr
  let open_bin = open_out_bin
  let open_text = open_out
  let open_gen = open_out_gen
  let close = close_out
  let close_noerr = close_out_noerr

  open struct
    (* Raises what [close] raises; but an exception of [f], if there is one. *)
    let with_channel channel f =
      match f channel with
      | result ->
          close channel;
          result
      | exception exn ->
          let backtrace = Printexc.get_raw_backtrace () in
          close_noerr channel;
          Printexc.raise_with_backtrace exn backtrace
  end

  let with_open_bin name f = with_channel (open_bin name) f
  let with_open_text name f = with_channel (open_text name) f
  let with_open_gen flags mode name f = with_channel (open_gen flags mode name) f
  let output_char = output_char
  let output_byte = output_byte
  let output_string = output_string
  let output_bytes = output_bytes
  let output = output
  let output_substring = output_substring
  let flush = flush
  let flush_all = flush_all
  let seek = LargeFile.seek_out
  let pos = LargeFile.pos_out
  let length = LargeFile.out_channel_length
  let set_binary_mode = set_binary_mode_out
end

module Uchar : sig
  type utf_decode [@@immediate]

  val utf_decode : int -> Uchar.t -> utf_decode
  val utf_decode_invalid : int -> utf_decode
  val utf_decode_is_valid : utf_decode -> bool
  val utf_decode_length : utf_decode -> int
  val utf_decode_uchar : utf_decode -> Uchar.t
  val utf_8_byte_length : Uchar.t -> int
  val utf_16_byte_length : Uchar.t -> int
end = struct
  (* Above the character how many bytes it has, and above that whether it is there. *)
  type utf_decode = int

  let decoded length uchar = (length lsl 21) lor Uchar.to_int uchar
  let utf_decode length uchar = (1 lsl 24) lor decoded length uchar
  let utf_decode_invalid length = decoded length Uchar.rep
  let utf_decode_is_valid decode = decode lsr 24 = 1
  let utf_decode_length decode = (decode lsr 21) land 7
  let utf_decode_uchar decode = Uchar.unsafe_of_int (decode land 0x1F_FFFF)

  let utf_8_byte_length uchar =
    let code = Uchar.to_int uchar in
    if code < 0x80 then 1 else if code < 0x800 then 2 else if code < 0x1_0000 then 3 else 4

  let utf_16_byte_length uchar = if Uchar.to_int uchar < 0x1_0000 then 2 else 4
end

module Bytes : sig
  val get_utf_8_uchar : bytes -> int -> Uchar.utf_decode
  val set_utf_8_uchar : bytes -> int -> Stdlib.Uchar.t -> int
  val is_valid_utf_8 : bytes -> bool
  val get_utf_16be_uchar : bytes -> int -> Uchar.utf_decode
  val set_utf_16be_uchar : bytes -> int -> Stdlib.Uchar.t -> int
  val is_valid_utf_16be : bytes -> bool
  val get_utf_16le_uchar : bytes -> int -> Uchar.utf_decode
  val set_utf_16le_uchar : bytes -> int -> Stdlib.Uchar.t -> int
  val is_valid_utf_16le : bytes -> bool
end = struct
  (* (What is not valid is as long as it could have been the beginning of a character.) *)
  let get_utf_8_uchar bytes index =
    let first = Bytes.get_uint8 bytes index in
    let more, bits, low, high =
      if first < 0x80 then (0, first, 0, 0)
      else if first < 0xC2 then (-1, 0, 0, 0)
      else if first < 0xE0 then (1, first land 0x1F, 0x80, 0xBF)
      else if first < 0xF0 then
        (2, first land 0xF, (if first = 0xE0 then 0xA0 else 0x80), if first = 0xED then 0x9F else 0xBF)
      else if first < 0xF5 then
        (3, first land 7, (if first = 0xF0 then 0x90 else 0x80), if first = 0xF4 then 0x8F else 0xBF)
      else (-1, 0, 0, 0)
    in
    let rec read place bits low high =
      if place > more then Uchar.utf_decode (more + 1) (Stdlib.Uchar.unsafe_of_int bits)
      else if index + place >= Bytes.length bytes then Uchar.utf_decode_invalid place
      else
        let byte = Bytes.get_uint8 bytes (index + place) in
        if byte < low || byte > high then Uchar.utf_decode_invalid place
        else read (place + 1) ((bits lsl 6) lor (byte land 0x3F)) 0x80 0xBF
    in
    if more < 0 then Uchar.utf_decode_invalid 1 else read 1 bits low high

  let set_utf_8_uchar bytes index uchar =
    let code = Stdlib.Uchar.to_int uchar and length = Uchar.utf_8_byte_length uchar in
    let first = match length with 1 -> 0 | 2 -> 0xC0 | 3 -> 0xE0 | _ -> 0xF0 in
    let byte place =
      let bits = code lsr (6 * (length - 1 - place)) in
      if place = 0 then first lor bits else 0x80 lor (bits land 0x3F)
    in
    if length > 1 && index + length > Bytes.length bytes then 0
    else begin
      for place = 0 to length - 1 do
        Bytes.set_uint8 bytes (index + place) (byte place)
      done;
      length
    end

  let get_utf_16_uchar get bytes index =
    let left = Bytes.length bytes - index in
    ignore (Bytes.get bytes index);
    if left < 2 then Uchar.utf_decode_invalid 1
    else
      let first = get bytes index in
      if first land 0xF800 <> 0xD800 then Uchar.utf_decode 2 (Stdlib.Uchar.unsafe_of_int first)
      else if first >= 0xDC00 then Uchar.utf_decode_invalid 2
      else if left < 4 then Uchar.utf_decode_invalid left
      else
        let second = get bytes (index + 2) in
        if second land 0xFC00 <> 0xDC00 then Uchar.utf_decode_invalid 2
        else
          let code = 0x1_0000 + (((first land 0x3FF) lsl 10) lor (second land 0x3FF)) in
          Uchar.utf_decode 4 (Stdlib.Uchar.unsafe_of_int code)

  let set_utf_16_uchar set bytes index uchar =
    let code = Stdlib.Uchar.to_int uchar and length = Uchar.utf_16_byte_length uchar in
    ignore (Bytes.get bytes index);
    if index + length > Bytes.length bytes then 0
    else begin
      if length = 2 then set bytes index code
      else begin
        let bits = code - 0x1_0000 in
        set bytes index (0xD800 lor (bits lsr 10));
        set bytes (index + 2) (0xDC00 lor (bits land 0x3FF))
      end;
      length
    end

  let get_utf_16be_uchar bytes index = get_utf_16_uchar Bytes.get_uint16_be bytes index
  let set_utf_16be_uchar bytes index uchar = set_utf_16_uchar Bytes.set_uint16_be bytes index uchar
  let get_utf_16le_uchar bytes index = get_utf_16_uchar Bytes.get_uint16_le bytes index
  let set_utf_16le_uchar bytes index uchar = set_utf_16_uchar Bytes.set_uint16_le bytes index uchar

  let is_valid get bytes =
    let rec from index =
      index = Bytes.length bytes
      ||
      let decode = get bytes index in
      Uchar.utf_decode_is_valid decode && from (index + Uchar.utf_decode_length decode)
    in
    from 0

  let is_valid_utf_8 bytes = is_valid get_utf_8_uchar bytes
  let is_valid_utf_16be bytes = is_valid get_utf_16be_uchar bytes
  let is_valid_utf_16le bytes = is_valid get_utf_16le_uchar bytes
end

module String = struct
  let get_utf_8_uchar text index = Bytes.get_utf_8_uchar (Stdlib.Bytes.unsafe_of_string text) index
  let get_utf_16be_uchar text index = Bytes.get_utf_16be_uchar (Stdlib.Bytes.unsafe_of_string text) index
  let get_utf_16le_uchar text index = Bytes.get_utf_16le_uchar (Stdlib.Bytes.unsafe_of_string text) index
  let is_valid_utf_8 text = Bytes.is_valid_utf_8 (Stdlib.Bytes.unsafe_of_string text)
  let is_valid_utf_16be text = Bytes.is_valid_utf_16be (Stdlib.Bytes.unsafe_of_string text)
  let is_valid_utf_16le text = Bytes.is_valid_utf_16le (Stdlib.Bytes.unsafe_of_string text)
end

module Sys = struct
  type extra_prefix = Plus | Tilde
  type extra_info = extra_prefix * string
  type ocaml_release_info = { major : int; minor : int; patchlevel : int; extra : extra_info option }

  let ocaml_release =
    Stdlib.Scanf.sscanf Sys.ocaml_version "%d.%d.%d%s@\n" (fun major minor patchlevel extra ->
        let after prefix = Some (prefix, Stdlib.String.sub extra 1 (Stdlib.String.length extra - 1)) in
        let is_tilde = Stdlib.String.starts_with ~prefix:"~" extra in
        { major; minor; patchlevel; extra = (if extra = "" then None else after (if is_tilde then Tilde else Plus)) })

  let development_version = false
end

module Ephemeron = struct
  [@@@ocaml.alert "-old_ephemeron_api"]

  module K1 = struct
    open Ephemeron.K1

    let make key data =
      let ephemeron = create () in
      set_key ephemeron key;
      set_data ephemeron data;
      ephemeron

    let query ephemeron key =
      match get_key ephemeron with Some k when k == key -> get_data ephemeron | _ -> None
  end

  module K2 = struct
    open Ephemeron.K2

    let make key1 key2 data =
      let ephemeron = create () in
      set_key1 ephemeron key1;
      set_key2 ephemeron key2;
      set_data ephemeron data;
      ephemeron

    let query ephemeron key1 key2 =
      match (get_key1 ephemeron, get_key2 ephemeron) with
      | Some k1, Some k2 when k1 == key1 && k2 == key2 -> get_data ephemeron
      | _ -> None
  end

  module Kn = struct
    open Ephemeron.Kn

    let make keys data =
      let ephemeron = create (Array.length keys) in
      Array.iteri (set_key ephemeron) keys;
      set_data ephemeron data;
      ephemeron

    let query ephemeron keys =
      let is_key index key = match get_key ephemeron index with Some k -> k == key | None -> false in
      let are_keys = List.for_all Fun.id (List.mapi is_key (Array.to_list keys)) in
      if are_keys then get_data ephemeron else None
  end
end
