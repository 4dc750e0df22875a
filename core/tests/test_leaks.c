/* Memory to which only stacks of fibers refer at the end of the process is no leak: LeakSanitizer,
 * where it is, ends this program with an error otherwise. */
#include <haft.h>

#include "check.h"

HAFT_EFFECT(wait, void, {});

static void use(char **memory) {
    __asm__ volatile("" : : "r"(memory) : "memory");
}

static void *wait_with_memory(void *unused) {
    char *memory = malloc(1000);
    use(&memory);
    HAFT_PERFORM(wait);
    use(&memory);
    free(memory);
    return unused;
}
static void *nest(void *unused) {
    haft_resume(haft_fiber_new(wait_with_memory, NULL), HAFT_NO_REPLY, HAFT_HANDLES());
    return unused;
}
static void *end_here(void *unused) {
    (void)unused;
    exit(0);
}

/* Out of sight of the thread's own stack and registers. */
static __attribute__((noinline)) void leave_suspended(void *(*function)(void *)) {
    haft_resume(haft_fiber_new(function, NULL), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static __attribute__((noinline)) void end_inside(void) {
    char *memory = malloc(1000);
    use(&memory);
    haft_fiber_t *k = haft_fiber_new(end_here, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    use(&memory);
}

int main(void) {
    leave_suspended(wait_with_memory);
    leave_suspended(nest);
    end_inside();
}
/* SPDX-License-Identifier: MIT */
