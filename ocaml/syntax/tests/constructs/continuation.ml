(* OCaml 5.3's name for the type of continuations is in scope without `open Effect.Deep`. *)
type _ eff += Wait : int eff

type 'a outcome = Done of 'a | Waiting of (int, 'a outcome) continuation

let waiting : (int, int outcome) continuation list ref = ref []
let start f = match f () with value -> Done value | effect Wait, k -> Waiting k

module Own = struct
  type continuation = int -> int

  let call (k : continuation) = k 1
end

module Opened = struct
  module Other = struct
    type ('a, 'b) continuation = 'a -> 'b
  end

  open Other

  let call (k : (int, int) continuation) = k 2
end

let () =
  (match start (fun () -> Effect.perform Wait + 1) with
  | Waiting k -> waiting := [ k ]
  | Done _ -> ());
  List.iter
    (fun k ->
      match Effect.Deep.continue k 41 with
      | Done value -> Printf.printf "%d %d %d\n" value (Own.call succ) (Opened.call succ)
      | Waiting _ -> ())
    !waiting
