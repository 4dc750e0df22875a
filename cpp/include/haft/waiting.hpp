// SPDX-License-Identifier: MIT
/*
 * Waits of a cooperative thread (thread.hpp): a list of threads that are woken in order, on which
 * every wait is built, and the result that a thread or a promise ends with.
 *
 * A waiting thread has an entry in a list, which lies in the frame of the function that waits. The
 * caller of such a function is a thread of run(), a task (haft/io_threads.hpp), or any other thread
 * of the system, for which a temporary record stands in.
 */
#ifndef HAFT_WAITING_HPP
#define HAFT_WAITING_HPP

#include "detail/default.hpp"
#include "detail/sharing.hpp"

#include <optional>
#include <string>

namespace haft {

class scheduled;
class waiting_list;

namespace detail {

class tasks;
struct mailbox;
struct outcome_base;

/* ---- The current thread ---- */

[[noreturn]] __attribute__((cold)) inline void throw_outside(const char *what) {
    throw std::logic_error(std::string("haft: ") + what + " was called outside of haft::run()");
}

/* The effects that suspend the current thread, a fiber, and that ask which thread is current. */
enum class parking { wait, ready, end };
struct HAFT_SHARED parked : effect<> {
    parking then;
};
struct HAFT_SHARED running : effect<scheduled *> {};

/* The defaults: outside of all schedulers there is no current thread, and no way to wait. */
inline scheduled *no_thread(void *, running *) {
    return nullptr;
}
inline void cannot_park(void *, parked *) {
    throw_outside("yield()");
}

/* The current thread, NULL outside of run(). */
HAFT_DETAIL_INLINE scheduled *here() {
    ensure_default<running, no_thread>();
    return perform(running{});
}
/* The current thread, for the function called `what`, which needs one. */
HAFT_DETAIL_INLINE scheduled &here(const char *what) {
    scheduled *thread = here();
    if (thread == nullptr)
        throw_outside(what);
    return *thread;
}
/* The scheduler of the threads that the function called `what` starts here. */
HAFT_DETAIL_INLINE scheduler &forking(const char *what);

/* Counted pointers. */
template <typename T>
class reference {
  public:
    reference() = default;
    explicit reference(T *to) : pointer(to) { pointer->references++; }
    reference(const reference &other) : pointer(other.pointer) {
        if (pointer != nullptr)
            pointer->references++;
    }
    template <std::derived_from<T> Other>
    reference(reference<Other> &&other) noexcept : pointer(other.release()) {}
    reference(reference &&other) noexcept : pointer(other.release()) {}
    reference &operator=(reference other) noexcept {
        std::swap(pointer, other.pointer);
        return *this;
    }
    ~reference() {
        if (pointer != nullptr && --pointer->references == 0)
            delete pointer;
    }
    T *operator->() const { return pointer; }
    T &operator*() const { return *pointer; }
    explicit operator bool() const { return pointer != nullptr; }
    T *release() noexcept { return std::exchange(pointer, nullptr); }
    /* Takes over a pointer that was counted already. */
    static reference adopt(T *counted) {
        reference made;
        made.pointer = counted;
        return made;
    }

  private:
    T *pointer = nullptr;
};

/* A thread's entry in a list. It lies in the frame of the function that waits, and removes itself
   when that frame is left, by unwinding too. A thread may wait in several lists. */
class waiter {
  public:
    waiter(waiting_list &to, scheduled &who);
    HAFT_DETAIL_INLINE ~waiter() { leave(); }
    waiter(const waiter &) = delete;
    waiter &operator=(const waiter &) = delete;

  private:
    void leave();
    void unlink(waiting_list &from);
    scheduled &thread;
    std::atomic<waiting_list *> list; /* NULL: woken, or the list is gone */
    waiter *before = nullptr;
    waiter *after = nullptr;
    friend class haft::waiting_list;
};

/* The caller of a function that waits: its thread, or a temporary record. */
class caller {
  public:
    explicit caller(const char *what);
    ~caller();
    caller(const caller &) = delete;
    caller &operator=(const caller &) = delete;
    scheduled &thread() const { return *self; }

  private:
    __attribute__((cold)) void make(const char *what);
    __attribute__((cold)) void forget();
    scheduled *self;
    thread_of<void> *made = nullptr;
};

} // namespace detail

/* ---- Waiting -------------------------------------------------------------------------------- */

/*
 * A queue of threads that wait for something, woken in the order in which they came. For building
 * other objects that threads wait for:
 *
 *     void lock() {
 *         while (locked)
 *             waiting.wait("lock()");
 *         locked = true;
 *     }
 *     void unlock() { locked = false, waiting.wake_one(); }
 *
 * A woken thread runs later, when its condition may have changed again, so it must check the
 * condition once more. A killed thread leaves the list. A list may be destroyed while threads wait
 * in it: they wait until they are killed, or until run() reports that nobody can go on.
 *
 * The list itself may be used from any thread of the system, and is destroyed when no other one
 * uses it, be it to wake or to leave. An object built with it as above is for the threads of one
 * run(), which run one at a time.
 */
class waiting_list {
  public:
    waiting_list() = default;
    waiting_list(const waiting_list &) = delete;
    waiting_list &operator=(const waiting_list &) = delete;
    ~waiting_list() {
        detail::locked by(guard);
        while (first != nullptr)
            std::exchange(first, first->after)->list.store(nullptr, std::memory_order_release);
    }

    /* Suspends the current thread until it is woken. `what` names the function that waits, for
       messages; it is not copied. Throws std::logic_error outside of run(). */
    HAFT_DETAIL_INLINE void wait(const char *what) { wait(detail::caller(what).thread(), what); }

    /* Makes one of the waiting threads ready, or all of them; they run later. False: no thread
       waits. */
    bool wake_one() {
        detail::locked by(guard);
        return wake_first();
    }
    void wake_all() {
        detail::locked by(guard);
        while (wake_first())
            continue;
    }
    bool empty() const {
        detail::locked by(guard);
        return first == nullptr;
    }

  private:
    void wait(scheduled &thread, const char *what);
    /* Waits, unless `comes` is true. If another thread of the system may end the wait, `comes` is
       called again once the thread is in the list. */
    template <typename Condition>
    HAFT_DETAIL_INLINE void wait_unless(const Condition &comes, scheduled &thread, const char *what,
                                        const scheduled *whom, bool idle);
    bool wake_first();
    mutable detail::lock guard; /* guards the object that contains the list, too */
    detail::waiter *first = nullptr;
    detail::waiter *last = nullptr;
    friend class detail::tasks;
    friend class detail::waiter;
    friend struct detail::outcome_base;
    friend struct detail::mailbox;
};

namespace detail {

/* ---- Results that are waited for ---- */

/* The end of a thread or promise, except for the value. */
struct outcome_base {
    enum class is { pending, value, failure, abandoned };

    counter references;
    published<is> now = is::pending;
    bool claimed = false;  /* a handle exists by which the result can be taken */
    bool expected = false; /* a thread waits */
    bool reports = false;  /* of a thread: a failure that no join can receive leaves run() */
    std::exception_ptr failure;
    waiting_list waiting;

    outcome_base() = default;
    outcome_base(const outcome_base &) = delete;
    outcome_base &operator=(const outcome_base &) = delete;
    virtual ~outcome_base() = default;
    virtual const scheduled *thread_behind() const { return nullptr; }
    [[noreturn]] virtual void throw_abandoned() const = 0;
    /* In a thread: calls its function. The result is stored but not yet visible. */
    virtual is call() { return is::value; }
    virtual void discard() noexcept {}

    void wait(const char *what);
    /* Throws std::logic_error if the current thread must not wait for this. */
    void refuse(const scheduled *self, const char *what) const;
    /* Makes the end visible, without waking waiters. True: a failure that no join can receive. */
    bool end(is how) {
        if (how == is::pending) {
            discard();
            how = is::abandoned;
        }
        locked by(guard());
        now = how;
        return how == is::failure && !claimed;
    }
    lock &guard() const { return waiting.guard; }
};

template <typename T>
struct outcome : outcome_base {
    using result = T;
    room<T> value;

    T take() {
        if (now == is::failure)
            std::rethrow_exception(failure);
        if (now == is::abandoned)
            throw_abandoned();
        return value.take();
    }
};

/* The right to the value of an outcome: what is in a handle. */
void lost_failure(std::exception_ptr failure);
template <typename Outcome>
class claim {
  public:
    claim() = default;
    explicit claim(reference<Outcome> to) : held(std::move(to)) {}
    claim(claim &&) noexcept = default;
    template <typename Other>
    claim(claim<Other> &&other) noexcept : held(std::move(other.held)) {}
    claim &operator=(claim other) noexcept {
        std::swap(held, other.held);
        return *this;
    }
    ~claim() {
        if (held && give_up())
            lost_failure(held->failure);
    }
    explicit operator bool() const { return static_cast<bool>(held); }
    bool done() const { return held && held->now != outcome_base::is::pending; }

    Outcome &get(const char *what) const {
        if (!held)
            throw std::logic_error(std::string("haft: ") + what +
                                   ": there is nothing to wait for, this was waited for before, or "
                                   "moved from, or never started");
        return *held;
    }
    /* Waits, and exchanges the right for the value. */
    HAFT_DETAIL_INLINE typename Outcome::result collect(const char *what) {
        reference<Outcome> kept(&get(what));
        kept->wait(what);
        held = {};
        kept->claimed = false;
        return kept->take();
    }

  private:
    /* True: a failure that no join can receive now. */
    bool give_up() {
        locked by(held->guard());
        held->claimed = false;
        return held->reports && held->now == outcome_base::is::failure;
    }
    reference<Outcome> held;
    template <typename>
    friend class claim;
};

} // namespace detail

} // namespace haft

#endif
