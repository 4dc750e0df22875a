/* SPDX-License-Identifier: MIT */
/*
 * Where OpenSSL runs: a fiber that each thread keeps, with a stack that is large enough for every
 * call of it. A task's own stack may be too small, and would keep the memory that a handshake has
 * touched for as long as the connection lives.
 *
 * A call ends on the thread on which it has begun, unless it waits: OpenSSL's files may be read by
 * functions that libhaft-posix answers. So a call takes the fiber out of its place, where another
 * task may look meanwhile, and puts it back where the call has ended.
 */
#include "internal.h"

/* Handshakes of OpenSSL 3.0 have been seen to use 8 KiB; its providers may be other libraries. */
enum { ROOM = 256 * 1024 };

static pthread_key_t kept;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void drop(void *room) {
    haft_fiber_drop(room);
}

static void make_key(void) {
    pthread_key_create(&kept, drop);
}

typedef struct {
    void (*function)(void *);
    void *argument;
    int code;
} call_t;

static void *run(void *argument) {
    const call_t *call = argument;
    call->function(call->argument);
    return NULL;
}

__attribute__((noinline)) static haft_fiber_t *enter_room(void) {
    static const haft_fiber_options_t options = {.stack_size = ROOM, .name = "OpenSSL"};
    pthread_once(&once, make_key);
    haft_fiber_t *room = pthread_getspecific(kept);
    if (room == NULL)
        return haft_fiber_new_with(&options, run, NULL);
    pthread_setspecific(kept, NULL);
    return room;
}

__attribute__((noinline)) static void leave_room(haft_fiber_t *const *room) {
    if (pthread_getspecific(kept) != NULL || pthread_setspecific(kept, *room) != 0)
        haft_fiber_drop(*room);
}

int hafti_tls_call(void (*function)(void *), void *argument) {
    call_t call = {.function = function, .argument = argument};
    __attribute__((cleanup(leave_room))) haft_fiber_t *room = enter_room();
    if (room == NULL)
        return -ENOMEM;
    haft_fiber_reset(room, run, &call);
    haft_resume(room, HAFT_NO_REPLY, HAFT_HANDLES());
    return 0;
}

static void call_in_pool(void *argument) {
    call_t *call = argument;
    call->code = hafti_tls_call(call->function, call->argument);
}

int hafti_tls_call_blocking(void (*function)(void *), void *argument) {
    call_t call = {.function = function, .argument = argument};
    int code = haft_io_call_blocking(call_in_pool, &call);
    return code != 0 ? code : call.code;
}
