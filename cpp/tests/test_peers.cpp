/* Faults of other libraries of this kind that concern C++, a test each. The end of this file names
 * the faults that other files of this folder test. */
#include "check.hpp"

#include <cfenv>
#include <haft.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct Get : haft::effect<int> {};
struct Pause : haft::effect<> {};
struct Fail : haft::effect<> {
    int code;
};

/* ---- More effects than a word has bits ---- */

template <std::size_t N>
struct Numbered : haft::effect<std::size_t> {};

enum { EFFECTS = 66 };

template <std::size_t... N>
static void each_effect_has_its_clause(std::index_sequence<N...>) {
    auto all_are_right = [] { return ((haft::perform(Numbered<N>{}) == N) && ...); };
    CHECK(haft::handle(all_are_right).with([](Numbered<N>) { return N; }...));
    CHECK(haft::handle(all_are_right).with([](Numbered<N>, haft::resumption<bool(std::size_t)> k) {
        return std::move(k).tail_resume(N);
    }...));
}

/* The handler of N alone, around what handles all smaller ones. */
template <std::size_t N, typename Body>
static bool within_each(Body body) {
    if constexpr (N == 0)
        return body();
    else
        return haft::handle([=] { return within_each<N - 1>(body); }).with([](Numbered<N - 1>) {
            return N - 1;
        });
}

static void more_effects_than_bits_are_told_apart() {
    each_effect_has_its_clause(std::make_index_sequence<EFFECTS>());
    CHECK(within_each<EFFECTS>([] {
        return haft::perform(Numbered<0>{}) == 0 && haft::perform(Numbered<64>{}) == 64 &&
               haft::perform(Numbered<EFFECTS - 1>{}) == EFFECTS - 1;
    }));
}

/* ---- Leaving several computations at once ---- */

static void across(int levels) {
    counted local;
    if (levels == 0)
        haft::perform(Fail{.code = 7});
    haft::handle([=] {
        counted local_of_the_body;
        across(levels - 1);
    }).with([owned = std::make_shared<counted>()](Pause, haft::resumption<void()>) {});
}

static void failing_across_computations_leaks_none_of_them() {
    for (int turn = 0; turn < 3; turn++) {
        CHECK(haft::handle([] {
                  across(5);
                  return 0;
              }).with(haft::never([](Fail fail) { return fail.code; })) == 7);
        CHECK(haft::handle([] {
                  across(5);
                  return 0;
              }).with([](Fail fail, haft::resumption<int()>) { return fail.code; }) == 7);
        CHECK(counted::alive == 0);
    }
}

static void throwing_across_computations_leaks_none_of_them() {
    struct failure {};
    auto thrower = [](Fail) { throw failure(); };
    (void)thrown_by<failure>([&] { haft::handle([] { across(5); }).with(thrower); });
    (void)thrown_by<failure>([&] {
        haft::handle([] { across(5); }).with([](Fail, haft::resumption<void()> k) {
            std::move(k).discontinue(failure());
        });
    });
    CHECK(counted::alive == 0);
}

/* ---- Many at once ---- */

static void live(int count) {
    std::vector<haft::resumption<int()>> suspended;
    for (int i = 0; i < count; i++)
        haft::handle([i] {
            counted local;
            haft::perform(Pause{});
            return i;
        }).with([&](Pause, haft::resumption<int()> k) {
            suspended.push_back(std::move(k));
            return 0;
        });
    CHECK(counted::alive == count);
    for (int i = 0; i < count; i += 2)
        CHECK(std::move(suspended[static_cast<std::size_t>(i)]).resume() == i);
    CHECK(counted::alive == count / 2);
    suspended.clear();
    CHECK(counted::alive == 0);
}

/* Fewer where a sanitizer keeps a thread's worth of state for each. */
static void thousands_of_computations_live_at_once() {
    live(check_times(20'000));
}

static int deep(int depth) {
    if (depth == 0)
        return haft::perform(Get{});
    return haft::handle([=] { return deep(depth - 1); }).with([](Get) {
        return haft::perform(Get{}) + 1;
    });
}

static void thousands_of_nested_handlers_of_one_effect_end() {
    constexpr int depth = check_times(3000);
    int answer =
        haft::handle([] { return deep(depth); })
            .on({.stack_size = 64 << 20})
            .with([](Get, haft::resumption<int(int)> k) { return std::move(k).resume(1); });
    CHECK(answer == depth + 1);
}

/* ---- What belongs to a thread, and to a fiber ---- */

static void threads_use_handlers_of_their_own() {
    std::vector<std::thread> threads;
    for (int id = 0; id < 4; id++)
        threads.emplace_back([id] {
            int state = 0;
            for (int turn = 0; turn < 500; turn++)
                state = haft::handle([=] {
                            return haft::handle(
                                       [] { return haft::perform(Get{}) + haft::perform(Get{}); })
                                .with([](Pause, haft::resumption<int()>) { return 0; });
                        }).with([=](Get, haft::resumption<int(int)> k) {
                    return std::move(k).resume(id);
                });
            CHECK(state == 2 * id);
        });
    for (std::thread &thread : threads)
        thread.join();
}

static void a_resumption_goes_on_and_is_dropped_on_another_thread() {
    std::vector<haft::resumption<int(int)>> kept;
    for (int i = 0; i < 20; i++)
        haft::handle([] {
            auto local = std::make_unique<int>(30);
            return haft::perform(Get{}) + *local;
        }).with([&](Get, haft::resumption<int(int)> k) {
            kept.push_back(std::move(k));
            return 0;
        });
    std::thread([&] {
        for (std::size_t i = 0; i < kept.size() / 2; i++)
            CHECK(std::move(kept[i]).resume(3) == 33);
        kept.clear();
    }).join();
}

static void a_rounding_mode_set_in_a_body_stays_in_it() {
    haft::resumption<void()> kept;
    haft::handle([] {
        std::fesetround(FE_UPWARD);
        haft::perform(Pause{});
        CHECK(std::fegetround() == FE_UPWARD);
    }).with([&](Pause, haft::resumption<void()> k) {
        CHECK(std::fegetround() == FE_TONEAREST);
        kept = std::move(k);
    });
    CHECK(std::fegetround() == FE_TONEAREST);
    std::move(kept).resume();
    CHECK(std::fegetround() == FE_TONEAREST);
}

/* Elsewhere: nobody handles an effect (test_effects); a resumption is used twice, handlers nest in
 * place, a clause runs outside its own handler (test_handlers); dropping, assigning over and
 * swapping (test_lifetime); exceptions that leave a body, and those of each fiber
 * (test_exceptions); loops that grow (test_constant_space); the header in two source files and
 * libraries (units); overflow, crashes, memory protection (core/tests/test_peers.c). */
int main() {
    more_effects_than_bits_are_told_apart();
    failing_across_computations_leaks_none_of_them();
    throwing_across_computations_leaks_none_of_them();
    thousands_of_computations_live_at_once();
    thousands_of_nested_handlers_of_one_effect_end();
    threads_use_handlers_of_their_own();
    a_resumption_goes_on_and_is_dropped_on_another_thread();
    a_rounding_mode_set_in_a_body_stays_in_it();
}
// SPDX-License-Identifier: MIT
