/* SPDX-License-Identifier: MIT */
/*
 * Locks for many readers or one writer.
 *
 * A release hands the lock to the first waiter, under the object's lock: to a writer, or to all
 * readers up to the next writer. No task overtakes a waiter. So while a task waits, either the lock
 * is held, or a task that has the object's lock is about to let the first waiter in. A writer that
 * gives up its wait lets the readers behind it in.
 */
#include "objects.h"

enum wanted { TO_READ = HAFTI_IO_ARMS, TO_WRITE };

static bool is_free_for(const haft_io_rwlock_t *lock, enum wanted wanted) {
    return !lock->writer && (wanted == TO_READ || lock->readers == 0);
}

static void take(haft_io_rwlock_t *lock, enum wanted wanted, haft_io_task_t *task) {
    if (wanted == TO_READ) {
        lock->readers++;
        return;
    }
    lock->writer = true;
    lock->holder = task;
}

static void let_in(haft_io_rwlock_t *lock) {
    while (lock->waiting.first != NULL) {
        hafti_io_place_t *first = lock->waiting.first;
        enum wanted wanted = (enum wanted)first->outcome;
        if (!is_free_for(lock, wanted))
            return;
        hafti_io_leave_place(first);
        haft_io_task_t *task = first->cell->task;
        if (hafti_io_cell_win(first->cell, first->outcome))
            take(lock, wanted, task);
    }
}

static bool try_to_take(haft_io_rwlock_t *lock, enum wanted wanted) {
    bool taken = lock->waiting.first == NULL && is_free_for(lock, wanted);
    if (taken)
        take(lock, wanted, hafti_io_this_task());
    return taken;
}

static int lock_until(haft_io_rwlock_t *lock, enum wanted wanted, int64_t deadline) {
    if (HAFTI_IO_UNLIKELY(!hafti_io_has_its_turn(HAFTI_IO_CANCELLABLE)))
        return haft_io_unwind_cancelled();
    hafti_io_guard(&lock->lock);
    if (HAFTI_IO_LIKELY(try_to_take(lock, wanted))) {
        hafti_io_unguard(&lock->lock);
        return 0;
    }
    hafti_io_cell_t cell = hafti_io_cell_to_wait(&lock->lock);
    hafti_io_place_t place = {.cell = &cell, .outcome = wanted};
    hafti_io_take_place(&lock->waiting, &place);
    hafti_io_unguard(&lock->lock);
    uint32_t outcome = hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, deadline,
                                          wanted == TO_READ ? "a lock to read" : "a lock to write");
    if (HAFTI_IO_LIKELY(outcome == (uint32_t)wanted))
        return 0;
    hafti_io_guard(&lock->lock);
    hafti_io_leave_place(&place);
    let_in(lock);
    hafti_io_unguard(&lock->lock);
    return outcome == HAFTI_IO_CANCELLED ? haft_io_unwind_cancelled() : -ETIMEDOUT;
}

static bool try_lock(haft_io_rwlock_t *lock, enum wanted wanted) {
    hafti_io_has_its_turn(HAFTI_IO_TO_THE_END);
    hafti_io_guard(&lock->lock);
    bool taken = try_to_take(lock, wanted);
    hafti_io_unguard(&lock->lock);
    return taken;
}

int haft_io_rwlock_read_lock_until(haft_io_rwlock_t *lock, int64_t deadline) {
    return lock_until(lock, TO_READ, deadline);
}

int haft_io_rwlock_read_lock(haft_io_rwlock_t *lock) {
    return lock_until(lock, TO_READ, HAFT_IO_FOREVER);
}

bool haft_io_rwlock_try_read_lock(haft_io_rwlock_t *lock) {
    return try_lock(lock, TO_READ);
}

int haft_io_rwlock_write_lock_until(haft_io_rwlock_t *lock, int64_t deadline) {
    return lock_until(lock, TO_WRITE, deadline);
}

int haft_io_rwlock_write_lock(haft_io_rwlock_t *lock) {
    return lock_until(lock, TO_WRITE, HAFT_IO_FOREVER);
}

bool haft_io_rwlock_try_write_lock(haft_io_rwlock_t *lock) {
    return try_lock(lock, TO_WRITE);
}

void haft_io_rwlock_unlock(haft_io_rwlock_t *lock) {
    hafti_io_guard(&lock->lock);
    bool held = lock->writer || lock->readers != 0;
    if (lock->writer)
        lock->writer = false;
    else if (held)
        lock->readers--;
    let_in(lock);
    hafti_io_unguard(&lock->lock);
    if (HAFTI_IO_UNLIKELY(!held))
        hafti_io_misuse("A lock for readers and writers that is not locked was unlocked.");
}
