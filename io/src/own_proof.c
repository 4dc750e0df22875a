/* SPDX-License-Identifier: MIT */
/*
 * Whether tasks can have thread-locals of their own: what is known of the C library (own_library.c)
 * is tried by a third thread, which goes over to a task's block, and back, and looks whether
 * everything is what it should be.
 */
#include "own_storage.h"
#include "own_threads.h"
#include "system_call.h"

#if defined(__x86_64__)
#    include <asm/prctl.h>
#endif
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HAFTI_IO_SANITIZED 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
        __has_feature(memory_sanitizer)
#        define HAFTI_IO_SANITIZED 1
#    endif
#endif

/* ---- Writing the thread pointer ---- */

bool hafti_io_sets_pointer_by_call;

#if defined(__x86_64__)
void hafti_io_set_pointer_by_call(char *pointer) {
    hafti_io_system_call(SYS_arch_prctl, ARCH_SET_FS, (long)pointer, 0, 0, 0, 0);
    __asm__ volatile("" : : : "memory");
}

/* Whether AT_HWCAP2 has the bit with which the kernel lets programs write the base of FS. */
static bool has_instruction(void) {
    return (getauxval(AT_HWCAP2) & 2) != 0;
}
#elif defined(__aarch64__)
void hafti_io_set_pointer_by_call(char *pointer) {
    (void)pointer; /* never called: any program may write the register */
}

static bool has_instruction(void) {
    return true;
}
#endif

/* ---- A trial, in a third thread ---- */

enum { TRIAL_ID = HAFTI_IO_LAST_OWN_ID };

typedef struct trial {
    char *storage;
    pthread_key_t key;
    bool went_well;
} trial_t;

/* The functions are called by way of these, so that no compiler takes what they return before for
   what they return now. */
static int *(*volatile errno_place)(void) = __errno_location;
static pthread_t (*volatile self)(void) = pthread_self;
static void *(*volatile value_of)(pthread_key_t) = pthread_getspecific;
static int (*volatile set_value)(pthread_key_t, const void *) = pthread_setspecific;

static bool is_as_it_should_be(const trial_t *trial) {
    const char *storage = trial->storage;
    pthread_mutex_t mutex;
    pthread_mutexattr_t recursive;
    hafti_io_known.initialise_ctype();
    *errno_place() = EDOM;
    bool good = (uintptr_t)self() == (uintptr_t)storage - hafti_io_known.before &&
                hafti_io_own_pointer() == storage &&
                (const char *)errno_place() - storage >= hafti_io_known.library &&
                (const char *)errno_place() - storage <
                    hafti_io_known.library + (intptr_t)hafti_io_known.library_size &&
                value_of(trial->key) == NULL && set_value(trial->key, &trial) == 0 &&
                value_of(trial->key) == &trial && uselocale((locale_t)0) == LC_GLOBAL_LOCALE;
    void *memory = malloc(100);
    free(memory);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    good = good && memory != NULL && pthread_mutex_lock(&mutex) == 0 &&
           mutex.__data.__owner == TRIAL_ID && pthread_mutex_trylock(&mutex) == 0 &&
           pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0;
    pthread_mutexattr_destroy(&recursive);
    return good && hafti_io_storage_destroy_keys((char *)(uintptr_t)storage) &&
           value_of(trial->key) == NULL;
}

static void *go_over_and_back(void *argument) {
    trial_t *trial = argument;
    char *own = hafti_io_own_pointer();
    *errno_place() = ERANGE;
    set_value(trial->key, trial);
    hafti_io_carry_kept_words(own, trial->storage);
    hafti_io_set_thread_pointer(trial->storage);
    bool good = is_as_it_should_be(trial);
    hafti_io_carry_kept_words(trial->storage, own);
    hafti_io_set_thread_pointer(own);
    trial->went_well = good && *errno_place() == ERANGE && value_of(trial->key) == trial &&
                       (uintptr_t)self() == (uintptr_t)own - hafti_io_known.before;
    set_value(trial->key, NULL);
    return NULL;
}

static const char *try_on(char *stack) {
    trial_t trial = {.storage = hafti_io_storage_new(TRIAL_ID, stack, HAFTI_IO_TRIAL_STACK)};
    if (trial.storage == NULL)
        return "there is no memory to try it";
    bool runs = pthread_key_create(&trial.key, hafti_io_marker) == 0 &&
                hafti_io_run_on(stack, go_over_and_back, &trial);
    pthread_key_delete(trial.key);
    hafti_io_storage_free(trial.storage);
    return !runs             ? "there is no thread to try it"
           : trial.went_well ? NULL
                             : "in a trial, what the C library knows of a thread was another's";
}

static const char *try_it(void) {
    char *stack = mmap(NULL, HAFTI_IO_TRIAL_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return "there is no memory to try it";
    const char *refused = try_on(stack);
    munmap(stack, HAFTI_IO_TRIAL_STACK);
    return refused;
}

/* ---- The proof ---- */

static const char *refused;

static const char *prove(void) {
#if defined(HAFTI_IO_SANITIZED)
    return "the sanitizers keep what they know of a thread in thread-local variables";
#endif
    if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL ||
        dlsym(RTLD_DEFAULT, "__msan_init") != NULL)
        return "the sanitizers keep what they know of a thread in thread-local variables";
    hafti_io_sets_pointer_by_call = !has_instruction();
    const char *unknown = hafti_io_know_library();
    return unknown != NULL ? unknown : try_it();
}

static void *prove_here(void *unused) {
    refused = prove();
    return unused;
}

/* The threads are waited for: here, and not by a task's wait. (A program without tasks that is
   linked with the archive may lack the default of the effect.) */
static void prove_once(void) {
    if (hafti_io_this_task() != NULL)
        HAFT_PERFORM(haft_io_block_thread, prove_here, NULL);
    else
        prove_here(NULL);
}

const char *hafti_io_own_threads_refused(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prove_once);
    return refused;
}

const char *haft_io_own_thread_locals_refused(void) {
    return hafti_io_own_threads_refused();
}

bool hafti_io_may_own_threads(void) {
    static bool told;
    if (hafti_io_own_threads_refused() == NULL ||
        __atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        return refused == NULL;
    char line[320];
    int size =
        snprintf(line, sizeof line,
                 "haft-io: own_thread_locals cannot be had here: %s. Tasks run without it if "
                 "haft_io_own_thread_locals_refused() is asked first.\n",
                 refused);
    if (write(STDERR_FILENO, line, (size_t)size) < 0)
        return false;
    return false;
}
