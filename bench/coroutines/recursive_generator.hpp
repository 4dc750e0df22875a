// SPDX-License-Identifier: MIT
// A recursive generator in the manner of C++23's std::generator: a producer may yield all elements
// of another one, co_yield elements_of(other). The generators in progress form a stack; the one
// that is iterated knows its leaf and resumes that directly, and a finished one continues the
// generator that had yielded it by symmetric transfer.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace bench {

template <class T>
class recursive_generator;

template <class T>
struct elements_of {
    recursive_generator<T> elements;
    explicit elements_of(recursive_generator<T> of) : elements(std::move(of)) {}
};

template <class T>
class recursive_generator {
  public:
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;

    struct promise_type {
        promise_type *root = this; // the generator that is iterated
        handle leaf = handle::from_promise(*this);
        handle parent = nullptr; // the generator that yields this one's elements
        const T *current = nullptr;
        std::exception_ptr thrown;

        struct final_awaiter {
            bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(handle done) noexcept {
                promise_type &promise = done.promise();
                if (!promise.parent)
                    return std::noop_coroutine();
                promise.root->leaf = promise.parent;
                return promise.parent;
            }
            void await_resume() noexcept {}
        };

        struct nested_awaiter {
            recursive_generator nested;
            bool await_ready() noexcept { return !nested.coroutine; }
            std::coroutine_handle<> await_suspend(handle yielding) noexcept {
                promise_type &promise = nested.coroutine.promise();
                promise.root = yielding.promise().root;
                promise.parent = yielding;
                promise.root->leaf = nested.coroutine;
                return nested.coroutine;
            }
            void await_resume() {
                if (nested.coroutine.promise().thrown)
                    std::rethrow_exception(std::move(nested.coroutine.promise().thrown));
            }
        };

        recursive_generator get_return_object() {
            return recursive_generator(handle::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        final_awaiter final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(const T &value) noexcept {
            root->current = &value;
            return {};
        }
        nested_awaiter yield_value(elements_of<T> nested) noexcept {
            return {std::move(nested.elements)};
        }
        void return_void() {}
        void unhandled_exception() {
            if (!parent)
                throw;
            thrown = std::current_exception();
        }
    };

    recursive_generator(recursive_generator &&other) noexcept
        : coroutine(std::exchange(other.coroutine, nullptr)) {}
    recursive_generator &operator=(recursive_generator &&other) noexcept {
        std::swap(coroutine, other.coroutine);
        return *this;
    }
    ~recursive_generator() {
        if (coroutine)
            coroutine.destroy();
    }

    // The next element, or NULL after the last.
    const T *next() {
        coroutine.promise().leaf.resume();
        return coroutine.done() ? nullptr : coroutine.promise().current;
    }

  private:
    explicit recursive_generator(handle started) : coroutine(started) {}
    handle coroutine;
};

} // namespace bench
