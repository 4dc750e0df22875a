/* SPDX-License-Identifier: MIT */
/* handler_sieve, plain C: handlers are a linked chain of function pointers, innermost first. */
#include "../program.h"

#include <stdbool.h>

typedef struct handler handler_t;
struct handler {
    bool (*is_prime)(const handler_t *, int64_t);
    int64_t divisor;
    const handler_t *outer;
};

static bool yes(const handler_t *handler, int64_t number) {
    (void)handler, (void)number;
    return true;
}

static bool sift(const handler_t *handler, int64_t number) {
    for (; handler->is_prime == sift; handler = handler->outer)
        if (number % handler->divisor == 0)
            return false;
    return handler->is_prime(handler, number);
}

static NOINLINE int64_t primes(const handler_t *handlers, int64_t i, int64_t n, int64_t sum) {
    for (; i < n; i++) {
        if (handlers->is_prime(handlers, i)) {
            handler_t handler = {sift, i, handlers};
            int64_t result = primes(&handler, i + 1, n, sum + i);
            OPAQUE(result);
            return result;
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    handler_t outermost = {yes, 0, NULL};
    return program_result(primes(&outermost, 2, program_argument(argc, argv, 10), 0));
}
