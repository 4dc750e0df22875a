(* Generators from iterators, from the slides; the tree is traversed 2^18 times back and forth. *)
open Effect
open Effect.Deep

module MkGen (S : sig
  type 'a t

  val iter : ('a -> unit) -> 'a t -> unit
end) : sig
  val gen : 'a S.t -> unit -> 'a option
end = struct
  let gen : type a. a S.t -> unit -> a option =
   fun l ->
    let module M = struct
      type _ Effect.t += Yield : a -> unit Effect.t
    end in
    let open M in
    let rec step =
      ref (fun () ->
          match_with
            (fun () -> S.iter (fun v -> perform (Yield v)) l)
            ()
            {
              retc =
                (fun () ->
                  (!self) := (fun () -> None);
                  None);
              exnc = raise;
              effc =
                (fun (type b) (effect : b Effect.t) ->
                  match effect with
                  | Yield v ->
                      Some
                        (fun (k : (b, _) continuation) ->
                          (!self) := (fun () -> continue k ());
                          Some v)
                  | _ -> None);
            })
    and self = { contents = step } in
    fun () -> !step ()
end

module L = MkGen (struct
  type 'a t = 'a list

  let iter = List.iter
end)

type 'a tree = Leaf | Node of 'a tree * 'a * 'a tree

let rec iter f = function
  | Leaf -> ()
  | Node (l, x, r) ->
      iter f l;
      f x;
      iter f r

let rec make = function
  | 0 -> Leaf
  | n ->
      let t = make (n - 1) in
      Node (t, n, t)

module T = MkGen (struct
  type 'a t = 'a tree

  let iter = iter
end)

let print = function
  | Some n -> Printf.printf "Some %d\n" n
  | None -> print_endline "None"

let () =
  let next = L.gen [ 1; 2; 3 ] in
  for _ = 1 to 4 do
    print (next ())
  done;
  let next = T.gen (make 2) in
  for _ = 1 to 4 do
    print (next ())
  done;
  let next = T.gen (make 17) in
  let rec sum n = match next () with Some x -> sum (n + x) | None -> n in
  Printf.printf "sum %d\n" (sum 0)
(* SPDX-License-Identifier: MIT *)
