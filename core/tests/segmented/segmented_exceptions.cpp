/* Exceptions, forced unwinding and backtraces pass borders between segments, and between a segment
   and the thread's stack, in both directions. */
#include "exceptions.h"

#include <csetjmp>
#include <stdexcept>
#include <string>
#include <unwind.h>

int guards_destroyed;
int wrong_limits;

/* A function that knows nothing of segments. */
static void use_stack() {
    volatile char frame[64 * 1024];
    for (size_t i = 0; i < sizeof frame; i += 512) {
        frame[i] = 1;
    }
    CHECK(!runs_on_segment());
    CHECK(hafti_segments_limit() == 0);
}

int throw_from_foreign_code(int value) {
    use_stack();
    throw std::runtime_error("foreign " + std::to_string(value));
}

int call_back(int (*callback)(int), int value) {
    use_stack();
    return callback(value);
}

static jmp_buf unwound;

static _Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class,
                                struct _Unwind_Exception *, struct _Unwind_Context *context,
                                void *) {
    auto function = _Unwind_FindEnclosingFunction(reinterpret_cast<void *>(_Unwind_GetIP(context)));
    if (function == reinterpret_cast<void *>(run_on_segments)) {
        CHECK(hafti_segments_limit() == test_segments.limit);
        hafti_segments_set_limit(0);
        longjmp(unwound, 1);
    }
    CHECK(!(actions & _UA_END_OF_STACK));
    return _URC_NO_REASON;
}

static struct _Unwind_Exception forced;

void start_forced_unwind() {
    use_stack();
    _Unwind_ForcedUnwind(&forced, stop, nullptr);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *argument) {
    int *frames = static_cast<int *>(argument);
    auto function = _Unwind_FindEnclosingFunction(reinterpret_cast<void *>(_Unwind_GetIP(context)));
    if (function == reinterpret_cast<void *>(run_on_segments)) {
        *frames += 1000000;
    }
    ++*frames;
    return _URC_NO_REASON;
}

int count_frames() {
    int frames = 0;
    use_stack();
    _Unwind_Backtrace(count_frame, &frames);
    return frames;
}

static void call(void *argument) {
    (*static_cast<void (*const *)()>(argument))();
}

static void on_segments(void (*function)()) {
    for (size_t size = 1024; size < 3000; size += 64) {
        guards_destroyed = 0;
        wrong_limits = 0;
        run_on_new_segments(size, call, reinterpret_cast<void *>(&function));
        CHECK(wrong_limits == 0);
    }
}

static void exceptions_pass_segments() {
    for (int depth = 0; depth < 300; depth += 7) {
        guards_destroyed = 0;
        CHECK(exceptions_throw(depth) == 1);
        CHECK(guards_destroyed == depth + 1);
    }
}

static void exceptions_are_rethrown_on_every_segment() {
    CHECK(exceptions_rethrow(100) == 101);
    CHECK(guards_destroyed == 101);
}

static void exceptions_pass_the_thread_stack() {
    CHECK(exceptions_throw_foreign(50) == 2);
    CHECK(exceptions_throw_in_callback(50) == 1);
    CHECK(exceptions_descend_in_callback(50) == 1);
    CHECK(guards_destroyed == 3 * 51 + 101);
}

static void backtraces_reach_main() {
    CHECK(exceptions_count_frames(100) > 1000000 + 102);
}

static void forced_unwinding_passes_segments() {
    exceptions_forced_unwind(200);
}

int main() {
    on_segments(exceptions_pass_segments);
    std::puts("ok 1 exceptions pass segments");
    on_segments(exceptions_are_rethrown_on_every_segment);
    std::puts("ok 2 exceptions are rethrown on every segment");
    on_segments(exceptions_pass_the_thread_stack);
    std::puts("ok 3 exceptions pass the thread's stack");
    on_segments(backtraces_reach_main);
    std::puts("ok 4 backtraces reach main");
    static int round;
    for (round = 0; round < 100; round++) {
        guards_destroyed = 0;
        if (!setjmp(unwound)) {
            void (*function)() = forced_unwinding_passes_segments;
            run_on_new_segments(1024, call, reinterpret_cast<void *>(&function));
        }
        CHECK(guards_destroyed == 201);
        CHECK(wrong_limits == 0);
    }
    std::puts("ok 5 forced unwinding passes segments");
    return 0;
}
// SPDX-License-Identifier: MIT
