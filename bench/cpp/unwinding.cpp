// SPDX-License-Identifier: MIT
/* Leaving nested fibers, beside exceptions through as many frames: an operation makes a chain of
 * fibers, each with a local that has a destructor, and throws from the innermost to the
 * outermost, or drops the chain. `beside`: through ten, while that many other fibers wait in
 * memory of the caller. */
#include "../harness.h"

#include <haft.h>

#include <cstdlib>
#include <vector>

HAFT_EFFECT(failed, void, {});
HAFT_EFFECT(waited, void, {});
HAFT_EFFECT(unrelated, void, {});

namespace {

struct local {
    local() { BARRIER(); }
    ~local() { BARRIER(); }
};

/* A smoke run need not go deep. */
intptr_t size_of(const benchmark_t *benchmark) {
    return benchmark_is_quick() && benchmark->parameter > 100 ? 100 : benchmark->parameter;
}

NOINLINE void descend(intptr_t frames) {
    local here;
    if (frames == 0)
        throw 1;
    descend(frames - 1);
    BARRIER();
}

struct task {
    intptr_t fibers;
    bool drops;
};

void *nest(void *argument) {
    auto *now = static_cast<task *>(argument);
    local here;
    if (now->fibers == 0) {
        if (!now->drops)
            HAFT_THROW(failed);
        HAFT_PERFORM(waited);
        return nullptr;
    }
    now->fibers--;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(nest, now);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(unrelated));
    return nullptr;
}

void leave(benchmark_t *benchmark, intptr_t fibers, bool drops) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        task now = {fibers - 1, drops};
        HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(nest, &now);
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failed, waited));
    }
    benchmark_stop(benchmark);
}

void *wait_once(void *unused) {
    HAFT_PERFORM(waited);
    return unused;
}

void leave_beside(benchmark_t *benchmark, bool drops) {
    auto count = static_cast<size_t>(size_of(benchmark));
    char *memory = static_cast<char *>(std::malloc(count * HAFT_FIBER_MINIMUM + 1));
    std::vector<haft_fiber_t *> others(count);
    for (size_t i = 0; i < count; i++) {
        haft_fiber_options_t options = {};
        options.memory = memory + i * HAFT_FIBER_MINIMUM;
        options.memory_size = HAFT_FIBER_MINIMUM;
        others[i] = haft_fiber_new_with(&options, wait_once, nullptr);
        haft_resume(others[i], HAFT_NO_REPLY, HAFT_HANDLES(waited));
    }
    leave(benchmark, 10, drops);
    for (haft_fiber_t *other : others)
        haft_fiber_drop(other);
    std::free(memory);
}

#define DEPTHS 10, 100, 1000, 10000, 40000
#define OTHERS 0, 1000, 30000, 300000

BENCHMARK_SERIES("plain/throw", plain_throw, DEPTHS) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        try {
            descend(size_of(benchmark) - 1);
        } catch (int) {
        }
    }
    benchmark_stop(benchmark);
}
BENCHMARK_SERIES("haft/throw", haft_throw_through, DEPTHS) {
    leave(benchmark, size_of(benchmark), false);
}
BENCHMARK_SERIES("haft/drop", haft_drop_through, DEPTHS) {
    leave(benchmark, size_of(benchmark), true);
}
BENCHMARK_SERIES("haft/throw-beside", haft_throw_beside, OTHERS) {
    leave_beside(benchmark, false);
}
BENCHMARK_SERIES("haft/drop-beside", haft_drop_beside, OTHERS) {
    leave_beside(benchmark, true);
}

} // namespace
