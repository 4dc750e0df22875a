// SPDX-License-Identifier: MIT
/*
 * Rate limiter: at most `burst` requests at once, and then one each time that a token comes. The
 * tokens are in a channel, which a task fills at a steady rate. A request that finds no token
 * waits, in order, or gives up after a time. The program runs in virtual time, so a minute takes no
 * time.
 */
#include <haft/io.hpp>

#include <iostream>

namespace io = haft::io;
using namespace std::chrono_literals;

class rate_limiter {
  public:
    explicit rate_limiter(std::size_t burst) : tokens(burst) {
        for (std::size_t i = 0; i < burst; i++)
            tokens.try_send(token());
    }
    /* Runs in a task of its own until that is cancelled. */
    void fill(std::chrono::nanoseconds each) {
        for (auto next = io::clock::now() + each;; next += each) {
            io::sleep_until(next);
            tokens.try_send(token()); // lost if the channel is still full
        }
    }
    void wait() { tokens.receive(); }
    bool wait_for(std::chrono::nanoseconds time) try {
        return tokens.receive_for(time).has_value();
    } catch (const std::system_error &error) {
        if (error.code() != std::errc::timed_out)
            throw;
        return false;
    }

  private:
    struct token {};
    io::channel<token> tokens;
};

static void serve(rate_limiter &limiter) {
    auto start = io::clock::now();
    // Ten requests come at once.
    io::scope([&] {
        for (int i = 0; i < 10; i++)
            io::spawn([&] {
                limiter.wait();
                std::cout << "served in second " << (io::clock::now() - start) / 1s << '\n';
            });
    });
    std::cout << (limiter.wait_for(10ms) ? "served" : "refused") << '\n';
    // After a minute there are no more tokens than the burst.
    io::sleep_for(60s);
    int at_once = 0;
    while (limiter.wait_for(0s))
        at_once++;
    std::cout << at_once << " at once after a minute\n";
}

int main() {
    io::simulate({.seed = 1}, [] {
        rate_limiter limiter(3);
        io::first([&] { limiter.fill(1s); }, [&] { serve(limiter); });
    });
}
