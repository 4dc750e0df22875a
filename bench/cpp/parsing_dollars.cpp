// SPDX-License-Identifier: MIT
// parsing_dollars, Haft for C++: three nested handlers; that of the input is general, and ends by
// continuing.
#include "../program.h"

#include <haft.hpp>

struct Read : haft::effect<int> {};
struct Emit : haft::effect<void> {
    std::int64_t dollars;
};
struct Stop : haft::effect<void> {};

static void parse() {
    std::int64_t dollars = 0;
    for (;;) {
        int character = haft::perform<Read>();
        if (character == '$') {
            dollars++;
        } else if (character == '\n') {
            haft::perform<Emit>(dollars);
            dollars = 0;
        } else {
            haft::perform<Stop>();
        }
    }
}

static void feed(std::int64_t lines) {
    std::int64_t line = 0, dollars_left = 0;
    haft::handle(parse).with([&](Read, haft::resumption<void(int)> k) {
        int character = '$';
        if (dollars_left > 0) {
            dollars_left--;
        } else if (line <= lines) {
            dollars_left = ++line;
            character = '\n';
        } else {
            haft::perform<Stop>();
        }
        return std::move(k).tail_resume(character);
    });
}

static void catch_stop(std::int64_t lines) {
    haft::handle([lines] { feed(lines); }).with(haft::never([](Stop) {}));
}

int main(int argc, char **argv) {
    std::int64_t lines = program_argument(argc, argv, 10), sum = 0;
    haft::handle([lines] {
        catch_stop(lines);
    }).with([&](Emit emitted, haft::resumption<void()> k) {
        sum += emitted.dollars;
        return std::move(k).tail_resume();
    });
    return program_result(sum);
}
