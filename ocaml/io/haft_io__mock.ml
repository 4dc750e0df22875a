(* SPDX-License-Identifier: MIT *)
(* Clocks, flows and networks that a test scripts, by Eio_mock's names. [traceln] writes what is done with them. *)
open Haft_io__loop
open Haft_io__fibers
open Haft_io__resource
open Haft_io__net

module Action = struct
  type 'a t =
    [ `Return of 'a | `Raise of exn | `Await of 'a Promise.or_exn | `Yield_then of 'a t | `Run of unit -> 'a ]

  let rec run = function
    | `Return value -> value
    | `Raise exn -> raise exn
    | `Await promise -> Promise.await_exn promise
    | `Yield_then action ->
        Fiber.yield ();
        run action
    | `Run f -> f ()

  let rec map f = function
    | `Return value -> `Return (f value)
    | `Raise exn -> `Raise exn
    | `Await promise -> `Run (fun () -> f (Promise.await_exn promise))
    | `Yield_then action -> `Yield_then (map f action)
    | `Run g -> `Run (fun () -> f (g ()))
end

module Handler = struct
  type 'a actions = 'a Action.t list
  type 'a t = { default : 'a Action.t; mutable handle : unit -> 'a }

  let run_default_action handler = Action.run handler.default

  let make default =
    let rec handler = { default; handle = (fun () -> run_default_action handler) } in
    handler

  let set_handler handler handle = handler.handle <- handle
  let run handler = handler.handle ()

  let seq handler actions =
    let left = ref actions in
    set_handler handler (fun () ->
        match !left with
        | [] -> run_default_action handler
        | action :: others ->
            left := others;
            Action.run action)
end

module Flow = struct
  type t = {
    label : string;
    pp : Format.formatter -> string -> unit;
    on_read : string Handler.t;
    on_copy_bytes : int Handler.t;
    mutable on_close : (unit -> unit) list;
    flow : any;
  }

  type kind += Mock of t

  (* Texts of several lines below one another. *)
  let pp_lines formatter text =
    let rec lines text =
      match String.index_opt text '\n' with
      | Some i when i < String.length text - 1 ->
          Format.fprintf formatter "%S@\n" (String.sub text 0 (i + 1));
          lines (String.sub text (i + 1) (String.length text - i - 1))
      | _ -> Format.fprintf formatter "%S" text
    in
    Format.fprintf formatter "@[";
    lines text;
    Format.fprintf formatter "@]"

  let make ?(pp = pp_lines) label =
    let on_read = Handler.make (`Raise End_of_file) and on_copy_bytes = Handler.make (`Return 4096) in
    let read (view : Cstruct.t) =
      let text = Handler.run on_read in
      let length = String.length text in
      if length > view.len then
        failwith (Printf.sprintf "%s: the mock has %d bytes, and there is room for %d" label length view.len);
      traceln "%s: read %a" label pp text;
      Cstruct.blit_from_string text 0 view 0 length;
      length
    in
    let write views =
      let size = min (Handler.run on_copy_bytes) (Cstruct.lenv views) in
      traceln "%s: wrote %a" label pp (Cstruct.to_string ~len:size (Cstruct.concat views));
      size
    in
    let shutdown what =
      traceln "%s: shutdown %s" label (match what with `Receive -> "receive" | `Send -> "send" | `All -> "all")
    in
    let rec mock =
      { label; pp; on_read; on_copy_bytes; on_close = []; flow = { read; write; shutdown; close; kind = Mock mock } }
    and close () =
      let hooks = mock.on_close in
      mock.on_close <- [];
      traceln "%s: closed" label;
      List.iter (fun hook -> hook ()) hooks
    in
    mock

  let of_flow object_ = match object_.kind with Mock mock -> mock | _ -> invalid_arg "this flow is no mock"
  let on_read flow actions = Handler.seq (of_flow flow).on_read actions
  let on_copy_bytes flow actions = Handler.seq (of_flow flow).on_copy_bytes actions

  let attach_to_switch flow switch =
    let mock = of_flow flow in
    let hook = Switch.on_release_cancellable switch flow.close in
    mock.on_close <- (fun () -> Switch.remove_hook hook) :: mock.on_close

  let make ?pp label = (make ?pp label).flow
end

module Net = struct
  type t = {
    on_listen : any Handler.t;
    on_connect : any Handler.t;
    on_datagram_socket : any Handler.t;
    on_getaddrinfo : [ Sockaddr.stream | Sockaddr.datagram ] list Handler.t;
  }

  type kind += Mock of t
  type kind += Mock_listener of (any * Sockaddr.stream) Handler.t

  let of_network object_ =
    match (network_of object_).network_mock with Mock mock -> mock | _ -> invalid_arg "this network is no mock"

  let on_listen network actions = Handler.seq (of_network network).on_listen actions
  let on_connect network actions = Handler.seq (of_network network).on_connect actions
  let on_datagram_socket network actions = Handler.seq (of_network network).on_datagram_socket actions
  let on_getaddrinfo network actions = Handler.seq (of_network network).on_getaddrinfo actions
  let not_set label what = Handler.make (`Raise (Failure (Printf.sprintf "%s: no %s is set" label what)))

  let attached sw (object_ : any) =
    (match object_.kind with Flow.Mock _ -> Flow.attach_to_switch object_ sw | _ -> Switch.on_release sw object_.close);
    object_

  let make label =
    let mock =
      {
        on_listen = not_set label "on_listen";
        on_connect = not_set label "on_connect";
        on_datagram_socket = not_set label "on_datagram_socket";
        on_getaddrinfo = not_set label "on_getaddrinfo";
      }
    in
    let listen ~sw ~reuse_port:_ ~backlog:_ address =
      traceln "%s: listen on %a" label Sockaddr.pp address;
      attached sw (Handler.run mock.on_listen)
    in
    let connect ~sw address =
      traceln "%s: connect to %a" label Sockaddr.pp address;
      attached sw (Handler.run mock.on_connect)
    in
    let datagrams ~sw ~reuse_addr:_ ~reuse_port:_ address =
      (match address with
      | #Sockaddr.datagram as address -> traceln "%s: datagram_socket %a" label Sockaddr.pp address
      | `UdpV4 -> traceln "%s: datagram_socket UDPv4" label
      | `UdpV6 -> traceln "%s: datagram_socket UDPv6" label);
      attached sw (Handler.run mock.on_datagram_socket)
    in
    let addresses host service =
      traceln "%s: getaddrinfo ~service:%s %s" label service host;
      List.map
        (fun address -> (Sockaddr.to_unix address, match address with `Udp _ -> 1 | `Tcp _ | `Unix _ -> 0))
        (Handler.run mock.on_getaddrinfo)
    in
    { plain with kind = Network { listen; connect; datagrams; addresses; network_mock = Mock mock } }

  let listening_socket ?(listening_addr = `Tcp (Ipaddr.V4.any, 0)) label =
    let on_accept = not_set label "on_accept" in
    let accept ~sw =
      let flow, address = Handler.run on_accept in
      traceln "%s: accepted connection from %a" label Sockaddr.pp address;
      (attached sw flow, address)
    in
    {
      plain with
      close = (fun () -> traceln "%s: closed" label);
      kind = Listener { accept; address = (fun () -> listening_addr); listener_mock = Mock_listener on_accept };
    }

  let on_accept socket actions =
    match (listener_of socket).listener_mock with
    | Mock_listener handler -> Handler.seq handler actions
    | _ -> invalid_arg "this socket is no mock"
end

module Clock = struct
  open Haft_io__time

  type timer = { at : int; number : int; fire : unit -> unit }

  module Timers = Set.Make (struct
    type t = timer

    let compare first second = compare (first.at, first.number) (second.at, second.number)
  end)

  (* A time as the program knows it: seconds, or an Mtime.t; and as a clock has it, in nanoseconds. *)
  type t = {
    mutable time : int;
    mutable timers : Timers.t;
    mutable count : int;
    show : int -> string;
  }

  type kind += Mock of t

  let nanoseconds seconds = int_of_float (Float.round (seconds *. 1e9))
  let seconds time = float time /. 1e9

  let add_timer mock at fire =
    mock.count <- mock.count + 1;
    let timer = { at; number = mock.count; fire } in
    mock.timers <- Timers.add timer mock.timers;
    fun () -> mock.timers <- Timers.remove timer mock.timers

  let sleep_until mock time =
    if time > mock.time then
      suspend "a time of the mock clock" (fun fiber resume ->
          let remove = add_timer mock time (fun () -> resume (Ok ())) in
          fiber.withdraw <-
            (fun exn ->
              remove ();
              resume (Error exn)))
    else Fiber.yield ()

  let make_clock show =
    let mock = { time = 0; timers = Timers.empty; count = 0; show } in
    let clock =
      {
        Time.read_wall = (fun () -> seconds mock.time);
        read = (fun () -> mock.time);
        sleep_until = sleep_until mock;
        add_timer = add_timer mock;
        clock_mock = Mock mock;
      }
    in
    { plain with kind = Time.Clock clock }

  let of_clock object_ =
    match (Time.clock_of object_).clock_mock with Mock mock -> mock | _ -> invalid_arg "this clock is no mock"

  let rec fire_until mock time =
    match Timers.min_elt_opt mock.timers with
    | Some timer when timer.at <= time ->
        mock.timers <- Timers.remove timer mock.timers;
        timer.fire ();
        fire_until mock time
    | _ -> ()

  let set mock time =
    if time < mock.time then invalid_arg "the mock clock does not go back";
    mock.time <- time;
    traceln "mock time is now %s" (mock.show time);
    fire_until mock time

  let try_advance clock =
    let mock = of_clock clock in
    match Timers.min_elt_opt mock.timers with
    | None -> false
    | Some timer ->
        set mock timer.at;
        true

  let advance clock = if not (try_advance clock) then invalid_arg "No further events scheduled on mock clock"
  let make () = make_clock (fun time -> Printf.sprintf "%g" (seconds time))
  let set_time clock time = set (of_clock clock) (nanoseconds time)

  module Mono = struct
    let make () = make_clock (fun time -> Printf.sprintf "%dns" time)
    let try_advance = try_advance
    let advance = advance
    let set_time clock time = set (of_clock clock) (Int64.to_int (Mtime.to_uint64_ns time))
  end
end
