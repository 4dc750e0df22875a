/* SPDX-License-Identifier: MIT */
/* handler_sieve, Haft, by requests: every prime found resumes the rest of the search on a fiber of
 * its own, answers no for its multiples and performs outwards otherwise. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT(is_prime, bool, { int64_t number; });

typedef struct search {
    int64_t next, end, sum;
} search_t;

static void *primes(void *argument) {
    search_t *search = argument;
    while (search->next < search->end && !HAFT_PERFORM(is_prime, search->next))
        search->next++;
    if (search->next >= search->end)
        return NULL;
    int64_t prime = search->next++;
    search->sum += prime;
    const haft_handles_t *questions = HAFT_HANDLES(is_prime);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(primes, search);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, questions);
    while (!haft_finished(request)) {
        int64_t number = ((HAFT_PAYLOAD(is_prime) *)request.payload)->number;
        bool answer = number % prime != 0 && HAFT_PERFORM(is_prime, number);
        request = haft_resume(k, HAFT_REPLY(is_prime, answer), questions);
    }
    return NULL;
}

int main(int argc, char **argv) {
    search_t search = {.next = 2, .end = program_argument(argc, argv, 10), .sum = 0};
    const haft_handles_t *questions = HAFT_HANDLES(is_prime);
    haft_fiber_t *k = haft_fiber_new(primes, &search);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, questions);
    while (!haft_finished(request))
        request = haft_resume(k, HAFT_REPLY(is_prime, true), questions);
    haft_fiber_drop(k);
    return program_result(search.sum);
}
