/* SPDX-License-Identifier: MIT */
/*
 * What can only block, and is done by the pool: names, which the C library resolves with its own sockets,
 * and waiting for any child. (One child is a descriptor, and can be waited for as such.)
 */
#include "internal.h"

#include <sys/syscall.h>

/* ---- Names ---- */

typedef struct names_call {
    enum { ADDRINFO, NAMEINFO, HOST, HOST_R } function;
    const char *name, *service;
    const struct addrinfo *hints;
    struct addrinfo **addresses;
    const struct sockaddr *address;
    socklen_t address_size, name_size, service_size;
    char *name_room, *service_room;
    int flags;
    struct hostent *host, **host_result;
    size_t host_size;
    int code;
    int error, host_error; /* of the thread that has called */
} names_call_t;

static void call_names(void *argument) {
    names_call_t *c = argument;
    switch (c->function) {
    case ADDRINFO:
        c->code = SYSTEM(getaddrinfo)(c->name, c->service, c->hints, c->addresses);
        break;
    case NAMEINFO:
        c->code = SYSTEM(getnameinfo)(c->address, c->address_size, c->name_room, c->name_size,
                                      c->service_room, c->service_size, c->flags);
        break;
    case HOST:
        c->host = SYSTEM(gethostbyname)(c->name);
        c->host_error = h_errno;
        break;
    case HOST_R:
        c->code = SYSTEM(gethostbyname_r)(c->name, c->host, c->name_room, c->host_size,
                                          c->host_result, &c->host_error);
        break;
    }
    c->error = haft_posix_error();
}

/* `refused` is the code of the function for an error of the system. */
static int ask_names(names_call_t *call, int refused) {
    int before = haft_posix_error();
    int code = haft_posix_call_blocking(call_names, call);
    if (code != 0)
        call->code = refused;
    haft_posix_set_error(code != 0 ? -code : call->code == refused ? call->error : before);
    return call->code;
}

HAFT_POSIX_EXPORT int getaddrinfo(const char *restrict name, const char *restrict service,
                                  const struct addrinfo *restrict hints,
                                  struct addrinfo **restrict addresses) {
    if (!haft_posix_on_task())
        return SYSTEM(getaddrinfo)(name, service, hints, addresses);
    return ask_names(&(names_call_t){.function = ADDRINFO,
                                     .name = name,
                                     .service = service,
                                     .hints = hints,
                                     .addresses = addresses},
                     EAI_SYSTEM);
}

HAFT_POSIX_EXPORT int getnameinfo(const struct sockaddr *restrict address, socklen_t address_size,
                                  char *restrict name, socklen_t name_size, char *restrict service,
                                  socklen_t service_size, int flags) {
    if (!haft_posix_on_task())
        return SYSTEM(getnameinfo)(address, address_size, name, name_size, service, service_size,
                                   flags);
    return ask_names(&(names_call_t){.function = NAMEINFO,
                                     .address = address,
                                     .address_size = address_size,
                                     .name_room = name,
                                     .name_size = name_size,
                                     .service_room = service,
                                     .service_size = service_size,
                                     .flags = flags},
                     EAI_SYSTEM);
}

HAFT_POSIX_EXPORT struct hostent *gethostbyname(const char *name) {
    if (!haft_posix_on_task())
        return SYSTEM(gethostbyname)(name);
    names_call_t call = {.function = HOST, .name = name, .host_error = TRY_AGAIN};
    ask_names(&call, -1);
    if (call.host == NULL)
        h_errno = call.host_error;
    return call.host;
}

HAFT_POSIX_EXPORT int gethostbyname_r(const char *restrict name, struct hostent *restrict host,
                                      char *restrict room, size_t size,
                                      struct hostent **restrict result, int *restrict error) {
    if (!haft_posix_on_task())
        return SYSTEM(gethostbyname_r)(name, host, room, size, result, error);
    names_call_t call = {.function = HOST_R,
                         .name = name,
                         .host = host,
                         .name_room = room,
                         .host_size = size,
                         .host_result = result,
                         .host_error = TRY_AGAIN};
    *result = NULL;
    int code = ask_names(&call, ECANCELED);
    *error = call.host_error;
    return code;
}

/* ---- Children ---- */

typedef struct wait_call {
    pid_t child;
    int *status;
    int options;
    ssize_t done;
} wait_call_t;

static void call_wait(void *argument) {
    wait_call_t *call = argument;
    call->done = HAFT_POSIX_RESULT(SYSTEM(waitpid)(call->child, call->status, call->options));
}

/* Waits for its end; a child of this process, and only its end is asked for. */
static ssize_t wait_for_one(wait_call_t *call) {
    int descriptor = (int)syscall(SYS_pidfd_open, call->child, 0);
    if (descriptor < 0)
        return -haft_posix_error();
    int code = haft_posix_wait(descriptor, POLLIN, HAFT_IO_FOREVER);
    HAFT_PERFORM(haft_io_close, descriptor);
    if (code != 0)
        return code;
    call_wait(call);
    return call->done;
}

static ssize_t wait_for_child(wait_call_t *call) {
    wait_call_t now = {call->child, call->status, call->options | WNOHANG, 0};
    call_wait(&now);
    if (now.done != 0)
        return now.done;
    ssize_t done = call->child > 0 && call->options == 0 ? wait_for_one(call) : -ENOSYS;
    if (done != -ENOSYS)
        return done;
    int code = haft_posix_call_blocking(call_wait, call);
    return code == 0 ? call->done : code;
}

HAFT_POSIX_EXPORT pid_t waitpid(pid_t child, int *status, int options) {
    if ((options & WNOHANG) != 0 || !haft_posix_on_task())
        return SYSTEM(waitpid)(child, status, options);
    int before = haft_posix_error();
    wait_call_t call = {child, status, options, 0};
    return (pid_t)haft_posix_answer(wait_for_child(&call), before);
}

HAFT_POSIX_EXPORT pid_t wait(int *status) {
    if (!haft_posix_on_task())
        return SYSTEM(wait)(status);
    return waitpid(-1, status, 0);
}
