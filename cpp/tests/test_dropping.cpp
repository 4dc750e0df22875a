/* Dropping a computation runs every cleanup on its stack, whatever its frames look like: the
 * runtime leaves out the unwinding where it finds nothing to run (core/src/cleanups.c). */
#include "check.hpp"

#include <alloca.h>
#include <cstdint>
#include <cstring>
#include <exception>
#include <haft.hpp>
#include <string>

struct Stop : haft::effect<> {};

#define NOINLINE __attribute__((noinline))

/* Runs `body`, which stops somewhere, and drops it; how many objects were alive at that point. */
template <typename Body>
static int dropped(Body body) {
    int alive_then = -1;
    haft::handle(body).with([&](Stop, haft::resumption<void()> k) {
        alive_then = counted::alive;
        std::move(k).drop();
        CHECK(counted::alive == 0);
    });
    CHECK(counted::alive == 0);
    return alive_then;
}

static volatile int depth_of_frames = 3;

/* ---- Frames; each calls `inner` ---- */

template <typename Inner>
NOINLINE static void plain_frame(Inner inner) {
    inner();
    depth_of_frames = depth_of_frames;
}
template <typename Inner>
NOINLINE static void frame_of_a_size_known_at_run_time(Inner inner) {
    auto *bytes = static_cast<char *>(alloca(static_cast<std::size_t>(100 * depth_of_frames)));
    std::memset(bytes, 1, 100);
    inner();
    CHECK(bytes[99] == 1);
}
template <typename Inner>
NOINLINE static void aligned_frame(Inner inner) {
    alignas(128) volatile char bytes[128] = {1};
    CHECK(reinterpret_cast<std::uintptr_t>(bytes) % 128 == 0);
    inner();
    CHECK(bytes[0] == 1);
}
template <typename Inner>
NOINLINE static void recursive_frame(int depth, Inner inner) {
    if (depth == 0)
        return inner();
    recursive_frame(depth - 1, inner);
    depth_of_frames = depth_of_frames;
}
template <typename Inner>
NOINLINE static void frame_with_an_object(Inner inner) {
    counted local;
    inner();
}
template <typename Inner>
NOINLINE static void frame_that_catches_and_rethrows(Inner inner) {
    counted local;
    try {
        inner();
    } catch (...) {
        throw;
    }
}
template <typename Inner>
NOINLINE static void frame_that_handles_an_exception(Inner inner) {
    try {
        throw counted();
    } catch (const counted &) {
        inner();
    }
}
template <typename Inner>
NOINLINE static void frame_that_catches_others(Inner inner) {
    try {
        inner();
    } catch (const std::exception &) {
        CHECK(false);
    }
}
/* Two objects, of which only one is alive at the call. */
template <typename Inner>
NOINLINE static void frame_between_objects(Inner inner) {
    { counted gone; }
    inner();
    counted to_come;
}

static void stop() {
    haft::perform(Stop{});
}

static void frames_without_cleanups() {
    CHECK(dropped(stop) == 0);
    CHECK(dropped([] { plain_frame(stop); }) == 0);
    CHECK(dropped([] { frame_of_a_size_known_at_run_time(stop); }) == 0);
    CHECK(dropped([] { aligned_frame(stop); }) == 0);
    CHECK(dropped([] { recursive_frame(50, stop); }) == 0);
    CHECK(dropped([] { frame_between_objects(stop); }) == 0);
    CHECK(dropped([] { frame_that_catches_others(stop); }) == 0);
}

static void an_object_innermost_outermost_and_between() {
    auto object = [] { frame_with_an_object(stop); };
    CHECK(dropped(object) == 1);
    CHECK(dropped([=] { plain_frame(object); }) == 1);
    CHECK(dropped([=] { frame_of_a_size_known_at_run_time(object); }) == 1);
    CHECK(dropped([=] { aligned_frame(object); }) == 1);
    CHECK(dropped([=] { recursive_frame(20, object); }) == 1);
    CHECK(dropped([] { frame_with_an_object([] { plain_frame(stop); }); }) == 1);
    CHECK(dropped([] { frame_with_an_object([] { frame_of_a_size_known_at_run_time(stop); }); }) ==
          1);
    CHECK(dropped([] { frame_with_an_object([] { aligned_frame(stop); }); }) == 1);
    CHECK(dropped([] { frame_with_an_object([] { recursive_frame(20, stop); }); }) == 1);
    CHECK(dropped([] {
              aligned_frame([] {
                  frame_with_an_object([] {
                      frame_of_a_size_known_at_run_time([] { frame_with_an_object(stop); });
                  });
              });
          }) == 2);
}

static void catch_blocks() {
    CHECK(dropped([] { frame_that_catches_and_rethrows(stop); }) == 1);
    CHECK(dropped([] { frame_that_handles_an_exception(stop); }) == 1);
    CHECK(dropped([] { frame_that_handles_an_exception([] { frame_with_an_object(stop); }); }) ==
          2);
    CHECK(dropped([] { frame_that_catches_others([] { frame_with_an_object(stop); }); }) == 1);
}

/* The clause in place stops the computation around: its own frames are dropped, too. */
static void clauses_in_place() {
    struct Ask : haft::effect<> {};
    CHECK(dropped([] { haft::handle([] { haft::perform(Ask{}); }).with([](Ask) { stop(); }); }) ==
          0);
    CHECK(dropped([] {
              haft::handle([] { haft::perform(Ask{}); }).with([](Ask) {
                  frame_with_an_object(stop);
              });
          }) == 1);
}

/* The stop is in a computation inside; dropping the outer one takes both. */
static void computations_inside() {
    struct Other : haft::effect<> {};
    auto with_inner = [](auto inner) {
        return [=] { haft::handle(inner).with([](Other, haft::resumption<void()>) {}); };
    };
    CHECK(dropped(with_inner(stop)) == 0);
    CHECK(dropped(with_inner([] { frame_with_an_object(stop); })) == 1);
    CHECK(dropped([=] { frame_with_an_object(with_inner(stop)); }) == 1);
    CHECK(dropped(with_inner([=] { frame_with_an_object(with_inner(stop)); })) == 1);
}

int main() {
    frames_without_cleanups();
    an_object_innermost_outermost_and_between();
    catch_blocks();
    clauses_in_place();
    computations_inside();
}
// SPDX-License-Identifier: MIT
