(* SPDX-License-Identifier: MIT *)
(* Lists, arrays, queues, sets and maps. *)

open! Haft_ocaml5__values
module Seq = Haft_ocaml5__seq

module List = struct
  include Stdlib.List

  open struct
    let not_negative name count = if count < 0 then invalid_arg ("List." ^ name)
  end

  let is_empty = function [] -> true | _ :: _ -> false
  let find_mapi f list = Seq.find_mapi f (to_seq list)
  let find_index is_right list = Seq.find_index is_right (to_seq list)

  let take count list =
    not_negative "take" count;
    of_seq (Seq.take count (to_seq list))

  let drop count list =
    not_negative "drop" count;
    let rec from count list = match list with _ :: tail when count > 0 -> from (count - 1) tail | _ -> list in
    from count list

  let take_while is_right list = of_seq (Seq.take_while is_right (to_seq list))
  let rec drop_while is_right = function head :: tail when is_right head -> drop_while is_right tail | list -> list
end

module Array = struct
  include Stdlib.Array

  let find_index is_right array = Seq.find_index is_right (to_seq array)
  let find_mapi f array = Seq.find_mapi f (to_seq array)
  let mapi_inplace f array = iteri (fun index x -> array.(index) <- f index x) array
  let map_inplace f array = mapi_inplace (fun _ x -> f x) array

  let shuffle ~rand array =
    for last = length array - 1 downto 1 do
      let index = rand (last + 1) in
      let x = array.(last) in
      array.(last) <- array.(index);
      array.(index) <- x
    done

  let init_matrix rows columns f =
    if rows < 0 || columns < 0 then invalid_arg "Array.init_matrix";
    init rows (fun row -> init columns (f row))
end

module ArrayLabels = struct
  include Stdlib.ArrayLabels

  let find_index ~f array = Array.find_index f array
  let find_mapi ~f array = Array.find_mapi f array
  let map_inplace ~f array = Array.map_inplace f array
  let mapi_inplace ~f array = Array.mapi_inplace f array
  let shuffle = Array.shuffle
  let init_matrix ~dimx ~dimy ~f = Array.init_matrix dimx dimy f
end

module ListLabels = struct
  include Stdlib.ListLabels

  let is_empty = List.is_empty
  let find_index ~f list = List.find_index f list
  let find_mapi ~f list = List.find_mapi f list
  let take = List.take
  let drop = List.drop
  let take_while ~f list = List.take_while f list
  let drop_while ~f list = List.drop_while f list
end

module Dynarray : sig
  type !'a t

  val create : unit -> 'a t
  val make : int -> 'a -> 'a t
  val init : int -> (int -> 'a) -> 'a t
  val get : 'a t -> int -> 'a
  val set : 'a t -> int -> 'a -> unit
  val length : 'a t -> int
  val is_empty : 'a t -> bool
  val get_last : 'a t -> 'a
  val find_last : 'a t -> 'a option
  val copy : 'a t -> 'a t
  val add_last : 'a t -> 'a -> unit
  val append_array : 'a t -> 'a array -> unit
  val append_list : 'a t -> 'a list -> unit
  val append : 'a t -> 'a t -> unit
  val append_seq : 'a t -> 'a Seq.t -> unit
  val append_iter : 'a t -> (('a -> unit) -> 'x -> unit) -> 'x -> unit
  val blit : src:'a t -> src_pos:int -> dst:'a t -> dst_pos:int -> len:int -> unit
  val pop_last_opt : 'a t -> 'a option
  val pop_last : 'a t -> 'a
  val remove_last : 'a t -> unit
  val truncate : 'a t -> int -> unit
  val clear : 'a t -> unit
  val iter : ('a -> unit) -> 'a t -> unit
  val iteri : (int -> 'a -> unit) -> 'a t -> unit
  val map : ('a -> 'b) -> 'a t -> 'b t
  val mapi : (int -> 'a -> 'b) -> 'a t -> 'b t
  val fold_left : ('acc -> 'a -> 'acc) -> 'acc -> 'a t -> 'acc
  val fold_right : ('a -> 'acc -> 'acc) -> 'a t -> 'acc -> 'acc
  val filter : ('a -> bool) -> 'a t -> 'a t
  val filter_map : ('a -> 'b option) -> 'a t -> 'b t
  val equal : ('a -> 'a -> bool) -> 'a t -> 'a t -> bool
  val compare : ('a -> 'a -> int) -> 'a t -> 'a t -> int
  val exists : ('a -> bool) -> 'a t -> bool
  val for_all : ('a -> bool) -> 'a t -> bool
  val mem : 'a -> 'a t -> bool
  val memq : 'a -> 'a t -> bool
  val find_opt : ('a -> bool) -> 'a t -> 'a option
  val find_index : ('a -> bool) -> 'a t -> int option
  val find_map : ('a -> 'b option) -> 'a t -> 'b option
  val find_mapi : (int -> 'a -> 'b option) -> 'a t -> 'b option
  val of_array : 'a array -> 'a t
  val to_array : 'a t -> 'a array
  val of_list : 'a list -> 'a t
  val to_list : 'a t -> 'a list
  val of_seq : 'a Seq.t -> 'a t
  val to_seq : 'a t -> 'a Seq.t
  val to_seq_reentrant : 'a t -> 'a Seq.t
  val to_seq_rev : 'a t -> 'a Seq.t
  val to_seq_rev_reentrant : 'a t -> 'a Seq.t
  val capacity : 'a t -> int
  val ensure_capacity : 'a t -> int -> unit
  val ensure_extra_capacity : 'a t -> int -> unit
  val fit_capacity : 'a t -> unit
  val set_capacity : 'a t -> int -> unit
  val reset : 'a t -> unit
end = struct
  (* The slots from [length] on are [None]. *)
  type !'a t = { mutable length : int; mutable slots : 'a option array }

  let wrong name format = Printf.ksprintf (fun reason -> invalid_arg ("Dynarray." ^ name ^ ": " ^ reason)) format
  let not_negative name what count = if count < 0 then wrong name "negative %s %d requested" what count
  let create () = { length = 0; slots = [||] }
  let length array = array.length
  let is_empty array = array.length = 0

  let init count f =
    not_negative "init" "length" count;
    { length = count; slots = Array.init count (fun index -> Some (f index)) }

  let make count x =
    not_negative "make" "length" count;
    init count (fun _ -> x)

  let has array index = index >= 0 && index < array.length

  (* The array had [length] elements, and may have changed since. *)
  let slot_of array index ~length =
    match array.slots.(index) with
    | Some x -> x
    | None | (exception Invalid_argument _) ->
        Printf.ksprintf invalid_arg
          "Invalid dynarray (unsynchronized concurrent length change): missing element at position %d < length %d"
          index length

  let slot array index = slot_of array index ~length:array.length

  let get array index =
    if not (has array index) then invalid_arg "index out of bounds";
    slot array index

  let set array index x =
    if is_empty array then wrong "set" "index %d out of bounds (empty dynarray)" index;
    if not (has array index) then wrong "set" "index %d out of bounds (0..%d)" index (array.length - 1);
    array.slots.(index) <- Some x

  let get_last array =
    if is_empty array then wrong "get_last" "empty array";
    slot array (array.length - 1)

  let find_last array = if is_empty array then None else Some (get_last array)
  let copy array = { array with slots = Array.copy array.slots }

  (* Capacity *)

  let capacity array = Array.length array.slots

  let resize array capacity =
    array.slots <-
      Array.init capacity (fun index -> if index < array.length then array.slots.(index) else None)

  let ensure_capacity array wanted =
    not_negative "ensure_capacity" "capacity" wanted;
    if wanted > capacity array then resize array (max wanted (max 8 (3 * capacity array / 2)))

  let ensure_extra_capacity array extra = ensure_capacity array (array.length + extra)

  let truncate array count =
    not_negative "truncate" "length" count;
    if count < array.length then begin
      Array.fill array.slots count (array.length - count) None;
      array.length <- count
    end

  let fit_capacity array = resize array array.length

  let set_capacity array capacity =
    not_negative "set_capacity" "capacity" capacity;
    truncate array capacity;
    resize array capacity

  let clear array = truncate array 0

  let reset array =
    clear array;
    fit_capacity array

  (* At the end *)

  let add_last array x =
    ensure_extra_capacity array 1;
    array.slots.(array.length) <- Some x;
    array.length <- array.length + 1

  let append_iter array iter xs = iter (add_last array) xs
  let append_array array xs = append_iter array Array.iter xs
  let append_list array xs = append_iter array List.iter xs
  let append_seq array xs = append_iter array Seq.iter xs

  let pop_last_opt array =
    let last = find_last array in
    if last <> None then truncate array (array.length - 1);
    last

  let pop_last array = match pop_last_opt array with Some last -> last | None -> raise Not_found
  let remove_last array = ignore (pop_last_opt array)

  let blit ~src ~src_pos ~dst ~dst_pos ~len =
    if len < 0 then wrong "blit" "invalid blit length (%d)" len;
    let check what array start last =
      if start < 0 || start > last then
        wrong "blit" "invalid %s region (%d..%d) in %s dynarray of length %d" what start (start + len) what
          array.length
    in
    check "source" src src_pos (src.length - len);
    check "target" dst dst_pos dst.length;
    ensure_capacity dst (dst_pos + len);
    Array.blit src.slots src_pos dst.slots dst_pos len;
    dst.length <- max dst.length (dst_pos + len)

  (* Each in turn; [f] must leave the length as it is. *)

  let unchanged name array length =
    if array.length <> length then
      wrong name "a length change from %d to %d occurred during iteration" length array.length

  let find_mapi_as name f array =
    let length = array.length in
    let rec from index =
      if index < length then
        match f index (slot_of array index ~length) with None -> from (index + 1) | found -> found
      else begin
        unchanged name array length;
        None
      end
    in
    from 0

  let iteri_as name f array =
    ignore
      (find_mapi_as name
         (fun index x ->
           f index x;
           None)
         array)

  let iteri f array = iteri_as "iteri" f array
  let iter f array = iteri_as "iter" (fun _ -> f) array
  let append array other = iteri_as "append" (fun _ -> add_last array) other

  let fold_left f start array =
    let result = ref start in
    iteri_as "fold_left" (fun _ x -> result := f !result x) array;
    !result

  let to_list array = List.rev (fold_left (fun list x -> x :: list) [] array)

  let fold_right f array start =
    let length = array.length and result = ref start in
    for index = length - 1 downto 0 do
      result := f (slot_of array index ~length) !result
    done;
    unchanged "fold_right" array length;
    !result

  let of_list list =
    let array = create () in
    append_list array list;
    array

  let of_array xs = init (Array.length xs) (Array.get xs)
  let to_array array = Array.init array.length (slot array)

  let of_seq seq =
    let array = create () in
    append_seq array seq;
    array

  let mapi_as name f array =
    let result = create () in
    ensure_capacity result array.length;
    iteri_as name (fun index x -> add_last result (f index x)) array;
    result

  let mapi f array = mapi_as "mapi" f array
  let map f array = mapi_as "map" (fun _ -> f) array

  let filter_map_as name f array =
    let result = create () in
    iteri_as name (fun _ x -> Option.iter (add_last result) (f x)) array;
    result

  let if_ is_right x = if is_right x then Some x else None
  let filter_map f array = filter_map_as "filter_map" f array
  let filter is_right array = filter_map_as "filter" (if_ is_right) array

  let rec to_seq_from index array () =
    if index < array.length then Seq.Cons (slot array index, to_seq_from (index + 1) array) else Seq.Nil

  let rec to_seq_rev_from index array () =
    if index < 0 then Seq.Nil
    else if index < array.length then Seq.Cons (slot array index, to_seq_rev_from (index - 1) array)
    else to_seq_rev_from (array.length - 1) array ()

  let to_seq_reentrant array = to_seq_from 0 array
  let to_seq_rev_reentrant array = to_seq_rev_from (array.length - 1) array

  let unless_changed name array seq =
    let length = array.length in
    Seq.map
      (fun x ->
        unchanged name array length;
        x)
      seq

  let to_seq array = unless_changed "to_seq" array (to_seq_reentrant array)
  let to_seq_rev array = unless_changed "to_seq_rev" array (to_seq_rev_reentrant array)
  let find_as name is_right array = find_mapi_as name (fun _ x -> if_ is_right x) array
  let exists is_right array = Option.is_some (find_as "exists" is_right array)
  let for_all is_right array = Option.is_none (find_as "for_all" (fun x -> not (is_right x)) array)
  let mem x array = exists (fun y -> compare x y = 0) array
  let memq x array = exists (( == ) x) array
  let find_opt is_right array = find_as "find_opt" is_right array
  let find_mapi f array = find_mapi_as "find_mapi" f array
  let find_map f array = find_mapi_as "find_map" (fun _ -> f) array

  let find_index is_right array =
    find_mapi_as "find_index" (fun index x -> if is_right x then Some index else None) array
  let equal eq left right = length left = length right && Seq.equal eq (to_seq left) (to_seq right)

  let compare cmp left right =
    match Int.compare (length left) (length right) with
    | 0 -> Seq.compare cmp (to_seq left) (to_seq right)
    | order -> order
end

module Queue = struct
  include Stdlib.Queue

  let drop queue = ignore (take queue)
end

module Stack = struct
  include Stdlib.Stack

  let drop stack = ignore (pop stack)
end

module Map = struct
  module type OrderedType = Stdlib.Map.OrderedType

  module type S = sig
    include Stdlib.Map.S

    val add_to_list : key -> 'a -> 'a list t -> 'a list t
    val of_list : (key * 'a) list -> 'a t
    val to_list : 'a t -> (key * 'a) list
  end

  module Make (Key : OrderedType) :
    S with type key = Key.t and type 'a t = 'a Stdlib.Map.Make(Key).t = struct
    include Stdlib.Map.Make (Key)

    let add_to_list key x = update key (fun list -> Some (x :: Option.value list ~default:[]))
    let of_list bindings = of_seq (List.to_seq bindings)
    let to_list = bindings
  end
end

module Set = struct
  module type OrderedType = Stdlib.Set.OrderedType

  module type S = sig
    include Stdlib.Set.S

    val to_list : t -> elt list
  end

  module Make (Element : OrderedType) :
    S with type elt = Element.t and type t = Stdlib.Set.Make(Element).t = struct
    include Stdlib.Set.Make (Element)

    let to_list = elements
  end
end

module StdLabels = struct
  module Array = ArrayLabels
  module Bytes = BytesLabels
  module List = ListLabels
  module String = StringLabels
end

module MoreLabels = struct
  module Hashtbl = struct
    include Stdlib.MoreLabels.Hashtbl

    module type SeededHashedType = Hashtbl.SeededHashedType

    module MakeSeeded (Key : SeededHashedType) :
      SeededS with type key = Key.t and type 'a t = 'a Hashtbl.MakeSeeded(Key).t = struct
      include Hashtbl.MakeSeeded (Key)

      let add table ~key ~data = add table key data
      let replace table ~key ~data = replace table key data
      let iter ~f table = iter (fun key data -> f ~key ~data) table
      let fold ~f table ~init = fold (fun key data -> f ~key ~data) table init
      let filter_map_inplace ~f table = filter_map_inplace (fun key data -> f ~key ~data) table
    end
  end

  module Map = struct
    include Stdlib.MoreLabels.Map

    module type S = sig
      include S

      val add_to_list : key:key -> data:'a -> 'a list t -> 'a list t
      val of_list : (key * 'a) list -> 'a t
      val to_list : 'a t -> (key * 'a) list
    end

    module Make (Key : OrderedType) : S with type key = Key.t and type 'a t = 'a Stdlib.Map.Make(Key).t = struct
      include Stdlib.MoreLabels.Map.Make (Key)

      let add_to_list ~key ~data map =
        update ~key ~f:(fun list -> Some (data :: Option.value list ~default:[])) map

      let of_list bindings = of_seq (List.to_seq bindings)
      let to_list = bindings
    end
  end

  module Set = struct
    include Stdlib.MoreLabels.Set

    module type S = sig
      include S

      val to_list : t -> elt list
    end

    module Make (Element : OrderedType) :
      S with type elt = Element.t and type t = Stdlib.Set.Make(Element).t = struct
      include Stdlib.MoreLabels.Set.Make (Element)

      let to_list = elements
    end
  end
end
