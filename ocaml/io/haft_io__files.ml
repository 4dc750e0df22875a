(* SPDX-License-Identifier: MIT *)
(* Files, by paths in a directory, and processes. *)
open Haft_io__loop
open Haft_io__fibers
open Haft_io__resource
open Haft_io__flow
module Calls = Haft_io__calls

let fs_error exn =
  match exn with
  | Unix.Unix_error (Unix.EEXIST, _, _) | Unix.Unix_error (Unix.ENOTEMPTY, _, _) ->
      Exn.create (Fs_error (Already_exists exn))
  | Unix.Unix_error (Unix.ENOENT, _, _) -> Exn.create (Fs_error (Not_found exn))
  | Unix.Unix_error (Unix.(EACCES | EPERM), _, _) -> Exn.create (Fs_error (Permission_denied exn))
  | exn -> Exn.create (Exn.X exn)

let check code what path =
  if code < 0 then raise (fs_error (Calls.unix_error code what path));
  code

(* ---- Directories ---- *)

(* Paths are relative to [root]. [confined]: those with [..] that lead out of it, and absolute ones, are refused;
   symbolic links are followed. [label]: what is printed. *)
type directory = { root : string; confined : bool; label : string }
type kind += Directory of directory

let directory_of object_ =
  match object_.kind with Directory directory -> directory | _ -> invalid_arg "this object is no directory"

let join first second =
  if second = "" then first
  else if not (Filename.is_relative second) || first = "" || first = "." then second
  else if first.[String.length first - 1] = '/' then first ^ second
  else first ^ "/" ^ second

let escapes path =
  let rec depth level = function
    | [] -> false
    | ".." :: rest -> level = 0 || depth (level - 1) rest
    | ("" | ".") :: rest -> depth level rest
    | _ :: rest -> depth (level + 1) rest
  in
  (not (Filename.is_relative path)) || depth 0 (String.split_on_char '/' path)

let native (directory, path) =
  let { root; confined; _ } = directory_of directory in
  if confined && escapes path then (
    let exn = Unix.Unix_error (Unix.EACCES, "a path that leads out of the directory", path) in
    raise (Exn.create (Fs_error (Permission_denied exn))));
  let all = join root path in
  if all = "" then "." else all

let directory ?(confined = true) ~label root = { plain with kind = Directory { root; confined; label } }

(* ---- Open files ---- *)

type kind += File of descriptor

let descriptor_of object_ =
  match object_.kind with
  | File descriptor | Descriptor descriptor -> descriptor
  | _ -> invalid_arg "this object is no file"

let open_file ~sw flags mode (_, text as path) =
  Switch.check sw;
  let path = native path in
  let bits = List.fold_left ( lor ) 0 flags in
  let number =
    Calls.(do_call "a file" (call Open ~descriptor:bits ~mode ~path)) (fun code -> code)
  in
  ignore (check number "open" text);
  close_with sw (flow_of ~is_file:true ~kind:(fun descriptor -> File descriptor) number)

(* The bits of flags_of in call_stubs.c. *)
let wronly = 1
let rdwr = 2
let creat = 4
let excl = 8
let trunc = 16
let append = 32

module File = struct
  module Unix_perm = struct
    type t = int
  end

  module Stat = struct
    type kind =
      [ `Unknown | `Fifo | `Character_special | `Directory | `Block_device | `Regular_file | `Symbolic_link | `Socket ]

    type t = {
      dev : int64;
      ino : int64;
      kind : kind;
      perm : Unix_perm.t;
      nlink : int64;
      uid : int64;
      gid : int64;
      size : int64;
      atime : float;
      mtime : float;
      ctime : float;
    }

    let kind_of : int -> kind = function
      | 1 -> `Fifo
      | 2 -> `Character_special
      | 4 -> `Directory
      | 6 -> `Block_device
      | 8 -> `Regular_file
      | 10 -> `Symbolic_link
      | 12 -> `Socket
      | _ -> `Unknown

    let of_taken () =
      let kind, perm, nlink, uid, gid, dev, ino, size, atime, mtime, ctime = Calls.taken_status () in
      let long = Int64.of_int in
      {
        dev = long dev;
        ino = long ino;
        kind = kind_of kind;
        perm;
        nlink = long nlink;
        uid = long uid;
        gid = long gid;
        size = long size;
        atime;
        mtime;
        ctime;
      }

    let of_unix (stats : Unix.LargeFile.stats) =
      let kind : kind =
        match stats.st_kind with
        | S_REG -> `Regular_file
        | S_DIR -> `Directory
        | S_CHR -> `Character_special
        | S_BLK -> `Block_device
        | S_LNK -> `Symbolic_link
        | S_FIFO -> `Fifo
        | S_SOCK -> `Socket
      in
      let long = Int64.of_int in
      {
        dev = long stats.st_dev;
        ino = long stats.st_ino;
        kind;
        perm = stats.st_perm;
        nlink = long stats.st_nlink;
        uid = long stats.st_uid;
        gid = long stats.st_gid;
        size = stats.st_size;
        atime = stats.st_atime;
        mtime = stats.st_mtime;
        ctime = stats.st_ctime;
      }
  end

  let unix_descriptor file : Unix.file_descr = Obj.magic (number_of (descriptor_of file))
  let stat file = Stat.of_unix (Unix.LargeFile.fstat (unix_descriptor file))
  let size file = (stat file).size

  let at kind offset file (view : Cstruct.t) =
    let descriptor = number_of (descriptor_of file) in
    let offset = Int64.to_int offset in
    check
      (Calls.do_call "a file"
         (Calls.call kind ~descriptor ~offset ~memory:view.buffer ~at:view.off ~size:view.len)
         Fun.id)
      "pread" ""

  let rec pread file ~file_offset views =
    match views with
    | [] -> 0
    | view :: others when Cstruct.length view = 0 -> pread file ~file_offset others
    | view :: _ ->
        let got = at Calls.Read_at file_offset file view in
        if got = 0 then raise End_of_file;
        got

  let rec pread_exact file ~file_offset views =
    if Cstruct.lenv views > 0 then
      let got = pread file ~file_offset views in
      pread_exact file ~file_offset:(Int64.add file_offset (Int64.of_int got)) (Cstruct.shiftv views got)

  let rec pwrite_all file ~file_offset views =
    match views with
    | [] -> ()
    | view :: others when Cstruct.length view = 0 -> pwrite_all file ~file_offset others
    | view :: _ ->
        let sent = at Calls.Write_at file_offset file view in
        pwrite_all file ~file_offset:(Int64.add file_offset (Int64.of_int sent)) (Cstruct.shiftv views sent)

  let sync file =
    let descriptor = number_of (descriptor_of file) in
    ignore (check (Calls.(do_call "a file" (call Sync ~descriptor)) Fun.id) "fsync" "")

  let seek file offset whence =
    let command = match whence with `Set -> Unix.SEEK_SET | `Cur -> SEEK_CUR | `End -> SEEK_END in
    Unix.LargeFile.lseek (unix_descriptor file) offset command

  let truncate file length = Unix.LargeFile.ftruncate (unix_descriptor file) length
end

module Path = struct
  let ( / ) (directory, path) text = (directory, join path text)

  let native path = Some (native path)
  let native_exn path = Option.get (native path)

  let pp formatter (directory, path) =
    let { label; _ } = directory_of directory in
    if path = "" then Format.fprintf formatter "<%s>" label
    else Format.fprintf formatter "<%s:%s>" label (String.escaped path)

  (* Splits the path without the slashes at its end. *)
  let split (directory, path) =
    let rec stripped length = if length > 1 && path.[length - 1] = '/' then stripped (length - 1) else length in
    match String.sub path 0 (stripped (String.length path)) with
    | "" | "/" -> None
    | path -> (
        match String.rindex_opt path '/' with
        | None -> Some ((directory, ""), path)
        | Some at ->
            let folder = String.sub path 0 (stripped (at + 1)) in
            Some ((directory, folder), String.sub path (at + 1) (String.length path - at - 1)))

  let in_context what ((_, text) : _ * string) body =
    try body ()
    with Exn.Io _ as exn ->
      let backtrace = Printexc.get_raw_backtrace () in
      Exn.reraise_with_context exn backtrace "%s %S" what text

  let create_flags = function
    | `Never -> (0, 0)
    | `If_missing mode -> (creat, mode)
    | `Or_truncate mode -> (creat lor trunc, mode)
    | `Exclusive mode -> (creat lor excl, mode)

  let open_in ~sw path = in_context "opening" path (fun () -> open_file ~sw [] 0 path)

  let open_out ~sw ?append:(appends = false) ~create path =
    let flags, mode = create_flags create in
    in_context "opening" path (fun () -> open_file ~sw [ rdwr; (if appends then append else 0); flags ] mode path)

  let with_open_in path body = Switch.run ~name:"with_open_in" (fun sw -> body (open_in ~sw path))

  let with_open_out ?append ~create path body =
    Switch.run ~name:"with_open_out" (fun sw -> body (open_out ~sw ?append ~create path))

  let with_lines path body =
    with_open_in path (fun flow -> body (Buf_read.lines (Buf_read.of_flow flow ~max_size:max_int)))

  let load path = with_open_in path Flow.read_all
  let save ?append ~create path text = with_open_out ?append ~create path (Flow.copy_string text)

  let path_call kind what ?mode ?other ((_, text) as path) take =
    in_context what path (fun () ->
        Calls.do_call "a directory"
          (Calls.call kind ?mode ?other ~path:(native_exn path))
          (fun code -> take (check code what text)))

  let mkdir ~perm path = ignore (path_call Make "mkdir" ~mode:perm path Fun.id)

  let read_dir path =
    path_call List "read_dir" path (fun _ ->
        Array.to_list (Calls.taken_names ()) |> List.filter (fun name -> name <> "." && name <> ".."))

  let stat ~follow path =
    if follow || seed () <> 0 then path_call Status "stat" path (fun _ -> File.Stat.of_taken ())
    else
      in_context "stat" path (fun () ->
          try Haft_io__time.Systhreads.run (fun () -> File.Stat.of_unix (Unix.LargeFile.lstat (native_exn path)))
          with Unix.Unix_error _ as exn -> raise (fs_error exn))

  let kind ~follow path =
    match stat ~follow path with
    | stat -> (stat.kind :> [ File.Stat.kind | `Not_found ])
    | exception Exn.Io (Fs_error (Not_found _), _) -> `Not_found

  let is_file path = kind ~follow:true path = `Regular_file
  let is_directory path = kind ~follow:true path = `Directory
  let remove what path = ignore (path_call Remove what path Fun.id)

  let unlink path =
    if kind ~follow:false path = `Directory then
      raise (fs_error (Unix.Unix_error (Unix.EISDIR, "unlink", snd path)));
    remove "unlink" path

  let rmdir path =
    if kind ~follow:false path <> `Directory then
      raise (fs_error (Unix.Unix_error (Unix.ENOTDIR, "rmdir", snd path)));
    remove "rmdir" path

  let rename first second = ignore (path_call Rename "rename" ~other:(native_exn second) first Fun.id)

  let rec rmtree ?(missing_ok = false) path =
    match kind ~follow:false path with
    | `Not_found -> if not missing_ok then remove "rmtree" path
    | `Directory ->
        List.iter (fun name -> rmtree ~missing_ok (path / name)) (read_dir path);
        remove "rmtree" path
    | _ -> remove "rmtree" path

  let rec mkdirs ?(exists_ok = false) ~perm path =
    (match split path with
    | Some (parent, _) when snd parent <> "" && snd parent <> "/" && not (is_directory parent) ->
        mkdirs ~exists_ok:true ~perm parent
    | _ -> ());
    try mkdir ~perm path
    with Exn.Io (Fs_error (Already_exists _), _) when exists_ok && is_directory path -> ()

  let open_dir ~sw path =
    Switch.check sw;
    let name = native_exn path in
    if (stat ~follow:true path).kind <> `Directory then
      raise (fs_error (Unix.Unix_error (Unix.ENOTDIR, "open_dir", snd path)));
    (directory ~label:(Filename.basename name) name, "")

  let with_open_dir path body = Switch.run ~name:"with_open_dir" (fun sw -> body (open_dir ~sw path))

  let on_thread path body =
    try Haft_io__time.Systhreads.run body with Unix.Unix_error _ as exn ->
      raise (Exn.add_context (fs_error exn) "%S" (snd path))

  let symlink ~link_to path =
    let name = native_exn path in
    on_thread path (fun () -> Unix.symlink link_to name)

  let read_link path =
    let name = native_exn path in
    on_thread path (fun () -> Unix.readlink name)

  let chmod ~follow:_ ~perm path =
    let name = native_exn path in
    on_thread path (fun () -> Unix.chmod name perm)
end

(* ---- Processes ---- *)

module Process = struct
  type exit_status = [ `Exited of int | `Signaled of int ]
  type status = [ exit_status | `Stopped of int ]
  type error = Executable_not_found of string | Child_error of exit_status
  type Exn.err += E of error

  let pp_status formatter = function
    | `Exited code -> Format.fprintf formatter "Exited (code %d)" code
    | `Signaled number -> Format.fprintf formatter "Exited (signal %d)" number
    | `Stopped number -> Format.fprintf formatter "Stopped (signal %d)" number

  let () =
    Exn.register_pp (fun formatter -> function
      | E (Executable_not_found name) ->
          Format.fprintf formatter "Process Executable_not_found %S" name;
          true
      | E (Child_error status) ->
          Format.fprintf formatter "Process Child_error %a" pp_status status;
          true
      | _ -> false)

  type child = { number : int; ended : exit_status Promise.t }
  type kind += Child of child

  let child_of object_ = match object_.kind with Child child -> child | _ -> invalid_arg "this object is no process"
  let err error = Exn.create (E error)

  (* A stream of the child: a descriptor as it is, or a pipe that a task copies from or to. *)
  let with_stream ~sw flow ~reads standard =
    match flow with
    | None -> (standard, ignore)
    | Some flow -> (
        match flow.kind with
        | Descriptor descriptor | File descriptor -> (number_of descriptor, ignore)
        | _ -> (
            match Calls.pair_or_error (Calls.pipe_or_error ()) with
            | Error code -> raise_code code "pipe" ""
            | Ok (read_end, write_end) ->
                let theirs, ours = if reads then (read_end, write_end) else (write_end, read_end) in
                let ours = flow_of ~is_file:false ours in
                Fiber.fork ~sw (fun () ->
                    Fun.protect
                      ~finally:(fun () -> ours.close ())
                      (fun () ->
                        if reads then try Flow.copy flow ours with Exn.Io (Net_error (Connection_reset _), _) -> ()
                        else Flow.copy ours flow));
                (theirs, fun () -> ignore (Calls.close theirs))))

  let signal process number =
    let { number = process; ended } = child_of process in
    if not (Promise.is_resolved ended) then Unix.kill process number

  let spawn ~sw _manager ?cwd ?stdin ?stdout ?stderr ?env ?executable arguments =
    Switch.check sw;
    let name =
      match (executable, arguments) with
      | Some name, _ | None, name :: _ -> name
      | None, [] -> invalid_arg "Process.spawn: no executable and no arguments"
    in
    let texts = (name :: arguments) @ Option.fold ~none:[] ~some:Array.to_list env in
    if List.exists Calls.has_nul texts then invalid_arg "Process.spawn: a text with a NUL character";
    let input, close_input = with_stream ~sw stdin ~reads:true 0 in
    let output, close_output = with_stream ~sw stdout ~reads:false 1 in
    let errors, close_errors = with_stream ~sw stderr ~reads:false 2 in
    let environment = match env with Some env -> env | None -> Unix.environment () in
    let folder = match cwd with Some path -> Path.native_exn path | None -> "" in
    let arguments = Array.of_list (match arguments with [] -> [ name ] | _ :: rest -> name :: rest) in
    let number =
      work "the start of a process" Fun.id
        (Calls.start (arguments, environment, folder, [| input; output; errors |]))
    in
    close_input ();
    close_output ();
    close_errors ();
    if number < 0 then (
      match Calls.unix_error number "spawn" name with
      | Unix.Unix_error (Unix.ENOENT, _, _) -> raise (err (Executable_not_found name))
      | exn -> raise (Exn.create (Exn.X exn)));
    let ended, resolver = Promise.create ~label:"the end of a process" () in
    begin_work
      (Calls.begin_call (Calls.call Wait_child ~descriptor:number))
      (fun code ->
        let status = if code < 0 then 255 else Calls.taken_ended () in
        let how = if status >= 1000 then `Signaled (status - 100_000) else `Exited status in
        ignore (Promise.try_resolve resolver how));
    let child = { plain with kind = Child { number; ended } } in
    Switch.on_release sw (fun () ->
        if not (Promise.is_resolved ended) then (
          (try Unix.kill number Sys.sigkill with Unix.Unix_error _ -> ());
          ignore (Promise.await ended)));
    child

  let pid process = (child_of process).number
  let await process = (Promise.await (child_of process).ended :> status)

  let await_exn ?(is_success = fun code -> code = 0) process =
    match await process with
    | `Exited code when is_success code -> ()
    | `Exited code -> raise (err (Child_error (`Exited code)))
    | `Signaled number -> raise (err (Child_error (`Signaled number)))
    | `Stopped _ -> assert false

  let run manager ?cwd ?stdin ?stdout ?stderr ?is_success ?env ?executable arguments =
    Switch.run ~name:"Process.run" (fun sw ->
        let child = spawn ~sw manager ?cwd ?stdin ?stdout ?stderr ?env ?executable arguments in
        await_exn ?is_success child)

  let parse_out manager parser ?cwd ?stdin ?stderr ?is_success ?env ?executable arguments =
    Switch.run ~name:"Process.parse_out" (fun sw ->
        let buffer = Buffer.create 4096 in
        let stdout = Flow.buffer_sink buffer in
        Switch.run (fun sw ->
            let child = spawn ~sw manager ?cwd ?stdin ~stdout ?stderr ?env ?executable arguments in
            await_exn ?is_success child);
        ignore sw;
        match Buf_read.parse_string parser (Buffer.contents buffer) with
        | Ok value -> value
        | Error (`Msg message) -> failwith message)

  let pipe ~sw _manager =
    match Calls.pair_or_error (Calls.pipe_or_error ()) with
    | Error code -> raise_code code "pipe" ""
    | Ok (read_end, write_end) ->
        ( close_with sw (flow_of ~is_file:false read_end),
          close_with sw (flow_of ~is_file:false write_end) )
end
