/* Loops that must not grow: tail resumes, fresh computations, drops, schedulers; and no allocation.
 */
#include "check.hpp"

#include <deque>
#include <haft.hpp>
#include <haft/generator.hpp>
#include <new>
#include <string>
#include <sys/resource.h>

#ifdef NDEBUG
static const long many = 20'000'000;
#else
static const long many = 200'000;
#endif

struct Get : haft::effect<long> {};
struct Put : haft::effect<> {
    long value;
};
struct Stop : haft::effect<> {};
struct text {
    char letters[40];
};
struct Text : haft::effect<text> {};

static long allocations;

/* All that operator new and the library itself allocate. */
extern "C" void *__libc_malloc(std::size_t size);
extern "C" void *malloc(std::size_t size) {
    allocations++;
    return __libc_malloc(size);
}

static long resident_kibibytes() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Runs `function` small first, then large: the large one may not allocate or use more memory. */
template <typename F>
static void stays_small(F function) {
    function(1000L);
    long before = resident_kibibytes(), allocated = allocations;
    function(many);
    CHECK(allocations == allocated);
    CHECK(resident_kibibytes() - before < 4096);
}

static long count_down() {
    long steps = 0;
    for (long i = haft::perform(Get{}); i > 0; i = haft::perform(Get{})) {
        haft::perform(Put{.value = i - 1});
        steps++;
    }
    return steps;
}

static void clauses_that_end_in_a_tail_resume() {
    stays_small([](long n) {
        long state = n;
        CHECK(haft::handle(count_down)
                  .with(
                      [&](Get, haft::resumption<long(long)> k) {
                          return std::move(k).tail_resume(state);
                      },
                      [&](Put p, haft::resumption<long()> k) {
                          state = p.value;
                          return std::move(k).tail_resume();
                      }) == n);
    });
}

static void clauses_that_tail_resume_another_computation() {
    /* Two computations with handlers of different types, by turns. */
    stays_small([](long n) {
        haft::resumption<void()> other;
        long turns = 0;
        auto body = [n, &turns] {
            while (turns < n) {
                turns++;
                haft::perform(Stop{});
            }
        };
        auto swap = [&other](Stop, haft::resumption<void()> k) -> haft::tail<void> {
            std::swap(k, other);
            if (!k)
                return {};
            return std::move(k).tail_resume();
        };
        other = haft::wrap(body).with([&other](Stop, haft::resumption<void()> k) {
            std::swap(k, other);
            return std::move(k).tail_resume();
        });
        haft::handle(body).with(swap);
        CHECK(turns == n);
    });
}

static void clauses_that_tail_resume_with_large_results() {
    stays_small([](long n) {
        CHECK(haft::handle([n] {
                  long sum = 0;
                  for (long i = 0; i < n; i++)
                      sum += haft::perform(Text{}).letters[39];
                  return sum;
              }).with([](Text, haft::resumption<long(text)> k) {
            text answer = {};
            answer.letters[39] = 1;
            return std::move(k).tail_resume(answer);
        }) == n);
    });
}

static void clauses_in_place() {
    stays_small([](long n) {
        long state = n;
        CHECK(haft::handle(count_down)
                  .with([&](Get) { return state; }, [&](Put p) { state = p.value; }) == n);
    });
}

static void handlers_that_are_named() {
    stays_small([](long n) {
        long sum = 0;
        haft::handle([&](haft::instance<Get> outer) {
            haft::handle([&](haft::instance<Get> inner) {
                for (long i = 0; i < n; i++)
                    sum += outer.perform(Get{}) - inner.perform(Get{});
            }).with([](Get) { return 1L; });
        }).with([](Get, haft::resumption<void(long)> k) { return std::move(k).tail_resume(2); });
        CHECK(sum == n);
    });
}

static void generators() {
    stays_small([](long n) {
        haft::generator<long> numbers([n](haft::yielder<long> yield) {
            for (long i = 0; i < n; i++)
                yield(1L);
        });
        long sum = 0;
        for (long number : numbers)
            sum += number;
        CHECK(sum == n);
    });
}

static void computations_that_come_and_go() {
    stays_small([](long n) {
        for (long i = 0; i < n / 20; i++) {
            CHECK(haft::handle([] {
                      return haft::perform(Get{});
                  }).with([&](Get, haft::resumption<long(long)> k) {
                return std::move(k).resume(i);
            }) == i);
        }
    });
}

static void computations_that_are_dropped() {
    stays_small([](long n) {
        for (long i = 0; i < n / 200; i++)
            haft::handle([] {
                counted local;
                haft::perform(Get{});
            }).with([](Get, haft::resumption<void(long)>) {});
        for (long i = 0; i < n / 200; i++)
            haft::handle([] {
                counted local;
                haft::perform(Stop{});
            }).with(haft::never([](Stop) {}));
        CHECK(counted::alive == 0);
    });
}

static void a_scheduler_of_kept_resumptions() {
    stays_small([](long n) {
        haft::resumption<void()> slots[3];
        auto keep = haft::clauses([&, next = 0](Stop, haft::resumption<void()> k) mutable {
            slots[next++ % 3] = std::move(k);
        });
        for (int i = 0; i < 3; i++)
            haft::handle([n] {
                for (long turn = 0; turn < n / 3; turn++)
                    haft::perform(Stop{});
            }).with(keep);
        for (int i = 0; slots[i % 3]; i++)
            std::move(slots[i % 3]).resume();
    });
}

int main() {
    clauses_that_end_in_a_tail_resume();
    clauses_that_tail_resume_another_computation();
    clauses_that_tail_resume_with_large_results();
    clauses_in_place();
    handlers_that_are_named();
    generators();
    computations_that_come_and_go();
    computations_that_are_dropped();
    a_scheduler_of_kept_resumptions();
}
// SPDX-License-Identifier: MIT
