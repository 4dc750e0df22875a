(* The ways to write an effect case: every pattern that an effect and a continuation can have, and every
   place where a match or a try can stand. *)
open Effect
open Effect.Deep

effect A : int;;
effect B : int effect C : int * int -> int
effect D : { a : int; b : int } -> int [@@ocaml.doc "with an attribute"]
(* before *) effect (* between *) E (* behind *) : 'a list -> int

module M = struct
  effect F : int -> int
  module N = struct effect G : int end
end

let patterns f =
  match f () with
  | (x : int) -> x
  | effect C (a, b), k -> continue k (a + b)
  | effect D { a; b }, k -> continue k (a * b)
  | effect M.F x, k when x > 10 -> continue k (x - 10)
  | effect M.(F x) k -> continue k (x + 1)
  | effect M.N.G k -> continue k 7
  | effect ((A | B) as e) _k when e == e -> 80
  | effect (E [ _; _ ]), (k) -> continue k 9
  | effect (E (_ :: _)) _ -> 100
  | effect _, k -> discontinue k Exit

class handled = object (self)
  method ask = perform A
  method answer = try self#ask with effect A, k -> (continue k 11 : int)
end

let delayed f = lazy (match f () with x -> x | effect A k -> continue k 12)
let attribute f = match[@ocaml.warning "-8"] f () with Some x -> x | effect A, _ -> 13
let branch flag = if flag then try perform A with effect A, k -> continue k 14 else 0
let in_sequence () = (try ignore (perform A) with effect A, k -> continue k 0); 15
let polymorphic f = match f () with `effect x -> x | effect A, k -> continue k 16
let local f = let open M in match f () with x -> x | effect (F x) k -> continue k (x + 10)

let () =
  List.iter
    (fun f -> Printf.printf "%d\n" (match patterns f with n -> n | exception Exit -> -1))
    [
      (fun () -> perform (C (1, 2))); (fun () -> perform (D { a = 2; b = 2 }));
      (fun () -> perform (M.F 15)); (fun () -> perform (M.F 5)); (fun () -> perform M.N.G);
      (fun () -> perform B); (fun () -> perform (E [ (); () ])); (fun () -> perform (E [ () ]));
      (fun () -> perform (E []));
    ];
  Printf.printf "%d %d %d %d %d %d %d\n" (new handled)#answer
    (Lazy.force (delayed (fun () -> perform A)))
    (attribute (fun () -> Some (perform A)))
    (branch true) (in_sequence ())
    (polymorphic (fun () -> `effect (perform A)))
    (local (fun () -> perform (M.F 7)))
