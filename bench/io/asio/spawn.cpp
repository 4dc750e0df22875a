// SPDX-License-Identifier: MIT
/*
 * The work of ../work.c with tasks that have stacks: boost::asio::spawn, of what Boost 1.74 has,
 * which is no channel, mutex or join. It is set up as its documentation recommends: a concurrency
 * hint of 1, since all of it runs on one thread; tasks have their parent's strand. A join is a
 * timer that is cancelled. A million timers would be a million stacks of 64 KiB and their mappings:
 * left out.
 */
#define BOOST_COROUTINES_NO_DEPRECATION_WARNING
#include <utility> /* which this version of Asio forgets */

#include <boost/asio.hpp>
#include <boost/asio/spawn.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/resource.h>
#include <vector>

namespace asio = boost::asio;
using asio::yield_context;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

static int64_t operations;
static int64_t measured_apart;
static asio::io_context context(1);

namespace {

/* Counts tasks; one may wait for all of them. */
class group {
  public:
    template <class Function>
    void spawn(yield_context parent, Function function) {
        left_++;
        asio::spawn(parent, [this, function](yield_context yield) {
            function(yield);
            leave();
        });
    }
    void join(yield_context yield) {
        boost::system::error_code cancelled;
        asio::post(context, [this] { leave(); });
        ended_.async_wait(yield[cancelled]);
    }

  private:
    /* The one that waits holds one, too. */
    void leave() {
        if (--left_ == 0)
            ended_.expires_at(steady_clock::time_point::min());
    }
    asio::steady_timer ended_{context, steady_clock::time_point::max()};
    int left_ = 1;
};

void spawn(yield_context yield) {
    for (int64_t i = 0; i < operations; i += 100) {
        group tasks;
        for (int j = 0; j < 100; j++)
            tasks.spawn(yield, [](yield_context) {});
        tasks.join(yield);
    }
}

void yield_by_two(yield_context yield) {
    group tasks;
    for (int half = 0; half < 2; half++)
        tasks.spawn(yield, [](yield_context self) {
            for (int64_t i = 0; i < operations; i += 2)
                asio::post(self);
        });
    tasks.join(yield);
}

void cancel(yield_context yield) {
    for (int64_t i = 0; i < operations; i += 100) {
        std::vector<std::unique_ptr<asio::steady_timer>> all;
        group tasks;
        for (int j = 0; j < 100; j++) {
            all.push_back(
                std::make_unique<asio::steady_timer>(context, steady_clock::time_point::max()));
            tasks.spawn(yield, [timer = all.back().get()](yield_context self) {
                boost::system::error_code cancelled;
                timer->async_wait(self[cancelled]);
            });
        }
        for (int j = 0; j < 3; j++)
            asio::post(yield);
        auto since = steady_clock::now();
        for (auto &timer : all)
            timer->cancel();
        tasks.join(yield);
        measured_apart += (steady_clock::now() - since) / 1ns;
    }
}

void nothing(yield_context yield) {
    asio::steady_timer timer(context, 100ms);
    timer.async_wait(yield);
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    timer.expires_after(std::chrono::milliseconds(operations));
    timer.async_wait(yield);
    getrusage(RUSAGE_SELF, &after);
    measured_apart = (after.ru_nvcsw - before.ru_nvcsw) * operations;
}

/* The buffer is on the task's stack, as libhaft-io's is. */
void echo(std::shared_ptr<asio::ip::tcp::socket> connection, size_t size, yield_context yield) {
    auto *buffer = static_cast<char *>(__builtin_alloca(size));
    boost::system::error_code code;
    while (!code) {
        size_t got = connection->async_read_some(asio::buffer(buffer, size), yield[code]);
        if (!code)
            asio::async_write(*connection, asio::buffer(buffer, got), yield[code]);
    }
}
void serve(yield_context yield) {
    const char *text = std::getenv("BUFFER");
    size_t size = text != nullptr ? std::strtoul(text, nullptr, 10) : 16384;
    asio::ip::tcp::acceptor acceptor(context, asio::ip::tcp::v4(), static_cast<int>(operations));
    for (;;) {
        auto connection = std::make_shared<asio::ip::tcp::socket>(context);
        acceptor.async_accept(*connection, yield);
        connection->set_option(asio::ip::tcp::no_delay(true));
        asio::spawn(context,
                    [connection, size](yield_context self) { echo(connection, size, self); });
    }
}

} // namespace

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*work)(yield_context);
    } works[] = {{"spawn", spawn},
                 {"yield", yield_by_two},
                 {"cancel", cancel},
                 {"nothing", nothing},
                 {"echo", serve}};
    if (count != 4 || std::atoi(arguments[2]) != 1)
        return 2;
    operations = std::atoll(arguments[3]);
    for (auto &one : works) {
        if (std::strcmp(one.name, arguments[1]) != 0 || operations <= 0)
            continue;
        asio::spawn(context, one.work);
        auto started = steady_clock::now();
        context.run();
        int64_t took = measured_apart != 0 ? measured_apart : (steady_clock::now() - started) / 1ns;
        std::printf("%.2f\n", static_cast<double>(took) / static_cast<double>(operations));
        return 0;
    }
    return 2;
}
