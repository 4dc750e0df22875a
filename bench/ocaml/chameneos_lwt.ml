(* SPDX-License-Identifier: MIT *)
(* Chameneos with Lwt's threads and MVars. *)
module Place = Meeting_place.Make (struct
  type 'a t = 'a Lwt.t
  type 'a mvar = 'a Lwt_mvar.t

  let return = Lwt.return
  let bind = Lwt.bind

  let create = function
    | None -> Lwt.return (Lwt_mvar.create_empty ())
    | Some value -> Lwt.return (Lwt_mvar.create value)

  let put = Lwt_mvar.put
  let take = Lwt_mvar.take
end)

let play meetings met =
  let game =
    Lwt.bind (Place.place meetings) (fun place ->
        (* They wait for the last one to come, as in the other versions. *)
        let start, go = Lwt.wait () in
        let creature colour =
          Lwt.bind start (fun () -> Place.creature place met colour)
        in
        let all = Lwt.join (List.map creature Colour.creatures) in
        Lwt.wakeup go ();
        all)
  in
  assert (Lwt.state game = Lwt.Return ())

let () = Chameneos.compare "lwt/chameneos" play
