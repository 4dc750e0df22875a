// SPDX-License-Identifier: MIT
// haft/io.hpp: mutexes and their guards, conditions, promises, channels.
#include <haft/io.hpp>

#include "../check_io.h"

#include <limits>
#include <shared_mutex>
#include <thread>

namespace io = haft::io;
static_assert(std::ranges::input_range<io::channel<int>>);
using namespace std::chrono_literals;

static void the_standard_librarys_guards_work_with_the_mutexes() {
    io::run([] {
        io::mutex mutex, other;
        std::vector<int> order;
        io::scope([&] {
            for (int i = 0; i < 2; i++)
                io::spawn([&, i] {
                    std::scoped_lock lock(mutex, other);
                    order.push_back(i);
                    io::yield();
                    order.push_back(i);
                });
        });
        CHECK(order == (std::vector<int>{0, 0, 1, 1}));
        std::unique_lock held(mutex);
        std::unique_lock late(mutex, std::defer_lock);
        CHECK(!late.try_lock_for(1ms));
        CHECK(!late.try_lock_until(std::chrono::system_clock::now() + 1ms));
        CHECK(!mutex.try_lock_until(io::clock::now()));

        io::shared_mutex shared;
        std::shared_lock one(shared), two(shared);
        std::unique_lock writer(shared, std::defer_lock);
        CHECK(!writer.try_lock_for(1ms));
        one.unlock();
        two.unlock();
        CHECK(writer.try_lock());
        CHECK(!shared.try_lock_shared_for(1ms));
    });
}

template <typename Time>
static bool is_over(Time time) {
    io::mutex mutex;
    std::lock_guard held(mutex);
    try {
        return io::with_deadline(5ms, [&] { return !mutex.try_lock_until(time); });
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::errc::timed_out);
        return false;
    }
}
static void a_time_of_any_clock_may_be_the_first_or_the_last() {
    using namespace std::chrono;
    io::simulate({.seed = 1}, [] {
        CHECK(is_over(system_clock::time_point::min()));
        CHECK(is_over(steady_clock::time_point::min()));
        CHECK(is_over(io::clock::time_point::min()));
        CHECK(is_over(io::clock::time_point{}));
        CHECK(is_over(time_point<system_clock, hours>::min()));
        CHECK(is_over(time_point<system_clock, duration<double>>::min()));
        CHECK(is_over(system_clock::now()));
        CHECK(is_over(io::from_now(hours::min())));
        CHECK(!is_over(system_clock::time_point::max()));
        CHECK(!is_over(steady_clock::time_point::max()));
        CHECK(!is_over(io::clock::time_point::max()));
        CHECK(!is_over(time_point<system_clock, hours>::max()));
        CHECK(!is_over(time_point<system_clock, duration<double>>::max()));
        CHECK(!is_over(system_clock::now() + 1h));
        CHECK(!is_over(io::from_now(hours::max())));
        io::sleep_until(system_clock::time_point::min());
        io::sleep_for(hours::min());
        constexpr duration<double> no_number(std::numeric_limits<double>::quiet_NaN());
        CHECK(is_over(io::from_now(no_number)));
        CHECK(is_over(time_point<system_clock, duration<double>>(no_number)));
    });
}

static void a_cancel_in_a_critical_section_unlocks() {
    io::run([] {
        io::mutex mutex;
        try {
            io::with_deadline(1ms, [&] {
                std::lock_guard lock(mutex);
                io::sleep_for(1h);
            });
        } catch (const std::system_error &) {
        }
        CHECK(mutex.try_lock());
    });
}

static void conditions_semaphores_barriers_and_events_wait() {
    io::run([] {
        io::mutex mutex;
        io::condition_variable changed;
        io::semaphore slots(1);
        io::barrier both(2);
        io::event done;
        int number = 0, lasts = 0;
        io::spawn([&] {
            {
                std::lock_guard lock(mutex);
                number = 42;
            }
            changed.notify_all();
            slots.release();
            lasts += both.arrive_and_wait();
            done.set();
        });
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return number == 42; });
        CHECK(!changed.wait_for(lock, 1ms, [] { return false; }));
        CHECK(changed.wait_for(lock, 0ms) == std::cv_status::timeout);
        slots.acquire();
        slots.acquire();
        CHECK(!slots.try_acquire() && !slots.try_acquire_for(1ms));
        CHECK(!done.wait_for(0ms));
        lasts += both.arrive_and_wait();
        done.wait();
        CHECK_EQUAL(lasts, 1);
    });
}

static void very_many_meet_at_a_barrier() {
    const auto count = static_cast<std::uint32_t>(check_times(100000));
    io::run([&] {
        io::barrier all(count);
        std::atomic<std::uint32_t> last = 0;
        io::scope([&] {
            for (std::uint32_t i = 0; i < count; i++)
                io::spawn([&] { last += all.arrive_and_wait(); });
        });
        CHECK_EQUAL(last, 1);
    });
}

static void a_call_once_that_throws_is_called_again() {
    io::run([] {
        io::once_flag flag;
        int calls = 0;
        for (int i = 0; i < 3; i++)
            try {
                io::call_once(flag, [&] {
                    if (++calls == 1)
                        throw std::out_of_range("the first call");
                });
            } catch (const std::out_of_range &) {
                CHECK_EQUAL(i, 0);
            }
        CHECK_EQUAL(calls, 2);
    });
}

template <typename F>
static bool is_too_late(F call) {
    try {
        call();
        return false;
    } catch (const std::system_error &error) {
        return error.code() == std::errc::timed_out;
    }
}

static void who_comes_to_a_barrier_or_a_call_once_may_give_up() {
    io::run([] {
        io::barrier both(2);
        CHECK(is_too_late([&] { both.arrive_and_wait_for(1ms); }));
        io::once_flag flag;
        int calls = 0;
        io::scope([&] {
            io::spawn([&] { both.arrive_and_wait_for(1h); });
            both.arrive_and_wait_until(io::clock::now() + 1h); /* the task that gave up is not the
                                                                  other */
            io::event called;
            io::spawn([&] {
                io::call_once(flag, [&] {
                    calls++;
                    called.wait();
                });
            });
            io::yield();
            CHECK(is_too_late([&] { io::call_once_for(flag, 1ms, [&] { calls++; }); }));
            called.set();
        });
        io::call_once_until(flag, io::clock::now(), [&] { calls++; });
        CHECK_EQUAL(calls, 1);
    });
}

static void a_promise_is_kept_by_a_thread_or_broken() {
    io::promise<std::unique_ptr<int>> promise;
    auto future = promise.get_future();
    std::thread keeper(
        [promise = std::move(promise)]() mutable { promise.set_value(std::make_unique<int>(42)); });
    CHECK_EQUAL(io::run([&] { return *future.get(); }), 42);
    keeper.join();
    CHECK(!future.valid());

    io::promise<void> failing;
    auto fails = failing.get_future();
    CHECK(fails.wait_for(1ms) == std::future_status::timeout);
    failing.set_exception(std::make_exception_ptr(std::out_of_range("failed")));
    int caught = 0;
    try {
        fails.get();
    } catch (const std::out_of_range &) {
        caught++;
    }
    auto broken = std::make_optional<io::promise<int>>();
    auto never = broken->get_future();
    broken.reset();
    try {
        never.get();
    } catch (const std::future_error &error) {
        caught += error.code() == std::future_errc::broken_promise;
    }
    try {
        failing.set_value();
    } catch (const std::future_error &error) {
        caught += error.code() == std::future_errc::promise_already_satisfied;
    }
    CHECK_EQUAL(caught, 3);
}

/* The move with this number, counted from now on, throws; 0: none does. */
struct fragile {
    static inline int throws_at = 0;
    int number;
    explicit fragile(int of) : number(of) {}
    fragile(fragile &&other) : number(other.number) {
        if (throws_at > 0 && --throws_at == 0)
            throw std::out_of_range("a move");
    }
    fragile &operator=(fragile &&) = default;
};

static void a_value_whose_move_throws_leaves_the_promise_to_be_kept() {
    io::promise<fragile> promise;
    auto future = promise.get_future();
    bool caught = false;
    fragile::throws_at = 1;
    try {
        promise.set_value(fragile(1));
    } catch (const std::out_of_range &) {
        caught = true;
    }
    CHECK(caught);
    CHECK(future.wait_for(0ms) == std::future_status::timeout);
    promise.set_value(fragile(2));
    CHECK(future.wait_for(0ms) == std::future_status::ready);
    CHECK_EQUAL(future.get().number, 2);
}

/* Counts those that live, and moves only. */
struct token {
    static inline int live = 0;
    int number;
    explicit token(int of) : number(of) { live++; }
    token(token &&other) noexcept : number(other.number) { live++; }
    token &operator=(token &&other) noexcept {
        number = other.number;
        return *this;
    }
    ~token() { live--; }
};

static void channels_carry_values_that_only_move() {
    for (std::size_t capacity : {0, 1, 5})
        io::run([&] {
            io::channel<token> tokens(capacity);
            io::spawn([&] {
                for (int i = 1; i <= 10; i++)
                    CHECK(tokens.send(token(i)));
                tokens.close();
                CHECK(!tokens.send(token(11)));
            });
            int sum = 0;
            for (token each : tokens)
                sum += each.number;
            CHECK_EQUAL(sum, 55);
            io::yield();
        });
    io::run([] {
        io::channel<token> full(1);
        token one(1), two(2);
        CHECK(full.try_send(one));
        CHECK(!full.try_send(two) && two.number == 2);
        int late = 0;
        try {
            full.send_for(1ms, token(3));
        } catch (const std::system_error &error) {
            late += error.code() == std::errc::timed_out;
        }
        try {
            io::with_deadline(1ms, [&] { full.send(token(4)); });
        } catch (const std::system_error &error) {
            late += error.code() == std::errc::timed_out;
        }
        CHECK_EQUAL(late, 2);
        /* The value inside ends with the channel. */
    });
    CHECK_EQUAL(token::live, 0);
}

static void what_is_not_sent_is_the_callers_still() {
    io::run([] {
        io::channel<std::string> full(1);
        const std::string all = "all that is sent is a copy of this";
        CHECK(full.send(all));
        std::string one = "one that nobody has waited for in time", two = one;
        CHECK(is_too_late([&] { full.send_for(1ms, std::move(one)); }) && one == two);
        CHECK(is_too_late([&] { full.send_until(io::clock::now(), all); }) && !all.empty());
        CHECK(is_too_late([&] { io::with_deadline(1ms, [&] { full.send(std::move(one)); }); }));
        CHECK(one == two);
        full.close();
        CHECK(!full.send(std::move(one)) && one == two);
        CHECK(full.receive() == all);
    });
}

/* No cancel keeps a destructor from what it can do at once, however much that is: like a cleanup
   of C. */
static void a_destructor_does_at_once_what_it_can_however_much_that_is() {
    enum { VERY_MANY = 200 };
    std::thread another([] {}); /* While there is one, no channel is simple. */
    io::channel<int> numbers(VERY_MANY);
    struct sends_all {
        io::channel<int> &to;
        bool &was_cancelled;
        ~sends_all() {
            for (int i = 0; i < VERY_MANY; i++)
                CHECK(to.send(i));
            try {
                to.send(VERY_MANY);
            } catch (const io::cancelled &) {
                was_cancelled = true;
            }
        }
    };
    bool was_cancelled = false, ended_so = false;
    try {
        io::run([&] {
            sends_all guard{numbers, was_cancelled};
            io::this_scope().cancel();
            io::sleep_for(1s);
        });
    } catch (const io::cancelled &) {
        ended_so = true;
    }
    CHECK(was_cancelled && ended_so);
    another.join();
}

static void values_in_a_channel_end_with_it_without_a_move() {
    {
        io::channel<fragile> full(1);
        CHECK(full.send(fragile(1)));
        fragile::throws_at = 1;
    }
    CHECK_EQUAL(std::exchange(fragile::throws_at, 0), 1);
}

static void a_channel_is_a_range_that_takes_no_more_than_asked() {
    io::run([] {
        io::channel<int> numbers(4);
        for (int i = 0; i < 4; i++)
            numbers.send(i);
        int sum = 0;
        for (int number : numbers) {
            sum += number;
            if (number == 1)
                break;
        }
        CHECK_EQUAL(sum, 1);
        CHECK_EQUAL(numbers.receive().value(), 2);
        numbers.close();
        CHECK_EQUAL(numbers.receive().value(), 3);
        CHECK(!numbers.receive() && !numbers.try_receive());
    });
}

static void select_does_what_can_be_done_or_times_out() {
    io::run([] {
        io::channel<int> numbers;
        io::channel<std::string> words;
        int number = 0;
        bool sent = false, closed = false;
        auto any = [&](auto wait) {
            return wait(io::on_receive(numbers,
                                       [&](std::optional<int> got) {
                                           closed = !got;
                                           number = got.value_or(0);
                                       }),
                        io::on_send(words, "a word", [&](bool done) { sent = done; }));
        };
        auto until_ms = [](auto &&...cases) { return io::select_for(1ms, cases...); };
        auto for_ever = [](auto &&...cases) { return std::optional(io::select(cases...)); };
        CHECK(any(until_ms) == std::nullopt);
        io::spawn([&] { numbers.send(7); });
        CHECK(any(for_ever) == 0 && number == 7 && !sent);
        io::spawn([&] { CHECK(words.receive() == "a word"); });
        CHECK(any(for_ever) == 1 && sent);
        numbers.close();
        CHECK(any(for_ever) == 0 && closed);
    });
}

static void select_leaves_out_what_has_no_channel() {
    io::run([] {
        io::channel<int> one(4), another(4);
        io::channel<int> *open[] = {&one, &another};
        for (io::channel<int> *each : open) {
            each->send(3);
            each->close();
        }
        int sum = 0;
        auto add = [&](io::channel<int> *&from) {
            return io::on_receive(from, [&](std::optional<int> number) {
                sum += number.value_or(0);
                if (!number)
                    from = nullptr;
            });
        };
        while (open[0] != nullptr || open[1] != nullptr)
            io::select(add(open[0]), add(open[1]));
        CHECK_EQUAL(sum, 6);
        io::channel<std::string> *nowhere = nullptr;
        CHECK(!io::select_for(0s, io::on_send(nowhere, "a word", [](bool) {})));
    });
}

static void channels_work_between_threads() {
    io::run({.threads = 2}, [] {
        io::channel<std::string> words(2);
        io::scope([&] {
            io::spawn([&] {
                io::scope([&] {
                    for (int sender = 0; sender < 4; sender++)
                        io::spawn([&] {
                            for (int i = 0; i < 500; i++)
                                words.send(std::to_string(i));
                        });
                });
                words.close();
            });
            std::atomic<int> sum = 0;
            io::scope([&] {
                for (int receiver = 0; receiver < 3; receiver++)
                    io::spawn([&] {
                        for (std::string word : words)
                            sum += std::stoi(word);
                    });
            });
            CHECK_EQUAL(sum, 4 * 499 * 250);
        });
    });
}

int main() {
    check_backend();
    RUN(the_standard_librarys_guards_work_with_the_mutexes);
    RUN(a_time_of_any_clock_may_be_the_first_or_the_last);
    RUN(a_cancel_in_a_critical_section_unlocks);
    RUN(conditions_semaphores_barriers_and_events_wait);
    RUN(very_many_meet_at_a_barrier);
    RUN(a_call_once_that_throws_is_called_again);
    RUN(who_comes_to_a_barrier_or_a_call_once_may_give_up);
    RUN(a_promise_is_kept_by_a_thread_or_broken);
    RUN(a_value_whose_move_throws_leaves_the_promise_to_be_kept);
    RUN(channels_carry_values_that_only_move);
    RUN(what_is_not_sent_is_the_callers_still);
    RUN(a_destructor_does_at_once_what_it_can_however_much_that_is);
    RUN(values_in_a_channel_end_with_it_without_a_move);
    RUN(a_channel_is_a_range_that_takes_no_more_than_asked);
    RUN(select_does_what_can_be_done_or_times_out);
    RUN(select_leaves_out_what_has_no_channel);
    RUN(channels_work_between_threads);
    return check_end();
}
