(* SPDX-License-Identifier: MIT *)
(* Streams of bytes, and buffers for reading and writing them. *)
open Haft_io__loop
open Haft_io__fibers
open Haft_io__resource

(* ---- Errors ---- *)

type net_failure = Refused of exn | No_matching_addresses | Timeout
type net_error = Connection_reset of exn | Connection_failure of net_failure

type fs_error =
  | Already_exists of exn
  | Not_found of exn
  | Permission_denied of exn
  | File_too_large
  | Not_native of string
type Exn.err += Net_error of net_error | Fs_error of fs_error

let () =
  Exn.register_pp (fun formatter -> function
    | Net_error (Connection_reset exn) ->
        Format.fprintf formatter "Net Connection_reset %s" (Printexc.to_string exn);
        true
    | Net_error (Connection_failure (Refused exn)) ->
        Format.fprintf formatter "Net Connection_failure Refused %s" (Printexc.to_string exn);
        true
    | Net_error (Connection_failure No_matching_addresses) ->
        Format.pp_print_string formatter "Net Connection_failure No_matching_addresses";
        true
    | Net_error (Connection_failure Timeout) ->
        Format.pp_print_string formatter "Net Connection_failure Timeout";
        true
    | Fs_error error ->
        (match error with
        | Already_exists exn -> Format.fprintf formatter "Fs Already_exists %s" (Printexc.to_string exn)
        | Not_found exn -> Format.fprintf formatter "Fs Not_found %s" (Printexc.to_string exn)
        | Permission_denied exn -> Format.fprintf formatter "Fs Permission_denied %s" (Printexc.to_string exn)
        | File_too_large -> Format.pp_print_string formatter "Fs File_too_large"
        | Not_native what -> Format.fprintf formatter "Fs Not_native %s" what);
        true
    | _ -> false)

let raise_code code what argument =
  let exn = Haft_io__calls.unix_error code what argument in
  match exn with
  | Unix.Unix_error ((Unix.ECONNRESET | EPIPE | ECONNABORTED), _, _) ->
      raise (Exn.create (Net_error (Connection_reset exn)))
  | _ -> raise (Exn.create (Exn.X exn))

(* ---- Descriptors as flows ---- *)

(* A descriptor that one owner closes, once. *)
type descriptor = {
  mutable number : int;
  is_file : bool;
  mutable drained : bool;  (* the last read found less than it asked for: the next one waits first *)
  mutable misses : int;  (* so often in a row a wait without a stack has ended, and there was nothing *)
}

type kind += Descriptor of descriptor

let new_descriptor ~is_file number = { number; is_file; drained = false; misses = 0 }
let do_call = Haft_io__calls.do_call
let call = Haft_io__calls.call

let number_of descriptor =
  if descriptor.number < 0 then invalid_arg "this object was closed";
  descriptor.number

let few_misses = 2

(* A wait without a stack may end early, or at once where the back end cannot do it. Its error is the socket's, which
   the system tells once. *)
let wait_to_read descriptor number =
  if descriptor.misses < few_misses then (
    descriptor.misses <- descriptor.misses + 1;
    let code = wait_ready number perhaps_for_reading in
    if code < 0 then raise_code code "read" "")
  else ignore (wait_ready number for_reading)

let rec read_descriptor descriptor (view : Cstruct.t) =
  let number = number_of descriptor in
  if descriptor.is_file then
    let read = call Read ~descriptor:number ~memory:view.buffer ~at:view.off ~size:view.len in
    end_read (do_call "a file" read Fun.id) view
  else (
    if descriptor.drained then (
      descriptor.drained <- false;
      wait_to_read descriptor number);
    let got = Haft_io__calls.read (number_of descriptor) view.buffer view.off view.len in
    if got = Haft_io__calls.eagain then (
      wait_to_read descriptor number;
      read_descriptor descriptor view)
    else (
      descriptor.misses <- 0;
      descriptor.drained <- got > 0 && got < view.len;
      end_read got view))

and end_read got (view : Cstruct.t) =
  if got > 0 then got
  else if got = 0 then if view.len = 0 then 0 else raise End_of_file
  else raise_code got "read" ""

let rec write_view descriptor (view : Cstruct.t) =
  let number = number_of descriptor in
  let sent =
    if descriptor.is_file then
      do_call "a file" (call Write ~descriptor:number ~memory:view.buffer ~at:view.off ~size:view.len) Fun.id
    else Haft_io__calls.write number view.buffer view.off view.len
  in
  if sent >= 0 then sent
  else if sent = Haft_io__calls.eagain then (
    ignore (wait_ready number for_writing);
    write_view descriptor view)
  else raise_code sent "write" ""

(* Some of the bytes: those of the first view that has any, or of the first few if they are small. *)
let rec write_descriptor descriptor views =
  match views with
  | [] -> 0
  | [ view ] -> write_view descriptor view
  | (first : Cstruct.t) :: others ->
      if first.len = 0 then write_descriptor descriptor others
      else
        let all = Cstruct.lenv views in
        write_view descriptor (if all <= 16384 then Cstruct.concat views else first)

let close_descriptor descriptor =
  let number = descriptor.number in
  if number >= 0 then (
    descriptor.number <- -1;
    forget_watches number;
    ignore (Haft_io__calls.close number))

let shutdown_descriptor descriptor how =
  let how = match how with `Receive -> 0 | `Send -> 1 | `All -> 2 in
  let code = Haft_io__calls.shutdown (number_of descriptor) how in
  if code < 0 && Haft_io__calls.error code <> Unix.ENOTCONN then raise_code code "shutdown" ""

let flow_of ?is_file ?(kind = fun descriptor -> Descriptor descriptor) number =
  let is_file = match is_file with Some is_file -> is_file | None -> Haft_io__calls.is_file number in
  let descriptor = new_descriptor ~is_file number in
  {
    read = read_descriptor descriptor;
    write = write_descriptor descriptor;
    shutdown = shutdown_descriptor descriptor;
    close = (fun () -> close_descriptor descriptor);
    kind = kind descriptor;
  }

(* It is closed with the switch, if nobody closes it earlier; and not kept by the switch after that. *)
let close_with sw flow =
  match Switch.on_release_cancellable sw flow.close with
  | hook ->
      {
        flow with
        close =
          (fun () ->
            Switch.remove_hook hook;
            flow.close ());
      }
  | exception exn -> raise exn

module Flow = struct
  let close flow = flow.close ()
  let shutdown flow how = flow.shutdown how

  let single_read flow view =
    let got = flow.read view in
    if got <= 0 || got > Cstruct.length view then
      invalid_arg
        (Printf.sprintf "Flow.single_read: there is room for %d bytes, and the source says that it has read %d"
           (Cstruct.length view) got);
    got

  let rec read_exact flow view =
    if Cstruct.length view > 0 then read_exact flow (Cstruct.shift view (single_read flow view))

  let single_write flow views = flow.write views

  let rec write flow views =
    let size = Cstruct.lenv views in
    if size > 0 then (
      let taken = flow.write views in
      if taken < 0 || taken > size then
        invalid_arg
          (Printf.sprintf "Flow.write: there are %d bytes, and the sink says that it has taken %d" size taken);
      write flow (Cstruct.shiftv views taken))

  let copy_string text flow = write flow [ Cstruct.of_string text ]

  let copy source sink =
    let memory = Cstruct.create_unsafe 65536 in
    let rec go () =
      match single_read source memory with
      | got ->
          write sink [ Cstruct.sub memory 0 got ];
          go ()
      | exception End_of_file -> ()
    in
    go ()

  let string_source text =
    let at = ref 0 in
    let read view =
      let size = min (Cstruct.length view) (String.length text - !at) in
      if size = 0 && Cstruct.length view > 0 then raise End_of_file;
      Cstruct.blit_from_string text !at view 0 size;
      at := !at + size;
      size
    in
    { plain with read }

  let cstruct_source views =
    let rest = ref views in
    let rec read view =
      match !rest with
      | [] -> raise End_of_file
      | first :: others when Cstruct.length first = 0 ->
          rest := others;
          read view
      | first :: others ->
          let size = min (Cstruct.length view) (Cstruct.length first) in
          Cstruct.blit first 0 view 0 size;
          rest := Cstruct.shift first size :: others;
          size
    in
    { plain with read }

  let buffer_sink buffer =
    let write views =
      List.iter (fun view -> Buffer.add_string buffer (Cstruct.to_string view)) views;
      Cstruct.lenv views
    in
    { plain with write }

  let read_all flow =
    let buffer = Buffer.create 4096 in
    copy flow (buffer_sink buffer);
    Buffer.contents buffer
end

(* ---- Buffered reading ---- *)

module Buf_read = struct
  exception Buffer_limit_exceeded

  type t = {
    mutable memory : Cstruct.t;
    mutable first : int;
    mutable count : int;  (* bytes that have been read and not taken *)
    mutable taken : int;  (* all that were *)
    flow : any option;  (* None: it has ended *)
    mutable ended : bool;
    max_size : int;
  }

  type 'a parser = t -> 'a

  let return value _ = value
  let map f parser buffer = f (parser buffer)
  let bind parser f buffer = f (parser buffer) buffer

  let pair first second buffer =
    let a = first buffer in
    let b = second buffer in
    (a, b)

  module Syntax = struct
    let ( let+ ) parser f = map f parser
    let ( let* ) = bind
    let ( and+ ) = pair
    let ( and* ) = pair
    let ( <*> ) = pair
    let ( <* ) first second = map fst (pair first second)
    let ( *> ) first second = map snd (pair first second)
  end

  let of_flow ?initial_size ~max_size flow =
    if max_size <= 0 then invalid_arg "Max size must be positive!";
    let size = match initial_size with Some size -> max 1 size | None -> min 4096 max_size in
    {
      memory = Cstruct.create_unsafe size;
      first = 0;
      count = 0;
      taken = 0;
      flow = Some flow;
      ended = false;
      max_size;
    }

  let of_string text =
    {
      memory = Cstruct.of_string text;
      first = 0;
      count = String.length text;
      taken = 0;
      flow = None;
      ended = true;
      max_size = max 1 (String.length text);
    }

  let of_buffer buffer =
    let memory = Cstruct.of_bigarray buffer in
    let count = Cstruct.length memory in
    { memory; first = 0; count; taken = 0; flow = None; ended = true; max_size = max 1 count }

  let buffered_bytes buffer = buffer.count
  let eof_seen buffer = buffer.ended
  let consumed_bytes buffer = buffer.taken

  let peek buffer = Cstruct.sub buffer.memory buffer.first buffer.count

  let consume buffer count =
    if count < 0 || count > buffer.count then invalid_arg "Can't consume that many bytes";
    buffer.first <- buffer.first + count;
    buffer.count <- buffer.count - count;
    buffer.taken <- buffer.taken + count

  (* Room behind what is there for at least one byte, or for [total] of them. *)
  let make_room buffer total =
    let size = Cstruct.length buffer.memory in
    if total > buffer.max_size then raise Buffer_limit_exceeded;
    if buffer.first + buffer.count = size || total > size - buffer.first then (
      let larger =
        if total <= size && buffer.count < size then buffer.memory
        else Cstruct.create_unsafe (min buffer.max_size (max total (2 * size)))
      in
      Cstruct.blit buffer.memory buffer.first larger 0 buffer.count;
      buffer.memory <- larger;
      buffer.first <- 0)

  let read_more buffer total =
    match buffer.flow with
    | Some flow when not buffer.ended -> (
        make_room buffer total;
        let after = buffer.first + buffer.count in
        match Flow.single_read flow (Cstruct.shift buffer.memory after) with
        | got -> buffer.count <- buffer.count + got
        | exception End_of_file ->
            buffer.ended <- true;
            raise End_of_file)
    | _ -> raise End_of_file

  let rec ensure buffer count =
    if buffer.count < count then (
      read_more buffer count;
      ensure buffer count)

  let get buffer at = Bigarray.Array1.unsafe_get buffer.memory.buffer (buffer.memory.off + buffer.first + at)

  let any_char buffer =
    ensure buffer 1;
    let char = get buffer 0 in
    consume buffer 1;
    char

  let peek_char buffer =
    match ensure buffer 1 with () -> Some (get buffer 0) | exception End_of_file -> None

  let char wanted buffer =
    ensure buffer 1;
    let found = get buffer 0 in
    if found = wanted then consume buffer 1
    else failwith (Printf.sprintf "Expected %C but got %C" wanted found)

  let text_of buffer count = Cstruct.to_string ~len:count (peek buffer)

  let take count buffer =
    if count < 0 then invalid_arg "Buf_read.take: negative";
    ensure buffer count;
    let text = text_of buffer count in
    consume buffer count;
    text

  let string wanted buffer =
    let length = String.length wanted in
    let rec compare_from at =
      if at = length then consume buffer length
      else if at < buffer.count then
        if get buffer at = wanted.[at] then compare_from (at + 1)
        else failwith (Printf.sprintf "Expected %S but got %S" wanted (text_of buffer (min buffer.count length)))
      else (
        ensure buffer (at + 1);
        compare_from at)
    in
    compare_from 0

  let rec take_all buffer =
    match read_more buffer (buffer.count + 1) with
    | () -> take_all buffer
    | exception End_of_file ->
        let text = text_of buffer buffer.count in
        consume buffer buffer.count;
        text

  (* How many of the first bytes satisfy it. *)
  let count_while accept buffer =
    let rec go at =
      if at < buffer.count then if accept (get buffer at) then go (at + 1) else at
      else
        match read_more buffer (buffer.count + 1) with () -> go at | exception End_of_file -> at
    in
    go 0

  let take_while accept buffer =
    let count = count_while accept buffer in
    let text = text_of buffer count in
    consume buffer count;
    text

  let take_while1 ?(on_error = fun () -> failwith "take_while1") accept buffer =
    match take_while accept buffer with "" -> on_error () | text -> text

  let rec skip_while accept buffer =
    let rec go at =
      if at < buffer.count then if accept (get buffer at) then go (at + 1) else (consume buffer at; false)
      else (consume buffer at; true)
    in
    if go 0 then
      match read_more buffer 1 with () -> skip_while accept buffer | exception End_of_file -> ()

  let skip_while1 ?(on_error = fun () -> failwith "skip_while1") accept buffer =
    let before = buffer.taken in
    skip_while accept buffer;
    if buffer.taken = before then on_error ()

  let rec skip count buffer =
    if count < 0 then invalid_arg "Buf_read.skip: negative";
    if count <= buffer.count then consume buffer count
    else
      let left = count - buffer.count in
      consume buffer buffer.count;
      read_more buffer 1;
      skip left buffer

  let line buffer =
    (* Where the next '\n' is; the end of the stream ends a line that has bytes. *)
    let rec find at =
      if at < buffer.count then if get buffer at = '\n' then Some at else find (at + 1)
      else
        match read_more buffer (buffer.count + 1) with
        | () -> find at
        | exception End_of_file -> if buffer.count = 0 then raise End_of_file else None
    in
    let length, ends = match find 0 with Some at -> (at, 1) | None -> (buffer.count, 0) in
    let length = if ends = 1 && length > 0 && get buffer (length - 1) = '\r' then length - 1 else length in
    let text = text_of buffer length in
    let rec used at = if at < buffer.count && get buffer at <> '\n' then used (at + 1) else at in
    consume buffer (used length + ends);
    text

  let at_end_of_input buffer = peek_char buffer = None
  let end_of_input buffer = if not (at_end_of_input buffer) then failwith "Unexpected data after parsing"

  let seq ?(stop = at_end_of_input) parser buffer =
    let rec next () = if stop buffer then Seq.Nil else let value = parser buffer in Seq.Cons (value, next) in
    next

  let lines buffer = seq line buffer

  let format_errors parser buffer =
    match parser buffer with
    | value -> Ok value
    | exception Failure message -> Error (`Msg message)
    | exception End_of_file -> Error (`Msg "Unexpected end-of-file")
    | exception Buffer_limit_exceeded -> Error (`Msg "Buffer size limit exceeded when reading")

  let parse_exn ?initial_size ~max_size parser flow =
    let buffer = of_flow ?initial_size ~max_size flow in
    let value = parser buffer in
    end_of_input buffer;
    value

  let parse ?initial_size ~max_size parser flow =
    format_errors (fun buffer -> let value = parser buffer in end_of_input buffer; value)
      (of_flow ?initial_size ~max_size flow)

  let parse_string parser text =
    format_errors (fun buffer -> let value = parser buffer in end_of_input buffer; value) (of_string text)

  let parse_string_exn parser text =
    match parse_string parser text with Ok value -> value | Error (`Msg message) -> failwith message

  let as_flow buffer =
    let read view =
      ensure buffer 1;
      let size = min (Cstruct.length view) buffer.count in
      Cstruct.blit (peek buffer) 0 view 0 size;
      consume buffer size;
      size
    in
    { plain with read }

  let number size of_bytes buffer = of_bytes (Bytes.unsafe_of_string (take size buffer)) 0
  let uint8 buffer = number 1 Bytes.get_uint8 buffer

  module BE = struct
    let uint16 buffer = number 2 Bytes.get_uint16_be buffer
    let uint32 buffer = number 4 Bytes.get_int32_be buffer
    let uint64 buffer = number 8 Bytes.get_int64_be buffer
    let float buffer = Int32.float_of_bits (uint32 buffer)
    let double buffer = Int64.float_of_bits (uint64 buffer)
  end

  module LE = struct
    let uint16 buffer = number 2 Bytes.get_uint16_le buffer
    let uint32 buffer = number 4 Bytes.get_int32_le buffer
    let uint64 buffer = number 8 Bytes.get_int64_le buffer
    let float buffer = Int32.float_of_bits (uint32 buffer)
    let double buffer = Int64.float_of_bits (uint64 buffer)
  end
end

(* ---- Buffered writing ---- *)

module Buf_write = struct
  type t = {
    buffer : Buffer.t;
    limit : int;
    flow : Cstruct.t list -> unit;  (* writes all *)
    wakes : unit waiters;  (* the task that writes *)
    flushed : unit waiters;  (* tasks that wait until it has caught up *)
    mutable state : [ `Open | `Closing | `Failed of exn ];  (* failed: the switch has failed, too, which cancels the
                                                               tasks that wait *)
  }

  let check writer =
    match writer.state with
    | `Open -> ()
    | `Closing -> failwith "cannot write to closed writer"
    | `Failed exn -> raise (Cancelled exn)

  (* The writing task is woken at the first byte, and writes when the others let it: so small writes are gathered. *)
  let note_change writer = ignore (Waiters.wake_one writer.wakes ())

  let flush writer =
    check writer;
    while Buffer.length writer.buffer > 0 && writer.state = `Open do
      note_change writer;
      Waiters.wait writer.flushed "a flush"
    done;
    match writer.state with `Failed exn -> raise (Cancelled exn) | `Open | `Closing -> ()

  let added writer =
    if Buffer.length writer.buffer >= writer.limit then flush writer else note_change writer

  let string writer ?(off = 0) ?len text =
    check writer;
    let len = match len with Some len -> len | None -> String.length text - off in
    Buffer.add_substring writer.buffer text off len;
    added writer

  let bytes writer ?off ?len bytes = string writer ?off ?len (Bytes.unsafe_to_string bytes)
  let cstruct writer view = string writer (Cstruct.to_string view)
  let schedule_cstruct = cstruct

  let char writer char =
    check writer;
    Buffer.add_char writer.buffer char;
    added writer

  let add writer f =
    check writer;
    f writer.buffer;
    added writer

  let uint8 writer value = add writer (fun buffer -> Buffer.add_uint8 buffer value)

  module BE = struct
    let uint16 writer value = add writer (fun buffer -> Buffer.add_uint16_be buffer value)
    let uint32 writer value = add writer (fun buffer -> Buffer.add_int32_be buffer value)
    let uint64 writer value = add writer (fun buffer -> Buffer.add_int64_be buffer value)
    let float writer value = uint32 writer (Int32.bits_of_float value)
    let double writer value = uint64 writer (Int64.bits_of_float value)
  end

  module LE = struct
    let uint16 writer value = add writer (fun buffer -> Buffer.add_uint16_le buffer value)
    let uint32 writer value = add writer (fun buffer -> Buffer.add_int32_le buffer value)
    let uint64 writer value = add writer (fun buffer -> Buffer.add_int64_le buffer value)
    let float writer value = uint32 writer (Int32.bits_of_float value)
    let double writer value = uint64 writer (Int64.bits_of_float value)
  end

  let printf writer format = Printf.ksprintf (fun text -> string writer text) format

  let make_formatter writer =
    Format.make_formatter (fun text off len -> string writer ~off ~len text) (fun () -> flush writer)

  let pending_bytes writer = Buffer.length writer.buffer
  let is_closed writer = writer.state <> `Open

  let close writer =
    if writer.state = `Open then writer.state <- `Closing;
    note_change writer

  (* Gives what there is to the flow until it is closed and nothing is left. *)
  let rec serve writer =
    if Buffer.length writer.buffer > 0 then (
      let text = Buffer.contents writer.buffer in
      Buffer.clear writer.buffer;
      writer.flow [ Cstruct.of_string text ];
      if Buffer.length writer.buffer = 0 then Waiters.wake_all writer.flushed ();
      serve writer)
    else
      match writer.state with
      | `Open ->
          Waiters.wait writer.wakes "bytes to write";
          serve writer
      | `Closing | `Failed _ -> ()

  let with_flow ?(initial_size = 4096) flow body =
    Switch.run ~name:"Buf_write.with_flow" (fun sw ->
        let writer =
          {
            buffer = Buffer.create initial_size;
            limit = max initial_size 65536;
            flow = (fun views -> Flow.write flow views);
            wakes = Waiters.create ();
            flushed = Waiters.create ();
            state = `Open;
          }
        in
        Fiber.fork ~sw (fun () ->
            try serve writer
            with exn ->
              let backtrace = Printexc.get_raw_backtrace () in
              writer.state <- `Failed exn;
              Printexc.raise_with_backtrace exn backtrace);
        match body writer with
        | value ->
            close writer;
            value
        | exception exn ->
            let backtrace = Printexc.get_raw_backtrace () in
            close writer;
            Printexc.raise_with_backtrace exn backtrace)
end
