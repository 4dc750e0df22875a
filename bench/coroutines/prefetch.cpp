// SPDX-License-Identifier: MIT
// The prefetching binary search as C++20 coroutines: each search hints at the address it will
// read, suspends, and reads when it is its turn again.
#include "../prefetch.h"

#include <coroutine>
#include <exception>
#include <utility>

namespace {

class search {
  public:
    struct promise_type {
        bool found = false;
        search get_return_object() {
            return search(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_value(bool result) { found = result; }
        void unhandled_exception() { std::terminate(); }
    };

    search() = default;
    search(search &&other) noexcept : coroutine(std::exchange(other.coroutine, nullptr)) {}
    search &operator=(search &&other) noexcept {
        std::swap(coroutine, other.coroutine);
        return *this;
    }
    ~search() {
        if (coroutine)
            coroutine.destroy();
    }

    bool is_active() const { return static_cast<bool>(coroutine); }
    bool done() const { return coroutine.done(); }
    bool found() const { return coroutine.promise().found; }
    void resume() { coroutine.resume(); }

  private:
    explicit search(std::coroutine_handle<promise_type> started) : coroutine(started) {}
    std::coroutine_handle<promise_type> coroutine = nullptr;
};

search binary_search(const int *first, std::size_t length, int key) {
    while (length > 0) {
        std::size_t half = length / 2;
        prefetch_hint(first + half);
        co_await std::suspend_always{};
        int value = first[half];
        if (value == key)
            co_return true;
        if (value < key) {
            first += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    co_return false;
}

} // namespace

BENCHMARK_SERIES("prefetch-coroutines", prefetch_coroutines, PREFETCH_STREAMS) {
    prefetch_data_t data = prefetch_load();
    search searches[PREFETCH_MAXIMUM_STREAMS];
    int streams = static_cast<int>(benchmark->parameter), active = 0;
    uint64_t next = 0, found = 0;
    auto start = [&](search &slot) {
        if (next < benchmark->operations)
            slot = binary_search(data.array, data.length, prefetch_key(&data, next++));
        else
            slot = search(), active--;
    };
    benchmark_start(benchmark);
    for (int i = 0; i < streams; i++) {
        active++;
        start(searches[i]);
    }
    while (active > 0) {
        for (int i = 0; i < streams; i++) {
            if (!searches[i].is_active())
                continue;
            searches[i].resume();
            if (!searches[i].done())
                continue;
            found += searches[i].found();
            start(searches[i]);
        }
    }
    benchmark_stop(benchmark);
    prefetch_check(&data, benchmark->operations, found);
}
