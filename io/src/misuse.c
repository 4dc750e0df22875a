/* SPDX-License-Identifier: MIT */
/* Mistakes in the use of the library: a message for core's error handler, and the end of the process. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>

void haft_io_misuse(const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const haft_io_worker_t *worker = haft_io_worker();
    if (worker != NULL && worker->simulated != NULL && size >= 0 && size < (int)sizeof message)
        snprintf(message + size, sizeof message - (size_t)size, " (The seed was %llu.)",
                 (unsigned long long)worker->simulated->seed);
    haft_misused(&(haft_error_t){.code = HAFT_ERROR_OF_LIBRARY, .message = message});
}
