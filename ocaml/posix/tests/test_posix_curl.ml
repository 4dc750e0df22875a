(* SPDX-License-Identifier: MIT *)
(* The distribution's binding of libcurl, whose easy interface blocks: many transfers at a time, to a server that is a
   task of the same thread, and answers nobody before all have asked. *)
open Haft_io

let clients = 30

let fetch url =
  let body = Buffer.create 16 and curl = Curl.init () in
  Fun.protect
    ~finally:(fun () -> Curl.cleanup curl)
    (fun () ->
      Curl.set_url curl url;
      Curl.set_writefunction curl (fun text ->
          if Random.int 4 = 0 then Gc.compact ();
          Buffer.add_string body text;
          String.length text);
      Curl.perform curl;
      Buffer.contents body)

(* A server of HTTP, as far as libcurl needs one here. *)
let serve socket =
  let asked = ref 0 and all, last = Promise.create () in
  Switch.run (fun sw ->
      for _ = 1 to clients do
        let flow, _ = Net.accept ~sw socket in
        Fiber.fork ~sw (fun () ->
            let lines = Buf_read.of_flow flow ~max_size:4096 in
            let first = Buf_read.line lines in
            while Buf_read.line lines <> "" do () done;
            incr asked;
            if !asked = clients then Promise.resolve last ();
            Promise.await all;
            let body = List.nth (String.split_on_char ' ' first) 1 in
            let head = Printf.sprintf "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" (String.length body) in
            Flow.copy_string (head ^ "Connection: close\r\n\r\n" ^ body) flow)
      done)

let () =
  Curl.global_init Curl.CURLINIT_GLOBALALL;
  run (fun () ->
      Switch.run (fun sw ->
          let socket = Net.listen ~sw ~backlog:100 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
          let port = match Net.listening_addr socket with `Tcp (_, port) -> port | `Unix _ -> assert false in
          Fiber.both
            (fun () -> serve socket)
            (fun () ->
              let numbers = List.init clients string_of_int in
              let bodies =
                Fiber.List.map (fun i -> fetch (Printf.sprintf "http://127.0.0.1:%d/%s" port i)) numbers
              in
              if bodies <> List.map (( ^ ) "/") numbers then failwith (String.concat " " bodies))))
