(* The output of a thread whose handler of uncaught exceptions raises. *)

let[@inline never] fail () : unit = raise Not_found
let[@inline never] fail_too _ : unit = try failwith "meanwhile" with Failure _ -> failwith "handler"

let thread handler f =
  Thread.set_uncaught_exception_handler handler;
  Thread.join (Thread.create f ())

let () =
  Printexc.record_backtrace true;
  print_string "buffered";
  thread fail_too (fun () -> fail ());
  thread (fun _ -> raise Thread.Exit) (fun () -> fail ());
  thread fail_too (fun () -> raise Thread.Exit);
  thread Thread.default_uncaught_exception_handler (fun () -> fail ())
(* SPDX-License-Identifier: MIT *)
