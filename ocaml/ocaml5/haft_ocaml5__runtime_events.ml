(* SPDX-License-Identifier: MIT *)
(* Without events: nothing is recorded, and a cursor reads nothing. *)

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
