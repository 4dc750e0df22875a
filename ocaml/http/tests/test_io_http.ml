(* SPDX-License-Identifier: MIT *)
(* The server and the client, against each other; and bytes that no client of ours would send. *)
open Alcotest
open Haft_io

exception Broken

let text = check string

type _ Effect.t += User : string Effect.t

let as_user (name : string) (next : Http.handler) request =
  Effect.Deep.try_with next request
    {
      effc =
        (fun (type a) (effect : a Effect.t) ->
          match effect with
          | User -> Some (fun (k : (a, _) Effect.Deep.continuation) -> Effect.Deep.continue k name)
          | _ -> None);
    }

(* Calls [body] with the URL of a server, which stops when that has returned. *)
let with_server ?limits ?files ?counters ?debug ?trust_proxies ?access_log
    ?(in_run = Haft_io.run ?backend:None ?dump_signal:None) handler body =
  in_run (fun () ->
      let listening, is_listening = Promise.create () and stop, stopper = Promise.create () in
      Fiber.both
        (fun () ->
          Http.serve ?limits ?files ?counters ?debug ?trust_proxies ?access_log ~host:"127.0.0.1" ~port:0 ~stop
            ~signals:false ~on_listening:(Promise.resolve is_listening) handler)
        (fun () ->
          let url = Printf.sprintf "http://127.0.0.1:%d" (Promise.await listening) in
          Fun.protect ~finally:(fun () -> Promise.resolve stopper ()) (fun () -> body url)))

let case name ?limits ?files ?counters ?debug handler body =
  test_case name `Quick (fun () -> with_server ?limits ?files ?counters ?debug handler body)

let get ?headers url = Http.Client.get ?headers url
let body_of ?headers url = (get ?headers url).body
let status_of url = (get url).status

(* The program of issue and guide. *)
let hello request =
  match Http.Request.path request with
  | [ "hello"; name ] -> Http.respond_text ("Hello, " ^ name ^ "\n")
  | _ -> Http.respond ~status:`Not_found ""

let port_of url = int_of_string (List.nth (String.split_on_char ':' url) 2)

let raw url message =
  Switch.run (fun sw ->
      let flow = Net.connect ~sw net (`Tcp (Net.Ipaddr.V4.loopback, port_of url)) in
      Flow.copy_string message flow;
      Flow.shutdown flow `Send;
      Flow.read_all flow)

let first_line answer = List.hd (String.split_on_char '\r' answer)

let basics =
  [
    case "hello" hello (fun url ->
        text "body" "Hello, you\n" (body_of (url ^ "/hello/you"));
        text "decoded" "Hello, a b/c\n" (body_of (url ^ "/hello/a%20b%2Fc"));
        check int "others" 404 (status_of (url ^ "/")));
    case "100 requests at a time, each of which waits" (fun request ->
        Time.sleep clock 0.002;
        hello request)
      (fun url ->
        Fiber.List.iter
          (fun i -> text "body" (Printf.sprintf "Hello, %d\n" i) (body_of (Printf.sprintf "%s/hello/%d" url i)))
          (List.init 100 Fun.id));
    case "what a request says"
      (fun request ->
        let open Http.Request in
        Http.respond_text
          (Printf.sprintf "%s %s %s q=%s all=%s h=%s c=%s peer=%s"
             (match meth request with `GET -> "GET" | _ -> "other")
             (target request) (version request)
             (Option.value (query request "q") ~default:"none")
             (String.concat "," (List.map (fun (name, value) -> name ^ "=" ^ value) (queries request)))
             (Option.value (header request "x-one") ~default:"none")
             (Option.value (cookie request "c") ~default:"none")
             (peer request)))
      (fun url ->
        text "all" "GET /a?q=1+2&r=%26 HTTP/1.1 q=1 2 all=q=1 2,r=& h=first, second c=5 peer=127.0.0.1"
          (body_of ~headers:[ ("X-One", "first"); ("X-One", "second"); ("Cookie", "c=5") ] (url ^ "/a?q=1+2&r=%26")));
    case "bodies and forms"
      (fun request ->
        match Http.Request.path request with
        | [ "echo" ] -> Http.respond ~content_type:"text/plain" (Http.Request.text request)
        | [ "flow" ] -> Http.respond_text (string_of_int (String.length (Flow.read_all (Http.Request.body request))))
        | _ -> Http.respond_text (Option.value (Http.Request.field request "name") ~default:"none"))
      (fun url ->
        let post ?content_type path body = (Http.Client.post ?content_type ~body (url ^ path)).body in
        text "echo" "some text" (post "/echo" "some text");
        text "empty" "" (post "/echo" "");
        text "flow" "500000" (post "/flow" (String.make 500_000 'x'));
        text "field" "a b" (post ~content_type:"application/x-www-form-urlencoded; charset=utf-8" "/" "name=a+b&x=1");
        text "no form" "none" (post ~content_type:"text/plain" "/" "name=a"));
    case "a body that is too large is 413" ~limits:{ Http.Limits.default with body = 1000 }
      (fun request -> Http.respond_text (Http.Request.text request))
      (fun url -> check int "status" 413 (Http.Client.post ~body:(String.make 2000 'x') url).status);
    case "fields, cookies, redirects"
      (fun request ->
        match Http.Request.path request with
        | [] -> Http.redirect "/there"
        | _ ->
            Http.respond_text "there"
            |> Http.Response.with_header "X-Two" "2"
            |> Http.Response.with_cookie ~for_http:true ~max_age:60 "name" "value")
      (fun url ->
        let reply = get url in
        text "redirected" "there" reply.body;
        check (list string) "field" [ "2" ] (Option.to_list (Http.Client.header reply "x-two"));
        let cookie = Option.get (Http.Client.header reply "Set-Cookie") in
        text "cookie" "name=value; " (String.sub cookie 0 12));
    case "a body piece by piece"
      (fun _ ->
        Http.respond_stream ~content_type:"text/plain" (fun ~flush write ->
            for i = 1 to 5 do
              write (string_of_int i);
              if i = 3 then flush ();
              Fiber.yield ()
            done))
      (fun url -> text "all" "12345" (body_of url));
    case "events"
      (fun _ ->
        Http.respond_events (fun send ->
            send "one";
            Time.sleep clock 0.001;
            send ~kind:"number" ~id:"2" "two"))
      (fun url ->
        let reply = get url in
        check (list string) "type" [ "text/event-stream" ] (Option.to_list (Http.Client.header reply "Content-Type"));
        let is_comment line = line <> "" && line.[0] = ':' in
        let lines = List.filter (fun line -> not (is_comment line)) (String.split_on_char '\n' reply.body) in
        text "events" "data: one\n\nevent: number\nid: 2\ndata: two\n\n" (String.concat "\n" lines));
    case "HEAD has the fields and no body" (fun _ -> Http.respond_text "12345") (fun url ->
        let reply = Http.Client.request ~meth:"HEAD" url in
        text "body" "" reply.body;
        check (list string) "length" [ "5" ] (Option.to_list (Http.Client.header reply "Content-Length")));
    case "no request is 400, and the server goes on" hello (fun url ->
        let folded = "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n" in
        text "status" "HTTP/1.1 400 Bad Request" (first_line (raw url folded));
        text "next" "Hello, you\n" (body_of (url ^ "/hello/you")));
  ]

let failures =
  [
    case "an exception with a status is the answer"
      (fun _ -> Http.fail `Conflict "taken\n")
      (fun url ->
        let reply = get url in
        check int "status" 409 reply.status;
        text "text" "taken\n" reply.body);
    case "another exception is 500, and the server goes on"
      (fun request -> if Http.Request.path request = [] then raise Broken else hello request)
      (fun url ->
        check int "status" 500 (status_of url);
        text "next" "Hello, you\n" (body_of (url ^ "/hello/you")));
    case "a header that none can be is 500"
      (fun _ -> Http.respond_text ~headers:[ ("X", "a\r\nY: b") ] "")
      (fun url -> check int "status" 500 (status_of url));
    (let escaped = ref None in
     case "a request cannot be used when it has been answered"
       (fun request -> escaped := Some request; Http.respond_text "")
       (fun url ->
         check int "status" 200 (status_of url);
         match Http.Request.target (Option.get !escaped) with
         | _ -> fail "it has returned"
         | exception Invalid_argument _ -> ()));
    case "only the handler's own task reads the body"
      (fun request ->
        let other sw = Promise.await_exn (Fiber.fork_promise ~sw (fun () -> Http.Request.text request)) in
        match Switch.run other with
        | text -> Http.respond_text text
        | exception Invalid_argument why -> Http.respond_text why)
      (fun url ->
        text "why" "only the task that serves a request may use it" (Http.Client.post ~body:"x" url).body);
    test_case "a port that is taken" `Quick (fun () ->
        with_server hello (fun url ->
            match Http.serve ~host:"127.0.0.1" ~port:(port_of url) hello with
            | () -> fail "it has returned"
            | exception Failure _ -> ()));
    test_case "a refused connection, and a URL that is none" `Quick (fun () ->
        let url = ref "" in
        with_server hello (fun found -> url := found);
        Haft_io.run (fun () ->
            List.iter
              (fun url ->
                match get url with
                | _ -> fail "it has returned"
                | exception Http.Client.Failed why -> check bool "why" true (String.length why > String.length url))
              [ !url; "no url" ]));
    case "a question that is cancelled ends, and the next goes well"
      (fun request -> if Http.Request.path request = [ "slow" ] then Time.sleep clock 0.05; Http.respond_text "done")
      (fun url ->
        (match Time.with_timeout clock 0.005 (fun () -> Ok (get (url ^ "/slow"))) with
        | Ok _ -> fail "it has returned"
        | Error `Timeout -> ());
        text "next" "done" (body_of url));
    test_case "a cancel of the server cancels its handlers" `Quick (fun () ->
        let cancelled = ref 0 in
        (try
           with_server
             (fun _ -> try Fiber.await_cancel () with exn -> incr cancelled; raise exn)
             (fun url ->
               Fiber.first
                 (fun () -> Fiber.all (List.init 5 (fun _ () -> try ignore (get url) with Http.Client.Failed _ -> ())))
                 (fun () -> Time.sleep clock 0.02);
               raise Broken)
         with Broken -> ());
        check int "cancelled" 5 !cancelled);
    test_case "a cancel that comes before the server serves ends it, and its listener" `Quick (fun () ->
        Haft_io.run (fun () ->
            let descriptors () = Array.length (Sys.readdir "/proc/self/fd") in
            let serve on_listening = Http.serve ~host:"127.0.0.1" ~port:0 ~signals:false ~on_listening hello in
            let before = descriptors () in
            (match Switch.run (fun sw -> serve (fun _ -> Switch.fail sw Broken)) with
            | () -> fail "it has returned"
            | exception Broken -> ());
            (match serve (fun _ -> raise Broken) with () -> fail "it has returned" | exception Broken -> ());
            check int "descriptors" before (descriptors ())));
    test_case "a cancel of the server ends the waits of its handlers in C" `Quick (fun () ->
        (* When [grace] is over, the waits end otherwise than by [Cancelled]. *)
        let limits = { Http.Limits.default with grace = 10.; body_time = 1000.; write_time = 1000. } in
        let ended = ref [] and waiting = ref 0 in
        let handle request =
          let note_end name body =
            incr waiting;
            match body () with
            | value -> value
            | exception Cancel.Cancelled _ ->
                ended := name :: !ended;
                Http.fail `Service_unavailable "cancelled"
          in
          match Http.Request.path request with
          | [ "text" ] -> Http.respond_text (note_end "text" (fun () -> Http.Request.text request))
          | [ "body" ] -> Http.respond_text (note_end "body" (fun () -> Flow.read_all (Http.Request.body request)))
          | [ "stream" ] ->
              Http.respond_stream (fun ~flush:_ write ->
                  note_end "stream" (fun () -> while true do write (String.make 100_000 'x') done))
          | _ ->
              Http.websocket (fun socket ->
                  note_end "socket" (fun () -> ignore (Http.Websocket.receive socket)))
        in
        let clients url sw =
          let ask message =
            let flow = Net.connect ~sw net (`Tcp (Net.Ipaddr.V4.loopback, port_of url)) in
            Flow.copy_string message flow
          in
          ask "POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab";
          ask "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab";
          ask "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";
          ask "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
               Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
          while !waiting < 4 do Time.sleep clock 0.001 done;
          (* They wait in C by now, most likely; those that do not are cancelled before they do. *)
          Time.sleep clock 0.02
        in
        (try
           with_server ~limits handle (fun url ->
               Switch.run (fun sw ->
                   clients url sw;
                   raise Broken))
         with Broken -> ());
        check (list string) "ended" [ "body"; "socket"; "stream"; "text" ] (List.sort compare !ended));
    test_case "a stop lets requests go on that have come" `Quick (fun () ->
        Haft_io.run (fun () ->
            let listening, is_listening = Promise.create () and stop, stopper = Promise.create () in
            let answer = ref "" in
            Fiber.both
              (fun () ->
                Http.serve ~host:"127.0.0.1" ~port:0 ~stop ~signals:false
                  ~on_listening:(Promise.resolve is_listening)
                  (fun request -> Promise.resolve stopper (); Time.sleep clock 0.01; hello request))
              (fun () -> answer := body_of (Printf.sprintf "http://127.0.0.1:%d/hello/late" (Promise.await listening)));
            text "answer" "Hello, late\n" !answer));
    test_case "SIGTERM stops the server" `Quick (fun () ->
        Haft_io.run (fun () ->
            Http.serve ~host:"127.0.0.1" ~port:0
              ~on_listening:(fun _ -> Unix.kill (Unix.getpid ()) Sys.sigterm)
              hello));
  ]

(* A signal handler that raises at each allocation, from the time at which a client asks: here it is a callback of
   Gc.Memprof. The client is the shared one, which nobody has used before. *)
let at_each_allocation name ask =
  test_case name `Quick (fun () ->
      if Sys.getenv_opt "HAFT_TEST_COLLECTIONS" = None then
        let left = ref max_int in
        let note _ =
          decr left;
          if !left = 0 then raise Broken;
          None
        in
        let handle request =
          if Http.Request.path request = [ "socket" ] then Http.websocket ignore else hello request
        in
        let rec from at =
          Gc.Memprof.start ~callstack_size:0 ~sampling_rate:1.
            { Gc.Memprof.null_tracker with alloc_minor = note; alloc_major = note };
          let ask_one url =
            left := at;
            ask url;
            left := max_int
          in
          (try with_server handle ask_one
           with Broken | Http.Client.Failed _ | Http.Websocket.Closed | Exn.Multiple _ | Fun.Finally_raised _ -> ());
          let reached = !left <= 0 in
          left := max_int;
          Gc.Memprof.stop ();
          with_server handle (fun url -> text "afterwards" "Hello, you\n" (body_of (url ^ "/hello/you")));
          if reached && at < 1000 then from (at + 1)
        in
        from 1)

let interrupted =
  [
    at_each_allocation "a reply, and an exception at each allocation" (fun url -> ignore (get (url ^ "/hello/you")));
    at_each_allocation "a streamed reply, and an exception at each allocation" (fun url ->
        ignore (Http.Client.stream (url ^ "/hello/you") (fun _ body -> Flow.read_all body)));
    at_each_allocation "a socket, and an exception at each allocation" (fun url ->
        Http.Client.websocket (url ^ "/socket") (fun socket -> Http.Websocket.send_text socket "hi"));
  ]

let routed =
  let open Http.Route in
  let item () = s "item" / int in
  Http.router
    ([
       get root (fun _ -> Http.respond_text "root");
       get (s "hello" / string) (fun name _ -> Http.respond_text ("hello " ^ name));
       get (item ()) (fun number _ ->
           Http.respond_text (Printf.sprintf "item %d, %s" number (link (item ()) (number + 1))));
       put (item ()) (fun number _ -> Http.respond_text (Printf.sprintf "put %d" number));
       get (s "sum" / int / int) (fun a b _ -> Http.respond_text (string_of_int (a + b)));
       get (s "all" / rest) (fun parts _ -> Http.respond_text (String.concat "|" parts));
     ]
    @ scope "/users" (as_user "Ann")
        [
          get root (fun _ -> Http.respond_text (Effect.perform User));
          get (s "later") (fun _ ->
              Time.sleep clock 0.001;
              Http.respond_text (Effect.perform User));
        ])

let routes =
  [
    case "typed routes" routed (fun url ->
        List.iter
          (fun (path, expected) -> text path expected (body_of (url ^ path)))
          [
            ("/", "root");
            ("/hello/you", "hello you");
            ("/item/5", "item 5, /item/6");
            ("/sum/2/-3", "-1");
            ("/all/a/b%2Fc", "a|b/c");
            ("/item/x", "not found\n");
            ("/hello", "not found\n");
            ("/users", "Ann");
            ("/users/later", "Ann");
          ]);
    case "methods" routed (fun url ->
        let ask meth path = Http.Client.request ~meth (url ^ path) in
        text "put" "put 3" (ask "PUT" "/item/3").body;
        let refused = ask "DELETE" "/item/3" in
        check int "status" 405 refused.status;
        check (list string) "allow" [ "GET, PUT" ] (Option.to_list (Http.Client.header refused "Allow"));
        check int "options" 204 (ask "OPTIONS" "/item/3").status;
        check int "head" 200 (ask "HEAD" "/item/3").status);
    case "sessions, and forms that are not forged"
      (Http.Session.middleware ~for_http:true () (fun request ->
           match Http.Request.path request with
           | [ "count" ] ->
               let count = 1 + int_of_string (Option.value (Http.Session.get "count") ~default:"0") in
               Http.Session.put "count" (string_of_int count);
               Http.respond_text (string_of_int count)
           | [ "token" ] -> Http.respond_text (Http.Session.csrf_token ())
           | [ "end" ] -> Http.Session.finish (); Http.respond_text "ended"
           | _ -> Http.Session.check_csrf request; Http.respond_text "accepted"))
      (fun url ->
        let client = Http.Client.create ~cookies:true () in
        let get path = (Http.Client.get ~client (url ^ path)).body in
        let post body =
          (Http.Client.post ~client ~content_type:"application/x-www-form-urlencoded" ~body (url ^ "/do")).status
        in
        text "first" "1" (get "/count");
        text "second" "2" (get "/count");
        text "another" "1" (body_of (url ^ "/count"));
        check int "forged" 403 (post "csrf=00");
        check int "accepted" 200 (post ("csrf=" ^ get "/token"));
        text "end" "ended" (get "/end");
        text "anew" "1" (get "/count"));
  ]

(* ---- WebSocket: frames by hand ---- *)

let handshake = "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

let frame opcode text =
  Printf.sprintf "%c%c\000\000\000\000%s" (Char.chr (0x80 lor opcode)) (Char.chr (0x80 lor String.length text)) text

let read_frame reader =
  let opcode = Char.code (Buf_read.any_char reader) land 15 in
  let size = Char.code (Buf_read.any_char reader) in
  (opcode, Buf_read.take size reader)

let with_socket sw url body =
  let flow = Net.connect ~sw net (`Tcp (Net.Ipaddr.V4.loopback, port_of url)) in
  Flow.copy_string handshake flow;
  let reader = Buf_read.of_flow flow ~max_size:100_000 in
  text "status" "HTTP/1.1 101 Switching Protocols" (Buf_read.line reader);
  while Buf_read.line reader <> "" do () done;
  body flow reader

let room : Http.Websocket.t list ref = ref []

let chat _ =
  Http.websocket ~origins:"*" (fun socket ->
      room := socket :: !room;
      Fun.protect
        ~finally:(fun () -> room := List.filter (fun other -> other != socket) !room)
        (fun () ->
          Http.Websocket.iter
            (function
              | Text text -> List.iter (fun other -> Http.Websocket.send_text other text) (List.rev !room)
              | Binary bytes -> Http.Websocket.send socket (Binary bytes))
            socket))

let sockets =
  [
    case "a message goes to all in the room" chat (fun url ->
        Switch.run (fun sw ->
            with_socket sw url (fun first first_reader ->
                with_socket sw url (fun second second_reader ->
                    Flow.copy_string (frame 1 "hello") first;
                    check bool "first" true (read_frame first_reader = (1, "hello"));
                    check bool "second" true (read_frame second_reader = (1, "hello"));
                    Flow.copy_string (frame 2 "\000\255") second;
                    check bool "bytes" true (read_frame second_reader = (2, "\000\255"));
                    Flow.copy_string (frame 8 "\003\232") second;
                    check bool "closed" true (read_frame second_reader = (8, "\003\232"));
                    Time.sleep clock 0.002;
                    Flow.copy_string (frame 1 "alone") first;
                    check bool "alone" true (read_frame first_reader = (1, "alone"));
                    check int "room" 1 (List.length !room)))));
    case "a task of another switch may send; none does when the handler has ended"
      (fun _ ->
        Http.websocket ~origins:"*" (fun socket ->
            room := [ socket ];
            Switch.run (fun sw ->
                Fiber.fork ~sw (fun () -> Time.sleep clock 0.002; Http.Websocket.send_text socket "later");
                ignore (Http.Websocket.receive socket))))
      (fun url ->
        Switch.run (fun sw ->
            with_socket sw url (fun flow reader ->
                check bool "later" true (read_frame reader = (1, "later"));
                Flow.copy_string (frame 1 "end") flow;
                check int "closed" 8 (fst (read_frame reader));
                match Http.Websocket.send_text (List.hd !room) "too late" with
                | () -> fail "it has returned"
                | exception Http.Websocket.Closed -> ())));
    case "no handshake is refused" chat (fun url -> check int "status" 426 (status_of url));
  ]

let folder = Filename.temp_file "haft" ".files"

let others =
  [
    test_case "static files, counters, pages" `Quick (fun () ->
        Sys.remove folder;
        Unix.mkdir folder 0o700;
        let file = Filename.concat folder "a.txt" in
        let channel = open_out file in
        output_string channel "content";
        close_out channel;
        with_server ~files:[ ("/static", folder) ] ~counters:"/metrics" ~debug:"/debug"
          (fun request ->
            match Http.Request.path request with
            | [ "file" ] -> Http.respond_file file
            | [ "none" ] -> Http.respond_file "/no/file"
            | _ -> Http.respond_text "other")
          (fun url ->
            text "static" "content" (body_of (url ^ "/static/a.txt"));
            check int "outside" 404 (status_of (url ^ "/static/%2e%2e/x"));
            text "file" "content" (body_of (url ^ "/file"));
            check int "none" 404 (status_of (url ^ "/none"));
            check bool "counters" true (String.length (body_of (url ^ "/metrics")) > 100);
            check bool "tasks" true (String.length (body_of (url ^ "/debug/tasks")) > 20);
            text "other" "other" (body_of (url ^ "/x")));
        Sys.remove file;
        Unix.rmdir folder);
    test_case "in a simulation, hours pass at once, and the same seed gives the same run" `Quick (fun () ->
        let run seed =
          let log = Buffer.create 100 in
          let in_run main = simulate ~seed ~short_counts:true main in
          with_server ~in_run
            (fun request ->
              Time.sleep clock 3600.;
              hello request)
            (fun url ->
              Fiber.List.iter
                (fun name ->
                  match Http.Client.get ~client:(Http.Client.create ()) (url ^ "/hello/" ^ name) with
                  | reply -> Buffer.add_string log reply.body
                  | exception Http.Client.Failed _ -> Buffer.add_string log "failed\n")
                [ "a"; "b"; "c" ]);
          Buffer.contents log
        in
        let results = List.init 10 (fun seed -> run (seed + 1)) in
        check (list string) "again" results (List.init 10 (fun seed -> run (seed + 1)));
        check bool "orders" true (List.length (List.sort_uniq compare results) > 1));
    test_case "collections at random" `Quick (fun () ->
        with_server
          (fun request ->
            if Random.int 10 = 0 then Gc.compact () else Gc.minor ();
            Fiber.yield ();
            Http.respond_text (String.concat " " (Http.Request.path request) ^ Http.Request.text request))
          (fun url ->
            Fiber.List.iter ~max_fibers:10
              (fun i ->
                let body = String.make (i * 50) 'x' in
                let reply = Http.Client.post ~body (Printf.sprintf "%s/a/%d" url i) in
                text "body" (Printf.sprintf "a %d%s" i body) reply.body)
              (List.init 100 Fun.id)));
  ]

(* ---- Uploads, streamed replies, sockets of clients ---- *)

let part ?file_name ?kind name content =
  let file = match file_name with None -> "" | Some file -> Printf.sprintf "; filename=%S" file in
  let kind = match kind with None -> "" | Some kind -> "Content-Type: " ^ kind ^ "\r\n" in
  Printf.sprintf "--frontier\r\nContent-Disposition: form-data; name=%S%s\r\n%s\r\n%s\r\n" name file kind content

let post_parts url parts =
  Http.Client.post ~content_type:"multipart/form-data; boundary=frontier" ~body:(String.concat "" parts) url

let last_part = "--frontier--\r\n"

let describe request =
  let log = Buffer.create 100 and kept = ref None in
  Http.Request.iter_parts request (fun { name; file_name; content_type; content } ->
      kept := Some content;
      let show = Option.value ~default:"-" in
      let size = if name = "skipped" then -1 else String.length (Flow.read_all content) in
      Printf.bprintf log "%s %s %s %d\n" name (show file_name) (show content_type) size);
  (match !kept with
  | Some content -> (
      match Flow.read_all content with _ -> () | exception Invalid_argument why -> Buffer.add_string log why)
  | None -> ());
  Http.respond_text (Buffer.contents log)

let echo =
  Http.websocket (fun socket ->
      Http.Websocket.iter
        (fun message ->
          if message = Text "close" then Http.Websocket.close ~reason:"as asked" socket
          else Http.Websocket.send socket message)
        socket)

let streams =
  [
    case "a form with files, part by part" describe (fun url ->
        let large = String.make 300_000 'x' in
        let reply =
          post_parts url
            [
              part "title" "a day";
              part "skipped" large;
              part "file" ~file_name:"../day.jpg" ~kind:"image/jpeg" large;
              part "empty" "";
              last_part;
            ]
        in
        check int "status" 200 reply.status;
        text "parts"
          ("title - - 5\nskipped - - -1\nfile ../day.jpg image/jpeg 300000\nempty - - 0\n"
          ^ "this part has been passed")
          reply.body);
    case "a form that is none, or no such form" describe (fun url ->
        check int "another type" 415 (Http.Client.post ~body:"a=b" url).status;
        check int "cut off" 400 (post_parts url [ part "title" "a day" ]).status;
        check int "no boundary" 400 (Http.Client.post ~content_type:"multipart/form-data" ~body:"x" url).status;
        check int "too large" 413 (post_parts url [ part "file" (String.make 2_000_000 'x'); last_part ]).status;
        check int "none" 200 (post_parts url [ last_part ]).status);
    case "what the parser of a body raises is 400"
      (fun request -> Http.respond_text (string_of_int (1 + Http.Request.parse request int_of_string)))
      (fun url ->
        text "parsed" "42" (Http.Client.post ~body:"41" url).body;
        let reply = Http.Client.post ~body:"many" url in
        check int "status" 400 reply.status;
        text "why" "Failure(\"int_of_string\")\n" reply.body);
    case "a reply is read as it comes"
      (fun _ ->
        Http.respond_stream (fun ~flush write ->
            for i = 1 to 1000 do
              write (String.make 100 (Char.chr (97 + (i mod 26))));
              if i mod 100 = 0 then flush ()
            done))
      (fun url ->
        let size =
          Http.Client.stream url (fun reply body ->
              check int "status" 200 reply.status;
              text "no body" "" reply.body;
              let memory = Cstruct.create 777 and sum = ref 0 in
              (try
                 while true do
                   sum := !sum + Flow.single_read body memory;
                   if Random.int 20 = 0 then Gc.compact ()
                 done
               with End_of_file -> ());
              !sum)
        in
        check int "size" 100_000 size;
        (* Not to its end; and after the end of its function. *)
        let kept = Http.Client.stream url (fun _ body -> Flow.read_exact body (Cstruct.create 10); body) in
        check bool "passed" true (match Flow.read_all kept with _ -> false | exception Invalid_argument _ -> true);
        text "next" "bcd" (String.init 3 (fun i -> (get url).body.[100 * i])));
    case "a read of a reply is cancelled" ~limits:{ Http.Limits.default with grace = 0.01 }
      (fun _ ->
        Http.respond_stream (fun ~flush write ->
            write "begun";
            flush ();
            Fiber.await_cancel ()))
      (fun url ->
        for _ = 1 to 10 do
          Http.Client.stream url (fun _ body ->
              let buffer = Buf_read.of_flow body ~max_size:100 in
              text "begun" "begun" (Buf_read.take 5 buffer);
              match Time.with_timeout clock 0.002 (fun () -> Ok (Buf_read.any_char buffer)) with
              | Ok _ -> fail "it has read"
              | Error `Timeout -> ())
        done);
    case "a socket of a client, and one of the server" (fun _ -> echo) (fun url ->
        Http.Client.websocket url (fun socket ->
            let open Http.Websocket in
            send_text socket "hello";
            check bool "text" true (receive socket = Text "hello");
            let large = String.init 100_000 (fun i -> Char.chr (i land 255)) in
            send socket (Binary large);
            Gc.compact ();
            check bool "binary" true (receive socket = Binary large);
            (* One receives while others send. *)
            let got = ref 0 in
            Fiber.both
              (fun () -> while !got < 50 do ignore (receive socket); incr got done)
              (fun () -> Fiber.List.iter (fun i -> send_text socket (string_of_int i)) (List.init 50 Fun.id));
            (match Time.with_timeout clock 0.002 (fun () -> Ok (receive socket)) with
            | Ok _ -> fail "it has received"
            | Error `Timeout -> ());
            send_text socket "still";
            check bool "after a limit of time" true (receive socket = Text "still");
            send_text socket "close";
            check bool "closed" true (match receive socket with _ -> false | exception Closed -> true);
            check bool "and stays so" true (match send_text socket "x" with () -> false | exception Closed -> true)));
    case "a socket to a server that has none" hello (fun url ->
        match Http.Client.websocket (url ^ "/hello/you") ignore with
        | () -> fail "it has connected"
        | exception Http.Client.Failed _ -> ());
  ]

(* ---- What other cases use little ---- *)

let is_part part whole =
  let size = String.length part in
  let rec from i = i + size <= String.length whole && (String.sub whole i size = part || from (i + 1)) in
  from 0

let reference =
  [
    test_case "what a response has, and is given" `Quick (fun () ->
        let open Http.Response in
        let response = Http.respond ~headers:[ ("A", "1") ] "x" |> with_status `Created |> with_header "B" "2" in
        check int "status" 201 (status response);
        check (list (pair string string)) "headers" [ ("A", "1"); ("B", "2") ] (headers response);
        check bool "body" true (body_text response = Some "x");
        check bool "no body" true (body_text (Http.respond_stream (fun ~flush:_ _ -> ())) = None);
        check (list int) "codes" [ 404; 418 ] (List.map Http.code_of_status [ `Not_found; `Code 418 ]));
    test_case "texts in paths" `Quick (fun () ->
        text "encode" "a%20b%2F%C3%A9~" (Http.encode "a b/\195\169~");
        text "decode" "a b/\195\169~" (Http.decode "a%20b%2f%C3%A9~");
        text "what is no code" "100%" (Http.decode "100%"));
    case "a type for each kind of body"
      (fun request ->
        match Http.Request.path request with
        | [ "html" ] -> Http.respond_html "<p>"
        | [ "json" ] -> Http.respond_json "{}"
        | _ -> Http.respond_text "")
      (fun url ->
        let kind path = Option.get (Http.Client.header (get (url ^ path)) "content-type") in
        check (list string) "types" [ "text/html; charset=utf-8"; "application/json"; "text/plain; charset=utf-8" ]
          (List.map kind [ "/html"; "/json"; "/" ]));
    case "a cookie is removed"
      (fun _ -> Http.respond_text "" |> Http.Response.without_cookie "name")
      (fun url ->
        let cookie = Option.get (Http.Client.header (get url) "Set-Cookie") in
        if not (is_part "name=;" cookie && is_part "Max-Age=0" cookie) then fail cookie);
    (let outcome = ref "" in
     case "a client that goes while its body is read is no failure of the handler"
       (fun request ->
         match Http.Request.text request with
         | text -> Http.respond_text text
         | exception exn ->
             outcome := Printexc.to_string exn;
             raise exn)
       (fun url ->
         Switch.run (fun sw ->
             let flow = Net.connect ~sw net (`Tcp (Net.Ipaddr.V4.loopback, port_of url)) in
             Flow.copy_string "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab" flow;
             Time.sleep clock 0.005);
         while !outcome = "" do Time.sleep clock 0.001 done;
         text "outcome" "Haft_http: the client has gone" !outcome));
    case "a request has a limit of its own"
      (fun request ->
        Http.Request.limit_body request 10;
        Http.respond_text (Http.Request.text request))
      (fun url ->
        check int "small" 200 (Http.Client.post ~body:"0123456789" url).status;
        check int "large" 413 (Http.Client.post ~body:"01234567890" url).status);
    test_case "the client behind a proxy that is trusted" `Quick (fun () ->
        let handle request =
          Http.respond_text (Http.Request.client_address request ^ " " ^ Http.Request.peer request)
        in
        let headers = [ ("X-Forwarded-For", "10.1.2.3") ] in
        with_server ~trust_proxies:("127.0.0.0/8", "X-Forwarded-For") handle (fun url ->
            text "trusted" "10.1.2.3 127.0.0.1" (body_of ~headers url));
        with_server handle (fun url -> text "not trusted" "127.0.0.1 127.0.0.1" (body_of ~headers url)));
    (let routes =
       let open Http.Route in
       let answer name _ = Http.respond_text name in
       let color = part (function "red" -> Some `Red | _ -> None) (fun `Red -> "red") in
       Http.router
         ~otherwise:(fun _ -> Http.respond_text "otherwise")
         [
           post root (answer "post");
           patch root (answer "patch");
           delete root (answer "delete");
           get (s "half" / float) (fun x _ -> Http.respond_text (string_of_float (x /. 2.)));
           get (s "color" / color) (fun `Red -> answer "it is red");
         ]
     in
     case "routes for each method, and parts of types of one's own" routes (fun url ->
         let ask meth = (Http.Client.request ~meth url).body in
         check (list string) "methods" [ "post"; "patch"; "delete" ] (List.map ask [ "POST"; "PATCH"; "DELETE" ]);
         check (list string) "parts" [ "1.25"; "it is red"; "otherwise" ]
           (List.map (fun path -> body_of (url ^ path)) [ "/half/2.5"; "/color/red"; "/color/blue" ])));
    case "a session forgets a value"
      (Http.Session.middleware ~for_http:true ~cookie:"own" () (fun request ->
           match Http.Request.path request with
           | [ "put" ] -> Http.Session.put "name" "Ann"; Http.respond_text ""
           | [ "remove" ] -> Http.Session.remove "name"; Http.respond_text ""
           | _ -> Http.respond_text (Option.value (Http.Session.get "name") ~default:"nobody")))
      (fun url ->
        let client = Http.Client.create ~cookies:true () in
        let ask path = (Http.Client.get ~client (url ^ path)).body in
        ignore (ask "/put");
        text "put" "Ann" (ask "/");
        ignore (ask "/remove");
        text "removed" "nobody" (ask "/"));
    test_case "a server at a path" `Quick (fun () ->
        let path = Filename.temp_file "haft" ".socket" in
        Sys.remove path;
        Haft_io.run (fun () ->
            let listening, is_listening = Promise.create () and stop, stopper = Promise.create () in
            Fiber.both
              (fun () ->
                Http.serve ~unix_path:path ~stop ~signals:false ~on_listening:(Promise.resolve is_listening) hello)
              (fun () ->
                check int "no port" 0 (Promise.await listening);
                Switch.run (fun sw ->
                    let flow = Net.connect ~sw net (`Unix path) in
                    Flow.copy_string "GET /hello/you HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" flow;
                    check bool "answer" true (is_part "Hello, you" (Flow.read_all flow)));
                Promise.resolve stopper ()));
        if Sys.file_exists path then Sys.remove path);
    test_case "a line for each request" `Quick (fun () ->
        let file = Filename.temp_file "haft" ".log" in
        let before = Unix.dup ~cloexec:true Unix.stdout in
        let log = Unix.openfile file [ O_WRONLY; O_CLOEXEC ] 0 in
        Stdlib.(flush stdout);
        Unix.dup2 log Unix.stdout;
        Fun.protect
          ~finally:(fun () -> Unix.dup2 before Unix.stdout)
          (fun () ->
            List.iter
              (fun format -> with_server ~access_log:format hello (fun url -> ignore (body_of (url ^ "/hello/you"))))
              [ `Common; `Combined; `Json ]);
        List.iter Unix.close [ before; log ];
        let input = open_in file in
        let lines = List.init 3 (fun _ -> input_line input) in
        close_in input;
        Sys.remove file;
        List.iter (fun line -> if not (is_part "/hello/you" line) then fail line) lines;
        check bool "JSON" true ((List.nth lines 2).[0] = '{'));
  ]

let () =
  Alcotest.run "haft-http"
    [
      ("interrupted" (* first: the shared client is new *), interrupted);
      ("basics", basics);
      ("failures", failures);
      ("routes", routes);
      ("sockets", sockets);
      ("others", others);
      ("streams", streams);
      ("reference", reference);
    ]
