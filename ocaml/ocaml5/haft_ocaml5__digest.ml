(* SPDX-License-Identifier: MIT *)
(* Digests: OCaml 4's MD5, and BLAKE2b. *)

include Stdlib.Digest

let of_hex = from_hex

module type S = sig
  type t = string

  val hash_length : int
  val compare : t -> t -> int
  val equal : t -> t -> bool
  val string : string -> t
  val bytes : bytes -> t
  val substring : string -> int -> int -> t
  val subbytes : bytes -> int -> int -> t
  val channel : in_channel -> int -> t
  val file : string -> t
  val output : out_channel -> t -> unit
  val input : in_channel -> t
  val to_hex : t -> string
  val of_hex : string -> t
end

module MD5 = struct
  include Stdlib.Digest

  let hash_length = 16
  let of_hex = of_hex
end

open struct
  (* BLAKE2b without a key: the names are those of RFC 7693. *)
  module Blake2b = struct
    let iv =
      [|
        0x6a09e667f3bcc908L; 0xbb67ae8584caa73bL; 0x3c6ef372fe94f82bL; 0xa54ff53a5f1d36f1L;
        0x510e527fade682d1L; 0x9b05688c2b3e6c1fL; 0x1f83d9abfb41bd6bL; 0x5be0cd19137e2179L;
      |]

    let sigma =
      let row digits = Stdlib.Array.init 16 (fun index -> int_of_string (Printf.sprintf "0x%c" digits.[index])) in
      Stdlib.Array.map row
        [|
          "0123456789abcdef"; "ea489fd61c02b753"; "b8c052fdae367194"; "7931dcbe265a40f8"; "905724afe1bc683d";
          "2c6a0b834d75fe19"; "c51fed4a0763928b"; "db7ec13950f4862a"; "6fe9b308c2d714a5"; "a2847615fb9e3cd0";
        |]

    let block_size = 128
    let get words index = Bytes.get_int64_le words (8 * index)
    let set words index word = Bytes.set_int64_le words (8 * index) word

    let rotated word count =
      Int64.logor (Int64.shift_right_logical word count) (Int64.shift_left word (64 - count))

    let mix v a b c d x y =
      let add to_ other more = set v to_ (Int64.add (Int64.add (get v to_) (get v other)) more) in
      let xor to_ other count = set v to_ (rotated (Int64.logxor (get v to_) (get v other)) count) in
      add a b x;
      xor d a 32;
      add c d 0L;
      xor b c 24;
      add a b y;
      xor d a 16;
      add c d 0L;
      xor b c 63

    let compress h block ~count ~is_last =
      let v = Bytes.create 128 in
      Bytes.blit h 0 v 0 64;
      Stdlib.Array.iteri (fun index word -> set v (8 + index) word) iv;
      set v 12 (Int64.logxor (get v 12) (Int64.of_int count));
      if is_last then set v 14 (Int64.lognot (get v 14));
      for round = 0 to 11 do
        let m index = get block sigma.(round mod 10).(index) in
        for column = 0 to 3 do
          mix v column (4 + column) (8 + column) (12 + column) (m (2 * column)) (m ((2 * column) + 1))
        done;
        for diagonal = 0 to 3 do
          let turned row = (4 * row) + ((diagonal + row) mod 4) in
          let x = 8 + (2 * diagonal) in
          mix v (turned 0) (turned 1) (turned 2) (turned 3) (m x) (m (x + 1))
        done
      done;
      for index = 0 to 7 do
        set h index (Int64.logxor (get h index) (Int64.logxor (get v index) (get v (8 + index))))
      done

    (* The hash, [length] bytes long, of all that [read] returns, a function like [input]. *)
    let hash length read =
      let h = Bytes.create 64 in
      Stdlib.Array.iteri (set h) iv;
      set h 0 (Int64.logxor (get h 0) (Int64.of_int (0x0101_0000 lor length)));
      let rec fill block filled =
        match read block filled (block_size - filled) with
        | 0 -> filled
        | count -> fill block (filled + count)
      in
      let next () =
        let block = Bytes.make block_size '\000' in
        (block, fill block 0)
      in
      let rec blocks before (block, filled) =
        let following = next () in
        let is_last = snd following = 0 in
        compress h block ~count:(before + filled) ~is_last;
        if not is_last then blocks (before + filled) following
      in
      blocks 0 (next ());
      Bytes.sub_string h 0 length
  end

  module Make_blake2b (Length : sig
    val hash_length : int
  end) : S = struct
    include Length

    type t = string

    let compare = Stdlib.String.compare
    let equal = Stdlib.String.equal

    let part name text start length =
      if start < 0 || length < 0 || start > Stdlib.String.length text - length then invalid_arg ("Digest." ^ name);
      let place = ref start in
      Blake2b.hash hash_length (fun buffer position room ->
          let count = min room (start + length - !place) in
          Bytes.blit_string text !place buffer position count;
          place := !place + count;
          count)

    let substring text start length = part "substring" text start length
    let subbytes bytes start length = part "subbytes" (Bytes.unsafe_to_string bytes) start length
    let string text = substring text 0 (Stdlib.String.length text)
    let bytes bytes = string (Bytes.unsafe_to_string bytes)

    let channel channel length =
      let left = ref length in
      Blake2b.hash hash_length (fun buffer position room ->
          if length < 0 then Stdlib.input channel buffer position room
          else
            let wanted = min room !left in
            let count = Stdlib.input channel buffer position wanted in
            if count = 0 && wanted > 0 then raise End_of_file;
            left := !left - count;
            count)

    let file name = Haft_ocaml5__shared.Latest.In_channel.with_open_bin name (fun in_channel -> channel in_channel (-1))
    let output = output_string
    let input channel = really_input_string channel hash_length

    let to_hex digest =
      if Stdlib.String.length digest <> hash_length then invalid_arg "Digest.to_hex";
      let hex index = Printf.sprintf "%02x" (Char.code digest.[index]) in
      Stdlib.String.concat "" (Stdlib.List.init hash_length hex)

    let of_hex text =
      let is_digit = function '0' .. '9' | 'a' .. 'f' | 'A' .. 'F' -> true | _ -> false in
      if Stdlib.String.length text <> 2 * hash_length || not (Stdlib.String.for_all is_digit text) then
        invalid_arg "Digest.of_hex";
      Stdlib.String.init hash_length (fun index ->
          Char.chr (int_of_string ("0x" ^ Stdlib.String.sub text (2 * index) 2)))
  end
end

module BLAKE128 = Make_blake2b (struct let hash_length = 16 end)
module BLAKE256 = Make_blake2b (struct let hash_length = 32 end)
module BLAKE512 = Make_blake2b (struct let hash_length = 64 end)
