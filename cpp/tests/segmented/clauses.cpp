// SPDX-License-Identifier: MIT
/*
 * haft.hpp on segmented fibers: clauses in place run, and throw, on the segments of the performer;
 * computations with fibers of their own are not segmented. This file is -fsplit-stack code.
 */
#include "../check.hpp"

#include <cstring>
#include <haft.hpp>

struct Fails : haft::effect<> {};
struct Adds : haft::effect<long> {
    long number;
};
struct oops {
    long value;
};

[[gnu::noinline]] static long at_depth(long depth, long (*function)(long), long argument) {
    volatile char frame[100];
    frame[0] = 1;
    if (depth == 0)
        return function(argument);
    return at_depth(depth - 1, function, argument) + frame[0] - 1;
}

static long fail(long) {
    haft::perform(Fails{});
    return 0;
}
static long add(long number) {
    return haft::perform(Adds{.number = number});
}
static long handle_here(long deeper) {
    return haft::handle([deeper] { return at_depth(deeper, add, 1) + at_depth(deeper, fail, 0); })
        .with([](Fails) { throw oops{10}; }, [](Adds e) { return e.number; });
}
static long make_on_the_heap(long number) {
    static const long first = number; /* guarded */
    long *made = new long(number);
    __asm__ volatile("" : "+r"(made)); /* or compilers leave it out */
    long found = *made;
    delete made;
    return found + number - first;
}

static void *handles_in_place(void *argument) {
    long depth = reinterpret_cast<long>(argument), caught = 0;
    for (long inner = 0; inner < 3; inner++)
        try {
            caught += at_depth(depth, handle_here, inner);
        } catch (const oops &exception) {
            caught += exception.value;
        }
    return reinterpret_cast<void *>(caught);
}
static void *uses_the_heap(void *argument) {
    return reinterpret_cast<void *>(
        at_depth(reinterpret_cast<long>(argument), make_on_the_heap, 30));
}

static void at_every_depth(void *(*body)(void *)) {
    for (long depth = 0; depth < 120; depth++) {
        haft_fiber_options_t options = {};
        options.segmented = true;
        haft_fiber_t *fiber = haft_fiber_new_with(&options, body, reinterpret_cast<void *>(depth));
        haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES());
        CHECK(static_cast<haft_payload_return *>(request.payload)->result ==
              reinterpret_cast<void *>(30L));
        haft_fiber_drop(fiber);
    }
}

static void segmented_computations_are_refused() {
    haft_set_error_handler([](const haft_error_t *error) {
        CHECK(std::strstr(error->message, "computations of haft.hpp are not segmented. Leave out "
                                          ".segmented, or use haft.h.") != nullptr);
        throw oops{error->code};
    });
    long caught = 0;
    haft_fiber_options_t options = {};
    options.segmented = true;
    try {
        haft::handle([] {}).on(options).with([](Fails) {});
    } catch (const oops &exception) {
        caught = exception.value;
    }
    haft_set_error_handler(nullptr);
    CHECK(caught == HAFT_ERROR_BAD_ARGUMENT);
}

int main() {
    at_every_depth(handles_in_place);
    at_every_depth(uses_the_heap);
    segmented_computations_are_refused();
}
