// SPDX-License-Identifier: MIT
/* Cooperative threads: fork, join, kill, and a channel between them, built on a waiting list. */
#include <deque>
#include <haft/thread.hpp>
#include <iostream>
#include <optional>
#include <vector>

/* Senders wait while it is full, receivers while it is empty. */
template <typename T>
class channel {
  public:
    explicit channel(std::size_t most) : room(most) {}
    void send(T value) {
        while (values.size() == room)
            senders.wait("send()");
        values.push_back(std::move(value));
        receivers.wake_one();
    }
    /* Nothing once it is closed and empty. */
    std::optional<T> receive() {
        while (values.empty() && !closed)
            receivers.wait("receive()");
        if (values.empty())
            return std::nullopt;
        T value = std::move(values.front());
        values.pop_front();
        senders.wake_one();
        return value;
    }
    void close() {
        closed = true;
        receivers.wake_all();
    }

  private:
    std::size_t room;
    bool closed = false;
    std::deque<T> values;
    haft::waiting_list senders, receivers;
};

static void pipeline() {
    channel<int> numbers(2);
    haft::thread<int> consumer = haft::fork([&] {
        int sum = 0;
        while (std::optional<int> number = numbers.receive())
            sum += *number;
        return sum;
    });
    std::vector<haft::thread<>> producers;
    for (int first : {1, 100})
        producers.push_back(haft::fork([&numbers, first] {
            for (int i = first; i < first + 5; i++)
                numbers.send(i);
        }));
    for (auto &producer : producers)
        producer.join();
    numbers.close();
    std::cout << "the sum is " << consumer.join() << '\n';
}

static void clean_up() {
    struct noisy {
        ~noisy() { std::cout << "cleaned up\n"; }
    };
    haft::thread<> endless = haft::fork({.name = "endless"}, [] {
        noisy local;
        for (;;)
            haft::yield();
    });
    haft::yield();
    endless.kill();
    try {
        endless.join();
    } catch (const haft::thread_killed &killed) {
        std::cout << killed.what() << '\n';
    }
}

int main() {
    haft::run(pipeline);
    haft::run(haft::random_order(2026), pipeline);
    haft::run(clean_up);
    try {
        haft::run([] { channel<int>(1).receive(); });
    } catch (const haft::deadlock &stuck) {
        std::cout << stuck.what() << '\n';
    }
}
