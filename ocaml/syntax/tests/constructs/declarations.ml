(* Effects are declared in structures, in signatures and in local modules, with and without
   arguments, as constructors of Effect.t that can be matched and exported. *)
open Effect
open Effect.Deep

effect Read : in_channel -> string
effect Write : out_channel * string -> unit
effect Now : float [@@ocaml.doc "No argument"]
effect Fork : (unit -> unit) -> unit
effect Both : { left : int; right : int } -> int list
effect Id : 'a -> 'a

module type COUNTER = sig
  effect Next : int
  val count : int -> int

  effect Reset : int -> unit
  type t = int
end

module Counter : COUNTER = struct
  let count n = n + perform (Id 1)

  effect Next : int
  effect Reset : int -> unit

  type t = int
end

let x = Counter.count
effect After_expression : unit

(* The generator's effect of the slides: local to a function, with its type. *)
let first (type a) (iterate : (a -> unit) -> unit) : a option =
  let module M = struct effect Yield : a -> unit end in
  let open M in
  try
    iterate (fun v -> perform (Yield v));
    None
  with effect (Yield v) _ -> Some v

let constructors : string list =
  let name : type a. a Effect.t -> string = function
    | Read _ -> "Read"
    | Write (_, text) -> "Write " ^ text
    | Now -> "Now"
    | Fork _ -> "Fork"
    | Both { left; right } -> Printf.sprintf "Both %d %d" left right
    | Counter.Next -> "Next"
    | Counter.Reset n -> Printf.sprintf "Reset %d" n
    | After_expression -> "After_expression"
    | _ -> "other"
  in
  [
    name (Read stdin); name (Write (stdout, "text")); name Now; name (Fork ignore);
    name (Both { left = 1; right = 2 }); name Counter.Next; name (Counter.Reset 3);
    name After_expression; name (Id ());
  ]

let () =
  List.iter print_endline constructors;
  Printf.printf "%d\n" (try x 1 with effect (Id v) k -> continue k v);
  match first (fun yield -> List.iter yield [ "a"; "b" ]) with
  | Some v -> print_endline v
  | None -> print_endline "nothing"
