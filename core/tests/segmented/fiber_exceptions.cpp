// Exceptions of C++ on segmented fibers: within segments, through fibers of all kinds, and while
// exceptions are being handled. This file is -fsplit-stack code.
#include "../check.h"
#include "unaware.h"

#include <haft/segments.h>

#include <stdexcept>

HAFT_EFFECT(ask, long, { long question; });
HAFT_EFFECT(tell, void, { long fact; });

HAFT_FOREIGN(haft_effect_t *, resume_foreign, unaware_resume, (haft_fiber_t *, fiber),
             (const haft_handles_t *, handles))

struct oops {
    long value;
};

static int destroyed;
struct guard {
    guard() = default;
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    ~guard() { destroyed++; }
};

static haft_fiber_t *make(bool segmented, void *(*body)(void *), void *argument) {
    haft_fiber_options_t options = {};
    options.segmented = segmented;
    return haft_fiber_new_with(&options, body, argument);
}

[[gnu::noinline]] static long at_depth(long depth, long (*function)(long), long argument) {
    guard guarded;
    volatile char frame[100];
    frame[0] = 1;
    if (depth == 0)
        return function(argument);
    return at_depth(depth - 1, function, argument) + frame[0] - 1;
}

static long throw_oops(long value) {
    throw oops{value};
}
static long ask_it(long question) {
    return HAFT_PERFORM(ask, question);
}

static long throw_and_catch(long value) {
    try {
        return at_depth(30, throw_oops, value);
    } catch (const oops &caught) {
        // Suspended in the handler: the exception belongs to the fiber.
        return caught.value + at_depth(30, ask_it, 1);
    }
}

static void *catches_on_the_fiber(void *) {
    long sum = 0;
    for (long depth = 0; depth < 40; depth++)
        sum += at_depth(depth, throw_and_catch, 1);
    return reinterpret_cast<void *>(sum);
}

static void exceptions_are_caught_on_the_fiber() {
    haft_fiber_t *fibers[2];
    for (haft_fiber_t *&fiber : fibers) {
        fiber = make(true, catches_on_the_fiber, nullptr);
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    }
    for (int i = 0; i < 40; i++)
        for (haft_fiber_t *fiber : fibers) {
            haft_request_t request = haft_resume(fiber, HAFT_REPLY(ask, 10), HAFT_HANDLES(ask));
            if (haft_finished(request))
                CHECK(static_cast<haft_payload_return *>(request.payload)->result ==
                      reinterpret_cast<void *>(440L));
        }
    for (haft_fiber_t *fiber : fibers) {
        CHECK(haft_fiber_state(fiber) == HAFT_FIBER_FINISHED);
        haft_fiber_drop(fiber);
    }
}

struct levels {
    int kinds, depth;
};

static void *throws_from_inside(void *argument) {
    guard guarded;
    auto *level = static_cast<levels *>(argument);
    if (level->depth == 0)
        return reinterpret_cast<void *>(at_depth(20, throw_oops, 7));
    levels inner = {level->kinds / 2, level->depth - 1};
    HAFT_SCOPED haft_fiber_t *fiber = make(level->kinds % 2 != 0, throws_from_inside, &inner);
    if (level->depth == 2)
        resume_foreign(fiber, HAFT_HANDLES(ask));
    else
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    return nullptr;
}

static void exceptions_leave_fibers_of_all_kinds() {
    for (int kinds = 0; kinds < 16; kinds++) {
        destroyed = 0;
        levels level = {kinds / 2, 3};
        haft_fiber_t *fiber = make(kinds % 2 != 0, throws_from_inside, &level);
        long caught = 0;
        try {
            haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        } catch (const oops &exception) {
            caught = exception.value;
        }
        CHECK_EQUAL(caught, 7);
        CHECK_EQUAL(destroyed, 4 + 21);
        CHECK(haft_fiber_state(fiber) == HAFT_FIBER_FINISHED);
        haft_fiber_drop(fiber);
    }
}

static void *asks_deep(void *argument) {
    at_depth(reinterpret_cast<long>(argument), ask_it, 1);
    return nullptr;
}

static haft_reply_t raise_oops(void *) {
    throw oops{3};
}

static void exceptions_are_raised_in_suspended_fibers() {
    for (long depth = 0; depth < 50; depth += 10) {
        destroyed = 0;
        haft_fiber_t *fiber = make(true, asks_deep, reinterpret_cast<void *>(depth));
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        long caught = 0;
        try {
            haft_discontinue(fiber, raise_oops, nullptr, HAFT_HANDLES(ask));
        } catch (const oops &exception) {
            caught = exception.value;
        }
        CHECK_EQUAL(caught, 3);
        CHECK_EQUAL(destroyed, depth + 1);
        haft_fiber_drop(fiber);
    }
}

static void dropping_runs_destructors_on_all_segments() {
    for (long depth = 0; depth < 50; depth += 10) {
        destroyed = 0;
        haft_fiber_t *fiber = make(true, asks_deep, reinterpret_cast<void *>(depth));
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        haft_fiber_drop(fiber);
        CHECK_EQUAL(destroyed, depth + 1);
    }
}

static void throwing_handler(const haft_error_t *error) {
    throw oops{error->code};
}

static void *makes_a_mistake(void *) {
    long caught = 0;
    for (long depth = 0; depth < 40; depth++)
        try {
            at_depth(depth, ask_it, 1);
        } catch (const oops &exception) {
            caught += exception.value;
        }
    return reinterpret_cast<void *>(caught);
}

static void errors_are_exceptions_on_segments() {
    haft_set_error_handler(throwing_handler);
    haft_fiber_t *fiber = make(true, makes_a_mistake, nullptr);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(tell));
    CHECK(static_cast<haft_payload_return *>(request.payload)->result ==
          reinterpret_cast<void *>(40L * HAFT_ERROR_UNHANDLED));
    haft_fiber_drop(fiber);
    haft_set_error_handler(nullptr);
}

int main() {
    RUN(exceptions_are_caught_on_the_fiber);
    RUN(exceptions_leave_fibers_of_all_kinds);
    RUN(exceptions_are_raised_in_suspended_fibers);
    RUN(dropping_runs_destructors_on_all_segments);
    RUN(errors_are_exceptions_on_segments);
    return check_end();
}
// SPDX-License-Identifier: MIT
