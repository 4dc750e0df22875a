(* SPDX-License-Identifier: MIT *)
(* A crawler, with at most four questions at a time; and the site that it crawls, so that it needs no network. *)
open Haft_io

(* Every page links to two others, and one link leads nowhere. *)
let site request =
  match Http.Request.path request with
  | [ "page"; number ] ->
      let number = int_of_string number in
      Time.sleep clock 0.001;
      let link i = Printf.sprintf "<a href=\"/page/%d\">" i in
      if number > 20 then Http.respond ~status:`Not_found ""
      else Http.respond_html (link (2 * number) ^ link ((2 * number) + 1))
  | _ -> Http.redirect "/page/1"

(* The addresses between quotes. *)
let rec links_of text =
  match String.index_opt text '"' with
  | None -> []
  | Some first ->
      let rest = String.sub text (first + 1) (String.length text - first - 1) in
      let last = String.index rest '"' in
      String.sub rest 0 last :: links_of (String.sub rest (last + 1) (String.length rest - last - 1))

type page = Good | Broken of int

let crawl site =
  let found : (string, page) Hashtbl.t = Hashtbl.create 64 in
  let busy = Semaphore.make 4 in
  Switch.run (fun sw ->
      let rec visit path =
        if not (Hashtbl.mem found path) then (
          Hashtbl.replace found path Good;
          Fiber.fork ~sw (fun () ->
              Semaphore.acquire busy;
              let reply =
                Fun.protect ~finally:(fun () -> Semaphore.release busy) (fun () -> Http.Client.get (site ^ path))
              in
              if reply.status = 200 then List.iter visit (links_of reply.body)
              else Hashtbl.replace found path (Broken reply.status)))
      in
      visit "/page/1");
  found

let () =
  run (fun () ->
      let port, set_port = Promise.create () and stop, stopper = Promise.create () in
      Fiber.both
        (fun () -> Http.serve ~host:"127.0.0.1" ~port:0 ~stop ~on_listening:(Promise.resolve set_port) site)
        (fun () ->
          let found = crawl (Printf.sprintf "http://127.0.0.1:%d" (Promise.await port)) in
          let broken = Hashtbl.fold (fun _ page count -> if page = Good then count else count + 1) found 0 in
          Printf.printf "%d pages, %d broken links\n" (Hashtbl.length found - broken) broken;
          Promise.resolve stopper ()))
