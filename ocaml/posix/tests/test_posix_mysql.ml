(* SPDX-License-Identifier: MIT *)
(* The distribution's binding of MariaDB's and MySQL's client, which blocks: many queries at a time, to a server that is
   a task of the same thread, speaks as much of the protocol as is needed here, and answers nobody before all have
   asked. *)
open Haft_io

let clients = 20

(* ---- The server ---- *)

let bytes size n = String.init size (fun i -> Char.chr ((n lsr (8 * i)) land 255))
let text s = (if String.length s < 251 then bytes 1 (String.length s) else "\253" ^ bytes 3 (String.length s)) ^ s

let greeting =
  (* The server speaks protocol 4.1, and has the password scrambled by 20 bytes. *)
  let capabilities = 0x8a20d in
  "\010" ^ "5.7.0-haft\000" ^ bytes 4 1 ^ "12345678\000"
  ^ bytes 2 (capabilities land 0xffff)
  ^ "\033" ^ bytes 2 2
  ^ bytes 2 (capabilities lsr 16)
  ^ "\021" ^ String.make 10 '\000' ^ "123456789012\000" ^ "mysql_native_password\000"

let ok = "\000\000\000" ^ bytes 2 2 ^ bytes 2 0
let eof = "\254" ^ bytes 2 0 ^ bytes 2 2
let error = "\255" ^ bytes 2 1064 ^ "#42000" ^ "no such query"

let column =
  String.concat "" (List.map text [ "def"; ""; ""; ""; "answer"; "" ])
  ^ "\012" ^ bytes 2 33 ^ bytes 4 1_000_000 ^ "\253" ^ bytes 2 0 ^ "\000" ^ bytes 2 0

let rows all = ("\001" :: column :: eof :: List.map text all) @ [ eof ]

(* The packets that answer a query. *)
let answer ~meet query =
  match String.split_on_char ' ' query with
  | [ "meet"; number ] ->
      meet ();
      rows [ number ]
  | [ "repeat"; size; times ] -> rows (List.init (int_of_string times) (fun _ -> String.make (int_of_string size) 'x'))
  | [ "never" ] -> Fiber.await_cancel ()
  | _ -> [ error ]

let serve ~meet flow _ =
  let input = Buf_read.of_flow flow ~max_size:10_000 in
  let read () =
    let head = Buf_read.take 4 input in
    Buf_read.take (Char.code head.[0] + (256 * Char.code head.[1])) input
  in
  let write first packets =
    let packet i payload = bytes 3 (String.length payload) ^ bytes 1 (first + i) ^ payload in
    Flow.copy_string (String.concat "" (List.mapi packet packets)) flow
  in
  write 0 [ greeting ];
  ignore (read ());
  write 2 [ ok ];
  let rec go_on () =
    let command = read () in
    match command.[0] with
    | '\001' -> ()
    | '\003' ->
        write 1 (answer ~meet (String.sub command 1 (String.length command - 1)));
        go_on ()
    | _ ->
        write 1 [ ok ];
        go_on ()
  in
  try go_on () with End_of_file -> ()

(* ---- Clients ---- *)

let with_connection port f =
  let connection = Mysql.quick_connect ~host:"127.0.0.1" ~port ~user:"tester" ~password:"secret" () in
  Fun.protect ~finally:(fun () -> Mysql.disconnect connection) (fun () -> f connection)

let query connection text =
  let result = Mysql.exec connection text in
  Gc.minor ();
  let rec all rows =
    match Mysql.fetch result with
    | Some [| Some answer |] -> all (answer :: rows)
    | Some _ -> failwith "another row"
    | None -> List.rev rows
  in
  all []

let check what passed = if not passed then failwith what

let () =
  run (fun () ->
      Switch.run (fun sw ->
          let socket = Net.listen ~sw ~backlog:100 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
          let port = match Net.listening_addr socket with `Tcp (_, port) -> port | `Unix _ -> assert false in
          let asked = ref 0 and all, last = Promise.create () in
          let meet () =
            incr asked;
            if !asked = clients then Promise.resolve last ();
            Promise.await all
          in
          Fiber.fork_daemon ~sw (fun () -> Net.run_server socket (serve ~meet) ~on_error:raise);
          let numbers = List.init clients string_of_int in
          let answers =
            Fiber.List.map
              (fun number -> with_connection port (fun connection -> query connection ("meet " ^ number)))
              numbers
          in
          check "each gets its own answer" (answers = List.map (fun number -> [ number ]) numbers);
          with_connection port (fun connection ->
              let row = String.make 60_000 'x' in
              check "long answers" (query connection "repeat 60000 40" = List.init 40 (fun _ -> row));
              check "a mistake is the binding's exception"
                (match query connection "what" with _ -> false | exception Mysql.Error _ -> true);
              check "the connection goes on" (query connection "repeat 1 1" = [ "x" ]));
          (* A cancel ends the query with the binding's error. *)
          let failed =
            Cancel.sub (fun context ->
                let _, failed =
                  Fiber.pair
                    (fun () ->
                      Cancel.protect (fun () -> Time.sleep clock 0.01);
                      Cancel.cancel context Exit)
                    (fun () ->
                      match with_connection port (fun connection -> query connection "never") with
                      | _ -> false
                      | exception Mysql.Error _ -> true)
                in
                failed)
          in
          check "a cancel ends a query" failed))
