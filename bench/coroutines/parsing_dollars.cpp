// SPDX-License-Identifier: MIT
// parsing_dollars, C++20 coroutines: three nested drivers. Feeding answers Read and passes Emit on
// to the sum; its Stop is never answered, and is caught outside.
#include "../program.h"
#include "requester.hpp"

enum class operation { read, emit, stop };

struct request {
    operation what;
    int64_t value;
};

using outlet = bench::channel<request, int64_t>;

static bench::task<void> parse(outlet &out) {
    int64_t dollars = 0;
    for (;;) {
        int64_t character = co_await out.perform({operation::read, 0});
        if (character == '$') {
            dollars++;
        } else if (character == '\n') {
            co_await out.perform({operation::emit, dollars});
            dollars = 0;
        } else {
            co_await out.perform({operation::stop, 0});
        }
    }
}

static bench::task<void> feed(outlet &out, int64_t lines) {
    int64_t line = 0, dollars_left = 0;
    outlet inner;
    bench::task<void> parser = parse(inner);
    while (inner.resume(parser)) {
        if (inner.request.what != operation::read) {
            inner.reply = co_await out.perform(inner.request);
        } else if (dollars_left > 0) {
            dollars_left--;
            inner.reply = '$';
        } else if (line > lines) {
            co_await out.perform({operation::stop, 0});
        } else {
            dollars_left = ++line;
            inner.reply = '\n';
        }
    }
}

static bench::task<void> catch_stop(outlet &out, int64_t lines) {
    outlet inner;
    bench::task<void> feeder = feed(inner, lines);
    while (inner.resume(feeder)) {
        if (inner.request.what == operation::stop)
            co_return;
        inner.reply = co_await out.perform(inner.request);
    }
}

int main(int argc, char **argv) {
    int64_t sum = 0;
    outlet out;
    bench::task<void> catcher = catch_stop(out, program_argument(argc, argv, 10));
    while (out.resume(catcher))
        sum += out.request.value;
    return program_result(sum);
}
