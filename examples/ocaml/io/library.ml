(* SPDX-License-Identifier: MIT *)
(* A lending library whose clock, database and user are effects. Its business performs them. A test handles them with a
   clock that it moves itself, a table and a name; the service, here in a simulation where weeks pass at once, with the
   clock of the system and the name that the client sends.

     ocamlfind ocamlopt -package haft-http -linkpkg -pp haft-effect-syntax library.ml -o library && ./library *)
open Haft_io

effect Now : float
type loan = string * float (* the reader, and when it has to come back *)

effect Loan_of : string -> loan option
effect Note_loan : string * loan option -> unit
effect User : string

(* ---- The business ---- *)
let day = 86400.

(* Returns until when. *)
let borrow book =
  let user = Effect.perform User in
  match Effect.perform (Loan_of book) with
  | Some (other, _) when other <> user -> Http.fail `Conflict (other ^ " has it\n")
  | _ ->
      let until = Effect.perform Now +. (28. *. day) in
      Effect.perform (Note_loan (book, Some (user, until)));
      until

(* Returns the cents to be paid: ten for each whole day that it is late. *)
let give_back book =
  match Effect.perform (Loan_of book) with
  | Some (reader, until) when reader = Effect.perform User ->
      Effect.perform (Note_loan (book, None));
      max 0 (10 * int_of_float ((Effect.perform Now -. until) /. day))
  | _ -> Http.fail `Not_found "you have not borrowed it\n"

(* ---- Around it ---- *)
let with_clock (read : unit -> float) f =
  match f () with result -> result | effect Now, k -> Effect.Deep.continue k (read ())

let as_user (name : string) f = match f () with result -> result | effect User, k -> Effect.Deep.continue k name

let with_table (loans : (string, loan) Hashtbl.t) f =
  match f () with
  | result -> result
  | effect (Loan_of book), k -> Effect.Deep.continue k (Hashtbl.find_opt loans book)
  | effect (Note_loan (book, None)), k -> Effect.Deep.continue k (Hashtbl.remove loans book)
  | effect (Note_loan (book, Some loan)), k -> Effect.Deep.continue k (Hashtbl.replace loans book loan)

(* ---- The test: neither a server nor a database, and no time passes ---- *)
let test () =
  let today = ref 0. in
  with_clock (fun () -> !today) @@ fun () ->
  with_table (Hashtbl.create 1) @@ fun () ->
  assert (as_user "Ann" (fun () -> borrow "Emma") = 28. *. day);
  assert (match as_user "Bob" (fun () -> borrow "Emma") with _ -> false | exception Http.Error (`Conflict, _) -> true);
  today := 30. *. day;
  assert (as_user "Ann" (fun () -> give_back "Emma") = 20);
  assert (as_user "Bob" (fun () -> borrow "Emma") = 58. *. day);
  print_endline "tested"

(* ---- The service ---- *)
let service () =
  let loans = Hashtbl.create 16 and start = Time.now clock in
  let around next request =
    let name = Option.value (Http.Request.header request "X-User") ~default:"somebody" in
    with_clock (fun () -> Time.now clock) @@ fun () ->
    with_table loans @@ fun () -> as_user name @@ fun () -> next request
  in
  let open Http.Route in
  around
    (Http.router
       [
         post (s "borrow" / string) (fun book _ ->
             Http.respond_text (Printf.sprintf "until day %.0f\n" ((borrow book -. start) /. day)));
         post (s "return" / string) (fun book _ -> Http.respond_text (Printf.sprintf "%d cents\n" (give_back book)));
       ])

let () =
  test ();
  simulate ~seed:1 @@ fun () ->
  let listening, is_listening = Promise.create () and stop, stopper = Promise.create () in
  Fiber.both
    (fun () -> Http.serve ~host:"::1" ~port:80 ~stop ~on_listening:(Promise.resolve is_listening) (service ()))
    (fun () ->
      ignore (Promise.await listening);
      let ask user path =
        let reply = Http.Client.post ~headers:[ ("X-User", user) ] ~body:"" ("http://[::1]" ^ path) in
        Printf.printf "%s: %d %s" user reply.status reply.body
      in
      ask "Ann" "/borrow/Emma";
      ask "Bob" "/borrow/Emma";
      Time.sleep clock (30. *. day);
      ask "Ann" "/return/Emma";
      Promise.resolve stopper ())
