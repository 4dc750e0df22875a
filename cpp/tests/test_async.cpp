/* async, await and promises: results of any type, failures, several at once, misuse. */
#include "check.hpp"

#include <haft/async.hpp>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

static bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

static int after(int turns, int value) {
    while (turns-- > 0)
        haft::yield();
    return value;
}

static void results_of_any_type() {
    int cell = 1;
    std::string all = haft::run([&] {
        haft::future<int> number = haft::async([] { return after(2, 5); });
        haft::future<int &> place = haft::async([&]() -> int & { return cell; });
        haft::future<> nothing = haft::async([&] { cell = 2; });
        auto owner = haft::async([] { return std::make_unique<std::string>("own"); });
        CHECK(number.valid() && !number.ready());
        haft::await(nothing);
        CHECK(&haft::await(place) == &cell && cell == 2);
        return *haft::await(owner) + std::to_string(haft::await(std::move(number)));
    });
    CHECK(all == "own5");
}

static void exceptions_pass_through_await() {
    haft::run([] {
        auto failing = haft::async([]() -> int {
            auto inner = haft::async([]() -> int {
                counted local;
                haft::yield();
                throw std::runtime_error("inner");
            });
            return haft::await(inner);
        });
        CHECK(thrown_by<std::runtime_error>([&] { haft::await(failing); }).what() ==
              std::string("inner"));
        CHECK(counted::alive == 0 && !failing.valid());
    });
}

static void a_future_is_awaited_once() {
    haft::run([] {
        haft::future<int> value = haft::async([] { return 1; }), empty;
        haft::await(value);
        CHECK(contains(thrown_by<std::logic_error>([&] { haft::await(value); }).what(), "await()"));
        thrown_by<std::logic_error>([&] { haft::await(empty); });
        haft::future<int> shared = haft::async([] { return after(3, 2); });
        haft::future<> second = haft::async([&] {
            CHECK(contains(thrown_by<std::logic_error>([&] { haft::await(shared); }).what(),
                           "another thread waits"));
            thrown_by<std::logic_error>([&] { haft::await_any(shared); });
        });
        CHECK(haft::await(shared) == 2);
        haft::await(second);
    });
}

static void a_thread_that_awaits_itself_is_told() {
    haft::run([] {
        haft::future<> own;
        own = haft::async([&] {
            for (auto awaiting : {+[](haft::future<> &of) { haft::await(of); },
                                  +[](haft::future<> &of) { haft::await_any(of); },
                                  +[](haft::future<> &of) { haft::await_any(std::span(&of, 1)); }})
                CHECK(contains(thrown_by<std::logic_error>([&] { awaiting(own); }).what(),
                               "cannot wait for itself"));
        });
        haft::yield();
        haft::await(own);
    });
}

static void a_promise_fails_with_an_exception() {
    haft::promise<int> failing;
    CHECK(contains(thrown_by<std::logic_error>([&] { failing.set_exception(nullptr); }).what(),
                   "no exception"));
    failing.set_exception(std::make_exception_ptr(3));
    haft::future<int> failed = failing.get_future();
    CHECK(thrown_by<int>([&] { haft::await(failed); }) == 3);
}

static void promises_are_kept_from_anywhere() {
    haft::run([] {
        haft::promise<std::unique_ptr<int>> pointer;
        haft::promise<int &> place;
        haft::promise<> signal;
        auto pointer_to_come = pointer.get_future();
        auto place_to_come = place.get_future();
        auto signal_to_come = signal.get_future();
        int cell = 4;
        auto keeper = haft::async([&, pointer = std::move(pointer)]() mutable {
            haft::yield();
            pointer.set_value(std::make_unique<int>(3));
            place.set_value(cell);
            signal.set_value();
        });
        CHECK(*haft::await(pointer_to_come) == 3 && &haft::await(place_to_come) == &cell);
        haft::await(signal_to_come);
        haft::promise<int> failing;
        failing.set_exception(std::make_exception_ptr(7));
        CHECK(thrown_by<int>([&] { haft::await(failing.get_future()); }) == 7);
        haft::await(keeper);
    });
}

static void a_promise_without_owner_is_broken() {
    haft::run([] {
        haft::future<int> orphan = haft::promise<int>().get_future();
        CHECK(contains(thrown_by<haft::broken_promise>([&] { haft::await(orphan); }).what(),
                       "destroyed without a value"));
        haft::promise<int> moved, dropped;
        haft::future<int> waiting = dropped.get_future();
        auto dropping = haft::async([owned = std::move(dropped)] { haft::yield(); });
        thrown_by<haft::broken_promise>([&] { haft::await(waiting); });
        haft::promise<int> target = std::move(moved);
        thrown_by<std::logic_error>([&] { moved.set_value(1); });
        thrown_by<std::logic_error>([&] { moved.get_future(); });
        target.set_value(1);
        thrown_by<std::logic_error>([&] { target.set_value(2); });
        auto first = target.get_future();
        thrown_by<std::logic_error>([&] { target.get_future(); });
        CHECK(haft::await(first) == 1);
        haft::await(dropping);
    });
}

static void futures_outlive_the_scheduler() {
    haft::future<int> done, left;
    haft::promise<int> promise;
    haft::future<int> late = promise.get_future();
    thrown_by<char>([&] {
        haft::run([&] {
            done = haft::async([] { return 1; });
            left = haft::async([]() -> int {
                for (;;)
                    haft::yield();
            });
            haft::yield();
            throw 'x';
        });
    });
    CHECK(haft::await(done) == 1);
    thrown_by<haft::thread_killed>([&] { haft::await(left); });
    CHECK(contains(thrown_by<std::logic_error>([&] { haft::await(late); }).what(), "haft::run()"));
    promise.set_value(2);
    CHECK(haft::await(late) == 2);
}

static void all_are_awaited_together() {
    haft::run([] {
        auto [number, text, nothing] =
            haft::await_all(haft::async([] { return after(3, 1); }),
                            haft::async([] { return std::string("two"); }), haft::async([] {}));
        static_assert(std::is_same_v<decltype(nothing), std::monostate>);
        CHECK(number == 1 && text == "two");
        std::vector<haft::future<int>> many;
        for (int i = 0; i < 5; i++)
            many.push_back(haft::async([i] { return after(5 - i, i); }));
        CHECK(haft::await_all(many) == std::vector<int>({0, 1, 2, 3, 4}));
        std::list<haft::future<>> list;
        int done = 0;
        for (int i = 0; i < 3; i++)
            list.push_back(haft::async([&] { done++; }));
        haft::await_all(list);
        CHECK(done == 3);
    });
}

static void all_have_ended_when_one_has_failed() {
    haft::run([] {
        int ended = 0;
        auto failing = [&](int turns) {
            return haft::async([&ended, turns]() -> int {
                after(turns, 0);
                ended++;
                throw turns;
            });
        };
        CHECK(thrown_by<int>([&] { haft::await_all(failing(3), failing(2), failing(5)); }) == 3);
        CHECK(ended == 3);
        std::vector<haft::future<int>> many;
        many.push_back(failing(2)), many.push_back(failing(1));
        CHECK(thrown_by<int>([&] { haft::await_all(many); }) == 2);
        CHECK(ended == 5);
    });
}

static void the_first_of_many_is_awaited() {
    haft::run([] {
        haft::promise<> never;
        haft::future<> hopeless = never.get_future();
        haft::future<int> soon = haft::async([] { return after(2, 5); });
        CHECK(haft::await_any(hopeless, soon) == 1);
        CHECK(haft::await(soon) == 5);
        std::vector<haft::future<int>> many;
        for (int turns : {5, 1, 3})
            many.push_back(haft::async([turns] { return after(turns, turns); }));
        std::string order;
        while (!many.empty()) {
            auto first = many.begin() + static_cast<std::ptrdiff_t>(haft::await_any(many));
            order += std::to_string(haft::await(*first));
            many.erase(first);
        }
        CHECK(order == "135");
        thrown_by<std::logic_error>([&] { haft::await_any(many); });
        never.set_value();
        haft::await(hopeless);
    });
}

static void a_waiting_thread_may_be_killed() {
    haft::run([] {
        haft::promise<int> promise;
        haft::future<int> value = promise.get_future(),
                          other = haft::async([] { return after(5, 1); });
        haft::thread<> one = haft::fork([&] { haft::await(value); });
        haft::thread<> any = haft::fork([&] {
            counted local;
            haft::promise<int> mine;
            haft::future<int> never = mine.get_future();
            haft::await_any(never, other);
        });
        haft::yield();
        one.kill();
        any.kill();
        CHECK(counted::alive == 0);
        promise.set_value(3);
        CHECK(haft::await(value) == 3 && haft::await(other) == 1);
    });
}

static void a_failure_that_nobody_awaits_leaves_run() {
    CHECK(thrown_by<int>([] {
              haft::run([] {
                  haft::async([] { throw 1; });
                  after(1000, 0);
                  CHECK(false);
              });
          }) == 1);
    haft::run([] {
        haft::promise<int> concerning_nobody;
        haft::future<int> dropped = concerning_nobody.get_future();
        concerning_nobody.set_exception(std::make_exception_ptr(2));
    });
}

static void a_deadlock_names_await() {
    CHECK(contains(thrown_by<haft::deadlock>([] {
                       haft::run([] {
                           haft::promise<int> kept;
                           haft::await(kept.get_future());
                       });
                   }).what(),
                   "thread 1 'main' waits in await()"));
}

static void threads_become_futures() {
    haft::run([] {
        haft::thread<int> forked = haft::fork([] { return after(2, 6); });
        haft::future<int> value = std::move(forked);
        CHECK(!forked.joinable() && haft::await(value) == 6);
    });
}

int main() {
    results_of_any_type();
    exceptions_pass_through_await();
    a_future_is_awaited_once();
    a_thread_that_awaits_itself_is_told();
    a_promise_fails_with_an_exception();
    promises_are_kept_from_anywhere();
    a_promise_without_owner_is_broken();
    futures_outlive_the_scheduler();
    all_are_awaited_together();
    all_have_ended_when_one_has_failed();
    the_first_of_many_is_awaited();
    a_waiting_thread_may_be_killed();
    a_failure_that_nobody_awaits_leaves_run();
    a_deadlock_names_await();
    threads_become_futures();
}
// SPDX-License-Identifier: MIT
