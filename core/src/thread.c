/*
 * A thread's state: the root of its chain of handlers, its epoch, its place for C++'s exceptions.
 *
 * The state is thread-local and starts as a constant whose `current` is a scope that no cache entry is
 * ever valid in, so that the hot paths need no test for it: their first lookup comes here.
 */
#include "internal.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

haft_exceptions_t haft_no_exceptions;
static haft_scope_t unborn = {.kind = HAFT_SCOPE_ROOT};

__thread __attribute__((tls_model("initial-exec"))) haft_thread_t haft_thread_state = {
    .current = &unborn, .epoch = 1, .exceptions = &haft_no_exceptions};

static pthread_key_t exit_key;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static bool barrier_registered;

static void thread_exits(void *value) {
    haft_thread_t *thread = value;
    haft_pool_thread_exit(thread);
    haft_overflow_unwatch_thread(thread);
    thread->current = &unborn;
    thread->epoch = 1;
}

static void process_starts(void) {
    if (pthread_key_create(&exit_key, thread_exits) != 0)
        haft_fail(HAFT_ERROR_NO_MEMORY, NULL, NULL, "The process is out of thread-local keys.");
    barrier_registered =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    haft_tools_detect();
    haft_overflow_watch();
}

/* libstdc++ and libc++abi keep a thread's exceptions behind this function; absent in C programs. */
extern haft_exceptions_t *__cxa_get_globals(void) __attribute__((weak));

static HAFT_COLD void thread_starts(haft_thread_t *thread) {
    static uint32_t threads;
    pthread_once(&process_once, process_starts);
    thread->number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    thread->stamp = (uint64_t)thread->number << 40;
    thread->root = (haft_scope_t){.kind = HAFT_SCOPE_ROOT, .serial = haft_stamp(thread)};
    thread->defaults = (haft_scope_t){.kind = HAFT_SCOPE_DEFAULTS, .outer = &thread->root};
    thread->epoch = haft_stamp(thread);
    thread->exceptions = __cxa_get_globals ? __cxa_get_globals() : &haft_no_exceptions;
    thread->current = &thread->root;
    pthread_setspecific(exit_key, thread);
    haft_overflow_watch_thread(thread);
}

haft_thread_t *haft_thread_ready(void) {
    haft_thread_t *thread = haft_thread();
    if (HAFT_UNLIKELY(thread->current == &unborn))
        thread_starts(thread);
    return thread;
}

void haft_thread_barrier(void) {
    if (barrier_registered)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
