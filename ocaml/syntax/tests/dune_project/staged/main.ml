effect Local : int

let () =
  Printf.printf "%d %d\n"
    (try Effect.perform Local with effect Local, k -> Effect.Deep.continue k Plain.answer)
    (Both.answer ())
