// SPDX-License-Identifier: MIT
/* Coroutines of C++20 on the stack of a computation that is dropped: their frames are unwound, too,
   if what catches exceptions in them rethrows. */
#include "check.hpp"

#include <coroutine>
#include <haft.hpp>
#include <string>
#include <utility>

struct Wait : haft::effect<> {};

static std::string told;
struct guard {
    ~guard() { told += "guard "; }
};

struct lazy {
    struct promise_type {
        lazy get_return_object() {
            return lazy(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        [[noreturn]] void unhandled_exception() { throw; }
    };
    explicit lazy(std::coroutine_handle<promise_type> of) : handle(of) {}
    lazy(lazy &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    lazy &operator=(const lazy &) = delete;
    ~lazy() {
        if (!handle)
            return;
        told += "frame ";
        handle.destroy();
    }
    std::coroutine_handle<promise_type> handle;
};

static lazy waits() {
    guard local;
    haft::perform(Wait{});
    co_return;
}

int main() {
    haft::handle([] {
        lazy coroutine = waits();
        coroutine.handle.resume();
        told += "went on ";
    }).with([](Wait, haft::resumption<void()>) { told += "dropped "; });
    CHECK(told == "dropped guard frame ");
}
