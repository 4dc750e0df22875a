/* SPDX-License-Identifier: MIT */
/* Functions that run once: the first task calls them, and the others wait for it. */
#include "objects.h"

static void unlock_scoped(haft_io_mutex_t **mutex) {
    haft_io_mutex_unlock(*mutex);
}

int haft_io_once_call_until(haft_io_once_t *once, void (*function)(void *), void *argument,
                            int64_t deadline) {
    if (HAFTI_IO_UNLIKELY(!hafti_io_has_its_turn(HAFTI_IO_CANCELLABLE)))
        return haft_io_unwind_cancelled();
    if (HAFTI_IO_LIKELY(__atomic_load_n(&once->done, __ATOMIC_ACQUIRE)))
        return 0;
    int code = haft_io_mutex_lock_until(&once->mutex, deadline);
    if (code != 0)
        return code;
    __attribute__((cleanup(unlock_scoped), unused)) haft_io_mutex_t *locked = &once->mutex;
    if (!once->done) {
        function(argument);
        __atomic_store_n(&once->done, 1, __ATOMIC_RELEASE);
    }
    return 0;
}

int haft_io_once_call(haft_io_once_t *once, void (*function)(void *), void *argument) {
    return haft_io_once_call_until(once, function, argument, HAFT_IO_FOREVER);
}
