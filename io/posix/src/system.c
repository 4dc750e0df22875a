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

/* Resolves the functions early, and not on the stack of the first task that reads something. */
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

/* ---- Messages at run time ---- */

static void tell(const char *text) {
    dprintf(STDERR_FILENO, "haft-posix: %s\n", text);
}

void hafti_posix_tell_once(enum hafti_posix_told what, const char *text) {
    static bool told[HAFT_POSIX_TOLD_COUNT];
    if (!__atomic_exchange_n(&told[what], true, __ATOMIC_RELAXED))
        tell(text);
}

void hafti_posix_end_process(const char *text) {
    tell(text);
    abort();
}

void hafti_posix_make_thread(void *(*function)(void *)) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* for the program's own threads */
    if (SYSTEM(pthread_create)(&thread, NULL, function, NULL) == 0)
        SYSTEM(pthread_detach)(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- pthread_cancel of a thread that is a task ---- */

static __thread __attribute__((tls_model("initial-exec"))) hafti_posix_cut_t *own_cut;

void hafti_posix_set_cut(hafti_posix_cut_t *cut) {
    own_cut = cut;
}
__attribute__((noinline)) hafti_posix_cut_t *hafti_posix_cut(void) {
    __asm__ volatile("" : : : "memory");
    return own_cut;
}

static __attribute__((noinline, cold)) bool lets_be_asked(void) {
    int state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, NULL);
    return state == PTHREAD_CANCEL_ENABLE;
}

bool hafti_posix_is_asked_to_end(void) {
    const hafti_posix_cut_t *cut = hafti_posix_cut();
    return cut != NULL && __atomic_load_n(&cut->is_asked, __ATOMIC_ACQUIRE) && lets_be_asked();
}

bool hafti_posix_was_interrupted(void) {
    hafti_posix_cut_t *cut = hafti_posix_cut();
    return cut != NULL && __atomic_exchange_n(&cut->is_interrupted, false, __ATOMIC_RELAXED);
}

void hafti_posix_end_if_asked(void) {
    if (hafti_posix_is_asked_to_end())
        hafti_posix_cut()->end();
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
    if (hafti_posix_was_interrupted())
        return -EINTR;
    bool before = haft_io_return_cancels(true);
    int code = haft_io_unwind_cancelled();
    haft_io_return_cancels(before);
    hafti_posix_end_if_asked();
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
