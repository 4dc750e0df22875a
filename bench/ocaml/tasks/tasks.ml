(* SPDX-License-Identifier: MIT *)
(* Tasks of haft-io; tasks_lwt.ml has the same rows. *)
open Haft_io

let n = 300_000
let many = 100_000

let spawn_and_join () =
  Switch.run (fun sw ->
      for _ = 1 to n do
        ignore (Promise.await_exn (Fiber.fork_promise ~sw (fun () -> 1)))
      done)

let yields tasks () =
  Fiber.all
    (List.init tasks (fun _ () ->
         for _ = 1 to n / tasks do
           Fiber.yield ()
         done))

let stream () =
  let there = Stream.create 1 and back = Stream.create 1 in
  Fiber.both
    (fun () ->
      for i = 1 to n do
        Stream.add there i;
        ignore (Stream.take back)
      done)
    (fun () ->
      for _ = 1 to n do
        Stream.add back (Stream.take there)
      done)

let promise () =
  for _ = 1 to n do
    let promise, resolver = Promise.create () in
    Fiber.both (fun () -> Promise.await promise) (fun () -> Promise.resolve resolver ())
  done

(* Two tasks that are there already. *)
let promises () =
  let there = ref (Promise.create ()) and back = ref (Promise.create ()) in
  Fiber.both
    (fun () ->
      for _ = 1 to n do
        let answer = fst !back in
        Promise.resolve (snd !there) ();
        Promise.await answer
      done)
    (fun () ->
      for _ = 1 to n do
        Promise.await (fst !there);
        let asked = snd !back in
        there := Promise.create ();
        back := Promise.create ();
        Promise.resolve asked ()
      done)

let wait () =
  let before = Measure.live_words () in
  let promise, resolver = Promise.create () in
  Switch.run (fun sw ->
      for _ = 1 to many do
        Fiber.fork ~sw (fun () -> Promise.await promise)
      done;
      Measure.bytes_each before many;
      Promise.resolve resolver ())

let sleep () = Fiber.all (List.init many (fun _ () -> Time.sleep clock 0.1))

(* 50 connections, 100 bytes there and back; both ends are in this process. *)
let connections = 50
let messages = 30_000

let echo () =
  let answer flow _ =
    let view = Cstruct.create 4096 in
    try
      while true do
        Flow.write flow [ Cstruct.sub view 0 (Flow.single_read flow view) ]
      done
    with End_of_file -> ()
  in
  let ask address () =
    Switch.run (fun sw ->
        let flow = Net.connect ~sw net address and view = Cstruct.create 100 in
        for _ = 1 to messages / connections do
          Flow.write flow [ view ];
          Flow.read_exact flow view
        done)
  in
  Switch.run (fun sw ->
      let socket = Net.listen ~sw ~backlog:100 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
      Fiber.fork_daemon ~sw (fun () -> Net.run_server socket answer ~on_error:raise);
      Fiber.all (List.init connections (fun _ -> ask (Net.listening_addr socket))))

let () =
  run (fun () ->
      Measure.row "a task that ends at once" n spawn_and_join;
      Measure.row "a yield, 10 tasks" n (yields 10);
      Measure.row "a yield, 1,000 tasks" n (yields 1000);
      Measure.row "an item there, and one back" n stream;
      Measure.row "a promise, awaited in a task" n promise;
      Measure.row "a promise there, and one back" n promises;
      Measure.row "100,000 tasks that wait" many wait;
      Measure.row "100,000 tasks that sleep" many sleep;
      Measure.row "100 bytes by TCP there and back" messages echo)
