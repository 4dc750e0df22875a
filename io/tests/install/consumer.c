/* A user's program: prints 42 when a task has returned it. */
#include <haft/io.h>
#include <stdio.h>

static void *answer(void *unused) {
    (void)unused;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return (void *)(intptr_t)42;
}

static void *ask(void *unused) {
    void *result = NULL;
    haft_io_join(haft_io_async(answer, NULL), &result);
    printf("%d\n", (int)(intptr_t)result);
    return unused;
}

int main(void) {
    return haft_io_run(ask, NULL);
}
/* SPDX-License-Identifier: MIT */
