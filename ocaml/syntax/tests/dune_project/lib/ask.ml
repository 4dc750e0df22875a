open Effect.Deep

effect Ask : string -> int

let answering (answer : string -> int) f =
  match f () with
  | value -> value
  | effect (Ask question), k -> continue k (answer question)
