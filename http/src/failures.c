/* SPDX-License-Identifier: MIT */
/* What the log says of a handler that has failed: on the stack of its task, before that is
   unwound. */
#include "internal.h"

#include <execinfo.h>
#include <stdlib.h>

static void log_backtrace(const haft_http_server_t *server) {
    enum { MOST = 32, OWN = 2 /* of this file */ };
    void *addresses[MOST];
    int count = backtrace(addresses, MOST);
    char **names = backtrace_symbols(addresses, count);
    for (int i = OWN; i < count && names != NULL; i++)
        hafti_http_log(server, "    %s", names[i]);
    free(names);
}

void hafti_http_log_failure(const haft_http_server_t *server, const haft_io_failure_t *failure) {
    if (server->log == NULL)
        return;
    hafti_http_log(server, "a handler has failed: %s (%s), in the task '%s'",
                   failure->message != NULL ? failure->message : "",
                   haft_io_error_text(failure->code), failure->task);
    log_backtrace(server);
}
