// SPDX-License-Identifier: MIT
// haft/io_threads.hpp: threads, futures and actors as tasks; policies and I/O; system threads.
#include <haft/actor.hpp>
#include <haft/io_threads.hpp>

#include "../check_io.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace io = haft::io;
using namespace std::chrono_literals;

static haft::io::run_options on_threads(int count) {
    haft::io::run_options options;
    options.threads = count;
    return options;
}

struct pipe_ends {
    io::descriptor reader, writer;
    pipe_ends() {
        int ends[2];
        CHECK_EQUAL(haft_io_pipe(ends), 0);
        reader = io::descriptor(ends[0]);
        writer = io::descriptor(ends[1]);
    }
    char read() const {
        char byte = 0;
        CHECK_EQUAL(haft_io_read(reader.get(), &byte, 1), 1);
        return byte;
    }
};

class by_name {
  public:
    void push(haft::scheduled &thread) { ready.emplace(thread.name(), &thread); }
    haft::scheduled *pop() {
        if (ready.empty())
            return nullptr;
        haft::scheduled *first = ready.begin()->second;
        ready.erase(ready.begin());
        return first;
    }

  private:
    std::multimap<std::string, haft::scheduled *> ready;
};

/* ---- In haft::run ---- */

static void threads_of_a_run_in_a_task_return_throw_and_have_names() {
    std::string told;
    io::run([&] {
        int sum = haft::run([&] {
            haft::thread<int> one = haft::fork({.name = "one"}, [&] {
                told += haft::current_thread().description() + ';';
                return 1;
            });
            haft::thread<> failing = haft::fork([] { throw std::out_of_range("two"); });
            try {
                failing.join();
            } catch (const std::out_of_range &error) {
                told += error.what();
            }
            return one.join() + 41;
        });
        CHECK_EQUAL(sum, 42);
    });
    CHECK(told == "thread 2 'one';two");
}

static void a_policy_chooses_who_goes_on() {
    std::string order;
    io::run(by_name(), [&] {
        for (const char *name : {"c", "a", "b"})
            haft::fork({.name = name}, [&] {
                order += haft::current_thread().name();
                haft::yield();
                order += haft::current_thread().name();
            });
    });
    CHECK(order == "aabbcc");
    order.clear();
    io::run(haft::by_priority(), [&] {
        for (int priority : {1, 3, 2})
            haft::fork({.priority = priority}, [&order, priority] {
                order += static_cast<char>('0' + priority);
                haft::yield();
                order += static_cast<char>('0' + priority);
            });
    });
    CHECK(order == "332211");
}

static void a_read_lets_the_other_threads_and_tasks_go_on_and_the_policy_chooses_after_it() {
    std::string order;
    io::run([&] {
        pipe_ends one, two;
        bool begun = false;
        io::spawn([&] {
            while (!begun)
                io::yield();
            two.writer.write_all("y");
            one.writer.write_all("x");
        });
        haft::run(by_name(), [&] {
            haft::fork({.name = "b"}, [&] { order += two.read(), order += 'b'; });
            haft::fork({.name = "a"}, [&] { order += one.read(), order += 'a'; });
            haft::fork({.name = "c"}, [&] {
                begun = true;
                for (int i = 0; i < 1000; i++) /* meanwhile both others get ready */
                    haft_io_yield();
                order += 'c';
            });
        });
    });
    CHECK(order == "cxayb");
}

static void who_operates_again_and_again_lets_the_other_threads_of_the_run_go_on() {
    io::run([] {
        haft::run([] {
            bool others_went_on = false;
            pipe_ends pipe;
            haft::thread<> one = haft::fork([&] { others_went_on = true; });
            while (!others_went_on) {
                CHECK_EQUAL(haft_io_write(pipe.writer.get(), "x", 1), 1);
                CHECK_EQUAL(pipe.read(), 'x');
            }
            one.join();

            io::mutex mutex;
            std::unique_lock holder(mutex);
            haft::thread<> other = haft::fork([&] {
                std::scoped_lock by(mutex);
                others_went_on = true;
            });
            others_went_on = false;
            haft::yield();
            while (!others_went_on) {
                holder.unlock();
                holder.lock();
            }
            holder.unlock();
            other.join();
        });
    });
}

static void a_killed_thread_is_unwound_where_it_waits() {
    struct noting {
        std::string &where;
        char what;
        ~noting() {
            haft::yield();
            where += what;
        }
    };
    std::string left;
    io::run([&] {
        pipe_ends pipe;
        haft::run([&] {
            haft::waiting_list nothing;
            std::vector<haft::thread<>> threads;
            threads.push_back(haft::fork([&] {
                noting here{left, 'r'};
                pipe.read();
            }));
            threads.push_back(haft::fork([&] {
                noting here{left, 'w'};
                nothing.wait("nothing");
            }));
            threads.push_back(haft::fork([&] {
                noting here{left, 'y'};
                for (;;)
                    haft::yield();
            }));
            haft::fork([&] { left += "started"; }).kill();
            for (auto &thread : threads) {
                thread.kill();
                try {
                    thread.join();
                } catch (const haft::thread_killed &) {
                    left += '!';
                }
            }
            haft::thread<> self;
            self = haft::fork([&] {
                noting here{left, 's'};
                self.kill();
                left += "not killed";
            });
            self.wait();
        });
    });
    CHECK(left == "r!w!y!s");
}

static void an_exception_that_nobody_joins_leaves_the_run_and_unwinds_the_others() {
    bool unwound = false, caught = false;
    io::run([&] {
        try {
            haft::run([&] {
                haft::fork([&] {
                    struct guard {
                        bool &left;
                        ~guard() { left = true; }
                    } here{unwound};
                    io::sleep_for(1h);
                });
                haft::yield();
                haft::fork([] { throw std::out_of_range("nobody joins"); });
                io::sleep_for(1h);
            });
        } catch (const std::out_of_range &) {
            caught = true;
        }
    });
    CHECK(unwound && caught);
}

static void a_deadline_ends_a_run() {
    bool late = false;
    int unwound = 0;
    io::run([&] {
        try {
            io::with_deadline(1ms, [&] {
                haft::run([&] {
                    struct guard {
                        int &left;
                        ~guard() { left++; }
                    } here{unwound};
                    haft::thread<> other = haft::fork([&] {
                        guard there{unwound};
                        io::sleep_for(1h);
                    });
                    other.join();
                });
            });
        } catch (const std::system_error &error) {
            late = error.code() == std::errc::timed_out;
        }
    });
    CHECK(late);
    CHECK_EQUAL(unwound, 2);
}

static void a_policy_that_throws_ends_the_run() {
    struct refusing : haft::round_robin {
        int room = 3;
        void push(haft::scheduled &thread) {
            if (room-- == 0)
                throw std::length_error("full");
            haft::round_robin::push(thread);
        }
    };
    bool caught = false;
    try {
        io::run(refusing(), [] {
            for (int i = 0; i < 5; i++)
                haft::fork([] { haft::yield(); });
        });
    } catch (const std::length_error &) {
        caught = true;
    }
    CHECK(caught);
}

/* ---- Actors ---- */

struct number {
    int value;
};
struct total {
    haft::promise<int> reply;
};

static void an_actor_reads_and_answers() {
    int got = io::run(haft::round_robin(), [] {
        pipe_ends pipe;
        auto adder = haft::spawn<number, total>([](haft::actor<number, total> &self) {
            for (int sum = 0;;)
                self.receive([&](number message) { sum += message.value; },
                             [&](total message) { message.reply.set_value(sum); });
        });
        auto reading = haft::async([&, adder] {
            for (char byte; (byte = pipe.read()) != '.';)
                adder.send(number{byte - '0'});
        });
        for (const char *text : {"1", "2", "3", "."}) {
            pipe.writer.write_all(text);
            io::sleep_for(1us);
        }
        haft::await(reading);
        return haft::await(haft::ask<total>(adder));
    });
    CHECK_EQUAL(got, 6);
}

static void an_actor_that_only_waits_ends_with_its_run_and_its_watcher_is_told() {
    bool unwound = false, told = false;
    io::run(haft::round_robin(), [&] {
        struct guard {
            bool &left;
            ~guard() { left = true; }
        };
        haft::address<number> idle = haft::spawn<number>([&](haft::actor<number> &self) {
            guard here{unwound};
            for (;;)
                self.receive([](number) {});
        });
        haft::address<number> failing = haft::spawn<number>([](haft::actor<number> &self) {
            self.receive([](number) { throw std::out_of_range("a number"); });
        });
        haft::spawn<haft::down>([&, failing](haft::actor<haft::down> &self) {
            self.watch(failing);
            self.receive([&](haft::down message) { told = message.reason != nullptr; });
        });
        haft::yield();
        failing.send(number{1});
        static haft::address<number> kept;
        kept = idle;
    });
    CHECK(unwound && told);
}

/* ---- Outside of haft::run ---- */

static void tasks_fork_await_and_yield_without_a_run() {
    auto body = [] {
        haft::thread<int> thread = haft::fork({.name = "free"}, [] {
            haft::yield();
            CHECK(std::string(haft_io_task_name(haft_io_self())) == "free");
            return haft::fork([] { return 20; }).join() + 1;
        });
        haft::promise<int> promise;
        haft::future<int> value = promise.get_future();
        io::spawn([&] { promise.set_value(21); });
        CHECK_EQUAL(thread.join() + haft::await(value), 42);
        haft::yield();

        auto slow = haft::async([] { io::sleep_for(1h); });
        auto fast = haft::async([] {});
        CHECK_EQUAL(haft::await_any(slow, fast), 1);
        haft::await(fast);
        bool cancelled = false;
        try {
            io::with_deadline(1ms, [&] { haft::await(slow); });
        } catch (const std::system_error &) {
            cancelled = true;
        }
        CHECK(cancelled);
        haft::thread<> endless = haft::fork([] { io::sleep_for(1h); });
        endless.kill();
        try {
            io::scope([] {
                haft::async([] { io::sleep_for(1h); });
                io::cancel();
                io::sleep_for(1h);
            });
        } catch (const io::cancelled &) {
            cancelled = false;
        }
        CHECK(!cancelled);
        io::cancel();
        io::sleep_for(1h); /* a body that returns has not been cancelled */
    };
    bool cancelled = false;
    try {
        io::run(body); /* `slow` still sleeps */
    } catch (const io::cancelled &) {
        cancelled = true;
    }
    CHECK(cancelled);
}

static void an_exception_that_nobody_joins_leaves_the_scope() {
    int caught = 0;
    io::run([&] {
        try {
            io::scope([] {
                haft::fork([] { throw std::out_of_range("nobody joins"); });
                io::sleep_for(1h);
            });
        } catch (const std::out_of_range &) {
            caught++;
        }
    });
    CHECK_EQUAL(caught, 1);
}

static void a_thread_that_a_thread_forked_may_outlive_it() {
    std::string order;
    io::run([&] {
        haft::fork([&] {
            haft::fork([&] {
                io::sleep_for(1ms);
                order += 'b';
            });
            order += 'a';
        }).join();
        order += ',';
    });
    CHECK(order == "a,b");
}

/* ---- Threads of the system ---- */

static void
a_future_that_a_thread_of_the_system_keeps_is_awaited_by_tasks_and_the_other_way_around() {
    for (int i = 0; i < 20; i++) {
        haft::promise<int> question, answer;
        auto asked = question.get_future(), answered = answer.get_future();
        std::thread other([&] { answer.set_value(haft::await(asked) + 1); });
        int got = io::run([&] {
            return haft::run([&] {
                haft::fork([&] { question.set_value(41); });
                return haft::await(answered);
            });
        });
        other.join();
        CHECK_EQUAL(got, 42);
    }
}

static void threads_of_a_run_are_one_at_a_time_on_two_threads_of_the_system() {
    enum { THREADS = 8, TURNS = 200 };
    int count = 0, inside = 0;
    io::run(on_threads(2), haft::random_order(2026), [&] {
        for (int i = 0; i < THREADS; i++)
            haft::fork([&] {
                for (int j = 0; j < TURNS; j++) {
                    inside++;
                    CHECK_EQUAL(inside, 1);
                    count++;
                    inside--;
                    if (j % 50 == 0)
                        io::sleep_for(1us);
                    else
                        haft::yield();
                }
            });
    });
    CHECK_EQUAL(count, THREADS * TURNS);
}

static void futures_actors_and_kills_work_between_threads_of_the_system() {
    enum { ROUNDS = 200 };
    io::run(on_threads(2), [] {
        auto adder = haft::spawn<number, total>([](haft::actor<number, total> &self) {
            for (int sum = 0;;)
                self.receive([&](number message) { sum += message.value; },
                             [&](total message) { message.reply.set_value(sum); });
        });
        std::vector<haft::future<>> senders;
        for (int i = 0; i < 4; i++)
            senders.push_back(haft::async([=] {
                for (int j = 0; j < ROUNDS; j++) {
                    adder.send(number{1});
                    haft::await(haft::async([] { haft::yield(); }));
                    haft::thread<> killed = haft::fork([] {
                        for (;;)
                            haft::yield();
                    });
                    killed.kill();
                    CHECK(killed.finished());
                }
            }));
        haft::await_all(senders);
        CHECK_EQUAL(haft::await(haft::ask<total>(adder)), 4 * ROUNDS);
        adder.kill();
        CHECK(!adder.alive());
    });
}

/* The list is destroyed before the threads that it has woken, or not, go on. */
static void threads_do_not_look_at_a_waiting_list_that_is_gone(bool wakes, bool in_a_run) {
    int gone_on = 0;
    auto body = [&] {
        void *memory = ::operator new(sizeof(haft::waiting_list));
        auto *list = ::new (memory) haft::waiting_list;
        std::vector<haft::thread<>> threads;
        for (int i = 0; i < 3; i++)
            threads.push_back(haft::fork([&gone_on, list] {
                list->wait("lock()");
                gone_on++;
            }));
        haft::yield();
        if (wakes)
            list->wake_all();
        list->~waiting_list();
        std::memset(memory, 0xdb, sizeof(haft::waiting_list));
        if (!wakes)
            for (auto &thread : threads)
                thread.kill();
        haft::yield();
        for (std::size_t i = 0; i < sizeof(haft::waiting_list); i++)
            CHECK_EQUAL(static_cast<unsigned char *>(memory)[i], 0xdb);
        ::operator delete(memory);
    };
    io::run([&] { in_a_run ? haft::run(body) : body(); });
    CHECK_EQUAL(gone_on, wakes ? 3 : 0);
}
static void woken_threads_do_not_look_at_a_waiting_list_that_is_gone() {
    threads_do_not_look_at_a_waiting_list_that_is_gone(true, true);
    threads_do_not_look_at_a_waiting_list_that_is_gone(true, false);
}
static void killed_threads_do_not_look_at_a_waiting_list_that_is_gone() {
    threads_do_not_look_at_a_waiting_list_that_is_gone(false, true);
    threads_do_not_look_at_a_waiting_list_that_is_gone(false, false);
}

/* ---- Runs outside of tasks are as ever ---- */

static void a_run_outside_of_tasks_finds_its_deadlock() {
    std::string text;
    try {
        haft::run([] {
            haft::waiting_list nothing;
            nothing.wait("nothing");
        });
    } catch (const haft::deadlock &stuck) {
        text = stuck.what();
    }
    CHECK(text.find("waits in nothing") != text.npos);
}

int main() {
    check_backend();
    RUN(threads_of_a_run_in_a_task_return_throw_and_have_names);
    RUN(a_policy_chooses_who_goes_on);
    RUN(a_read_lets_the_other_threads_and_tasks_go_on_and_the_policy_chooses_after_it);
    RUN(who_operates_again_and_again_lets_the_other_threads_of_the_run_go_on);
    RUN(a_killed_thread_is_unwound_where_it_waits);
    RUN(an_exception_that_nobody_joins_leaves_the_run_and_unwinds_the_others);
    RUN(a_deadline_ends_a_run);
    RUN(a_policy_that_throws_ends_the_run);
    RUN(an_actor_reads_and_answers);
    RUN(an_actor_that_only_waits_ends_with_its_run_and_its_watcher_is_told);
    RUN(tasks_fork_await_and_yield_without_a_run);
    RUN(an_exception_that_nobody_joins_leaves_the_scope);
    RUN(a_thread_that_a_thread_forked_may_outlive_it);
    RUN(a_future_that_a_thread_of_the_system_keeps_is_awaited_by_tasks_and_the_other_way_around);
    RUN(threads_of_a_run_are_one_at_a_time_on_two_threads_of_the_system);
    RUN(futures_actors_and_kills_work_between_threads_of_the_system);
    RUN(woken_threads_do_not_look_at_a_waiting_list_that_is_gone);
    RUN(killed_threads_do_not_look_at_a_waiting_list_that_is_gone);
    RUN(a_run_outside_of_tasks_finds_its_deadlock);
    return check_end();
}
