/* SPDX-License-Identifier: MIT */
/*
 * How threads wait for each other as such: the lock of an object, for a few instructions
 * (hafti_io_guard: 0 free, 1 held, 2 held and some thread sleeps for it), and the cell of a wait
 * outside of tasks.
 */
#include "base.h"
#include "system_call.h"

#include <sched.h>

/* The releasing thread checks whether the lock is 2, and then makes it 0. A thread that writes 2
   in between is not woken: usually it finds 0 when it is about to sleep; if not, it sleeps for
   MOMENT. */
void hafti_io_guard_contended(uint32_t *lock) {
    enum { SPINS = 100 };
    static const struct timespec MOMENT = {.tv_nsec = HAFT_IO_MILLISECOND};
    for (int i = 0; i < SPINS; i++) {
        uint32_t is_free = 0;
        if (__atomic_load_n(lock, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(lock, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return;
    }
    while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0)
        hafti_io_futex(lock, FUTEX_WAIT, 2, &MOMENT);
}

void hafti_io_wake_guarded(uint32_t *lock) {
    hafti_io_futex(lock, FUTEX_WAKE, 1, NULL);
}

void hafti_io_relax(unsigned *turns) {
    enum { SPINS = 100 };
    if (++*turns % SPINS == 0)
        sched_yield();
}
