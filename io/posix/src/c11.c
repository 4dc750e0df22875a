/* SPDX-License-Identifier: MIT */
/* The functions of C11 threads, which in glibc are those of POSIX under other names. */
#include "internal.h"

_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t) && sizeof(mtx_t) == sizeof(pthread_mutex_t),
               "A condition and a mutex of C11 are those of POSIX.");

static int result_of(int code) {
    switch (code) {
    case 0:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ETIMEDOUT:
        return thrd_timedout;
    default:
        return thrd_error;
    }
}

HAFT_POSIX_EXPORT int mtx_lock(mtx_t *mutex) {
    return result_of(pthread_mutex_lock((pthread_mutex_t *)(void *)mutex));
}

HAFT_POSIX_EXPORT int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return result_of(
        pthread_cond_wait((pthread_cond_t *)(void *)condition, (pthread_mutex_t *)(void *)mutex));
}

HAFT_POSIX_EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                                    const struct timespec *restrict time) {
    return result_of(pthread_cond_clockwait((pthread_cond_t *)(void *)condition,
                                            (pthread_mutex_t *)(void *)mutex, CLOCK_REALTIME,
                                            time));
}

HAFT_POSIX_EXPORT int cnd_signal(cnd_t *condition) {
    return result_of(pthread_cond_signal((pthread_cond_t *)(void *)condition));
}

HAFT_POSIX_EXPORT int cnd_broadcast(cnd_t *condition) {
    return result_of(pthread_cond_broadcast((pthread_cond_t *)(void *)condition));
}

HAFT_POSIX_EXPORT int thrd_join(thrd_t thread, int *result) {
    void *value = NULL;
    int code = pthread_join(thread, &value);
    if (code == 0 && result != NULL)
        *result = (int)(uintptr_t)value;
    return result_of(code);
}
