/* SPDX-License-Identifier: MIT */
/*
 * The system below this library: the table of its functions, which are found behind this library's
 * own; errno and results; and whether the process is a child of fork or vfork. All other files use
 * this one. They call the system by the table (SYSTEM, SYSTEM_OF), and a function of this library
 * by its plain name only where they are made of it, as creat is of open.
 */
#include "system.h"
#include "../../src/system_call.h"

#include "haft/posix.h"

#include <dlfcn.h>
#include <string.h>

/* ---- The table ---- */

hafti_posix_system_t haft_posix_functions;
bool hafti_posix_has_functions;

static int called_fstat(int descriptor, struct stat *status) {
    return (int)hafti_posix_result(
        hafti_io_system_call(SYS_fstat, descriptor, (long)status, 0, 0, 0, 0));
}
static int called_fstatat(int directory, const char *restrict path, struct stat *restrict status,
                          int flags) {
    return (int)hafti_posix_result(
        hafti_io_system_call(SYS_newfstatat, directory, (long)path, (long)status, flags, 0, 0));
}
static int called_mknodat(int directory, const char *path, mode_t mode, dev_t device) {
    if (device > UINT32_MAX) /* the kernel's are smaller */
        return (int)hafti_posix_result(-EINVAL);
    return (int)hafti_posix_result(
        hafti_io_system_call(SYS_mknodat, directory, (long)path, mode, (long)device, 0, 0));
}

__attribute__((cold)) void hafti_posix_find_functions(void) {
    void *address;
#define FIND(name)                                                                                 \
    address = dlsym(RTLD_NEXT, #name);                                                             \
    memcpy(&haft_posix_functions.name, &address, sizeof address);
    HAFT_POSIX_FUNCTIONS(FIND)
#undef FIND
#define IS_CALLED(name) haft_posix_functions.name = called_##name;
    HAFT_POSIX_CALLED_FUNCTIONS(IS_CALLED)
#undef IS_CALLED
    __atomic_store_n(&hafti_posix_has_functions, true, __ATOMIC_RELEASE);
}

/* Resolved early, and not on the stack of the first task that reads something. */
__attribute__((constructor)) static void find_early(void) {
    hafti_posix_system();
}

/* (By a name that no sanitizer intercepts.) */
bool haft_posix_answers(void) {
    void *first = dlsym(RTLD_DEFAULT, "sched_yield");
    Dl_info here, there;
    return dladdr((void *)(uintptr_t)&haft_posix_answers, &here) != 0 &&
           dladdr(first, &there) != 0 && here.dli_fbase == there.dli_fbase;
}

/* ---- errno, and results ---- */

__attribute__((noinline)) int hafti_posix_error(void) {
    __asm__ volatile("" : : : "memory");
    return errno;
}

__attribute__((noinline)) void hafti_posix_set_error(int error) {
    __asm__ volatile("" : : : "memory");
    errno = error;
}

__attribute__((noinline)) void hafti_posix_set_host_error(int error) {
    __asm__ volatile("" : : : "memory");
    h_errno = error;
}

int hafti_posix_cancelled(void) {
    bool before = haft_io_return_cancels(true);
    int code = haft_io_unwind_cancelled();
    haft_io_return_cancels(before);
    return code;
}

ssize_t hafti_posix_answer(ssize_t done, int before) {
    if (done == -ECANCELED)
        done = hafti_posix_cancelled();
    hafti_posix_set_error(done >= 0 ? before : (int)-done);
    return done >= 0 ? done : -1;
}

/* ---- Children ---- */

/* 0: libhaft-io has not been initialised. It is initialised before this library, but constructors
   of other libraries may call earlier. */
static pid_t process;
static bool is_child;

static void in_child_of_fork(void) {
    process = getpid();
    is_child = true;
}
__attribute__((constructor)) static void watch_forks(void) {
    process = getpid();
    pthread_atfork(NULL, NULL, in_child_of_fork);
}

bool hafti_posix_is_child(void) {
    return is_child;
}

/* A child of vfork shares its parent's memory, with the lists of waiters, but has descriptors of
   its own. */
bool hafti_posix_is_child_of_vfork(void) {
    return getpid() != process;
}
