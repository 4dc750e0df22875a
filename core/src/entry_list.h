/* SPDX-License-Identifier: MIT */
/*
 * The functions of the library that need more stack than a segment promises. A program calls them
 * by their names and gets arch/x86_64/entries.S, which makes room if it must and goes on to the
 * function itself; that is compiled as haft_entry_NAME, which calls within the library use directly.
 *
 * The list, for entries.h and entries.S: HAFT_ENTRY_FOREIGN(NAME) does not switch and runs on the thread's
 * foreign stack; HAFT_ENTRY_STAYS(NAME, ROOM) stays on the fiber, as a frame between the one that it
 * resumes, or suspends, and its code, and has ROOM bytes for itself and what it calls in the system.
 */
#define HAFT_ENTRY_ROOM 6144

HAFT_ENTRY_FOREIGN(lookup)
HAFT_ENTRY_FOREIGN(lookup_at)
HAFT_ENTRY_FOREIGN(locate)
HAFT_ENTRY_FOREIGN(unhandled)
HAFT_ENTRY_FOREIGN(no_reply)
HAFT_ENTRY_FOREIGN(no_case)
HAFT_ENTRY_FOREIGN(resume_raced)
HAFT_ENTRY_FOREIGN(used_resumption)
HAFT_ENTRY_FOREIGN(fiber_new)
HAFT_ENTRY_FOREIGN(fiber_new_sized)
HAFT_ENTRY_FOREIGN(fiber_detach)
HAFT_ENTRY_FOREIGN(handles_changed)
HAFT_ENTRY_FOREIGN(fiber_reserve)
HAFT_ENTRY_FOREIGN(set_stack_size)
HAFT_ENTRY_FOREIGN(fiber_backtrace)
HAFT_ENTRY_FOREIGN(fibers_dump)
HAFT_ENTRY_FOREIGN(dump_on_signal)
HAFT_ENTRY_FOREIGN(pool_report_sized)
HAFT_ENTRY_FOREIGN(pool_trim)
HAFT_ENTRY_FOREIGN(reply)
HAFT_ENTRY_FOREIGN(in_place_moved)
HAFT_ENTRY_FOREIGN(language_register)
HAFT_ENTRY_FOREIGN(language_thread)
HAFT_ENTRY_FOREIGN(language_take)
HAFT_ENTRY_FOREIGN(language_give)
HAFT_ENTRY_FOREIGN(language_moved)

HAFT_ENTRY_STAYS(resume_slow, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(resume_checked, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(resume_calling, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(discontinue, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(fiber_drop, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(fiber_reset, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(handle, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(handle_sized, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(resumption_resume, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(resumption_discontinue, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(resumption_drop, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(perform, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(yield, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(yield_slow, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(throw, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(exit, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(unwind_to, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(misused, HAFT_ENTRY_ROOM)
HAFT_ENTRY_STAYS(language_leave, HAFT_ENTRY_ROOM)

/* They leave it at what a segment promises, where the compiler makes their frames small: a fiber that waits
   on its first segment shall not need a second one for that. */
#ifndef __OPTIMIZE__
HAFT_ENTRY_STAYS(suspend_slow, 1536)
#endif

#undef HAFT_ENTRY_FOREIGN
#undef HAFT_ENTRY_STAYS
#undef HAFT_ENTRY_ROOM
