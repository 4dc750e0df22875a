/* SPDX-License-Identifier: MIT */
/*
 * Where libhaft-posix may suspend a program of OCaml, and which task has which channel locked.
 *
 * The runtime's thread library knows the channel that a thread has locked, and unlocks it when an
 * exception leaves the function that uses it. Here several tasks of one thread may have one each:
 * so each task of libhaft-io has its own.
 */
#include "stubs.h"

#include <haft/posix.h>

#define CAML_INTERNALS
#include <caml/io.h>

bool haft_ocaml_posix_runs_here(void);
bool haft_ocaml_posix_runs_here(void) {
    return haft_io_runs_here() && haft_ocaml_io_may_suspend();
}

value haft_ocaml_posix_answers(value unit);
value haft_ocaml_posix_answers(value unit) {
    (void)unit;
    return Val_bool(haft_posix_answers());
}

/* ---- Channels ---- */

static void (*lock_before)(struct channel *channel);
static void (*unlock_before)(struct channel *channel);
static void (*unlock_all_before)(void);
static const char locked; /* the key of a task's locked channel */

static void note(struct channel *channel) {
    if (haft_io_runs_here() && haft_io_self() != NULL)
        haft_io_local_set(&locked, channel); /* without memory an exception leaves it locked */
}

static void lock_channel(struct channel *channel) {
    lock_before(channel);
    note(channel);
}

static void unlock_channel(struct channel *channel) {
    note(NULL);
    unlock_before(channel);
}

static void unlock_after_exception(void) {
    if (!haft_io_runs_here() || haft_io_self() == NULL) {
        unlock_all_before();
        return;
    }
    struct channel *channel = haft_io_local_get(&locked);
    if (channel != NULL)
        unlock_channel(channel);
}

value haft_ocaml_posix_watch_channels(value unit);
value haft_ocaml_posix_watch_channels(value unit) {
    if (caml_channel_mutex_lock != NULL && lock_before == NULL) {
        lock_before = caml_channel_mutex_lock;
        unlock_before = caml_channel_mutex_unlock;
        unlock_all_before = caml_channel_mutex_unlock_exn;
        caml_channel_mutex_lock = lock_channel;
        caml_channel_mutex_unlock = unlock_channel;
        caml_channel_mutex_unlock_exn = unlock_after_exception;
    }
    return unit;
}
