/* SPDX-License-Identifier: MIT */
/* Work of the library when its process, or a thread that uses it, begins and ends. */
#include "whole.h"

static bool process_starts(void) {
    haft_tools_detect();
    haft_leaks_watch();
    haft_overflow_watch();
    haft_fibers_watch_forks();
    haft_process_knows();
    return haft_tools_active;
}

static void thread_starts(hafti_thread_t *thread) {
    haft_tools_thread_start();
    haft_overflow_watch_thread(thread);
}

static void thread_ends(hafti_thread_t *thread) {
    haft_language_thread_exits(thread);
    haft_pool_thread_exit(thread);
    haft_tools_thread_exit();
    haft_overflow_unwatch_thread(thread);
    haft_foreign_stack_free(thread);
}

const haft_life_t haft_life = {process_starts, thread_starts, thread_ends};
