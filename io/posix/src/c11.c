/* SPDX-License-Identifier: MIT */
/* The functions of C11 threads, which in glibc are those of POSIX under other names. */
#include "thread_tasks.h"

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

typedef struct start {
    thrd_start_t function;
    void *argument;
} start_t;
static void *run_start(void *argument) {
    start_t start = *(start_t *)argument;
    free(argument);
    return (void *)(intptr_t)start.function(start.argument);
}

HAFT_POSIX_EXPORT int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
    if (!hafti_posix_makes_tasks())
        return SYSTEM(thrd_create)(thread, function, argument);
    start_t *start = malloc(sizeof *start);
    if (start == NULL)
        return thrd_nomem;
    *start = (start_t){function, argument};
    int code = pthread_create(thread, NULL, run_start, start);
    if (code == 0)
        return thrd_success;
    free(start);
    return thrd_nomem;
}

HAFT_POSIX_EXPORT int thrd_detach(thrd_t thread) {
    return result_of(pthread_detach(thread));
}

HAFT_POSIX_EXPORT void thrd_exit(int result) {
    if (hafti_posix_this_thread() == NULL)
        SYSTEM(thrd_exit)(result);
    pthread_exit((void *)(intptr_t)result);
}

HAFT_POSIX_EXPORT void thrd_yield(void) {
    sched_yield();
}

HAFT_POSIX_EXPORT void call_once(once_flag *flag, void (*function)(void)) {
    _Static_assert(sizeof *flag == sizeof(pthread_once_t), "They are the same.");
    pthread_once((pthread_once_t *)(void *)flag, function);
}

HAFT_POSIX_EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time) {
    return result_of(pthread_mutex_timedlock((pthread_mutex_t *)(void *)mutex, time));
}

HAFT_POSIX_EXPORT int mtx_unlock(mtx_t *mutex) {
    return result_of(pthread_mutex_unlock((pthread_mutex_t *)(void *)mutex));
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
