(* SPDX-License-Identifier: MIT *)
(* A request, and how a task waits for what it asks of libhaft-http. *)
open Haft_io
open Haft_http__calls
open Haft_http__values

let on_c_stack f = Effect.perform (Loop.On_c_stack f)

(* Waits for work in C that a cancel ends, and returns what [take] makes of its result. [begin_] returns what
   [C.cancel] takes, or 0. *)
let stoppable what begin_ take =
  Loop.suspend what (fun fiber resume ->
      let cancelled = ref None and work = ref 0 in
      let finish code =
        resume
          (match !cancelled with
          | Some exn -> Result.Error exn
          | None -> ( match take code with value -> Ok value | exception exn -> Result.Error exn))
      in
      fiber.withdraw <-
        (fun exn ->
          cancelled := Some exn;
          C.cancel !work;
          fiber.withdraw <- Loop.no_wait);
      let slot = Loop.new_slot finish in
      work := begin_ slot;
      if !work = 0 then (
        Loop.free_slot slot;
        resume (Result.Error Out_of_memory)))

(* The client has gone, which is no failure of the handler. *)
exception Gone

let () = Printexc.register_printer (function Gone -> Some "Haft_http: the client has gone" | _ -> None)

module Request = struct
  type t = {
    mutable pointer : request_pointer option;  (* None: it has been answered *)
    mutable path : string list option;
    mutable read_body : string option;
  }

  let pointer request =
    match request.pointer with
    | Some pointer -> pointer
    | None -> invalid_arg "this request has been answered"

  let meth request =
    match C.meth (pointer request) with
    | "GET" -> `GET
    | "HEAD" -> `HEAD
    | "POST" -> `POST
    | "PUT" -> `PUT
    | "PATCH" -> `PATCH
    | "DELETE" -> `DELETE
    | "OPTIONS" -> `OPTIONS
    | other -> `Other other

  let target request = C.target (pointer request)

  let raw_path request =
    let target = target request in
    match String.index_opt target '?' with None -> target | Some at -> String.sub target 0 at

  (* Parts between slashes, decoded; a slash at the end is a part "", as in "/a/". *)
  let path request =
    match request.path with
    | Some path -> path
    | None ->
        let path =
          match String.split_on_char '/' (raw_path request) with
          | [ ""; "" ] -> []
          | "" :: parts -> List.map decode parts
          | parts -> List.map decode parts
        in
        request.path <- Some path;
        path

  let version request = C.version (pointer request)
  let peer request = C.peer (pointer request)
  let client_address request = C.client_address (pointer request)
  let header request name = C.header (pointer request) name

  let headers request : headers =
    let pointer = pointer request in
    let rec collect number all =
      let found = C.header_at pointer number in
      if Obj.is_int found then List.rev all else collect (number + 1) (Obj.obj found :: all)
    in
    collect 0 []

  let query request name = C.query (pointer request) name

  let queries request =
    let target = target request in
    match String.index_opt target '?' with
    | None -> []
    | Some at -> parameters (String.sub target (at + 1) (String.length target - at - 1))

  let cookie request name = C.cookie (pointer request) name
  let limit_body request size = C.limit_body (pointer request) size

  let check_body code =
    if code < 0 then
      match Haft_io__calls.error code with
      | Unix.EMSGSIZE -> fail `Content_too_large "the body is too large\n"
      | Unix.ETIMEDOUT -> fail `Request_timeout "the body is too slow\n"
      | Unix.EUNKNOWNERR 74 (* EBADMSG *) -> fail `Bad_request "the body is none\n"
      | Unix.EPIPE | Unix.ECONNRESET -> raise Gone
      | _ -> Haft_io__flow.raise_code code "body" ""

  let text request =
    match request.read_body with
    | Some text -> text
    | None ->
        let pointer = pointer request in
        let body = on_c_stack (fun () -> C.body pointer) in
        if Obj.is_int body then check_body (Obj.obj body);
        let text : string = Obj.obj body in
        request.read_body <- Some text;
        text

  let body request =
    Flow.source_of_read (fun view ->
        let pointer = pointer request in
        let got = on_c_stack (fun () -> C.read pointer view.buffer view.off view.len) in
        check_body got;
        if got = 0 then raise End_of_file;
        got)

  let parse request of_text =
    match of_text (text request) with
    | value -> value
    | exception ((Error _ | Gone | Cancel.Cancelled _ | Out_of_memory | Stack_overflow) as exn) -> raise exn
    | exception exn -> fail `Bad_request (Printexc.to_string exn ^ "\n")

  type part = {
    name : string;
    file_name : string option;
    content_type : string option;
    content : Flow.source_ty Resource.t;
  }

  let iter_parts request f =
    let pointer = pointer request in
    let multipart = on_c_stack (fun () -> C.multipart pointer) in
    if (multipart :> int) = -95 (* EOPNOTSUPP *) then
      fail `Unsupported_media_type "this takes a form of the type multipart/form-data\n";
    check_body (min (multipart :> int) 0);
    let rec next () =
      let part = on_c_stack (fun () -> C.next_part multipart) in
      if Obj.is_int part then check_body (Obj.obj part)
      else
        let name, file_name, content_type = Obj.obj part in
        let reads = ref true in
        let read (view : Cstruct.t) =
          if not !reads then invalid_arg "this part has been passed";
          let got = on_c_stack (fun () -> C.read_part multipart view.buffer view.off view.len) in
          check_body got;
          if got = 0 then raise End_of_file;
          got
        in
        Fun.protect
          ~finally:(fun () -> reads := false)
          (fun () -> f { name; file_name; content_type; content = Flow.source_of_read read });
        next ()
    in
    next ()

  let is_form request =
    match header request "Content-Type" with
    | None -> false
    | Some kind ->
        let kind = match String.index_opt kind ';' with None -> kind | Some at -> String.sub kind 0 at in
        String.lowercase_ascii (String.trim kind) = "application/x-www-form-urlencoded"

  let form request = if is_form request then parameters (text request) else []
  let field request name = List.assoc_opt name (form request)
end
