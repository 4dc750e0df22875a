(* SPDX-License-Identifier: MIT *)
(* Types of values, and what hashes them. *)

open! Haft_ocaml5__shared
module Of_4_14 = Haft_ocaml5__of_4_14
module Seq = Haft_ocaml5__seq

module Bool = struct
  include Stdlib.Bool
  include Hashed (Stdlib.Bool)
end

module Bytes = struct
  include Of_4_14.Bytes
  include Stdlib.Bytes
end

module BytesLabels = struct
  include Of_4_14.Bytes
  include Stdlib.BytesLabels
end

module String = struct
  include Of_4_14.String
  include Stdlib.String
  include Hashed (Stdlib.String)
end

module StringLabels = struct
  include Of_4_14.String
  include Stdlib.StringLabels
  include Hashed (Stdlib.String)
end

module Int = struct
  include Stdlib.Int
  include Hashed (Stdlib.Int)
end

module Int32 = struct
  include Stdlib.Int32
  include Hashed (Stdlib.Int32)
end

module Int64 = struct
  include Stdlib.Int64
  include Hashed (Stdlib.Int64)
end

module Nativeint = struct
  include Stdlib.Nativeint
  include Hashed (Stdlib.Nativeint)
end

module Char = struct
  include Stdlib.Char
  include Hashed (Stdlib.Char)
end

module Uchar = struct
  include Of_4_14.Uchar
  include Stdlib.Uchar

  let seeded_hash seed (uchar : t) = Hashtbl.seeded_hash seed uchar
end

module Hashtbl = struct
  include Stdlib.Hashtbl

  module type SeededHashedType = sig
    type t

    val equal : t -> t -> bool
    val seeded_hash : int -> t -> int
  end

  open struct
    module Named (Key : SeededHashedType) = struct
      include Key

      let hash = seeded_hash
    end
  end

  module MakeSeeded (Key : SeededHashedType) : SeededS with type key = Key.t =
    Stdlib.Hashtbl.MakeSeeded (Named (Key))
end

module Ephemeron = struct
  include Stdlib.Ephemeron

  module K1 = struct
    include Of_4_14.Ephemeron.K1
    include Stdlib.Ephemeron.K1
  end

  module K2 = struct
    include Of_4_14.Ephemeron.K2
    include Stdlib.Ephemeron.K2
  end

  module Kn = struct
    include Of_4_14.Ephemeron.Kn
    include Stdlib.Ephemeron.Kn
  end
end

module Type = struct
  type (_, _) eq = Equal : ('a, 'a) eq

  module Id = struct
    type _ id = ..

    module type ID = sig
      type t
      type _ id += Id : t id
    end

    type 'a t = (module ID with type t = 'a)

    let make (type a) () : a t =
      (module struct
        type t = a
        type _ id += Id : t id
      end)

    let uid (type a) ((module Id) : a t) = Obj.Extension_constructor.id [%extension_constructor Id.Id]

    let provably_equal (type a b) ((module Left) : a t) ((module Right) : b t) : (a, b) eq option =
      match Left.Id with Right.Id -> Some Equal | _ -> None
  end
end

module Float = struct
  include Stdlib.Float
  include Hashed (Stdlib.Float)

  let signaling_nan = Int64.float_of_bits 0x7FF0_0000_0000_0001L
  let quiet_nan = Int64.float_of_bits 0x7FF8_0000_0000_0001L

  module Array = struct
    include Stdlib.Float.Array

    let find_opt is_right array = Seq.find is_right (to_seq array)
    let find_index is_right array = Seq.find_index is_right (to_seq array)
    let find_map f array = Seq.find_map f (to_seq array)
    let find_mapi f array = Seq.find_mapi f (to_seq array)
    let mapi_inplace f array = iteri (fun index x -> set array index (f index x)) array
    let map_inplace f array = mapi_inplace (fun _ x -> f x) array

    let shuffle ~rand array =
      for last = length array - 1 downto 1 do
        let index = rand (last + 1) in
        let x = get array last in
        set array last (get array index);
        set array index x
      done

    open struct
      let matrix name rows columns row =
        if rows < 0 || columns < 0 then invalid_arg ("Float.Array." ^ name);
        Stdlib.Array.init rows row
    end

    let make_matrix rows columns x = matrix "make_matrix" rows columns (fun _ -> make columns x)
    let init_matrix rows columns f = matrix "init_matrix" rows columns (fun row -> init columns (f row))
  end

  module ArrayLabels = struct
    include Stdlib.Float.ArrayLabels

    let find_opt ~f array = Array.find_opt f array
    let find_index ~f array = Array.find_index f array
    let find_map ~f array = Array.find_map f array
    let find_mapi ~f array = Array.find_mapi f array
    let map_inplace ~f array = Array.map_inplace f array
    let mapi_inplace ~f array = Array.mapi_inplace f array
    let shuffle = Array.shuffle
    let make_matrix ~dimx ~dimy x = Array.make_matrix dimx dimy x
    let init_matrix ~dimx ~dimy ~f = Array.init_matrix dimx dimy f
  end
end

module Fun = struct
  include Stdlib.Fun

  let compose f g x = f (g x)
end

module Atomic = struct
  include Stdlib.Atomic

  let make_contended = make

  let[@inline] get atomic =
    Polling.note_question atomic;
    get atomic

  let[@inline] compare_and_set atomic seen value =
    Polling.note_question atomic;
    compare_and_set atomic seen value
    || begin
         Polling.note_refusal atomic;
         false
       end

  let[@inline] exchange atomic value =
    Polling.note_question atomic;
    let old = exchange atomic value in
    if old == value then Polling.note_refusal atomic;
    old
end

module Printexc = struct
  include Stdlib.Printexc

  let string_of_extension_constructor constructor = to_string_default (Obj.obj constructor)
end
