// SPDX-License-Identifier: MIT
/*
 * SEND + MORE = MONEY: the puzzle is a function that picks a digit for each letter, column by
 * column, and gives up where the sum does not fit. The handler goes on with every digit that is
 * left.
 */
#include <haft/multi_shot.hpp>

#include <cstdio>
#include <vector>

namespace {

struct Pick : haft::effect<int> {
    unsigned used; /* a bit for each digit */
};
struct GiveUp : haft::effect<void> {};

struct solution {
    int send, more, money;
};
using solutions = std::vector<solution>;

void require(bool condition) {
    if (!condition)
        haft::perform<GiveUp>();
}

solutions puzzle() {
    unsigned used = 0;
    auto pick = [&] {
        int digit = haft::perform<Pick>(used);
        used |= 1u << digit;
        return digit;
    };
    int d = pick(), e = pick(), y = pick();
    require((d + e) % 10 == y);
    int carry = (d + e) / 10, n = pick(), r = pick();
    require((n + r + carry) % 10 == e);
    carry = (n + r + carry) / 10;
    int o = pick();
    require((e + o + carry) % 10 == n);
    carry = (e + o + carry) / 10;
    int s = pick(), m = pick();
    require(s != 0 && m != 0 && (s + m + carry) % 10 == o && (s + m + carry) / 10 == m);
    return {{s * 1000 + e * 100 + n * 10 + d, m * 1000 + o * 100 + r * 10 + e,
             m * 10000 + o * 1000 + n * 100 + e * 10 + y}};
}

} // namespace

int main() {
    int picked = 0;
    solutions found = haft::handle_multi_shot(
        puzzle,
        [&](Pick pick, haft::multi_shot<solutions(int)> k) {
            solutions all;
            for (int digit = 0; digit < 10; digit++)
                if ((pick.used >> digit & 1) == 0) {
                    picked++;
                    for (const solution &one : k.resume(digit))
                        all.push_back(one);
                }
            return all;
        },
        [](GiveUp, haft::multi_shot<solutions()>) { return solutions(); });
    for (const solution &one : found)
        std::printf("%d + %d = %d\n", one.send, one.more, one.money);
    std::printf("%d digits picked\n", picked);
}
