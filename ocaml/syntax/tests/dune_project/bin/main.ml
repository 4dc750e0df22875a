effect Local : int

let () =
  let sum () = Effect.perform (Ask.Ask "first") + Effect.perform Local in
  Printf.printf "%d\n"
    (try Ask.answering String.length sum with effect Local k -> Effect.Deep.continue k [%answer])
