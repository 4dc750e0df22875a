/* SPDX-License-Identifier: MIT */
/* Lists, the locks of threads, time: the parts that do not use tasks. */
#ifndef HAFTI_IO_BASE_H
#define HAFTI_IO_BASE_H

#include "haft/io_binding.h"
#include "results.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/single_threaded.h>

#define HAFTI_IO_COLD __attribute__((cold, noinline))
/* For functions that run between a message and its answer: the linker puts them side by side. */
#define HAFTI_IO_HOT __attribute__((hot))
#define HAFTI_IO_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HAFTI_IO_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum { HAFTI_IO_LINE = 64 }; /* of the processor's caches */

typedef struct hafti_io_worker hafti_io_worker_t;
typedef struct hafti_io_crew hafti_io_crew_t;
typedef struct hafti_io_operation hafti_io_operation_t;
typedef struct hafti_io_several hafti_io_several_t;
typedef struct hafti_io_lent hafti_io_lent_t;
typedef struct hafti_io_limit hafti_io_limit_t;

/* Stores what another thread looks at, before a look at what the other thread stores: one of the
   two sees the other's. By an exchange: so does a store that is SEQ_CST, but not where qemu (7.2)
   runs AArch64's. */
#define HAFTI_IO_SHOW(place, value) (void)__atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)

/* A link of a ring; the ring's head is one, too. Zeroed: not in a ring. */
typedef struct hafti_io_link {
    struct hafti_io_link *next, *previous;
} hafti_io_link_t;

static inline void hafti_io_ring(hafti_io_link_t *head) {
    head->next = head->previous = head;
}
static inline bool hafti_io_ring_empty(const hafti_io_link_t *head) {
    return head->next == head;
}
static inline void hafti_io_append(hafti_io_link_t *head, hafti_io_link_t *link) {
    link->next = head;
    link->previous = head->previous;
    head->previous->next = link;
    head->previous = link;
}
static inline bool hafti_io_linked(const hafti_io_link_t *link) {
    return link->next != NULL;
}
static inline void hafti_io_unlink(hafti_io_link_t *link) {
    link->next->previous = link->previous;
    link->previous->next = link->next;
    link->next = link->previous = NULL;
}
/* Adds one; only one thread does, and others may read. */
#define HAFTI_IO_COUNT(counter)                                                                    \
    __atomic_store_n(&(counter), __atomic_load_n(&(counter), __ATOMIC_RELAXED) + 1,                \
                     __ATOMIC_RELAXED)
#define HAFTI_IO_OWNER(pointer, type, field)                                                       \
    ((type *)(void *)((char *)(pointer)-offsetof(type, field)))

typedef struct hafti_io_runner hafti_io_runner_t;

/* Starts a thread of the library's own, which blocks all signals but those of faults (threads.c).
   Returns 0, or an error. */
int hafti_io_start_thread(pthread_t *thread, void *(*function)(void *), void *argument);
/* Gives what a thread pointer `to` leads to the mask of the program that the calling thread knows;
   `from` is the pointer under which the caller is. */
void hafti_io_copy_programs_mask(const char *from, char *to);
/* To be called in a child of fork, of which the caller is the only thread. */
void hafti_io_become_programs_thread(void);

/* Closes the descriptor, also if a signal interrupts close(2). */
int hafti_io_close_file(int descriptor);

int64_t hafti_io_clock(void);
/* The same some milliseconds late, which takes less time. */
int64_t hafti_io_clock_roughly(void);

/* The lock of an object, for a few instructions. */
HAFTI_IO_COLD void hafti_io_guard_contended(uint32_t *lock);
HAFTI_IO_COLD void hafti_io_wake_guarded(uint32_t *lock);
static inline void hafti_io_guard(uint32_t *lock) {
    if (__libc_single_threaded) {
        *lock = 1;
        return;
    }
    uint32_t is_free = 0;
    if (HAFTI_IO_UNLIKELY(!__atomic_compare_exchange_n(lock, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                                       __ATOMIC_RELAXED)))
        hafti_io_guard_contended(lock);
}
/* A load and a store take a third of an exchange; what comes between is in locks.c. */
static inline void hafti_io_unguard(uint32_t *lock) {
    bool is_awaited = __atomic_load_n(lock, __ATOMIC_RELAXED) == 2;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    if (HAFTI_IO_UNLIKELY(is_awaited))
        hafti_io_wake_guarded(lock);
}
/* Pauses while another thread does something of a few instructions; gives way to it once that takes
   longer. */
void hafti_io_relax(unsigned *turns);

/* Returns an eventfd, or a negative error number. */
int hafti_io_waker_open(void);
void hafti_io_waker_wake(int waker);
/* To be called after it was readable. */
void hafti_io_waker_reset(int waker);

/* poll(2), on this thread, until a time of hafti_io_clock(). */
int hafti_io_poll_blocking(struct pollfd *entries, size_t count, int64_t deadline);
/* Sleeps on this thread before another try, after this many in vain, where nothing notifies of a
   change. */
void hafti_io_pause(unsigned turn);

#endif
