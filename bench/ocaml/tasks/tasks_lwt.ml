(* SPDX-License-Identifier: MIT *)
(* The rows of tasks.ml with Lwt. *)
open Lwt.Infix

let n = 300_000
let many = 100_000
let rec times n f = if n = 0 then Lwt.return_unit else f () >>= fun () -> times (n - 1) f
let spawn_and_join () = times n (fun () -> Lwt.pause () >|= fun () -> ignore 1)
let yields tasks () = Lwt.join (List.init tasks (fun _ -> times (n / tasks) Lwt.pause))

let stream () =
  let there = Lwt_mvar.create_empty () and back = Lwt_mvar.create_empty () in
  Lwt.join
    [
      times n (fun () -> Lwt_mvar.put there 1 >>= fun () -> Lwt_mvar.take back >|= ignore);
      times n (fun () -> Lwt_mvar.take there >>= Lwt_mvar.put back);
    ]

let promise () =
  times n (fun () ->
      let promise, resolver = Lwt.wait () in
      let waits = promise >|= ignore in
      Lwt.wakeup resolver ();
      waits)

let promises () =
  let there = ref (Lwt.wait ()) and back = ref (Lwt.wait ()) in
  let ask () =
    let answer = fst !back in
    Lwt.wakeup_later (snd !there) ();
    answer
  and answer () =
    fst !there >|= fun () ->
    let asked = snd !back in
    there := Lwt.wait ();
    back := Lwt.wait ();
    Lwt.wakeup_later asked ()
  in
  Lwt.join [ times n ask; times n answer ]

let wait () =
  let before = Measure.live_words () in
  let promise, resolver = Lwt.wait () in
  let all = List.init many (fun _ -> Lwt.bind promise Lwt.return) in
  Measure.bytes_each before many;
  Lwt.wakeup resolver ();
  Lwt.join all

let sleep () = Lwt.join (List.init many (fun _ -> Lwt_unix.sleep 0.1))
let connections = 50
let messages = 30_000

let echo () =
  let answer _ socket =
    let bytes = Bytes.create 4096 in
    let rec go_on () =
      Lwt_unix.read socket bytes 0 4096 >>= fun got ->
      if got = 0 then Lwt.return_unit
      else
        let rec write at =
          if at = got then go_on () else Lwt_unix.write socket bytes at (got - at) >>= fun put -> write (at + put)
        in
        write 0
    in
    go_on ()
  in
  let ask address =
    let socket = Lwt_unix.socket Unix.PF_INET SOCK_STREAM 0 and bytes = Bytes.create 100 in
    let rec read at =
      if at = 100 then Lwt.return_unit
      else
        Lwt_unix.read socket bytes at (100 - at) >>= fun got ->
        if got = 0 then Lwt.fail End_of_file else read (at + got)
    in
    Lwt_unix.connect socket address >>= fun () ->
    times (messages / connections) (fun () -> Lwt_unix.write socket bytes 0 100 >>= fun _ -> read 0) >>= fun () ->
    Lwt_unix.close socket
  in
  let listening = Lwt_unix.socket Unix.PF_INET SOCK_STREAM 0 in
  let rec serve () =
    Lwt_unix.accept listening >>= fun (socket, address) ->
    Lwt.async (fun () -> answer address socket >>= fun () -> Lwt_unix.close socket);
    serve ()
  in
  Lwt_unix.bind listening (ADDR_INET (Unix.inet_addr_loopback, 0)) >>= fun () ->
  Lwt_unix.listen listening 100;
  let serving = serve () in
  Lwt.join (List.init connections (fun _ -> ask (Lwt_unix.getsockname listening))) >>= fun () ->
  Lwt.cancel serving;
  Lwt_unix.close listening

let row name count body = Measure.row name count (fun () -> Lwt_main.run (body ()))

let () =
  row "a pause and a bind" n spawn_and_join;
  row "a pause, 10 loops" n (yields 10);
  row "a pause, 1,000 loops" n (yields 1000);
  row "an item there, and one back" n stream;
  row "a promise, bound" n promise;
  row "a promise there, and one back" n promises;
  row "100,000 binds that wait" many wait;
  row "100,000 that sleep" many sleep;
  row "100 bytes by TCP there and back" messages echo
