/* SPDX-License-Identifier: MIT */
/*
 * The functions of the library that need more stack than a segment promises. A program calls them
 * by their names and gets arch/x86_64/entries.S, which makes room if it must and goes on to the
 * function itself; that is compiled under the name given here, which calls within the library use
 * directly.
 *
 * Included before the declarations. The two lists are one with that of entries.S.
 */
#if defined(__x86_64__) && defined(__linux__) && !defined(HAFT_FREESTANDING)
/* They do not switch: they run on the thread's foreign stack. */
#    pragma redefine_extname haft_lookup haft_entry_lookup
#    pragma redefine_extname haft_lookup_at haft_entry_lookup_at
#    pragma redefine_extname haft_locate haft_entry_locate
#    pragma redefine_extname haft_unhandled haft_entry_unhandled
#    pragma redefine_extname haft_no_reply haft_entry_no_reply
#    pragma redefine_extname haft_no_case haft_entry_no_case
#    pragma redefine_extname haft_resume_raced haft_entry_resume_raced
#    pragma redefine_extname haft_used_resumption haft_entry_used_resumption
#    pragma redefine_extname haft_fiber_new haft_entry_fiber_new
#    pragma redefine_extname haft_fiber_new_sized haft_entry_fiber_new_sized
#    pragma redefine_extname haft_fiber_detach haft_entry_fiber_detach
#    pragma redefine_extname haft_handles_changed haft_entry_handles_changed
#    pragma redefine_extname haft_fiber_reserve haft_entry_fiber_reserve
#    pragma redefine_extname haft_set_stack_size haft_entry_set_stack_size
#    pragma redefine_extname haft_fiber_backtrace haft_entry_fiber_backtrace
#    pragma redefine_extname haft_fibers_dump haft_entry_fibers_dump
#    pragma redefine_extname haft_dump_on_signal haft_entry_dump_on_signal
#    pragma redefine_extname haft_pool_report_sized haft_entry_pool_report_sized
#    pragma redefine_extname haft_pool_trim haft_entry_pool_trim
#    pragma redefine_extname haft_reply haft_entry_reply
#    pragma redefine_extname haft_in_place_moved haft_entry_in_place_moved
#    pragma redefine_extname haft_language_register haft_entry_language_register
#    pragma redefine_extname haft_language_thread haft_entry_language_thread
#    pragma redefine_extname haft_language_take haft_entry_language_take
#    pragma redefine_extname haft_language_give haft_entry_language_give
#    pragma redefine_extname haft_language_moved haft_entry_language_moved
/* They stay on the fiber, as frames between the one that they resume, or suspend, and its code. */
#    pragma redefine_extname haft_resume_slow haft_entry_resume_slow
#    pragma redefine_extname haft_resume_checked haft_entry_resume_checked
#    pragma redefine_extname haft_resume_calling haft_entry_resume_calling
#    pragma redefine_extname haft_discontinue haft_entry_discontinue
#    pragma redefine_extname haft_fiber_drop haft_entry_fiber_drop
#    pragma redefine_extname haft_fiber_reset haft_entry_fiber_reset
#    pragma redefine_extname haft_handle haft_entry_handle
#    pragma redefine_extname haft_handle_sized haft_entry_handle_sized
#    pragma redefine_extname haft_resumption_resume haft_entry_resumption_resume
#    pragma redefine_extname haft_resumption_discontinue haft_entry_resumption_discontinue
#    pragma redefine_extname haft_resumption_drop haft_entry_resumption_drop
#    pragma redefine_extname haft_perform haft_entry_perform
#    pragma redefine_extname haft_yield haft_entry_yield
#    pragma redefine_extname haft_yield_slow haft_entry_yield_slow
#    pragma redefine_extname haft_throw haft_entry_throw
#    pragma redefine_extname haft_exit haft_entry_exit
#    pragma redefine_extname haft_unwind_to haft_entry_unwind_to
#    pragma redefine_extname haft_misused haft_entry_misused
#    pragma redefine_extname haft_language_leave haft_entry_language_leave
#endif
