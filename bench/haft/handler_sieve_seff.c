/* SPDX-License-Identifier: MIT */
/* handler_sieve, Haft, through seff.h: as handler_sieve.c. */
#include "../program.h"

#include <seff.h>

DEFINE_EFFECT(is_prime, 0, bool, { int64_t number; });

typedef struct search {
    int64_t next, end, sum;
} search_t;

static void *primes(void *argument) {
    search_t *search = argument;
    while (search->next < search->end && !PERFORM(is_prime, search->next))
        search->next++;
    if (search->next >= search->end)
        return NULL;
    int64_t prime = search->next++;
    search->sum += prime;
    seff_coroutine_t *k = seff_coroutine_new(primes, search);
    seff_request_t request = seff_resume(k, NULL, HANDLES(is_prime));
    while (!seff_finished(request)) {
        int64_t number = ((EFF_PAYLOAD_T(is_prime) *)request.payload)->number;
        bool answer = number % prime != 0 && PERFORM(is_prime, number);
        request = seff_resume(k, (void *)(uintptr_t)answer, HANDLES(is_prime));
    }
    seff_coroutine_delete(k);
    return NULL;
}

int main(int argc, char **argv) {
    search_t search = {.next = 2, .end = program_argument(argc, argv, 10), .sum = 0};
    seff_coroutine_t *k = seff_coroutine_new(primes, &search);
    seff_request_t request = seff_resume(k, NULL, HANDLES(is_prime));
    while (!seff_finished(request))
        request = seff_resume(k, (void *)(uintptr_t) true, HANDLES(is_prime));
    seff_coroutine_delete(k);
    return program_result(search.sum);
}
