(* SPDX-License-Identifier: MIT *)
(* Names that OCaml 5's standard library has and that of 4.13 or 4.14 lacks: to be opened by the
   flag -open Haft_ocaml5. Written from the manual of OCaml 5.3, which documents them. Here are only
   the names; each of the files haft_ocaml5__*.ml describes its contents. *)

(* These are in Stdlib, too. *)
open struct
  module Of_stdlib = struct
    module Array = Haft_ocaml5__containers.Array
    module ArrayLabels = Haft_ocaml5__containers.ArrayLabels
    module Atomic = Haft_ocaml5__values.Atomic
    module Bool = Haft_ocaml5__values.Bool
    module Bytes = Haft_ocaml5__values.Bytes
    module BytesLabels = Haft_ocaml5__values.BytesLabels
    module Char = Haft_ocaml5__values.Char
    module Condition = Haft_ocaml5__threads.Condition
    module Digest = Haft_ocaml5__digest
    module Domain = Haft_ocaml5__threads.Domain
    module Dynarray = Haft_ocaml5__containers.Dynarray
    module Effect = Effect
    module Ephemeron = Haft_ocaml5__values.Ephemeron
    module Filename = Haft_ocaml5__system.Filename
    module Float = Haft_ocaml5__values.Float
    module Format = Haft_ocaml5__format
    module Fun = Haft_ocaml5__values.Fun
    module Hashtbl = Haft_ocaml5__values.Hashtbl
    module In_channel = Haft_ocaml5__system.In_channel
    module Int = Haft_ocaml5__values.Int
    module Int32 = Haft_ocaml5__values.Int32
    module Int64 = Haft_ocaml5__values.Int64
    module List = Haft_ocaml5__containers.List
    module ListLabels = Haft_ocaml5__containers.ListLabels
    module Map = Haft_ocaml5__containers.Map
    module MoreLabels = Haft_ocaml5__containers.MoreLabels
    module Mutex = Haft_ocaml5__threads.Mutex
    module Nativeint = Haft_ocaml5__values.Nativeint
    module Out_channel = Haft_ocaml5__system.Out_channel
    module Printexc = Haft_ocaml5__values.Printexc
    module Queue = Haft_ocaml5__containers.Queue
    module Random = Haft_ocaml5__random
    module Scanf = Haft_ocaml5__system.Scanf
    module Semaphore = Haft_ocaml5__threads.Semaphore
    module Seq = Haft_ocaml5__seq
    module Set = Haft_ocaml5__containers.Set
    module Stack = Haft_ocaml5__containers.Stack
    module StdLabels = Haft_ocaml5__containers.StdLabels
    module String = Haft_ocaml5__values.String
    module StringLabels = Haft_ocaml5__values.StringLabels
    module Sys = Haft_ocaml5__system.Sys
    module Type = Haft_ocaml5__values.Type
    module Uchar = Haft_ocaml5__values.Uchar
  end
end

include Of_stdlib
module Runtime_events = Haft_ocaml5__runtime_events
module Thread = Haft_ocaml5__threads.Thread
module Unix = Haft_ocaml5__system.Unix
module UnixLabels = Haft_ocaml5__system.UnixLabels

module Stdlib = struct
  include Stdlib
  include Of_stdlib
end
