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

let wait () =
  let before = Measure.live_words () in
  let promise, resolver = Lwt.wait () in
  let all = List.init many (fun _ -> Lwt.bind promise Lwt.return) in
  Measure.bytes_each before many;
  Lwt.wakeup resolver ();
  Lwt.join all

let sleep () = Lwt.join (List.init many (fun _ -> Lwt_unix.sleep 0.1))
let row name count body = Measure.row name count (fun () -> Lwt_main.run (body ()))

let () =
  row "a pause and a bind" n spawn_and_join;
  row "a pause, 10 loops" n (yields 10);
  row "a pause, 1,000 loops" n (yields 1000);
  row "an item there, and one back" n stream;
  row "a promise, bound" n promise;
  row "100,000 binds that wait" many wait;
  row "100,000 that sleep" many sleep
