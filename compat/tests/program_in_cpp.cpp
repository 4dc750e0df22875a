/* A program in C++. */
#include <cstdio>
#include <seff.h>

DEFINE_EFFECT(get, 63, int64_t, {});
DEFINE_EFFECT(put, 1, void, { int64_t new_value; });
MAKE_SYSCALL_WRAPPER(int, puts, const char *text);

static void *doubles(void *arg) {
    PERFORM(put, 2 * PERFORM(get));
    puts_syscall_wrapper("doubled");
    return arg;
}

int main() {
    seff_coroutine_t *k = seff_coroutine_new(doubles, reinterpret_cast<void *>(9));
    int64_t state = 21;
    for (void *reply = nullptr;;) {
        seff_request_t request = seff_resume(k, reply, HANDLES(get) | HANDLES(put));
        switch (request.effect) {
            CASE_EFFECT(request, get, {
                reply = reinterpret_cast<void *>(state);
                break;
            })
            CASE_EFFECT(request, put, {
                state = payload.new_value;
                break;
            })
            CASE_RETURN(request, {
                std::printf("%ld %ld\n", long(state), reinterpret_cast<long>(payload.result));
                seff_coroutine_delete(k);
                return 0;
            })
        }
    }
}
// SPDX-License-Identifier: MIT
