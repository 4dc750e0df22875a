(* SPDX-License-Identifier: MIT *)
(* The module for bytecode and the toplevel, so that projects which build those, too, build:
   whatever needs a handler fails. *)
type 'a eff = ..
type 'a t = 'a eff = ..

exception Unhandled : 'a t -> exn
exception Continuation_already_resumed

let unavailable () =
  failwith
    "Haft needs native code: bytecode and the toplevel can compile programs with effects, ocamlopt runs them"

let perform _ = unavailable ()

module Deep = struct
  type ('a, 'b) continuation = |

  let continue _ _ = unavailable ()
  let discontinue _ _ = unavailable ()
  let discontinue_with_backtrace _ _ _ = unavailable ()

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'b) continuation -> 'b) option;
  }

  let match_with _ _ _ = unavailable ()

  type 'a effect_handler = {
    effc : 'b. 'b t -> (('b, 'a) continuation -> 'a) option;
  }

  let try_with _ _ _ = unavailable ()
  let get_callstack _ _ = unavailable ()
end

module Shallow = struct
  type ('a, 'b) continuation = |

  let fiber _ = unavailable ()

  type ('a, 'b) handler = {
    retc : 'a -> 'b;
    exnc : exn -> 'b;
    effc : 'c. 'c t -> (('c, 'a) continuation -> 'b) option;
  }

  let continue_with _ _ _ = unavailable ()
  let discontinue_with _ _ _ = unavailable ()
  let discontinue_with_backtrace _ _ _ _ = unavailable ()
  let get_callstack _ _ = unavailable ()
end
