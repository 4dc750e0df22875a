(* SPDX-License-Identifier: MIT *)
(* Sequences. Functions of 4.14 are there for 4.13, too. *)

include struct
  [@@@ocaml.warning "-32"]

  open! Stdlib.Seq

  exception Forced_twice

  let is_empty seq = match seq () with Nil -> true | Cons _ -> false
  let uncons seq = match seq () with Nil -> None | Cons (head, tail) -> Some (head, tail)
  let length seq = fold_left (fun count _ -> count + 1) 0 seq
  let singleton = return

  let fold_lefti f start seq =
    snd (fold_left (fun (index, result) x -> (index + 1, f result index x)) (0, start) seq)

  let iteri f seq = fold_lefti (fun () index x -> f index x) () seq

  let rec find_map f seq =
    match seq () with
    | Nil -> None
    | Cons (head, tail) -> ( match f head with None -> find_map f tail | found -> found)

  let find is_right seq = find_map (fun x -> if is_right x then Some x else None) seq
  let exists is_right seq = Option.is_some (find is_right seq)
  let for_all is_right seq = not (exists (fun x -> not (is_right x)) seq)

  open struct
    let rec mapi_from index f seq () =
      match seq () with
      | Nil -> Nil
      | Cons (head, tail) -> Cons (f index head, mapi_from (index + 1) f tail)
  end

  let mapi f seq = mapi_from 0 f seq
  let find_mapi f seq = find_map Fun.id (mapi f seq)
  let find_index is_right seq = find_mapi (fun index x -> if is_right x then Some index else None) seq

  let rec map2 f left right () =
    match left () with
    | Nil -> Nil
    | Cons (l, left) -> (
        match right () with Nil -> Nil | Cons (r, right) -> Cons (f l r, map2 f left right))

  let zip left right = map2 (fun l r -> (l, r)) left right
  let iter2 f left right = iter (fun (l, r) -> f l r) (zip left right)
  let fold_left2 f start left right = fold_left (fun result (l, r) -> f result l r) start (zip left right)
  let for_all2 f left right = for_all (fun (l, r) -> f l r) (zip left right)
  let exists2 f left right = exists (fun (l, r) -> f l r) (zip left right)

  let rec equal eq left right =
    match (left (), right ()) with
    | Nil, Nil -> true
    | Cons (l, left), Cons (r, right) -> eq l r && equal eq left right
    | _ -> false

  let rec compare cmp left right =
    match (left (), right ()) with
    | Nil, Nil -> 0
    | Nil, Cons _ -> -1
    | Cons _, Nil -> 1
    | Cons (l, left), Cons (r, right) ->
        let order = cmp l r in
        if order <> 0 then order else compare cmp left right

  let rec ints from () = Cons (from, ints (from + 1))
  let rec forever f () = Cons (f (), forever f)
  let rec repeat x () = Cons (x, repeat x)

  let cycle seq () =
    match seq () with
    | Nil -> Nil
    | Cons (head, tail) ->
        let rec again () = append seq again () in
        Cons (head, append tail again)

  let rec iterate f x () = Cons (x, fun () -> iterate f (f x) ())

  open struct
    let rec take_some count seq () =
      if count = 0 then Nil
      else match seq () with Nil -> Nil | Cons (head, tail) -> Cons (head, take_some (count - 1) tail)
  end

  let take count seq =
    if count < 0 then invalid_arg "Seq.take";
    take_some count seq

  let drop count seq =
    if count < 0 then invalid_arg "Seq.drop";
    let rec from count seq =
      if count = 0 then seq ()
      else match seq () with Nil -> Nil | Cons (_, tail) -> from (count - 1) tail
    in
    if count = 0 then seq else fun () -> from count seq

  let init count f =
    if count < 0 then invalid_arg "Seq.init";
    map f (take_some count (ints 0))

  let rec take_while is_right seq () =
    match seq () with
    | Cons (head, tail) when is_right head -> Cons (head, take_while is_right tail)
    | _ -> Nil

  let rec drop_while is_right seq () =
    match seq () with
    | Cons (head, tail) when is_right head -> drop_while is_right tail ()
    | rest -> rest

  open struct
    let rec scan_from f state seq () =
      match seq () with
      | Nil -> Nil
      | Cons (head, tail) ->
          let state = f state head in
          Cons (state, scan_from f state tail)
  end

  let scan f start seq = cons start (scan_from f start seq)

  let rec group eq seq () =
    match seq () with
    | Nil -> Nil
    | Cons (head, tail) ->
        Cons (cons head (take_while (eq head) tail), group eq (drop_while (eq head) tail))

  let rec memoize seq =
    let node = lazy (match seq () with Nil -> Nil | Cons (head, tail) -> Cons (head, memoize tail)) in
    fun () -> Lazy.force node

  let rec once seq =
    let is_forced = Atomic.make false in
    fun () ->
      if Atomic.exchange is_forced true then raise Forced_twice;
      match seq () with Nil -> Nil | Cons (head, tail) -> Cons (head, once tail)

  let rec interleave left right () =
    match left () with Nil -> right () | Cons (head, left) -> Cons (head, interleave right left)

  let rec sorted_merge cmp left right () =
    match (left (), right ()) with
    | Nil, rest | rest, Nil -> rest
    | (Cons (l, left') as whole_left), (Cons (r, right') as whole_right) ->
        if cmp l r <= 0 then Cons (l, sorted_merge cmp left' (fun () -> whole_right))
        else Cons (r, sorted_merge cmp (fun () -> whole_left) right')

  let rec transpose rows () =
    let rows = filter_map uncons rows in
    if is_empty rows then Nil else Cons (map fst rows, transpose (map snd rows))

  open struct
    (* The diagonals of the table of rows. *)
    let rec diagonals seen rows () =
      match rows () with
      | Nil -> transpose seen ()
      | Cons (row, rows) ->
          let seen = cons row seen in
          Cons (filter_map (fun row -> Option.map fst (uncons row)) seen,
                diagonals (filter_map (fun row -> Option.map snd (uncons row)) seen) rows)
  end

  let map_product f left right = concat (diagonals empty (map (fun l -> map (f l) right) left))
  let product left right = map_product (fun l r -> (l, r)) left right
  let unzip seq = (map fst seq, map snd seq)
  let split = unzip

  let partition_map f seq =
    let seq = map f seq in
    (filter_map Either.find_left seq, filter_map Either.find_right seq)

  let partition is_right seq = (filter is_right seq, filter (fun x -> not (is_right x)) seq)

  let rec of_dispenser next () = match next () with None -> Nil | Some x -> Cons (x, of_dispenser next)

  let to_dispenser seq =
    let rest = ref seq in
    fun () ->
      Option.map
        (fun (head, tail) ->
          rest := tail;
          head)
        (uncons !rest)
end

include Stdlib.Seq (* with what 4.14 has of this *)
