// SPDX-License-Identifier: MIT
// triples, Haft for C++: a flip goes on with true in a copy, then with false.
#include "../program.h"

#include <haft/multi_shot.hpp>

struct Flip : haft::effect<bool> {};
struct Fail : haft::effect<std::int64_t> {};
static constexpr std::int64_t prime = 1000000007;

static std::int64_t choice(std::int64_t n) {
    for (; n >= 1; n--)
        if (haft::perform<Flip>())
            return n;
    return haft::perform<Fail>();
}

static std::int64_t triple(std::int64_t sum) {
    std::int64_t a = choice(sum);
    std::int64_t b = choice(a - 1);
    std::int64_t c = choice(b - 1);
    return a + b + c == sum ? (53 * a + 2809 * b + 148877 * c) % prime : haft::perform<Fail>();
}

int main(int argc, char **argv) {
    std::int64_t sum = program_argument(argc, argv, 10);
    return program_result(haft::handle_multi_shot(
        [sum] { return triple(sum); },
        [](Flip, haft::multi_shot<std::int64_t(bool)> k) {
            std::int64_t first = k.resume(true);
            return (first + std::move(k).resume(false)) % prime;
        },
        [](Fail, haft::multi_shot<std::int64_t(std::int64_t)>) { return std::int64_t{0}; }));
}
