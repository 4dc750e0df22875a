// SPDX-License-Identifier: MIT
/*
 * The work of ../work.c with Boost.Asio's C++20 coroutines, of what Boost 1.74 has: no channels, no
 * mutex that a coroutine awaits. It is set up as its documentation recommends: a concurrency hint
 * of 1 where there is one thread, and completion tokens that allocate nothing of their own
 * (use_awaitable). A join is a timer that is cancelled; what joins runs on one thread.
 */
#include <utility> /* which this version of Asio forgets */

#include <boost/asio.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

static int64_t operations;
static int64_t measured_apart;

namespace {

/* Counts coroutines; one may wait for all of them. */
class group {
  public:
    explicit group(const asio::any_io_executor &executor)
        : executor_(executor), ended_(executor, steady_clock::time_point::max()) {}
    void spawn(awaitable<void> coroutine) {
        left_++;
        asio::co_spawn(executor_, std::move(coroutine), [this](std::exception_ptr) { leave(); });
    }
    awaitable<void> join() {
        boost::system::error_code cancelled;
        asio::post(executor_, [this] { leave(); });
        co_await ended_.async_wait(asio::redirect_error(use_awaitable, cancelled));
    }

  private:
    /* The one that waits holds one, too. */
    void leave() {
        if (--left_ == 0)
            ended_.expires_at(steady_clock::time_point::min());
    }
    asio::any_io_executor executor_;
    asio::steady_timer ended_;
    int left_ = 1;
};

awaitable<void> do_nothing() {
    co_return;
}
awaitable<void> spawn() {
    auto executor = co_await asio::this_coro::executor;
    for (int64_t i = 0; i < operations; i += 100) {
        group tasks(executor);
        for (int j = 0; j < 100; j++)
            tasks.spawn(do_nothing());
        co_await tasks.join();
    }
}

awaitable<void> yield_half() {
    auto executor = co_await asio::this_coro::executor;
    for (int64_t i = 0; i < operations; i += 2)
        co_await asio::post(executor, use_awaitable);
}
awaitable<void> yield() {
    group tasks(co_await asio::this_coro::executor);
    tasks.spawn(yield_half());
    tasks.spawn(yield_half());
    co_await tasks.join();
}

awaitable<void> wait_for(asio::steady_timer &timer) {
    boost::system::error_code code;
    co_await timer.async_wait(asio::redirect_error(use_awaitable, code));
}
awaitable<void> timers() {
    auto executor = co_await asio::this_coro::executor;
    auto begin = steady_clock::now();
    std::vector<std::unique_ptr<asio::steady_timer>> all;
    all.reserve(static_cast<size_t>(operations));
    group tasks(executor);
    for (int64_t i = 0; i < operations; i++) {
        all.push_back(std::make_unique<asio::steady_timer>(
            executor, begin + std::chrono::milliseconds((i + 1) % 500)));
        tasks.spawn(wait_for(*all.back()));
    }
    co_await asio::post(executor, use_awaitable);
    for (int64_t i = 1; i < operations; i += 2)
        all[static_cast<size_t>(i)]->cancel();
    co_await tasks.join();
}

awaitable<void> cancel() {
    auto executor = co_await asio::this_coro::executor;
    for (int64_t i = 0; i < operations; i += 100) {
        std::vector<std::unique_ptr<asio::steady_timer>> all;
        group tasks(executor);
        for (int j = 0; j < 100; j++) {
            all.push_back(
                std::make_unique<asio::steady_timer>(executor, steady_clock::time_point::max()));
            tasks.spawn(wait_for(*all.back()));
        }
        for (int j = 0; j < 3; j++)
            co_await asio::post(executor, use_awaitable);
        auto since = steady_clock::now();
        for (auto &timer : all)
            timer->cancel();
        co_await tasks.join();
        measured_apart += (steady_clock::now() - since) / 1ns;
    }
}

awaitable<void> nothing() {
    asio::steady_timer timer(co_await asio::this_coro::executor, 100ms);
    co_await timer.async_wait(use_awaitable);
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    timer.expires_after(std::chrono::milliseconds(operations));
    co_await timer.async_wait(use_awaitable);
    getrusage(RUSAGE_SELF, &after);
    measured_apart = (after.ru_nvcsw - before.ru_nvcsw) * operations;
}

size_t buffer_size = 16384;
awaitable<void> echo(asio::ip::tcp::socket connection) {
    std::vector<char> buffer(buffer_size);
    boost::system::error_code code;
    auto token = asio::redirect_error(use_awaitable, code);
    while (!code) {
        size_t got = co_await connection.async_read_some(asio::buffer(buffer), token);
        if (!code)
            co_await asio::async_write(connection, asio::buffer(buffer, got), token);
    }
}
awaitable<void> serve() {
    auto executor = co_await asio::this_coro::executor;
    if (const char *size = std::getenv("BUFFER"))
        buffer_size = std::strtoul(size, nullptr, 10);
    asio::ip::tcp::acceptor acceptor(executor, asio::ip::tcp::v4(), static_cast<int>(operations));
    for (;;) {
        auto connection = co_await acceptor.async_accept(use_awaitable);
        connection.set_option(asio::ip::tcp::no_delay(true));
        asio::co_spawn(executor, echo(std::move(connection)), asio::detached);
    }
}

} // namespace

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        awaitable<void> (*work)();
        bool shared; /* also on two threads */
    } works[] = {{"spawn", spawn, false},   {"yield", yield, false},    {"timers", timers, false},
                 {"cancel", cancel, false}, {"nothing", nothing, true}, {"echo", serve, false}};
    if (count != 4)
        return 2;
    int threads = std::atoi(arguments[2]);
    operations = std::atoll(arguments[3]);
    for (auto &one : works) {
        if (std::strcmp(one.name, arguments[1]) != 0 || operations <= 0 ||
            (threads > 1 && !one.shared))
            continue;
        asio::io_context context(threads);
        asio::co_spawn(context, one.work(), asio::detached);
        auto started = steady_clock::now();
        std::vector<std::thread> others;
        for (int i = 1; i < threads; i++)
            others.emplace_back([&] { context.run(); });
        context.run();
        for (auto &other : others)
            other.join();
        int64_t took = measured_apart != 0 ? measured_apart : (steady_clock::now() - started) / 1ns;
        std::printf("%.2f\n", static_cast<double>(took) / static_cast<double>(operations));
        return 0;
    }
    return 2;
}
