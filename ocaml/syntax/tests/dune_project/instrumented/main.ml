effect Local : int

let () =
  Printf.printf "%d\n" (try Effect.perform Local with effect Local, k -> Effect.Deep.continue k 5)
