(* SPDX-License-Identifier: MIT *)
type 'a eff = ..
type 'a t = 'a eff = ..

exception Unhandled : 'a t -> exn
exception Continuation_already_resumed

(* The layout is drawn in layout.h. The first field is the effect, then code.
   Mutable: every perform needs a block of its own, and flambda would make one
   static block of constants. *)
type captured = {
  mutable code : Obj.t;
  mutable closinfo : int;
  mutable state : Obj.t;
  mutable holder : int;
}

external magic : 'a -> 'b = "%identity"
external closure : int -> Obj.t = "haft_ocaml_closure" [@@noalloc]

(* Closures of data.S, and what they are. *)
let perform_closure = closure 0
let perform_captured_closure = closure 8
let reperform_closure = closure 1
let runstack_closure = closure 2
let resume_with_closure = closure 3
let resume_under_closure = closure 4
let raise_closure = closure 6
let reraise_closure = closure 7

(* The state of a continuation's stack between its perform and the next collection. *)
let young = closure 5

let[@inline] reperform k = (magic reperform_closure : captured -> 'a) k

let[@inline] runstack f x handler =
  (magic runstack_closure : ('a -> 'b) -> 'a -> Obj.t -> 'c) f x handler

let[@inline] resume_with k x f =
  (magic resume_with_closure : captured -> 'a -> ('a -> 'b) -> 'c) k x f

let[@inline] resume_under k x f handler =
  (magic resume_under_closure : captured -> 'a -> ('a -> 'b) -> Obj.t -> 'c)
    k x f handler

let[@inline] captured effect =
  { code = Obj.repr effect; closinfo = 0; state = young; holder = 0 }

let[@inline] perform (effect : 'a t) : 'a =
  (magic perform_closure : 'a t -> 'a) effect

(* Called by switch.S where a perform takes more than a switch, or memory for its continuation. *)
let perform_rarely effect =
  (magic perform_captured_closure : captured -> 'a) (captured effect)

let identity x = x

(* They raise in their caller's place. This file is compiled without -g: no backtrace has a line of
   it. *)
let raise : exn -> 'a = magic raise_closure
let reraise : exn -> 'a = magic reraise_closure

external restore_backtrace : exn -> Printexc.raw_backtrace -> unit
  = "caml_restore_raw_backtrace"

let raising_with_backtrace backtrace exn =
  restore_backtrace exn backtrace;
  reraise exn

external get_callstack : captured -> int -> Printexc.raw_backtrace
  = "haft_ocaml_callstack"

module Deep = struct
  type ('a, 'b) continuation = captured

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'b) continuation -> 'b) option;
  }

  type 'a effect_handler = {
    effc : 'b. 'b t -> (('b, 'a) continuation -> 'a) option;
  }

  (* A continuation is applied like a closure: layout.h. (See place_jumps.sh.) *)
  let[@inline never] continue (k : ('a, 'b) continuation) (v : 'a) : 'b =
    (magic k : 'a -> 'b) v

  let[@inline never] discontinue k exn = resume_with k exn raise

  let discontinue_with_backtrace k exn backtrace =
    resume_with k exn (raising_with_backtrace backtrace)

  let[@inline] match_with f x (handler : ('a, 'b) handler) =
    runstack f x (Obj.repr handler)

  let[@inline] try_with f x ({ effc } : 'a effect_handler) =
    match_with f x { retc = identity; exnc = reraise; effc = magic effc }

  let get_callstack = get_callstack
end

module Shallow = struct
  type ('a, 'b) continuation = captured

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'a) continuation -> 'b) option;
  }

  type _ t += Start : 'a t

  (* A fiber that waits for its first value has performed Start. *)
  let fiber (type a b) (f : a -> b) : (a, b) continuation =
    let effc : type c. c t -> ((c, b) continuation -> captured) option =
      function
      | Start -> Some (fun k -> k)
      | _ -> None
    in
    Deep.match_with
      (fun () -> f (perform Start))
      ()
      {
        Deep.retc = (fun _ -> assert false);
        exnc = reraise;
        effc = magic effc;
      }

  let continue_with k v (handler : ('a, 'b) handler) =
    resume_under k v identity (Obj.repr handler)

  let discontinue_with k exn (handler : ('a, 'b) handler) =
    resume_under k exn raise (Obj.repr handler)

  let discontinue_with_backtrace k exn backtrace
      (handler : ('a, 'b) handler) =
    resume_under k exn
      (raising_with_backtrace backtrace)
      (Obj.repr handler)

  let get_callstack = get_callstack
end

(* The first field, written without a barrier. *)
type word = { mutable word : int }

external release : captured -> captured -> int = "haft_ocaml_release"
  [@@noalloc]

external free_dropped : unit -> unit = "haft_ocaml_free_dropped"

(* There has been a collection since the perform: what has the stack may be anything, and [k] is not
   in the minor heap. *)
let rec decline_again k effect ~tried =
  let again = captured effect in
  match release k again with
  | 0 -> reperform again
  | 1 when tried -> raise Out_of_memory
  | 1 ->
      free_dropped ();
      decline_again k effect ~tried:true
  | _ -> raise Continuation_already_resumed

(* Called by switch.S in place of the handler's computation, when it has no clause. *)
let decline effect k =
  if k.state == young then begin
    (* No collection since the perform: [k] is in the minor heap. *)
    (magic k : word).word <- (magic effect : int);
    reperform k
  end
  else decline_again k effect ~tried:false

(* The same, where both copies of a computation may come to decline: one of them is told. *)
let decline_after_guards effect k = decline_again k effect ~tried:false

let unhandled effect = raise (Unhandled effect)
let already () = raise Continuation_already_resumed

external probe : unit -> unit = "haft_ocaml_probe"
external call_probe : (unit -> unit) -> unit = "haft_ocaml_call_probe"

external start :
  (_ t -> captured -> _) ->
  (_ t -> captured -> _) ->
  (_ t -> _) ->
  (_ t -> _) ->
  (unit -> _) ->
  ('a -> 'a) ->
  unit = "haft_ocaml_start_bytecode" "haft_ocaml_start"

let () =
  Callback.register_exception "haft.Continuation_already_resumed"
    Continuation_already_resumed;
  call_probe probe;
  start decline decline_after_guards perform_rarely unhandled already identity;
  Printexc.register_printer (function
    | Unhandled effect ->
        (* An effect has the layout of an exception. *)
        Some
          (Printf.sprintf "Stdlib.Effect.Unhandled(%s)"
             (Printexc.to_string_default (magic effect : exn)))
    | Continuation_already_resumed ->
        Some "Stdlib.Effect.Continuation_already_resumed"
    | _ -> None)
