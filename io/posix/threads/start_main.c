/* SPDX-License-Identifier: MIT */
/*
 * The library that haft-threads preloads, before libhaft-posix: the C library's start of a program
 * calls the program's main by a task of a run, and pthread_create makes tasks
 * (haft_posix_main_as_task, haft/posix.h). Programs that the program starts are threaded as ever.
 *
 * HAFT_THREADS is how many threads of the system the tasks run on, 1 if it is unset.
 * HAFT_THREADS_WATCHDOG is after how many seconds a thread is reported that keeps the others from
 * running, 10 if it is unset, 0: never.
 * HAFT_THREADS_WITHOUT is what LD_PRELOAD is set to for the programs that this one starts.
 */
#include <haft/io.h>
#include <haft/posix.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef int main_t(int, char **, char **);

static main_t *program;

static void hide_from_children(void) {
    const char *before = getenv("HAFT_THREADS_WITHOUT");
    if (before != NULL && before[0] != '\0')
        setenv("LD_PRELOAD", before, 1);
    else
        unsetenv("LD_PRELOAD");
    unsetenv("HAFT_THREADS_WITHOUT");
}

/* The size that threads have; only pages that are used take memory. */
static size_t stack_size(void) {
    enum { LARGEST = 8 << 20 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > LARGEST)
        return LARGEST;
    return (size_t)limit.rlim_cur;
}

static int number_of(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

static int main_as_task(int count, char **arguments, char **environment) {
    haft_io_run_options_t options = {.threads = number_of("HAFT_THREADS", 1),
                                     .watchdog =
                                         number_of("HAFT_THREADS_WATCHDOG", 10) * HAFT_IO_SECOND,
                                     .stack_size = stack_size()};
    hide_from_children();
    int code = haft_posix_main_as_task(&options, program, count, arguments, environ);
    if (code == 0)
        exit(0); /* main has ended by pthread_exit, and so has the last thread */
    fprintf(stderr, "haft-threads: threads of the system are used: %s\n",
            haft_io_own_thread_locals_refused() != NULL ? haft_io_own_thread_locals_refused()
                                                        : strerror(-code));
    return program(count, arguments, environment);
}

typedef int start_t(main_t *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
start_t __libc_start_main;

__attribute__((visibility("default"))) int
__libc_start_main(main_t *main, int count, char **arguments, void (*begin)(void), void (*end)(void),
                  void (*loader_ends)(void), void *stack_end) {
    void *found = dlsym(RTLD_NEXT, "__libc_start_main");
    start_t *start;
    memcpy(&start, &found, sizeof start);
    program = main;
    return start(main_as_task, count, arguments, begin, end, loader_ends, stack_end);
}
