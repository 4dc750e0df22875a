(* SPDX-License-Identifier: MIT *)
(* Routes: typed paths, and the handler that finds one for a request. *)
open Haft_http__calls
open Haft_http__values
open Haft_http__request
open Haft_http__response

module Route = struct
  type ('f, 'r) path =
    | End : ('r, 'r) path
    | Text : string * ('f, 'r) path -> ('f, 'r) path
    | Part : (string -> 'a option) * ('a -> string) * ('f, 'r) path -> ('a -> 'f, 'r) path
    | Rest : (string list -> 'r, 'r) path

  let root = End
  let s text = Text (text, End)
  let part of_text to_text = Part (of_text, to_text, End)
  let string = Part (Option.some, Fun.id, End)
  let int = Part (int_of_string_opt, string_of_int, End)
  let float = Part (float_of_string_opt, string_of_float, End)
  let rest = Rest

  let rec ( / ) : type f g r. (f, g) path -> (g, r) path -> (f, r) path =
   fun first second ->
    match first with
    | End -> second
    | Text (text, path) -> Text (text, path / second)
    | Part (of_text, to_text, path) -> Part (of_text, to_text, path / second)
    | Rest -> invalid_arg "Route: `rest` is the last part"

  let rec apply : type f r. (f, r) path -> f -> string list -> r option =
   fun path f parts ->
    match (path, parts) with
    | End, [] -> Some f
    | Text (text, path), part :: parts when text = part -> apply path f parts
    | Part (of_text, _, path), part :: parts -> (
        match of_text part with Some value -> apply path (f value) parts | None -> None)
    | Rest, parts -> Some (f parts)
    | _ -> None

  let rec link : type f. string -> (f, string) path -> f =
   fun before path ->
    match path with
    | End -> if before = "" then "/" else before
    | Text (text, path) -> link (before ^ "/" ^ encode text) path
    | Part (_, to_text, path) -> fun value -> link (before ^ "/" ^ encode (to_text value)) path
    | Rest -> fun parts -> List.fold_left (fun before part -> before ^ "/" ^ encode part) before parts

  let link path = link "" path

  type t = { meth : string; handle : string list -> handler option }

  let make meth path f = { meth; handle = (fun parts -> apply path f parts) }
  let get path f = make "GET" path f
  let post path f = make "POST" path f
  let put path f = make "PUT" path f
  let patch path f = make "PATCH" path f
  let delete path f = make "DELETE" path f

  let matches meth route = route.meth = meth || (meth = "HEAD" && route.meth = "GET")

  (* The first route that fits; 405 if one does but for its method; 404. *)
  let router ?(otherwise = fun _ -> respond_text ~status:`Not_found "not found\n") routes request =
    let path = Request.path request and meth = C.meth (Request.pointer request) in
    let rec find allowed = function
      | [] ->
          if allowed = [] then otherwise request
          else
            let allow = String.concat ", " (List.sort_uniq compare allowed) in
            if meth = "OPTIONS" then respond ~status:`No_content ~headers:[ ("Allow", allow) ] ""
            else respond_text ~status:`Method_not_allowed ~headers:[ ("Allow", allow) ] "method not allowed\n"
      | route :: routes -> (
          match route.handle path with
          | Some handler when matches meth route -> handler request
          | Some _ -> find (route.meth :: allowed) routes
          | None -> find allowed routes)
    in
    find [] routes

  let scope prefix (middleware : middleware) routes =
    let parts = String.split_on_char '/' prefix |> List.filter (fun part -> part <> "") in
    let rec strip parts path =
      match (parts, path) with
      | [], path -> Some path
      | part :: parts, first :: path when part = first -> strip parts path
      | _ -> None
    in
    List.map
      (fun route ->
        {
          route with
          handle = (fun path -> Option.bind (strip parts path) (fun path -> Option.map middleware (route.handle path)));
        })
      routes
end

let router = Route.router
