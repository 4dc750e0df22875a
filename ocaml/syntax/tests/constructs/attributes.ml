(* Attributes stand where those of an exception may, and cases have every form of pattern. *)
effect [@one] Number : int
effect [@one] [@two "a"] Text : string -> string [@three] [@@four]
effect[@rebound] Same = Number [@five] [@@six]
effect Pair : (int * string option) -> int [@@ocaml.doc "a pair"]
effect List : int list -> int

module type S = sig
  effect [@one] Inside : int [@two] [@@three]
end

module Inner : S = struct
  effect [@one] Inside : int [@two] [@@three]
end

open Effect.Deep

let handle f =
  match f () with
  | value -> value
  | exception [@one] Not_found -> "not found"
  | effect [@one] Number [@two], k -> continue k 1
  | effect [@one] [@two (a, b)] (Text text) k -> continue k (text ^ "!")
  | effect[@ocaml.warning "-4"] Inner.Inside, (k [@two]) -> continue k 2
  | effect Pair ((0 | 1), (None | Some ("" | "none"))), k -> continue k 3
  | effect Pair ((0 | 1 as n), Some text), k when (n > 0) [@guard] && String.length text > n -> continue k 4
  | effect (Pair (n, (Some _ | None)) [@inner]), k when n > 10 -> continue k 5
  | effect List ([] | [ _ ] | 1 :: (2 | 3) :: _), k -> continue k 6
  | effect List (first :: _ as all), k when List.length all > first -> continue k 7

let () =
  let show n = string_of_int (Effect.perform n) in
  print_endline
    (handle (fun () ->
         String.concat " "
           [
             show Number;
             show Same;
             Effect.perform (Text "text");
             show Inner.Inside;
             show (Pair (1, Some "none"));
             show (Pair (1, Some "some"));
             show (Pair (11, None));
             show (List [ 1; 3; 5 ]);
             show (List [ 2; 3; 5 ]);
           ]));
  print_endline (handle (fun () -> raise Not_found));
  match handle (fun () -> show (Pair (0, Some "0"))) with
  | exception Effect.Unhandled (Pair (0, Some "0")) -> print_endline "unhandled"
  | text -> print_endline text

(* `effect` with an attribute is an identifier as well. *)
let effect = 8
let () = match effect [@one] with effect [@two] -> print_int (effect [@three])
