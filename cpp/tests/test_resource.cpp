/* Scoped resources: released once, in reverse order, however the scope is left. */
#include "check.hpp"

#include <haft/resource.hpp>
#include <stdexcept>
#include <string>
#include <vector>

struct Pause : haft::effect<> {};
struct Log : haft::effect<> {
    std::string line;
};

static std::string trace;

/* How many allocations succeed before one fails; negative: all. */
static int allocations = -1;
__attribute__((noinline)) void *operator new(std::size_t size) {
    void *made = allocations >= 0 && allocations-- == 0 ? nullptr : std::malloc(size);
    return made != nullptr ? made : throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void *made) noexcept {
    std::free(made);
}
__attribute__((noinline)) void operator delete(void *made, std::size_t) noexcept {
    std::free(made);
}

/* A resource for tests: opening and closing are seen in the trace. */
static int open_one(int number) {
    trace.append("+").append(std::to_string(number));
    return number;
}
static void close_one(int number) {
    trace.append("-").append(std::to_string(number));
}
static int acquire_one(int number) {
    return haft::acquire(open_one(number), close_one);
}

static std::string traced(void (*body)()) {
    trace.clear();
    body();
    return std::exchange(trace, "");
}

static void resources_are_released_in_reverse_on_return() {
    CHECK(traced([] {
              int sum = haft::scoped([] { return acquire_one(1) + acquire_one(2); });
              trace.append("=").append(std::to_string(sum));
          }) == "+1+2-2-1=3");
    CHECK(traced([] { haft::scoped([] {}); }) == "");
}

static void resources_are_released_on_an_exception() {
    CHECK(traced([] {
              int got = thrown_by<int>([] {
                  haft::scoped([] {
                      acquire_one(1);
                      acquire_one(2);
                      throw 7;
                  });
              });
              trace += std::string("!") + std::to_string(got);
          }) == "+1+2-2-1!7");
}

static void a_function_acquires_for_its_caller() {
    CHECK(traced([] {
              haft::scoped([] {
                  auto helper = [] { return acquire_one(1); };
                  helper();
                  trace += ".";
              });
          }) == "+1.-1");
}

static void locals_go_before_resources() {
    CHECK(traced([] {
              haft::scoped([] {
                  struct local {
                      ~local() { trace += "~"; }
                  } here;
                  acquire_one(1);
              });
          }) == "+1~-1");
}

static void kept_objects_live_as_long_as_the_scope() {
    haft::scoped([] {
        auto &words = haft::keep<std::vector<std::string>>(2u, "word");
        words.push_back("more");
        (void)haft::keep<counted>();
        CHECK(counted::alive == 1 && words.size() == 3);
    });
    CHECK(counted::alive == 0);
}

static void a_null_pointer_is_not_released() {
    haft::scoped([] {
        int *none = nullptr;
        CHECK(haft::acquire(none, [](int *) { CHECK(false); }) == nullptr);
    });
}

static void inner_scopes_release_first_and_outer_ones_can_be_named() {
    CHECK(traced([] {
              haft::scoped([](haft::scope outer) {
                  acquire_one(1);
                  haft::scoped([&] {
                      acquire_one(2);
                      outer.acquire(open_one(3), close_one);
                      outer.defer([] { trace += "d"; });
                      outer.keep<counted>();
                  });
                  trace += ".";
                  CHECK(counted::alive == 1);
              });
          }) == "+1+2+3-2.d-3-1");
    CHECK(counted::alive == 0);
}

static void a_release_runs_outside_of_its_scope() {
    CHECK(traced([] {
              haft::scoped([] {
                  haft::scoped([] {
                      haft::defer([] {
                          trace += "i";
                          haft::defer([] { trace += "o"; });
                      });
                  });
                  trace += ".";
              });
          }) == "i.o");
}

static void a_dropped_computation_releases() {
    CHECK(traced([] {
              haft::handle([] {
                  haft::scoped([] {
                      acquire_one(1);
                      haft::scoped([] {
                          acquire_one(2);
                          haft::perform(Pause{});
                          CHECK(false);
                      });
                  });
              }).with([](Pause, haft::resumption<void()> k) {
                  trace += "p";
                  std::move(k).drop();
                  trace += "q";
              });
          }) == "+1+2p-2-1q");
    CHECK(traced([] {
              haft::handle([] {
                  haft::scoped([] {
                      acquire_one(1);
                      haft::perform(Pause{});
                  });
              }).with(haft::never([](Pause) { trace += "n"; }));
          }) == "+1-1n");
}

static void a_suspended_scope_keeps_its_resources() {
    trace.clear();
    haft::resumption<void()> waiting;
    haft::handle([] {
        haft::scoped([] {
            acquire_one(1);
            haft::perform(Pause{});
            acquire_one(2);
        });
    }).with([&](Pause, haft::resumption<void()> k) { waiting = std::move(k); });
    CHECK(trace == "+1");
    std::move(waiting).resume();
    CHECK(trace == "+1+2-2-1");
}

static void a_discontinued_scope_releases() {
    CHECK(traced([] {
              std::string what = thrown_by<std::runtime_error>([] {
                                     haft::handle([] {
                                         haft::scoped([] {
                                             acquire_one(1);
                                             haft::perform(Pause{});
                                         });
                                     }).with([](Pause, haft::resumption<void()> k) {
                                         std::move(k).discontinue(std::runtime_error("stop"));
                                     });
                                 }).what();
              trace += what;
          }) == "+1-1stop");
}

static void releases_perform_effects_of_handlers_further_out() {
    std::string log;
    auto program = [] {
        haft::scoped([] {
            haft::defer([] { haft::perform(Log{.line = "closed"}); });
            haft::perform(Log{.line = "open"});
        });
    };
    haft::handle(program).with([&](Log entry) { log += entry.line + ","; });
    CHECK(log == "open,closed,");
    /* The same with a clause that suspends the release. */
    log.clear();
    haft::handle(program).with([&](Log entry, haft::resumption<void()> k) {
        log += entry.line + ",";
        std::move(k).resume();
    });
    CHECK(log == "open,closed,");
    /* And while an exception is on its way, or the computation is dropped. */
    log.clear();
    haft::handle([&] {
        CHECK(thrown_by<int>([&] {
                  haft::scoped([] {
                      haft::defer([] { haft::perform(Log{.line = "thrown"}); });
                      throw 1;
                  });
              }) == 1);
        haft::handle([] {
            haft::scoped([] {
                haft::defer([] { haft::perform(Log{.line = "dropped"}); });
                haft::perform(Pause{});
            });
        }).with([](Pause, haft::resumption<void()> k) { std::move(k).drop(); });
    }).with([&](Log entry) { log += entry.line + ","; });
    CHECK(log == "thrown,dropped,");
}

static void a_release_may_suspend_while_its_computation_is_dropped() {
    CHECK(traced([] {
              haft::handle([] {
                  haft::handle([] {
                      haft::scoped([] {
                          haft::defer([] {
                              haft::perform(Log{});
                              trace += "r";
                          });
                          haft::perform(Pause{});
                      });
                  }).with([](Pause, haft::resumption<void()> k) {
                      std::move(k).drop();
                      trace += "d";
                  });
              }).with([](Log, haft::resumption<void()> k) {
                  trace += "l";
                  std::move(k).resume();
              });
          }) == "lrd");
}

static void a_release_that_is_dropped_lets_the_others_run() {
    CHECK(traced([] {
              haft::handle([] {
                  haft::scoped([] {
                      acquire_one(1);
                      haft::defer([] { haft::perform(Pause{}); });
                  });
              }).with(haft::never([](Pause) { trace += "p"; }));
          }) == "+1-1p");
}

static void a_throwing_release_lets_the_others_run() {
    CHECK(traced([] {
              int got = thrown_by<int>([] {
                  haft::scoped([] {
                      acquire_one(1);
                      haft::defer([] { throw 5; });
                      acquire_one(2);
                  });
              });
              trace += std::string("!") + std::to_string(got);
          }) == "+1+2-2-1!5");
}

static void what_cannot_be_kept_is_released_at_once() {
    struct Full {};
    CHECK(traced([] {
              (void)thrown_by<Full>([] {
                  haft::handle([] { acquire_one(1); }).with([](haft::deferred) { throw Full(); });
              });
          }) == "+1-1");
    /* A handler that drops the computation in the middle of acquiring. */
    CHECK(traced([] {
              haft::handle([] {
                  acquire_one(1);
              }).with([](haft::deferred, haft::resumption<void()> k) { std::move(k).drop(); });
          }) == "+1-1");
}

static void resources_are_a_handler_of_any_lifetime() {
    trace.clear();
    {
        haft::resources kept;
        haft::handle([] { acquire_one(1); }).with(kept);
        haft::handle([] { acquire_one(2); }).with(kept);
        CHECK(trace == "+1+2" && !kept.empty());
        haft::resources others;
        haft::handle([] { acquire_one(3); }).with(others);
        others = std::move(kept);
        CHECK(trace == "+1+2+3-3" && kept.empty());
    }
    CHECK(trace == "+1+2+3-3-2-1");
}

static void a_bracket_releases_what_it_acquired() {
    CHECK(traced([] {
              trace += std::to_string(haft::bracket(
                  [] { return open_one(4); }, [](int number) { return number + 1; }, close_one));
          }) == "+4-45");
    CHECK(traced([] {
              (void)thrown_by<int>([] {
                  haft::bracket([] { return open_one(4); }, [](int) { throw 1; }, close_one);
              });
          }) == "+4-4");
    /* A resource that could not be acquired is not released. */
    CHECK(traced([] {
              (void)thrown_by<int>(
                  [] { haft::bracket([]() -> int { throw 1; }, [](int) {}, close_one); });
          }) == "");
}

static void what_there_is_no_memory_for_is_not_kept_open() {
    for (int enough = 0; enough < 3; enough++) {
        int open = 0;
        auto acquire = [&] { return ++open; };
        auto release = [&](int) { open--; };
        auto without_memory = [&](auto body) {
            allocations = enough;
            try {
                body();
            } catch (const std::bad_alloc &) {
            }
            allocations = -1;
            CHECK(open == 0);
        };
        without_memory([&] {
            haft::bracket(
                acquire, [](int) {}, release);
        });
        without_memory([&] {
            haft::scoped([&] {
                haft::acquire(acquire(), release);
                haft::acquire(acquire(), release);
            });
        });
    }
}

static void a_scope_answers_references_and_move_only_values() {
    int value = 3;
    int &same = haft::scoped([&]() -> int & { return value; });
    CHECK(&same == &value);
    CHECK(*haft::scoped([] { return std::make_unique<int>(4); }) == 4);
}

static void many_resources_need_no_stack_to_be_released() {
    constexpr int many = check_times(200'000);
    int released = 0;
    haft::scoped([&] {
        for (int i = 0; i < many; i++)
            haft::defer([&] { released++; });
    });
    CHECK(released == many);
    (void)thrown_by<int>([&] {
        haft::scoped([&] {
            for (int i = 0; i < many; i++)
                haft::defer([&] { released++; });
            throw 1;
        });
    });
    CHECK(released == 2 * many);
}

template <typename F>
static std::string refused(F function) {
    try {
        function();
    } catch (const std::logic_error &error) {
        return error.what();
    }
    return "";
}
static void keeping_outside_of_a_scope_is_refused_and_releases_at_once() {
    const std::string expected = "haft: defer(), acquire() or keep() was called outside of "
                                 "haft::scoped(). Call it in the body of haft::scoped().";
    int released = 0;
    CHECK(refused([&] { haft::defer([&] { released++; }); }) == expected);
    CHECK(released == 1);
    CHECK(refused([&] { haft::acquire(1, [&](int) { released++; }); }) == expected);
    CHECK(released == 2);
    struct counting {
        explicit counting(int &counted) : count(counted) {}
        ~counting() { count++; }
        int &count;
    };
    CHECK(refused([&] { haft::keep<counting>(released); }) == expected);
    CHECK(released == 3);
    haft::scoped([&] { haft::defer([&] { released++; }); });
    CHECK(released == 4);
}

int main() {
    keeping_outside_of_a_scope_is_refused_and_releases_at_once();
    resources_are_released_in_reverse_on_return();
    resources_are_released_on_an_exception();
    a_function_acquires_for_its_caller();
    locals_go_before_resources();
    kept_objects_live_as_long_as_the_scope();
    a_null_pointer_is_not_released();
    inner_scopes_release_first_and_outer_ones_can_be_named();
    a_release_runs_outside_of_its_scope();
    a_dropped_computation_releases();
    a_suspended_scope_keeps_its_resources();
    a_discontinued_scope_releases();
    releases_perform_effects_of_handlers_further_out();
    a_release_may_suspend_while_its_computation_is_dropped();
    a_release_that_is_dropped_lets_the_others_run();
    a_throwing_release_lets_the_others_run();
    what_cannot_be_kept_is_released_at_once();
    resources_are_a_handler_of_any_lifetime();
    a_bracket_releases_what_it_acquired();
    what_there_is_no_memory_for_is_not_kept_open();
    a_scope_answers_references_and_move_only_values();
    many_resources_need_no_stack_to_be_released();
}
// SPDX-License-Identifier: MIT
