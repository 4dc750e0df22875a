/* -fsplit-stack code that unwinds through segments. */
#include "exceptions.h"

#include <stdexcept>

namespace {

/* The limit word must belong to the segment that the code runs on. */
struct Guard {
    ~Guard() {
        guards_destroyed++;
        wrong_limits += !limit_is_right(hafti_segments_limit(), __builtin_frame_address(0));
    }
};

struct Error {
    int value;
};

HAFT_FOREIGN(int, foreign_throw, throw_from_foreign_code, (int, value))
HAFT_FOREIGN(int, foreign_callback, call_back, (int (*)(int), callback), (int, value))
HAFT_FOREIGN_VOID(foreign_forced_unwind, start_forced_unwind)
HAFT_FOREIGN(int, foreign_count, count_frames)

__attribute__((noinline)) int descend(int depth, int (*bottom)(int)) {
    volatile char frame[120];
    Guard guard;
    frame[0] = static_cast<char>(depth);
    return depth == 0 ? bottom(depth) : descend(depth - 1, bottom) + (frame[0] & 1);
}

__attribute__((noinline)) int descend_and_rethrow(int depth) {
    Guard guard;
    try {
        return depth == 0 ? throw Error{0} : descend_and_rethrow(depth - 1);
    } catch (Error &error) {
        error.value++;
        throw;
    }
}

int throw_error(int value) {
    throw Error{value};
}
int throw_foreign(int value) {
    return foreign_throw(value);
}
int throw_in_callback(int value) {
    return foreign_callback(throw_error, value);
}
int descend_in_callback(int value) {
    return foreign_callback([](int) { return descend(100, throw_error); }, value);
}
int unwind_all(int) {
    foreign_forced_unwind();
    return 0;
}
int count(int) {
    return foreign_count();
}

int caught(int depth, int (*bottom)(int)) {
    uintptr_t before = hafti_segments_limit();
    int result = 0;
    try {
        descend(depth, bottom);
    } catch (const Error &) {
        result = 1;
    } catch (const std::runtime_error &) {
        result = 2;
    }
    wrong_limits += before != hafti_segments_limit();
    return result;
}

} // namespace

int exceptions_throw(int depth) {
    return caught(depth, throw_error);
}
int exceptions_throw_foreign(int depth) {
    return caught(depth, throw_foreign);
}
int exceptions_throw_in_callback(int depth) {
    return caught(depth, throw_in_callback);
}
int exceptions_descend_in_callback(int depth) {
    return caught(depth, descend_in_callback);
}
int exceptions_rethrow(int depth) {
    try {
        return descend_and_rethrow(depth);
    } catch (const Error &error) {
        return error.value;
    }
}
void exceptions_forced_unwind(int depth) {
    descend(depth, unwind_all);
}
int exceptions_count_frames(int depth) {
    return descend(depth, count) - (depth + 1) / 2;
}
// SPDX-License-Identifier: MIT
