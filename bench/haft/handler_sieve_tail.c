/* SPDX-License-Identifier: MIT */
/* handler_sieve, Haft, by tail-resumptive clauses: the handlers are scopes on one stack, and the
 * questions are calls from each to the next. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT(is_prime, bool, { int64_t number; });

typedef struct search {
    int64_t next, end, sum;
} search_t;

static bool on_is_prime(void *prime, HAFT_PAYLOAD(is_prime) * payload) {
    if (payload->number % *(int64_t *)prime == 0)
        return false;
    return HAFT_PERFORM(is_prime, payload->number);
}

static bool yes(void *unused, HAFT_PAYLOAD(is_prime) * payload) {
    (void)unused, (void)payload;
    return true;
}

HAFT_HANDLER(sifting, NULL, HAFT_TAIL(is_prime, on_is_prime));
HAFT_HANDLER(believing, NULL, HAFT_TAIL(is_prime, yes));

static void *primes(void *argument) {
    search_t *search = argument;
    while (search->next < search->end && !HAFT_PERFORM(is_prime, search->next))
        search->next++;
    if (search->next >= search->end)
        return NULL;
    int64_t prime = search->next++;
    search->sum += prime;
    haft_handle(&sifting, &prime, primes, search);
    return NULL;
}

int main(int argc, char **argv) {
    search_t search = {.next = 2, .end = program_argument(argc, argv, 10), .sum = 0};
    haft_handle(&believing, NULL, primes, &search);
    return program_result(search.sum);
}
