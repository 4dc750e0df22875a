// SPDX-License-Identifier: MIT
// The state example without effects: its compile time and size.
#include "../program.h"

struct cell {
    virtual int64_t get() = 0;
    virtual void put(int64_t value) = 0;
    virtual ~cell() = default;
};
struct variable final : cell {
    int64_t get() override { return state; }
    void put(int64_t value) override { state = value; }
    int64_t state = 0;
};

static NOINLINE void increment(cell &where, int64_t times) {
    for (; times > 0; times--)
        where.put(where.get() + 1);
}

int main(int argc, char **argv) {
    int64_t times = program_argument(argc, argv, 5);
    variable state;
    increment(state, times);
    return program_result(state.get());
}
