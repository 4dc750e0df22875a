(* SPDX-License-Identifier: MIT *)
(* The client. *)
open Haft_io
open Haft_http__calls
open Haft_http__values
open Haft_http__request
open Haft_http__websocket

module Client = struct
  type t = client_pointer
  type reply = { status : int; headers : headers; body : string }

  exception Failed of string

  let create ?(kept = 0) ?(connections = 0) ?(redirects = 0) ?(body_limit = 0) ?(cookies = false) () =
    let client = C.client (kept, connections, redirects, body_limit, cookies) in
    if (client :> int) = 0 then raise Out_of_memory;
    client

  let shared = ref None

  (* (A lazy value would stay a failure for good if a signal handler raised here.) *)
  let shared_client () =
    match !shared with
    | Some client -> client
    | None ->
        let client = create () in
        shared := Some client;
        client

  let ask ?client ?(meth = "") ?(headers = []) ?(content_type = "") ?(body = "") ?(protocols = "") url kind take =
    let client = match client with Some client -> client | None -> shared_client () in
    stoppable "an answer"
      (C.ask client (meth, url, content_type, body, Array.of_list headers, protocols, kind))
      (fun code ->
        if code = 0 then take ()
        else
          let why = match C.taken_failure () with "" -> Loop.error_text code | text -> text in
          raise (Failed (url ^ ": " ^ why)))

  let take_reply () =
    let status, headers, body = C.taken_reply () in
    { status; headers = List.rev headers; body }

  let request ?client ?meth ?headers ?content_type ?body url =
    ask ?client ?meth ?headers ?content_type ?body url 0 take_reply

  let stream ?client ?meth ?headers ?content_type ?body url f =
    let taken : reply_pointer ref = ref (Obj.magic 0) and reads = ref true in
    let read (view : Cstruct.t) =
      if not !reads then invalid_arg "the function that got this reply has returned";
      let got =
        stoppable "bytes of an answer" (C.reply_read !taken view.buffer view.off view.len) (fun code ->
            ignore (Sys.opaque_identity view.buffer);
            code)
      in
      if got < 0 then raise (Failed (url ^ ": " ^ Loop.error_text got));
      if got = 0 then raise End_of_file;
      got
    in
    Fun.protect
      ~finally:(fun () ->
        reads := false;
        if (!taken :> int) <> 0 then C.reply_free !taken)
      (fun () ->
        let reply =
          ask ?client ?meth ?headers ?content_type ?body url 1 (fun () ->
              let reply = take_reply () in
              taken := C.taken_reply_object ();
              reply)
        in
        f reply (Flow.source_of_read read))

  let websocket ?client ?headers ?(protocols = []) url f =
    let taken : socket_pointer ref = ref (Obj.magic 0) in
    let it : Websocket.t = { socket = None; of_client = true; sending = 0; idle = Fibers.Waiters.create () } in
    Fun.protect
      ~finally:(fun () ->
        Websocket.finish it;
        if (!taken :> int) <> 0 then C.client_socket_free !taken)
      (fun () ->
        ask ?client ?headers ~protocols:(String.concat ", " protocols) url 2 (fun () ->
            taken := C.taken_socket ());
        it.socket <- Some !taken;
        f it)

  let get ?client ?headers url = request ?client ?headers url

  let post ?client ?headers ?(content_type = "application/octet-stream") ~body url =
    request ?client ~meth:"POST" ?headers ~content_type ~body url

  let header reply name = find_header reply.headers name

  let () =
    Printexc.register_printer (function
      | Failed why -> Some ("Haft_http.Client.Failed: " ^ why)
      | _ -> None)
end
