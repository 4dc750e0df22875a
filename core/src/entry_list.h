/* SPDX-License-Identifier: MIT */
/*
 * The functions of the library that need more stack than a segment promises. A program calls them
 * by their names and gets arch/x86_64/entries.S, which makes room if it must and goes on to the
 * function itself; that is compiled as NAME_entry, which calls within the library use directly.
 *
 * The list, for entries.h and entries.S: HAFT_ENTRY_FOREIGN(NAME) does not switch and runs on the
 * thread's foreign stack; HAFT_ENTRY_STAYS(NAME, ROOM) stays on the fiber, as a frame between the
 * one that it resumes, or suspends, and its code, and has ROOM bytes for itself and what it calls
 * in the system. HAFT_ENTRY_RESUMES(NAME, SHORT, ROOMY, ROOM) does so, too, but first tries the
 * function SHORT, which makes do with the slack of a segment, and goes on to ROOMY where it finds
 * more to do. HAFT_ENTRY_ENDS(NAME, ROOM): the argument is a fiber, or NULL; one that has finished
 * is ended on the foreign stack.
 */
#define HAFT_ENTRY_ROOM 6144

HAFT_ENTRY_FOREIGN(hafti_lookup)
HAFT_ENTRY_FOREIGN(haft_lookup_at)
HAFT_ENTRY_FOREIGN(haft_locate)
HAFT_ENTRY_FOREIGN(hafti_unhandled)
HAFT_ENTRY_FOREIGN(hafti_no_reply)
HAFT_ENTRY_FOREIGN(hafti_no_case)
HAFT_ENTRY_FOREIGN(hafti_resume_raced)
HAFT_ENTRY_FOREIGN(haft_used_resumption)
HAFT_ENTRY_FOREIGN(haft_fiber_new)
HAFT_ENTRY_FOREIGN(hafti_fiber_new_sized)
HAFT_ENTRY_FOREIGN(haft_fiber_detach)
HAFT_ENTRY_FOREIGN(haft_handles_changed)
HAFT_ENTRY_FOREIGN(haft_fiber_reserve)
HAFT_ENTRY_FOREIGN(haft_set_stack_size)
HAFT_ENTRY_FOREIGN(haft_fiber_backtrace)
HAFT_ENTRY_FOREIGN(haft_fibers_dump)
HAFT_ENTRY_FOREIGN(haft_dump_on_signal)
HAFT_ENTRY_FOREIGN(hafti_pool_report_sized)
HAFT_ENTRY_FOREIGN(haft_pool_trim)
HAFT_ENTRY_FOREIGN(haft_reply)
HAFT_ENTRY_FOREIGN(hafti_in_place_moved)
HAFT_ENTRY_FOREIGN(haft_language_register)
HAFT_ENTRY_FOREIGN(haft_language_thread)
HAFT_ENTRY_FOREIGN(haft_language_take)
HAFT_ENTRY_FOREIGN(haft_language_give)
HAFT_ENTRY_FOREIGN(haft_language_moved)
HAFT_ENTRY_FOREIGN(haft_know_frames_of)
HAFT_ENTRY_FOREIGN(haft_observe)

HAFT_ENTRY_RESUMES(hafti_resume_slow, haft_resume_shortly, haft_resume_with_room, HAFT_ENTRY_ROOM)
HAFT_ENTRY_RESUMES(hafti_resume_checked, haft_resume_checked_shortly, haft_resume_checked_with_room,
                   HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_resume_calling, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_resume_unwinding, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_discontinue, HAFT_ENTRY_ROOM)
HAFT_ENTRY_ENDS(haft_fiber_drop, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_fiber_reset, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_handle, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(hafti_handle_sized, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(hafti_resumption_resume_slow, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_resumption_discontinue, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_resumption_drop, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_resumption_copy, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_copy_looked_at, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(hafti_tail_resume_slow, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_perform, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_yield, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(hafti_yield_slow, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_throw, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_exit, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_unwind_to, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_misused, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(haft_language_leave, HAFT_ENTRY_ROOM)

/* Where the compiler makes frames small, hafti_suspend_slow makes do with the slack of a segment: a
   fiber that waits on its first segment shall not need a second one for that. (Only entries.S reads
   the room. It may be assembled with other flags than the C sources are compiled with.) */
#ifdef __OPTIMIZE__
HAFT_ENTRY_STAYS(hafti_suspend_slow, 0)
#else
HAFT_ENTRY_STAYS(hafti_suspend_slow, 1536)
#endif

#undef HAFT_ENTRY_FOREIGN
#undef HAFT_ENTRY_STAYS
#undef HAFT_ENTRY_RESUMES
#undef HAFT_ENTRY_ENDS
#undef HAFT_ENTRY_ROOM
