(* SPDX-License-Identifier: MIT *)
(* Table 1: programs without effects. One object, linked into a program with the library and into one
   without it. *)
external identity : int -> int = "bench_identity"
external call_often : (int -> int) -> int -> unit = "bench_call_often"

let same x = x

let () =
  Loops.loop "exnval" (fun n ->
      for i = 1 to n do
        ignore (try Sys.opaque_identity i with Exit -> 0)
      done);
  Loops.loop "exnraise" (fun n ->
      for i = 1 to n do
        ignore (try if Sys.opaque_identity i > 0 then raise Exit with Exit -> ())
      done);
  Loops.loop "extcall" (fun n ->
      for i = 1 to n do
        ignore (identity i)
      done);
  Loops.loop "callback" (fun n -> call_often same n);
  Loops.calls "ack" (fun () -> Recursion.(ack_of ack));
  Loops.calls "fib" (fun () -> Recursion.(fib_of fib));
  Loops.calls "motzkin" (fun () -> Recursion.(motzkin_of motzkin));
  Loops.calls "sudan" (fun () -> Recursion.(sudan_of sudan));
  Loops.calls "tak" (fun () -> Recursion.(tak_of tak))
