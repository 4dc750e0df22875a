/* SPDX-License-Identifier: MIT */
/* Helpers for libhaft-io's tests: the checks of core's tests, and a run that has to end well. */
#ifndef HAFT_IO_TESTS_CHECK_H
#define HAFT_IO_TESTS_CHECK_H

#include "../../core/tests/check.h"

#include <haft/io_binding.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if CHECK_THREAD_SANITIZER
/* liburing unmaps a ring by a system call that the sanitizer does not see: it takes the next ring
   at that address, another thread's, for the same memory. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:io_uring_\n";
}
#endif

/* Whether fibers can be followed in a child of fork: the thread sanitizer sees races between those
   of one thread there. */
static inline bool check_follows_children(void) {
    return !CHECK_THREAD_SANITIZER;
}

/* Declares a body without argument or result. */
#define BODY(name) static void *name(__attribute__((unused)) void *argument)

/* Runs the body as a program's first task. */
#define CHECK_RUNS(body) CHECK_EQUAL(haft_io_run(body, NULL), 0)

/* With HAFT_IO_MOVES in the environment, the tasks of runs of several threads move. */
static inline bool check_moves(void) {
    return getenv("HAFT_IO_MOVES") != NULL;
}
/* A run whose first task is unwound ends well, but that has not checked what comes then: here it is
   an error. */
typedef struct check_first_task {
    void *(*function)(void *);
    void *argument;
    bool has_returned;
} check_first_task_t;
static inline void *check_run_first_task(void *argument) {
    check_first_task_t *task = (check_first_task_t *)argument;
    void *result = task->function(task->argument);
    task->has_returned = true;
    return result;
}
static inline int check_io_run_with(const haft_io_run_options_t *given, void *(*main)(void *),
                                    void *argument) {
    check_first_task_t task = {main, argument, false};
    haft_io_run_options_t options;
    if (given != NULL && check_moves()) {
        options = *given;
        options.moves = true;
        given = &options;
    }
    int code = haft_io_run_with(given, main != NULL ? check_run_first_task : NULL, &task);
    return code == 0 && !task.has_returned ? -ECANCELED : code;
}
static inline int check_io_simulate_with(const haft_io_simulation_options_t *given,
                                         void *(*main)(void *), void *argument) {
    check_first_task_t task = {main, argument, false};
    int code = haft_io_simulate_with(given, main != NULL ? check_run_first_task : NULL, &task);
    return code == 0 && !task.has_returned ? -ECANCELED : code;
}
#define haft_io_run(main, argument) check_io_run_with(NULL, main, argument)
#define haft_io_run_with check_io_run_with
#define haft_io_simulate(main, argument) check_io_simulate_with(NULL, main, argument)
#define haft_io_simulate_with check_io_simulate_with

/* Ends the program as one that cannot run where the back end that the environment asks for is
   refused. */
static inline void *check_nothing(void *argument) {
    return argument;
}
static inline void check_backend(void) {
    const char *name = getenv("HAFT_IO_BACKEND");
    if (name == NULL)
        return;
    int code = haft_io_run(check_nothing, NULL);
    if (code == 0)
        return;
    printf("%s: %s\n", name, strerror(-code));
    exit(77);
}

/* Calls the function with options for each back end that the system has, on one thread and two. */
static inline void check_everywhere(void (*function)(const haft_io_run_options_t *options)) {
    static const char *const backends[] = {"epoll", "io_uring"};
    for (int i = 0; i < 4; i++) {
        haft_io_run_options_t options = {.threads = 1 + i % 2, .backend = backends[i / 2]};
        const char *only = getenv("HAFT_IO_BACKEND");
        if (only != NULL && strcmp(only, options.backend) != 0)
            continue;
        /* Valgrind lets no other thread run while one waits in io_uring. */
        if (RUNNING_ON_VALGRIND && i / 2 == 1)
            return;
        if (haft_io_run_with(&options, check_nothing, NULL) == 0)
            function(&options);
    }
}

/* The same, and once more with thread-locals of the tasks' own, where these can be had. */
static void (*check_of_both_ways)(const haft_io_run_options_t *options);
static inline void check_both_ways(const haft_io_run_options_t *options) {
    haft_io_run_options_t own = *options;
    own.own_thread_locals = true;
    check_of_both_ways(options);
    if (haft_io_own_thread_locals_refused() == NULL)
        check_of_both_ways(&own);
}
static inline void check_everywhere_twice(void (*function)(const haft_io_run_options_t *options)) {
    check_of_both_ways = function;
    check_everywhere(check_both_ways);
}

/* A simulation by the seed, which decides whether counts are short, too, where they need not be. */
static inline int check_simulate(void *(*body)(void *), uint64_t seed,
                                 haft_io_simulation_options_t how) {
    how.seed = seed;
    how.short_counts |= seed % 2 != 0;
    return haft_io_simulate_with(&how, body, NULL);
}
/* With so many seeds: the orders of what happens at the same time differ. */
static inline void check_seeds(void *(*body)(void *), int count, haft_io_simulation_options_t how) {
    int before = check_failures;
    for (int seed = 1; seed <= count && check_failures == before; seed++)
        CHECK_EQUAL(check_simulate(body, (uint64_t)seed, how), 0);
}

/* For how many seconds, or over how many plans, to go on with what can go on for as long as one
   likes: by the variable of the environment, or else by the campaign. */
static inline double check_campaign(const char *variable, double in_short, double in_long) {
    const char *text = getenv(variable), *campaign = getenv("HAFT_CAMPAIGN");
    if (text != NULL)
        return strtod(text, NULL);
    return campaign != NULL && strcmp(campaign, "long") == 0 ? in_long : in_short;
}

/* The share of one run in the half a minute that the thread sanitizer's long campaign gives to work
   stealing and to channels. A test has four runs: by default, on each back end, with tasks that
   move. */
enum { CHECK_RACE_SECONDS = CHECK_THREAD_SANITIZER ? 8 : 0 };

/* How many this process has. */
static inline int check_descriptors(void) {
    int count = 0;
    for (int i = 0; i < 1024; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* A file of no name, with the text. */
static inline int check_file_with(const char *text) {
    char path[] = "/tmp/haft-io-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    CHECK_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    return file;
}

static inline void *check_number(intptr_t number) {
    return (void *)number;
}

#endif
