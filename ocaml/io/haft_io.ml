(* SPDX-License-Identifier: MIT *)
open Haft_io__loop
module Cstruct = Haft_io__resource.Cstruct
module Mtime = Haft_io__time.Mtime

module Resource = struct
  type 'tags t = 'tags Haft_io__resource.t
  type close_ty = [ `Close ]

  let close object_ = object_.Haft_io__resource.close ()
end

module Exn = Haft_io__fibers.Exn

exception Io = Haft_io__fibers.Exn.Io

module Cancel = Haft_io__fibers.Cancel
module Switch = Haft_io__fibers.Switch
module Promise = Haft_io__fibers.Promise
module Fiber = Haft_io__fibers.Fiber
module Semaphore = Haft_io__sync.Semaphore
module Mutex = Haft_io__sync.Mutex
module Condition = Haft_io__sync.Condition
module Stream = Haft_io__sync.Stream
module Lazy = Haft_io__sync.Lazy
module Pool = Haft_io__sync.Pool

module Time = struct
  include Haft_io__time.Time

  type 'a clock_ty = [ `Clock of 'a ]
  type 'a clock_base = 'a Resource.t constraint 'a = [> _ clock_ty ]
  type 'a clock = ([> float clock_ty ] as 'a) Resource.t

  module Mono = struct
    include Haft_io__time.Time.Mono

    type ty = Mtime.t clock_ty
    type 'a t = ([> ty ] as 'a) Resource.t
  end
end

let run_in_systhread = Haft_io__time.Systhreads.run

let run ?(backend = "") ?(dump_signal = 0) main = run_by (run_c backend dump_signal) main

let simulate ?(short_counts = false) ?(faults_one_in = 0) ?(switches_one_in = 0) ~seed main =
  chance := Some (Random.State.make [| seed |]);
  run_by (simulate_c (seed, short_counts, faults_one_in, switches_one_in)) main

let dump () =
  let root context =
    let rec up context = if context.parent == nowhere then context else up context.parent in
    up context
  in
  Format.asprintf "%a" Cancel.dump (root (Haft_io__fibers.current ()).context)

let clock = Haft_io__time.Time.system
let mono_clock = Haft_io__time.Time.system

module Std = struct
  module Promise = Promise
  module Fiber = Fiber
  module Switch = Switch

  type 'a r = 'a Resource.t

  let traceln format =
    Format.kasprintf
      (fun text ->
        String.split_on_char '\n' text |> List.iter (fun line -> prerr_string ("+" ^ line ^ "\n"));
        flush stderr)
      format
end

let traceln = Std.traceln
