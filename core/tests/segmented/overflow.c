/* Code that does not check its stack runs past the end of a segment: the next border reports it. */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void overflow(void *argument) {
    volatile char frame[4096];
    (void)argument;
    for (size_t i = 0; i < sizeof frame; i++) {
        frame[i] = 1;
    }
}

int main(void) {
    enum { SIZE = 1024, BELOW = 8192 };
    char message[200] = {0};
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char *memory = aligned_alloc(64, BELOW + SIZE);
        dup2(ends[1], STDERR_FILENO);
        hafti_segments_init(&test_segments, memory + BELOW, memory + BELOW + SIZE);
        run_on_segments(&test_segments, memory + BELOW + SIZE, overflow, NULL);
        CHECK(!hafti_segments_intact(&test_segments, test_segments.limit));
        hafti_segments_release(&test_segments);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(read(ends[0], message, sizeof message - 1) > 0);
    CHECK(strstr(message, "stack overflow in a segmented fiber"));
    puts("ok 1 overflow of a segment is reported");
    return 0;
}
/* SPDX-License-Identifier: MIT */
