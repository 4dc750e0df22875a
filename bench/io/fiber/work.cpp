// SPDX-License-Identifier: MIT
/*
 * The work of ../work.c with Boost.Fiber, of what it has: no cancellation, no sockets. It is set up
 * as its documentation recommends: round robin on one thread and work stealing on two, a pool of
 * stacks where one thread uses them, and launch::dispatch, which runs a fiber at once.
 */
#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;
using boost::this_fiber::yield;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

static int64_t operations;
static int64_t measured_apart;
static int threads;

namespace {

constexpr size_t stack_size = 64 * 1024;

template <class Function>
fibers::fiber launch(Function function) {
    static fibers::pooled_fixedsize_stack pool(stack_size);
    if (threads == 1)
        return {fibers::launch::dispatch, std::allocator_arg, pool, std::move(function)};
    return {fibers::launch::dispatch, std::allocator_arg, fibers::fixedsize_stack(stack_size),
            std::move(function)};
}

void spawn() {
    std::vector<fibers::fiber> tasks(100);
    for (int64_t i = 0; i < operations; i += 100) {
        for (auto &task : tasks)
            task = launch([] {});
        for (auto &task : tasks)
            task.join();
    }
}

void yield_half() {
    for (int64_t i = 0; i < operations; i += 2)
        yield();
}
void yield_by_two() {
    auto other = launch(yield_half);
    yield_half();
    other.join();
}

using fibers::channel_op_status;
template <class Item>
using channel_of = fibers::buffered_channel<Item>;
constexpr size_t capacity_1 = 2; /* one slot of a ring stays empty */

void channel() {
    channel_of<int> there(capacity_1), back(capacity_1);
    auto other = launch([&] {
        for (int ball; there.pop(ball) == channel_op_status::success;)
            back.push(ball);
    });
    int ball = 1;
    for (int64_t i = 0; i < operations; i++) {
        there.push(ball);
        back.pop(ball);
    }
    there.close();
    other.join();
}

int64_t sum(int64_t first, int64_t size) {
    if (size == 1)
        return first;
    int64_t parts[10], total = 0;
    fibers::fiber tasks[10];
    for (int i = 0; i < 10; i++)
        tasks[i] = launch([=, &parts] { parts[i] = sum(first + i * (size / 10), size / 10); });
    for (int i = 0; i < 10; i++) {
        tasks[i].join();
        total += parts[i];
    }
    return total;
}
void skynet() {
    if (sum(0, operations) != operations * (operations - 1) / 2)
        std::abort();
}

void contest() {
    fibers::mutex mutex;
    std::vector<fibers::fiber> tasks;
    for (int i = 0; i < 1000; i++)
        tasks.push_back(launch([&] {
            for (int64_t j = 0; j < operations / 1000; j++) {
                mutex.lock();
                if (j % 10 == 0)
                    yield();
                mutex.unlock();
            }
        }));
    for (auto &task : tasks)
        task.join();
}

struct creature {
    int colour;
    channel_of<int> partner{capacity_1};
};
void chameneos() {
    channel_of<creature *> asking(16);
    creature creatures[10];
    std::vector<fibers::fiber> tasks;
    for (int i = 0; i < 10; i++) {
        creatures[i].colour = i % 3;
        tasks.push_back(launch([&asking, self = &creatures[i]] {
            for (int other; asking.push(self) == channel_op_status::success &&
                            self->partner.pop(other) == channel_op_status::success;)
                if (self->colour != other)
                    self->colour = 3 - self->colour - other;
        }));
    }
    for (int64_t i = 0; i < operations; i++) {
        creature *one = nullptr, *other = nullptr;
        asking.pop(one);
        asking.pop(other);
        int colour = one->colour;
        one->partner.push(other->colour);
        other->partner.push(colour);
    }
    asking.close();
    for (auto &one : creatures)
        one.partner.close();
    for (auto &task : tasks)
        task.join();
}

void nothing() {
    boost::this_fiber::sleep_for(100ms);
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    boost::this_fiber::sleep_for(std::chrono::milliseconds(operations));
    getrusage(RUSAGE_SELF, &after);
    measured_apart = (after.ru_nvcsw - before.ru_nvcsw) * operations;
}

/* The other thread steals until the work is done. */
void on_two_threads(void (*work)()) {
    fibers::mutex mutex;
    fibers::condition_variable_any changed;
    bool done = false;
    auto steal = [] { fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(2, true); };
    std::thread other([&] {
        steal(); /* returns when both are there */
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done; });
    });
    steal();
    work();
    {
        std::lock_guard lock(mutex);
        done = true;
    }
    changed.notify_all();
    other.join();
}

} // namespace

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*work)();
    } works[] = {{"spawn", spawn},    {"yield", yield_by_two}, {"channel", channel},
                 {"skynet", skynet},  {"mutex", contest},      {"chameneos", chameneos},
                 {"nothing", nothing}};
    if (count != 4)
        return 2;
    threads = std::atoi(arguments[2]);
    operations = std::atoll(arguments[3]);
    for (auto &one : works) {
        if (std::strcmp(one.name, arguments[1]) != 0 || operations <= 0 || threads > 2)
            continue;
        auto started = steady_clock::now();
        if (threads == 1)
            one.work();
        else
            on_two_threads(one.work);
        int64_t took = measured_apart != 0 ? measured_apart : (steady_clock::now() - started) / 1ns;
        std::printf("%.2f\n", static_cast<double>(took) / static_cast<double>(operations));
        return 0;
    }
    return 2;
}
