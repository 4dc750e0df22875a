/* SPDX-License-Identifier: MIT */
/*
 * The effects that the functions of haft/io.h perform. A handler of your own around a computation sees its
 * operations: to count, refuse, or imitate them. Results are those of the functions; a cancelled wait has
 * the result -ECANCELED here, and it is the function that unwinds. All have blocking defaults.
 *
 * Each scope of handlers remembers an effect by the line of its declaration, modulo four. So what one task
 * performs by turns stands on lines that differ: haft_io_self, a read, a write, a wait.
 */
#ifndef HAFT_IO_EFFECTS_H
#define HAFT_IO_EFFECTS_H

HAFT_EFFECT(haft_io_self, haft_io_task_t *, {}); /* the current task; by default NULL */
HAFT_EFFECT(haft_io_read, ssize_t, {
    int descriptor;
    void *buffer;
    size_t size;
});
HAFT_EFFECT(haft_io_write, ssize_t, {
    int descriptor;
    const void *buffer;
    size_t size;
});

/* Of these two `address` may be NULL. */
HAFT_EFFECT(haft_io_receive, ssize_t, {
    int socket;
    int flags;
    void *buffer;
    size_t size;
    struct sockaddr *address;
    socklen_t *address_size;
});

HAFT_EFFECT(haft_io_send, ssize_t, {
    int socket;
    int flags;
    const void *buffer;
    size_t size;
    const struct sockaddr *address;
    socklen_t address_size;
});
HAFT_EFFECT(haft_io_yield, int, {}); /* by default nothing */
HAFT_EFFECT(haft_io_accept, int, { int listener; });
HAFT_EFFECT(haft_io_connect, int, {
    int socket;
    const struct sockaddr *address;
    socklen_t address_size;
});
HAFT_EFFECT(haft_io_wait_for, int, {
    int descriptor;
    short events;
});
HAFT_EFFECT(haft_io_close, int, { int descriptor; });

HAFT_EFFECT(haft_io_sleep_until, int, { int64_t deadline; });
HAFT_EFFECT(haft_io_now, int64_t, {});
HAFT_EFFECT(haft_io_call_blocking, int, {
    void (*function)(void *);
    void *argument;
});

#endif
