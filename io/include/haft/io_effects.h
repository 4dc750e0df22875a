/* SPDX-License-Identifier: MIT */
/*
 * The effects that the functions of haft/io.h perform. A handler of your own around a computation
 * sees its operations, and may count, refuse or imitate them. Results are those of the functions,
 * except that a cancelled wait has the result -ECANCELED, after which the function unwinds. All of
 * them have blocking defaults.
 *
 * Operations that a task alternates between have different cache slots (HAFT_EFFECT_IN_SLOT); the
 * most frequent ones have one of the first three.
 */
#ifndef HAFT_IO_EFFECTS_H
#define HAFT_IO_EFFECTS_H

HAFT_EFFECT_IN_SLOT(7, haft_io_self, haft_io_task_t *, {}); /* the current task; by default NULL */
HAFT_EFFECT_IN_SLOT(0, haft_io_read, ssize_t, {
    int descriptor;
    void *buffer;
    size_t size;
});
HAFT_EFFECT_IN_SLOT(5, haft_io_close, int, { int descriptor; });
HAFT_EFFECT_IN_SLOT(6, haft_io_accept, int, { int listener; });
HAFT_EFFECT_IN_SLOT(7, haft_io_yield, int, {}); /* by default nothing */

HAFT_EFFECT_IN_SLOT(1, haft_io_write, ssize_t, {
    int descriptor;
    const void *buffer;
    size_t size;
});

/* `*bytes` is NULL; a handler that imitates this operation stores there the result of
   haft_io_lend. */
HAFT_EFFECT_IN_SLOT(2, haft_io_read_lent, ssize_t, {
    int descriptor;
    const void **bytes;
});

HAFT_EFFECT_IN_SLOT(7, haft_io_sleep_until, int, { int64_t deadline; });
HAFT_EFFECT_IN_SLOT(0, haft_io_now, int64_t, {});
HAFT_EFFECT_IN_SLOT(1, haft_io_connect, int, {
    int socket;
    const struct sockaddr *address;
    socklen_t address_size;
});

/* In haft_io_receive and haft_io_send `address` may be NULL. */
HAFT_EFFECT_IN_SLOT(0, haft_io_receive, ssize_t, {
    int socket;
    int flags;
    void *buffer;
    size_t size;
    struct sockaddr *address;
    socklen_t *address_size;
});

HAFT_EFFECT_IN_SLOT(1, haft_io_send, ssize_t, {
    int socket;
    int flags;
    const void *buffer;
    size_t size;
    const struct sockaddr *address;
    socklen_t address_size;
});
HAFT_EFFECT_IN_SLOT(0, haft_io_readv, ssize_t, {
    int descriptor;
    const struct iovec *parts;
    size_t count;
});
HAFT_EFFECT_IN_SLOT(1, haft_io_writev, ssize_t, {
    int descriptor;
    const struct iovec *parts;
    size_t count;
});
HAFT_EFFECT_IN_SLOT(0, haft_io_receive_message, ssize_t, {
    int socket;
    int flags;
    struct msghdr *message;
});
HAFT_EFFECT_IN_SLOT(1, haft_io_send_message, ssize_t, {
    int socket;
    int flags;
    const struct msghdr *message;
});
HAFT_EFFECT_IN_SLOT(5, haft_io_wait_ready, int, {
    int descriptor;
    short events;
});
/* `turn` is 0 in haft_io_poll. Otherwise it counts the caller's attempts, each after the end of a
   wait, in which poll(2) may have reported something but not what the caller needs. The wait then
   ends at a change (at the first such turn also at an event that is there already), and the result
   only shows whether something has happened. */
HAFT_EFFECT_IN_SLOT(1, haft_io_poll, int, {
    struct pollfd *entries;
    size_t count;
    int64_t deadline;
    unsigned turn;
});
/* `left` is that of haft_io_call_or_leave, or NULL. */
HAFT_EFFECT(haft_io_call_blocking, int, {
    void (*function)(void *);
    void *argument;
    void (*left)(void *);
});
/* For schedulers of your own: performed by haft_io_spawn outside of haft_io_run. Its default is
   -ESRCH, which haft_io_spawn reports as a mistake. */
HAFT_EFFECT(haft_io_spawn, int, {
    void *(*function)(void *);
    void *argument;
});
HAFT_EFFECT(haft_io_block_thread, void *, {
    void *(*function)(void *);
    void *argument;
});

#endif
