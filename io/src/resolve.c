/* SPDX-License-Identifier: MIT */
/* Resolving names, which the system's library does on a thread of the pool. */
#include "objects.h"
#include "tape/addresses.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

/* In memory of its own, because the asking task may have gone when the answer comes. */
typedef struct resolve_call {
    const char *host, *service; /* or NULL */
    const struct addrinfo *hints;
    struct addrinfo copy_of_hints, *result;
    int code;
    int error; /* errno of the thread that has called */
    char texts[];
} resolve_call_t;

static void call_resolve(void *argument) {
    resolve_call_t *call = argument;
    call->code = getaddrinfo(call->host, call->service, call->hints, &call->result);
    call->error = errno;
}

static void leave_resolve(void *argument) {
    resolve_call_t *call = argument;
    if (call->result != NULL)
        freeaddrinfo(call->result);
    free(call);
}

static resolve_call_t *resolve_call_new(const char *host, const char *service,
                                        const struct addrinfo *hints) {
    size_t host_size = host != NULL ? strlen(host) + 1 : 0;
    size_t service_size = service != NULL ? strlen(service) + 1 : 0;
    resolve_call_t *call = calloc(1, sizeof *call + host_size + service_size);
    if (call == NULL)
        return NULL;
    if (host != NULL)
        call->host = memcpy(call->texts, host, host_size);
    if (service != NULL)
        call->service = memcpy(call->texts + host_size, service, service_size);
    if (hints != NULL) {
        call->copy_of_hints = *hints;
        call->hints = &call->copy_of_hints;
    }
    return call;
}

static int code_of_resolver(const resolve_call_t *call) {
    switch (call->code) {
    case 0:
        return 0;
    case EAI_SYSTEM:
        return -call->error;
    case EAI_MEMORY:
        return -ENOMEM;
    default:
        return HAFT_IO_ERROR_OF_RESOLVER + call->code;
    }
}

static int resolve(const char *host, const char *service, const struct addrinfo *hints,
                   struct addrinfo **result) {
    const haft_io_calls_t *calls = hafti_io_network_calls();
    if (host != NULL && calls->host_of != NULL) /* a simulation's */
        host = calls->host_of(host, hints != NULL ? hints->ai_family : AF_UNSPEC);
    resolve_call_t *call = resolve_call_new(host, service, hints);
    if (call == NULL)
        return -ENOMEM;
    int code = hafti_io_call_or_leave(call_resolve, call, leave_resolve);
    if (code != 0)
        return code;
    code = code_of_resolver(call);
    if (code == 0)
        *result = call->result;
    free(call);
    return code;
}

int haft_io_resolve(const char *host, const char *service, const struct addrinfo *hints,
                    struct addrinfo **result) {
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL call = hafti_io_tape_begins(HAFTI_IO_TAPED_RESOLVE, -1, &entry);
    if (HAFTI_IO_UNLIKELY(entry != NULL))
        return hafti_io_taped_addresses(entry, result);
    int code = resolve(host, service, hints, result);
    return call.tape == NULL ? code
                             : hafti_io_tape_addresses(&call, code, code == 0 ? *result : NULL);
}
