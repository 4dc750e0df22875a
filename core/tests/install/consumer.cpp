// The same smallest program as consumer.c, by a C++ compiler.

#include <haft.h>

#include <cstdint>
#include <cstdio>

HAFT_EFFECT(ask, int64_t, {});

static void *question(void *argument) {
    auto *answer = static_cast<int64_t *>(argument);
    *answer = HAFT_PERFORM(ask);
    return argument;
}

int main() {
    int64_t answer = 0;
    haft_fiber_t *fiber = haft_fiber_new(question, &answer);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    if (request.effect != HAFT_ID(ask)) {
        return 1;
    }
    haft_resume(fiber, HAFT_REPLY(ask, 42), HAFT_HANDLES(ask));
    haft_fiber_drop(fiber);
    std::printf("%d\n", static_cast<int>(answer));
    return answer == 42 ? 0 : 1;
}
// SPDX-License-Identifier: MIT
