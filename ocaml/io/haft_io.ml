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

module Flow = struct
  include Haft_io__flow.Flow

  type source_ty = [ `R | `Flow ]
  type 'a source = ([> source_ty ] as 'a) Resource.t
  type sink_ty = [ `W | `Flow ]
  type 'a sink = ([> sink_ty ] as 'a) Resource.t
  type shutdown_ty = [ `Shutdown ]
  type shutdown_command = Haft_io__resource.shutdown
  type two_way_ty = [ source_ty | sink_ty | shutdown_ty ]
  type 'a two_way = ([> two_way_ty ] as 'a) Resource.t

  let source_of_read read = { Haft_io__resource.plain with read }
  let sink_of_write write = { Haft_io__resource.plain with write }

  let two_way ?(shutdown = ignore) ?(close = ignore) ~read ~write () =
    { Haft_io__resource.plain with read; write; shutdown; close }
end

module Buf_read = Haft_io__flow.Buf_read
module Buf_write = Haft_io__flow.Buf_write

module Net = struct
  include Haft_io__net.Net
  module Ipaddr = struct
    include Haft_io__net.Ipaddr

    type v4v6 = [ `V4 | `V6 ] t
  end

  module Sockaddr = struct
    type stream = [ `Unix of string | `Tcp of Ipaddr.v4v6 * int ]
    type datagram = [ `Udp of Ipaddr.v4v6 * int | `Unix of string ]
    type t = [ stream | datagram ]

    let pp = Haft_io__net.Sockaddr.pp
  end

  type connection_failure = Haft_io__flow.net_failure = Refused of exn | No_matching_addresses | Timeout
  type error = Haft_io__flow.net_error = Connection_reset of exn | Connection_failure of connection_failure
  type Exn.err += E = Haft_io__flow.Net_error
  type socket_ty = [ `Socket | `Close ]
  type stream_socket_ty = [ `Stream | Flow.two_way_ty | socket_ty ]
  type 'a stream_socket = ([> stream_socket_ty ] as 'a) Resource.t
  type listening_socket_ty = [ `Accept | socket_ty ]
  type 'a listening_socket = ([> listening_socket_ty ] as 'a) Resource.t
  type datagram_socket_ty = [ `Datagram | socket_ty ]
  type 'a datagram_socket = ([> datagram_socket_ty ] as 'a) Resource.t
  type ty = [ `Network ]
  type 'a t = ([> ty ] as 'a) Resource.t
  type connection_handler = stream_socket_ty Resource.t -> Sockaddr.stream -> unit
end

module Fs = struct
  type error = Haft_io__flow.fs_error =
    | Already_exists of exn
    | Not_found of exn
    | Permission_denied of exn
    | File_too_large
    | Not_native of string

  type Exn.err += E = Haft_io__flow.Fs_error
  type create = [ `Never | `If_missing of int | `Or_truncate of int | `Exclusive of int ]
  type dir_ty = [ `Dir ]
  type 'a dir = ([> dir_ty ] as 'a) Resource.t
end

module File = struct
  include Haft_io__files.File

  type ro_ty = [ `File | Flow.source_ty | Resource.close_ty ]
  type 'a ro = ([> ro_ty ] as 'a) Resource.t
  type rw_ty = [ ro_ty | Flow.sink_ty ]
  type 'a rw = ([> rw_ty ] as 'a) Resource.t
end

module Path = struct
  include Haft_io__files.Path

  type 'a t = 'a Fs.dir * string
end

module Process = struct
  include Haft_io__files.Process

  type ty = [ `Process ]
  type 'a t = ([> ty ] as 'a) Resource.t
  type mgr_ty = [ `Process_mgr ]
  type 'a mgr = ([> mgr_ty ] as 'a) Resource.t
end

let await descriptor ~writes what =
  let number : int = Obj.magic (descriptor : Unix.file_descr) in
  let code = await_ready number ~writes in
  if code < 0 then raise (Haft_io__calls.unix_error code what "")

let await_readable descriptor = await descriptor ~writes:false "await_readable"
let await_writable descriptor = await descriptor ~writes:true "await_writable"
let run_in_systhread = Haft_io__time.Systhreads.run

module Domain_manager = struct
  type ty = [ `Domain_mgr ]
  type 'a t = ([> ty ] as 'a) Resource.t

  let run _ f = Switch.run ~name:"domain" (fun _ -> f ())
  let run_raw _ f = run_in_systhread f
end

module Executor_pool = struct
  type t = { room : Semaphore.t; sw : Switch.t }

  let create ~sw ~domain_count _ =
    if domain_count < 1 then invalid_arg "domain_count must be at least 1";
    { room = Semaphore.make domain_count; sw }

  let run pool f =
    Switch.check pool.sw;
    Semaphore.acquire pool.room;
    Fun.protect ~finally:(fun () -> Semaphore.release pool.room) f

  let submit_exn pool ~weight f =
    if not (weight >= 0. && weight <= 1.) then invalid_arg "weight must be between 0 and 1";
    run pool f

  let submit pool ~weight f = match submit_exn pool ~weight f with value -> Ok value | exception exn -> Error exn
  let submit_fork ~sw pool ~weight f = Fiber.fork_promise ~sw (fun () -> submit_exn pool ~weight f)
end

let run ?(backend = "") ?(dump_signal = 0) main = run_by (run_c backend dump_signal) main

let simulate ?(short_counts = false) ?(faults_one_in = 0) ?(switches_one_in = 0) ~seed main =
  chance := Some (Random.State.make [| seed |]);
  run_by (simulate_c (seed, short_counts, faults_one_in, switches_one_in)) main

let as_task body =
  if !root_of_run == nowhere then invalid_arg "Haft_io.as_task: there is no run";
  run_in_c !root_of_run body

let dump () = if !root_of_run == nowhere then "" else Format.asprintf "%a" Cancel.dump !root_of_run

let clock = Haft_io__time.Time.system
let mono_clock = Haft_io__time.Time.system
let net = Haft_io__net.system
let process_mgr = Haft_io__resource.plain
let domain_mgr = Haft_io__resource.plain
let fs = (Haft_io__files.directory ~confined:false ~label:"fs" "", "")
let cwd = (Haft_io__files.directory ~label:"cwd" "", "")

let secure_random =
  let read (view : Cstruct.t) =
    match !chance with
    | None -> Haft_io__calls.random view.buffer view.off view.len
    | Some state ->
        for i = 0 to view.len - 1 do
          Cstruct.set_uint8 view i (Random.State.int state 256)
        done;
        view.len
  in
  { Haft_io__resource.plain with read }

(* The standard streams, which stay open. *)
let standard number =
  let flow = lazy (Haft_io__flow.flow_of number) in
  {
    Haft_io__resource.plain with
    read = (fun view -> (Stdlib.Lazy.force flow).read view);
    write = (fun views -> (Stdlib.Lazy.force flow).write views);
    kind = Haft_io__flow.(Descriptor (new_descriptor ~is_file:false number));
  }

let stdin = standard 0
let stdout = standard 1
let stderr = standard 2

module Stdenv = struct
  type base =
    < stdin : Flow.source_ty Resource.t
    ; stdout : Flow.sink_ty Resource.t
    ; stderr : Flow.sink_ty Resource.t
    ; net : [ `Generic | Net.ty ] Resource.t
    ; domain_mgr : Domain_manager.ty Resource.t
    ; process_mgr : Process.mgr_ty Resource.t
    ; clock : float Time.clock_ty Resource.t
    ; mono_clock : Time.Mono.ty Resource.t
    ; fs : Fs.dir_ty Path.t
    ; cwd : Fs.dir_ty Path.t
    ; secure_random : Flow.source_ty Resource.t
    ; backend_id : string >

  let stdin env = env#stdin
  let stdout env = env#stdout
  let stderr env = env#stderr
  let net env = env#net
  let domain_mgr env = env#domain_mgr
  let process_mgr env = env#process_mgr
  let clock env = env#clock
  let mono_clock env = env#mono_clock
  let fs env = env#fs
  let cwd env = env#cwd
  let secure_random env = env#secure_random
  let backend_id env = env#backend_id
end

let env : Stdenv.base =
  object
    method stdin = stdin
    method stdout = stdout
    method stderr = stderr
    method net = net
    method domain_mgr = domain_mgr
    method process_mgr = process_mgr
    method clock = clock
    method mono_clock = mono_clock
    method fs = fs
    method cwd = cwd
    method secure_random = secure_random
    method backend_id = "haft"
  end

module Std = struct
  module Promise = Promise
  module Fiber = Fiber
  module Switch = Switch

  type 'a r = 'a Resource.t

  let traceln = Haft_io__resource.traceln
end

let traceln = Std.traceln

module Mock = struct
  module Action = Haft_io__mock.Action
  module Handler = Haft_io__mock.Handler

  module Clock = struct
    include Haft_io__mock.Clock

    type t = float Time.clock_ty Resource.t

    module Mono = struct
      include Mono

      type t = Time.Mono.ty Resource.t
    end
  end

  module Flow = struct
    include Haft_io__mock.Flow

    type ty = [ Flow.two_way_ty | Net.socket_ty | `Stream | `Mock ]
    type t = ty Resource.t
  end

  module Net = struct
    include Haft_io__mock.Net

    type t = [ `Network | `Mock ] Resource.t
    type listening_socket = [ Net.listening_socket_ty | `Mock ] Resource.t
  end

  module Backend = struct
    exception Deadlock_detected

    let run main =
      match run_by (simulate_c (1, false, 0, 0)) main with
      | value -> value
      | exception Stuck -> raise Deadlock_detected
  end
end

module As_eio = struct
  module Eio = struct
    module Std = Std
    module Exn = Exn

    exception Io = Io

    module Cancel = Cancel
    module Switch = Switch
    module Promise = Promise
    module Fiber = Fiber
    module Semaphore = Semaphore
    module Mutex = Mutex
    module Condition = Condition
    module Stream = Stream
    module Lazy = Lazy
    module Pool = Pool
    module Resource = Resource
    module Time = Time
    module Flow = Flow
    module Buf_read = Buf_read
    module Buf_write = Buf_write
    module Net = Net
    module Fs = Fs
    module File = File
    module Path = Path
    module Process = Process
    module Domain_manager = Domain_manager
    module Executor_pool = Executor_pool
    module Stdenv = Stdenv

    let traceln = traceln
  end

  module Eio_main = struct
    let run body = run (fun () -> body env)
  end

  module Eio_unix = struct
    let run_in_systhread = run_in_systhread
    let sleep seconds = Time.sleep clock seconds
    let await_readable = await_readable
    let await_writable = await_writable
  end

  module Eio_mock = Mock
  module Cstruct = Cstruct
  module Mtime = Mtime
end
