/* Actors: typed mailboxes, replies, behaviours, and ends, of which other actors are told. */
#include "check.hpp"

#include <cstdlib>
#include <haft/actor.hpp>
#include <memory>
#include <new>
#include <string>
#include <vector>

/* Not inlined: gcc would take a pair of which it has inlined one for a mismatch. */
static int allocations;
[[gnu::noinline]] void *operator new(std::size_t size) {
    allocations++;
    void *memory = std::malloc(size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept {
    std::free(memory);
}

static bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

static std::string text_of(const std::exception_ptr &reason) {
    if (reason == nullptr)
        return "ended";
    try {
        std::rethrow_exception(reason);
    } catch (const std::exception &exception) {
        return exception.what();
    }
}

struct add {
    int amount;
};
struct total {
    haft::promise<int> reply;
};
struct fail {
    std::string why;
};
struct finish {};

using counter = haft::address<add, total, fail, finish>;

static counter spawn_counter() {
    return haft::spawn<add, total, fail, finish>([](haft::actor<add, total, fail, finish> &self) {
        counted local;
        int sum = 0;
        for (bool more = true; more;)
            self.receive([&](add message) { sum += message.amount; },
                         [&](total message) { message.reply.set_value(sum); },
                         [](fail message) { throw std::runtime_error(message.why); },
                         [&](finish) { more = false; });
    });
}

static void messages_arrive_in_order() {
    std::string log;
    haft::run([&] {
        auto reader = haft::spawn<int, std::string>([&](haft::actor<int, std::string> &self) {
            for (;;)
                log += self.receive([](int number) { return std::to_string(number); },
                                    [](const std::string &text) { return text; });
        });
        CHECK(reader.send(1) && reader.send(std::string("two")));
        haft::yield();
        reader.send(3);
    });
    CHECK(log == "1two3");
}

static void asking_gets_a_reply() {
    haft::run([] {
        counter count = spawn_counter();
        count.send(add{2});
        count.send(add{3});
        CHECK(haft::await(haft::ask<total>(count)) == 5);
        haft::address<total> reader = count;
        haft::address<total, add> wider = count;
        wider.send(add{1});
        reader = wider;
        CHECK(haft::await(haft::ask<total>(reader)) == 6 && reader.id() == count.id());
    });
    CHECK(counted::alive == 0);
}

static void move_only_messages_are_moved() {
    int got = 0;
    haft::run([&] {
        using pointer = std::unique_ptr<int>;
        auto reader = haft::spawn<pointer>([&](haft::actor<pointer> &self) {
            got = *std::get<0>(self.receive());
            got += *self.receive<pointer>();
        });
        reader.send(std::make_unique<int>(1));
        reader.send(std::make_unique<int>(2));
    });
    CHECK(got == 3);
}

static void receiving_selects_by_type() {
    std::string log;
    haft::run([&] {
        auto reader = haft::spawn<int, char, finish>([&](haft::actor<int, char, finish> &self) {
            self.receive<finish>();
            log += self.receive<char>();
            log += std::to_string(self.receive<int>());
            log += self.receive<char>();
        });
        reader.send(1);
        haft::yield();
        reader.send('a');
        haft::yield();
        reader.send('b');
        reader.send(finish{});
    });
    CHECK(log == "a1b");
}

static void receiving_allocates_nothing_and_keeps_the_order_of_the_others() {
    struct fixed {
        const int number;
    };
    int allocated = -1;
    std::vector<int> numbers;
    haft::run([&] {
        auto reader = haft::spawn<fixed, char>([&](haft::actor<fixed, char> &self) {
            numbers.reserve(20);
            int before = allocations;
            for (int i = 0; i < 20; i++)
                (void)self.receive<char>();
            for (int i = 0; i < 20; i++)
                numbers.push_back(self.receive<fixed>().number);
            allocated = allocations - before;
        });
        for (int i = 0; i < 20; i++) {
            reader.send(fixed{i});
            reader.send('x');
        }
    });
    CHECK(allocated == 0);
    for (int i = 0; i < 20; i++)
        CHECK(numbers[static_cast<std::size_t>(i)] == i);
}

static void behaviours_replace_each_other() {
    std::string log;
    haft::run([&] {
        auto light = haft::spawn<add, finish>([&](haft::actor<add, finish> &self) {
            struct states {
                static void green(haft::actor<add, finish> &of, std::string &to) {
                    of.become([&, seen = 0](
                                  add) mutable { to += 'g', ++seen == 2 ? red(of, to) : void(); },
                              [&](finish) { of.stop(); });
                }
                static void red(haft::actor<add, finish> &of, std::string &to) {
                    of.become([&](add) { to += 'r', green(of, to); }, [&](finish) { of.stop(); });
                }
            };
            states::green(self, log);
        });
        for (int i = 0; i < 7; i++)
            light.send(add{});
        light.send(finish{});
        light.send(add{});
        while (light.alive())
            haft::yield();
        CHECK(!light.send(add{}));
    });
    CHECK(log == "ggrggrg");
}

static void stop_ends_a_direct_body_at_its_next_receive() {
    haft::run([] {
        auto stopping = haft::spawn<add>([](haft::actor<add> &self) {
            counted local;
            self.receive<add>();
            self.stop();
            CHECK(counted::alive == 1);
            self.receive<add>();
            CHECK(false);
        });
        stopping.send(add{});
        stopping.send(add{});
        haft::yield();
        CHECK(counted::alive == 0 && !stopping.alive());
    });
}

static void a_parent_is_told_how_its_children_end() {
    std::vector<std::string> ends;
    haft::run([&] {
        haft::spawn<haft::down>([&](haft::actor<haft::down> &self) {
            auto failing = self.spawn<int>([](haft::actor<int> &child) {
                throw std::runtime_error("got " + std::to_string(child.receive<int>()));
            });
            auto returning = self.spawn<int>([](haft::actor<int> &) {});
            auto stopping = self.spawn<int>([](haft::actor<int> &child) {
                child.stop();
                child.receive();
            });
            auto killed = self.spawn<int>([](haft::actor<int> &child) { child.receive(); });
            auto unstarted = self.spawn<int>([](haft::actor<int> &) { CHECK(false); });
            unstarted.kill();
            auto next = [&](const auto &who) {
                haft::down message = self.receive<haft::down>();
                CHECK(message.actor == who.id());
                ends.push_back(text_of(message.reason));
            };
            next(unstarted);
            next(returning);
            next(stopping);
            failing.send(4);
            next(failing);
            killed.kill();
            next(killed);
            self.watch(failing);
            next(failing);
        });
    });
    CHECK(ends.size() == 6);
    CHECK(contains(ends[0], "was killed") && ends[1] == "ended" && ends[2] == "ended");
    CHECK(ends[3] == "got 4" && contains(ends[4], "was killed") && ends[5] == "got 4");
}

static void a_failure_that_nobody_watches_leaves_run() {
    CHECK(std::string(thrown_by<std::runtime_error>([] {
                          haft::run([] {
                              counter count = spawn_counter();
                              count.send(fail{"unwatched"});
                              for (;;)
                                  haft::yield();
                          });
                      }).what()) == "unwatched");
    CHECK(counted::alive == 0);
}

static void supervisors_restart() {
    std::string log;
    haft::run([&] {
        haft::spawn<haft::down>([&](haft::actor<haft::down> &self) {
            for (int attempt = 1; attempt <= 3; attempt++) {
                auto worker = self.spawn<finish>([&, attempt](haft::actor<finish> &) {
                    log += std::to_string(attempt);
                    if (attempt < 3)
                        throw std::runtime_error("again");
                });
                if (self.receive<haft::down>().reason == nullptr)
                    log += '!';
            }
        });
    });
    CHECK(log == "123!");
}

static void questions_to_the_dead_are_answered_by_an_exception() {
    haft::run([] {
        counter count = spawn_counter();
        haft::spawn<haft::down>([=](haft::actor<haft::down> &self) {
            self.watch(count);
            self.receive();
        });
        haft::yield();
        count.send(fail{"dead"});
        haft::future<int> unread = haft::ask<total>(count);
        thrown_by<haft::broken_promise>([&] { haft::await(unread); });
        haft::future<int> late = haft::ask<total>(count);
        thrown_by<haft::broken_promise>([&] { haft::await(late); });
        CHECK(!count.send(add{1}));
    });
}

static void an_actor_that_nobody_can_reach_is_unwound() {
    haft::run([] {
        counter count = spawn_counter();
        counter copy = count;
        haft::yield();
        count = {};
        haft::yield();
        CHECK(counted::alive == 1);
        copy.send(add{1});
        copy = {};
        haft::yield();
        CHECK(counted::alive == 0);
    });
}

static void actors_that_wait_end_with_the_run() {
    counter count;
    haft::run([&] {
        count = spawn_counter();
        haft::yield();
        CHECK(counted::alive == 1);
    });
    CHECK(counted::alive == 0 && !count.alive() && !count.send(add{1}));
    count.kill();
}

static void an_actor_kills_itself_and_others() {
    haft::run([] {
        haft::address<int> itself;
        itself = haft::spawn<int>([&](haft::actor<int> &self) {
            counted local;
            self.receive();
            itself.kill();
            CHECK(false);
        });
        itself.send(1);
        haft::yield();
        CHECK(counted::alive == 0 && !itself.alive());
        haft::address<int> nobody;
        CHECK(contains(thrown_by<std::logic_error>([&] { nobody.send(1); }).what(), "send()"));
        thrown_by<std::logic_error>([&] { nobody.kill(); });
        CHECK(!nobody.alive() && nobody.id() == 0);
    });
    thrown_by<std::logic_error>([] { spawn_counter(); });
}

static void a_ring_of_actors() {
    const int actors = 50, rounds = 20;
    int passes = 0;
    haft::run(haft::random_order(5), [&] {
        struct start {
            haft::address<int> next;
        };
        using node = haft::actor<int, start>;
        std::vector<haft::address<int, start>> ring;
        for (int i = 0; i < actors; i++)
            ring.push_back(haft::spawn<int, start>([&](node &self) {
                haft::address<int> next = self.receive<start>().next;
                for (;;) {
                    int left = self.receive<int>();
                    passes++;
                    if (left > 0)
                        next.send(left - 1);
                }
            }));
        for (std::size_t i = 0; i < ring.size(); i++)
            ring[i].send(start{ring[(i + 1) % ring.size()]});
        ring[0].send(actors * rounds);
    });
    CHECK(passes == actors * rounds + 1);
}

struct pong;
struct ping {
    int left;
    haft::address<pong> from;
};
struct pong {
    int left;
    haft::address<ping> from;
};

static void actors_send_each_other_their_addresses() {
    int strokes = 0;
    haft::run([&] {
        auto second = haft::spawn<ping>([&](haft::actor<ping> &self) {
            for (;; strokes++) {
                ping ball = self.receive<ping>();
                ball.from.send(pong{ball.left - 1, self.address()});
            }
        });
        haft::spawn<pong>([&, second](haft::actor<pong> &self) {
            second.send(ping{10, self.address()});
            for (pong ball; (ball = self.receive<pong>()).left > 0; strokes++)
                ball.from.send(ping{ball.left - 1, self.address()});
        });
    });
    CHECK(strokes == 11);
}

static void the_end_of_the_run_breaks_promises_in_mailboxes() {
    haft::future<int> kept;
    haft::run([&] {
        counter count = spawn_counter();
        counter lazy = haft::spawn<add, total, fail, finish>(
            [](haft::actor<add, total, fail, finish> &self) { self.receive<finish>(); });
        kept = haft::ask<total>(lazy);
    });
    thrown_by<haft::broken_promise>([&] { haft::await(kept); });
}

int main() {
    actors_send_each_other_their_addresses();
    the_end_of_the_run_breaks_promises_in_mailboxes();
    messages_arrive_in_order();
    asking_gets_a_reply();
    move_only_messages_are_moved();
    receiving_selects_by_type();
    receiving_allocates_nothing_and_keeps_the_order_of_the_others();
    behaviours_replace_each_other();
    stop_ends_a_direct_body_at_its_next_receive();
    a_parent_is_told_how_its_children_end();
    a_failure_that_nobody_watches_leaves_run();
    supervisors_restart();
    questions_to_the_dead_are_answered_by_an_exception();
    an_actor_that_nobody_can_reach_is_unwound();
    actors_that_wait_end_with_the_run();
    an_actor_kills_itself_and_others();
    a_ring_of_actors();
}
// SPDX-License-Identifier: MIT
