/* What the tests of libhaft-io share: the checks of core's tests, and a run that has to end well. */
#ifndef HAFT_IO_TESTS_CHECK_H
#define HAFT_IO_TESTS_CHECK_H

#include "../../core/tests/check.h"

#include <haft/io.h>

#include <errno.h>

/* Declares a body without argument or result. */
#define BODY(name) static void *name(__attribute__((unused)) void *argument)

/* Runs the body as a program's first task. */
#define CHECK_RUNS(body) CHECK_EQUAL(haft_io_run(body, NULL, NULL), 0)

/* Ends the program as one that cannot run where the back end that the environment asks for is refused. */
static inline void *check_nothing(void *argument) {
    return argument;
}
static inline void check_backend(void) {
    const char *name = getenv("HAFT_IO_BACKEND");
    if (name == NULL)
        return;
    int code = haft_io_run(check_nothing, NULL, NULL);
    if (code == 0)
        return;
    printf("%s: %s\n", name, strerror(-code));
    exit(77);
}

static inline void *check_number(intptr_t number) {
    return (void *)number;
}

#endif
