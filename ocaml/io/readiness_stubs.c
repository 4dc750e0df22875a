/* SPDX-License-Identifier: MIT */
/*
 * Waits of OCaml tasks until a descriptor is ready (work_stubs.c): one of libhaft-io's, or one that
 * other libraries read and close.
 */
#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* ---- Descriptors of libhaft-io ---- */

typedef struct watch {
    haft_ocaml_work_t work;
    int descriptor; /* -1: it was closed before the wait has begun */
    short events;
    struct watch *next, **place; /* in `not_begun`; place NULL: it has begun */
    haft_io_rest_t rest;         /* only for reading */
} watch_t;
static watch_t *not_begun;

static void list_watch(watch_t *watch) {
    watch->next = not_begun;
    watch->place = &not_begun;
    if (not_begun != NULL)
        not_begun->place = &watch->next;
    not_begun = watch;
}

static void unlist_watch(watch_t *watch) {
    if (watch->place == NULL)
        return;
    *watch->place = watch->next;
    if (watch->next != NULL)
        watch->next->place = watch->place;
    watch->place = NULL;
}

static void free_watch(haft_ocaml_work_t *work) {
    unlist_watch((watch_t *)(void *)work);
    free(work);
}

value haft_ocaml_io_forget_watches(value descriptor);
/* The descriptor is about to be closed. A wait for it that has not begun does not wait for the next
   one of its number. */
value haft_ocaml_io_forget_watches(value descriptor) {
    for (watch_t *watch = not_begun; watch != NULL; watch = watch->next)
        if (watch->descriptor == (int)Long_val(descriptor))
            watch->descriptor = -1;
    return Val_unit;
}

static intptr_t wait_ready(haft_ocaml_work_t *work) {
    watch_t *watch = (watch_t *)(void *)work;
    unlist_watch(watch);
    return haft_io_wait_ready(watch->descriptor, watch->events);
}

static void *finish_watch(watch_t *watch, intptr_t result) {
    watch->work.result = result;
    haft_ocaml_finish(&watch->work);
    return NULL;
}

static void *wake_from_rest(void *argument) {
    return finish_watch(argument, POLLIN); /* perhaps: it may have ended early, or not begun */
}

/*
 * Under io_uring a rest asks for all that will arrive, which takes 3 us more of the processor than
 * a wait: so only what is idle for a while rests there. A receive that peeks needs no system call
 * of its own, as a wait for readiness does; it takes the socket's error, which is the result then.
 * Returns POLLIN (perhaps), that error, or 0: nothing has come.
 */
static intptr_t comes_soon(const watch_t *watch) {
    char first;
    int64_t limit = haft_io_now_roughly() + 50 * HAFT_IO_MILLISECOND;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
    haft_io_return_cancels(true);
    haft_io_deadline_set(&deadline, limit);
    intptr_t came = haft_io_receive(watch->descriptor, &first, 1, MSG_PEEK);
    if (came == -ENOTSOCK)
        came = haft_io_wait_ready(watch->descriptor, watch->events);
    if (came == -ETIMEDOUT && haft_io_now() >= limit)
        return 0;
    bool is_of_socket = came < 0 && came != -EBADF && came != -EBUSY && came != -ECANCELED;
    return is_of_socket ? came : POLLIN;
}

static void *rest(void *argument) {
    watch_t *watch = argument;
    if (haft_io_self() == NULL)
        return haft_ocaml_do_work(watch);
    unlist_watch(watch);
    if (watch->descriptor < 0)
        return finish_watch(watch, -EBADF);
    intptr_t came = haft_ocaml_the_loop->rests_late ? comes_soon(watch) : 0;
    if (came != 0)
        return finish_watch(watch, came);
    haft_io_rest(&watch->rest, watch->descriptor, HAFT_IO_FOREVER, wake_from_rest, watch);
    return NULL;
}

value haft_ocaml_io_watch(value descriptor, value kind, value slot);
/* Waits until the descriptor is ready: 0: for reading; 1: for writing; 2: may be so for reading,
   which takes no stack where the back end can do without. (An error of 2 is the socket's, which a
   read does not see any more.) */
value haft_ocaml_io_watch(value descriptor, value kind, value slot) {
    bool rests = Long_val(kind) == 2;
    watch_t *watch = calloc(1, rests ? sizeof(watch_t) : offsetof(watch_t, rest));
    if (watch == NULL)
        return Val_long(-ENOMEM);
    watch->work.work = wait_ready;
    watch->work.free = free_watch;
    list_watch(watch);
    watch->descriptor = (int)Long_val(descriptor);
    watch->events = Long_val(kind) == 1 ? POLLOUT : POLLIN;
    return Val_long(
        haft_ocaml_begin(&watch->work, Long_val(slot), rests ? rest : haft_ocaml_do_work));
}

/* ---- Descriptors of other libraries ---- */

/*
 * The same for descriptors of other libraries, which read and close them by the system's calls.
 * libhaft-io must not know of these, because it is not told when their numbers become those of
 * other files: it waits for an epoll set that has them, in a task of C that is there from the first
 * of them on.
 */
typedef struct {
    haft_ocaml_work_t work;
    int descriptor;
    int direction; /* 0: reading; 1: writing */
} look_t;
typedef struct others {
    look_t *looks[2]; /* by the direction */
} others_t;
enum { AT_ONCE = 64 };

static uint32_t events_of(const others_t *others) {
    return (others->looks[0] != NULL ? EPOLLIN | EPOLLRDHUP : 0U) |
           (others->looks[1] != NULL ? EPOLLOUT : 0U);
}

/* Tells the set what is waited for now. 0, or an error. */
static int arm(const haft_ocaml_loop_t *loop, int descriptor) {
    struct epoll_event event = {.events = events_of(&loop->others[descriptor]),
                                .data.fd = descriptor};
    if (event.events == 0) { /* It may have been closed. */
        (void)epoll_ctl(loop->set, EPOLL_CTL_DEL, descriptor, NULL);
        return 0;
    }
    if (epoll_ctl(loop->set, EPOLL_CTL_MOD, descriptor, &event) == 0 ||
        (errno == ENOENT && epoll_ctl(loop->set, EPOLL_CTL_ADD, descriptor, &event) == 0))
        return 0;
    return -errno;
}

static void end_look(haft_ocaml_loop_t *loop, look_t *look, intptr_t result) {
    loop->others[look->descriptor].looks[look->direction] = NULL;
    look->work.result = result;
    haft_ocaml_finish(&look->work);
}

static void note_events(haft_ocaml_loop_t *loop, const struct epoll_event *event) {
    static const uint32_t ends[] = {EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR,
                                    EPOLLOUT | EPOLLHUP | EPOLLERR};
    others_t *others = &loop->others[event->data.fd];
    for (int direction = 0; direction < 2; direction++)
        if (others->looks[direction] != NULL && (event->events & ends[direction]) != 0)
            end_look(loop, others->looks[direction], (intptr_t)event->events);
    (void)arm(loop, event->data.fd);
}

static void *watch_others(void *argument) {
    haft_ocaml_loop_t *loop = argument;
    struct epoll_event events[AT_ONCE];
    haft_io_return_cancels(true);
    while (haft_io_wait_ready(loop->set, POLLIN) >= 0) {
        int count = epoll_wait(loop->set, events, AT_ONCE, 0);
        for (int i = 0; i < count; i++)
            note_events(loop, &events[i]);
    }
    haft_io_close(loop->set);
    loop->set = -1;
    return NULL;
}

/* Makes the set, and room for the descriptor. 0, or an error. */
static int begin_watch(haft_ocaml_loop_t *loop, int descriptor) {
    if ((size_t)descriptor >= loop->others_count) {
        size_t count = (size_t)descriptor + 64;
        others_t *others = realloc(loop->others, count * sizeof *others);
        if (others == NULL)
            return -ENOMEM;
        memset(others + loop->others_count, 0, (count - loop->others_count) * sizeof *others);
        loop->others = others;
        loop->others_count = count;
    }
    if (loop->set >= 0)
        return 0;
    loop->set = epoll_create1(EPOLL_CLOEXEC);
    if (loop->set < 0)
        return -errno;
    return haft_io_spawn_with(&(haft_io_task_options_t){.scope = loop->scope, .name = "for OCaml"},
                              watch_others, loop);
}

void haft_ocaml_free_others(const haft_ocaml_loop_t *loop) {
    for (size_t i = 0; i < loop->others_count; i++) {
        free(loop->others[i].looks[0]);
        free(loop->others[i].looks[1]);
    }
    free(loop->others);
}

value haft_ocaml_io_look(value descriptor, value writes, value slot);
/* Returns what haft_ocaml_io_withdraw takes, or, as an integer, an error. */
value haft_ocaml_io_look(value descriptor, value writes, value slot) {
    haft_ocaml_loop_t *loop = haft_ocaml_the_loop;
    int number = (int)Long_val(descriptor);
    if (number < 0)
        return Val_long(-EBADF);
    int code = begin_watch(loop, number);
    look_t **place = code == 0 ? &loop->others[number].looks[Bool_val(writes)] : NULL;
    if (code == 0 && *place != NULL)
        code = -EBUSY;
    look_t *look = code == 0 ? calloc(1, sizeof *look) : NULL;
    if (look == NULL)
        return Val_long(code != 0 ? code : -ENOMEM);
    look->work.slot = Long_val(slot);
    look->descriptor = number;
    look->direction = Bool_val(writes);
    *place = look;
    code = arm(loop, number);
    if (code == 0)
        return (value)look | 1;
    if (code == -EPERM) { /* a file: it is always ready */
        end_look(loop, look, POLLIN | POLLOUT);
        return (value)look | 1;
    }
    *place = NULL;
    free(look);
    return Val_long(code);
}

value haft_ocaml_io_withdraw(value pointer);
/* If its end has not been taken. The set does not know of it any more. */
value haft_ocaml_io_withdraw(value pointer) {
    look_t *look = (look_t *)(pointer & ~(value)1);
    if (haft_ocaml_the_loop->others[look->descriptor].looks[look->direction] == look) {
        end_look(haft_ocaml_the_loop, look, -ECANCELED);
        (void)arm(haft_ocaml_the_loop, look->descriptor);
    }
    return Val_unit;
}
