(* SPDX-License-Identifier: MIT *)
(* The environment has what the page uses of it. *)
type environment = < net : [ `Unix | `Generic ] Eio.Net.ty Eio.Resource.t >

val run : (environment -> 'a) -> 'a
