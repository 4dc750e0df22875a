(* An effect under another name, as `exception F = M.E` gives it: after an expression, in a module, behind
   others of its kind, and as what remains an identifier. *)
module M = struct
  effect E : int -> string
  effect Zero : unit

  let zero = 0
  effect Again = E
end

let one = 1
effect E = M.E
effect F = E [@@ocaml.doc "As E."]

module N = struct
  effect G = M.Again
  let two = 2

  effect Zero = M.Zero
end

let is_same effect other = effect = other
let effect e = e
let comparison =
  effect
    M.Zero = N.Zero

let () =
  let answer f =
    try f () with effect E n, k -> Effect.Deep.continue k (string_of_int n)
  in
  print_endline
    (answer (fun () ->
         Effect.perform (M.E one) ^ Effect.perform (N.G N.two) ^ Effect.perform (F M.zero)));
  Printf.printf "%b %b\n" comparison (is_same (effect M.zero) 1)
