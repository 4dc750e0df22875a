effect Local : int

let answer () = try Effect.perform Local with effect Local, k -> Effect.Deep.continue k [%answer]
