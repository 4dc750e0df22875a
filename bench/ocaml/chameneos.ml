(* SPDX-License-Identifier: MIT *)
(* Chameneos (§6.3): four creatures meet in pairs, MVars bring them together. An operation is a
   meeting. *)
module Direct = struct
  open Threads

  let creature place met colour () =
    let rec live meetings colour =
      let remaining, waiting = Mvar.take place in
      match waiting with
      | None when remaining = 0 ->
          Mvar.put place (0, None);
          met := !met + meetings
      | None ->
          let answer = Mvar.create None in
          Mvar.put place (remaining, Some (colour, answer));
          let other = Mvar.take answer in
          live (meetings + 1) (Colour.complement colour other)
      | Some (other, answer) ->
          Mvar.put place (remaining - 1, None);
          Mvar.put answer colour;
          live (meetings + 1) (Colour.complement colour other)
    in
    live 0 colour

  let play meetings met =
    let place = Mvar.create (Some (meetings, None)) in
    List.iter (fun colour -> spawn (creature place met colour)) Colour.creatures;
    turns max_int
end

module Monadic = struct
  module Place = Meeting_place.Make (struct
    include Monad

    type 'a mvar = 'a Mvar.mvar

    let create = Mvar.create
    let put = Mvar.put
    let take = Mvar.take
  end)

  let play meetings met =
    Monad.run
      (let open Monad in
       let* place = Place.place meetings in
       let rec start = function
         | [] -> return ()
         | colour :: others ->
             let* () = fork (fun () -> Place.creature place met colour) in
             start others
       in
       start Colour.creatures)
end

let compare name play =
  Loops.loop name (fun n ->
      let met = ref 0 in
      play n met;
      assert (!met = 2 * n))

let () =
  compare "chameneos" Direct.play;
  compare "monad/chameneos" Monadic.play
