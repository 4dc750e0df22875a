/* SPDX-License-Identifier: MIT */
/* Lines of the log. The line of a task that has failed is written on the stack of the task, before
   that is unwound. */
#include "internal.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes a line to the log, without bytes that a terminal would obey. */
void hafti_http_log(const haft_http_server_t *server, const char *format, ...) {
    char line[1024];
    if (server->log == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *byte = line; *byte != '\0'; byte++)
        if ((unsigned char)*byte < ' ' || *byte == 127)
            *byte = '?';
    server->log(server->log_argument, line);
}

static void log_backtrace(const haft_http_server_t *server) {
    enum { MOST = 32, OWN = 2 /* of this file */ };
    void *addresses[MOST];
    int count = backtrace(addresses, MOST);
    char **names = backtrace_symbols(addresses, count);
    for (int i = OWN; i < count && names != NULL; i++)
        hafti_http_log(server, "    %s", names[i]);
    free(names);
}

void hafti_http_log_failure(const haft_http_server_t *server, const char *what,
                            const haft_io_failure_t *failure) {
    if (server->log == NULL)
        return;
    const hafti_http_served_t *served = haft_io_own_get();
    const haft_http_request_t *request = served != NULL ? served->request : NULL;
    hafti_http_log(server, "%s%s%s%s has failed: %s (%s), in the task '%s'",
                   request != NULL ? request->method : "", request != NULL ? " " : "",
                   request != NULL ? haft_http_request_target(request) : "",
                   request != NULL ? ": a handler" : what,
                   failure->message != NULL ? failure->message : "",
                   haft_io_error_text(failure->code), failure->task);
    log_backtrace(server);
}
