/* SPDX-License-Identifier: MIT */
/* countdown, setjmp: Get and Set are requests to the coroutine's driver; Get is -1, which no
 * Set asks for. */
#include "../program.h"
#include "coroutine.h"

enum { GET = -1 };

static void countdown(coroutine_t *self, void *unused) {
    (void)unused;
    for (;;) {
        int64_t value = coroutine_perform(self, GET);
        if (value == 0)
            return;
        coroutine_perform(self, value - 1);
    }
}

int main(int argc, char **argv) {
    static int64_t value;
    static coroutine_t computation;
    value = program_argument(argc, argv, 5);
    coroutine_create(&computation, countdown, NULL, 64 * 1024);
    while (coroutine_resume(&computation)) {
        if (computation.request == GET)
            computation.reply = value;
        else
            value = computation.request;
    }
    coroutine_destroy(&computation);
    return program_result(value);
}
