/* SPDX-License-Identifier: MIT */
/*
 * The tasks that wait by an address, of an object that has no list of tasks: a condition, a futex.
 * They are listed here, in rows by the address, each row with a lock of its own. A call that ends
 * waits there looks here first.
 *
 * No wake is lost. A task counts itself in the row before it looks at the word on which it is
 * about to wait; a waker looks at the count after it has changed the word. Both change the count,
 * so one of them comes first, and the other sees what that one did before.
 *
 * The lock of a row is the kernel's futex, without the C library: that library's locks are replaced
 * by this one. No holder waits for anything but another row.
 */
#include "waits.h"
#include "../../src/system_call.h"

#include <string.h>

typedef struct row {
    uint32_t lock; /* 0: free; 1: held; 2: held, and some thread may sleep for it */
    int count;
    hafti_posix_waiter_t *first, *last;
} __attribute__((aligned(64))) row_t;

enum { ROW_BITS = 8 };
static row_t rows[1 << ROW_BITS];

/* In a child of fork no tasks can go on. */
static void forget_waiters(void) {
    memset(rows, 0, sizeof rows);
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_waiters);
}

static row_t *row_of(uintptr_t key) {
    return &rows[(key >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ROW_BITS)];
}

static void lock_row(row_t *row) {
    uint32_t is_free = 0;
    if (__atomic_compare_exchange_n(&row->lock, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&row->lock, 2, __ATOMIC_ACQUIRE) != 0)
        hafti_io_futex(&row->lock, FUTEX_WAIT, 2, NULL);
}
static void unlock_row(row_t *row) {
    if (__atomic_exchange_n(&row->lock, 0, __ATOMIC_RELEASE) == 2)
        hafti_io_futex(&row->lock, FUTEX_WAKE, 1, NULL);
}

static uintptr_t key_of(const hafti_posix_waiter_t *waiter) {
    return __atomic_load_n(&waiter->key, __ATOMIC_RELAXED);
}

/* A requeue changes the waiter's row until one has the lock of both. */
static row_t *lock_row_of(const hafti_posix_waiter_t *waiter) {
    for (;;) {
        row_t *row = row_of(key_of(waiter));
        lock_row(row);
        if (row == row_of(key_of(waiter)))
            return row;
        unlock_row(row);
    }
}

static void enter(row_t *row, hafti_posix_waiter_t *waiter) {
    waiter->next = NULL;
    waiter->previous = row->last;
    *(row->last != NULL ? &row->last->next : &row->first) = waiter;
    row->last = waiter;
    __atomic_fetch_add(&row->count, 1, __ATOMIC_SEQ_CST);
}
static void take_out(row_t *row, hafti_posix_waiter_t *waiter) {
    *(waiter->previous != NULL ? &waiter->previous->next : &row->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->previous : &row->last) = waiter->previous;
    __atomic_fetch_sub(&row->count, 1, __ATOMIC_RELAXED);
}

bool hafti_posix_list(hafti_posix_waiter_t *waiter, const uint32_t *word, uint32_t value) {
    row_t *row = row_of(waiter->key);
    lock_row(row);
    enter(row, waiter);
    bool is_listed = word == NULL || __atomic_load_n(word, __ATOMIC_SEQ_CST) == value;
    if (!is_listed)
        take_out(row, waiter);
    unlock_row(row);
    return is_listed;
}

bool hafti_posix_unlist(hafti_posix_waiter_t *waiter) {
    row_t *row = lock_row_of(waiter);
    if (!waiter->woken)
        take_out(row, waiter);
    unlock_row(row);
    return waiter->woken;
}

/* For people, in dumps. (Locks of C++ and Rust are futexes.) */
static const char *name_of(const hafti_posix_waiter_t *waiter) {
    static const char *const names[] = {[HAFT_POSIX_LOCK] = "a lock or condition of threads",
                                        [HAFT_POSIX_FUTEX] = "a futex",
                                        [HAFT_POSIX_SHARED_FUTEX] = "a futex of processes",
                                        [HAFT_POSIX_SEMAPHORE] = "a semaphore of threads"};
    return names[waiter->key % (sizeof names / sizeof *names)];
}

typedef struct timed_wait {
    hafti_posix_waiter_t *waiter;
    int64_t deadline;
} timed_wait_t;

static void *wait_until(void *argument) {
    const timed_wait_t *wait = argument;
    haft_io_event_wait_as(&wait->waiter->event, wait->deadline, name_of(wait->waiter));
    return NULL;
}

bool hafti_posix_await(hafti_posix_waiter_t *waiter, int64_t deadline) {
    if (deadline == HAFT_IO_FOREVER)
        haft_io_event_wait_to_the_end_as(&waiter->event, name_of(waiter));
    else
        haft_io_shield(wait_until, &(timed_wait_t){waiter, deadline});
    return hafti_posix_unlist(waiter); /* which takes the lock that its waker may hold */
}

/* ---- Waking ---- */

static bool may_have_waiters(row_t *row) {
    return __atomic_fetch_add(&row->count, 0, __ATOMIC_SEQ_CST) != 0;
}

/* The first waiter with this key from there on. */
static hafti_posix_waiter_t *find(hafti_posix_waiter_t *waiter, uintptr_t key, uint32_t bits) {
    while (waiter != NULL && (key_of(waiter) != key || (waiter->bits & bits) == 0))
        waiter = waiter->next;
    return waiter;
}

static void wake_one(row_t *row, hafti_posix_waiter_t *waiter) {
    take_out(row, waiter);
    waiter->woken = true;
    haft_io_event_set(&waiter->event);
}

static int wake_listed(row_t *row, uintptr_t key, int most, uint32_t bits) {
    int count = 0;
    hafti_posix_waiter_t *next = row->first, *waiter;
    while (count < most && (waiter = find(next, key, bits)) != NULL) {
        next = waiter->next;
        wake_one(row, waiter);
        count++;
    }
    return count;
}

static void lock_cut(hafti_posix_cut_t *cut) {
    while (__atomic_exchange_n(&cut->lock, 1, __ATOMIC_ACQUIRE) != 0) {
    }
}
static void unlock_cut(hafti_posix_cut_t *cut) {
    __atomic_store_n(&cut->lock, 0, __ATOMIC_RELEASE);
}

bool hafti_posix_await_cut(hafti_posix_waiter_t *waiter, int64_t deadline) {
    hafti_posix_cut_t *cut = hafti_posix_cut();
    if (cut == NULL)
        return hafti_posix_await(waiter, deadline);
    lock_cut(cut);
    bool is_asked = hafti_posix_is_asked_to_end();
    cut->waiter = is_asked ? NULL : waiter;
    unlock_cut(cut);
    bool woken = is_asked ? hafti_posix_unlist(waiter) : hafti_posix_await(waiter, deadline);
    lock_cut(cut);
    cut->waiter = NULL;
    unlock_cut(cut);
    return woken;
}

/* Sets the flag, and wakes the waiter if there is one. */
static bool cut_wait(hafti_posix_cut_t *cut, bool *flag, bool without_waiter) {
    lock_cut(cut);
    hafti_posix_waiter_t *waiter = cut->waiter;
    if (waiter != NULL || without_waiter)
        __atomic_store_n(flag, true, __ATOMIC_RELEASE);
    if (waiter != NULL) {
        row_t *row = lock_row_of(waiter);
        if (!waiter->woken)
            wake_one(row, waiter);
        unlock_row(row);
    }
    unlock_cut(cut);
    return waiter != NULL;
}

void hafti_posix_ask_to_end(hafti_posix_cut_t *cut) {
    cut_wait(cut, &cut->is_asked, true);
}

bool hafti_posix_interrupt(hafti_posix_cut_t *cut) {
    return cut_wait(cut, &cut->is_interrupted, false);
}

const haft_io_task_t *hafti_posix_first_of(uintptr_t key) {
    row_t *row = row_of(key);
    lock_row(row);
    const hafti_posix_waiter_t *first = find(row->first, key, UINT32_MAX);
    const haft_io_task_t *task = first != NULL ? first->task : NULL;
    unlock_row(row);
    return task;
}

int hafti_posix_wake(uintptr_t key, int most, uint32_t bits) {
    row_t *row = row_of(key);
    if (!may_have_waiters(row))
        return 0;
    lock_row(row);
    int count = wake_listed(row, key, most, bits);
    unlock_row(row);
    return count;
}

typedef bool is_woken_t(hafti_posix_waiter_t *waiter, const void *by);
static void wake_each(is_woken_t *is_woken, const void *by) {
    for (row_t *row = rows; row < rows + (1 << ROW_BITS); row++) {
        if (__atomic_load_n(&row->count, __ATOMIC_RELAXED) == 0)
            continue;
        lock_row(row);
        for (hafti_posix_waiter_t *waiter = row->first, *next; waiter != NULL; waiter = next) {
            next = waiter->next;
            if (is_woken(waiter, by))
                wake_one(row, waiter);
        }
        unlock_row(row);
    }
}

typedef struct visitor {
    bool (*visit)(uint32_t *word);
} visitor_t;
static bool is_visited(hafti_posix_waiter_t *waiter, const void *by) {
    return waiter->parks &&
           ((const visitor_t *)by)->visit((uint32_t *)(key_of(waiter) & -sizeof(uint32_t)));
}
void hafti_posix_visit_parked(bool (*visit)(uint32_t *word)) {
    wake_each(is_visited, &(visitor_t){visit});
}

bool hafti_posix_has_waiters(uintptr_t key) {
    return may_have_waiters(row_of(key));
}

static bool is_of_kind(hafti_posix_waiter_t *waiter, const void *by) {
    return (int)(key_of(waiter) % sizeof(uint32_t)) == *(const int *)by;
}
void hafti_posix_wake_kind(int kind) {
    wake_each(is_of_kind, &kind);
}

static int move_listed(row_t *from, uintptr_t key, row_t *to, uintptr_t other, int most) {
    int count = 0;
    hafti_posix_waiter_t *next = from->first, *waiter;
    while (count < most && (waiter = find(next, key, UINT32_MAX)) != NULL) {
        next = waiter->next;
        count++;
        if (key == other)
            continue;
        take_out(from, waiter);
        __atomic_store_n(&waiter->key, other, __ATOMIC_RELAXED);
        enter(to, waiter);
    }
    return count;
}

/* The threads come first, since their call compares the word; no task can begin to wait between
   that and the moves. The system returns the sum of those that it has woken and moved. */
long hafti_posix_requeue(uintptr_t key, uintptr_t other, int most_woken, int most_moved,
                         long (*of_threads)(const void *), const void *argument) {
    row_t *from = row_of(key), *to = row_of(other);
    if (!may_have_waiters(from))
        return of_threads(argument);
    lock_row(from < to ? from : to);
    if (from != to)
        lock_row(from < to ? to : from);
    long count = of_threads(argument);
    if (count >= 0) {
        int woken = count < most_woken ? (int)count : most_woken;
        most_moved -= (int)count - woken;
        count += wake_listed(from, key, most_woken - woken, UINT32_MAX);
        count += move_listed(from, key, to, other, most_moved);
    }
    if (from != to)
        unlock_row(to);
    unlock_row(from);
    return count;
}
