/* SPDX-License-Identifier: MIT */
/* The state of a descriptor: its waiters, its users, its close; and memory that is lent. */
#ifndef HAFTI_IO_DESCRIPTORS_H
#define HAFTI_IO_DESCRIPTORS_H

#include "tasks.h"

/* The flags of recv(2) and send(2). */
static inline int hafti_io_flags_of(const hafti_io_operation_t *operation) {
    enum hafti_io_kind kind = operation->kind;
    return kind == HAFTI_IO_RECEIVE || kind == HAFTI_IO_SEND || kind == HAFTI_IO_RECEIVE_MESSAGE ||
                   kind == HAFTI_IO_SEND_MESSAGE
               ? operation->flags
               : 0;
}
static inline bool hafti_io_must_not_wait(const hafti_io_operation_t *operation) {
    return HAFTI_IO_UNLIKELY((hafti_io_flags_of(operation) & MSG_DONTWAIT) != 0);
}

/* Result for a ready descriptor without a call that never blocks. (No error number is that
   large.) */
enum { HAFTI_IO_MAY_WAIT = -4096 };
/* Whether the result of a send is an error, and not a part, after which the rest may be tried
   again. (-EOPNOTSUPP may come from MSG_WAITALL, as with TLS in the kernel; otherwise the next send
   returns it, too.) */
static inline bool hafti_io_send_fails(ssize_t result) {
    return result < 0 && result != -EAGAIN && result != -EINTR && result != -EOPNOTSUPP &&
           result != -ENOTSOCK;
}
/* The events of poll(2) after which to try again. */
static inline short hafti_io_events_of(const hafti_io_operation_t *operation) {
#define HAFTI_IO_KINDS_EVENTS(kind, name, events) events,
    static const short events[] = {HAFTI_IO_KINDS(HAFTI_IO_KINDS_EVENTS)};
    if (operation->kind == HAFTI_IO_POLL)
        return (short)operation->flags;
    return events[operation->kind];
}

struct hafti_io_lent {
    hafti_io_lent_t *next;
    int result : 31; /* of the operation that has filled it */
    bool copied : 1; /* it has room for its content only, and is never lent */
    unsigned from;   /* where the content begins; a block that is not lent has a mark here */
    char bytes[];
};

/* Called by the worker's thread, or by a thread without one. NULL: no memory. The caller that lends
   it sets `from`. Any thread may give it back. */
hafti_io_lent_t *hafti_io_lend_block(hafti_io_worker_t *worker);
void hafti_io_take_back(hafti_io_lent_t *block);
/* The block of memory that is being given back; it must not have been given back already. */
hafti_io_lent_t *hafti_io_block_of(const void *bytes);
/* Frees what a worker keeps, when its thread has ended. */
void hafti_io_free_lent(hafti_io_worker_t *worker);
/* Makes a READ_LENT by a read with the given function. */
ssize_t hafti_io_read_into_lent(const hafti_io_operation_t *operation,
                                ssize_t (*read)(hafti_io_operation_t *operation));

enum hafti_io_direction { HAFTI_IO_INWARD, HAFTI_IO_OUTWARD };
typedef struct hafti_io_descriptor hafti_io_descriptor_t;

/* The fields that a waker needs stand first. */
typedef struct hafti_io_waiter {
    hafti_io_cell_t *cell;
    uint32_t life;            /* of the number, when it began to wait */
    bool transfers;           /* bytes of a stream, when they or room for them have come */
    bool asks;                /* the kernel itself, whose answer ends the wait */
    bool closed;              /* the descriptor was, before anything else came */
    hafti_io_link_t links[2]; /* by direction */
    hafti_io_descriptor_t *descriptor;
} hafti_io_waiter_t;

enum hafti_io_nature { HAFTI_IO_UNKNOWN, HAFTI_IO_SOCKET, HAFTI_IO_FILE, HAFTI_IO_STREAM };
/* Knowledge of unread bytes, from epoll's events and the last read. */
enum hafti_io_left {
    HAFTI_IO_MAYBE,        /* nothing */
    HAFTI_IO_UNLESS_FEWER, /* a read of fewer than were asked for takes all */
    HAFTI_IO_NONE          /* such a read was the last, and no event has come since */
};

/* In a shared run all of it is any thread's. */
struct hafti_io_descriptor {
    union {
        uint32_t lock; /* of the waiters; taken in a shared run */
        uint32_t next; /* `handed_over`: see closing.c; in a run that is alone */
    };
    uint32_t uses;       /* by operations, see descriptors.c; in a shared run all; and CLOSING */
    uint32_t life;       /* counts how often the number was closed */
    uint8_t nature;      /* a hafti_io_nature */
    bool waited_on;      /* some task has waited, since the number was last closed; any thread
                            reads */
    bool handed_over;    /* by another thread, to be closed; any thread */
    uint8_t left;        /* a hafti_io_left, of the worker that alone has registered it */
    bool ended;          /* an edge has reported the end of the input */
    uint64_t registered; /* by workers, each with its epoll: a bit for the index */
    void *arrivals;      /* what io_uring gives of it by itself, in a run that is alone; or NULL */
    hafti_io_link_t waiters[2];
};

/* The descriptor was closed since the waiter was enlisted, maybe after it was woken: the number may
   be another file's. */
static inline bool hafti_io_was_closed(const hafti_io_waiter_t *waiter) {
    return waiter->closed ||
           (waiter->descriptor != NULL &&
            __atomic_load_n(&waiter->descriptor->life, __ATOMIC_RELAXED) != waiter->life);
}

typedef struct hafti_io_descriptors hafti_io_descriptors_t;
extern const haft_shown_t hafti_io_shown_runs[];

/* NULL: no memory. */
hafti_io_descriptors_t *hafti_io_descriptors_new(bool shared);
/* NULL: no memory, or, unless it is to be made, there is no entry. An entry never moves. */
hafti_io_descriptor_t *hafti_io_descriptor(hafti_io_descriptors_t *descriptors, int descriptor,
                                           bool make);
/* The same without making an entry; NULL: there is none. */
enum { HAFTI_IO_BLOCK_BITS = 8, HAFTI_IO_MIDDLE_BITS = 11, HAFTI_IO_TOP = 1 << 11 };
typedef struct hafti_io_descriptor_block {
    hafti_io_descriptor_t entries[1 << HAFTI_IO_BLOCK_BITS];
} hafti_io_descriptor_block_t;
struct hafti_io_descriptors {
    bool shared;
    hafti_io_descriptor_block_t **top[HAFTI_IO_TOP];
};
static inline hafti_io_descriptor_t *hafti_io_known_descriptor(hafti_io_descriptors_t *table,
                                                               int descriptor) {
    unsigned number = (unsigned)descriptor, block = number >> HAFTI_IO_BLOCK_BITS;
    unsigned top = block >> HAFTI_IO_MIDDLE_BITS;
    if (HAFTI_IO_UNLIKELY(top >= HAFTI_IO_TOP)) /* also what is below 0 */
        return NULL;
    hafti_io_descriptor_block_t **middle = __atomic_load_n(&table->top[top], __ATOMIC_ACQUIRE);
    if (HAFTI_IO_UNLIKELY(middle == NULL))
        return NULL;
    hafti_io_descriptor_block_t *entries =
        __atomic_load_n(&middle[block % (1U << HAFTI_IO_MIDDLE_BITS)], __ATOMIC_ACQUIRE);
    return HAFTI_IO_LIKELY(entries != NULL)
               ? &entries->entries[number % (1U << HAFTI_IO_BLOCK_BITS)]
               : NULL;
}
/* Why no entry could be made: -ENOMEM, or -EBADF for a number that is not a descriptor. */
int hafti_io_without_entry(int descriptor);
void hafti_io_descriptors_free(hafti_io_descriptors_t *descriptors);
/* Puts the waiter into its list. 0; -EBUSY if it transfers bytes, and so does another task, of the
   same stream in that direction. `asks`: see hafti_io_waiter_t. */
int hafti_io_enlist(hafti_io_descriptor_t *descriptor, hafti_io_waiter_t *waiter,
                    hafti_io_cell_t *cell, const hafti_io_operation_t *operation, bool transfers,
                    bool asks);
void hafti_io_delist(hafti_io_waiter_t *waiter);
/* Enlist and delist in a run that is alone, if no other task waits in that direction: for a task
   that reads or has asked the kernel to send, on a descriptor that a task has begun to wait on, now
   or earlier. */
static inline void hafti_io_enlist_first(hafti_io_descriptor_t *descriptor,
                                         hafti_io_waiter_t *waiter, hafti_io_cell_t *cell,
                                         enum hafti_io_direction direction) {
    *waiter = (hafti_io_waiter_t){.descriptor = descriptor,
                                  .cell = cell,
                                  .life = __atomic_load_n(&descriptor->life, __ATOMIC_RELAXED),
                                  .transfers = direction == HAFTI_IO_INWARD};
    hafti_io_append(&descriptor->waiters[direction], &waiter->links[direction]);
}
static inline void hafti_io_delist_first(hafti_io_waiter_t *waiter,
                                         enum hafti_io_direction direction) {
    if (hafti_io_linked(&waiter->links[direction]))
        hafti_io_unlink(&waiter->links[direction]);
}
/* Visits each task that waits on a descriptor, once for each descriptor, in the order of their
   numbers; in a shared run under the descriptor's lock. */
typedef void hafti_io_visit_t(void *state, int descriptor, const haft_io_task_t *task);
void hafti_io_visit_waiters(hafti_io_descriptors_t *descriptors, hafti_io_visit_t *visit,
                            void *state);
/* True for sockets of streams, and for what is no socket; false for sockets of datagrams and
   packets. */
bool hafti_io_is_stream(int descriptor);
bool hafti_io_is_tcp(int descriptor);
/* In a run that is alone: whether a task waits on the descriptor. */
bool hafti_io_is_waited_on(hafti_io_descriptors_t *descriptors, int descriptor);

/* Counts an operation, so that the number is not reused while it is under way; or -EBADF. */
ssize_t hafti_io_operate_counted(hafti_io_runner_t *runner, hafti_io_operation_t *operation);
/* Ends the waits on the descriptor with -EBADF, and closes it when none of its operations is under
   way. */
int hafti_io_close_descriptor(hafti_io_worker_t *worker, int descriptor);

/* Bits of `uses` (descriptors.c). */
#define HAFTI_IO_CLOSING (UINT32_C(1) << 31)
#define HAFTI_IO_RELEASING (UINT32_C(1) << 30)
/* Whether it is to be closed by the last that uses it: a wait that is begun now is in vain. Any
   thread. */
static inline bool hafti_io_is_closing(const hafti_io_descriptor_t *entry) {
    return (__atomic_load_n(&entry->uses, __ATOMIC_RELAXED) & HAFTI_IO_CLOSING) != 0;
}

/* Gives the run its number. Between the two calls, other threads may end waits of its tasks, if it
   is listed. */
void hafti_io_run_begins(hafti_io_crew_t *crew, bool is_listed);
void hafti_io_run_ends(hafti_io_crew_t *crew);
/* To be called in a child of fork, which has none of their threads. */
void hafti_io_forget_runs(void);
extern unsigned hafti_io_closing_count; /* see closing.c; any thread */
HAFTI_IO_COLD int hafti_io_await_close(int descriptor);
/* Call after announcing a wait or a multi-call use. Closes that start later see the announcement;
   this waits for closes that started earlier. 0; -EBADF: the descriptor is about to be closed. */
static inline int hafti_io_let_closes_end(int descriptor) {
    return HAFTI_IO_LIKELY(__atomic_load_n(&hafti_io_closing_count, __ATOMIC_SEQ_CST) == 0)
               ? 0
               : hafti_io_await_close(descriptor);
}
/* Call before the kernel is told that a task waits. */
static inline int hafti_io_begin_to_wait_on(hafti_io_descriptor_t *entry, int descriptor) {
    if (HAFTI_IO_UNLIKELY(!__atomic_load_n(&entry->waited_on, __ATOMIC_RELAXED)))
        HAFTI_IO_SHOW(&entry->waited_on, true);
    return hafti_io_let_closes_end(descriptor);
}
/* Ends the waits of the other runs' tasks with -EBADF, and closes the descriptor. The run, which
   may be NULL, has forgotten it. */
int hafti_io_close_elsewhere(const hafti_io_crew_t *crew, int descriptor);
/* Closes the descriptors that others have handed over; called by the thread of a run that is
   alone. */
HAFTI_IO_COLD void hafti_io_take_handed_over(hafti_io_crew_t *crew);

/* Waits until the waiters of its direction are woken. 0, -EBUSY, -ECANCELED, or -EBADF: it was
   closed. */
int hafti_io_wait_on(hafti_io_descriptor_t *descriptor, const hafti_io_operation_t *operation,
                     haft_io_task_t *task);
/* Wakes all waiters if the descriptor was closed; otherwise those that have not asked the kernel
   themselves. */
void hafti_io_wake(hafti_io_descriptor_t *descriptor, enum hafti_io_direction direction,
                   bool closed, bool shared);
/* Whether a waiter transfers bytes in that direction. */
bool hafti_io_transfers(const hafti_io_descriptor_t *descriptor, enum hafti_io_direction direction);

/* A descriptor that is used is not closed before the use ends. 0; -EBADF: it is being closed;
   -ENOMEM. */
int hafti_io_begin_use(hafti_io_worker_t *worker, int descriptor);
void hafti_io_end_use(hafti_io_worker_t *worker, int descriptor);
/* The same for the calling task, to the end of the block that the variable is in, also when that is
   unwound. (Another task may leave the block, if a handler of the program has kept the rest of the
   call.) */
typedef struct hafti_io_use {
    int descriptor;
    uint32_t life; /* of the number, for hafti_io_next_part */
    uint64_t run;  /* its number; 0: it has not begun, or on a thread without tasks */
} hafti_io_use_t;
#define HAFTI_IO_USING __attribute__((cleanup(hafti_io_leave_use)))
int hafti_io_use(hafti_io_use_t *use);
HAFTI_IO_COLD void hafti_io_end_use_begun(hafti_io_use_t *use);
static inline void hafti_io_leave_use(hafti_io_use_t *use) {
    if (HAFTI_IO_UNLIKELY(use->run != 0))
        hafti_io_end_use_begun(use);
}
/* The entry in the calling thread's run; NULL: there is none. */
static inline const hafti_io_descriptor_t *hafti_io_known_here(int descriptor) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    return worker != NULL ? hafti_io_known_descriptor(worker->crew->descriptors, descriptor) : NULL;
}
static inline uint32_t hafti_io_life_of(int descriptor) {
    const hafti_io_descriptor_t *entry = hafti_io_known_here(descriptor);
    return entry != NULL ? __atomic_load_n(&entry->life, __ATOMIC_RELAXED) : 0;
}
/*
 * A call that may take several operations, its parts, is of one file to the end:
 *
 *     HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(descriptor);
 *     do
 *         ... an operation ...
 *     while (... there is more to do ... && hafti_io_next_part(&use) == 0);
 *
 * The first part is as any operation, and costs some loads. From the second on the number is used.
 */
static inline hafti_io_use_t hafti_io_in_parts(int descriptor) {
    return (hafti_io_use_t){.descriptor = descriptor, .life = hafti_io_life_of(descriptor)};
}
/* 0, or why there is no next part: -EBADF, the descriptor was closed; -ENOMEM. */
HAFTI_IO_COLD int hafti_io_next_part(hafti_io_use_t *use);
/* The operation of the entry, as it concerns the lists of its descriptor. */
hafti_io_operation_t hafti_io_operation_of(const struct pollfd *entry);
/* Up to this many descriptors need no memory outside of the frame. */
enum { HAFTI_IO_FEW = 8 };

#endif
