(* SPDX-License-Identifier: MIT *)
(* The game of the chameneos in a monad with MVars. *)
module type Monad = sig
  type 'a t

  val return : 'a -> 'a t
  val bind : 'a t -> ('a -> 'b t) -> 'b t

  type 'a mvar

  val create : 'a option -> 'a mvar t
  val put : 'a mvar -> 'a -> unit t
  val take : 'a mvar -> 'a t
end

module Make (M : Monad) = struct
  open M

  let ( let* ) = bind

  (* Lives until the meetings are used up, then counts how often it met another. *)
  let creature place met colour =
    let rec live meetings colour =
      let* remaining, waiting = take place in
      match waiting with
      | None when remaining = 0 ->
          let* () = put place (0, None) in
          met := !met + meetings;
          return ()
      | None ->
          let* answer = create None in
          let* () = put place (remaining, Some (colour, answer)) in
          let* other = take answer in
          live (meetings + 1) (Colour.complement colour other)
      | Some (other, answer) ->
          let* () = put place (remaining - 1, None) in
          let* () = put answer colour in
          live (meetings + 1) (Colour.complement colour other)
    in
    live 0 colour

  let place meetings = create (Some (meetings, None))
end
