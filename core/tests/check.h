/* SPDX-License-Identifier: MIT */
/*
 * Helpers for all tests: checks that print the place and the values and go on, and running a
 * function in a forked child to see how it ends.
 *
 * A test is a function with the name of the behaviour that it protects. A test program ends with
 * `return check_end()`: 0 when every check held, 77 when they did but a part could not run here.
 */
#ifndef HAFT_TESTS_CHECK_H
#define HAFT_TESTS_CHECK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#    include <valgrind/valgrind.h>
#else
#    define RUNNING_ON_VALGRIND 0
#endif

#include "sanitizers.h"

/* Where faults, address-space limits and resident memory are as on a bare machine, and code runs at
   full speed. */
static inline bool check_bare(void) {
    return !CHECK_ADDRESS_SANITIZER && !CHECK_THREAD_SANITIZER && !RUNNING_ON_VALGRIND;
}

/* How often to repeat something: fewer times under tools that slow it down. */
static inline int check_times(int bare) {
    return check_bare() ? bare : bare / 20 + 1;
}

static int check_failures;
static int check_tests;
static const char *check_running = "";
/* The thing that this machine lacks, so that a part of the test was left out; or NULL. */
static const char *check_lacks;

static inline void check_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: in %s: %s", file, line, check_running, what);
    __atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, "not so: " #condition "\n");                          \
    } while (0)

/* Integers, as long long. */
#define CHECK_EQUAL(actual, expected)                                                              \
    check_equal(__FILE__, __LINE__, #actual, (long long)(actual), (long long)(expected))
static inline void check_equal(const char *file, int line, const char *what, long long actual,
                               long long expected) {
    if (actual == expected)
        return;
    check_failed(file, line, what);
    fprintf(stderr, " is %lld, expected %lld\n", actual, expected);
}

#define CHECK_SAME_TEXT(actual, expected) check_text(__FILE__, __LINE__, actual, expected, true)
#define CHECK_CONTAINS(text, part) check_text(__FILE__, __LINE__, text, part, false)
static inline void check_text(const char *file, int line, const char *text, const char *expected,
                              bool whole) {
    if (whole ? strcmp(text, expected) == 0 : strstr(text, expected) != NULL)
        return;
    check_failed(file, line, whole ? "expected the text\n" : "expected a text with\n");
    fprintf(stderr, "  %s\ngot\n  %s\n", expected, text);
}

#define RUN(test) check_run(#test, test)
static inline void check_run(const char *name, void (*test)(void)) {
    check_running = name;
    check_tests++;
    int before = check_failures;
    test();
    if (check_failures != before)
        fprintf(stderr, "FAILED %s\n", name);
}

static inline int check_end(void) {
    printf("%d tests\n", check_tests);
    if (check_lacks != NULL)
        printf("what needs %s cannot run here\n", check_lacks);
    return check_failures != 0 ? 1 : check_lacks != NULL ? 77 : 0;
}

/* ---- Children ---- */

typedef struct check_ended {
    int signal; /* that ended it; 0: it exited */
    int status; /* with which it exited */
    char output[16384];
} check_child_t;

/* Runs a function in a child process and returns how the child ended and what it wrote on standard
   error. */
static inline check_child_t check_child(void (*function)(void)) {
    check_child_t child = {0, 0, ""};
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    fflush(NULL);
    pid_t id = fork();
    if (id < 0)
        abort();
    if (id == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm(120);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        check_failures = 0;
        function();
        fflush(NULL);
        _exit(check_failures == 0 ? 0 : 1);
    }
    close(ends[1]);
    size_t length = 0;
    char spill[512];
    for (;;) {
        size_t room = sizeof child.output - 1 - length;
        ssize_t got = room != 0 ? read(ends[0], child.output + length, room)
                                : read(ends[0], spill, sizeof spill);
        if (got <= 0)
            break;
        length += room != 0 ? (size_t)got : 0;
    }
    child.output[length] = '\0';
    close(ends[0]);
    int status;
    while (waitpid(id, &status, 0) != id)
        continue;
    child.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return child;
}

/* The child reports a mistake with this message, and aborts. */
#define CHECK_ABORTS(function, message) check_dies(__FILE__, __LINE__, function, SIGABRT, message)
/* The child writes this message and dies by a fault. */
#define CHECK_FAULTS(function, message) check_dies(__FILE__, __LINE__, function, SIGSEGV, message)
static inline void check_dies(const char *file, int line, void (*function)(void), int number,
                              const char *message) {
    check_child_t child = check_child(function);
    /* Sanitizers catch the signal of a fault and exit. */
    bool caught = !check_bare() && number == SIGSEGV && child.status != 0;
    if (child.signal != number && !caught) {
        check_failed(file, line, "");
        fprintf(stderr,
                "the child ended by signal %d, status %d; expected signal %d; it wrote\n%s\n",
                child.signal, child.status, number, child.output);
    } else {
        check_text(file, line, child.output, message, false);
    }
}

/* The child runs to its end and its own checks hold. */
#define CHECK_SUCCEEDS(function) check_succeeds(__FILE__, __LINE__, function)
static inline void check_succeeds(const char *file, int line, void (*function)(void)) {
    check_child_t child = check_child(function);
    if (child.signal == 0 && child.status == 0)
        return;
    check_failed(file, line, "");
    fprintf(stderr, "the child ended by signal %d, status %d; it wrote\n%s\n", child.signal,
            child.status, child.output);
}

#endif
