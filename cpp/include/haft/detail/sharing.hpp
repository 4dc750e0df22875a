// SPDX-License-Identifier: MIT
/*
 * Cooperative threads (thread.hpp) run on one thread of the system, or are tasks of libhaft-io, on
 * several. This file has the functions that tell which, and the guards of the data that threads
 * share. Where there is no host, each guard costs one test of a word.
 */
#ifndef HAFT_DETAIL_SHARING_HPP
#define HAFT_DETAIL_SHARING_HPP

#include "../../haft.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace haft {

class scheduled;

namespace detail {

class scheduler;
template <typename T>
struct thread_of;

/* ---- The host: runs threads outside of run() ---- */

/* A policy of any type. */
struct ordering {
    virtual void push(scheduled &thread) = 0;
    virtual scheduled *pop() = 0;

  protected:
    ~ordering() = default;
};

/* Implemented by libhaft-io, in a program that includes haft/io_threads.hpp: threads are tasks. */
struct HAFT_SHARED host {
    /* NULL: there is none. Set once, before main or while a library is loaded. */
    static inline std::atomic<host *> installed = nullptr;

    /* For a run() in a task; NULL: the caller is no task. */
    virtual std::shared_ptr<scheduler> make_run(ordering &by) = 0;
    /* For fork() and its kin in a task outside of run(); NULL: the caller is no task. */
    virtual scheduler *forking() = 0;
    /* Makes a temporary record by which the caller, a task or any thread of the system, waits. */
    virtual thread_of<void> *make_waiting() = 0;
    /* Suspends the caller, given its thread (which is a task) or such a record. */
    virtual void park(scheduled &thread) = 0;
    /* False: the caller is no task. */
    virtual bool yield() = 0;

  protected:
    ~host() = default;
};
HAFT_DETAIL_INLINE bool shared() {
    return __builtin_expect(host::installed.load(std::memory_order_relaxed) != nullptr, false);
}

/* ---- Threads of the system ---- */

/* Guards what threads share if they may be on several threads of the system; otherwise it costs one
   test of a word. No thread is suspended while it holds a lock. Recursive, because messages may use
   their own mailbox while they are moved and destroyed. */
class lock {
  public:
    lock() = default;
    lock(const lock &) = delete;
    lock &operator=(const lock &) = delete;

    __attribute__((noinline)) void take() {
        const void *self = this_thread();
        if (owner.load(std::memory_order_relaxed) == self) {
            depth++;
            return;
        }
        for (;;) {
            const void *nobody = nullptr;
            if (owner.compare_exchange_weak(nobody, self, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return;
            std::this_thread::yield();
        }
    }
    __attribute__((noinline)) void give() {
        if (depth != 0)
            depth--;
        else
            owner.store(nullptr, std::memory_order_release);
    }

  private:
    /* Not inlined, because compilers keep the address of a thread-local variable across a
       switch. */
    static __attribute__((noinline)) const void *this_thread() {
        static thread_local char mark;
        __asm__ volatile("" : : : "memory");
        return &mark;
    }
    std::atomic<const void *> owner = nullptr;
    unsigned depth = 0;
};

class locked {
  public:
    HAFT_DETAIL_INLINE explicit locked(lock &by) : held(shared() ? &by : nullptr) {
        if (__builtin_expect(held != nullptr, false))
            held->take();
    }
    HAFT_DETAIL_INLINE ~locked() {
        if (__builtin_expect(held != nullptr, false))
            held->give();
    }
    locked(const locked &) = delete;
    locked &operator=(const locked &) = delete;

  private:
    lock *held;
};

/* A value that one thread of the system writes, after the data that it announces, and others
   read. */
template <typename T>
class published {
  public:
    published(T first) : value(first) {}
    published &operator=(T now) {
        value.store(now, std::memory_order_release);
        return *this;
    }
    operator T() const { return value.load(std::memory_order_acquire); }

  private:
    std::atomic<T> value;
};

class counter {
  public:
    HAFT_DETAIL_INLINE void operator++(int) {
        if (shared())
            number.fetch_add(1, std::memory_order_relaxed);
        else
            number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    HAFT_DETAIL_INLINE unsigned operator--() {
        if (shared())
            return number.fetch_sub(1, std::memory_order_acq_rel) - 1;
        unsigned less = number.load(std::memory_order_relaxed) - 1;
        number.store(less, std::memory_order_relaxed);
        return less;
    }
    operator unsigned() const { return number.load(std::memory_order_acquire); }

  private:
    std::atomic<unsigned> number = 0;
};

} // namespace detail
} // namespace haft

#endif
