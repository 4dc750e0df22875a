/* -fsplit-stack code, linked in every way that is supported: it runs on plain threads (limit word
   0) and on segments, and with -DCALLS_UNASKED (gold finds the functions that do not check their
   stack) calls printf from a segment as if nothing were special. */
#include "foreign.h"
#include "harness.h"

#include <pthread.h>
#include <stdarg.h>

HAFT_FOREIGN(int, on_thread_nothing, foreign_nothing)

static __attribute__((noinline)) int deep(int depth) {
    volatile char frame[200];
    frame[0] = 1;
    return depth == 0 ? 0 : frame[0] + deep(depth - 1);
}

#ifdef CALLS_UNASKED
static __attribute__((noinline)) int format(char *buffer, size_t size, int depth) {
    volatile char frame[600];
    frame[0] = 1;
    return depth == 0 ? snprintf(buffer, size, "%d %Lf", 17, 2.5L)
                      : frame[0] - 1 + format(buffer, size, depth - 1);
}

#    ifndef __clang__
static __attribute__((noinline)) int variadic_format(char *buffer, size_t size, const char *text,
                                                     ...) {
    va_list arguments;
    va_start(arguments, text);
    int length = vsnprintf(buffer, size, text, arguments);
    va_end(arguments);
    return length;
}
#    endif
#endif

static void run(void *argument) {
    int *result = argument;
    CHECK(deep(10000) == 10000);
    CHECK(on_thread_nothing() == 42);
#ifdef CALLS_UNASKED
    char buffer[100];
    for (int depth = 0; depth < 50; depth++) {
        CHECK(format(buffer, sizeof buffer, depth) == 11 && buffer[0] == '1' && buffer[10] == '0');
        CHECK(foreign_nothing_anywhere() == 42);
#    ifndef __clang__
        CHECK(variadic_format(buffer, sizeof buffer, "%d %d %d %d %.1f %.1f", 1, 2, 3, 4, 1.5,
                              2.5) == 15);
        CHECK(buffer[0] == '1' && buffer[6] == '4' && buffer[14] == '5');
#    endif
    }
#endif
    *result = 1;
}

static void *thread(void *argument) {
    run(argument);
    return NULL;
}

int main(void) {
    int result = 0;
    pthread_t started;
    run(&result);
    CHECK(result == 1);
    result = 0;
    CHECK(pthread_create(&started, NULL, thread, &result) == 0);
    pthread_join(started, NULL);
    CHECK(result == 1);
    result = 0;
    run_on_new_segments(1024, run, &result);
    CHECK(result == 1);
    return 0;
}
/* SPDX-License-Identifier: MIT */
