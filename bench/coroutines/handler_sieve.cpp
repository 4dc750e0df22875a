// SPDX-License-Identifier: MIT
// handler_sieve, C++20 coroutines: every prime found drives the rest of the search, answers no for
// its multiples and passes the other questions outwards.
#include "../program.h"
#include "requester.hpp"

using outlet = bench::channel<int64_t, bool>;

static bench::task<int64_t> primes(outlet &out, int64_t i, int64_t n) {
    while (i < n && !co_await out.perform(i))
        i++;
    if (i >= n)
        co_return 0;
    outlet inner;
    bench::task<int64_t> rest = primes(inner, i + 1, n);
    while (inner.resume(rest))
        inner.reply = inner.request % i != 0 && co_await out.perform(inner.request);
    co_return i + rest.result();
}

int main(int argc, char **argv) {
    outlet out;
    bench::task<int64_t> search = primes(out, 2, program_argument(argc, argv, 10));
    while (out.resume(search))
        out.reply = true;
    return program_result(search.result());
}
