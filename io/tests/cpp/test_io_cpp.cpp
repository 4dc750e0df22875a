// SPDX-License-Identifier: MIT
// haft/io.hpp: results and exceptions of tasks and scopes, what a cancel is in C++, stop tokens.
#include <haft/io.hpp>

#include "../check_io.h"

#include <stdexcept>
#include <thread>
#include <vector>

namespace io = haft::io;
using namespace std::chrono_literals;

static void a_join_returns_what_the_task_returned() {
    std::string text = io::run([] {
        auto number = io::async([] { return std::make_unique<int>(42); });
        auto nothing = io::async([] { io::yield(); });
        nothing.join();
        return std::to_string(*number.join());
    });
    CHECK(text == "42");
}

static void an_exception_of_a_task_leaves_its_scope_and_cancels_the_others() {
    bool unwound = false, seen = false, caught = false;
    io::run([&] {
        try {
            io::scope([&] {
                io::spawn([&] {
                    struct guard {
                        bool &left;
                        ~guard() { left = true; }
                    } here{unwound};
                    try {
                        io::sleep_for(1h);
                    } catch (const io::cancelled &) {
                        seen = true;
                        throw;
                    }
                });
                io::yield();
                io::spawn([] { throw std::out_of_range("a task"); });
            });
        } catch (const std::out_of_range &) {
            caught = true;
        }
    });
    CHECK(unwound && seen && caught);
}

static void what_a_join_has_thrown_is_not_thrown_again() {
    int caught = 0;
    io::run([&] {
        auto failing = io::async([] { throw std::out_of_range("a task"); });
        try {
            failing.join();
        } catch (const std::out_of_range &) {
            caught++;
        }
    });
    CHECK_EQUAL(caught, 1);
    try {
        io::run([&] {
            auto failing = io::async([] { throw std::out_of_range("a task"); });
            failing.join();
        });
    } catch (const std::out_of_range &) {
        caught++;
    }
    CHECK_EQUAL(caught, 2);
}

static void a_body_that_is_cut_short_after_a_joins_exception_throws_it() {
    int caught = 0;
    try {
        io::run([&] {
            auto failing = io::async([] { throw std::out_of_range("a task"); });
            try {
                failing.join();
            } catch (const std::out_of_range &) {
                caught++;
            }
            io::sleep_for(1h); // its scope was cancelled
        });
    } catch (const std::out_of_range &) {
        caught++;
    }
    CHECK_EQUAL(caught, 2);
}

static void the_first_exception_is_thrown_and_the_others_are_kept() {
    std::vector<std::exception_ptr> failures;
    std::string thrown;
    auto fail_twice = [&] {
        io::scope({.name = "pair", .failures = &failures}, [] {
            io::spawn([] { throw std::out_of_range("first"); });
            io::spawn([] {
                try {
                    io::sleep_for(1h);
                } catch (const io::cancelled &) {
                    throw std::runtime_error("second");
                }
            });
        });
    };
    io::run([&] {
        try {
            fail_twice();
        } catch (const std::out_of_range &error) {
            thrown = error.what();
        }
    });
    CHECK(thrown == "first");
    CHECK_EQUAL(failures.size(), 2);
    try {
        std::rethrow_exception(failures[1]);
    } catch (const std::runtime_error &error) {
        CHECK(error.what() == std::string("second"));
    }
    io::run([&] { io::scope({.failures = &failures}, [] {}); });
    CHECK(failures.empty());
}

static void print_further_failure() {
    io::run([&] {
        try {
            io::scope({.name = "pair"}, [] {
                io::spawn([] { throw std::out_of_range("first"); });
                io::spawn([] { throw std::out_of_range("second"); });
                io::spawn([] { throw 3; });
            });
        } catch (const std::out_of_range &) {
        }
    });
    std::exit(0);
}
static void a_further_exception_that_nobody_keeps_is_printed() {
    if (!check_follows_children())
        return;
    check_child_t child = check_child(print_further_failure);
    CHECK_EQUAL(child.status, 0);
    CHECK_CONTAINS(child.output,
                   "haft: a further failure in the scope 'pair': std::out_of_range: second\n");
    CHECK_CONTAINS(child.output, "haft: a further failure in the scope 'pair': int\n");
}

static void an_exception_goes_through_scopes_and_tasks_once() {
    int caught = 0;
    try {
        io::run([&] {
            io::scope([&] {
                auto outer = io::async(
                    [] { io::scope([] { io::spawn([] { throw std::out_of_range("deep"); }); }); });
                io::spawn([outer = std::move(outer)]() mutable { outer.join(); });
            });
        });
    } catch (const std::out_of_range &) {
        caught++;
    }
    CHECK_EQUAL(caught, 1);
}

static void a_body_that_throws_cancels_its_tasks_and_one_that_returns_waits_for_them() {
    auto fail = [] {
        io::spawn([] { io::sleep_for(1h); });
        io::yield();
        throw std::out_of_range("the body");
    };
    int caught = 0, ended = 0;
    auto count = [&caught](auto call) {
        try {
            call();
        } catch (const std::out_of_range &) {
            caught++;
        }
    };
    count([&] { io::run(fail); });
    io::run([&] {
        count([&] { io::scope(fail); });
        count([&] { io::with_deadline(1h, fail); });
        count([&] { io::shield(fail); });
        io::scope([&] {
            io::spawn([&] {
                io::sleep_for(1ms);
                ended++;
            });
        });
    });
    CHECK_EQUAL(caught, 4);
    CHECK_EQUAL(ended, 1);
}

/* ---- Thread-local variables ---- */

struct made_slowly {
    made_slowly() { io::sleep_for(1us); }
    ~made_slowly() { number = 0; }
    int number = 7;
};
static thread_local made_slowly slow_to_make;

static void use_slow() {
    io::run([] {
        haft_io_task_set_name("ada");
        io::scope([] { CHECK_EQUAL(slow_to_make.number, 7); });
        io::sleep_for(1us);
    });
}
/* (Valgrind would tell of the look; an optimising compiler may make the initialiser a part of the
   function that uses the variable.) */
static void an_initialiser_of_a_thread_local_variable_that_waits_is_reported() {
#if defined(__OPTIMIZE__) || defined(__SANITIZE_THREAD__)
    const bool may_be_missed = true;
#else
    const bool may_be_missed = RUNNING_ON_VALGRIND;
#endif
    check_child_t child = check_child(use_slow);
    CHECK_EQUAL(child.status, 0);
    const char *report = "the task 'ada' waits in an initialiser of a thread-local variable";
    const char *first = strstr(child.output, report);
    CHECK(may_be_missed || first != nullptr);
    CHECK(first == nullptr || strstr(first + 1, report) == nullptr);
}

static void many_failures_are_kept() {
    const int count = RUNNING_ON_VALGRIND ? 500 : 40000;
    std::vector<std::exception_ptr> failures;
    try {
        io::run(io::run_options{.failures = &failures}, [count] {
            for (int i = 0; i < count; i++)
                io::spawn([i] { throw i; });
        });
    } catch (int first) {
        CHECK_EQUAL(first, 0);
    }
    CHECK_EQUAL(failures.size(), static_cast<size_t>(count));
}

static void a_scope_that_was_cancelled_returns_what_its_body_returned() {
    int cut = 0;
    int got = io::run([&] {
        int number = io::scope([](io::scope_ref here) {
            io::spawn([] { io::sleep_for(1h); });
            here.cancel();
            return 7;
        });
        try {
            io::scope([](io::scope_ref here) {
                here.cancel();
                io::sleep_for(1h);
            });
        } catch (const io::cancelled &) {
            cut++;
        }
        io::yield();
        return number;
    });
    CHECK_EQUAL(got, 7);
    CHECK_EQUAL(cut, 1);
}

static int nest(int depth) {
    return depth == 0 ? throw std::out_of_range("the bottom")
                      : io::scope([=] { return nest(depth - 1); });
}

static void scopes_nest_by_the_ten_thousand() {
    int caught = 0;
    io::run([&] {
        try {
            nest(check_times(20000));
        } catch (const std::out_of_range &) {
            caught++;
        }
    });
    CHECK_EQUAL(caught, 1);
}

static void a_task_is_spawned_into_a_scope_further_out() {
    std::string order;
    try {
        io::run([&] {
            io::scope([&](io::scope_ref outside) {
                io::scope([&] {
                    outside.spawn([&] {
                        io::sleep_for(1us);
                        order += "task ";
                        throw std::out_of_range("outside");
                    });
                });
                order += "inner-ended ";
            });
        });
    } catch (const std::out_of_range &) {
        order += "outer-threw";
    }
    CHECK(order == "inner-ended task outer-threw");
}

static void this_scope_is_the_same_scope_further_in() {
    io::run([] {
        std::string order;
        io::scope([&] {
            io::scope_ref here = io::this_scope();
            io::scope([&] {
                here.spawn([&] {
                    io::sleep_for(1ms);
                    order += "task";
                });
            });
            order += "inner, ";
        });
        CHECK(order == "inner, task");
        try {
            io::scope([] {
                io::scope_ref here = io::this_scope();
                io::scope([&] {
                    here.spawn([] { throw std::runtime_error("of the outer"); });
                    io::sleep_for(1h);
                });
            });
            CHECK(false);
        } catch (const std::runtime_error &failure) {
            CHECK(std::string(failure.what()) == "of the outer");
        }
    });
}

static void a_task_of_the_run_outlives_the_scopes_around_its_spawn() {
    std::string order;
    io::run([&] {
        io::with_deadline(1h, [&](io::scope_ref here) {
            io::scope([&] {
                io::run_scope().spawn([&] {
                    io::sleep_for(1us);
                    order += "task ";
                });
            });
            here.cancel();
        });
        order += "scopes-ended ";
    });
    CHECK(order == "scopes-ended task ");
}

struct leaving {
    int &count;
    ~leaving() { count++; }
};
static int left, passed;
static void *wait_for_ever(void *unused) {
    leaving here{left};
    try {
        haft_io_sleep(HAFT_IO_FOREVER - haft_io_now());
    } catch (...) {
        passed++;
        throw;
    }
    return unused;
}
static void *fail_in_c(void *unused) {
    leaving here{left};
    haft_io_yield();
    haft_io_fail(-EIO, "the disk is gone");
    return unused;
}
static int went_on;
static void *wait_and_swallow(void *unused) {
    leaving here{left};
    for (int i = 0; i < 2; i++)
        try {
            haft_io_sleep(HAFT_IO_FOREVER - haft_io_now());
        } catch (...) {
            passed++;
        }
    went_on++;
    return unused;
}
static void *fail_and_swallow(void *unused) {
    leaving here{left};
    try {
        haft_io_yield();
        haft_io_fail(-EIO, "the disk is gone");
    } catch (...) {
        passed++;
        haft_io_yield();
    }
    went_on++;
    return unused;
}
HAFT_EFFECT(forgotten, int, {});
static void *forget_a_handler(void *unused) {
    leaving here{left};
    try {
        HAFT_PERFORM(forgotten);
    } catch (...) {
        passed++;
    }
    went_on++;
    return unused;
}
/* The task goes on, and its next wait unwinds it, since its failure has cancelled the scope. */
static void *replace_a_failure(void *waits) {
    leaving here{left};
    for (int i = 0; i < 3; i++)
        try {
            try {
                HAFT_PERFORM(forgotten);
            } catch (...) {
                passed++;
                throw std::runtime_error("in its place");
            }
        } catch (const std::runtime_error &) {
            if (waits != nullptr)
                haft_io_yield();
        }
    went_on++;
    return waits;
}
static void *replace_and_wait(void *) {
    return replace_a_failure(&left);
}
static void an_unwinding_that_is_swallowed_goes_on_where_the_block_ends() {
    struct {
        void *(*task)(void *);
        int blocks, code, behind;
    } const cases[] = {{fail_and_swallow, 1, EIO, 0},
                       {forget_a_handler, 1, ENOTSUP, 0},
                       {replace_a_failure, 3, ENOTSUP, 1},
                       {replace_and_wait, 1, ENOTSUP, 0}};
    for (const auto &one : cases) {
        left = passed = went_on = 0;
        int code = 0;
        try {
            io::run([&] {
                haft_io_spawn(wait_and_swallow, nullptr);
                haft_io_spawn(one.task, nullptr);
                io::sleep_for(1h);
            });
        } catch (const std::system_error &error) {
            code = error.code().value();
        }
        CHECK_EQUAL(code, one.code);
        CHECK_EQUAL(left, 2);
        CHECK_EQUAL(passed, one.blocks + 1);
        CHECK_EQUAL(went_on, one.behind);
    }
}
// Tasks of C, whose unwinding is no exception, beside those of C++.
static void a_forced_unwinding_runs_destructors_and_passes_catch_all() {
    left = passed = 0;
    int code = 0;
    try {
        io::run([] {
            haft_io_spawn(wait_for_ever, nullptr);
            haft_io_spawn(fail_in_c, nullptr);
            io::sleep_for(1h);
        });
    } catch (const std::system_error &error) {
        code = error.code().value();
    }
    CHECK_EQUAL(code, EIO);
    CHECK_EQUAL(left, 2);
    CHECK_EQUAL(passed, 1);
    left = 0;
    try {
        io::run([] {
            leaving body{left};
            io::spawn([] {
                leaving task{left};
                io::scope([] {
                    leaving scope{left};
                    haft_io_fail(-ENOSPC, "in a scope");
                });
            });
        });
    } catch (const std::system_error &error) {
        code = error.code().value();
    }
    CHECK_EQUAL(code, ENOSPC);
    CHECK_EQUAL(left, 3);
}

static void all_gives_every_result_and_first_the_first() {
    io::run([] {
        auto [number, nothing, text] = io::all([] { return 40; }, [] { io::yield(); },
                                               [] { return std::make_unique<int>(2); });
        CHECK_EQUAL(number + *text, 42);
        (void)nothing;
        std::vector<std::function<int()>> squares;
        for (int i = 0; i < 5; i++)
            squares.push_back([i] {
                io::yield();
                return i * i;
            });
        CHECK(io::all(squares) == (std::vector<int>{0, 1, 4, 9, 16}));
        bool unwound = false;
        auto won = io::first(
            [&] {
                try {
                    io::sleep_for(1h);
                } catch (const io::cancelled &) {
                    unwound = true;
                    throw;
                }
                return 1;
            },
            [] { return std::string("quick"); });
        CHECK(unwound && std::get<1>(won) == "quick");
        CHECK(io::first(squares) == (std::pair<std::size_t, int>(0, 0)));
        int caught = 0;
        try {
            io::all([] { throw std::out_of_range("one"); }, [] { io::sleep_for(1h); });
        } catch (const std::out_of_range &) {
            caught++;
        }
        try {
            io::first([] { throw std::out_of_range("one"); }, [] { io::sleep_for(1h); });
        } catch (const std::out_of_range &) {
            caught++;
        }
        CHECK_EQUAL(caught, 2);
        auto slow = [] { io::sleep_for(1h); };
        try {
            io::with_deadline(1ms, [&] { io::first(slow, slow); });
        } catch (const std::system_error &error) {
            caught += error.code() == std::errc::timed_out;
        }
        try {
            io::with_deadline(1ms, [&] { io::all(slow, [] { return 1; }); });
        } catch (const std::system_error &error) {
            caught += error.code() == std::errc::timed_out;
        }
        CHECK_EQUAL(caught, 4);
    });
}

static void values_of_tasks_are_objects_of_a_scope() {
    static io::local<std::string> user;
    io::run([] {
        CHECK(!user);
        user.with("ada", [] {
            io::spawn([] {
                io::yield();
                CHECK(*user == "ada");
            });
            user.with("grace", [] { io::spawn([] { CHECK(*user == "grace"); }); });
            CHECK_EQUAL(user->size(), 3);
        });
        CHECK(user.get() == nullptr);
    });
}

/* The value lives as long as its scope, which such a task may survive. */
static void a_task_in_a_scope_further_out_does_not_have_the_values_of_scopes_inside() {
    static io::local<int> first, second;
    int seen = 0;
    io::run([&] {
        first.with(1, [&](io::scope_ref outside) {
            second.with(2, [&] {
                first.with(3, [&] {
                    io::scope([&] {
                        outside.spawn([&] {
                            io::yield();
                            CHECK(*first == 1 && !second);
                            io::spawn([&] { seen += *first == 1 && !second; });
                            seen++;
                        });
                        io::spawn([&] { seen += *first == 3 && *second == 2; });
                    });
                    CHECK(*first == 3 && *second == 2);
                });
            });
        });
    });
    CHECK_EQUAL(seen, 3);
}

static void a_result_may_be_a_reference_or_a_tuple() {
    static int number = 5;
    auto refer = []() -> int & { return number; };
    CHECK(&io::run(refer) == &number);
    io::run([&] {
        CHECK(&io::scope(refer) == &number);
        CHECK(&io::async(refer).join() == &number);
        CHECK(&io::call_blocking(refer) == &number);
        CHECK(&io::with_stop(std::stop_token(), refer) == &number);
        auto [referred, pair] = io::all(refer, [] { return std::pair(1, 2); });
        CHECK(&referred.get() == &number && pair.second == 2);
        std::tuple<std::tuple<int, int>> nested = io::all([] { return std::tuple(1, 2); });
        CHECK(std::get<0>(nested) == std::tuple(1, 2));
        io::promise<int &> promise;
        promise.set_value(number);
        CHECK(&promise.get_future().get() == &number);
    });
}

struct throws_at_its_end {
    explicit throws_at_its_end(bool body) : body_throws(body) {}
    throws_at_its_end(throws_at_its_end &&other) noexcept
        : body_throws(other.body_throws), has_moved(std::exchange(other.has_moved, true)) {}
    ~throws_at_its_end() noexcept(false) {
        if (!has_moved)
            throw std::runtime_error("the end");
    }
    int operator()() const {
        if (body_throws)
            throw std::runtime_error("the body");
        return 1;
    }
    bool body_throws, has_moved = false;
};
static void what_the_end_of_a_capture_throws_is_the_tasks_failure() {
    io::run([] {
        int caught = 0;
        for (bool joins : {false, true})
            try {
                io::scope([&] {
                    if (joins)
                        CHECK_EQUAL(io::async(throws_at_its_end(false)).join(), 0);
                    else
                        io::spawn(throws_at_its_end(false));
                });
            } catch (const std::runtime_error &error) {
                caught += std::string_view(error.what()) == "the end";
            }
        std::vector<std::exception_ptr> failures;
        try {
            io::scope({.failures = &failures}, [] { io::spawn(throws_at_its_end(true)); });
        } catch (const std::runtime_error &error) {
            caught += std::string_view(error.what()) == "the body";
        }
        CHECK_EQUAL(failures.size(), 2);
        CHECK_EQUAL(caught, 3);
    });
}

static void a_stop_token_cancels_and_follows_a_scope() {
    io::run([] {
        std::stop_source source;
        bool cut = false;
        auto stopped = io::async([&] {
            try {
                io::with_stop(source.get_token(), [] { io::sleep_for(1h); });
            } catch (const io::cancelled &) {
                cut = true;
            }
            io::yield(); // only the scope inside was cancelled
            return 1;
        });
        CHECK_EQUAL(io::with_stop(source.get_token(), [] { return 5; }), 5);
        io::yield();
        std::thread([&] { source.request_stop(); }).join();
        CHECK_EQUAL(stopped.join(), 1);
        CHECK(cut);

        CHECK(io::with_stop_token([](std::stop_token token) { return !token.stop_requested(); }));
        int number = 0;
        CHECK(&io::with_stop_token([&](std::stop_token) -> int & { return number; }) == &number);
        bool begun = false, told = false;
        /* Where the machine is busy, the deadline may come before the work. */
        for (auto limit = 5ms; !begun; limit *= 2) {
            try {
                io::with_deadline(limit, [&] {
                    io::with_stop_token([&](std::stop_token token) {
                        io::call_blocking([&] {
                            begun = true;
                            while (!token.stop_requested()) // Valgrind lets others run meanwhile:
                                std::this_thread::sleep_for(1ms);
                            told = true;
                        });
                    });
                });
                CHECK(false);
            } catch (const std::system_error &error) {
                CHECK(error.code() == std::errc::timed_out);
            }
        }
        CHECK(told);
    });
}

/* While the body does not wait: the token is stopped by the task that cancels. */
static bool is_stopped(std::stop_token token) {
    return token.stop_requested();
}
static void a_stop_token_needs_no_wait_to_see_a_cancel() {
    io::run([] {
        CHECK(io::scope([](io::scope_ref here) {
            here.cancel();
            return io::with_stop_token(is_stopped);
        }));
        CHECK(io::with_stop_token([](std::stop_token token) {
            io::cancel();
            return token.stop_requested();
        }));
        int called = 0;
        CHECK(io::scope([&](io::scope_ref here) {
            return io::with_stop_token([&](std::stop_token token) {
                std::stop_callback callback(token, [&] { called++; });
                CHECK(!io::shield([&] {
                    return io::with_stop_token([&](std::stop_token inner) {
                        here.cancel();
                        return inner.stop_requested();
                    });
                }));
                return token.stop_requested();
            });
        }));
        CHECK_EQUAL(called, 1);
        /* A deadline, at the wait that it ends. */
        bool told = false;
        try {
            io::with_deadline(1ms, [&] {
                io::with_stop_token([&](std::stop_token token) {
                    try {
                        for (;;)
                            io::yield();
                    } catch (const io::cancelled &) {
                        told = token.stop_requested();
                        throw;
                    }
                });
            });
        } catch (const std::system_error &) {
            CHECK(told);
        }
        CHECK(told);
    });
    /* Another thread cancels, while this one only computes. */
    io::run_options two;
    two.threads = 2;
    io::run(two, [](io::scope_ref all) {
        std::atomic<bool> begun = false;
        io::scope([&](io::scope_ref here) {
            all.spawn([&, here] {
                while (!begun)
                    io::yield();
                here.cancel();
            });
            io::with_stop_token([&](std::stop_token token) {
                begun = true;
                while (!token.stop_requested())
                    continue;
            });
        });
    });
    CHECK(!io::with_stop_token(is_stopped));
}

static void scopes_work_without_a_scheduler_and_tasks_say_that_they_do_not() {
    CHECK_EQUAL(io::scope([] { return 3; }), 3);
    int caught = 0;
    try {
        io::with_deadline(1h, [] { throw std::out_of_range("plain"); });
    } catch (const std::out_of_range &) {
        caught++;
    }
    try {
        io::spawn([] {});
    } catch (const std::logic_error &) {
        caught++;
    }
    CHECK_EQUAL(caught, 2);
}

template <typename F>
static bool is_refused(F function) {
    try {
        function();
    } catch (const std::logic_error &) {
        return true;
    }
    return false;
}
static void what_needs_a_task_is_refused_outside_of_a_run_and_a_cancel_does_nothing() {
    CHECK(is_refused([] { io::scope([](io::scope_ref here) { here.spawn([] {}); }); }));
    CHECK(is_refused([] { io::scope([](io::scope_ref here) { (void)here.async([] {}); }); }));
    CHECK(is_refused([] { io::run_scope(); }));
    CHECK(is_refused([] { io::all([] { return 1; }, [] { return 2; }); }));
    CHECK(is_refused([] { io::first([] { return 1; }, [] { return 2; }); }));
    CHECK(is_refused([] { io::with_stop(std::stop_token(), [] {}); }));
    static io::local<int> number;
    CHECK(is_refused([] { number.with(3, [] {}); }));
    io::cancel();
    CHECK_EQUAL(io::scope([](io::scope_ref here) {
                    here.cancel();
                    return 4;
                }),
                4);
    CHECK(is_refused(
        [] { io::scope([](io::scope_ref outside) { io::run([=] { outside.spawn([] {}); }); }); }));
}

static void a_task_has_a_name_and_its_captures_end_with_it() {
    io::run([] {
        auto shared = std::make_shared<int>(1);
        auto named = io::async({.name = "worker"},
                               [shared] { return std::string(haft_io_task_name(haft_io_self())); });
        io::yield();
        CHECK_EQUAL(shared.use_count(), 1);
        auto moved = std::move(named);
        CHECK(!named.joinable() && moved.join() == "worker");
    });
}

/* More than a stack of the run has. */
static void a_task_may_have_a_larger_stack_than_others() {
    auto use_a_megabyte = [] {
        volatile char frame[1 << 20];
        frame[0] = 1;
        frame[sizeof frame - 1] = 1;
        return frame[0] + frame[sizeof frame - 1];
    };
    io::run({.stack_size = 64 << 10}, [&] {
        CHECK_EQUAL(io::async({.stack_size = 4 << 20}, use_a_megabyte).join(), 2);
        io::scope([&](io::scope_ref scope) {
            scope.spawn({.stack_size = 4 << 20}, [&] { CHECK_EQUAL(use_a_megabyte(), 2); });
        });
    });
}

static void a_simulation_has_virtual_time() {
    int days = io::simulate({.seed = 5}, [] {
        auto before = io::clock::now();
        io::sleep_for(std::chrono::hours(48));
        return static_cast<int>((io::clock::now() - before) / std::chrono::hours(24));
    });
    CHECK_EQUAL(days, 2);
}

static void a_simulation_has_a_network_and_files_and_faults() {
    io::simulate({.seed = 1, .network = true, .files = true}, [] {
        io::listener listener("::", 80);
        auto client = io::socket::connect("service.example", 80);
        auto server = listener.accept();
        client.shutdown();
        std::byte byte[1];
        CHECK_EQUAL(server.receive(byte), 0);
        io::file file("text", O_RDWR | O_CREAT);
        CHECK_EQUAL(file.pwrite(0, byte), 1);
        CHECK_EQUAL(haft_io_simulated_count(), 4);
    });
    bool failed = false;
    io::simulate({.seed = 1, .files = true, .faults_one_in = 1}, [&] {
        try {
            io::file file("text", O_RDWR | O_CREAT);
        } catch (const std::system_error &error) {
            failed = error.code() == std::errc::too_many_files_open;
        }
    });
    CHECK(failed);
}

static void tasks_run_on_several_threads() {
    std::atomic<int> sum = 0;
    for (int round = 0; round < 20; round++) {
        sum = 0;
        try {
            io::run({.threads = 2, .moves = round % 2 == 1}, [&] {
                for (int i = 0; i < 100; i++)
                    io::spawn([&, i] {
                        io::scope([&] { io::spawn([&] { sum += 1; }); });
                        io::yield();
                        if (i == 99)
                            throw std::out_of_range("the last");
                    });
            });
        } catch (const std::out_of_range &) {
            sum += 1000;
        } catch (const io::cancelled &) {
        }
        CHECK(sum > 1000 && sum <= 1100);
    }
}

static void a_cancel_that_is_swallowed_comes_back_at_the_next_wait() {
    int caught = 0;
    io::run([&] {
        io::cancel();
        for (int i = 0; i < 2; i++) {
            try {
                io::sleep_for(1h);
            } catch (...) {
                caught++;
            }
        }
        io::shield([&] { io::sleep_for(1us); });
    });
    CHECK_EQUAL(caught, 2);
}

static void a_deadline_is_an_error_that_says_so() {
    bool late = false;
    io::run([&] {
        CHECK_EQUAL(io::with_deadline(1h, [] { return 7; }), 7);
        try {
            io::with_deadline(1ms, [] { io::sleep_for(1h); });
        } catch (const std::system_error &error) {
            late = error.code() == std::errc::timed_out;
        }
    });
    CHECK(late);
}

static void a_body_that_has_returned_is_not_late() {
    int value = 0;
    bool late = false;
    io::simulate({.seed = 1}, [&] {
        auto in_shield = [] {
            io::shield([] { io::sleep_for(2ms); });
            return 7;
        };
        value = io::with_deadline(1ms, in_shield);
        try {
            io::with_deadline(1ms, [&] {
                io::spawn([] { io::sleep_for(1h); });
                return in_shield();
            });
        } catch (const std::system_error &error) {
            late = error.code() == std::errc::timed_out;
        }
    });
    CHECK_EQUAL(value, 7);
    CHECK(late);
}

static void a_deadline_that_is_over_at_the_beginning_cancels_the_scope() {
    int late = 0;
    io::simulate({.seed = 1}, [&] {
        for (auto time : {io::clock::time_point{}, io::clock::time_point(-1ns), io::clock::now()})
            try {
                io::with_deadline(time, [] { io::sleep_for(1h); });
            } catch (const std::system_error &error) {
                late += error.code() == std::errc::timed_out;
            }
    });
    CHECK_EQUAL(late, 3);
}

static void a_deadline_of_a_block_throws_and_the_task_goes_on() {
    int late = 0;
    bool done = false;
    io::simulate({.seed = 1}, [&] {
        for (int i = 0; i < 3; i++)
            try {
                io::deadline limit(1ms);
                io::sleep_for(1us);
                limit.set(10ms);
                io::sleep_for(5ms);
                CHECK(!limit.passed());
                io::channel<int> nothing;
                nothing.receive();
            } catch (const std::system_error &error) {
                late += error.code() == std::errc::timed_out;
            }
        io::sleep_for(1h);
        done = true;
    });
    CHECK_EQUAL(late, 3);
    CHECK(done);
}

static void a_supervised_scope_goes_on_when_a_task_fails() {
    int told = 0, completed = 0;
    io::run([&] {
        auto tell = [&](const std::exception_ptr &failure, std::string_view task) {
            CHECK(task == "worker");
            io::yield(); // it may wait
            try {
                std::rethrow_exception(failure);
            } catch (const std::out_of_range &) {
                told++;
            }
        };
        io::supervise(tell, [&] {
            for (int i = 0; i < 10; i++) {
                io::spawn({.name = "worker"}, [] { throw std::out_of_range("a task"); });
                io::spawn([&] {
                    io::sleep_for(1ms);
                    completed++;
                });
            }
        });
        bool ended = false;
        try {
            io::supervise([](const std::exception_ptr &failure,
                             std::string_view) { std::rethrow_exception(failure); },
                          [] {
                              io::spawn([] { throw std::out_of_range("a task"); });
                              io::sleep_for(1h);
                          });
        } catch (const std::out_of_range &) {
            ended = true;
        }
        CHECK(ended);
    });
    CHECK_EQUAL(told, 10);
    CHECK_EQUAL(completed, 10);
}

static void a_cancel_is_no_exception_of_the_standard_library() {
    bool swallowed = false, seen = false;
    io::run([&] {
        io::scope([&] {
            io::spawn([&] {
                try {
                    io::sleep_for(1h);
                } catch (const std::exception &) {
                    swallowed = true;
                } catch (const io::cancelled &) {
                    seen = true;
                    throw;
                }
            });
            io::yield();
            io::cancel();
        });
    });
    CHECK(!swallowed && seen);
}

static void a_task_that_catches_its_cancels_lets_others_run() {
    int turns = 0;
    io::run([&] {
        io::spawn([&] {
            for (; turns < 3; turns++)
                io::yield();
        });
        io::scope([&](io::scope_ref here) {
            here.cancel();
            while (turns < 3)
                try {
                    io::sleep_for(1h);
                } catch (const io::cancelled &) {
                    continue;
                }
        });
    });
    CHECK_EQUAL(turns, 3);
}

int main() {
    check_backend();
    RUN(a_deadline_of_a_block_throws_and_the_task_goes_on);
    RUN(a_supervised_scope_goes_on_when_a_task_fails);
    RUN(a_cancel_is_no_exception_of_the_standard_library);
    RUN(a_join_returns_what_the_task_returned);
    RUN(an_exception_of_a_task_leaves_its_scope_and_cancels_the_others);
    RUN(what_a_join_has_thrown_is_not_thrown_again);
    RUN(a_body_that_is_cut_short_after_a_joins_exception_throws_it);
    RUN(the_first_exception_is_thrown_and_the_others_are_kept);
    RUN(a_further_exception_that_nobody_keeps_is_printed);
    RUN(an_exception_goes_through_scopes_and_tasks_once);
    RUN(a_body_that_throws_cancels_its_tasks_and_one_that_returns_waits_for_them);
    RUN(an_initialiser_of_a_thread_local_variable_that_waits_is_reported);
    RUN(many_failures_are_kept);
    RUN(a_scope_that_was_cancelled_returns_what_its_body_returned);
    RUN(a_task_that_catches_its_cancels_lets_others_run);
    RUN(scopes_nest_by_the_ten_thousand);
    RUN(a_task_is_spawned_into_a_scope_further_out);
    RUN(this_scope_is_the_same_scope_further_in);
    RUN(a_task_of_the_run_outlives_the_scopes_around_its_spawn);
    RUN(a_forced_unwinding_runs_destructors_and_passes_catch_all);
    RUN(an_unwinding_that_is_swallowed_goes_on_where_the_block_ends);
    RUN(all_gives_every_result_and_first_the_first);
    RUN(values_of_tasks_are_objects_of_a_scope);
    RUN(a_task_in_a_scope_further_out_does_not_have_the_values_of_scopes_inside);
    RUN(a_result_may_be_a_reference_or_a_tuple);
    RUN(what_the_end_of_a_capture_throws_is_the_tasks_failure);
    RUN(a_stop_token_cancels_and_follows_a_scope);
    RUN(a_stop_token_needs_no_wait_to_see_a_cancel);
    RUN(scopes_work_without_a_scheduler_and_tasks_say_that_they_do_not);
    RUN(what_needs_a_task_is_refused_outside_of_a_run_and_a_cancel_does_nothing);
    RUN(a_task_has_a_name_and_its_captures_end_with_it);
    RUN(a_task_may_have_a_larger_stack_than_others);
    RUN(a_simulation_has_virtual_time);
    RUN(a_simulation_has_a_network_and_files_and_faults);
    RUN(tasks_run_on_several_threads);
    RUN(a_cancel_that_is_swallowed_comes_back_at_the_next_wait);
    RUN(a_deadline_is_an_error_that_says_so);
    RUN(a_body_that_has_returned_is_not_late);
    RUN(a_deadline_that_is_over_at_the_beginning_cancels_the_scope);
    return check_end();
}
