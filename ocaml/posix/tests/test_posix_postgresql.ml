(* SPDX-License-Identifier: MIT *)
(* The distribution's binding of libpq: each task has a connection, on which it waits alone. Run by postgres.sh. *)
open Haft_io

let conninfo = Sys.argv.(1)

let with_connection f =
  let connection = new Postgresql.connection ~conninfo () in
  Fun.protect ~finally:(fun () -> connection#finish) (fun () -> f connection)

let number (connection : Postgresql.connection) query =
  int_of_string ((connection#exec ~expect:[ Postgresql.Tuples_ok ] query)#getvalue 0 0)

let command (connection : Postgresql.connection) text =
  ignore (connection#exec ~expect:[ Postgresql.Command_ok; Tuples_ok ] text)

let waiting = 50

(* All wait in the server for a lock that the first one gives back when they do. *)
let meet () =
  with_connection (fun holder ->
      command holder "select pg_advisory_lock(1)";
      Fiber.both
        (fun () ->
          while number holder "select count(*) from pg_locks where locktype = 'advisory' and not granted" < waiting do
            Gc.minor ();
            Unix.sleepf 0.001
          done;
          command holder "select pg_advisory_unlock(1)")
        (fun () ->
          let sums =
            Fiber.List.map
              (fun i ->
                with_connection (fun connection ->
                    command connection "select pg_advisory_lock_shared(1)";
                    if i mod 7 = 0 then Gc.compact ();
                    number connection (Printf.sprintf "select %d + 1" i)))
              (List.init waiting Fun.id)
          in
          if sums <> List.init waiting succ then failwith "wrong sums"))

(* A cancel ends a query; the connection is closed then, as after any failure. *)
let cancel () =
  match
    Time.with_timeout clock 0.05 (fun () ->
        with_connection (fun connection ->
            match number connection "select 1 from pg_sleep(100)" with
            | _ -> failwith "it has slept"
            | exception Postgresql.Error _ -> Fiber.check ());
        Ok ())
  with
  | Ok () -> failwith "it was not cancelled"
  | Error `Timeout -> ()

let () =
  run (fun () ->
      meet ();
      cancel ())
