// SPDX-License-Identifier: MIT
// parsing_dollars, Boost.Context: three nested drivers. Feeding answers Read and passes Emit on to
// the sum; its Stop is never answered, and is caught outside.
#include "../program.h"
#include "requester.hpp"

enum class operation { read, emit, stop };

struct request {
    operation what;
    int64_t value;
};

using performer = bench::requester<request, int64_t>;

static void parse(performer &self) {
    int64_t dollars = 0;
    for (;;) {
        int64_t character = self.perform({operation::read, 0});
        if (character == '$') {
            dollars++;
        } else if (character == '\n') {
            self.perform({operation::emit, dollars});
            dollars = 0;
        } else {
            self.perform({operation::stop, 0});
        }
    }
}

static void feed(performer &self, int64_t lines) {
    int64_t line = 0, dollars_left = 0;
    performer parser(parse);
    while (parser.resume()) {
        if (parser.request.what != operation::read) {
            parser.reply = self.perform(parser.request);
        } else if (dollars_left > 0) {
            dollars_left--;
            parser.reply = '$';
        } else if (line > lines) {
            self.perform({operation::stop, 0});
        } else {
            dollars_left = ++line;
            parser.reply = '\n';
        }
    }
}

static void catch_stop(performer &self, int64_t lines) {
    performer feeder([lines](performer &inner) { feed(inner, lines); });
    while (feeder.resume()) {
        if (feeder.request.what == operation::stop)
            return;
        feeder.reply = self.perform(feeder.request);
    }
}

int main(int argc, char **argv) {
    int64_t lines = program_argument(argc, argv, 10), sum = 0;
    performer catcher([lines](performer &self) { catch_stop(self, lines); });
    while (catcher.resume())
        sum += catcher.request.value;
    return program_result(sum);
}
