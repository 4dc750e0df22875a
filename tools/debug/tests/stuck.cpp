// SPDX-License-Identifier: MIT
/* Like stuck.c: two transfers wait for each other, a reader for bytes, customers for an event. */
#include <haft/io.hpp>

#include <cstdlib>
#include <mutex>
#include <string_view>

#include <unistd.h>

namespace io = haft::io;
using namespace std::chrono_literals;

struct account {
    io::mutex mutex;
    long cents;
};

static account savings{{}, 100000}, household{{}, 5000};
static io::event closing_time;
static int orders = 0, signed_orders = 0;

static void transfer(account &from, account &to, long cents) {
    std::lock_guard out(from.mutex);
    io::sleep_for(1ms); /* asks the manager, which signs two orders at a time */
    for (orders++; orders < 2;)
        io::yield();
    signed_orders++;
    std::lock_guard in(to.mutex);
    from.cents -= cents;
    to.cents += cents;
}

static void open_bank(std::string_view how) {
    int to_branch[2];
    if (::pipe(to_branch) != 0)
        return;
    io::descriptor branch(to_branch[0]);
    io::spawn({.name = "clerk"}, [] { transfer(household, savings, 500); });
    auto spend = io::async({.name = "clerk"}, [] { transfer(savings, household, 700); });
    io::spawn({.name = "branch"}, [&branch] {
        char order[64];
        branch.read(std::as_writable_bytes(std::span(order)));
    });
    auto audit = [](io::scope_ref scope) {
        scope.spawn({.name = "page"}, [] { io::sleep_for(1h); });
    };
    io::spawn({.name = "auditor"},
              [audit] { io::scope({.name = "audit"}, audit); }); /* no deadlock */
    for (int i = 0; i < 50; i++)
        io::spawn({.name = "customer"}, [] { closing_time.wait(); });
    if (how != "live") {
        while (signed_orders < 2)
            io::yield();
        for (int i = 0; i < 10; i++) /* each of the others comes to its wait */
            io::yield();
        std::abort();
    }
    spend.join();
}

int main(int count, char **arguments) {
    io::run([&] { open_bank(count > 1 ? arguments[1] : "dead"); });
}
