(* SPDX-License-Identifier: MIT *)
(* What the other files share. *)

(* The standard library's, where it has them. *)
module Latest = struct
  open! Haft_ocaml5__of_4_14 [@@ocaml.warning "-66"]
  open! Stdlib [@@ocaml.warning "-66"]
  module In_channel = In_channel
  module Out_channel = Out_channel
end

(* A bigarray of bytes, of which a range is read or written. *)
module Chars = struct
  open Bigarray

  let of_array name (array : (_, int8_unsigned_elt, c_layout) Array1.t) position length =
    if position < 0 || length < 0 || position > Array1.dim array - length then invalid_arg name;
    (* (An integer below 256 is a character.) *)
    (Obj.magic array : (char, int8_unsigned_elt, c_layout) Array1.t)

  let to_bytes (chars : (char, _, _) Array1.t) position length =
    Bytes.init length (fun index -> chars.{position + index})

  let of_bytes (chars : (char, _, _) Array1.t) position bytes length =
    for index = 0 to length - 1 do
      chars.{position + index} <- Bytes.get bytes index
    done
end

(* For [Hashtbl.Make] and [Hashtbl.MakeSeeded]. *)
module Hashed (Key : sig
  type t
end) =
struct
  let hash (key : Key.t) = Hashtbl.hash key
  let seeded_hash seed (key : Key.t) = Hashtbl.seeded_hash seed key
end
