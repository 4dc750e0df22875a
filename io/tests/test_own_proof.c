/* SPDX-License-Identifier: MIT */
/* The proof that tasks can have thread-locals of their own comes out as ever while other threads
   call setuid, for which the C library marks all threads for a moment. */
#include "check_io.h"

#include <pthread.h>

enum { PROOFS = 200, THREADS = 2 };

/* Any process may take the user that it has. */
static void *takes_its_user(void *unused) {
    while (setuid(getuid()) == 0)
        continue;
    return unused;
}

/* In a child, since a process makes the proof once. */
static void prove(void) {
    const char *refused = haft_io_own_thread_locals_refused();
    if (refused != NULL)
        fprintf(stderr, "%s\n", refused);
    _exit(refused == NULL ? 0 : 1);
}
static void prove_beside_threads(void) {
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&thread, NULL, takes_its_user, NULL), 0);
    prove();
}

static void threads_that_call_setuid_are_no_reason_to_refuse(void) {
    for (int i = 0; i < check_times(PROOFS); i++)
        CHECK_SUCCEEDS(prove_beside_threads);
}

int main(void) {
    check_child_t alone = check_child(prove);
    CHECK_EQUAL(alone.signal, 0);
    if (alone.status != 0) {
        printf("skipped: %s", alone.output);
        return 77;
    }
    if (setuid(getuid()) != 0) {
        printf("skipped: this process may not take the user that it has: %s\n", strerror(errno));
        return 77;
    }
    RUN(threads_that_call_setuid_are_no_reason_to_refuse);
    return check_end();
}
