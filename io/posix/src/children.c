/* SPDX-License-Identifier: MIT */
/*
 * Waiting for children. A single child is waited for through a descriptor, or, if the system gives
 * none, polled now and then. The pool waits for any of several children, and for changes other than
 * an end.
 *
 * Libraries that start programs by fork and exec (std::process of Rust, Python) learn by a pipe, or
 * by a pair of SOCK_SEQPACKET, whether exec has failed, and wait for the child if so. They treat an
 * error of either as impossible. So no cancel cuts these waits: the reads of such a descriptor with
 * FD_CLOEXEC by the task that has forked, up to the first end or error, and, if they have read
 * something, its next wait for a child.
 */
#include "internal.h"
#include "../../src/system_call.h"

#include <sys/syscall.h>

#ifndef P_PIDFD
#    define P_PIDFD 3
#endif

/* ---- After a fork ---- */

/* The mark of a task that has forked. A task that has inherited another's mark has none. */
enum mark { NONE, HAS_FORKED, HAS_READ, HAS_REPORT };
static char forked;    /* a key, whose value is the task's address and the mark */
static unsigned marks; /* that were made and not removed; any thread */

static enum mark mark_here(void) {
    uintptr_t mark = (uintptr_t)haft_io_local_get(&forked) - (uintptr_t)haft_io_self();
    return mark <= HAS_REPORT ? (enum mark)mark : NONE;
}

/* Sets the mark. Changing the task's own mark never fails. */
static int set_mark(enum mark mark) {
    return haft_io_local_set(&forked, mark != NONE ? (char *)haft_io_self() + mark : NULL);
}

static void remove_mark(void) {
    set_mark(NONE);
    __atomic_fetch_sub(&marks, 1, __ATOMIC_RELAXED);
}

static void in_parent(void) {
    if (!hafti_posix_on_task())
        return;
    unsigned more = mark_here() == NONE;
    if (set_mark(HAS_FORKED) == 0)
        __atomic_fetch_add(&marks, more, __ATOMIC_RELAXED);
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, in_parent, NULL);
}

static bool may_have_mark(void) {
    return __atomic_load_n(&marks, __ATOMIC_RELAXED) != 0 && hafti_posix_on_task();
}

bool hafti_posix_awaits_report(void) {
    enum mark mark = may_have_mark() ? mark_here() : NONE;
    return mark == HAS_FORKED || mark == HAS_READ;
}

void hafti_posix_note_report(ssize_t done) {
    if (done > 0)
        set_mark(HAS_READ);
    else if (mark_here() == HAS_READ)
        set_mark(HAS_REPORT);
    else
        remove_mark();
}

/* Whether the wait for a child, which begins, is one that no cancel cuts. */
static bool is_after_report(void) {
    enum mark mark = may_have_mark() ? mark_here() : NONE;
    if (mark != NONE)
        remove_mark();
    return mark == HAS_READ || mark == HAS_REPORT;
}

/* Waits until the child of the descriptor has ended. */
static int wait_on(int descriptor, bool to_the_end) {
    return (to_the_end ? hafti_posix_wait_to_the_end : hafti_posix_wait)(descriptor, POLLIN,
                                                                         HAFT_IO_FOREVER, 0);
}

/* 0: the child may have ended; or, without a descriptor, a moment has passed. */
static int wait_for_end(pid_t child, bool to_the_end) {
    int descriptor = (int)hafti_io_system_call(SYS_pidfd_open, child, 0, 0, 0, 0, 0);
    if (descriptor < 0)
        return descriptor == -ESRCH ? 0 : hafti_posix_wait_without(descriptor, HAFT_IO_FOREVER);
    int code = wait_on(descriptor, to_the_end);
    HAFT_PERFORM(haft_io_close, descriptor);
    return code;
}

/* ---- wait4 and its kin ---- */

typedef struct wait_call {
    pid_t child;
    int *status;
    int options;
    struct rusage *usage;
    ssize_t done;
} wait_call_t;

static void call_wait(void *argument) {
    wait_call_t *call = argument;
    call->done =
        HAFT_POSIX_RESULT(SYSTEM(wait4)(call->child, call->status, call->options, call->usage));
}

static ssize_t wait_for_child(wait_call_t *call) {
    bool to_the_end = is_after_report();
    wait_call_t now = *call;
    now.options |= WNOHANG;
    call_wait(&now);
    if (call->child > 0 && call->options == 0) {
        for (int code; now.done == 0; call_wait(&now))
            if ((code = wait_for_end(call->child, to_the_end)) != 0)
                return code;
    }
    if (now.done != 0)
        return now.done;
    int code = hafti_posix_call_blocking(call_wait, call);
    return code == 0 ? call->done : code;
}

HAFT_POSIX_EXPORT pid_t wait4(pid_t child, int *status, int options, struct rusage *usage) {
    if ((options & WNOHANG) != 0 || !hafti_posix_on_task())
        return SYSTEM(wait4)(child, status, options, usage);
    int before = hafti_posix_error();
    wait_call_t call = {child, status, options, usage, 0};
    return (pid_t)hafti_posix_answer(wait_for_child(&call), before);
}

HAFT_POSIX_EXPORT pid_t wait3(int *status, int options, struct rusage *usage) {
    return wait4(-1, status, options, usage);
}

HAFT_POSIX_EXPORT pid_t waitpid(pid_t child, int *status, int options) {
    if ((options & WNOHANG) != 0 || !hafti_posix_on_task())
        return SYSTEM(waitpid)(child, status, options);
    return wait4(child, status, options, NULL);
}

HAFT_POSIX_EXPORT pid_t wait(int *status) {
    if (!hafti_posix_on_task())
        return SYSTEM(wait)(status);
    return wait4(-1, status, 0, NULL);
}

/* ---- waitid ---- */

typedef struct waitid_call {
    idtype_t type;
    id_t id;
    siginfo_t *information;
    int options;
    ssize_t done;
} waitid_call_t;

static void call_waitid(void *argument) {
    waitid_call_t *call = argument;
    call->done =
        HAFT_POSIX_RESULT(SYSTEM(waitid)(call->type, call->id, call->information, call->options));
}

static bool is_end_of_one(const waitid_call_t *call) {
    return (call->options & ~WNOWAIT) == WEXITED && (call->type == P_PID || call->type == P_PIDFD);
}

/* True: there is an answer, in `call->done` and the information. */
static bool answers_now(waitid_call_t *call) {
    siginfo_t information = {0};
    waitid_call_t now = {call->type, call->id, &information, call->options | WNOHANG, 0};
    call_waitid(&now);
    if (now.done == 0 && information.si_pid == 0)
        return false;
    if (now.done == 0 && call->information != NULL)
        *call->information = information;
    call->done = now.done;
    return true;
}

static ssize_t wait_by_id(waitid_call_t *call) {
    bool to_the_end = is_after_report();
    while (!answers_now(call)) {
        bool is_one = is_end_of_one(call);
        int code = !is_one               ? hafti_posix_call_blocking(call_waitid, call)
                   : call->type == P_PID ? wait_for_end((pid_t)call->id, to_the_end)
                                         : wait_on((int)call->id, to_the_end);
        if (code != 0 || !is_one)
            return code != 0 ? code : call->done;
    }
    return call->done;
}

HAFT_POSIX_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *information, int options) {
    if ((options & WNOHANG) != 0 || !hafti_posix_on_task())
        return SYSTEM(waitid)(type, id, information, options);
    int before = hafti_posix_error();
    waitid_call_t call = {type, id, information, options, 0};
    return (int)hafti_posix_answer(wait_by_id(&call), before);
}

/* ---- glibc's own names ---- */

HAFT_POSIX_ALSO(__wait, wait)
HAFT_POSIX_ALSO(__waitpid, waitpid)
