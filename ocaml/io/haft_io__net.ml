(* SPDX-License-Identifier: MIT *)
(* Sockets: streams over TCP and Unix sockets, datagrams, names. *)
open Haft_io__loop
open Haft_io__fibers
open Haft_io__resource
open Haft_io__flow
module Calls = Haft_io__calls

module Ipaddr = struct
  type 'a t = string  (* 4 or 16 bytes *)

  module V4 = struct
    let any = "\000\000\000\000"
    let loopback = "\127\000\000\001"
  end

  module V6 = struct
    let any = String.make 16 '\000'
    let loopback = String.make 15 '\000' ^ "\001"
  end

  let to_unix (address : _ t) : Unix.inet_addr = Obj.magic address
  let of_unix (address : Unix.inet_addr) : _ t = Obj.magic address

  let of_raw bytes =
    match String.length bytes with
    | 4 | 16 -> bytes
    | length -> invalid_arg (Printf.sprintf "An IP address must be 4 or 16 bytes long (%d)" length)

  let fold ~v4 ~v6 address = if String.length address = 4 then v4 address else v6 address
  let pp formatter address = Format.pp_print_string formatter (Unix.string_of_inet_addr (to_unix address))
end

module Sockaddr = struct
  type stream = [ `Unix of string | `Tcp of string * int ]
  type datagram = [ `Udp of string * int | `Unix of string ]

  let pp formatter = function
    | `Unix path -> Format.fprintf formatter "unix:%s" path
    | `Tcp (address, port) when String.length address = 4 -> Format.fprintf formatter "tcp:%a:%d" Ipaddr.pp address port
    | `Tcp (address, port) -> Format.fprintf formatter "tcp:[%a]:%d" Ipaddr.pp address port
    | `Udp (address, port) when String.length address = 4 -> Format.fprintf formatter "udp:%a:%d" Ipaddr.pp address port
    | `Udp (address, port) -> Format.fprintf formatter "udp:[%a]:%d" Ipaddr.pp address port

  let check_port port =
    if port < 0 || port > 65535 then invalid_arg (Printf.sprintf "a port is a number from 0 to 65535: %d" port)

  let to_unix = function
    | `Unix path -> Unix.ADDR_UNIX path
    | `Tcp (address, port) | `Udp (address, port) ->
        check_port port;
        Unix.ADDR_INET (Ipaddr.to_unix address, port)

  (* A connection over IPv4 to a listener of IPv6 has an address of IPv4. *)
  let plain_address address =
    let mapped = String.make 10 '\000' ^ "\255\255" in
    if String.length address = 16 && String.sub address 0 12 = mapped then String.sub address 12 4 else address

  let stream_of_unix = function
    | Unix.ADDR_UNIX path -> `Unix path
    | Unix.ADDR_INET (address, port) -> `Tcp (plain_address (Ipaddr.of_unix address), port)

  let datagram_of_unix = function
    | Unix.ADDR_UNIX path -> `Unix path
    | Unix.ADDR_INET (address, port) -> `Udp (plain_address (Ipaddr.of_unix address), port)

  let family = function
    | `Unix _ -> 0
    | `Tcp (address, _) | `Udp (address, _) -> if String.length address = 4 then 1 else 2
end

(* The operations that the mock network replaces. *)
type network = {
  listen : sw:Switch.t -> reuse_port:bool -> backlog:int -> Sockaddr.stream -> any;
  connect : sw:Switch.t -> Sockaddr.stream -> any;
  datagrams : sw:Switch.t -> reuse_addr:bool -> reuse_port:bool -> [ Sockaddr.datagram | `UdpV4 | `UdpV6 ] -> any;
  addresses : string -> string -> (Unix.sockaddr * int) list;
  network_mock : kind;  (* Plain: it is none *)
}

type listener = {
  accept : sw:Switch.t -> any * Sockaddr.stream;
  address : unit -> Sockaddr.stream;
  listener_mock : kind;
}

type datagram_socket = {
  send : Sockaddr.datagram option -> Cstruct.t list -> unit;
  recv : Cstruct.t -> Sockaddr.datagram * int;
}

type kind += Network of network | Listener of listener | Datagrams of datagram_socket

let network_of object_ =
  match object_.kind with Network network -> network | _ -> invalid_arg "this object is no network"

let listener_of object_ = match object_.kind with Listener it -> it | _ -> invalid_arg "this object is no listener"

(* ---- The system's ---- *)

let check_code code what argument = if code < 0 then raise_code code what argument

let text_of_address = function
  | `Unix path -> path
  | `Tcp (address, _) | `Udp (address, _) -> Unix.string_of_inet_addr (Ipaddr.to_unix address)

let pause_without_room = 10_000_000 (* nanoseconds *)

(* Where the system has no descriptor left for it, a connection stays in the listener's queue, which is ready and gives
   none. *)
let accept_from descriptor ~sw =
  let rec accept misses =
    Switch.check sw;
    let number = number_of descriptor in
    let connection = Calls.accept number in
    if connection >= 0 then connection
    else if connection = Calls.eagain then (
      if misses < few_misses then ignore (wait_ready number for_reading)
      else sleep_until (now () + pause_without_room);
      accept (misses + 1))
    else raise_code connection "accept" ""
  in
  let connection = accept 0 in
  let peer = Sockaddr.stream_of_unix (Calls.peer connection) in
  (close_with sw (flow_of ~is_file:false connection), peer)

let listen ~sw ~reuse_port ~backlog address =
  let number =
    match address with
    | `Unix path -> Calls.listen_unix path backlog
    | `Tcp (_, port) ->
        Sockaddr.check_port port;
        Calls.listen_tcp (text_of_address address) port backlog reuse_port
  in
  check_code number "listen" (Format.asprintf "%a" Sockaddr.pp address);
  let descriptor = new_descriptor ~is_file:false number in
  let address () =
    match address with
    | `Unix path -> `Unix path
    | `Tcp (ip, 0) -> `Tcp (ip, Calls.port (number_of descriptor))
    | `Tcp _ as address -> address
  in
  close_with sw
    {
      plain with
      close = (fun () -> close_descriptor descriptor);
      kind = Listener { accept = accept_from descriptor; address; listener_mock = Plain };
    }

let connection_failure failure = Exn.create (Net_error (Connection_failure failure))

let connect ~sw address =
  Switch.check sw;
  let number = Calls.socket (Sockaddr.family address) false in
  check_code number "socket" "";
  let flow = flow_of ~is_file:false number in
  let to_ = Sockaddr.to_unix address in
  (* A cancel closes the socket, which ends the connect. *)
  let code =
    try
      suspend "a connection" (fun fiber resume ->
          let cancelled = ref None in
          fiber.withdraw <-
            (fun exn ->
              cancelled := Some exn;
              flow.close ();
              fiber.withdraw <- no_wait);
          begin_work (Calls.connect number to_) (fun code ->
              resume (match !cancelled with Some exn -> Error exn | None -> Ok code)))
    with exn ->
      flow.close ();
      raise exn
  in
  if code < 0 then (
    flow.close ();
    let exn = Calls.unix_error code "connect" (Format.asprintf "%a" Sockaddr.pp address) in
    raise
      (match exn with
      | Unix.Unix_error (Unix.(ECONNREFUSED | ENOENT), _, _) -> connection_failure (Refused exn)
      | Unix.Unix_error (Unix.ETIMEDOUT, _, _) -> connection_failure Timeout
      | Unix.Unix_error (Unix.ECONNRESET, _, _) -> Exn.create (Net_error (Connection_reset exn))
      | exn -> Exn.create (Exn.X exn)))
  else close_with sw flow

let resolver_error = -30000

let addresses host service =
  Calls.(
    do_call "a name"
      (call Resolve ~path:host ~other:service)
      (fun code ->
        if code >= 0 then List.rev (taken_addresses ())
        else if code <= resolver_error then []
        else raise_code code "getaddrinfo" host))

let datagrams ~sw ~reuse_addr ~reuse_port address =
  let family =
    match address with `UdpV4 -> 1 | `UdpV6 -> 2 | #Sockaddr.datagram as address -> Sockaddr.family address
  in
  let number = Calls.socket family true in
  check_code number "socket" "";
  let descriptor = new_descriptor ~is_file:false number in
  let flow = { plain with close = (fun () -> close_descriptor descriptor) } in
  let set option wanted =
    if wanted && seed () = 0 (* a simulation's sockets are none of the system's *) then
      Unix.setsockopt (Obj.magic number : Unix.file_descr) option true
  in
  set SO_REUSEADDR reuse_addr;
  set SO_REUSEPORT reuse_port;
  (match address with
  | `UdpV4 | `UdpV6 -> ()
  | #Sockaddr.datagram as address -> (
      match Calls.bind number (Sockaddr.to_unix address) with
      | code when code < 0 ->
          flow.close ();
          raise_code code "bind" ""
      | _ -> ()));
  let rec send_view target (view : Cstruct.t) =
    let number = number_of descriptor in
    let sent =
      match target with
      | Some address -> Calls.send_to number view.buffer view.len (Sockaddr.to_unix address)
      | None -> Calls.write number view.buffer view.off view.len
    in
    if sent = Calls.eagain then (
      ignore (wait_ready number for_writing);
      send_view target view)
    else check_code sent "send" ""
  in
  let rec recv (view : Cstruct.t) =
    let number = number_of descriptor in
    match Calls.pair_or_error (Calls.receive_from_or_error number view.buffer view.off view.len) with
    | Ok (size, sender) -> (Sockaddr.datagram_of_unix sender, size)
    | Error code when code = Calls.eagain ->
        ignore (wait_ready number for_reading);
        recv view
    | Error code -> raise_code code "recv" ""
  in
  let send target views = send_view target (Cstruct.concat views) in
  close_with sw { flow with kind = Datagrams { send; recv } }

let system = { plain with kind = Network { listen; connect; datagrams; addresses; network_mock = Plain } }

(* ---- The interface ---- *)

module Net = struct
  let listen ?(reuse_addr = false) ?(reuse_port = false) ~backlog ~sw net address =
    ignore (reuse_addr : bool) (* always so, as in libhaft-io *);
    (network_of net).listen ~sw ~reuse_port ~backlog (address :> Sockaddr.stream)

  let connect ~sw net address =
    try (network_of net).connect ~sw address
    with Exn.Io _ as exn ->
      let backtrace = Printexc.get_raw_backtrace () in
      Exn.reraise_with_context exn backtrace "connecting to %a" Sockaddr.pp address

  let datagram_socket ?(reuse_addr = false) ?(reuse_port = false) ~sw net address =
    (network_of net).datagrams ~sw ~reuse_addr ~reuse_port (address :> [ Sockaddr.datagram | `UdpV4 | `UdpV6 ])

  let datagrams_of object_ =
    match object_.kind with Datagrams socket -> socket | _ -> invalid_arg "this object is no socket of datagrams"

  let send socket ?dst views = (datagrams_of socket).send dst views
  let recv socket view = (datagrams_of socket).recv view
  let close object_ = object_.close ()
  let listening_addr socket = (listener_of socket).address ()
  let accept ~sw socket = (listener_of socket).accept ~sw

  (* In a task of the switch, which ends with the connection; a failure is the handler's of errors. *)
  let accept_fork ~sw socket ~on_error handler =
    let flow, address = accept ~sw socket in
    if not (Fiber.is_on sw) then flow.close ()
    else
      Fiber.fork ~sw (fun () ->
          match Fun.protect ~finally:(fun () -> flow.close ()) (fun () -> handler flow address) with
          | () -> ()
          | exception (Cancelled _ as exn) -> raise exn
          | exception exn -> on_error exn)

  let run_server ?(max_connections = max_int) ?(additional_domains : (unit * int) option) ?stop ~on_error socket
      handler =
    if max_connections <= 0 then invalid_arg "max_connections";
    ignore additional_domains;
    let room = Haft_io__sync.Semaphore.make max_connections in
    Switch.run ~name:"run_server" (fun sw ->
        let rec accept_all () =
          Haft_io__sync.Semaphore.acquire room;
          accept_fork ~sw socket ~on_error (fun flow address ->
              Fun.protect
                ~finally:(fun () -> Haft_io__sync.Semaphore.release room)
                (fun () -> handler flow address));
          accept_all ()
        in
        match stop with
        | None -> accept_all ()
        | Some stop -> Fiber.first accept_all (fun () -> Promise.await stop))

  let getaddrinfo ?(service = "") net host = (network_of net).addresses host service

  let getaddrinfo_stream ?service net host =
    List.filter_map
      (fun (address, kind) -> if kind = 0 then Some (Sockaddr.stream_of_unix address) else None)
      (getaddrinfo ?service net host)

  let getaddrinfo_datagram ?service net host =
    List.filter_map
      (fun (address, kind) -> if kind = 1 then Some (Sockaddr.datagram_of_unix address) else None)
      (getaddrinfo ?service net host)

  let with_tcp_connect ?(timeout = Haft_io__time.Time.Timeout.none) ~host ~service net body =
    Switch.run ~name:"with_tcp_connect" (fun sw ->
        let rec connect_to = function
          | [] -> raise (connection_failure No_matching_addresses)
          | address :: others -> (
              let attempt () =
                let connect () = (network_of net).connect ~sw address in
                match Haft_io__time.Time.Timeout.run_exn timeout connect with
                | flow -> flow
                | exception Haft_io__time.Time.Timeout -> raise (connection_failure Timeout)
              in
              match attempt () with
              | flow -> flow
              | exception Exn.Io (Net_error (Connection_failure _), _) when others <> [] -> connect_to others)
        in
        match connect_to (getaddrinfo_stream ~service net host) with
        | flow -> body flow
        | exception (Exn.Io _ as exn) ->
            let backtrace = Printexc.get_raw_backtrace () in
            Exn.reraise_with_context exn backtrace "connecting to %S:%s" host service)
end
