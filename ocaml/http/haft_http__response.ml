(* SPDX-License-Identifier: MIT *)
(* Responses, and how handlers make them. *)
open Haft_http__values
open Haft_http__request
open Haft_http__websocket

type cookie = {
  name : string;
  value : string;
  path : string;
  domain : string;
  max_age : int;
  for_scripts : bool;
  for_http : bool;
  same_site : string;
}

module Response = struct
  type body =
    | Whole of string
    | Stream of int * ((string -> unit) -> (unit -> unit) -> unit)
    | File of string
    | Events of ((?kind:string -> ?id:string -> string -> unit) -> unit)
    | Socket of string * (Websocket.t -> unit)

  type t = { status : int; content_type : string; headers : headers; cookies : cookie list; body : body }

  let status response = response.status
  let headers response = response.headers
  let with_header name value response = { response with headers = response.headers @ [ (name, value) ] }
  let with_status status response = { response with status = code_of_status status }
  let body_text response = match response.body with Whole text -> Some text | _ -> None

  let with_cookie ?(path = "/") ?(domain = "") ?(max_age = 0) ?(for_scripts = false) ?(for_http = false)
      ?(same_site = `Lax) name value response =
    let same_site = match same_site with `Lax -> "Lax" | `Strict -> "Strict" | `None -> "None" in
    let cookie = { name; value; path; domain; max_age; for_scripts; for_http; same_site } in
    { response with cookies = response.cookies @ [ cookie ] }

  let without_cookie ?path ?domain name response = with_cookie ?path ?domain ~max_age:(-1) name "" response
end

type handler = Request.t -> Response.t
type middleware = handler -> handler

let make ?(status = `OK) ?(headers = []) content_type body : Response.t =
  { status = code_of_status status; content_type; headers; cookies = []; body }

let respond ?status ?headers ?(content_type = "") text = make ?status ?headers content_type (Whole text)
let respond_text ?status ?headers text = make ?status ?headers "text/plain; charset=utf-8" (Whole text)
let respond_html ?status ?headers text = make ?status ?headers "text/html; charset=utf-8" (Whole text)
let respond_json ?status ?headers text = make ?status ?headers "application/json" (Whole text)
let respond_file ?headers ?(content_type = "") path = make ?headers content_type (File path)

let respond_stream ?status ?headers ?(content_type = "") ?(size = -1) write =
  make ?status ?headers content_type (Stream (size, fun give flush -> write ~flush give))

let respond_events ?headers send = make ?headers "" (Events send)
let redirect ?(status = `See_other) location = make ~status ~headers:[ ("Location", location) ] "" (Whole "")
let websocket ?(origins = "") body = make "" (Socket (origins, body))
