// SPDX-License-Identifier: MIT
/*
 * Cooperative threads: fork, yield, join and kill, under a scheduler of the program's choice
 * (§2.2).
 *
 *     int sum = haft::run([] {
 *         haft::thread<int> left = haft::fork([] { return walk(1); });
 *         haft::thread<int> right = haft::fork([] { return walk(2); });
 *         return left.join() + right.join();
 *     });
 *
 * run() makes the current code a scheduler, and its body the first thread. It returns what the body
 * returns once all threads have ended. Threads are fibers of one thread of the system: each runs
 * until it yields, waits, or ends, so that nothing needs a lock. They can yield and wait anywhere:
 * in nested handlers, in generators, in calls of C. A thread runs under the handlers around run(),
 * not under those around its fork().
 *
 * No failure gets lost:
 * - An exception that leaves a thread is thrown by join(). If the thread can no longer be joined,
 *   because its handle is gone, or if it is the body itself, the exception leaves run() at once.
 * - When no thread can go on, run() throws haft::deadlock, whose message says which thread waits
 *   for what.
 * - Threads that have not ended when run() is left by an exception, or is itself dropped, are
 *   unwound.
 *
 * A thread can be killed through its handle: its stack is unwound, destructors run, then kill()
 * returns. Killing is not an exception, and catch-alls have to pass it on (haft.hpp). Destructors
 * may wait, but killing a thread while it waits in a destructor ends the program, because C++
 * destructors cannot be unwound.
 *
 * A thread waits by one effect that suspends it; yielding and waking allocate nothing. All waits
 * are built on waiting_list, those of async.hpp and actor.hpp, too; programs may build others on
 * it. Schedulers nest: a thread may call run(). While all inner threads wait for something outside,
 * that thread waits.
 *
 * All of this is confined to one thread of the system: each one that calls run() has threads of its
 * own, and others must not use their handles, futures and addresses. In a program that includes
 * haft/io_threads.hpp of libhaft-io, threads are tasks wherever tasks run, and what they wait for
 * may be used from any thread of the system.
 *
 *   thread_of<T>: one for a thread, counted by: its handle, its waiters, and its scheduler until
 *   it is over and no policy has it
 *   | outcome: the result, its waiters | scheduled: phase, resumption, name, priority |
 *
 *   scheduler    runs threads: what handles, fork() and waiting lists need of it
 *   | run_loop   the loop of run(): threads are fibers that it resumes
 *   | tasks      in haft/io_threads.hpp: threads are tasks
 *   host         tells run() and fork() that the caller is a task
 */
#ifndef HAFT_THREAD_HPP
#define HAFT_THREAD_HPP

#include "../haft.hpp"
#include "detail/default.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace haft {

/* Options for fork(). */
struct thread_options {
    std::string name = {};      /* for messages */
    int priority = 0;           /* for by_priority: the highest runs first */
    std::size_t stack_size = 0; /* 0: haft_stack_size() */
};

class scheduled;
class waiting_list;

/* Thrown when all threads wait and none of these waits can end. */
struct HAFT_SHARED deadlock : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/* Thrown by join() when the thread was killed, or had not ended when its run() was left. */
struct HAFT_SHARED thread_killed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace detail {

class scheduler;
class run_loop;
class tasks;
class thread_list;
struct outcome_base;
struct mailbox;
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

[[noreturn]] __attribute__((cold)) inline void throw_outside(const char *what) {
    throw std::logic_error(std::string("haft: ") + what + " was called outside of haft::run()");
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

/* ---- The current thread ---- */

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
    void unlink();
    scheduled &thread;
    waiting_list *list; /* NULL: the list is gone */
    bool linked = true;
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
 * condition once more. A killed thread leaves the list. Threads in a list that is destroyed wait
 * forever.
 *
 * The list itself may be used from any thread of the system. What is built with it as above is for
 * the threads of one run(), which run one at a time.
 */
class waiting_list {
  public:
    waiting_list() = default;
    waiting_list(const waiting_list &) = delete;
    waiting_list &operator=(const waiting_list &) = delete;
    ~waiting_list() {
        detail::locked by(guard);
        for (; first != nullptr; first->list = nullptr, first->unlink())
            continue;
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
       asked again once the thread is in the list. */
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
    /* Of a thread: its function. The result is stored but not yet visible. */
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

/* ---- Scheduling policies -------------------------------------------------------------------- */

/* A thread as policies see it. */
class scheduled {
  public:
    explicit scheduled(detail::outcome_base &of) : outcome(of) {}
    scheduled(const scheduled &) = delete;
    scheduled &operator=(const scheduled &) = delete;

    unsigned long number() const { return serial; } /* 1: the body of run() */
    std::string_view name() const { return label; }
    int priority() const { return rank; }
    std::string description() const {
        return "thread " + std::to_string(serial) + (label.empty() ? "" : " '" + label + "'");
    }

    scheduled *next = nullptr; /* for the policy that has the thread, to link it into lists */

  private:
    enum class phase { ready, running, waiting, unwinding, finished };

    detail::outcome_base &outcome;
    detail::scheduler *home = nullptr; /* of a fiber, as long as the thread lives; of a task, to the
                                          end */
    std::shared_ptr<void> task;        /* if it is one */
    std::atomic<bool> listed = false;  /* of a task: has put itself into a list and was not woken
                                          yet */
    resumption<void()> suspended;
    /* its handler; of a fiber, `home` */
    std::optional<instance<detail::parked, detail::running>> place;
    phase now = phase::ready;
    detail::outcome_base::is ending = detail::outcome_base::is::pending; /* how it has ended */
    bool queued = false;                                                 /* the policy has it */
    bool unwinds = false;   /* this thread only unwinds others */
    bool idle = false;      /* waits without keeping run() from ending */
    const char *waits = ""; /* for messages: the function that waits */
    const scheduled *whom = nullptr;
    /* the inner scheduler that waits in this thread */
    const detail::run_loop *carries = nullptr;
    scheduled *older = nullptr, *newer = nullptr; /* in its thread_list */
    unsigned long serial = 0;
    int rank = 0;
    std::string label;

    friend class detail::scheduler;
    friend class detail::run_loop;
    friend class detail::tasks;
    friend class detail::thread_list;
    friend class detail::waiter;
    friend class waiting_list;
    friend struct detail::outcome_base;
    template <typename>
    friend class thread;
};

/*
 * A policy decides which thread runs next. push() is given a thread that is ready; pop() takes one
 * out, or returns NULL if there is none. Neither may yield or wait; an exception of theirs leaves
 * run(). A thread that was killed meanwhile may still be popped, and is skipped.
 */
template <typename Policy>
concept scheduling_policy = requires(Policy &policy, scheduled &thread) {
    policy.push(thread);
    { policy.pop() } -> std::same_as<scheduled *>;
};

/* Runs each thread in turn. */
class round_robin {
  public:
    void push(scheduled &thread) {
        thread.next = nullptr;
        (first == nullptr ? first : last->next) = &thread;
        last = &thread;
    }
    scheduled *pop() { return first == nullptr ? nullptr : std::exchange(first, first->next); }

  private:
    scheduled *first = nullptr;
    scheduled *last = nullptr;
};

/* Runs the thread that became ready last. Unfair: a thread that yields continues itself. */
class last_in_first_out {
  public:
    void push(scheduled &thread) { thread.next = std::exchange(top, &thread); }
    scheduled *pop() { return top == nullptr ? nullptr : std::exchange(top, top->next); }

  private:
    scheduled *top = nullptr;
};

/* Runs any thread, chosen by a random generator that is the same on all systems: for tests that try
   many orders. */
class random_order {
  public:
    explicit random_order(std::uint64_t seed) : state(seed) {}
    void push(scheduled &thread) { ready.push_back(&thread); }
    scheduled *pop() {
        if (ready.empty())
            return nullptr;
        std::swap(ready[static_cast<std::size_t>(draw() % ready.size())], ready.back());
        scheduled *chosen = ready.back();
        ready.pop_back();
        return chosen;
    }

  private:
    /* splitmix64 */
    std::uint64_t draw() {
        std::uint64_t bits = state += 0x9e3779b97f4a7c15u;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        return bits ^ (bits >> 31);
    }
    std::uint64_t state;
    std::vector<scheduled *> ready;
};

/* Runs the thread of the highest priority; equal ones take turns. */
class by_priority {
  public:
    void push(scheduled &thread) {
        ready.push_back({thread.priority(), turn++, &thread});
        std::push_heap(ready.begin(), ready.end());
    }
    scheduled *pop() {
        if (ready.empty())
            return nullptr;
        std::pop_heap(ready.begin(), ready.end());
        scheduled *chosen = ready.back().thread;
        ready.pop_back();
        return chosen;
    }

  private:
    struct entry {
        int priority;
        std::uint64_t turn;
        scheduled *thread;
        bool operator<(const entry &other) const {
            return priority != other.priority ? priority < other.priority : turn > other.turn;
        }
    };
    std::vector<entry> ready;
    std::uint64_t turn = 0;
};

/* ---- The scheduler -------------------------------------------------------------------------- */

namespace detail {

template <typename T>
struct thread_of : outcome<T> {
    scheduled thread{*this};

    const scheduled *thread_behind() const override { return &thread; }
    void throw_abandoned() const override {
        throw thread_killed("haft: " + thread.description() + " was killed");
    }
};

template <typename T, typename F>
struct thread_by final : thread_of<T> {
    std::optional<F> function; /* until it is called */
    explicit thread_by(F &&body) : function(std::move(body)) {}

    outcome_base::is call() override {
        F body(std::move(*function)); /* its captures are destroyed with the thread */
        function.reset();
        try {
            this->value.fill([&]() -> T { return body(); });
            return outcome_base::is::value;
        } catch (...) {
            this->failure = caught_exception();
            return outcome_base::is::failure;
        }
    }
    void discard() noexcept override { function.reset(); }
};

/* Explains why run() is left, if the program ends during that because a thread waits in a
   destructor and cannot be unwound: then the deadlock exception reaches no handler. */
class last_words {
  public:
    explicit last_words(const std::string &text) {
        if (text.empty())
            return;
        words = text.c_str();
        std::lock_guard guard(mutex);
        if (users++ == 0)
            before = haft_set_error_handler(&say);
    }
    ~last_words() {
        if (words == nullptr)
            return;
        words = nullptr;
        std::lock_guard guard(mutex);
        if (--users != 0)
            return;
        haft_error_handler_t *now = haft_set_error_handler(before);
        if (now != &say) /* the program has set a handler of its own */
            haft_set_error_handler(now);
    }
    last_words(const last_words &) = delete;
    last_words &operator=(const last_words &) = delete;

  private:
    static void say(const haft_error_t *error) {
        if (error->code == HAFT_ERROR_UNWINDING_STOPPED && words != nullptr)
            std::fprintf(stderr, "%s\n", words);
        if (haft_error_handler_t *handler = before)
            handler(error);
        else
            std::fprintf(stderr, "haft: %s\n", error->message);
    }

    static inline thread_local const char *words = nullptr;
    static inline std::mutex mutex;
    static inline unsigned users = 0;
    static inline std::atomic<haft_error_handler_t *> before = nullptr;
};

/* The threads of a run, the oldest first. */
class thread_list {
  public:
    void add(scheduled &thread) {
        thread.older = newest;
        (newest == nullptr ? oldest : newest->newer) = &thread;
        newest = &thread;
    }
    void remove(scheduled &thread) {
        (thread.older == nullptr ? oldest : thread.older->newer) = thread.newer;
        (thread.newer == nullptr ? newest : thread.newer->older) = thread.older;
    }
    /* nullptr: there is none. */
    scheduled *first() const { return oldest; }
    scheduled *first(bool (*is)(const scheduled &)) const {
        scheduled *thread = oldest;
        while (thread != nullptr && !is(*thread))
            thread = thread->newer;
        return thread;
    }

  private:
    scheduled *oldest = nullptr;
    scheduled *newest = nullptr;
};

/* Runs threads. */
class scheduler {
  public:
    scheduler() = default;
    scheduler(const scheduler &) = delete;
    scheduler &operator=(const scheduler &) = delete;

    static scheduler &of(const scheduled &thread) { return *thread.home; }

    template <typename F, typename T = std::invoke_result_t<F &>>
    reference<thread_of<T>> start(thread_options &&options, F function, bool claimed = false) {
        reference<thread_of<T>> made = make(std::move(function));
        made->claimed = claimed;
        launch(made->thread, std::move(options));
        return made;
    }
    template <typename F, typename T = std::invoke_result_t<F &>>
    static reference<thread_of<T>> make(F function) {
        reference<thread_of<T>> made(new thread_by<T, F>(std::move(function)));
        made->reports = true;
        return made;
    }
    virtual void launch(scheduled &thread, thread_options &&options) = 0;

    /* Runs the first thread, and returns when all have ended. */
    virtual void loop(scheduled &first) = 0;

    /* Makes the thread ready if it waits. False: it does not wait. */
    virtual bool wake(scheduled &thread) = 0;
    /* Unwinds a thread. Does not return if the caller is that thread or runs inside it. */
    static void kill(scheduled &thread) {
        if (scheduler *home = thread.home)
            home->end(thread);
    }
    /* Inlined, like its callers: the processor mispredicts every return after a switch. */
    static HAFT_DETAIL_INLINE void suspend(scheduled &thread, const char *what,
                                           const scheduled *whom, bool idle) {
        thread.waits = what;
        thread.whom = whom;
        thread.idle = idle;
        if (shared() && thread.task != nullptr)
            host::installed.load(std::memory_order_acquire)->park(thread);
        else
            perform(parked{{}, parking::wait});
        thread.idle = false;
    }
    virtual void lose(std::exception_ptr failure) = 0;

  protected:
    ~scheduler() = default;

  private:
    virtual void end(scheduled &thread) = 0;
};

/* The handler of the threads of one run(), and its loop, without the policy. */
class run_loop : public scheduler, public handler<parked, running> {
  protected:
    using phase = scheduled::phase;

  public:
    scheduled *operator()(running) noexcept { return current; }
    void operator()(parked request, resumption<void()> k) {
        current->suspended = std::move(k);
        current->now = phase::waiting;
        if (request.then == parking::ready)
            make_ready(*current);
        else if (request.then == parking::end)
            ending = current;
    }

    void launch(scheduled &thread, thread_options &&options) override {
        prepare(thread, std::move(options));
        make_ready(thread);
    }

    /* Runs threads until all have ended, or until the rest only waits for messages. */
    void loop(scheduled &) override {
        for (;;) {
            throw_lost();
            if (scheduled *next = next_ready())
                run_one(*next);
            else if (none(&run_loop::keeps_running))
                break;
            else
                wait_outside();
        }
        unwind_all();
        throw_lost();
    }

    bool wake(scheduled &thread) final {
        if (thread.now != phase::waiting)
            return false;
        make_ready(thread);
        return true;
    }

    void lose(std::exception_ptr failure) override {
        if (lost == nullptr)
            lost = std::move(failure);
    }

  protected:
    ~run_loop() = default;

    /* Called by the destructor of the owner of the policy, when run() is left early. */
    void leave() noexcept {
        last_words reason(deadlocked);
        unwind_all();
        while (scheduled *thread = members.first())
            forget(*thread);
    }

  private:
    virtual void push(scheduled &thread) = 0;
    virtual scheduled *pop() = 0;

    /* The body of every thread, so that handling threads is compiled once. */
    struct entering {
        scheduled *thread;
        void operator()(instance<parked, running> at) const {
            thread->place = at;
            thread->ending = thread->outcome.call();
        }
    };

    void end(scheduled &thread) override {
        if (thread.now == phase::running)
            thread.place->perform(parked{{}, parking::end});
        else if (unwindable(thread))
            unwind(thread);
    }

    void prepare(scheduled &thread, thread_options &&options) {
        thread.label = std::move(options.name);
        thread.rank = options.priority;
        thread.serial = ++threads;
        haft_fiber_options_t stack = {};
        stack.stack_size = options.stack_size;
        stack.name = thread.label.empty() ? nullptr : thread.label.c_str();
        thread.suspended = wrap(entering{&thread}).on(stack).with(*this);
        enlist(thread);
    }

    /* Destructors wake threads, too, so an exception of the policy is kept for run() to throw. */
    void make_ready(scheduled &thread) noexcept {
        thread.now = phase::ready;
        if (!leaving)
            try {
                push(thread);
                thread.queued = true;
            } catch (...) {
                lose(caught_exception());
            }
        stir();
    }
    /* Tells the scheduler, which waits in a thread of another one, that something has changed. */
    void stir() {
        if (carrier != nullptr)
            of(*carrier).wake(*carrier);
    }

    scheduled *next_ready() {
        while (scheduled *thread = pop()) {
            if (!thread->queued)
                throw std::logic_error("haft: the scheduling policy has popped " +
                                       thread->description() + ", which it was not given");
            thread->queued = false;
            if (thread->now == phase::ready)
                return thread;
            if (thread->now == phase::finished)
                forget(*thread);
        }
        return nullptr;
    }

    void run_one(scheduled &thread) {
        {
            struct turn {
                run_loop &self;
                scheduled &thread;
                ~turn() {
                    self.current = nullptr;
                    if (thread.now == phase::running)
                        self.finish(thread);
                }
            } guard{*this, thread};
            thread.now = phase::running;
            current = &thread;
            std::move(thread.suspended).resume();
        }
        if (scheduled *killed = std::exchange(ending, nullptr))
            run_unwinding([killed] { unwind(*killed); });
    }
    template <typename F>
    void run_unwinding(F function) {
        auto made = make(std::move(function));
        made->thread.unwinds = true;
        prepare(made->thread, {.name = "unwinding"});
        run_one(made->thread);
    }

    void finish(scheduled &thread) {
        outcome_base &outcome = thread.outcome;
        thread.now = phase::finished;
        if (outcome.end(thread.ending))
            lose(outcome.failure);
        outcome.waiting.wake_all();
        stir();
        if (!thread.queued)
            forget(thread);
    }

    /* ---- Unwinding ---- */

    static bool unwindable(const scheduled &thread) {
        return thread.now == phase::ready || thread.now == phase::waiting;
    }
    static void unwind(scheduled &thread) {
        struct unwinding {
            scheduled &thread;
            ~unwinding() { static_cast<run_loop *>(thread.home)->finish(thread); }
        } guard{thread};
        thread.now = phase::unwinding;
        std::move(thread.suspended).drop();
    }

    /* Unwinding is done by extra threads: a destructor may wait, and then another extra thread
       unwinds the rest. The policy takes no part. */
    void unwind_all() {
        leaving = true;
        empty_policy();
        for (;;) {
            if (first(&run_loop::to_unwind) != nullptr) {
                run_unwinding([this] {
                    while (scheduled *left = first(&run_loop::to_unwind))
                        unwind(*left);
                });
            } else if (scheduled *ready = first(&run_loop::is_ready)) {
                run_one(*ready);
            } else {
                break;
            }
        }
        if (!none(&run_loop::alive))
            throw_deadlock("haft: deadlock in destructors of threads that are unwound.");
    }

    void empty_policy() noexcept {
        try {
            for (scheduled *thread = pop(); thread != nullptr && thread->queued; thread = pop()) {
                thread->queued = false;
                if (thread->now == phase::finished)
                    forget(*thread);
            }
        } catch (...) {
            lose(caught_exception());
        }
    }

    /* ---- The list of threads ---- */

    void enlist(scheduled &thread) {
        thread.outcome.references++;
        thread.home = this;
        members.add(thread);
    }
    void forget(scheduled &thread) {
        members.remove(thread);
        thread.home = nullptr;
        reference<outcome_base>::adopt(&thread.outcome);
    }

    using property = bool (*)(const scheduled &);
    static bool alive(const scheduled &thread) { return thread.now != phase::finished; }
    static bool keeps_running(const scheduled &thread) { return alive(thread) && !thread.idle; }
    static bool is_ready(const scheduled &thread) { return thread.now == phase::ready; }
    static bool to_unwind(const scheduled &thread) { return unwindable(thread) && !thread.unwinds; }
    scheduled *first(property is) const { return members.first(is); }
    bool none(property is) const { return first(is) == nullptr; }

    /* ---- When no thread can go on ---- */

    /* Inside a thread of another scheduler: that scheduler may be able to go on. */
    void wait_outside() {
        scheduled *thread = here();
        if (thread == nullptr)
            throw_deadlock("haft: deadlock: no thread can go on.");
        struct carrying {
            run_loop &self;
            ~carrying() { std::exchange(self.carrier, nullptr)->carries = nullptr; }
        } guard{*this};
        carrier = thread;
        carrier->carries = this;
        suspend(*carrier, "run()", nullptr, false);
    }

    std::string waiting_threads(const std::string &margin) const {
        std::string text;
        int room = 20;
        for (scheduled *thread = members.first(); thread != nullptr; thread = thread->newer) {
            if (!alive(*thread))
                continue;
            if (room-- == 0)
                return text + margin + "...";
            text += margin + thread->description();
            if (thread->now == phase::waiting)
                text += std::string(" waits in ") + thread->waits +
                        (thread->whom == nullptr ? "" : " for " + thread->whom->description());
            else if (thread->now == phase::unwinding)
                text += " is being unwound";
            else
                text += " is ready, but the scheduling policy does not pop it";
            if (thread->carries != nullptr)
                text += thread->carries->waiting_threads(margin + "  ");
        }
        return text;
    }
    [[noreturn]] void throw_deadlock(const char *title) {
        deadlocked = title + waiting_threads("\n  ");
        throw deadlock(deadlocked);
    }
    void throw_lost() {
        if (__builtin_expect(lost != nullptr, false))
            std::rethrow_exception(std::exchange(lost, nullptr));
    }

    scheduled *current = nullptr; /* the running thread */
    scheduled *ending = nullptr;  /* the thread that has killed itself */
    scheduled *carrier = nullptr; /* the thread of another scheduler in which this one waits */
    thread_list members;
    unsigned long threads = 0;
    bool leaving = false;    /* the end: threads are unwound */
    std::exception_ptr lost; /* an exception of a thread that can no longer be joined */
    std::string deadlocked;  /* the message of the deadlock by which run() is left */
};

template <typename Policy>
class run_loop_by final : public run_loop {
  public:
    explicit run_loop_by(Policy &by) : policy(by) {}
    ~run_loop_by() { leave(); }

  private:
    void push(scheduled &thread) override { policy.push(thread); }
    scheduled *pop() override { return policy.pop(); }
    Policy &policy;
};

template <typename Policy>
struct ordering_by final : ordering {
    explicit ordering_by(Policy &by) : policy(by) {}
    void push(scheduled &thread) override { policy.push(thread); }
    scheduled *pop() override { return policy.pop(); }
    Policy &policy;
};

HAFT_DETAIL_INLINE scheduler *forking_or_null() {
    if (scheduled *thread = here())
        return &scheduler::of(*thread);
    host *other = host::installed.load(std::memory_order_acquire);
    return other != nullptr ? other->forking() : nullptr;
}
HAFT_DETAIL_INLINE scheduler &forking(const char *what) {
    scheduler *found = forking_or_null();
    if (found == nullptr)
        throw_outside(what);
    return *found;
}

inline void lost_failure(std::exception_ptr failure) {
    if (scheduler *found = forking_or_null())
        found->lose(std::move(failure));
}

HAFT_DETAIL_INLINE caller::caller(const char *what) : self(here()) {
    if (self == nullptr)
        make(what);
}
HAFT_DETAIL_INLINE caller::~caller() {
    if (__builtin_expect(made != nullptr, false))
        forget();
}
inline void caller::forget() {
    delete made;
}
inline void caller::make(const char *what) {
    host *other = host::installed.load(std::memory_order_acquire);
    if (other == nullptr)
        throw_outside(what);
    made = other->make_waiting();
    self = &made->thread;
}

HAFT_DETAIL_INLINE waiter::waiter(waiting_list &to, scheduled &who) : thread(who), list(&to) {
    if (shared())
        thread.listed.store(true, std::memory_order_relaxed);
    locked by(to.guard);
    before = to.last;
    (before == nullptr ? to.first : before->after) = this;
    to.last = this;
}
HAFT_DETAIL_INLINE void waiter::unlink() {
    waiting_list &from = *list;
    (before == nullptr ? from.first : before->after) = after;
    (after == nullptr ? from.last : after->before) = before;
    linked = false;
}
HAFT_DETAIL_INLINE void waiter::leave() {
    if (list == nullptr)
        return;
    locked by(list->guard);
    if (linked)
        unlink();
}

inline void outcome_base::refuse(const scheduled *self, const char *what) const {
    using namespace std::string_literals;
    if (now == is::pending && self != nullptr && self == thread_behind())
        throw std::logic_error("haft: "s + what + ": " + self->description() +
                               " cannot wait for itself");
    if (expected)
        throw std::logic_error("haft: "s + what + ": another thread waits for this already");
}

HAFT_DETAIL_INLINE void outcome_base::wait(const char *what) {
    if (now != is::pending) {
        locked by(guard());
        refuse(nullptr, what);
        return;
    }
    caller self(what);
    struct expecting {
        outcome_base &of;
        explicit expecting(outcome_base &whom, const scheduled *self, const char *what) : of(whom) {
            locked by(of.guard());
            of.refuse(self, what);
            of.expected = true;
        }
        ~expecting() {
            locked by(of.guard());
            of.expected = false;
        }
    } guard(*this, &self.thread(), what);
    auto has_come = [this] { return now != is::pending; };
    while (now == is::pending)
        waiting.wait_unless(has_come, self.thread(), what, thread_behind(), false);
}

} // namespace detail

HAFT_DETAIL_INLINE void waiting_list::wait(scheduled &thread, const char *what) {
    detail::waiter here(*this, thread);
    detail::scheduler::suspend(thread, what, nullptr, false);
}

template <typename Condition>
HAFT_DETAIL_INLINE void waiting_list::wait_unless(const Condition &comes, scheduled &thread,
                                                  const char *what, const scheduled *whom,
                                                  bool idle) {
    detail::waiter here(*this, thread);
    if (detail::shared() && comes())
        return;
    detail::scheduler::suspend(thread, what, whom, idle);
}

/* Under the guard, which keeps the waiter from leaving. */
inline bool waiting_list::wake_first() {
    while (first != nullptr) {
        scheduled &thread = first->thread;
        first->unlink();
        if (detail::scheduler::of(thread).wake(thread))
            return true;
    }
    return false;
}

/* ---- Threads -------------------------------------------------------------------------------- */

/*
 * The handle of a thread whose function returns a T: void, a reference, or any type that can be
 * moved. Move-only. A thread whose handle is destroyed runs on, and its result is dropped.
 */
template <typename T = void>
class thread {
  public:
    /* No thread. */
    thread() = default;

    /*
     * Waits until the thread has ended, and returns its result or throws its exception;
     * thread_killed if it was killed. Afterwards the handle has no thread any more. join() may be
     * called after the end of run(). It throws std::logic_error if the handle has no thread, in the
     * thread itself, while another thread waits in join() for it, and if it would have to wait
     * outside of run().
     */
    HAFT_DETAIL_INLINE T join() { return held.collect("join()"); }

    /* Waits until the thread has ended, and leaves its result to join(): for destructors. Throws
       std::logic_error as join() does, and never the thread's exception. */
    void wait() const {
        detail::reference<detail::thread_of<T>> kept(&held.get("wait()"));
        kept->wait("wait()");
    }

    /*
     * Unwinds the thread, unless it has ended. The thread can still be joined afterwards. A thread
     * may kill itself, or a thread that it runs inside (with nested schedulers); then kill() does
     * not return. Throws std::logic_error if the handle has no thread.
     */
    void kill() { detail::scheduler::kill(held.get("kill()").thread); }

    /* Whether there is a thread to join. */
    bool joinable() const { return static_cast<bool>(held); }
    /* Whether join() would return without waiting. */
    bool finished() const { return held.done(); }

  private:
    explicit thread(detail::reference<detail::thread_of<T>> made) : held(std::move(made)) {}
    detail::claim<detail::thread_of<T>> held;

    template <typename F>
    friend thread<std::invoke_result_t<F &>> fork(thread_options, F);
    template <typename>
    friend class future;
};

/*
 * Starts a thread that calls `function`. The new thread becomes ready, and the caller goes on.
 * Throws std::bad_alloc, or std::logic_error outside of run().
 */
template <typename F>
thread<std::invoke_result_t<F &>> fork(thread_options options, F function) {
    return thread<std::invoke_result_t<F &>>(
        detail::forking("fork()").start(std::move(options), std::move(function), true));
}
template <std::invocable F>
thread<std::invoke_result_t<F &>> fork(F function) {
    return fork(thread_options{}, std::move(function));
}

/* Lets the other threads that are ready run. Throws std::logic_error outside of run(). */
HAFT_DETAIL_INLINE void yield() {
    if (detail::shared() && detail::host::installed.load(std::memory_order_acquire)->yield())
        return;
    detail::ensure_default<detail::parked, detail::cannot_park>();
    perform(detail::parked{{}, detail::parking::ready});
}

/* The current thread: its number and name. Throws std::logic_error outside of run(). */
inline const scheduled &current_thread() {
    return detail::here("current_thread()");
}

/*
 * Runs `body` and all threads that it forks until they have ended, under a policy (a temporary, or
 * an lvalue, which is referred to), and returns the result of `body`. Throws an exception of
 * `body`, deadlock, or an exception of a thread that can no longer be joined. Actors that only wait
 * for messages are unwound at the end.
 */
template <scheduling_policy Policy, typename Body>
std::invoke_result_t<Body &> run(Policy &&policy, Body body) {
    using order = std::remove_reference_t<Policy>;
    auto run_by = [&](detail::scheduler &scheduler) {
        auto main = scheduler.start({.name = "main"}, std::move(body));
        scheduler.loop(main->thread);
        return main;
    };
    if (detail::host *other = detail::host::installed.load(std::memory_order_acquire)) {
        detail::ordering_by<order> by(policy);
        if (std::shared_ptr<detail::scheduler> tasks = other->make_run(by))
            return run_by(*tasks)->take();
    }
    detail::run_loop_by<order> loop(policy);
    return run_by(loop)->take();
}
template <std::invocable Body>
std::invoke_result_t<Body &> run(Body body) {
    return run(round_robin(), std::move(body));
}

} // namespace haft

#endif
