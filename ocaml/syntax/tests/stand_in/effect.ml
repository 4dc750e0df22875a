(* The part of the Effect module that translated programs use, each handled computation in a thread
   of its own: a stand-in, so that the syntax can be tested on every platform that has OCaml. At any
   time one thread runs and the others wait for a message. *)

type 'a eff = ..
type 'a t = 'a eff = ..

exception Unhandled : 'a t -> exn
exception Continuation_already_resumed

type 'message mailbox = {
  mutex : Mutex.t;
  arrived : Condition.t;
  mutable message : 'message option;
}

let mailbox () = { mutex = Mutex.create (); arrived = Condition.create (); message = None }

let send box message =
  Mutex.lock box.mutex;
  box.message <- Some message;
  Condition.signal box.arrived;
  Mutex.unlock box.mutex

let receive box =
  Mutex.lock box.mutex;
  while box.message = None do
    Condition.wait box.arrived box.mutex
  done;
  let message = Option.get box.message in
  box.message <- None;
  Mutex.unlock box.mutex;
  message

type event = Returned of Obj.t | Raised of exn | Performed of Obj.t t

(* The function that a suspended computation is resumed with. *)
type resumption = unit -> Obj.t
type fiber = { events : event mailbox; resumptions : resumption mailbox }

let current : fiber option ref = ref None

let perform (effect : 'a t) : 'a =
  match !current with
  | None -> raise (Unhandled effect)
  | Some fiber ->
      send fiber.events (Performed (Obj.magic effect));
      Obj.obj (receive fiber.resumptions ())

module Deep = struct
  type ('a, 'b) continuation = { resume : resumption -> 'b; mutable resumed : bool }

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'b) continuation -> 'b) option;
  }

  let resume continuation resumption =
    if continuation.resumed then raise Continuation_already_resumed;
    continuation.resumed <- true;
    continuation.resume resumption

  let continue continuation value = resume continuation (fun () -> Obj.repr value)
  let discontinue continuation exn = resume continuation (fun () -> raise exn)

  let match_with (computation : 'c -> 'a) (argument : 'c) (handler : ('a, 'b) handler) : 'b =
    let fiber = { events = mailbox (); resumptions = mailbox () } in
    let run () =
      let start = receive fiber.resumptions in
      let event =
        match
          ignore (start ());
          computation argument
        with
        | value -> Returned (Obj.repr value)
        | exception exn -> Raised exn
      in
      send fiber.events event
    in
    ignore (Thread.create run ());
    let rec resume resumption =
      let outer = !current in
      current := Some fiber;
      send fiber.resumptions resumption;
      let event = receive fiber.events in
      current := outer;
      match event with
      | Returned value -> handler.retc (Obj.obj value)
      | Raised exn -> handler.exnc exn
      | Performed effect -> (
          match handler.effc effect with
          | Some case -> case { resume; resumed = false }
          | None ->
              resume
                (match perform effect with
                | value -> fun () -> value
                | exception exn -> fun () -> raise exn))
    in
    resume (fun () -> Obj.repr ())

  type 'a effect_handler = { effc : 'b. 'b t -> (('b, 'a) continuation -> 'a) option }

  let try_with computation argument { effc } =
    match_with computation argument { retc = Fun.id; exnc = raise; effc }
end
(* SPDX-License-Identifier: MIT *)
