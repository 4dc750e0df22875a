/* SPDX-License-Identifier: MIT */
/*
 * A thread's state: the root of its chain of handlers, its serials, its place for C++'s exceptions.
 *
 * The state is thread-local and starts as a constant whose `current` is a scope with nothing in its
 * cache and a serial that no fiber has, so that the hot paths need no test for it: their first
 * lookup or resume comes here.
 */
#include "ground.h"

#include <haft/shown.h>

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(offsetof(hafti_thread_t, current) == 0 && offsetof(hafti_thread_t, exceptions) == 8,
               "haft/inner/hot.h knows where these are");

hafti_exceptions_t haft_no_exceptions;
const haft_handles_t haft_handles_none = {.all = 0};
hafti_exceptions_t haft_always_pending = {&haft_always_pending, 1};
hafti_scope_t haft_unborn = {.kind = HAFTI_SCOPE_ROOT, .handles = &haft_handles_none, .serial = 1};

/* The switch names it in assembly only. */
__thread __attribute__((tls_model("initial-exec"), used)) hafti_thread_t hafti_thread_state = {
    .current = &haft_unborn, .exceptions = &haft_no_exceptions, .globals = &haft_no_exceptions};

/*
 * A thread has a mapping: the stack for its signals, and above that what its lookups have found.
 * Short-lived threads would pay more for mappings than for all else that is done here: so a thread
 * that ends leaves its mapping to a later one, with what was found, which no other thread takes for
 * its own: a serial is never drawn twice.
 */
static const size_t MAPPING = HAFT_SIGNAL_STACK + HAFT_KNOWN * sizeof(haft_known_t);
enum { LEFT = 32 };
static void *left[LEFT]; /* NULL: the place is free */

static void *take_mapping(void) {
    for (int i = 0; i < LEFT; i++) {
        void *mapping = __atomic_load_n(&left[i], __ATOMIC_RELAXED);
        if (mapping != NULL) {
            mapping = __atomic_exchange_n(&left[i], NULL, __ATOMIC_ACQUIRE);
            if (mapping != NULL)
                return mapping;
        }
    }
    void *mapping = mmap(NULL, MAPPING, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static void leave_mapping(void *mapping) {
    for (int i = 0; i < LEFT; i++) {
        void *none = NULL;
        if (__atomic_compare_exchange_n(&left[i], &none, mapping, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
    munmap(mapping, MAPPING);
}

void *haft_signal_memory(const hafti_thread_t *thread) {
    return (char *)thread->known - HAFT_SIGNAL_STACK;
}

static pthread_key_t exit_key;
static bool has_exit_key;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static bool barrier_registered;
bool haft_resume_slowly;
intptr_t haft_thread_offset;
const haft_language_t *haft_process_language;

static void thread_exits(void *value) {
    hafti_thread_t *thread = value;
    haft_signals_t signals;
    haft_signals_block(&signals); /* whose handlers may perform */
    haft_life.thread_ends(thread);
    leave_mapping(haft_signal_memory(thread));
    thread->current = &haft_unborn;
    thread->stamp = 0;
    haft_signals_restore(&signals);
}

static void process_starts(void) {
    haft_thread_offset = (intptr_t)hafti_thread() - (intptr_t)haft_thread_pointer();
    has_exit_key = pthread_key_create(&exit_key, thread_exits) == 0;
    barrier_registered =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    haft_resume_slowly = haft_life.process_starts() || !barrier_registered;
}

/* Every thread draws its serials from blocks of its own. */
uint64_t haft_stamp_block(hafti_thread_t *thread) {
    static uint64_t blocks;
    uint64_t block = __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    thread->stamp = (block << HAFT_STAMP_BITS) + 1;
    return thread->stamp;
}

/* libstdc++ and libc++abi keep a thread's exceptions behind this function; absent in C programs. */
extern hafti_exceptions_t *__cxa_get_globals(void) __attribute__((weak));

/* Returns a sentence about the resource that has run out, or NULL. */
static const char *start(hafti_thread_t *thread) {
    pthread_once(&process_once, process_starts);
    if (!has_exit_key)
        return "The process is out of thread-local keys.";
    char *mapping = take_mapping();
    if (mapping == NULL)
        return "No memory for the state of a thread.";
    thread->known = (haft_known_t *)(void *)(mapping + HAFT_SIGNAL_STACK);
    thread->root = (hafti_scope_t){.kind = HAFTI_SCOPE_ROOT,
                                   .handles = &haft_handles_none,
                                   .serial = haft_stamp_block(thread)};
    thread->defaults = (hafti_scope_t){
        .kind = HAFTI_SCOPE_DEFAULTS, .handles = &haft_handles_none, .outer = &thread->root};
    thread->globals = __cxa_get_globals ? __cxa_get_globals() : &haft_no_exceptions;
    thread->language = haft_process_language;
    haft_exceptions_at_rest(thread);
    thread->current = &thread->root;
    pthread_setspecific(exit_key, thread);
    haft_life.thread_starts(thread);
    return NULL;
}

/* The first use may be in a signal handler: signals are blocked until this ends, and the
   interrupted code may be in the middle of malloc. */
void haft_thread_start(hafti_thread_t *thread) {
    if (thread->stamp != 0) {
        thread->current = &thread->root;
        return;
    }
    haft_signals_t signals;
    haft_signals_block(&signals);
    const char *missing = start(thread);
    haft_signals_restore(&signals);
    if (missing != NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, NULL, NULL, "%s", missing);
}

static __thread __attribute__((tls_model("initial-exec"))) haft_observer_t *observer_here;

haft_observer_t *haft_observer(void) {
    return observer_here;
}

bool haft_switches_told;
void haft_set_observer(haft_observer_t *observer) {
    if (observer != NULL)
        haft_tell_of_switches();
    observer_here = observer;
}

void haft_thread_barrier(void) {
    if (barrier_registered)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
