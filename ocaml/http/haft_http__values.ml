(* SPDX-License-Identifier: MIT *)
(* Statuses, headers, and texts in URLs and forms. *)

type status =
  [ `OK
  | `Created
  | `Accepted
  | `No_content
  | `Moved_permanently
  | `Found
  | `See_other
  | `Not_modified
  | `Temporary_redirect
  | `Permanent_redirect
  | `Bad_request
  | `Unauthorized
  | `Forbidden
  | `Not_found
  | `Method_not_allowed
  | `Not_acceptable
  | `Request_timeout
  | `Conflict
  | `Gone
  | `Content_too_large
  | `Unsupported_media_type
  | `Unprocessable_content
  | `Too_many_requests
  | `Internal_server_error
  | `Not_implemented
  | `Bad_gateway
  | `Service_unavailable
  | `Gateway_timeout
  | `Code of int ]

let code_of_status : status -> int = function
  | `OK -> 200
  | `Created -> 201
  | `Accepted -> 202
  | `No_content -> 204
  | `Moved_permanently -> 301
  | `Found -> 302
  | `See_other -> 303
  | `Not_modified -> 304
  | `Temporary_redirect -> 307
  | `Permanent_redirect -> 308
  | `Bad_request -> 400
  | `Unauthorized -> 401
  | `Forbidden -> 403
  | `Not_found -> 404
  | `Method_not_allowed -> 405
  | `Not_acceptable -> 406
  | `Request_timeout -> 408
  | `Conflict -> 409
  | `Gone -> 410
  | `Content_too_large -> 413
  | `Unsupported_media_type -> 415
  | `Unprocessable_content -> 422
  | `Too_many_requests -> 429
  | `Internal_server_error -> 500
  | `Not_implemented -> 501
  | `Bad_gateway -> 502
  | `Service_unavailable -> 503
  | `Gateway_timeout -> 504
  | `Code code -> code

exception Error of status * string

let fail status text = raise (Error (status, text))

let () =
  Printexc.register_printer (function
    | Error (status, text) -> Some (Printf.sprintf "Haft_http.Error (%d, %S)" (code_of_status status) text)
    | _ -> None)

type headers = (string * string) list

let find_header headers name =
  let name = String.lowercase_ascii name in
  Option.map snd (List.find_opt (fun (key, _) -> String.lowercase_ascii key = name) headers)

(* ---- %-decoding ---- *)

let hex = function
  | '0' .. '9' as c -> Char.code c - 48
  | 'a' .. 'f' as c -> Char.code c - 87
  | 'A' .. 'F' as c -> Char.code c - 55
  | _ -> -1

let decode_with ~plus text =
  let buffer = Buffer.create (String.length text) in
  let length = String.length text in
  let rec go i =
    if i < length then
      match text.[i] with
      | '%' when i + 2 < length && hex text.[i + 1] >= 0 && hex text.[i + 2] >= 0 ->
          Buffer.add_char buffer (Char.chr ((16 * hex text.[i + 1]) + hex text.[i + 2]));
          go (i + 3)
      | '+' when plus ->
          Buffer.add_char buffer ' ';
          go (i + 1)
      | c ->
          Buffer.add_char buffer c;
          go (i + 1)
  in
  go 0;
  Buffer.contents buffer

let decode text = decode_with ~plus:false text

let encode text =
  let buffer = Buffer.create (String.length text) in
  String.iter
    (function
      | ('A' .. 'Z' | 'a' .. 'z' | '0' .. '9' | '-' | '.' | '_' | '~') as c -> Buffer.add_char buffer c
      | c -> Printf.bprintf buffer "%%%02X" (Char.code c))
    text;
  Buffer.contents buffer

(* The parameters of a query or a form, in their order. *)
let parameters text =
  if text = "" then []
  else
    String.split_on_char '&' text
    |> List.filter (fun part -> part <> "")
    |> List.map (fun part ->
           let decode = decode_with ~plus:true in
           match String.index_opt part '=' with
           | None -> (decode part, "")
           | Some at ->
               let rest = String.sub part (at + 1) (String.length part - at - 1) in
               (decode (String.sub part 0 at), decode rest))
