/* SPDX-License-Identifier: MIT */
/* Mistakes in the use of the library: a message, and the end of the process. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void haft_io_misuse(const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "haft-io: %s\n", message);
    const haft_io_worker_t *worker = haft_io_worker();
    if (worker != NULL && worker->simulated != NULL)
        fprintf(stderr, "haft-io: the seed was %llu\n",
                (unsigned long long)worker->simulated->seed);
    fflush(stderr);
    abort();
}
