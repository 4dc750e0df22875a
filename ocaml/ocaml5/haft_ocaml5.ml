(* SPDX-License-Identifier: MIT *)
(* What OCaml 5's standard library has and that of 4.13 or 4.14 lacks, under its names: to be opened by the flag
   -open Haft_ocaml5. Written from the manual of OCaml 5.3, which documents it. A domain is a thread of the
   system, so one domain at a time runs OCaml code. *)

open struct
  module Threads = struct
    exception Exit

    (* What each thread has of its own. It is forgotten when the thread ends. *)
    type own = { domain : int; local : (int, Obj.t) Hashtbl.t }

    let main = { domain = 0; local = Hashtbl.create 8 }
    let main_thread = Thread.id (Thread.self ())
    let owns : (int, own) Hashtbl.t = Hashtbl.create 8
    let lock = Mutex.create ()

    let locked f =
      Mutex.lock lock;
      Fun.protect f ~finally:(fun () -> Mutex.unlock lock)

    let own () =
      let thread = Thread.id (Thread.self ()) in
      if thread = main_thread then main
      else
        locked @@ fun () ->
        match Hashtbl.find_opt owns thread with
        | Some own -> own
        | None ->
            let own = { domain = 0; local = Hashtbl.create 8 } in
            Hashtbl.add owns thread own;
            own

    let default_uncaught_exception_handler exn =
      let backtrace = Printexc.get_raw_backtrace () and thread = Thread.id (Thread.self ()) in
      Printf.eprintf "Thread %d killed on uncaught exception %s\n" thread (Printexc.to_string exn);
      Printexc.print_raw_backtrace stderr backtrace;
      flush stderr

    let uncaught_exception_handler = ref default_uncaught_exception_handler
    let set_uncaught_exception_handler handler = uncaught_exception_handler := handler

    let handle_uncaught exn =
      try !uncaught_exception_handler exn with failure ->
        default_uncaught_exception_handler exn;
        default_uncaught_exception_handler failure

    let create_with own f x =
      let body () =
        let thread = Thread.id (Thread.self ()) in
        locked (fun () -> Hashtbl.replace owns thread own);
        Fun.protect
          (fun () -> try ignore (f x) with Exit -> () | exn -> handle_uncaught exn)
          ~finally:(fun () -> locked (fun () -> Hashtbl.remove owns thread))
      in
      Thread.create body ()
  end
end

module Thread = struct
  include Thread

  exception Exit = Threads.Exit

  let default_uncaught_exception_handler = Threads.default_uncaught_exception_handler
  let set_uncaught_exception_handler = Threads.set_uncaught_exception_handler
  let create f x = Threads.create_with { domain = (Threads.own ()).domain; local = Hashtbl.create 8 } f x
  let exit () : unit = raise Exit
end

module Mutex = struct
  include Mutex

  let protect mutex f =
    lock mutex;
    match f () with
    | result ->
        unlock mutex;
        result
    | exception exn ->
        let backtrace = Printexc.get_raw_backtrace () in
        unlock mutex;
        Printexc.raise_with_backtrace exn backtrace
end

module Condition = Condition
module Semaphore = Semaphore

module Domain : sig
  type !'a t
  type id = private int

  val spawn : (unit -> 'a) -> 'a t
  val join : 'a t -> 'a
  val get_id : 'a t -> id
  val self : unit -> id
  val self_index : unit -> int
  val is_main_domain : unit -> bool
  val cpu_relax : unit -> unit
  val recommended_domain_count : unit -> int
  val before_first_spawn : (unit -> unit) -> unit
  val at_exit : (unit -> unit) -> unit

  module DLS : sig
    type 'a key

    val new_key : ?split_from_parent:('a -> 'a) -> (unit -> 'a) -> 'a key
    val get : 'a key -> 'a
    val set : 'a key -> 'a -> unit
  end
end = struct
  type id = int

  module DLS = struct
    type 'a key = { index : int; initial : unit -> 'a }

    let count = Atomic.make 0

    (* For each key that is inherited: what a child gets of the parent's values. *)
    let inherited : (Threads.own -> Threads.own -> unit) list ref = ref []

    let get_in (own : Threads.own) key =
      match Hashtbl.find_opt own.local key.index with
      | Some value -> Obj.obj value
      | None ->
          let value = key.initial () in
          Hashtbl.replace own.local key.index (Obj.repr value);
          value

    let set_in (own : Threads.own) key value = Hashtbl.replace own.local key.index (Obj.repr value)
    let get key = get_in (Threads.own ()) key
    let set key value = set_in (Threads.own ()) key value

    let new_key ?split_from_parent initial =
      let key = { index = Atomic.fetch_and_add count 1; initial } in
      Option.iter
        (fun split ->
          inherited := (fun parent child -> set_in child key (split (get_in parent key))) :: !inherited)
        split_from_parent;
      key
  end

  type 'a t = {
    id : id;
    thread : Thread.t;
    result : ('a, exn * Printexc.raw_backtrace) result option ref;
  }

  let last_id = Atomic.make 0
  let recommended_domain_count () = 1
  let cpu_relax () = Thread.yield ()
  let self () = (Threads.own ()).domain
  let self_index = self
  let is_main_domain () = self () = 0
  let get_id domain = domain.id
  let spawned = ref false
  let first = ref []

  let before_first_spawn f =
    if !spawned then invalid_arg "Domain.before_first_spawn: a domain has been spawned";
    first := f :: !first

  let exits : (unit -> unit) list ref DLS.key = DLS.new_key (fun () -> ref [])

  let at_exit f =
    if is_main_domain () then Stdlib.at_exit f
    else
      let exits = DLS.get exits in
      exits := f :: !exits

  let rec run_exits () =
    let exits = DLS.get exits in
    match !exits with
    | [] -> ()
    | f :: rest ->
        exits := rest;
        f ();
        run_exits ()

  let spawn f =
    if not !spawned then begin
      spawned := true;
      List.iter (fun f -> f ()) (List.rev !first)
    end;
    let id = 1 + Atomic.fetch_and_add last_id 1 in
    let own = { Threads.domain = id; local = Hashtbl.create 8 } in
    let parent = Threads.own () in
    List.iter (fun inherit_ -> inherit_ parent own) !DLS.inherited;
    let result = ref None in
    let body () =
      let outcome f = match f () with value -> Ok value | exception exn -> Error (exn, Printexc.get_raw_backtrace ()) in
      let ended = outcome f in
      let left = outcome run_exits in
      result := Some (match (ended, left) with Ok _, Error failure -> Error failure | _ -> ended)
    in
    { id; thread = Threads.create_with own body (); result }

  let join domain =
    Thread.join domain.thread;
    match !(domain.result) with
    | Some (Ok value) -> value
    | Some (Error (exn, backtrace)) -> Printexc.raise_with_backtrace exn backtrace
    | None -> failwith "Domain.join: the domain's thread has ended without a result"
end

(* Without events: nothing is recorded, and a cursor reads nothing. *)
module Runtime_events = struct
  type runtime_counter =
    | EV_C_FORCE_MINOR_ALLOC_SMALL | EV_C_FORCE_MINOR_MAKE_VECT | EV_C_FORCE_MINOR_SET_MINOR_HEAP_SIZE
    | EV_C_FORCE_MINOR_MEMPROF | EV_C_MINOR_PROMOTED | EV_C_MINOR_ALLOCATED | EV_C_REQUEST_MAJOR_ALLOC_SHR
    | EV_C_REQUEST_MAJOR_ADJUST_GC_SPEED | EV_C_REQUEST_MINOR_REALLOC_REF_TABLE
    | EV_C_REQUEST_MINOR_REALLOC_EPHE_REF_TABLE | EV_C_REQUEST_MINOR_REALLOC_CUSTOM_TABLE
    | EV_C_MAJOR_HEAP_POOL_WORDS | EV_C_MAJOR_HEAP_POOL_LIVE_WORDS | EV_C_MAJOR_HEAP_LARGE_WORDS
    | EV_C_MAJOR_HEAP_POOL_FRAG_WORDS | EV_C_MAJOR_HEAP_POOL_LIVE_BLOCKS | EV_C_MAJOR_HEAP_LARGE_BLOCKS
    | EV_C_MAJOR_HEAP_WORDS | EV_C_MAJOR_ALLOCATED_WORDS | EV_C_MAJOR_ALLOCATED_WORK
    | EV_C_MAJOR_DEPENDENT_WORK | EV_C_MAJOR_EXTRA_WORK | EV_C_MAJOR_WORK_COUNTER | EV_C_MAJOR_ALLOC_COUNTER
    | EV_C_MAJOR_SLICE_TARGET | EV_C_MAJOR_SLICE_BUDGET

  type runtime_phase =
    | EV_EXPLICIT_GC_SET | EV_EXPLICIT_GC_STAT | EV_EXPLICIT_GC_MINOR | EV_EXPLICIT_GC_MAJOR
    | EV_EXPLICIT_GC_FULL_MAJOR | EV_EXPLICIT_GC_COMPACT | EV_MAJOR | EV_MAJOR_SWEEP | EV_MAJOR_MARK_ROOTS
    | EV_MAJOR_MEMPROF_ROOTS | EV_MAJOR_MARK | EV_MINOR | EV_MINOR_LOCAL_ROOTS | EV_MINOR_MEMPROF_ROOTS
    | EV_MINOR_MEMPROF_CLEAN | EV_MINOR_FINALIZED | EV_EXPLICIT_GC_MAJOR_SLICE | EV_FINALISE_UPDATE_FIRST
    | EV_FINALISE_UPDATE_LAST | EV_INTERRUPT_REMOTE | EV_MAJOR_EPHE_MARK | EV_MAJOR_EPHE_SWEEP
    | EV_MAJOR_FINISH_MARKING | EV_MAJOR_GC_CYCLE_DOMAINS | EV_MAJOR_GC_PHASE_CHANGE | EV_MAJOR_GC_STW
    | EV_MAJOR_MARK_OPPORTUNISTIC | EV_MAJOR_SLICE | EV_MAJOR_FINISH_CYCLE | EV_MINOR_CLEAR
    | EV_MINOR_FINALIZERS_OLDIFY | EV_MINOR_GLOBAL_ROOTS | EV_MINOR_LEAVE_BARRIER | EV_STW_API_BARRIER
    | EV_STW_HANDLER | EV_STW_LEADER | EV_MAJOR_FINISH_SWEEPING | EV_MAJOR_MEMPROF_CLEAN
    | EV_MINOR_FINALIZERS_ADMIN | EV_MINOR_REMEMBERED_SET | EV_MINOR_REMEMBERED_SET_PROMOTE
    | EV_MINOR_LOCAL_ROOTS_PROMOTE | EV_DOMAIN_CONDITION_WAIT | EV_DOMAIN_RESIZE_HEAP_RESERVATION | EV_COMPACT
    | EV_COMPACT_EVACUATE | EV_COMPACT_FORWARD | EV_COMPACT_RELEASE

  type lifecycle =
    | EV_RING_START | EV_RING_STOP | EV_RING_PAUSE | EV_RING_RESUME | EV_FORK_PARENT | EV_FORK_CHILD
    | EV_DOMAIN_SPAWN | EV_DOMAIN_TERMINATE

  open struct
    (* The names of constant constructors, in their order. *)
    let named names =
      let names = Array.of_list (String.split_on_char ' ' names) in
      fun constructor -> names.((Obj.magic constructor : int))

    let counter_name =
      named
       "force_minor_alloc_small force_minor_make_vect force_minor_set_minor_heap_size force_minor_memprof \
        minor_promoted minor_allocated request_major_alloc_shr request_major_adjust_gc_speed \
        request_minor_realloc_ref_table request_minor_realloc_ephe_ref_table \
        request_minor_realloc_custom_table major_heap_pool_words major_heap_pool_live_words \
        major_heap_large_words major_heap_pool_frag_words major_heap_pool_live_blocks major_heap_large_blocks \
        major_heap_words major_allocated_words major_allocated_work major_dependent_work major_extra_work \
        major_work_counter major_alloc_counter major_slice_target major_slice_budget"

    let phase_name =
      named
       "explicit_gc_set explicit_gc_stat explicit_gc_minor explicit_gc_major explicit_gc_full_major \
        explicit_gc_compact major major_sweep major_mark_roots major_memprof_roots major_mark minor \
        minor_local_roots minor_memprof_roots minor_memprof_clean minor_finalized explicit_gc_major_slice \
        finalise_update_first finalise_update_last interrupt_remote major_ephe_mark major_ephe_sweep \
        major_finish_marking major_gc_cycle_domains major_gc_phase_change major_gc_stw \
        major_mark_opportunistic major_slice major_finish_cycle minor_clear minor_finalizers_oldify \
        minor_global_roots minor_leave_barrier stw_api_barrier stw_handler stw_leader major_finish_sweeping \
        major_memprof_clean minor_finalizers_admin minor_remembered_set minor_remembered_set_promote \
        minor_local_roots_promote domain_condition_wait domain_resize_heap_reservation compaction \
        compaction_evacuate compaction_forward compaction_release"

    let life_name =
      named "ring_start ring_stop ring_pause ring_resume fork_parent fork_child domain_spawn domain_terminate"
  end

  let runtime_counter_name (counter : runtime_counter) = counter_name counter
  let runtime_phase_name (phase : runtime_phase) = phase_name phase
  let lifecycle_name (lifecycle : lifecycle) = life_name lifecycle

  module Timestamp = struct
    type t = int64

    let get_current () = Int64.of_float (Sys.time () *. 1e9)
    let to_int64 timestamp = timestamp
  end

  module Type = struct
    type span = Begin | End

    type 'a t =
      | Unit : unit t
      | Int : int t
      | Span : span t
      | Custom : { encode : bytes -> 'a -> int; decode : bytes -> int -> 'a } -> 'a t

    let unit = Unit
    let int = Int
    let span = Span
    let register ~encode ~decode = Custom { encode; decode }
  end

  module User = struct
    type tag = ..
    type 'a t = { name : string; tag : tag }

    let register name tag (_ : 'a Type.t) : 'a t = { name; tag }
    let write (_ : 'a t) (_ : 'a) = ()
    let name event = event.name
    let tag event = event.tag
  end

  module Callbacks = struct
    type t = unit
    type 'a callback = int -> Timestamp.t -> 'a

    let create ?runtime_begin:(_ : (runtime_phase -> unit) callback option)
        ?runtime_end:(_ : (runtime_phase -> unit) callback option)
        ?runtime_counter:(_ : (runtime_counter -> int -> unit) callback option)
        ?alloc:(_ : (int array -> unit) callback option)
        ?lifecycle:(_ : (lifecycle -> int option -> unit) callback option)
        ?lost_events:(_ : (int -> int -> unit) option) () =
      ()

    let add_user_event (_ : 'a Type.t) (_ : int -> Timestamp.t -> 'a User.t -> 'a -> unit) () = ()
  end

  type cursor = unit

  let start () = ()
  let pause () = ()
  let resume () = ()
  let path () : string option = None
  let create_cursor (_ : (string * int) option) : cursor = ()
  let free_cursor (_ : cursor) = ()
  let read_poll (_ : cursor) (_ : Callbacks.t) (_ : int option) = 0
end

module Seq = struct
  include struct
    [@@@ocaml.warning "-32"]

    open! Stdlib.Seq

    exception Forced_twice

    let is_empty seq = match seq () with Nil -> true | Cons _ -> false
    let uncons seq = match seq () with Nil -> None | Cons (head, tail) -> Some (head, tail)
    let length seq = fold_left (fun count _ -> count + 1) 0 seq
    let singleton = return

    let fold_lefti f start seq =
      snd (fold_left (fun (index, result) x -> (index + 1, f result index x)) (0, start) seq)

    let iteri f seq = fold_lefti (fun () index x -> f index x) () seq

    let rec find_map f seq =
      match seq () with
      | Nil -> None
      | Cons (head, tail) -> ( match f head with None -> find_map f tail | found -> found)

    let find is_right seq = find_map (fun x -> if is_right x then Some x else None) seq
    let exists is_right seq = Option.is_some (find is_right seq)
    let for_all is_right seq = not (exists (fun x -> not (is_right x)) seq)

    open struct
      let rec mapi_from index f seq () =
        match seq () with
        | Nil -> Nil
        | Cons (head, tail) -> Cons (f index head, mapi_from (index + 1) f tail)
    end

    let mapi f seq = mapi_from 0 f seq
    let find_mapi f seq = find_map Fun.id (mapi f seq)
    let find_index is_right seq = find_mapi (fun index x -> if is_right x then Some index else None) seq

    let rec map2 f left right () =
      match left () with
      | Nil -> Nil
      | Cons (l, left) -> (
          match right () with Nil -> Nil | Cons (r, right) -> Cons (f l r, map2 f left right))

    let zip left right = map2 (fun l r -> (l, r)) left right
    let iter2 f left right = iter (fun (l, r) -> f l r) (zip left right)
    let fold_left2 f start left right = fold_left (fun result (l, r) -> f result l r) start (zip left right)
    let for_all2 f left right = for_all (fun (l, r) -> f l r) (zip left right)
    let exists2 f left right = exists (fun (l, r) -> f l r) (zip left right)

    let rec equal eq left right =
      match (left (), right ()) with
      | Nil, Nil -> true
      | Cons (l, left), Cons (r, right) -> eq l r && equal eq left right
      | _ -> false

    let rec compare cmp left right =
      match (left (), right ()) with
      | Nil, Nil -> 0
      | Nil, Cons _ -> -1
      | Cons _, Nil -> 1
      | Cons (l, left), Cons (r, right) ->
          let order = cmp l r in
          if order <> 0 then order else compare cmp left right

    let rec ints from () = Cons (from, ints (from + 1))
    let rec forever f () = Cons (f (), forever f)
    let rec repeat x () = Cons (x, repeat x)

    let cycle seq () =
      match seq () with
      | Nil -> Nil
      | Cons (head, tail) ->
          let rec again () = append seq again () in
          Cons (head, append tail again)

    let rec iterate f x () = Cons (x, fun () -> iterate f (f x) ())

    open struct
      let rec take_some count seq () =
        if count = 0 then Nil
        else match seq () with Nil -> Nil | Cons (head, tail) -> Cons (head, take_some (count - 1) tail)
    end

    let take count seq =
      if count < 0 then invalid_arg "Seq.take";
      take_some count seq

    let drop count seq =
      if count < 0 then invalid_arg "Seq.drop";
      let rec from count seq =
        if count = 0 then seq ()
        else match seq () with Nil -> Nil | Cons (_, tail) -> from (count - 1) tail
      in
      if count = 0 then seq else fun () -> from count seq

    let init count f =
      if count < 0 then invalid_arg "Seq.init";
      map f (take_some count (ints 0))

    let rec take_while is_right seq () =
      match seq () with
      | Cons (head, tail) when is_right head -> Cons (head, take_while is_right tail)
      | _ -> Nil

    let rec drop_while is_right seq () =
      match seq () with
      | Cons (head, tail) when is_right head -> drop_while is_right tail ()
      | rest -> rest

    open struct
      let rec scan_from f state seq () =
        match seq () with
        | Nil -> Nil
        | Cons (head, tail) ->
            let state = f state head in
            Cons (state, scan_from f state tail)
    end

    let scan f start seq = cons start (scan_from f start seq)

    let rec group eq seq () =
      match seq () with
      | Nil -> Nil
      | Cons (head, tail) ->
          Cons (cons head (take_while (eq head) tail), group eq (drop_while (eq head) tail))

    let rec memoize seq =
      let node = lazy (match seq () with Nil -> Nil | Cons (head, tail) -> Cons (head, memoize tail)) in
      fun () -> Lazy.force node

    let rec once seq =
      let is_forced = Atomic.make false in
      fun () ->
        if Atomic.exchange is_forced true then raise Forced_twice;
        match seq () with Nil -> Nil | Cons (head, tail) -> Cons (head, once tail)

    let rec interleave left right () =
      match left () with Nil -> right () | Cons (head, left) -> Cons (head, interleave right left)

    let rec sorted_merge cmp left right () =
      match (left (), right ()) with
      | Nil, rest | rest, Nil -> rest
      | (Cons (l, left') as whole_left), (Cons (r, right') as whole_right) ->
          if cmp l r <= 0 then Cons (l, sorted_merge cmp left' (fun () -> whole_right))
          else Cons (r, sorted_merge cmp (fun () -> whole_left) right')

    let rec transpose rows () =
      let rows = filter_map uncons rows in
      if is_empty rows then Nil else Cons (map fst rows, transpose (map snd rows))

    open struct
      (* The diagonals of the table of rows. *)
      let rec diagonals seen rows () =
        match rows () with
        | Nil -> transpose seen ()
        | Cons (row, rows) ->
            let seen = cons row seen in
            Cons (filter_map (fun row -> Option.map fst (uncons row)) seen,
                  diagonals (filter_map (fun row -> Option.map snd (uncons row)) seen) rows)
    end

    let map_product f left right = concat (diagonals empty (map (fun l -> map (f l) right) left))
    let product left right = map_product (fun l r -> (l, r)) left right
    let unzip seq = (map fst seq, map snd seq)
    let split = unzip

    let partition_map f seq =
      let seq = map f seq in
      (filter_map Either.find_left seq, filter_map Either.find_right seq)

    let partition is_right seq = (filter is_right seq, filter (fun x -> not (is_right x)) seq)

    let rec of_dispenser next () = match next () with None -> Nil | Some x -> Cons (x, of_dispenser next)

    let to_dispenser seq =
      let rest = ref seq in
      fun () ->
        Option.map
          (fun (head, tail) ->
            rest := tail;
            head)
          (uncons !rest)
  end

  include Stdlib.Seq (* with what 4.14 has of this *)
end

(* What 4.14 has, for 4.13. (The flag opens this file: what it shows has no name that a program could have.) *)
module Haft_ocaml5_of_4_14 = struct
  module In_channel = struct
    type t = in_channel

    type open_flag = Stdlib.open_flag =
      | Open_rdonly
      | Open_wronly
      | Open_append
      | Open_creat
      | Open_trunc
      | Open_excl
      | Open_binary
      | Open_text
      | Open_nonblock

    let stdin = stdin
    let open_bin = open_in_bin
    let open_text = open_in
    let open_gen = open_in_gen
    let close = close_in
    let close_noerr = close_in_noerr

    open struct
      let with_channel channel f = Fun.protect (fun () -> f channel) ~finally:(fun () -> close_noerr channel)
      let until_end read channel = match read channel with value -> Some value | exception End_of_file -> None
    end

    let with_open_bin name f = with_channel (open_bin name) f
    let with_open_text name f = with_channel (open_text name) f
    let with_open_gen flags mode name f = with_channel (open_gen flags mode name) f
    let input_char channel = until_end Stdlib.input_char channel
    let input_byte channel = until_end Stdlib.input_byte channel
    let input_line channel = until_end Stdlib.input_line channel
    let input = input

    let really_input channel buffer position length =
      until_end (fun channel -> Stdlib.really_input channel buffer position length) channel

    let really_input_string channel length =
      until_end (fun channel -> Stdlib.really_input_string channel length) channel

    let input_all channel =
      let all = Buffer.create 65536 and chunk = Bytes.create 65536 in
      let rec read () =
        let count = input channel chunk 0 (Bytes.length chunk) in
        if count > 0 then begin
          Buffer.add_subbytes all chunk 0 count;
          read ()
        end
      in
      read ();
      Buffer.contents all

    let seek = LargeFile.seek_in
    let pos = LargeFile.pos_in
    let length = LargeFile.in_channel_length
    let set_binary_mode = set_binary_mode_in
  end

  module Out_channel = struct
    type t = out_channel

    type open_flag = Stdlib.open_flag =
      | Open_rdonly
      | Open_wronly
      | Open_append
      | Open_creat
      | Open_trunc
      | Open_excl
      | Open_binary
      | Open_text
      | Open_nonblock

    let stdout = stdout
    let stderr = stderr
    let open_bin = open_out_bin
    let open_text = open_out
    let open_gen = open_out_gen
    let close = close_out
    let close_noerr = close_out_noerr

    open struct
      (* What cannot be written is told; after an exception of [f], that one is. *)
      let with_channel channel f =
        match f channel with
        | result ->
            close channel;
            result
        | exception exn ->
            let backtrace = Printexc.get_raw_backtrace () in
            close_noerr channel;
            Printexc.raise_with_backtrace exn backtrace
    end

    let with_open_bin name f = with_channel (open_bin name) f
    let with_open_text name f = with_channel (open_text name) f
    let with_open_gen flags mode name f = with_channel (open_gen flags mode name) f
    let output_char = output_char
    let output_byte = output_byte
    let output_string = output_string
    let output_bytes = output_bytes
    let output = output
    let output_substring = output_substring
    let flush = flush
    let flush_all = flush_all
    let seek = LargeFile.seek_out
    let pos = LargeFile.pos_out
    let length = LargeFile.out_channel_length
    let set_binary_mode = set_binary_mode_out
  end

  module Uchar : sig
    type utf_decode [@@immediate]

    val utf_decode : int -> Uchar.t -> utf_decode
    val utf_decode_invalid : int -> utf_decode
    val utf_decode_is_valid : utf_decode -> bool
    val utf_decode_length : utf_decode -> int
    val utf_decode_uchar : utf_decode -> Uchar.t
    val utf_8_byte_length : Uchar.t -> int
    val utf_16_byte_length : Uchar.t -> int
  end = struct
    (* Above the character how many bytes it has, and above that whether it is there. *)
    type utf_decode = int

    let decoded length uchar = (length lsl 21) lor Uchar.to_int uchar
    let utf_decode length uchar = (1 lsl 24) lor decoded length uchar
    let utf_decode_invalid length = decoded length Uchar.rep
    let utf_decode_is_valid decode = decode lsr 24 = 1
    let utf_decode_length decode = (decode lsr 21) land 7
    let utf_decode_uchar decode = Uchar.unsafe_of_int (decode land 0x1F_FFFF)

    let utf_8_byte_length uchar =
      let code = Uchar.to_int uchar in
      if code < 0x80 then 1 else if code < 0x800 then 2 else if code < 0x1_0000 then 3 else 4

    let utf_16_byte_length uchar = if Uchar.to_int uchar < 0x1_0000 then 2 else 4
  end

  module Bytes : sig
    val get_utf_8_uchar : bytes -> int -> Uchar.utf_decode
    val set_utf_8_uchar : bytes -> int -> Stdlib.Uchar.t -> int
    val is_valid_utf_8 : bytes -> bool
    val get_utf_16be_uchar : bytes -> int -> Uchar.utf_decode
    val set_utf_16be_uchar : bytes -> int -> Stdlib.Uchar.t -> int
    val is_valid_utf_16be : bytes -> bool
    val get_utf_16le_uchar : bytes -> int -> Uchar.utf_decode
    val set_utf_16le_uchar : bytes -> int -> Stdlib.Uchar.t -> int
    val is_valid_utf_16le : bytes -> bool
  end = struct
    (* (What is not valid is as long as it could have been the beginning of a character.) *)
    let get_utf_8_uchar bytes index =
      let first = Bytes.get_uint8 bytes index in
      let more, bits, low, high =
        if first < 0x80 then (0, first, 0, 0)
        else if first < 0xC2 then (-1, 0, 0, 0)
        else if first < 0xE0 then (1, first land 0x1F, 0x80, 0xBF)
        else if first < 0xF0 then
          (2, first land 0xF, (if first = 0xE0 then 0xA0 else 0x80), if first = 0xED then 0x9F else 0xBF)
        else if first < 0xF5 then
          (3, first land 7, (if first = 0xF0 then 0x90 else 0x80), if first = 0xF4 then 0x8F else 0xBF)
        else (-1, 0, 0, 0)
      in
      let rec read place bits low high =
        if place > more then Uchar.utf_decode (more + 1) (Stdlib.Uchar.unsafe_of_int bits)
        else if index + place >= Bytes.length bytes then Uchar.utf_decode_invalid place
        else
          let byte = Bytes.get_uint8 bytes (index + place) in
          if byte < low || byte > high then Uchar.utf_decode_invalid place
          else read (place + 1) ((bits lsl 6) lor (byte land 0x3F)) 0x80 0xBF
      in
      if more < 0 then Uchar.utf_decode_invalid 1 else read 1 bits low high

    let set_utf_8_uchar bytes index uchar =
      let code = Stdlib.Uchar.to_int uchar and length = Uchar.utf_8_byte_length uchar in
      let first = match length with 1 -> 0 | 2 -> 0xC0 | 3 -> 0xE0 | _ -> 0xF0 in
      let byte place =
        let bits = code lsr (6 * (length - 1 - place)) in
        if place = 0 then first lor bits else 0x80 lor (bits land 0x3F)
      in
      if length > 1 && index + length > Bytes.length bytes then 0
      else begin
        for place = 0 to length - 1 do
          Bytes.set_uint8 bytes (index + place) (byte place)
        done;
        length
      end

    let get_utf_16_uchar get bytes index =
      let left = Bytes.length bytes - index in
      ignore (Bytes.get bytes index);
      if left < 2 then Uchar.utf_decode_invalid 1
      else
        let first = get bytes index in
        if first land 0xF800 <> 0xD800 then Uchar.utf_decode 2 (Stdlib.Uchar.unsafe_of_int first)
        else if first >= 0xDC00 then Uchar.utf_decode_invalid 2
        else if left < 4 then Uchar.utf_decode_invalid left
        else
          let second = get bytes (index + 2) in
          if second land 0xFC00 <> 0xDC00 then Uchar.utf_decode_invalid 2
          else
            let code = 0x1_0000 + (((first land 0x3FF) lsl 10) lor (second land 0x3FF)) in
            Uchar.utf_decode 4 (Stdlib.Uchar.unsafe_of_int code)

    let set_utf_16_uchar set bytes index uchar =
      let code = Stdlib.Uchar.to_int uchar and length = Uchar.utf_16_byte_length uchar in
      ignore (Bytes.get bytes index);
      if index + length > Bytes.length bytes then 0
      else begin
        if length = 2 then set bytes index code
        else begin
          let bits = code - 0x1_0000 in
          set bytes index (0xD800 lor (bits lsr 10));
          set bytes (index + 2) (0xDC00 lor (bits land 0x3FF))
        end;
        length
      end

    let get_utf_16be_uchar bytes index = get_utf_16_uchar Bytes.get_uint16_be bytes index
    let set_utf_16be_uchar bytes index uchar = set_utf_16_uchar Bytes.set_uint16_be bytes index uchar
    let get_utf_16le_uchar bytes index = get_utf_16_uchar Bytes.get_uint16_le bytes index
    let set_utf_16le_uchar bytes index uchar = set_utf_16_uchar Bytes.set_uint16_le bytes index uchar

    let is_valid get bytes =
      let rec from index =
        index = Bytes.length bytes
        ||
        let decode = get bytes index in
        Uchar.utf_decode_is_valid decode && from (index + Uchar.utf_decode_length decode)
      in
      from 0

    let is_valid_utf_8 bytes = is_valid get_utf_8_uchar bytes
    let is_valid_utf_16be bytes = is_valid get_utf_16be_uchar bytes
    let is_valid_utf_16le bytes = is_valid get_utf_16le_uchar bytes
  end

  module String = struct
    let get_utf_8_uchar text index = Bytes.get_utf_8_uchar (Stdlib.Bytes.unsafe_of_string text) index
    let get_utf_16be_uchar text index = Bytes.get_utf_16be_uchar (Stdlib.Bytes.unsafe_of_string text) index
    let get_utf_16le_uchar text index = Bytes.get_utf_16le_uchar (Stdlib.Bytes.unsafe_of_string text) index
    let is_valid_utf_8 text = Bytes.is_valid_utf_8 (Stdlib.Bytes.unsafe_of_string text)
    let is_valid_utf_16be text = Bytes.is_valid_utf_16be (Stdlib.Bytes.unsafe_of_string text)
    let is_valid_utf_16le text = Bytes.is_valid_utf_16le (Stdlib.Bytes.unsafe_of_string text)
  end

  module Sys = struct
    type extra_prefix = Plus | Tilde
    type extra_info = extra_prefix * string
    type ocaml_release_info = { major : int; minor : int; patchlevel : int; extra : extra_info option }

    let ocaml_release =
      Stdlib.Scanf.sscanf Sys.ocaml_version "%d.%d.%d%s@\n" (fun major minor patchlevel extra ->
          let after prefix = Some (prefix, Stdlib.String.sub extra 1 (Stdlib.String.length extra - 1)) in
          let is_tilde = Stdlib.String.starts_with ~prefix:"~" extra in
          { major; minor; patchlevel; extra = (if extra = "" then None else after (if is_tilde then Tilde else Plus)) })

    let development_version = false
  end

  module Ephemeron = struct
    [@@@ocaml.alert "-old_ephemeron_api"]

    module K1 = struct
      open Ephemeron.K1

      let make key data =
        let ephemeron = create () in
        set_key ephemeron key;
        set_data ephemeron data;
        ephemeron

      let query ephemeron key =
        match get_key ephemeron with Some k when k == key -> get_data ephemeron | _ -> None
    end

    module K2 = struct
      open Ephemeron.K2

      let make key1 key2 data =
        let ephemeron = create () in
        set_key1 ephemeron key1;
        set_key2 ephemeron key2;
        set_data ephemeron data;
        ephemeron

      let query ephemeron key1 key2 =
        match (get_key1 ephemeron, get_key2 ephemeron) with
        | Some k1, Some k2 when k1 == key1 && k2 == key2 -> get_data ephemeron
        | _ -> None
    end

    module Kn = struct
      open Ephemeron.Kn

      let make keys data =
        let ephemeron = create (Array.length keys) in
        Array.iteri (set_key ephemeron) keys;
        set_data ephemeron data;
        ephemeron

      let query ephemeron keys =
        let is_key index key = match get_key ephemeron index with Some k -> k == key | None -> false in
        let are_keys = List.for_all Fun.id (List.mapi is_key (Array.to_list keys)) in
        if are_keys then get_data ephemeron else None
    end
  end
end

open struct
  (* The standard library's, where it has them. *)
  module Latest = struct
    open! Haft_ocaml5_of_4_14 [@@ocaml.warning "-66"]
    open! Stdlib [@@ocaml.warning "-66"]
    module In_channel = In_channel
    module Out_channel = Out_channel
  end

  (* A bigarray of bytes, of which a range is read or written. *)
  module Chars = struct
    open Bigarray

    let of_array name (array : (_, int8_unsigned_elt, c_layout) Array1.t) position length =
      if position < 0 || length < 0 || position > Array1.dim array - length then invalid_arg name;
      (* (An integer below 256 is a character.) *)
      (Obj.magic array : (char, int8_unsigned_elt, c_layout) Array1.t)

    let to_bytes (chars : (char, _, _) Array1.t) position length =
      Bytes.init length (fun index -> chars.{position + index})

    let of_bytes (chars : (char, _, _) Array1.t) position bytes length =
      for index = 0 to length - 1 do
        chars.{position + index} <- Bytes.get bytes index
      done
  end

  (* For [Hashtbl.Make] and [Hashtbl.MakeSeeded]. *)
  module Hashed (Key : sig
    type t
  end) =
  struct
    let hash (key : Key.t) = Hashtbl.hash key
    let seeded_hash seed (key : Key.t) = Hashtbl.seeded_hash seed key
  end
end

module In_channel = struct
  include Latest.In_channel

  let rec fold_lines f result channel =
    match input_line channel with None -> result | Some line -> fold_lines f (f result line) channel

  let input_lines channel = List.rev (fold_lines (fun lines line -> line :: lines) [] channel)
  let isatty channel = Unix.isatty (Unix.descr_of_in_channel channel)

  let input_bigarray channel array position length =
    let chars = Chars.of_array "input_bigarray" array position length in
    let buffer = Bytes.create (min length 65536) in
    let count = input channel buffer 0 (Bytes.length buffer) in
    Chars.of_bytes chars position buffer count;
    count

  let rec really_input_bigarray channel array position length =
    ignore (Chars.of_array "really_input_bigarray" array position length);
    if length = 0 then Some ()
    else
      match input_bigarray channel array position length with
      | 0 -> None
      | count -> really_input_bigarray channel array (position + count) (length - count)

  (* (POSIX has no other mode.) *)
  let is_binary_mode (_ : t) = true
end

module Out_channel = struct
  include Latest.Out_channel

  let isatty channel = Unix.isatty (Unix.descr_of_out_channel channel)

  let rec output_bigarray channel array position length =
    let chars = Chars.of_array "output_bigarray" array position length in
    let count = min length 65536 in
    output channel (Chars.to_bytes chars position count) 0 count;
    if length > count then output_bigarray channel array (position + count) (length - count)
  let is_binary_mode (_ : t) = true
end

module Filename = struct
  include Stdlib.Filename

  let temp_dir ?temp_dir ?(perms = 0o700) prefix suffix =
    let rec attempt left =
      let name = temp_file ?temp_dir prefix suffix in
      Sys.remove name;
      match Sys.mkdir name perms with
      | () -> name
      | exception Sys_error _ when left > 0 -> attempt (left - 1)
    in
    attempt 100
end

module Scanf = struct
  include Stdlib.Scanf

  type ('a, 'b, 'c, 'd) scanner_opt = ('a, Scanning.in_channel, 'b, 'c, 'a -> 'd option, 'd) format6 -> 'c

  open struct
    exception Refused
  end

  let bscanf_opt channel format receiver =
    match kscanf channel (fun _ _ -> raise_notrace Refused) format receiver with
    | result -> Some result
    | exception Refused -> None

  let sscanf_opt text format receiver = bscanf_opt (Scanning.from_string text) format receiver
  let scanf_opt format receiver = bscanf_opt Scanning.stdin format receiver
end

module Sys = struct
  include Haft_ocaml5_of_4_14.Sys
  include Stdlib.Sys

  let io_buffer_size = 65536

  (* (At an allocation, OCaml 4 runs what is pending.) *)
  let poll_actions () = ignore (opaque_identity (ref ()))

  let is_regular_file name =
    match Unix.LargeFile.stat name with
    | { st_kind; _ } -> st_kind = Unix.S_REG
    | exception Unix.Unix_error (error, _, _) -> raise (Sys_error (name ^ ": " ^ Unix.error_message error))
end

module Bool = struct
  include Stdlib.Bool
  include Hashed (Stdlib.Bool)
end

module Bytes = struct
  include Haft_ocaml5_of_4_14.Bytes
  include Stdlib.Bytes
end

module BytesLabels = struct
  include Haft_ocaml5_of_4_14.Bytes
  include Stdlib.BytesLabels
end

module String = struct
  include Haft_ocaml5_of_4_14.String
  include Stdlib.String
  include Hashed (Stdlib.String)
end

module StringLabels = struct
  include Haft_ocaml5_of_4_14.String
  include Stdlib.StringLabels
  include Hashed (Stdlib.String)
end

module Int = struct
  include Stdlib.Int
  include Hashed (Stdlib.Int)
end

module Int32 = struct
  include Stdlib.Int32
  include Hashed (Stdlib.Int32)
end

module Int64 = struct
  include Stdlib.Int64
  include Hashed (Stdlib.Int64)
end

module Nativeint = struct
  include Stdlib.Nativeint
  include Hashed (Stdlib.Nativeint)
end

module Char = struct
  include Stdlib.Char
  include Hashed (Stdlib.Char)
end

module Uchar = struct
  include Haft_ocaml5_of_4_14.Uchar
  include Stdlib.Uchar

  let seeded_hash seed (uchar : t) = Hashtbl.seeded_hash seed uchar
end

module Hashtbl = struct
  include Stdlib.Hashtbl

  module type SeededHashedType = sig
    type t

    val equal : t -> t -> bool
    val seeded_hash : int -> t -> int
  end

  open struct
    module Named (Key : SeededHashedType) = struct
      include Key

      let hash = seeded_hash
    end
  end

  module MakeSeeded (Key : SeededHashedType) : SeededS with type key = Key.t =
    Stdlib.Hashtbl.MakeSeeded (Named (Key))
end

module Ephemeron = struct
  include Stdlib.Ephemeron

  module K1 = struct
    include Haft_ocaml5_of_4_14.Ephemeron.K1
    include Stdlib.Ephemeron.K1
  end

  module K2 = struct
    include Haft_ocaml5_of_4_14.Ephemeron.K2
    include Stdlib.Ephemeron.K2
  end

  module Kn = struct
    include Haft_ocaml5_of_4_14.Ephemeron.Kn
    include Stdlib.Ephemeron.Kn
  end
end

(* The generator is OCaml 4's: a seed gives other numbers than on OCaml 5. *)
module Random = struct
  open struct
    (* What there is in 4.14, made of 4.13's [bits], of which there are 30. *)
    let bits32_of bits =
      let half () = Int32.of_int (bits () lsr 14) in
      let high = half () in
      Int32.logor (Int32.shift_left high 16) (half ())

    let bits64_of bits =
      let half () = Int64.of_int32 (bits32_of bits) in
      let high = half () in
      Int64.logor (Int64.shift_left high 32) (Int64.logand (half ()) 0xFFFF_FFFFL)

    module Bits (State : sig
      type t

      val bits : t -> int
    end) =
    struct
      [@@@ocaml.warning "-32"] (* (4.14 has them.) *)

      let bits32 state = bits32_of (fun () -> State.bits state)
      let bits64 state = bits64_of (fun () -> State.bits state)
      let nativebits state = Int64.to_nativeint (bits64 state)
    end

    (* (That of the module has the state [()].) *)
    module Ranges (State : sig
      type t

      val int64 : t -> int64 -> int64
      val bits64 : t -> int64
    end) =
    struct
      open struct
        let in_range name ~of_int64 ~to_int64 state ~min ~max =
          let min = to_int64 min and max = to_int64 max in
          if Int64.compare min max > 0 then invalid_arg ("Random." ^ name);
          let count = Int64.succ (Int64.sub max min) in
          (* Too many for a bound: most of 64 bits are right. *)
          let rec draw () =
            let n = State.bits64 state in
            if Int64.compare min n <= 0 && Int64.compare n max <= 0 then n else draw ()
          in
          of_int64 (if Int64.compare count 0L > 0 then Int64.add min (State.int64 state count) else draw ())
      end

      let int_in_range = in_range "int_in_range" ~of_int64:Int64.to_int ~to_int64:Int64.of_int
      let int32_in_range = in_range "int32_in_range" ~of_int64:Int64.to_int32 ~to_int64:Int64.of_int32

      let nativeint_in_range =
        in_range "nativeint_in_range" ~of_int64:Int64.to_nativeint ~to_int64:Int64.of_nativeint

      let int64_in_range = in_range "int64_in_range" ~of_int64:Fun.id ~to_int64:Fun.id
    end
  end

  module State = struct
    include Bits (Stdlib.Random.State)
    include Stdlib.Random.State

    include Ranges (struct
      type nonrec t = t

      let int64 = int64
      let bits64 = bits64
    end)

    let split state = make (Array.init 55 (fun _ -> bits state))

    open struct
      (* What a state of OCaml 4's generator is: its last numbers, of 30 bits, in a ring; and its place in that. *)
      type ring = { numbers : int array; mutable place : int } [@@ocaml.warning "-69"]

      let size = 55
      let begins = "OCaml 4"
    end

    let to_binary_string (state : t) =
      let { numbers; place } : ring = Obj.magic state in
      let text = Buffer.create 256 in
      Buffer.add_string text begins;
      Buffer.add_uint8 text place;
      Array.iter (fun number -> Buffer.add_int32_le text (Int32.of_int number)) numbers;
      Buffer.contents text

    let of_binary_string text : t =
      let after = Stdlib.String.length begins in
      let number index = Int32.to_int (Stdlib.String.get_int32_le text (after + 1 + (4 * index))) in
      let is_number n = n >= 0 && n < 1 lsl 30 in
      if
        Stdlib.String.length text <> after + 1 + (4 * size)
        || Stdlib.String.sub text 0 after <> begins
        || Char.code text.[after] >= size
        || not (List.for_all is_number (List.init size number))
      then failwith "Random.State.of_binary_string";
      Obj.magic { numbers = Array.init size number; place = Char.code text.[after] }
  end

  open struct
    module Default = struct
      type t = unit

      let bits () = Stdlib.Random.bits ()
      let int64 () bound = Stdlib.Random.int64 bound
    end
  end

  include Bits (Default)
  include (Stdlib.Random : module type of Stdlib.Random with module State := Stdlib.Random.State)

  include Ranges (struct
    include Default

    let bits64 = bits64
  end)

  let int_in_range = int_in_range ()
  let int32_in_range = int32_in_range ()
  let nativeint_in_range = nativeint_in_range ()
  let int64_in_range = int64_in_range ()
  let split () = State.make (Array.init 55 (fun _ -> bits ()))
end

module Format = struct
  include Stdlib.Format

  let pp_infinity = 1_000_000_010
  let pp_print_nothing (_ : formatter) () = ()

  let pp_print_iter ?(pp_sep = pp_print_cut) iter pp_v formatter v =
    let is_first = ref true in
    iter
      (fun x ->
        if !is_first then is_first := false else pp_sep formatter ();
        pp_v formatter x)
      v

  let pp_print_array ?pp_sep pp_v formatter v = pp_print_iter ?pp_sep Array.iter pp_v formatter v

  let pp_print_substring ~pos ~len formatter text = pp_print_string formatter (Stdlib.String.sub text pos len)
  let print_substring ~pos ~len text = pp_print_substring ~pos ~len std_formatter text
  let pp_print_substring_as ~pos ~len formatter width text =
    pp_print_as formatter width (Stdlib.String.sub text pos len)

  let print_substring_as ~pos ~len width text = pp_print_substring_as ~pos ~len std_formatter width text

  (* (One of each for all domains, as in OCaml 4.) *)
  let get_std_formatter () = std_formatter
  let get_err_formatter () = err_formatter
  let get_str_formatter () = str_formatter
  let get_stdbuf () = stdbuf

  (* A domain's text is written when it flushes its formatter, and at its end. *)
  let make_synchronized_formatter write flush =
    Domain.DLS.new_key (fun () ->
        let buffer = Buffer.create 512 in
        let flush () =
          let text = Buffer.contents buffer in
          Buffer.clear buffer;
          write text 0 (Stdlib.String.length text);
          flush ()
        in
        let formatter = make_formatter (Buffer.add_substring buffer) flush in
        Domain.at_exit (pp_print_flush formatter);
        formatter)

  let synchronized_formatter_of_out_channel channel =
    make_synchronized_formatter (output_substring channel) (fun () -> Stdlib.flush channel)
end

module Type = struct
  type (_, _) eq = Equal : ('a, 'a) eq

  module Id = struct
    type _ id = ..

    module type ID = sig
      type t
      type _ id += Id : t id
    end

    type 'a t = (module ID with type t = 'a)

    let make (type a) () : a t =
      (module struct
        type t = a
        type _ id += Id : t id
      end)

    let uid (type a) ((module Id) : a t) = Obj.Extension_constructor.id [%extension_constructor Id.Id]

    let provably_equal (type a b) ((module Left) : a t) ((module Right) : b t) : (a, b) eq option =
      match Left.Id with Right.Id -> Some Equal | _ -> None
  end
end

module List = struct
  include Stdlib.List

  open struct
    let not_negative name count = if count < 0 then invalid_arg ("List." ^ name)
  end

  let is_empty = function [] -> true | _ :: _ -> false
  let find_mapi f list = Seq.find_mapi f (to_seq list)
  let find_index is_right list = Seq.find_index is_right (to_seq list)

  let take count list =
    not_negative "take" count;
    of_seq (Seq.take count (to_seq list))

  let drop count list =
    not_negative "drop" count;
    let rec from count list = match list with _ :: tail when count > 0 -> from (count - 1) tail | _ -> list in
    from count list

  let take_while is_right list = of_seq (Seq.take_while is_right (to_seq list))
  let rec drop_while is_right = function head :: tail when is_right head -> drop_while is_right tail | list -> list
end

module Array = struct
  include Stdlib.Array

  let find_index is_right array = Seq.find_index is_right (to_seq array)
  let find_mapi f array = Seq.find_mapi f (to_seq array)
  let mapi_inplace f array = iteri (fun index x -> array.(index) <- f index x) array
  let map_inplace f array = mapi_inplace (fun _ x -> f x) array

  let shuffle ~rand array =
    for last = length array - 1 downto 1 do
      let index = rand (last + 1) in
      let x = array.(last) in
      array.(last) <- array.(index);
      array.(index) <- x
    done

  let init_matrix rows columns f =
    if rows < 0 || columns < 0 then invalid_arg "Array.init_matrix";
    init rows (fun row -> init columns (f row))
end

module ArrayLabels = struct
  include Stdlib.ArrayLabels

  let find_index ~f array = Array.find_index f array
  let find_mapi ~f array = Array.find_mapi f array
  let map_inplace ~f array = Array.map_inplace f array
  let mapi_inplace ~f array = Array.mapi_inplace f array
  let shuffle = Array.shuffle
  let init_matrix ~dimx ~dimy ~f = Array.init_matrix dimx dimy f
end

module ListLabels = struct
  include Stdlib.ListLabels

  let is_empty = List.is_empty
  let find_index ~f list = List.find_index f list
  let find_mapi ~f list = List.find_mapi f list
  let take = List.take
  let drop = List.drop
  let take_while ~f list = List.take_while f list
  let drop_while ~f list = List.drop_while f list
end

module Float = struct
  include Stdlib.Float
  include Hashed (Stdlib.Float)

  let signaling_nan = Int64.float_of_bits 0x7FF0_0000_0000_0001L
  let quiet_nan = Int64.float_of_bits 0x7FF8_0000_0000_0001L

  module Array = struct
    include Stdlib.Float.Array

    let find_opt is_right array = Seq.find is_right (to_seq array)
    let find_index is_right array = Seq.find_index is_right (to_seq array)
    let find_map f array = Seq.find_map f (to_seq array)
    let find_mapi f array = Seq.find_mapi f (to_seq array)
    let mapi_inplace f array = iteri (fun index x -> set array index (f index x)) array
    let map_inplace f array = mapi_inplace (fun _ x -> f x) array

    let shuffle ~rand array =
      for last = length array - 1 downto 1 do
        let index = rand (last + 1) in
        let x = get array last in
        set array last (get array index);
        set array index x
      done

    open struct
      let matrix name rows columns row =
        if rows < 0 || columns < 0 then invalid_arg ("Float.Array." ^ name);
        Stdlib.Array.init rows row
    end

    let make_matrix rows columns x = matrix "make_matrix" rows columns (fun _ -> make columns x)
    let init_matrix rows columns f = matrix "init_matrix" rows columns (fun row -> init columns (f row))
  end

  module ArrayLabels = struct
    include Stdlib.Float.ArrayLabels

    let find_opt ~f array = Array.find_opt f array
    let find_index ~f array = Array.find_index f array
    let find_map ~f array = Array.find_map f array
    let find_mapi ~f array = Array.find_mapi f array
    let map_inplace ~f array = Array.map_inplace f array
    let mapi_inplace ~f array = Array.mapi_inplace f array
    let shuffle = Array.shuffle
    let make_matrix ~dimx ~dimy x = Array.make_matrix dimx dimy x
    let init_matrix ~dimx ~dimy ~f = Array.init_matrix dimx dimy f
  end
end

module Dynarray : sig
  type !'a t

  val create : unit -> 'a t
  val make : int -> 'a -> 'a t
  val init : int -> (int -> 'a) -> 'a t
  val get : 'a t -> int -> 'a
  val set : 'a t -> int -> 'a -> unit
  val length : 'a t -> int
  val is_empty : 'a t -> bool
  val get_last : 'a t -> 'a
  val find_last : 'a t -> 'a option
  val copy : 'a t -> 'a t
  val add_last : 'a t -> 'a -> unit
  val append_array : 'a t -> 'a array -> unit
  val append_list : 'a t -> 'a list -> unit
  val append : 'a t -> 'a t -> unit
  val append_seq : 'a t -> 'a Seq.t -> unit
  val append_iter : 'a t -> (('a -> unit) -> 'x -> unit) -> 'x -> unit
  val blit : src:'a t -> src_pos:int -> dst:'a t -> dst_pos:int -> len:int -> unit
  val pop_last_opt : 'a t -> 'a option
  val pop_last : 'a t -> 'a
  val remove_last : 'a t -> unit
  val truncate : 'a t -> int -> unit
  val clear : 'a t -> unit
  val iter : ('a -> unit) -> 'a t -> unit
  val iteri : (int -> 'a -> unit) -> 'a t -> unit
  val map : ('a -> 'b) -> 'a t -> 'b t
  val mapi : (int -> 'a -> 'b) -> 'a t -> 'b t
  val fold_left : ('acc -> 'a -> 'acc) -> 'acc -> 'a t -> 'acc
  val fold_right : ('a -> 'acc -> 'acc) -> 'a t -> 'acc -> 'acc
  val filter : ('a -> bool) -> 'a t -> 'a t
  val filter_map : ('a -> 'b option) -> 'a t -> 'b t
  val equal : ('a -> 'a -> bool) -> 'a t -> 'a t -> bool
  val compare : ('a -> 'a -> int) -> 'a t -> 'a t -> int
  val exists : ('a -> bool) -> 'a t -> bool
  val for_all : ('a -> bool) -> 'a t -> bool
  val mem : 'a -> 'a t -> bool
  val memq : 'a -> 'a t -> bool
  val find_opt : ('a -> bool) -> 'a t -> 'a option
  val find_index : ('a -> bool) -> 'a t -> int option
  val find_map : ('a -> 'b option) -> 'a t -> 'b option
  val find_mapi : (int -> 'a -> 'b option) -> 'a t -> 'b option
  val of_array : 'a array -> 'a t
  val to_array : 'a t -> 'a array
  val of_list : 'a list -> 'a t
  val to_list : 'a t -> 'a list
  val of_seq : 'a Seq.t -> 'a t
  val to_seq : 'a t -> 'a Seq.t
  val to_seq_reentrant : 'a t -> 'a Seq.t
  val to_seq_rev : 'a t -> 'a Seq.t
  val to_seq_rev_reentrant : 'a t -> 'a Seq.t
  val capacity : 'a t -> int
  val ensure_capacity : 'a t -> int -> unit
  val ensure_extra_capacity : 'a t -> int -> unit
  val fit_capacity : 'a t -> unit
  val set_capacity : 'a t -> int -> unit
  val reset : 'a t -> unit
end = struct
  (* The slots from [length] on are [None]. *)
  type !'a t = { mutable length : int; mutable slots : 'a option array }

  let wrong name format = Printf.ksprintf (fun reason -> invalid_arg ("Dynarray." ^ name ^ ": " ^ reason)) format
  let not_negative name what count = if count < 0 then wrong name "negative %s %d requested" what count
  let create () = { length = 0; slots = [||] }
  let length array = array.length
  let is_empty array = array.length = 0

  let init count f =
    not_negative "init" "length" count;
    { length = count; slots = Array.init count (fun index -> Some (f index)) }

  let make count x =
    not_negative "make" "length" count;
    init count (fun _ -> x)

  let has array index = index >= 0 && index < array.length

  (* The array had [length] elements, and may have changed since. *)
  let slot_of array index ~length =
    match array.slots.(index) with
    | Some x -> x
    | None | (exception Invalid_argument _) ->
        Printf.ksprintf invalid_arg
          "Invalid dynarray (unsynchronized concurrent length change): missing element at position %d < length %d"
          index length

  let slot array index = slot_of array index ~length:array.length

  let get array index =
    if not (has array index) then invalid_arg "index out of bounds";
    slot array index

  let set array index x =
    if is_empty array then wrong "set" "index %d out of bounds (empty dynarray)" index;
    if not (has array index) then wrong "set" "index %d out of bounds (0..%d)" index (array.length - 1);
    array.slots.(index) <- Some x

  let get_last array =
    if is_empty array then wrong "get_last" "empty array";
    slot array (array.length - 1)

  let find_last array = if is_empty array then None else Some (get_last array)
  let copy array = { array with slots = Array.copy array.slots }

  (* Capacity *)

  let capacity array = Array.length array.slots

  let resize array capacity =
    array.slots <-
      Array.init capacity (fun index -> if index < array.length then array.slots.(index) else None)

  let ensure_capacity array wanted =
    not_negative "ensure_capacity" "capacity" wanted;
    if wanted > capacity array then resize array (max wanted (max 8 (3 * capacity array / 2)))

  let ensure_extra_capacity array extra = ensure_capacity array (array.length + extra)

  let truncate array count =
    not_negative "truncate" "length" count;
    if count < array.length then begin
      Array.fill array.slots count (array.length - count) None;
      array.length <- count
    end

  let fit_capacity array = resize array array.length

  let set_capacity array capacity =
    not_negative "set_capacity" "capacity" capacity;
    truncate array capacity;
    resize array capacity

  let clear array = truncate array 0

  let reset array =
    clear array;
    fit_capacity array

  (* At the end *)

  let add_last array x =
    ensure_extra_capacity array 1;
    array.slots.(array.length) <- Some x;
    array.length <- array.length + 1

  let append_iter array iter xs = iter (add_last array) xs
  let append_array array xs = append_iter array Array.iter xs
  let append_list array xs = append_iter array List.iter xs
  let append_seq array xs = append_iter array Seq.iter xs

  let pop_last_opt array =
    let last = find_last array in
    if last <> None then truncate array (array.length - 1);
    last

  let pop_last array = match pop_last_opt array with Some last -> last | None -> raise Not_found
  let remove_last array = ignore (pop_last_opt array)

  let blit ~src ~src_pos ~dst ~dst_pos ~len =
    if len < 0 then wrong "blit" "invalid blit length (%d)" len;
    let check what array start last =
      if start < 0 || start > last then
        wrong "blit" "invalid %s region (%d..%d) in %s dynarray of length %d" what start (start + len) what
          array.length
    in
    check "source" src src_pos (src.length - len);
    check "target" dst dst_pos dst.length;
    ensure_capacity dst (dst_pos + len);
    Array.blit src.slots src_pos dst.slots dst_pos len;
    dst.length <- max dst.length (dst_pos + len)

  (* Each in turn; [f] must leave the length as it is. *)

  let unchanged name array length =
    if array.length <> length then
      wrong name "a length change from %d to %d occurred during iteration" length array.length

  let find_mapi_as name f array =
    let length = array.length in
    let rec from index =
      if index < length then
        match f index (slot_of array index ~length) with None -> from (index + 1) | found -> found
      else begin
        unchanged name array length;
        None
      end
    in
    from 0

  let iteri_as name f array =
    ignore
      (find_mapi_as name
         (fun index x ->
           f index x;
           None)
         array)

  let iteri f array = iteri_as "iteri" f array
  let iter f array = iteri_as "iter" (fun _ -> f) array
  let append array other = iteri_as "append" (fun _ -> add_last array) other

  let fold_left f start array =
    let result = ref start in
    iteri_as "fold_left" (fun _ x -> result := f !result x) array;
    !result

  let to_list array = List.rev (fold_left (fun list x -> x :: list) [] array)

  let fold_right f array start =
    let length = array.length and result = ref start in
    for index = length - 1 downto 0 do
      result := f (slot_of array index ~length) !result
    done;
    unchanged "fold_right" array length;
    !result

  let of_list list =
    let array = create () in
    append_list array list;
    array

  let of_array xs = init (Array.length xs) (Array.get xs)
  let to_array array = Array.init array.length (slot array)

  let of_seq seq =
    let array = create () in
    append_seq array seq;
    array

  let mapi_as name f array =
    let result = create () in
    ensure_capacity result array.length;
    iteri_as name (fun index x -> add_last result (f index x)) array;
    result

  let mapi f array = mapi_as "mapi" f array
  let map f array = mapi_as "map" (fun _ -> f) array

  let filter_map_as name f array =
    let result = create () in
    iteri_as name (fun _ x -> Option.iter (add_last result) (f x)) array;
    result

  let if_ is_right x = if is_right x then Some x else None
  let filter_map f array = filter_map_as "filter_map" f array
  let filter is_right array = filter_map_as "filter" (if_ is_right) array

  let rec to_seq_from index array () =
    if index < array.length then Seq.Cons (slot array index, to_seq_from (index + 1) array) else Seq.Nil

  let rec to_seq_rev_from index array () =
    if index < 0 then Seq.Nil
    else if index < array.length then Seq.Cons (slot array index, to_seq_rev_from (index - 1) array)
    else to_seq_rev_from (array.length - 1) array ()

  let to_seq_reentrant array = to_seq_from 0 array
  let to_seq_rev_reentrant array = to_seq_rev_from (array.length - 1) array

  let unless_changed name array seq =
    let length = array.length in
    Seq.map
      (fun x ->
        unchanged name array length;
        x)
      seq

  let to_seq array = unless_changed "to_seq" array (to_seq_reentrant array)
  let to_seq_rev array = unless_changed "to_seq_rev" array (to_seq_rev_reentrant array)
  let find_as name is_right array = find_mapi_as name (fun _ x -> if_ is_right x) array
  let exists is_right array = Option.is_some (find_as "exists" is_right array)
  let for_all is_right array = Option.is_none (find_as "for_all" (fun x -> not (is_right x)) array)
  let mem x array = exists (fun y -> compare x y = 0) array
  let memq x array = exists (( == ) x) array
  let find_opt is_right array = find_as "find_opt" is_right array
  let find_mapi f array = find_mapi_as "find_mapi" f array
  let find_map f array = find_mapi_as "find_map" (fun _ -> f) array

  let find_index is_right array =
    find_mapi_as "find_index" (fun index x -> if is_right x then Some index else None) array
  let equal eq left right = length left = length right && Seq.equal eq (to_seq left) (to_seq right)

  let compare cmp left right =
    match Int.compare (length left) (length right) with
    | 0 -> Seq.compare cmp (to_seq left) (to_seq right)
    | order -> order
end

module Fun = struct
  include Stdlib.Fun

  let compose f g x = f (g x)
end

module Queue = struct
  include Stdlib.Queue

  let drop queue = ignore (take queue)
end

module Stack = struct
  include Stdlib.Stack

  let drop stack = ignore (pop stack)
end

module Map = struct
  module type OrderedType = Stdlib.Map.OrderedType

  module type S = sig
    include Stdlib.Map.S

    val add_to_list : key -> 'a -> 'a list t -> 'a list t
    val of_list : (key * 'a) list -> 'a t
    val to_list : 'a t -> (key * 'a) list
  end

  module Make (Key : OrderedType) :
    S with type key = Key.t and type 'a t = 'a Stdlib.Map.Make(Key).t = struct
    include Stdlib.Map.Make (Key)

    let add_to_list key x = update key (fun list -> Some (x :: Option.value list ~default:[]))
    let of_list bindings = of_seq (List.to_seq bindings)
    let to_list = bindings
  end
end

module Set = struct
  module type OrderedType = Stdlib.Set.OrderedType

  module type S = sig
    include Stdlib.Set.S

    val to_list : t -> elt list
  end

  module Make (Element : OrderedType) :
    S with type elt = Element.t and type t = Stdlib.Set.Make(Element).t = struct
    include Stdlib.Set.Make (Element)

    let to_list = elements
  end
end

module StdLabels = struct
  module Array = ArrayLabels
  module Bytes = BytesLabels
  module List = ListLabels
  module String = StringLabels
end

module MoreLabels = struct
  module Hashtbl = struct
    include Stdlib.MoreLabels.Hashtbl

    module type SeededHashedType = Hashtbl.SeededHashedType

    module MakeSeeded (Key : SeededHashedType) :
      SeededS with type key = Key.t and type 'a t = 'a Hashtbl.MakeSeeded(Key).t = struct
      include Hashtbl.MakeSeeded (Key)

      let add table ~key ~data = add table key data
      let replace table ~key ~data = replace table key data
      let iter ~f table = iter (fun key data -> f ~key ~data) table
      let fold ~f table ~init = fold (fun key data -> f ~key ~data) table init
      let filter_map_inplace ~f table = filter_map_inplace (fun key data -> f ~key ~data) table
    end
  end

  module Map = struct
    include Stdlib.MoreLabels.Map

    module type S = sig
      include S

      val add_to_list : key:key -> data:'a -> 'a list t -> 'a list t
      val of_list : (key * 'a) list -> 'a t
      val to_list : 'a t -> (key * 'a) list
    end

    module Make (Key : OrderedType) : S with type key = Key.t and type 'a t = 'a Stdlib.Map.Make(Key).t = struct
      include Stdlib.MoreLabels.Map.Make (Key)

      let add_to_list ~key ~data map =
        update ~key ~f:(fun list -> Some (data :: Option.value list ~default:[])) map

      let of_list bindings = of_seq (List.to_seq bindings)
      let to_list = bindings
    end
  end

  module Set = struct
    include Stdlib.MoreLabels.Set

    module type S = sig
      include S

      val to_list : t -> elt list
    end

    module Make (Element : OrderedType) :
      S with type elt = Element.t and type t = Stdlib.Set.Make(Element).t = struct
      include Stdlib.MoreLabels.Set.Make (Element)

      let to_list = elements
    end
  end
end

module Printexc = struct
  include Stdlib.Printexc

  let string_of_extension_constructor constructor = to_string_default (Obj.obj constructor)
end

module Digest = struct
  include Stdlib.Digest

  let of_hex = from_hex

  module type S = sig
    type t = string

    val hash_length : int
    val compare : t -> t -> int
    val equal : t -> t -> bool
    val string : string -> t
    val bytes : bytes -> t
    val substring : string -> int -> int -> t
    val subbytes : bytes -> int -> int -> t
    val channel : in_channel -> int -> t
    val file : string -> t
    val output : out_channel -> t -> unit
    val input : in_channel -> t
    val to_hex : t -> string
    val of_hex : string -> t
  end

  module MD5 = struct
    include Stdlib.Digest

    let hash_length = 16
    let of_hex = of_hex
  end

  open struct
    (* BLAKE2b without a key: the names are those of RFC 7693. *)
    module Blake2b = struct
      let iv =
        [|
          0x6a09e667f3bcc908L; 0xbb67ae8584caa73bL; 0x3c6ef372fe94f82bL; 0xa54ff53a5f1d36f1L;
          0x510e527fade682d1L; 0x9b05688c2b3e6c1fL; 0x1f83d9abfb41bd6bL; 0x5be0cd19137e2179L;
        |]

      let sigma =
        let row digits = Stdlib.Array.init 16 (fun index -> int_of_string (Printf.sprintf "0x%c" digits.[index])) in
        Stdlib.Array.map row
          [|
            "0123456789abcdef"; "ea489fd61c02b753"; "b8c052fdae367194"; "7931dcbe265a40f8"; "905724afe1bc683d";
            "2c6a0b834d75fe19"; "c51fed4a0763928b"; "db7ec13950f4862a"; "6fe9b308c2d714a5"; "a2847615fb9e3cd0";
          |]

      let block_size = 128
      let get words index = Bytes.get_int64_le words (8 * index)
      let set words index word = Bytes.set_int64_le words (8 * index) word

      let rotated word count =
        Int64.logor (Int64.shift_right_logical word count) (Int64.shift_left word (64 - count))

      let mix v a b c d x y =
        let add to_ other more = set v to_ (Int64.add (Int64.add (get v to_) (get v other)) more) in
        let xor to_ other count = set v to_ (rotated (Int64.logxor (get v to_) (get v other)) count) in
        add a b x;
        xor d a 32;
        add c d 0L;
        xor b c 24;
        add a b y;
        xor d a 16;
        add c d 0L;
        xor b c 63

      let compress h block ~count ~is_last =
        let v = Bytes.create 128 in
        Bytes.blit h 0 v 0 64;
        Stdlib.Array.iteri (fun index word -> set v (8 + index) word) iv;
        set v 12 (Int64.logxor (get v 12) (Int64.of_int count));
        if is_last then set v 14 (Int64.lognot (get v 14));
        for round = 0 to 11 do
          let m index = get block sigma.(round mod 10).(index) in
          for column = 0 to 3 do
            mix v column (4 + column) (8 + column) (12 + column) (m (2 * column)) (m ((2 * column) + 1))
          done;
          for diagonal = 0 to 3 do
            let turned row = (4 * row) + ((diagonal + row) mod 4) in
            let x = 8 + (2 * diagonal) in
            mix v (turned 0) (turned 1) (turned 2) (turned 3) (m x) (m (x + 1))
          done
        done;
        for index = 0 to 7 do
          set h index (Int64.logxor (get h index) (Int64.logxor (get v index) (get v (8 + index))))
        done

      (* The hash, [length] bytes long, of all that [read] returns, a function like [input]. *)
      let hash length read =
        let h = Bytes.create 64 in
        Stdlib.Array.iteri (set h) iv;
        set h 0 (Int64.logxor (get h 0) (Int64.of_int (0x0101_0000 lor length)));
        let rec fill block filled =
          match read block filled (block_size - filled) with
          | 0 -> filled
          | count -> fill block (filled + count)
        in
        let next () =
          let block = Bytes.make block_size '\000' in
          (block, fill block 0)
        in
        let rec blocks before (block, filled) =
          let following = next () in
          let is_last = snd following = 0 in
          compress h block ~count:(before + filled) ~is_last;
          if not is_last then blocks (before + filled) following
        in
        blocks 0 (next ());
        Bytes.sub_string h 0 length
    end

    module Make_blake2b (Length : sig
      val hash_length : int
    end) : S = struct
      include Length

      type t = string

      let compare = Stdlib.String.compare
      let equal = Stdlib.String.equal

      let part name text start length =
        if start < 0 || length < 0 || start > Stdlib.String.length text - length then invalid_arg ("Digest." ^ name);
        let place = ref start in
        Blake2b.hash hash_length (fun buffer position room ->
            let count = min room (start + length - !place) in
            Bytes.blit_string text !place buffer position count;
            place := !place + count;
            count)

      let substring text start length = part "substring" text start length
      let subbytes bytes start length = part "subbytes" (Bytes.unsafe_to_string bytes) start length
      let string text = substring text 0 (Stdlib.String.length text)
      let bytes bytes = string (Bytes.unsafe_to_string bytes)

      let channel channel length =
        let left = ref length in
        Blake2b.hash hash_length (fun buffer position room ->
            if length < 0 then Stdlib.input channel buffer position room
            else
              let wanted = min room !left in
              let count = Stdlib.input channel buffer position wanted in
              if count = 0 && wanted > 0 then raise End_of_file;
              left := !left - count;
              count)

      let file name = In_channel.with_open_bin name (fun in_channel -> channel in_channel (-1))
      let output = output_string
      let input channel = really_input_string channel hash_length

      let to_hex digest =
        if Stdlib.String.length digest <> hash_length then invalid_arg "Digest.to_hex";
        let hex index = Printf.sprintf "%02x" (Char.code digest.[index]) in
        Stdlib.String.concat "" (Stdlib.List.init hash_length hex)

      let of_hex text =
        let is_digit = function '0' .. '9' | 'a' .. 'f' | 'A' .. 'F' -> true | _ -> false in
        if Stdlib.String.length text <> 2 * hash_length || not (Stdlib.String.for_all is_digit text) then
          invalid_arg "Digest.of_hex";
        Stdlib.String.init hash_length (fun index ->
            Char.chr (int_of_string ("0x" ^ Stdlib.String.sub text (2 * index) 2)))
    end
  end

  module BLAKE128 = Make_blake2b (struct let hash_length = 16 end)
  module BLAKE256 = Make_blake2b (struct let hash_length = 32 end)
  module BLAKE512 = Make_blake2b (struct let hash_length = 64 end)
end

module Unix = struct
  include Unix

  open struct
    (* [transfer] a part, of at most 64 KiB. *)
    let part name array position length transfer =
      let chars = Chars.of_array ("Unix." ^ name) array position length in
      transfer chars (min length 65536)
  end

  let read_bigarray descriptor array position length =
    part "read_bigarray" array position length (fun chars room ->
        let buffer = Bytes.create room in
        let count = read descriptor buffer 0 room in
        Chars.of_bytes chars position buffer count;
        count)

  let single_write_bigarray descriptor array position length =
    part "single_write_bigarray" array position length (fun chars count ->
        single_write descriptor (Chars.to_bytes chars position count) 0 count)

  let write_bigarray descriptor array position length =
    let rec from position left =
      if left > 0 then
        let written =
          part "write_bigarray" array position left (fun chars count ->
              write descriptor (Chars.to_bytes chars position count) 0 count)
        in
        from (position + written) (left - written)
    in
    ignore (Chars.of_array "Unix.write_bigarray" array position length);
    from position length;
    length
end

module UnixLabels = struct
  include UnixLabels

  let read_bigarray descriptor ~buf ~pos ~len = Unix.read_bigarray descriptor buf pos len
  let write_bigarray descriptor ~buf ~pos ~len = Unix.write_bigarray descriptor buf pos len
  let single_write_bigarray descriptor ~buf ~pos ~len = Unix.single_write_bigarray descriptor buf pos len
end

module Atomic = struct
  include Stdlib.Atomic

  let make_contended = make
end

(* (Behind `include Stdlib` the names are Stdlib's.) *)
open struct
  module Ocaml5 = struct
    module Array = Array
    module ArrayLabels = ArrayLabels
    module Atomic = Atomic
    module Bool = Bool
    module Bytes = Bytes
    module BytesLabels = BytesLabels
    module Char = Char
    module Condition = Condition
    module Digest = Digest
    module Domain = Domain
    module Dynarray = Dynarray
    module Effect = Effect
    module Ephemeron = Ephemeron
    module Filename = Filename
    module Float = Float
    module Format = Format
    module Fun = Fun
    module Hashtbl = Hashtbl
    module In_channel = In_channel
    module Int = Int
    module Int32 = Int32
    module Int64 = Int64
    module List = List
    module ListLabels = ListLabels
    module Map = Map
    module MoreLabels = MoreLabels
    module Mutex = Mutex
    module Nativeint = Nativeint
    module Out_channel = Out_channel
    module Printexc = Printexc
    module Queue = Queue
    module Random = Random
    module Scanf = Scanf
    module Semaphore = Semaphore
    module Seq = Seq
    module Set = Set
    module Stack = Stack
    module StdLabels = StdLabels
    module String = String
    module StringLabels = StringLabels
    module Sys = Sys
    module Type = Type
    module Uchar = Uchar
  end
end

module Stdlib = struct
  include Stdlib
  include Ocaml5
end
