(* SPDX-License-Identifier: MIT *)
(* Sessions in memory, by a cookie. *)
open Haft_io
open Haft_http__values
open Haft_http__request
open Haft_http__response

module Session = struct
  type t = { id : string; token : string; mutable fields : headers; mutable used : float; mutable ended : bool }

  type _ Effect.t += Current : t Effect.t

  let current () = Effect.perform Current
  let get name = List.assoc_opt name (current ()).fields

  let put name value =
    let it = current () in
    it.fields <- (name, value) :: List.remove_assoc name it.fields

  let remove name =
    let it = current () in
    it.fields <- List.remove_assoc name it.fields

  let finish () = (current ()).ended <- true

  let random () =
    let view = Cstruct.create 16 in
    Flow.read_exact secure_random view;
    String.concat "" (List.init 16 (fun i -> Printf.sprintf "%02x" (Cstruct.get_uint8 view i)))

  let csrf_token () = (current ()).token

  let check_csrf request =
    let given =
      match Request.header request "X-CSRF-Token" with
      | Some token -> Some token
      | None -> Request.field request "csrf"
    in
    if given <> Some (current ()).token then fail `Forbidden "the form is not from this site, or too old\n"

  let middleware ?(cookie = "session") ?(lifetime = 14. *. 86400.) ?(for_http = false) () : middleware =
    let sessions : (string, t) Hashtbl.t = Hashtbl.create 64 in
    let next_cleaning = ref 0. in
    let clean now =
      if now > !next_cleaning then (
        next_cleaning := now +. 60.;
        Hashtbl.filter_map_inplace (fun _ it -> if it.used +. lifetime < now then None else Some it) sessions)
    in
    fun next request ->
      let now = Time.now clock in
      clean now;
      let known = Option.bind (Request.cookie request cookie) (Hashtbl.find_opt sessions) in
      let session =
        match known with
        | Some it ->
            it.used <- now;
            it
        | None -> { id = random (); token = random (); fields = []; used = now; ended = false }
      in
      let response =
        Effect.Deep.try_with next request
          {
            effc =
              (fun (type a) (effect : a Effect.t) ->
                match effect with
                | Current -> Some (fun (k : (a, _) Effect.Deep.continuation) -> Effect.Deep.continue k session)
                | _ -> None);
          }
      in
      if session.ended then (
        Hashtbl.remove sessions session.id;
        Response.without_cookie cookie response)
      else if known = None then (
        Hashtbl.replace sessions session.id session;
        Response.with_cookie ~for_http cookie session.id response)
      else response
end
