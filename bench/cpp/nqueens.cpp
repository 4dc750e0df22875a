// SPDX-License-Identifier: MIT
// nqueens, Haft for C++: each row is tried in a copy of the computation, the last one in place.
#include "../program.h"

#include <haft/multi_shot.hpp>

struct Pick : haft::effect<std::int64_t> {
    std::int64_t size;
};
struct Fail : haft::effect<std::int64_t> {};

using resumption = haft::multi_shot<std::int64_t(std::int64_t)>;

struct queen {
    std::int64_t row;
    const queen *before;
};

static bool is_safe(std::int64_t row, const queen *placed) {
    for (std::int64_t distance = 1; placed; placed = placed->before, distance++)
        if (row == placed->row || row == placed->row + distance || row == placed->row - distance)
            return false;
    return true;
}

static std::int64_t place(std::int64_t size, std::int64_t column, const queen *placed) {
    if (column == 0)
        return 1;
    std::int64_t row = haft::perform<Pick>(size);
    if (!is_safe(row, placed))
        return haft::perform<Fail>();
    queen here{row, placed};
    return place(size, column - 1, &here);
}

int main(int argc, char **argv) {
    std::int64_t size = program_argument(argc, argv, 5);
    return program_result(
        haft::handle_multi_shot([size] { return place(size, size, nullptr); },
                                [](Pick pick, resumption k) {
                                    std::int64_t solutions = 0;
                                    for (std::int64_t row = 1; row < pick.size; row++)
                                        solutions += k.resume(row);
                                    return solutions + std::move(k).resume(pick.size);
                                },
                                [](Fail, resumption) { return std::int64_t{0}; }));
}
