(* SPDX-License-Identifier: MIT *)
(* The generator is OCaml 4's: a seed gives other numbers than on OCaml 5. *)

open struct
  (* Functions of 4.14, made of the 30 bits that 4.13's [bits] gives. *)
  let bits32_of bits =
    let half () = Int32.of_int (bits () lsr 14) in
    let high = half () in
    Int32.logor (Int32.shift_left high 16) (half ())

  let bits64_of bits =
    let half () = Int64.of_int32 (bits32_of bits) in
    let high = half () in
    Int64.logor (Int64.shift_left high 32) (Int64.logand (half ()) 0xFFFF_FFFFL)

  module Bits (State : sig
    type t

    val bits : t -> int
  end) =
  struct
    [@@@ocaml.warning "-32"] (* (4.14 has them.) *)

    let bits32 state = bits32_of (fun () -> State.bits state)
    let bits64 state = bits64_of (fun () -> State.bits state)
    let nativebits state = Int64.to_nativeint (bits64 state)
  end

  (* (That of the module has the state [()].) *)
  module Ranges (State : sig
    type t

    val int64 : t -> int64 -> int64
    val bits64 : t -> int64
  end) =
  struct
    open struct
      let in_range name ~of_int64 ~to_int64 state ~min ~max =
        let min = to_int64 min and max = to_int64 max in
        if Int64.compare min max > 0 then invalid_arg ("Random." ^ name);
        let count = Int64.succ (Int64.sub max min) in
        (* Too many for a bound: most of 64 bits are right. *)
        let rec draw () =
          let n = State.bits64 state in
          if Int64.compare min n <= 0 && Int64.compare n max <= 0 then n else draw ()
        in
        of_int64 (if Int64.compare count 0L > 0 then Int64.add min (State.int64 state count) else draw ())
    end

    let int_in_range = in_range "int_in_range" ~of_int64:Int64.to_int ~to_int64:Int64.of_int
    let int32_in_range = in_range "int32_in_range" ~of_int64:Int64.to_int32 ~to_int64:Int64.of_int32

    let nativeint_in_range =
      in_range "nativeint_in_range" ~of_int64:Int64.to_nativeint ~to_int64:Int64.of_nativeint

    let int64_in_range = in_range "int64_in_range" ~of_int64:Fun.id ~to_int64:Fun.id
  end
end

module State = struct
  include Bits (Stdlib.Random.State)
  include Stdlib.Random.State

  include Ranges (struct
    type nonrec t = t

    let int64 = int64
    let bits64 = bits64
  end)

  let split state = make (Array.init 55 (fun _ -> bits state))

  open struct
    (* A state of OCaml 4's generator: its last numbers, of 30 bits, in a ring; and its place in
       that. *)
    type ring = { numbers : int array; mutable place : int } [@@ocaml.warning "-69"]

    let size = 55
    let begins = "OCaml 4"
  end

  let to_binary_string (state : t) =
    let { numbers; place } : ring = Obj.magic state in
    let text = Buffer.create 256 in
    Buffer.add_string text begins;
    Buffer.add_uint8 text place;
    Array.iter (fun number -> Buffer.add_int32_le text (Int32.of_int number)) numbers;
    Buffer.contents text

  let of_binary_string text : t =
    let after = Stdlib.String.length begins in
    let number index = Int32.to_int (Stdlib.String.get_int32_le text (after + 1 + (4 * index))) in
    let is_number n = n >= 0 && n < 1 lsl 30 in
    if
      Stdlib.String.length text <> after + 1 + (4 * size)
      || Stdlib.String.sub text 0 after <> begins
      || Char.code text.[after] >= size
      || not (List.for_all is_number (List.init size number))
    then failwith "Random.State.of_binary_string";
    Obj.magic { numbers = Array.init size number; place = Char.code text.[after] }
end

open struct
  module Default = struct
    type t = unit

    let bits () = Stdlib.Random.bits ()
    let int64 () bound = Stdlib.Random.int64 bound
  end
end

include Bits (Default)
include (Stdlib.Random : module type of Stdlib.Random with module State := Stdlib.Random.State)

include Ranges (struct
  include Default

  let bits64 = bits64
end)

let int_in_range = int_in_range ()
let int32_in_range = int32_in_range ()
let nativeint_in_range = nativeint_in_range ()
let int64_in_range = int64_in_range ()
let split () = State.make (Array.init 55 (fun _ -> bits ()))
