(* SPDX-License-Identifier: MIT *)
(* Haft_ocaml5's additions to modules have the types of OCaml 5's manual (-open Haft_ocaml5). *)
[@@@ocaml.warning "-32-34-60"]

module type HASHED = sig
  type t

  val hash : t -> int
  val seeded_hash : int -> t -> int
end

module _ : HASHED with type t = bool = Bool
module _ : HASHED with type t = char = Char
module _ : HASHED with type t = float = Float
module _ : HASHED with type t = int = Int
module _ : HASHED with type t = int32 = Int32
module _ : HASHED with type t = int64 = Int64
module _ : HASHED with type t = nativeint = Nativeint
module _ : HASHED with type t = string = String
module _ : HASHED with type t = string = StringLabels
module _ : HASHED with type t = Stdlib__Uchar.t = Uchar

module type KEY = sig
  type t

  val equal : t -> t -> bool
  val seeded_hash : int -> t -> int
end

module _ (Key : KEY) : Hashtbl.SeededS with type key = Key.t = Hashtbl.MakeSeeded (Key)

module _ : sig
  type utf_decode [@@immediate]

  val utf_decode_is_valid : utf_decode -> bool
  val utf_decode_uchar : utf_decode -> Uchar.t
  val utf_decode_length : utf_decode -> int
  val utf_decode : int -> Uchar.t -> utf_decode
  val utf_decode_invalid : int -> utf_decode
  val utf_8_byte_length : Uchar.t -> int
  val utf_16_byte_length : Uchar.t -> int
end =
  Uchar

module type TEXT = sig
  type t

  val get_utf_8_uchar : t -> int -> Uchar.utf_decode
  val is_valid_utf_8 : t -> bool
  val get_utf_16be_uchar : t -> int -> Uchar.utf_decode
  val is_valid_utf_16be : t -> bool
  val get_utf_16le_uchar : t -> int -> Uchar.utf_decode
  val is_valid_utf_16le : t -> bool
end

module _ : TEXT with type t = string = String
module _ : TEXT with type t = string = StringLabels

module type BYTES = sig
  include TEXT with type t = bytes

  val set_utf_8_uchar : t -> int -> Uchar.t -> int
  val set_utf_16be_uchar : t -> int -> Uchar.t -> int
  val set_utf_16le_uchar : t -> int -> Uchar.t -> int
end

module _ : BYTES = Bytes
module _ : BYTES = BytesLabels

module _ : sig
  open Bigarray

  val input_bigarray : In_channel.t -> (_, int8_unsigned_elt, c_layout) Array1.t -> int -> int -> int
  val really_input_bigarray : In_channel.t -> (_, int8_unsigned_elt, c_layout) Array1.t -> int -> int -> unit option
  val is_binary_mode : In_channel.t -> bool
end =
  In_channel

module _ : sig
  open Bigarray

  val output_bigarray : Out_channel.t -> (_, int8_unsigned_elt, c_layout) Array1.t -> int -> int -> unit
  val is_binary_mode : Out_channel.t -> bool
end =
  Out_channel

module _ : sig
  val to_binary_string : Random.State.t -> string
  val of_binary_string : string -> Random.State.t
  val split : Random.State.t -> Random.State.t
end =
  Random.State

module _ : sig
  type t = floatarray

  val find_opt : (float -> bool) -> t -> float option
  val find_index : (float -> bool) -> t -> int option
  val find_map : (float -> 'a option) -> t -> 'a option
  val find_mapi : (int -> float -> 'a option) -> t -> 'a option
  val map_inplace : (float -> float) -> t -> unit
  val mapi_inplace : (int -> float -> float) -> t -> unit
  val shuffle : rand:(int -> int) -> t -> unit
end =
  Float.Array

module _ : sig
  open Format

  val pp_infinity : int
  val pp_print_nothing : formatter -> unit -> unit

  val pp_print_iter :
    ?pp_sep:(formatter -> unit -> unit) -> (('a -> unit) -> 'b -> unit) -> (formatter -> 'a -> unit) -> formatter ->
    'b -> unit

  val pp_print_array :
    ?pp_sep:(formatter -> unit -> unit) -> (formatter -> 'a -> unit) -> formatter -> 'a array -> unit

  val make_synchronized_formatter : (string -> int -> int -> unit) -> (unit -> unit) -> formatter Domain.DLS.key
  val synchronized_formatter_of_out_channel : out_channel -> formatter Domain.DLS.key
end =
  Format

module _ : Digest.S = Digest.BLAKE128
module _ : Digest.S = Digest.BLAKE256
module _ : Digest.S = Digest.BLAKE512
module _ : Digest.S = Digest.MD5
module _ (Key : KEY) : MoreLabels.Hashtbl.SeededS with type 'a t = 'a Hashtbl.MakeSeeded(Key).t =
  MoreLabels.Hashtbl.MakeSeeded (Key)
module _ : MoreLabels.Map.S with type 'a t = 'a Stdlib__Map.Make(Int).t = MoreLabels.Map.Make (Int)
module _ : MoreLabels.Set.S with type t = Stdlib__Set.Make(Int).t = MoreLabels.Set.Make (Int)

module type BIGARRAYS = sig
  open Bigarray

  val read_bigarray : Unix.file_descr -> (_, int8_unsigned_elt, c_layout) Array1.t -> int -> int -> int
  val write_bigarray : Unix.file_descr -> (_, int8_unsigned_elt, c_layout) Array1.t -> int -> int -> int
  val single_write_bigarray : Unix.file_descr -> (_, int8_unsigned_elt, c_layout) Array1.t -> int -> int -> int
end

module _ : BIGARRAYS = Unix

(* A library that was compiled without the flag has the same types. *)
let _ : Stdlib__Bytes.t -> Bytes.t = Fun.id
let _ : Stdlib__Random.State.t -> Random.State.t = Fun.id
let _ : ('a, 'b) Stdlib__Hashtbl.t -> ('a, 'b) Hashtbl.t = Fun.id
let _ : 'a Stdlib__Hashtbl.Make(Int).t -> 'a Hashtbl.Make(Int).t = Fun.id
