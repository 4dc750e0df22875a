// SPDX-License-Identifier: MIT
// handler_sieve, Haft for C++: every prime found installs a handler around the rest of the search,
// whose clause answers no for its multiples and performs outwards otherwise.
#include "../program.h"

#include <haft.hpp>

struct IsPrime : haft::effect<bool> {
    std::int64_t number;
};

struct search {
    std::int64_t next, end, sum;
};

static void primes(search &at) {
    while (at.next < at.end && !haft::perform<IsPrime>(at.next))
        at.next++;
    if (at.next >= at.end)
        return;
    std::int64_t prime = at.next++;
    at.sum += prime;
    haft::handle([&at] {
        primes(at);
    }).with([prime](IsPrime asked, haft::resumption<void(bool)> k) {
        bool answer = asked.number % prime != 0 && haft::perform<IsPrime>(asked.number);
        return std::move(k).tail_resume(answer);
    });
}

int main(int argc, char **argv) {
    search at{2, program_argument(argc, argv, 10), 0};
    haft::handle([&at] { primes(at); }).with([](IsPrime) { return true; });
    return program_result(at.sum);
}
