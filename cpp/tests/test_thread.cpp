/* Cooperative threads: order, results, kills, deadlocks, policies, nested schedulers. */
#include "check.hpp"
#include "last_words.hpp"

#include <atomic>
#include <haft/generator.hpp>
#include <haft/thread.hpp>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

struct Get : haft::effect<int> {};
struct Stop : haft::effect<> {};

static std::atomic<long> allocations;

/* Not inlined: gcc would take malloc and delete for a mismatched pair. */
#define OUT_OF_LINE __attribute__((noinline))
OUT_OF_LINE void *operator new(std::size_t size) {
    allocations++;
    if (void *memory = std::malloc(size))
        return memory;
    throw std::bad_alloc();
}
OUT_OF_LINE void operator delete(void *memory) noexcept {
    std::free(memory);
}
OUT_OF_LINE void operator delete(void *memory, std::size_t) noexcept {
    std::free(memory);
}

static bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

/* A thread that lets the others run for ever. */
static void spin() {
    counted local;
    for (;;)
        haft::yield();
}
/* One that waits for what does not come. */
static void wait_forever() {
    counted local;
    haft::waiting_list nothing;
    nothing.wait("wait_forever()");
}

static void threads_take_turns() {
    std::string log;
    haft::run([&] {
        for (char name : {'a', 'b', 'c'})
            haft::fork([&log, name] {
                for (int i = 0; i < 3; i++) {
                    log += name;
                    haft::yield();
                }
            });
        log += 'm';
    });
    CHECK(log == "mabcabcabc");
}

static void join_returns_what_the_thread_returned() {
    int cell = 0;
    std::string sum = haft::run([&] {
        auto number = haft::fork([] {
            haft::yield();
            return 5;
        });
        auto owner = haft::fork([] { return std::make_unique<int>(6); });
        auto place = haft::fork([&]() -> int & { return cell; });
        haft::thread<> nothing = haft::fork([] {});
        CHECK(number.joinable() && !number.finished());
        place.join() = 7;
        nothing.join();
        CHECK(!nothing.joinable());
        return std::to_string(number.join()) + std::to_string(*owner.join());
    });
    CHECK(sum == "56" && cell == 7);
    CHECK(&haft::run([&]() -> int & { return cell; }) == &cell);
}

static void join_throws_what_the_thread_threw() {
    haft::run([] {
        haft::thread<int> failing = haft::fork([]() -> int {
            counted local;
            haft::yield();
            throw std::runtime_error("failed");
        });
        CHECK(thrown_by<std::runtime_error>([&] { failing.join(); }).what() ==
              std::string("failed"));
        CHECK(counted::alive == 0);
    });
}

static void join_is_refused_with_a_reason() {
    haft::run([] {
        haft::thread<int> empty;
        CHECK(contains(thrown_by<std::logic_error>([&] { empty.join(); }).what(), "join()"));
        thrown_by<std::logic_error>([&] { empty.kill(); });
        haft::thread<int> joined = haft::fork([] { return 1; });
        joined.join();
        thrown_by<std::logic_error>([&] { joined.join(); });

        haft::thread<> itself;
        itself = haft::fork({.name = "narcissus"}, [&] {
            CHECK(contains(thrown_by<std::logic_error>([&] { itself.join(); }).what(),
                           "'narcissus' cannot wait for itself"));
        });
        itself.join();

        haft::thread<int> wanted = haft::fork([] {
            haft::yield();
            haft::yield();
            return 2;
        });
        haft::thread<> second = haft::fork([&] {
            CHECK(contains(thrown_by<std::logic_error>([&] { wanted.join(); }).what(), "another"));
        });
        CHECK(wanted.join() == 2);
        second.join();
    });
    CHECK(contains(thrown_by<std::logic_error>([] { haft::fork([] {}); }).what(), "fork()"));
    CHECK(contains(thrown_by<std::logic_error>([] { haft::yield(); }).what(), "yield()"));
}

static void handles_outlive_the_scheduler() {
    haft::thread<int> done, killed, failed;
    haft::run([&] {
        done = haft::fork([] { return 3; });
        failed = haft::fork([]() -> int { throw 4; });
        haft::yield();
    });
    thrown_by<int>([&] {
        haft::run([&] {
            killed = haft::fork([] { return spin(), 0; });
            haft::yield();
            throw 5;
        });
    });
    CHECK(counted::alive == 0);
    CHECK(done.join() == 3);
    CHECK(thrown_by<int>([&] { failed.join(); }) == 4);
    CHECK(killed.finished());
    killed.kill();
    thrown_by<haft::thread_killed>([&] { killed.join(); });
}

static void an_exception_that_nobody_can_join_leaves_run() {
    auto run = [](auto before_it_ends) {
        return thrown_by<int>([&] {
            haft::run([&] {
                haft::fork(spin);
                haft::thread<> failing = haft::fork([] {
                    haft::yield();
                    throw 1;
                });
                before_it_ends(failing);
                spin();
            });
        });
    };
    CHECK(run([](haft::thread<> &handle) { handle = {}; }) == 1);
    CHECK(run([](haft::thread<> &handle) {
              while (!handle.finished())
                  haft::yield();
              handle = {};
          }) == 1);
    CHECK(run([](haft::thread<> &) { throw 2; }) == 2);
    CHECK(counted::alive == 0);
}

static void kill_unwinds_the_stack() {
    haft::run([] {
        haft::thread<> spinning = haft::fork(spin), waiting = haft::fork(wait_forever);
        haft::thread<> fresh = haft::fork([held = counted()] {});
        haft::yield();
        CHECK(counted::alive == 3 - 1); /* the fresh one has run, and ended */
        haft::thread<> unstarted = haft::fork([held = counted()] {});
        spinning.kill();
        waiting.kill();
        unstarted.kill();
        CHECK(counted::alive == 0 && spinning.finished());
        spinning.kill();
        CHECK(
            contains(thrown_by<haft::thread_killed>([&] { spinning.join(); }).what(), "thread 2"));
        thrown_by<haft::thread_killed>([&] { unstarted.join(); });
        fresh.kill();
        fresh.join();
    });
}

static void kill_unwinds_nested_handlers_and_generators() {
    haft::run([] {
        haft::thread<> nested = haft::fork([] {
            haft::handle([] {
                haft::generator<int> numbers([](auto yield) {
                    counted local;
                    for (int i = 0;; i++) {
                        haft::yield();
                        yield(haft::perform(Get{}));
                    }
                });
                for (int number : numbers)
                    CHECK(number == 8);
            }).with([](Get, haft::resumption<void(int)> k) { std::move(k).resume(8); });
        });
        for (int i = 0; i < 5; i++)
            haft::yield();
        CHECK(counted::alive == 1);
        nested.kill();
        CHECK(counted::alive == 0);
    });
}

static void a_thread_kills_itself() {
    haft::run([] {
        haft::thread<int> itself;
        itself = haft::fork([&] {
            counted local;
            itself.kill();
            CHECK(false);
            return 0;
        });
        thrown_by<haft::thread_killed>([&] { itself.join(); });
        CHECK(counted::alive == 0);
    });
}

static void a_joiner_is_killed() {
    haft::run([] {
        haft::thread<int> wanted = haft::fork([] {
            for (int i = 0; i < 5; i++)
                haft::yield();
            return 9;
        });
        haft::thread<> joiner = haft::fork([&] {
            counted local;
            wanted.join();
        });
        haft::yield();
        joiner.kill();
        CHECK(counted::alive == 0);
        CHECK(wanted.join() == 9);
    });
}

static void a_killed_thread_wakes_its_joiner() {
    haft::run([] {
        haft::thread<> wanted = haft::fork(spin);
        haft::thread<bool> joiner = haft::fork([&] {
            thrown_by<haft::thread_killed>([&] { wanted.join(); });
            return true;
        });
        haft::yield();
        wanted.kill();
        CHECK(joiner.join());
    });
}

/* Waits when it is left, as std::jthread does. */
struct joining {
    haft::thread<> thread;
    ~joining() { thread.wait(); }
};

static void destructors_of_killed_threads_may_wait() {
    bool child_ended = false;
    auto parent = [&] {
        joining child{haft::fork([&] {
            for (int i = 0; i < 5; i++)
                haft::yield();
            child_ended = true;
        })};
        spin();
    };
    haft::run([&] {
        haft::thread<> killed = haft::fork(parent);
        haft::yield();
        haft::yield();
        killed.kill();
        CHECK(child_ended && counted::alive == 0);
    });
}

static void destructors_may_wait_when_the_run_is_left() {
    thrown_by<int>([&] {
        haft::run([] {
            haft::fork([] {
                joining child{haft::fork(spin)};
                struct yielding {
                    counted held;
                    ~yielding() { haft::yield(); }
                } local;
                spin();
            });
            haft::yield();
            haft::yield();
            throw 1;
        });
    });
    CHECK(counted::alive == 0);
}

static void a_deadlock_is_told() {
    std::string message = thrown_by<haft::deadlock>([] {
                              haft::run([] {
                                  haft::thread<> left, right;
                                  left = haft::fork({.name = "left"}, [&] {
                                      counted local;
                                      haft::yield();
                                      right.join();
                                  });
                                  right = haft::fork({.name = "right"}, [&] {
                                      counted local;
                                      left.join();
                                  });
                                  wait_forever();
                              });
                          }).what();
    CHECK(message == "haft: deadlock: no thread can go on."
                     "\n  thread 1 'main' waits in wait_forever()"
                     "\n  thread 2 'left' waits in join() for thread 3 'right'"
                     "\n  thread 3 'right' waits in join() for thread 2 'left'");
    CHECK(counted::alive == 0);
}

/* Waits for ever when it is left. */
struct never_left {
    ~never_left() { wait_forever(); }
};

static void a_deadlock_in_a_destructor_that_cannot_be_unwound_is_told() {
    std::string while_an_exception_is_in_flight = last_words([] {
        (void)thrown_by<haft::deadlock>([] {
            haft::run([] {
                never_left stuck;
                throw 1;
            });
        });
    });
    std::string when_the_body_returns = last_words(
        [] { (void)thrown_by<haft::deadlock>([] { haft::run([] { never_left stuck; }); }); });
    for (const std::string &text : {while_an_exception_is_in_flight, when_the_body_returns}) {
        CHECK(text.find("haft: deadlock: no thread can go on."
                        "\n  thread 1 'main' waits in wait_forever()\n") != std::string::npos);
        CHECK(text.find("the fiber 'main' was being unwound when the program was terminated") !=
              std::string::npos);
    }
}

static void the_error_handler_is_as_before_after_a_deadlock() {
    static bool told = false;
    haft_set_error_handler([](const haft_error_t *) {
        told = true;
        throw 1;
    });
    (void)thrown_by<haft::deadlock>([] { haft::run([] { wait_forever(); }); });
    haft::resumption<int()> none;
    (void)thrown_by<int>([&] { std::move(none).resume(); });
    CHECK(told);
    haft_error_handler_t *mine = haft_set_error_handler(nullptr);
    CHECK(mine != nullptr);
    (void)thrown_by<haft::deadlock>([] { haft::run([] { wait_forever(); }); });
    CHECK(haft_set_error_handler(nullptr) == nullptr);
}

static void threads_run_under_the_handlers_around_run() {
    CHECK(haft::handle([] {
              return haft::run([] {
                  haft::thread<int> forked =
                      haft::handle([] {
                          return haft::fork([] { return haft::perform(Get{}); });
                      }).with([](Get) { return 1; });
                  return forked.join();
              });
          }).with([](Get) { return 2; }) == 2);
}

static void a_run_that_is_dropped_unwinds_its_threads() {
    haft::thread<> left;
    haft::handle([&] {
        haft::run([&] {
            counted local;
            left = haft::fork(spin);
            haft::fork(wait_forever);
            haft::yield();
            haft::perform(Stop{});
        });
    }).with(haft::never([](Stop) {}));
    CHECK(counted::alive == 0);
    thrown_by<haft::thread_killed>([&] { left.join(); });
    {
        haft::resumption<void()> kept;
        haft::handle([&] {
            haft::run([&] {
                haft::fork(spin);
                counted local;
                haft::yield();
                haft::perform(Stop{});
            });
        }).with([&](Stop, haft::resumption<void()> k) { kept = std::move(k); });
        CHECK(counted::alive == 2);
    }
    CHECK(counted::alive == 0);
}

static void schedulers_nest() {
    std::string log;
    haft::run([&] {
        haft::thread<int> outer = haft::fork({.name = "outer"}, [] {
            haft::yield();
            return 1;
        });
        haft::fork([&] {
            for (int i = 0; i < 3; i++) {
                log += 'o';
                haft::yield();
            }
        });
        log += std::to_string(haft::run([&] {
            haft::thread<int> waiting = haft::fork([&] { return outer.join() + 1; });
            haft::thread<> inner = haft::fork([&] {
                for (int i = 0; i < 3; i++) {
                    log += 'i';
                    haft::yield();
                }
            });
            return waiting.join() + 1;
        }));
    });
    CHECK(log == "iiiooo3" || log == "iiioo3o");
}

static void a_thread_that_runs_a_scheduler_is_killed() {
    haft::run([] {
        haft::thread<> carrier;
        auto inner_run = [&](auto inside) {
            return [&, inside] {
                counted local;
                haft::run([&] {
                    haft::fork(wait_forever);
                    haft::fork(inside);
                    counted other;
                    wait_forever();
                });
            };
        };
        carrier = haft::fork(inner_run([] { wait_forever(); }));
        haft::yield();
        CHECK(counted::alive == 5 - 0);
        carrier.kill();
        CHECK(counted::alive == 0);
        carrier = haft::fork(inner_run([&] { /* from inside */
                                             counted local;
                                             carrier.kill();
                                             CHECK(false);
        }));
        thrown_by<haft::thread_killed>([&] { carrier.join(); });
        CHECK(counted::alive == 0);
    });
}

static void an_inner_thread_is_killed_from_outside() {
    haft::run([] {
        haft::thread<> inner;
        haft::thread<> carrier = haft::fork([&] {
            haft::run([&] {
                inner = haft::fork(wait_forever);
                thrown_by<haft::thread_killed>([&] { inner.join(); });
            });
        });
        haft::yield();
        inner.kill();
        CHECK(counted::alive == 0);
        carrier.join();
    });
}

static void a_deadlock_of_nested_schedulers_is_told() {
    std::string message = thrown_by<haft::deadlock>([] {
                              haft::run([] { haft::run([] { wait_forever(); }); });
                          }).what();
    CHECK(contains(message, "thread 1 'main' waits in run()\n    thread 1 'main' waits in "
                            "wait_forever()"));
}

/* The order in which five threads that each yield once write their numbers. */
template <typename Policy>
static std::string order(Policy &&policy) {
    std::string log;
    haft::run(policy, [&] {
        for (int i = 0; i < 5; i++)
            haft::fork({.priority = i % 3}, [&log, i] {
                log += std::to_string(i);
                haft::yield();
                log += std::to_string(i);
            });
    });
    return log;
}

struct every_other_first {
    std::vector<haft::scheduled *> ready;
    int turn = 0;
    void push(haft::scheduled &thread) { ready.push_back(&thread); }
    haft::scheduled *pop() {
        if (ready.empty())
            return nullptr;
        auto chosen = turn++ % 2 == 0 ? ready.begin() : ready.end() - 1;
        haft::scheduled *thread = *chosen;
        ready.erase(chosen);
        return thread;
    }
};

static void policies_decide_the_order() {
    CHECK(order(haft::round_robin()) == "0123401234");
    CHECK(order(haft::last_in_first_out()) == "4433221100");
    CHECK(order(haft::by_priority()) == "2214140303");
    std::string some = order(haft::random_order(1));
    CHECK(some.size() == 10 && some == order(haft::random_order(1)));
    CHECK(some != order(haft::random_order(2)));
    every_other_first own;
    CHECK(order(own).size() == 10 && own.turn > 10);
}

static void killed_threads_leave_every_policy() {
    auto kill_half = [](auto policy) {
        haft::run(policy, [] {
            std::vector<haft::thread<>> threads;
            for (int i = 0; i < 10; i++)
                threads.push_back(haft::fork({.priority = 1}, [] {
                    counted local;
                    haft::yield();
                }));
            for (std::size_t i = 0; i < threads.size(); i += 2)
                threads[i].kill();
            haft::yield();
            for (std::size_t i = 1; i < threads.size(); i += 2)
                threads[i].join();
        });
        CHECK(counted::alive == 0);
    };
    kill_half(haft::round_robin());
    kill_half(haft::last_in_first_out());
    kill_half(haft::by_priority());
    kill_half(haft::random_order(7));
}

struct forgetful {
    void push(haft::scheduled &) {}
    haft::scheduled *pop() { return nullptr; }
};
struct repeating {
    haft::scheduled *last = nullptr;
    void push(haft::scheduled &thread) { last = &thread; }
    haft::scheduled *pop() { return last; }
};

struct full : haft::round_robin {
    int room = 5;
    void push(haft::scheduled &thread) {
        if (room-- == 0)
            throw std::bad_alloc();
        haft::round_robin::push(thread);
    }
};

static void what_a_policy_throws_leaves_run() {
    thrown_by<std::bad_alloc>([] {
        haft::run(full(), [] {
            haft::fork(spin);
            haft::fork(spin);
            spin();
        });
    });
    CHECK(counted::alive == 0);
}

/* Takes, or gives, a thread but for once. */
struct failing : haft::round_robin {
    bool &push_fails, &pop_fails;
    failing(bool &in_push, bool &in_pop) : push_fails(in_push), pop_fails(in_pop) {}
    void push(haft::scheduled &thread) {
        if (std::exchange(push_fails, false))
            throw std::bad_alloc();
        haft::round_robin::push(thread);
    }
    haft::scheduled *pop() { return pop_fails ? throw std::bad_alloc() : round_robin::pop(); }
};

static void a_policy_that_fails_in_a_destructor_or_at_the_end_leaves_run() {
    bool push_fails = false, pop_fails = false;
    auto leaves = [&](auto body) {
        thrown_by<std::bad_alloc>([&] { haft::run(failing(push_fails, pop_fails), body); });
        CHECK(counted::alive == 0);
        push_fails = pop_fails = false;
    };
    leaves([&] {
        counted here;
        haft::fork([&] { push_fails = true; }).join(); /* its end wakes its joiner */
    });
    leaves([&] {
        push_fails = true;
        haft::fork(spin);
    });
    leaves([&] {
        haft::fork(wait_forever);
        pop_fails = true;
    });
    push_fails = true;
    leaves([] {});
}

static void wrong_policies_are_told() {
    CHECK(contains(thrown_by<haft::deadlock>([] { haft::run(forgetful(), [] {}); }).what(),
                   "thread 1 'main' is ready, but the scheduling policy does not pop it"));
    CHECK(contains(
        thrown_by<std::logic_error>([] { haft::run(repeating(), [] { wait_forever(); }); }).what(),
        "popped thread 1 'main', which it was not given"));
}

/* A mutual exclusion as the manual has it. */
class mutex {
  public:
    void lock() {
        while (locked)
            waiting.wait("lock()");
        locked = true;
    }
    void unlock() {
        locked = false;
        waiting.wake_one();
    }

  private:
    bool locked = false;
    haft::waiting_list waiting;
};

static void programs_build_on_waiting_lists() {
    int inside = 0, sum = 0;
    mutex gate;
    haft::run(haft::random_order(3), [&] {
        for (int i = 0; i < 20; i++)
            haft::fork([&] {
                gate.lock();
                CHECK(++inside == 1);
                haft::yield();
                sum++, inside--;
                gate.unlock();
            });
    });
    CHECK(sum == 20);
}

/* Threads wait in a list that is destroyed; `then` gets their handles. */
template <typename Then>
static void with_waiters_of_a_destroyed_list(int count, Then then) {
    auto list = std::make_unique<haft::waiting_list>();
    std::vector<haft::thread<>> waiting;
    for (int i = 0; i < count; i++)
        waiting.push_back(haft::fork([at = list.get()] {
            counted local;
            at->wait("lock()");
        }));
    haft::yield();
    CHECK(!list->empty());
    list.reset();
    then(waiting);
}

static void threads_wait_on_when_their_list_is_destroyed() {
    for (int count : {1, 2, 5}) {
        std::string message = thrown_by<haft::deadlock>([&] {
                                  haft::run([&] {
                                      with_waiters_of_a_destroyed_list(
                                          count, [](auto &threads) { threads[0].join(); });
                                  });
                              }).what();
        CHECK(contains(message, "waits in lock()"));
        CHECK(counted::alive == 0);
        haft::run([&] {
            with_waiters_of_a_destroyed_list(count, [](auto &threads) {
                for (auto &thread : threads)
                    thread.kill();
            });
            haft::yield();
        });
        CHECK(counted::alive == 0);
    }
    /* And when run() is left by an exception. */
    CHECK(thrown_by<std::runtime_error>([] {
              haft::run([] {
                  with_waiters_of_a_destroyed_list(
                      3, [](auto &) { throw std::runtime_error("left"); });
              });
          }).what() == std::string("left"));
    CHECK(counted::alive == 0);
}

static void names_and_numbers() {
    haft::run([] {
        CHECK(haft::current_thread().number() == 1 && haft::current_thread().name() == "main");
        haft::fork({.name = std::string("worker ") + "seven", .priority = 7, .stack_size = 1 << 16},
                   [] {
                       CHECK(haft::current_thread().name() == "worker seven");
                       CHECK(haft::current_thread().priority() == 7);
                   });
    });
}

/* Notes how deep the stack of the scheduler is. */
struct measuring : haft::round_robin {
    char *lowest = nullptr, *highest = nullptr;
    haft::scheduled *pop() {
        char *here = static_cast<char *>(__builtin_frame_address(0));
        if (lowest == nullptr || here < lowest)
            lowest = here;
        if (highest == nullptr || here > highest)
            highest = here;
        return haft::round_robin::pop();
    }
};

static void a_million_yields_take_constant_space() {
    const long turns = check_times(250'000);
    measuring policy;
    long before = 0, after = 0;
    haft::run(policy, [&] {
        haft::waiting_list turn_of_main;
        std::vector<haft::thread<>> threads;
        for (int i = 0; i < 4; i++)
            threads.push_back(haft::fork([&] {
                for (long turn = 0; turn < turns; turn++)
                    haft::yield();
                turn_of_main.wake_one();
            }));
        haft::yield();
        before = allocations;
        turn_of_main.wait("main");
        after = allocations;
    });
    CHECK(before == after);
    CHECK(policy.highest - policy.lowest < 1024);
}

static void thousands_of_threads() {
    const int count = 2000;
    long sum = haft::run([] {
        std::vector<haft::thread<int>> threads;
        for (int i = 0; i < count; i++)
            threads.push_back(haft::fork([i] {
                haft::yield();
                return i;
            }));
        long total = 0;
        for (auto &thread : threads)
            total += thread.join();
        return total;
    });
    CHECK(sum == count * (count - 1L) / 2);
}

static void threads_of_the_system_have_schedulers_of_their_own() {
    auto work = [](int *sum) {
        haft::run([=] {
            std::vector<haft::thread<int>> threads;
            for (int i = 0; i < 100; i++)
                threads.push_back(haft::fork([i] {
                    haft::yield();
                    return i;
                }));
            for (auto &thread : threads)
                *sum += thread.join();
        });
    };
    int here = 0, there = 0;
    std::thread other(work, &there);
    work(&here);
    other.join();
    CHECK(here == 4950 && there == 4950);
}

int main() {
    threads_of_the_system_have_schedulers_of_their_own();
    threads_take_turns();
    join_returns_what_the_thread_returned();
    join_throws_what_the_thread_threw();
    join_is_refused_with_a_reason();
    handles_outlive_the_scheduler();
    an_exception_that_nobody_can_join_leaves_run();
    kill_unwinds_the_stack();
    kill_unwinds_nested_handlers_and_generators();
    a_thread_kills_itself();
    a_joiner_is_killed();
    a_killed_thread_wakes_its_joiner();
    destructors_of_killed_threads_may_wait();
    destructors_may_wait_when_the_run_is_left();
    a_deadlock_is_told();
    a_deadlock_in_a_destructor_that_cannot_be_unwound_is_told();
    the_error_handler_is_as_before_after_a_deadlock();
    threads_run_under_the_handlers_around_run();
    a_run_that_is_dropped_unwinds_its_threads();
    schedulers_nest();
    a_thread_that_runs_a_scheduler_is_killed();
    an_inner_thread_is_killed_from_outside();
    a_deadlock_of_nested_schedulers_is_told();
    policies_decide_the_order();
    killed_threads_leave_every_policy();
    what_a_policy_throws_leaves_run();
    a_policy_that_fails_in_a_destructor_or_at_the_end_leaves_run();
    wrong_policies_are_told();
    programs_build_on_waiting_lists();
    threads_wait_on_when_their_list_is_destroyed();
    names_and_numbers();
    a_million_yields_take_constant_space();
    thousands_of_threads();
}
// SPDX-License-Identifier: MIT
