(* SPDX-License-Identifier: MIT *)
(* Programs of the set in which a computation is resumed more than once, by copies, which OCaml 5 has not. *)
open Effect
open Effect.Deep
open Public_set

type _ Effect.t +=
  | Pick : int -> int Effect.t
  | Flip : bool Effect.t
  | Fail : 'a Effect.t

let nqueens n =
  let rec is_safe row distance = function
    | [] -> true
    | other :: rest ->
        row <> other
        && row <> other + distance
        && row <> other - distance
        && is_safe row (distance + 1) rest
  in
  let rec place column placed =
    if column = 0 then 1
    else
      let row = perform (Pick n) in
      if is_safe row 1 placed then place (column - 1) (row :: placed)
      else perform Fail
  in
  match place n [] with
  | solutions -> solutions
  | effect Fail, _ -> 0
  | effect (Pick size), k ->
      let rec each row =
        if row = size then continue k row
        else
          let solutions = continue (Haft.unsafe_clone k) row in
          solutions + each (row + 1)
      in
      each 1

let both join body =
  match body () with
  | result -> result
  | effect Fail, _ -> 0
  | effect Flip, k ->
      let again = Haft.unsafe_clone k in
      let first = continue k (true : bool) in
      join first (continue again (false : bool))

let tree_explore height =
  let whole = tree height and state = ref 0 in
  let rec path = function
    | Empty -> !state
    | Node (left, value, right) ->
        let below = if perform Flip then left else right in
        state := operator !state value;
        operator value (path below)
  in
  for _ = 1 to 10 do
    state := both max (fun () -> path whole)
  done;
  !state

let triples n =
  let rec choice n =
    if n < 1 then perform Fail else if perform Flip then n else choice (n - 1)
  in
  let triple () =
    let a = choice n in
    let b = choice (a - 1) in
    let c = choice (b - 1) in
    if a + b + c = n then ((53 * a) + (2809 * b) + (148877 * c)) mod modulus
    else perform Fail
  in
  both (fun one other -> (one + other) mod modulus) triple

let () = programs := !programs @ [ ("nqueens", nqueens); ("tree_explore", tree_explore); ("triples", triples) ]
