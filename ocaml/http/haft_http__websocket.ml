(* SPDX-License-Identifier: MIT *)
(* WebSockets of both sides. *)
open Haft_io
open Haft_http__calls
open Haft_http__request

module Websocket = struct
  type t = {
    mutable socket : socket_pointer option;  (* None: its handler has ended *)
    of_client : bool;
    mutable sending : int;
    idle : unit Loop.waiters;
  }

  type message = Text of string | Binary of string

  exception Closed

  let () = Printexc.register_printer (function Closed -> Some "Haft_http.Websocket.Closed" | _ -> None)

  let socket_of it = match it.socket with Some socket -> socket | None -> raise Closed

  (* Messages are sent by tasks of C: by any task, in the order of the calls. *)
  let send_kind it kind text =
    let socket = socket_of it in
    let begin_ = C.websocket_send socket kind text in
    let sent () =
      it.sending <- it.sending - 1;
      if it.sending = 0 then Fibers.Waiters.wake_all it.idle ()
    in
    it.sending <- it.sending + 1;
    let code =
      match Loop.work "a message to be sent" Fun.id begin_ with
      | code ->
          sent ();
          code
      | exception exn (* of a signal handler *) ->
          sent ();
          raise exn
    in
    if code < 0 then
      match Haft_io__calls.error code with
      | Unix.EPIPE -> raise Closed
      | Unix.EINVAL -> invalid_arg "Websocket: the text is not UTF-8, or no such code may be sent"
      | _ -> Haft_io__flow.raise_code code "websocket" ""

  let send it = function Text text -> send_kind it 1 text | Binary bytes -> send_kind it 2 bytes
  let send_text it text = send_kind it 1 text
  let close ?(code = 1000) ?(reason = "") it = try send_kind it code reason with Closed -> ()

  let message (binary, bytes) = if binary then Binary bytes else Text bytes

  let raise_code code =
    if code = -125 (* ECANCELED *) then (
      Fiber.check ();
      raise Closed)
    else if Haft_io__calls.error code = Unix.EPIPE then raise Closed
    else Haft_io__flow.raise_code code "websocket" ""

  let receive it =
    let socket = socket_of it in
    if it.of_client then
      match
        stoppable "a message" (C.client_socket_receive socket) (fun code ->
            if code = 0 then Ok (message (C.taken_message ())) else Result.Error code)
      with
      | Ok message -> message
      | Error code -> raise_code code
    else
      let received = on_c_stack (fun () -> C.websocket_receive socket) in
      if Obj.is_int received then raise_code (Obj.obj received) else message (Obj.obj received)

  let rec iter f it =
    match receive it with
    | message ->
        f message;
        iter f it
    | exception Closed -> ()

  let await_idle it () =
    while it.sending > 0 do
      Fibers.Waiters.wait_to_the_end it.idle "messages that are sent"
    done

  (* When the handler has ended, nobody sends any more. *)
  let finish it =
    it.socket <- None;
    Loop.in_any_case await_idle it ()
end
