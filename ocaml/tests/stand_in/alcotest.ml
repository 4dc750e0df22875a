(* The part of Alcotest that the tests use, for compilers that Alcotest was not built with. *)

type 'a testable = 'a -> string

let bool = string_of_bool
let int = string_of_int
let string = Printf.sprintf "%S"
let pair first second (a, b) = "(" ^ first a ^ ", " ^ second b ^ ")"
let list element values = "[" ^ String.concat "; " (List.map element values) ^ "]"

exception Failed of string

let fail message = raise (Failed message)
let failf format = Printf.ksprintf fail format

let check to_text what expected found =
  if found <> expected then
    fail (Printf.sprintf "%s: expected %s, found %s" what (to_text expected) (to_text found))

let test_case name `Quick test = (name, test)

(* With HAFT_TEST_COLLECTIONS=N there is a collection at random in every N words that are allocated, on average; some of
   these compact the heap. *)
let collect_at_random () =
  match Sys.getenv_opt "HAFT_TEST_COLLECTIONS" with
  | None -> ()
  | Some words ->
      let collect _ =
        (match Random.int 100 with 0 -> Gc.compact () | n when n < 5 -> ignore (Gc.major_slice 0) | _ -> Gc.minor ());
        None
      in
      let tracker = { Gc.Memprof.null_tracker with alloc_minor = collect; alloc_major = collect } in
      Gc.Memprof.start ~callstack_size:0 ~sampling_rate:(1. /. float_of_string words) tracker

(* Runs all, and exits 1 if one has raised. *)
let run program suites =
  collect_at_random ();
  let passes suite (name, test) =
    match test () with
    | () -> true
    | exception failure ->
        let backtrace = Printexc.get_backtrace () in
        let message = match failure with Failed text -> text | _ -> Printexc.to_string failure in
        Printf.printf "%s, %s, %s: %s\n%s%!" program suite name message backtrace;
        false
  in
  let of_suite (suite, cases) = List.map (passes suite) cases in
  if List.exists not (List.concat_map of_suite suites) then exit 1
(* SPDX-License-Identifier: MIT *)
