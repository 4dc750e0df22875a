/* SPDX-License-Identifier: MIT */
/* The names of things, for people: codes, operations, tasks. */
#include "workers.h"

#include <netdb.h>
#include <string.h>

const char *haft_io_error_text(int code) {
    if (code >= 0)
        return "Success";
    if (code < HAFT_IO_ERROR_OF_RESOLVER)
        return gai_strerror(code - HAFT_IO_ERROR_OF_RESOLVER);
    const char *text = strerrordesc_np(-code);
    return text != NULL ? text : "Unknown error";
}

const char *hafti_io_kind_name(enum hafti_io_kind kind) {
#define NAME(kind, name, events) name,
    static const char *const names[] = {HAFTI_IO_KINDS(NAME)};
    return names[kind];
}

const char *haft_io_task_name(const haft_io_task_t *task) {
    return task->name != NULL ? task->name : "";
}
