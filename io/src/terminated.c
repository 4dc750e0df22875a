/* SPDX-License-Identifier: MIT */
/*
 * std::terminate on a task, in programs of C++: before the program ends, a message on standard
 * error names the task, the place, and the reason why a cancel could not pass. (For a stack that is
 * unwound by force, core prints the reason.)
 */
#include "workers.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Functions of the runtime of C++, if there is one. */
typedef void terminate_t(void);
extern terminate_t *cxx_set_terminate(terminate_t *handler) __asm__("_ZSt13set_terminatePFvvE")
    __attribute__((weak));
extern terminate_t *cxx_get_terminate(void) __asm__("_ZSt13get_terminatev") __attribute__((weak));
typedef struct type_info {
    const void *table;
    const char *name;
} type_info_t;
extern const type_info_t *__cxa_current_exception_type(void) __attribute__((weak));

static terminate_t *before;

static bool is_cancel(void) {
    const type_info_t *type = __cxa_current_exception_type ? __cxa_current_exception_type() : NULL;
    return type != NULL && strcmp(type->name, "N4haft2io9cancelledE") == 0;
}

static void tell(const haft_io_task_t *task) {
    enum { MOST = 64 };
    void *addresses[MOST];
    dprintf(STDERR_FILENO, "haft-io: std::terminate was called on the task '%s'%s\n",
            haft_io_task_name(task),
            is_cancel() ? ", whose cancel cannot pass a function that is noexcept, as every "
                          "destructor is. Wait there in haft::io::shield, or not at all. It was "
                          "called here:"
                        : ", here:");
    backtrace_symbols_fd(addresses, backtrace(addresses, MOST), STDERR_FILENO);
}

static void terminated(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task != NULL)
        tell(task);
    if (before != NULL)
        before();
    abort();
}

static void watch_terminations(void) {
    before = cxx_set_terminate(terminated);
}

void hafti_io_watch_terminate(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    if (cxx_set_terminate)
        pthread_once(&watched, watch_terminations);
}

static __attribute__((destructor)) void watch_no_more(void) {
    if (cxx_get_terminate && cxx_get_terminate() == terminated)
        cxx_set_terminate(before);
}
