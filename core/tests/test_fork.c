/* fork while other threads make, throw out of and free fibers: the child has the locks of the
 * library as it needs them. */
#include <haft.h>

#include <pthread.h>

#include "check.h"

HAFT_EFFECT(stop, void, { int code; });

static void *throw_stop(void *unused) {
    (void)unused;
    HAFT_THROW(stop, 7);
}

static void throw_once(const haft_fiber_options_t *options) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new_with(options, throw_stop, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop));
    CHECK(request.effect == HAFT_ID(stop));
}

/* In memory of the caller, of the default size, and of a size that no thread keeps for itself. */
static void throw_from_each_kind(void) {
    enum { SIZE = 16 * 1024 };
    char *memory = malloc(SIZE);
    throw_once(&(haft_fiber_options_t){.memory = memory, .memory_size = SIZE});
    free(memory);
    throw_once(NULL);
    throw_once(&(haft_fiber_options_t){.stack_size = 32 * 1024});
}

static bool ended;
static void *throw_until_ended(void *unused) {
    while (!__atomic_load_n(&ended, __ATOMIC_RELAXED))
        throw_from_each_kind();
    return unused;
}

static void fork_again_and_again(void) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, throw_until_ended, NULL);
    for (int i = 0; i < check_times(1000); i++) {
        pid_t id = fork();
        if (id == 0) {
            alarm(20);
            throw_from_each_kind();
            _exit(check_failures == 0 ? 0 : 1);
        }
        int status = -1;
        while (waitpid(id, &status, 0) != id)
            continue;
        CHECK_EQUAL(status, 0);
        if (status != 0)
            break;
    }
    __atomic_store_n(&ended, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void a_child_of_fork_goes_on_whatever_other_threads_did(void) {
    throw_from_each_kind();
    CHECK_SUCCEEDS(fork_again_and_again);
}

int main(void) {
    /* The one starts no threads in a child of fork, the other finds lost there what other threads
       had. */
    if (!CHECK_THREAD_SANITIZER && !RUNNING_ON_VALGRIND)
        RUN(a_child_of_fork_goes_on_whatever_other_threads_did);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
