/* SPDX-License-Identifier: MIT */
/*
 * Names, stacks, signals, clocks, processors and policies of threads that are tasks. The C library
 * would look for a thread of the task's number in the system, where there is none. A property that
 * only a thread of the system can have is that of the thread on which the task runs, or is refused.
 */
#include "thread_tasks.h"
#include "../../src/system_call.h"

#include <string.h>

/* ---- Names ---- */

HAFT_POSIX_EXPORT int pthread_setname_np(pthread_t handle, const char *name) {
    hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_setname_np)(handle, name);
    size_t size = strlen(name) + 1;
    if (size > sizeof thread->name)
        return ERANGE;
    hafti_posix_lock_threads();
    memcpy(thread->name, name, size);
    hafti_posix_unlock_threads();
    return 0;
}

HAFT_POSIX_EXPORT int pthread_getname_np(pthread_t handle, char *name, size_t size) {
    hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_getname_np)(handle, name, size);
    if (size < sizeof thread->name)
        return ERANGE;
    hafti_posix_lock_threads();
    memcpy(name, thread->name, sizeof thread->name);
    hafti_posix_unlock_threads();
    return 0;
}

/* ---- Stacks ---- */

HAFT_POSIX_EXPORT int pthread_getattr_np(pthread_t handle, pthread_attr_t *attributes) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL)
        return SYSTEM(pthread_getattr_np)(handle, attributes);
    int code = pthread_attr_init(attributes);
    if (code == 0)
        code = pthread_attr_setstack(attributes, thread->stack, thread->stack_size);
    if (code == 0 && __atomic_load_n(&thread->is_unheld, __ATOMIC_RELAXED))
        code = pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    return code;
}

/* ---- Signals ---- */

/* Sends the signal to the task's thread of the system, whichever task that runs at the time. */
static int send_signal(pthread_t handle, int signal, const union sigval *value) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return value != NULL ? SYSTEM(pthread_sigqueue)(handle, signal, *value)
                             : SYSTEM(pthread_kill)(handle, signal);
    if (signal < 0 || signal > SIGRTMAX)
        return EINVAL;
    if (signal == 0)
        return 0;
    if (thread != hafti_posix_this_thread())
        hafti_posix_tell_once(HAFT_POSIX_TOLD_SIGNAL,
                              "pthread_kill: the other thread is a task. The handler runs now, on "
                              "the caller's stack, and a call in which the other one waits goes on "
                              "waiting. (This is told once.)");
    siginfo_t information = {.si_signo = signal, .si_code = SI_QUEUE};
    information.si_pid = getpid();
    information.si_uid = getuid();
    if (value != NULL)
        information.si_value = *value;
    long thread_number = hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    long code = value != NULL
                    ? hafti_io_system_call(SYS_rt_tgsigqueueinfo, getpid(), thread_number, signal,
                                           (long)&information, 0, 0)
                    : hafti_io_system_call(SYS_tgkill, getpid(), thread_number, signal, 0, 0, 0);
    return (int)-code;
}

HAFT_POSIX_EXPORT int pthread_kill(pthread_t handle, int signal) {
    return send_signal(handle, signal, NULL);
}

HAFT_POSIX_EXPORT int pthread_sigqueue(pthread_t handle, int signal, const union sigval value) {
    return send_signal(handle, signal, &value);
}

/* ---- Clocks, processors, policies ---- */

HAFT_POSIX_EXPORT int pthread_getcpuclockid(pthread_t handle, clockid_t *clock) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_getcpuclockid)(handle, clock);
    *clock = CLOCK_THREAD_CPUTIME_ID; /* its thread's */
    return 0;
}

HAFT_POSIX_EXPORT int pthread_setaffinity_np(pthread_t handle, size_t size, const cpu_set_t *set) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_setaffinity_np)(handle, size, set);
    return CPU_COUNT_S(size, set) != 0 ? 0 : EINVAL; /* it runs where its thread does */
}

HAFT_POSIX_EXPORT int pthread_getaffinity_np(pthread_t handle, size_t size, cpu_set_t *set) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_getaffinity_np)(handle, size, set);
    int before = hafti_posix_error();
    int code = sched_getaffinity(0, size, set) == 0 ? 0 : hafti_posix_error();
    hafti_posix_set_error(before);
    return code;
}

HAFT_POSIX_EXPORT int pthread_setschedparam(pthread_t handle, int policy,
                                            const struct sched_param *parameters) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_setschedparam)(handle, policy, parameters);
    if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
        return EPERM;
    return parameters->sched_priority == 0 ? 0 : EINVAL;
}

HAFT_POSIX_EXPORT int pthread_getschedparam(pthread_t handle, int *policy,
                                            struct sched_param *parameters) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_getschedparam)(handle, policy, parameters);
    *policy = SCHED_OTHER;
    *parameters = (struct sched_param){.sched_priority = 0};
    return 0;
}

HAFT_POSIX_EXPORT int pthread_setschedprio(pthread_t handle, int priority) {
    const hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL || thread->kept == NULL)
        return SYSTEM(pthread_setschedprio)(handle, priority);
    return priority == 0 ? 0 : EINVAL;
}
