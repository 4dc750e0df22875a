/* Coroutines deeper than any fixed stack, a thousand of them at once, and a function of the system
   through a wrapper. */
#include <seff.h>
#include <stdio.h>
#include <string.h>

MAKE_SYSCALL_WRAPPER(size_t, strlen, const char *text);
MAKE_SYSCALL_WRAPPER(int, puts, const char *text);

DEFINE_EFFECT(bottom, 4, int64_t, { int64_t depth; });

static int64_t down(int64_t depth) {
    volatile char frame[200];
    memset((char *)frame, 1, 8);
    return depth == 0 ? PERFORM(bottom, 5) : frame[3] + down(depth - 1);
}

static void *dives(void *depth) {
    int64_t reached = down((int64_t)depth);
    if (seff_current_stack_top() == NULL)
        return NULL;
    return (void *)reached;
}
static void *talks(void *text) {
    puts_syscall_wrapper(text);
    THROW(bottom, (int64_t)strlen_syscall_wrapper(text));
}

int main(void) {
    static seff_coroutine_t *k[1000];
    int64_t sum = 0;
    for (int i = 0; i < 1000; i++) {
        k[i] = seff_coroutine_new_sized(dives, (void *)(int64_t)(i == 0 ? 100000 : i), 128);
        sum += ((EFF_PAYLOAD_T(bottom) *)seff_resume(k[i], NULL, HANDLES(bottom)).payload)->depth;
    }
    for (int i = 0; i < 1000; i++) {
        seff_request_t request = seff_resume(k[i], (void *)1, HANDLES(bottom));
        if (!seff_finished(request))
            return 1;
        sum += (int64_t)request.payload;
        seff_coroutine_delete(k[i]);
    }
    printf("%ld\n", sum);
    seff_coroutine_t talker;
    if (!seff_coroutine_init(&talker, talks, "from a segment"))
        return 1;
    seff_request_t request = seff_resume(&talker, NULL, HANDLES(bottom));
    printf("%ld\n", ((EFF_PAYLOAD_T(bottom) *)request.payload)->depth);
    seff_coroutine_release(&talker);
}
/* SPDX-License-Identifier: MIT */
