(* SPDX-License-Identifier: MIT *)
(* Definitions that the other files share. *)

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

(* One domain at a time runs OCaml code, so one that polls must let the others go on: it would poll
   in vain until the tick of 50 ms, and a loop that never allocates for ever. Where it asks the same
   object [enough] times, it gets the others their turn; and where it asks many objects, as one that
   looks for work at all others does, after [many] changes of the one that is counted. No object is
   kept for that; one that the collector has moved is taken for another one. *)
module Polling = struct
  let enough = 256
  let many = 16

  (* Set with the first thread. *)
  let others_run = ref false
  let let_others_run = ref ignore

  (* The object that is counted, by its address; how often it was asked; how often others may be,
     until one of them is counted in its place; and how often that was so since the others had their
     turn. *)
  let watched = ref 0
  let asked = ref 0
  let patience = ref 0
  let changes = ref 0

  let pause () =
    asked := 0;
    changes := 0;
    !let_others_run ()

  let[@inline never] note object_ weight =
    (* (An address whose last bits are set is an integer to OCaml.) *)
    let address = (Sys.opaque_identity (Obj.magic object_) : int) lor 1 in
    if address <> !watched then begin
      patience := !patience - weight;
      if !patience < 0 then begin
        watched := address;
        asked := 0;
        patience := 4 * enough;
        incr changes;
        if !changes >= many then pause ()
      end
    end
    else begin
      asked := !asked + weight;
      if !asked >= enough then pause ()
    end

  (* Called before the object is asked: a thread that has just got a lock must not let those run
     that ask for it. *)
  let[@inline] note_question object_ = if !others_run then note object_ 1

  (* Called after a refusal: the request is repeated soon. *)
  let[@inline] note_refusal object_ = if !others_run then note object_ (enough / 16)
end
