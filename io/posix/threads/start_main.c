/* SPDX-License-Identifier: MIT */
/*
 * The library that haft-threads preloads, before libhaft-posix: the C library's start of a program
 * calls the program's main by a task of a run, and pthread_create makes tasks
 * (haft_posix_main_as_task, haft/posix.h). Programs that the program starts are threaded as ever,
 * but not the one by which it is replaced (exec): a script that only finds the program is such a
 * one.
 *
 * HAFT_THREADS is the number of threads of the system on which the tasks run, 1 if it is unset.
 * HAFT_THREADS_WATCHDOG is the number of seconds after which a thread that keeps the others from
 * running is reported, 10 if it is unset, 0: never. HAFT_THREADS_WITHOUT is the value of LD_PRELOAD
 * for the programs that this one starts.
 */
#include "streams.h"

#include <haft/io.h>
#include <haft/posix.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef int main_t(int, char **, char **);

static main_t *program;

/* ---- The environment ---- */

static const char *const names[] = {"LD_PRELOAD", "HAFT_THREADS_WITHOUT"};
enum { NAMES = sizeof names / sizeof names[0] };
static char *given[NAMES]; /* to this program, as NAME=VALUE */
static pid_t process;

static void hide_from_children(void) {
    const char *before = getenv("HAFT_THREADS_WITHOUT");
    process = getpid();
    for (int i = 0; i < NAMES; i++) {
        const char *value = getenv(names[i]);
        if (asprintf(&given[i], "%s=%s", names[i], value != NULL ? value : "") < 0)
            given[i] = NULL;
    }
    if (before != NULL && before[0] != '\0')
        setenv("LD_PRELOAD", before, 1);
    else
        unsetenv("LD_PRELOAD");
    unsetenv("HAFT_THREADS_WITHOUT");
}

static bool is_given(const char *entry) {
    for (int i = 0; i < NAMES; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0 && entry[strlen(names[i])] == '=')
            return true;
    return false;
}

/* Returns the environment for the program that replaces this one; in a child, the environment as it
   is. */
static char **environment_of(char *const *environment) {
    size_t count = 0, size = NAMES + 1;
    if (getpid() != process || given[0] == NULL || given[1] == NULL)
        return (char **)(uintptr_t)environment;
    for (char *const *entry = environment; entry != NULL && *entry != NULL; entry++)
        size++;
    char **made = malloc(size * sizeof *made);
    if (made == NULL)
        return (char **)(uintptr_t)environment;
    for (char *const *entry = environment; entry != NULL && *entry != NULL; entry++)
        if (!is_given(*entry))
            made[count++] = *entry;
    for (int i = 0; i < NAMES; i++)
        made[count++] = given[i];
    made[count] = NULL;
    return made;
}

typedef int exec_t(const char *, char *const *, char *const *);

static int exec_by(const char *function, const char *program_name, char *const *arguments,
                   char *const *environment) {
    void *found = dlsym(RTLD_NEXT, function);
    exec_t *exec;
    memcpy(&exec, &found, sizeof exec);
    char **with = environment_of(environment);
    int code = exec(program_name, arguments, with);
    if (with != environment)
        free(with);
    return code;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int execve(const char *path, char *const arguments[], char *const environment[]) {
    return exec_by("execve", path, arguments, environment);
}
EXPORT int execv(const char *path, char *const arguments[]) {
    return exec_by("execve", path, arguments, environ);
}
EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    return exec_by("execvpe", file, arguments, environment);
}
EXPORT int execvp(const char *file, char *const arguments[]) {
    return exec_by("execvpe", file, arguments, environ);
}

/* ---- main ---- */

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
    haft_threads_wait_in_streams();
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

EXPORT int __libc_start_main(main_t *main, int count, char **arguments, void (*begin)(void),
                             void (*end)(void), void (*loader_ends)(void), void *stack_end) {
    void *found = dlsym(RTLD_NEXT, "__libc_start_main");
    start_t *start;
    memcpy(&start, &found, sizeof start);
    program = main;
    return start(main_as_task, count, arguments, begin, end, loader_ends, stack_end);
}
