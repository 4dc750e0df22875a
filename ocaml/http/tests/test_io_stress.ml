(* SPDX-License-Identifier: MIT *)
(* A server and 40 clients whose questions are cancelled now and then, with handlers that collect, fork, sleep, call
   threads and fail. HAFT_CAMPAIGN=long: for three seconds. *)
open Haft_io

let seconds = match Sys.getenv_opt "HAFT_CAMPAIGN" with Some "long" -> 3. | _ -> 0.5

let rec deep n =
  if n > 0 then 1 + deep (n - 1)
  else (
    if Random.bool () then Time.sleep clock 0.0005 else Fiber.yield ();
    0)

let handle request =
  (match Random.int 7 with
  | 0 -> Gc.minor ()
  | 1 -> ignore (deep 200)
  | 2 -> Time.sleep clock (Random.float 0.004)
  | 3 ->
      Switch.run (fun sw ->
          for _ = 1 to 3 do
            Fiber.fork ~sw (fun () -> ignore (deep 20))
          done)
  | 4 -> run_in_systhread (fun () -> Thread.delay 0.0002)
  | 5 -> if Random.int 30 = 0 then Gc.compact ()
  | _ -> if Random.int 20 = 0 then Http.fail `Conflict "");
  Http.respond_text (Http.Request.text request)

let ask url until =
  while Unix.gettimeofday () < until do
    let body = String.init (Random.int 3000) (fun i -> Char.chr (97 + (i mod 26))) in
    let limit = if Random.int 4 = 0 then 0.001 else 10. in
    match Time.with_timeout clock limit (fun () -> Ok (Http.Client.post ~body url)) with
    | Ok reply -> if reply.status <> 409 && reply.body <> body then failwith "another body"
    | Error `Timeout -> ()
  done

let () =
  run (fun () ->
      let port, set_port = Promise.create () and stop, stopper = Promise.create () in
      Fiber.both
        (fun () ->
          Http.serve ~host:"127.0.0.1" ~port:0 ~signals:false ~stop ~on_listening:(Promise.resolve set_port) handle)
        (fun () ->
          let url = Printf.sprintf "http://127.0.0.1:%d/" (Promise.await port) in
          let until = Unix.gettimeofday () +. seconds in
          Fiber.List.iter (fun _ -> ask url until) (List.init 40 Fun.id);
          Promise.resolve stopper ()))
