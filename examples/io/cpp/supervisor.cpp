// SPDX-License-Identifier: MIT
/*
 * Supervisor: runs workers, and restarts the one that fails, after a pause that doubles each time;
 * after too many failures it gives up, and its own scope fails. Each run of a worker is a scope, so
 * what a failed worker has started ends before the worker is restarted. The program runs in virtual
 * time.
 */
#include <haft/io.hpp>

#include <functional>
#include <iostream>

namespace io = haft::io;
using namespace std::chrono_literals;

struct policy {
    int failures_at_most;
    std::chrono::milliseconds pause;
};

static void supervise(const char *name, policy policy, std::function<void()> work) {
    io::spawn({.name = name}, [=] {
        auto pause = policy.pause;
        for (int failures = 1;; failures++, pause *= 2) {
            try {
                io::scope({.name = name}, work);
                std::cout << name << " is done\n";
                return;
            } catch (const io::cancelled &) {
                throw;
            } catch (const std::exception &error) {
                std::cout << name << " failed: " << error.what() << '\n';
                if (failures == policy.failures_at_most)
                    throw std::runtime_error(std::string(name) + " was given up");
            }
            io::sleep_for(pause);
        }
    });
}

int main() {
    io::simulate({.seed = 1}, [] {
        int tries = 0;
        try {
            io::scope([&] {
                supervise("the importer", {5, 10ms}, [&tries] {
                    // A helper, which ends with the worker's failure.
                    io::spawn([] { io::sleep_for(1h); });
                    io::sleep_for(1ms);
                    if (++tries < 3)
                        throw std::runtime_error("no connection, try " + std::to_string(tries));
                    io::cancel(); // the helper
                });
                supervise("the printer", {3, 100ms}, [] { throw std::runtime_error("no paper"); });
                supervise("the clock", {1, 1s}, [] {
                    struct at_end {
                        ~at_end() { std::cout << "the clock stops\n"; }
                    } here;
                    io::sleep_for(24h);
                });
            });
        } catch (const std::runtime_error &error) {
            std::cout << "the supervisor ends: " << error.what() << '\n';
        }
    });
}
