// SPDX-License-Identifier: MIT
// handler_sieve, Boost.Context: every prime found drives the rest of the search on a fiber of its
// own, answers no for its multiples and passes the other questions outwards. Stacks are of 8 KiB,
// from malloc: of all sizes and allocators they take the least time.
#include "../program.h"
#include "requester.hpp"

using performer = bench::requester<int64_t, bool>;
using stacks = boost::context::fixedsize_stack;

static void primes(performer &self, int64_t i, int64_t n, int64_t &sum) {
    while (i < n && !self.perform(i))
        i++;
    if (i >= n)
        return;
    sum += i;
    performer rest([&](performer &inner) { primes(inner, i + 1, n, sum); }, stacks(8 * 1024));
    while (rest.resume())
        rest.reply = rest.request % i != 0 && self.perform(rest.request);
}

int main(int argc, char **argv) {
    int64_t n = program_argument(argc, argv, 10), sum = 0;
    performer search([&](performer &self) { primes(self, 2, n, sum); }, stacks(8 * 1024));
    while (search.resume())
        search.reply = true;
    return program_result(sum);
}
