(* SPDX-License-Identifier: MIT *)
(* The distribution's binding of SQLite: a connection that waits for a lock of the database suspends its task. *)
open Haft_io

let must db text =
  match Sqlite3.exec db text with
  | OK -> ()
  | code -> failwith (Printf.sprintf "%s: %s (%s)" text (Sqlite3.Rc.to_string code) (Sqlite3.errmsg db))

let connect file =
  let db = Sqlite3.db_open file in
  Sqlite3.busy_timeout db 20_000;
  db

let add file =
  let db = connect file in
  for _ = 1 to 5 do
    must db "begin immediate";
    must db "update numbers set number = number + 1";
    Fiber.yield ();
    Unix.sleepf 0.0002;
    must db "commit"
  done;
  if not (Sqlite3.db_close db) then failwith "it is still in use"

let () =
  run (fun () ->
      let file = Filename.temp_file "haft" ".db" in
      let db = connect file in
      must db "create table numbers (number integer)";
      must db "insert into numbers values (0)";
      (* Has the lock, and gives it back only when another task has asked for it. *)
      must db "begin immediate";
      Fiber.both
        (fun () -> add file)
        (fun () ->
          Fiber.yield ();
          Unix.sleepf 0.002;
          must db "commit");
      Fiber.all (List.init 10 (fun _ () -> add file));
      let found = ref "" in
      must db "select 1";
      (match Sqlite3.exec_not_null_no_headers db ~cb:(fun row -> found := row.(0)) "select number from numbers" with
      | OK -> ()
      | code -> failwith (Sqlite3.Rc.to_string code));
      if not (Sqlite3.db_close db) then failwith "it is still in use";
      Sys.remove file;
      if !found <> "55" then failwith ("the sum is " ^ !found))
