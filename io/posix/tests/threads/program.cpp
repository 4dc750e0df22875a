// SPDX-License-Identifier: MIT
// std::thread and what is made for it, for run.sh.
#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::atomic<int> destroyed, initialised;

struct Variable {
    int value = 0;
    ~Variable() {
        std::this_thread::sleep_for(1ms);
        destroyed++;
    }
};
static thread_local Variable variable;

static int initialise() {
    static const int value = [] {
        std::this_thread::sleep_for(1ms);
        return ++initialised;
    }();
    return value;
}

int main() {
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::vector<std::thread> threads;
    for (int i = 0; i < 50; i++)
        threads.emplace_back([&, i] {
            variable.value = i;
            std::this_thread::sleep_for(100us);
            try {
                throw variable.value;
            } catch (int value) {
                std::this_thread::yield();
                if (value != i || initialise() != 1)
                    std::terminate();
            }
            std::lock_guard lock(mutex);
            std::this_thread::yield();
            ids.insert(std::this_thread::get_id());
        });
    for (auto &thread : threads)
        thread.join();
    std::vector<std::future<int>> numbers;
    for (int i = 0; i < 50; i++)
        numbers.push_back(std::async(std::launch::async, [i] {
            std::this_thread::sleep_for(100us);
            return i;
        }));
    int sum = 0;
    for (auto &number : numbers)
        sum += number.get();
    std::cout << ids.size() << " ids, sum " << sum << ", " << destroyed << " destroyed, "
              << initialised << " initialised\n";
}
