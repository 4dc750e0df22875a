// SPDX-License-Identifier: MIT
/*
 * Cooperative threads: fork, yield, join and kill, under a scheduler that can be chosen (§2.2).
 *
 *     int sum = haft::run([] {
 *         haft::thread<int> left = haft::fork([] { return walk(1); });
 *         haft::thread<int> right = haft::fork([] { return walk(2); });
 *         return left.join() + right.join();
 *     });
 *
 * run() makes the current code a scheduler, and its body the first thread. It returns what the body
 * returns once all threads have ended. Threads are fibers of one thread of the system: each runs
 * until it yields, waits, or ends, so that nothing needs a lock. They can do so anywhere: in nested
 * handlers, in generators, in calls of C. A thread runs under the handlers around run(), not under
 * those around its fork().
 *
 * Nothing gets lost:
 * - An exception that leaves a thread is thrown by join(). If nobody can join the thread any more,
 *   because the handle is gone, or if the thread is the body itself, the exception leaves run() at
 *   once.
 * - When no thread can go on, run() throws haft::deadlock, which says who waits for what.
 * - Threads that are left, because run() is left by an exception or is itself dropped, are unwound.
 *
 * Whoever has forked a thread may kill it: its stack is unwound, destructors run, then kill()
 * returns. Killing is not an exception, and catch-alls have to pass it on (haft.hpp). Destructors
 * may wait, but killing a thread while it waits in a destructor ends the program, because C++
 * destructors cannot be unwound.
 *
 * One effect suspends a thread that waits; yielding or waking allocates nothing. All waits are
 * built on waiting_list, those of async.hpp and actor.hpp, too; programs may build others on it.
 * Schedulers nest: a thread may call run(). While all inner threads wait for something outside,
 * that thread waits.
 *
 * All of this is for one thread of the system: each one that calls run() has threads of its own,
 * and others must not use their handles, futures and addresses.
 *
 *   thread_of<T>: one for a thread, counted by: its handle, whoever waits for it, and its scheduler
 *   until it is over and no policy has it
 *   | outcome: the result, who waits for it | scheduled: phase, resumption, name, priority |
 */
#ifndef HAFT_THREAD_HPP
#define HAFT_THREAD_HPP

#include "../haft.hpp"
#include "detail/default.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace haft {

/* What fork() may be told of a thread. */
struct thread_options {
    std::string name = {};      /* for messages */
    int priority = 0;           /* for by_priority: the highest runs first */
    std::size_t stack_size = 0; /* 0: haft_stack_size() */
};

class scheduled;
class waiting_list;

/* No thread can go on, and what they wait for cannot come. */
struct HAFT_SHARED deadlock : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/* What join() throws when the thread was killed, or was left when its run() ended. */
struct HAFT_SHARED thread_killed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace detail {

class scheduler;
struct outcome_base;
struct mailbox;
template <typename T>
struct thread_of;

/* The effects: of suspending the current thread, and of asking for it. */
enum class parking { wait, ready, end };
struct HAFT_SHARED parked : effect<> {
    parking then;
};
struct HAFT_SHARED running : effect<scheduled *> {};

/* Outside of all schedulers there is no thread, and nothing to wait with. */
inline scheduled *no_thread(void *, running *) {
    return nullptr;
}
inline void cannot_park(void *, parked *) {
    throw std::logic_error("haft: yield() was called outside of haft::run()");
}

/* The current thread, NULL outside of run(). */
inline scheduled *here() {
    ensure_default<running, no_thread>();
    return perform(running{});
}
/* The same for the function called `what`, which needs one. */
inline scheduled &here(const char *what) {
    scheduled *thread = here();
    if (thread == nullptr)
        throw std::logic_error(std::string("haft: ") + what + " was called outside of haft::run()");
    return *thread;
}

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
    /* Of one that was counted before. */
    static reference adopt(T *counted) {
        reference made;
        made.pointer = counted;
        return made;
    }

  private:
    T *pointer = nullptr;
};

/* A thread in a list: lies in the frame of the function that waits, and is gone when that is left,
   by unwinding too. A thread may wait in several lists. */
class waiter {
  public:
    waiter(waiting_list &to, scheduled &who);
    ~waiter() { leave(); }
    waiter(const waiter &) = delete;
    waiter &operator=(const waiter &) = delete;

  private:
    void leave();
    scheduled &thread;
    waiting_list *list;
    waiter *before = nullptr;
    waiter *after = nullptr;
    friend class haft::waiting_list;
};

} // namespace detail

/* ---- Waiting -------------------------------------------------------------------------------- */

/*
 * Threads that wait for something, the first come first; to build what they may wait for:
 *
 *     void lock() {
 *         while (locked)
 *             waiting.wait("lock()");
 *         locked = true;
 *     }
 *     void unlock() { locked = false, waiting.wake_one(); }
 *
 * A thread that was woken finds the world as it is when it runs: it looks at its condition again.
 * Threads that are killed leave the list. Those of a list that is destroyed wait for ever.
 */
class waiting_list {
  public:
    waiting_list() = default;
    waiting_list(const waiting_list &) = delete;
    waiting_list &operator=(const waiting_list &) = delete;
    ~waiting_list() {
        while (first != nullptr)
            first->leave();
    }

    /* Suspends the current thread until it is woken. `what`, for messages: the function that waits;
       it is not copied. Throws std::logic_error outside of run(). */
    void wait(const char *what) { wait(detail::here(what), what); }

    /* Lets one, or all of those that wait now, go on. Not at once: they get ready. False: nobody
       waits. */
    bool wake_one();
    void wake_all() {
        while (wake_one())
            continue;
    }
    bool empty() const { return first == nullptr; }

  private:
    void wait(scheduled &thread, const char *what, const scheduled *whom = nullptr,
              bool idle = false);
    detail::waiter *first = nullptr;
    detail::waiter *last = nullptr;
    friend class detail::waiter;
    friend struct detail::outcome_base;
    friend struct detail::mailbox;
};

namespace detail {

/* ---- Results that are waited for ---- */

/* What a thread or promise ends with, but for the value. */
struct outcome_base {
    enum class is { pending, value, failure, abandoned };

    unsigned references = 0;
    is now = is::pending;
    bool claimed = false;  /* there is a handle by which somebody may get it */
    bool expected = false; /* somebody waits */
    bool reports = false;  /* of a thread: a failure that nobody can see leaves run() */
    std::exception_ptr failure;
    waiting_list waiting;

    outcome_base() = default;
    outcome_base(const outcome_base &) = delete;
    outcome_base &operator=(const outcome_base &) = delete;
    virtual ~outcome_base() = default;
    virtual const scheduled *thread_behind() const { return nullptr; }
    [[noreturn]] virtual void throw_abandoned() const = 0;
    /* Of a thread: its function. */
    virtual void call() {}
    virtual void discard() noexcept {}

    void wait(const char *what);
    /* Throws std::logic_error if the current thread must not wait for this. */
    void refuse(const scheduled *self, const char *what) const;
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
    explicit claim(reference<Outcome> to) : held(std::move(to)) { held->claimed = true; }
    claim(claim &&) noexcept = default;
    template <typename Other>
    claim(claim<Other> &&other) noexcept : held(std::move(other.held)) {}
    claim &operator=(claim other) noexcept {
        std::swap(held, other.held);
        return *this;
    }
    ~claim() {
        if (!held)
            return;
        held->claimed = false;
        if (held->reports && held->now == outcome_base::is::failure)
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
    /* Waits, and gives up the right for the value. */
    typename Outcome::result collect(const char *what) {
        reference<Outcome> kept(&get(what));
        kept->wait(what);
        held = {};
        kept->claimed = false;
        return kept->take();
    }

  private:
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

    scheduled *next = nullptr; /* for the policy that has the thread, to make lists of */

  private:
    enum class phase { ready, running, waiting, unwinding, finished };

    detail::outcome_base &outcome;
    detail::scheduler *home = nullptr; /* as long as it lives */
    resumption<void()> suspended;
    std::optional<instance<detail::parked, detail::running>> place; /* its handler: home, there */
    phase now = phase::ready;
    bool queued = false;    /* the policy has it */
    bool unwinds = false;   /* it is there to unwind others */
    bool idle = false;      /* waits without keeping run() from ending */
    const char *waits = ""; /* for messages: where it waits */
    const scheduled *whom = nullptr;
    const detail::scheduler *carries = nullptr;   /* the scheduler that waits in it */
    scheduled *older = nullptr, *newer = nullptr; /* in the scheduler's list */
    unsigned long serial = 0;
    int rank = 0;
    std::string label;

    friend class detail::scheduler;
    friend class detail::waiter;
    friend class waiting_list;
    friend struct detail::outcome_base;
    template <typename>
    friend class thread;
};

/*
 * A policy decides who runs next. push() is given a thread that is ready, pop() takes one out, NULL
 * when there is none. Neither may yield or wait; what they throw leaves run(). A thread that was
 * killed meanwhile may still be popped, and is passed over.
 */
template <typename Policy>
concept scheduling_policy = requires(Policy &policy, scheduled &thread) {
    policy.push(thread);
    { policy.pop() } -> std::same_as<scheduled *>;
};

/* Each in turn. */
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

/* The one that got ready last. Unfair: a thread that yields goes on itself. */
class last_in_first_out {
  public:
    void push(scheduled &thread) { thread.next = std::exchange(top, &thread); }
    scheduled *pop() { return top == nullptr ? nullptr : std::exchange(top, top->next); }

  private:
    scheduled *top = nullptr;
};

/* Any, chosen by a generator of numbers that is the same everywhere: for tests, to try many orders. */
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

/* The one of the highest priority, in turn among equals. */
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

    void call() override {
        F body(std::move(*function)); /* what it has captured goes with the thread */
        function.reset();
        try {
            this->value.fill([&]() -> T { return body(); });
            this->now = outcome_base::is::value;
        } catch (...) {
            this->failure = caught_exception();
            this->now = outcome_base::is::failure;
        }
    }
    void discard() noexcept override { function.reset(); }
};

/* Says why a run() is left in case that the program ends meanwhile, because a thread waits in a
   destructor and cannot be unwound: then nobody catches the deadlock. */
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
        if (now != &say) /* the program has set its own */
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

/* The handler of all threads of one run(), and its loop; all but the policy. */
class scheduler : public handler<parked, running> {
    using phase = scheduled::phase;

  public:
    scheduler() = default;
    scheduler(const scheduler &) = delete;
    scheduler &operator=(const scheduler &) = delete;

    scheduled *operator()(running) noexcept { return current; }
    void operator()(parked request, resumption<void()> k) {
        current->suspended = std::move(k);
        current->now = phase::waiting;
        if (request.then == parking::ready)
            make_ready(*current);
        else if (request.then == parking::end)
            ending = current;
    }

    static scheduler &of(const scheduled &thread) { return *thread.home; }

    template <typename F, typename T = std::invoke_result_t<F &>>
    reference<thread_of<T>> start(thread_options options, F function, bool unwinds = false) {
        reference<thread_of<T>> made(new thread_by<T, F>(std::move(function)));
        made->reports = true;
        launch(made->thread, std::move(options), unwinds);
        return made;
    }

    /* Lets threads run until all have ended, or wait for nothing but messages. */
    void loop() {
        for (;;) {
            throw_lost();
            if (scheduled *next = next_ready())
                run_one(*next);
            else if (none(&scheduler::keeps_running))
                break;
            else
                wait_outside();
        }
        unwind_all();
        throw_lost();
    }

    /* Unwinds a thread. Does not come back if this is, or runs inside, that thread. */
    static void kill(scheduled &thread) {
        if (thread.now == phase::running)
            thread.place->perform(parked{{}, parking::end});
        else if (unwindable(thread))
            unwind(thread);
    }

    static void wake(scheduled &thread) { thread.home->make_ready(thread); }

    static void suspend(scheduled &thread, const char *what, const scheduled *whom, bool idle) {
        thread.waits = what;
        thread.whom = whom;
        thread.idle = idle;
        perform(parked{{}, parking::wait});
        thread.idle = false;
    }

    void lose(std::exception_ptr failure) {
        if (lost == nullptr)
            lost = std::move(failure);
    }

  protected:
    ~scheduler() = default;

    /* To be called by the destructor of what has the policy, when run() is left early. */
    void leave() noexcept {
        last_words reason(deadlocked);
        unwind_all();
        while (oldest != nullptr)
            forget(*oldest);
    }

  private:
    virtual void push(scheduled &thread) = 0;
    virtual scheduled *pop() = 0;

    /* What all threads run, so that handling them is compiled once. */
    struct entering {
        scheduled *thread;
        void operator()(instance<parked, running> at) const {
            thread->place = at;
            thread->outcome.call();
        }
    };

    void launch(scheduled &thread, thread_options options, bool unwinds) {
        thread.label = std::move(options.name);
        thread.rank = options.priority;
        thread.serial = ++threads;
        thread.unwinds = unwinds;
        haft_fiber_options_t stack = {};
        stack.stack_size = options.stack_size;
        stack.name = thread.label.empty() ? nullptr : thread.label.c_str();
        thread.suspended = wrap(entering{&thread}).on(stack).with(*this);
        enlist(thread);
        if (!unwinds)
            make_ready(thread);
    }

    /* Destructors wake threads, too: what the policy throws is for run() to throw. */
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
    /* Something has changed for the scheduler that waits in a thread of another one. */
    void stir() {
        if (carrier != nullptr && carrier->now == phase::waiting)
            wake(*carrier);
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
                scheduler &self;
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
            run_one(start(
                        {.name = "unwinding"}, [killed] { unwind(*killed); }, true)
                        ->thread);
    }

    void finish(scheduled &thread) {
        outcome_base &outcome = thread.outcome;
        thread.now = phase::finished;
        if (outcome.now == outcome_base::is::pending)
            outcome.now = outcome_base::is::abandoned, outcome.discard();
        else if (outcome.now == outcome_base::is::failure && !outcome.claimed)
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
            ~unwinding() { thread.home->finish(thread); }
        } guard{thread};
        thread.now = phase::unwinding;
        std::move(thread.suspended).drop();
    }

    /* By threads of their own: destructors may wait, and then another one goes on with the rest.
       The policy is out of this. */
    void unwind_all() {
        leaving = true;
        empty_policy();
        for (;;) {
            if (first(&scheduler::to_unwind) != nullptr) {
                auto unwind_them = [this] {
                    while (scheduled *left = first(&scheduler::to_unwind))
                        unwind(*left);
                };
                run_one(start({.name = "unwinding"}, unwind_them, true)->thread);
            } else if (scheduled *ready = first(&scheduler::is_ready)) {
                run_one(*ready);
            } else {
                break;
            }
        }
        if (!none(&scheduler::alive))
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
        thread.older = newest;
        (newest == nullptr ? oldest : newest->newer) = &thread;
        newest = &thread;
    }
    void forget(scheduled &thread) {
        (thread.older == nullptr ? oldest : thread.older->newer) = thread.newer;
        (thread.newer == nullptr ? newest : thread.newer->older) = thread.older;
        thread.home = nullptr;
        reference<outcome_base>::adopt(&thread.outcome);
    }

    using property = bool (*)(const scheduled &);
    static bool alive(const scheduled &thread) { return thread.now != phase::finished; }
    static bool keeps_running(const scheduled &thread) { return alive(thread) && !thread.idle; }
    static bool is_ready(const scheduled &thread) { return thread.now == phase::ready; }
    static bool to_unwind(const scheduled &thread) { return unwindable(thread) && !thread.unwinds; }
    scheduled *first(property is) const {
        scheduled *thread = oldest;
        while (thread != nullptr && !is(*thread))
            thread = thread->newer;
        return thread;
    }
    bool none(property is) const { return first(is) == nullptr; }

    /* ---- When no thread can go on ---- */

    /* Inside a thread of another scheduler: it may be that which can. */
    void wait_outside() {
        scheduled *thread = here();
        if (thread == nullptr)
            throw_deadlock("haft: deadlock: no thread can go on.");
        struct carrying {
            scheduler &self;
            ~carrying() { std::exchange(self.carrier, nullptr)->carries = nullptr; }
        } guard{*this};
        carrier = thread;
        carrier->carries = this;
        suspend(*carrier, "run()", nullptr, false);
    }

    std::string waiting_threads(const std::string &margin) const {
        std::string text;
        int room = 20;
        for (scheduled *thread = oldest; thread != nullptr; thread = thread->newer) {
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

    scheduled *current = nullptr; /* the thread that runs */
    scheduled *ending = nullptr;  /* has killed itself */
    scheduled *carrier = nullptr; /* the thread of another scheduler in which this one waits */
    scheduled *oldest = nullptr;
    scheduled *newest = nullptr;
    unsigned long threads = 0;
    bool leaving = false;    /* the end: threads are unwound */
    std::exception_ptr lost; /* what a thread threw that nobody can join */
    std::string deadlocked;  /* the message of the deadlock by which run() is left */
};

template <typename Policy>
class scheduler_by final : public scheduler {
  public:
    explicit scheduler_by(Policy &by) : policy(by) {}
    ~scheduler_by() { leave(); }

  private:
    void push(scheduled &thread) override { policy.push(thread); }
    scheduled *pop() override { return policy.pop(); }
    Policy &policy;
};

inline void lost_failure(std::exception_ptr failure) {
    if (scheduled *thread = perform(running{}))
        scheduler::of(*thread).lose(std::move(failure));
}

inline waiter::waiter(waiting_list &to, scheduled &who) : thread(who), list(&to), before(to.last) {
    (before == nullptr ? to.first : before->after) = this;
    to.last = this;
}
inline void waiter::leave() {
    if (list == nullptr)
        return;
    (before == nullptr ? list->first : before->after) = after;
    (after == nullptr ? list->last : after->before) = before;
    list = nullptr;
}

inline void outcome_base::refuse(const scheduled *self, const char *what) const {
    using namespace std::string_literals;
    if (now == is::pending && self != nullptr && self == thread_behind())
        throw std::logic_error("haft: "s + what + ": " + self->description() +
                               " cannot wait for itself");
    if (expected)
        throw std::logic_error("haft: "s + what + ": another thread waits for this already");
}

inline void outcome_base::wait(const char *what) {
    scheduled *self = now == is::pending ? &here(what) : nullptr;
    refuse(self, what);
    struct expecting {
        bool &flag;
        ~expecting() { flag = false; }
    } guard{expected};
    expected = true;
    while (now == is::pending)
        waiting.wait(*self, what, thread_behind());
}

} // namespace detail

inline void waiting_list::wait(scheduled &thread, const char *what, const scheduled *whom,
                               bool idle) {
    detail::waiter here(*this, thread);
    detail::scheduler::suspend(thread, what, whom, idle);
}

inline bool waiting_list::wake_one() {
    while (first != nullptr) {
        scheduled &thread = first->thread;
        first->leave();
        if (thread.now == scheduled::phase::waiting) {
            detail::scheduler::wake(thread);
            return true;
        }
    }
    return false;
}

/* ---- Threads -------------------------------------------------------------------------------- */

/*
 * The handle of a thread whose function returns a T: void, a reference, or any type that can be
 * moved. Move-only. A thread whose handle is gone runs on, and its result is dropped.
 */
template <typename T = void>
class thread {
  public:
    /* No thread. */
    thread() = default;

    /*
     * Waits until the thread has ended, and returns what it returned, or throws what it threw;
     * thread_killed if it was killed. After that the handle has no thread any more. Also after the
     * end of run(). Throws std::logic_error without a thread, in the thread itself, while another
     * thread waits in join() here, and when it would have to wait outside of run().
     */
    T join() { return held.collect("join()"); }

    /* Waits until the thread has ended, and leaves the rest to join(): for destructors. Throws
       std::logic_error as join() does, and nothing of the thread's. */
    void wait() const {
        detail::reference<detail::thread_of<T>> kept(&held.get("wait()"));
        kept->wait("wait()");
    }

    /*
     * Unwinds the thread, unless it has ended. Then it can still be joined. A thread may kill
     * itself, and one that it runs in (with nested schedulers): this does not return then. Throws
     * std::logic_error without a thread.
     */
    void kill() { detail::scheduler::kill(held.get("kill()").thread); }

    /* Whether there is a thread to join. */
    bool joinable() const { return static_cast<bool>(held); }
    /* Whether join() would not wait. */
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
 * Starts a thread that calls `function`, and goes on: the new thread gets ready. Throws
 * std::bad_alloc, or std::logic_error outside of run().
 */
template <typename F>
thread<std::invoke_result_t<F &>> fork(thread_options options, F function) {
    return thread<std::invoke_result_t<F &>>(detail::scheduler::of(detail::here("fork()"))
                                                 .start(std::move(options), std::move(function)));
}
template <std::invocable F>
thread<std::invoke_result_t<F &>> fork(F function) {
    return fork(thread_options{}, std::move(function));
}

/* Lets the other threads that are ready run. Throws std::logic_error outside of run(). */
HAFT_DETAIL_INLINE void yield() {
    detail::ensure_default<detail::parked, detail::cannot_park>();
    perform(detail::parked{{}, detail::parking::ready});
}

/* The current thread: its number and name. Throws std::logic_error outside of run(). */
inline const scheduled &current_thread() {
    return detail::here("current_thread()");
}

/*
 * Runs `body` and all that it forks until they have ended, under a policy (a temporary, or one that
 * is there before and afterwards), and returns what `body` returns. Throws what it throws,
 * deadlock, and what a thread throws that nobody can join. Actors that only wait for messages are
 * unwound at the end.
 */
template <scheduling_policy Policy, typename Body>
std::invoke_result_t<Body &> run(Policy &&policy, Body body) {
    detail::scheduler_by<std::remove_reference_t<Policy>> scheduler(policy);
    auto main = scheduler.start({.name = "main"}, std::move(body));
    scheduler.loop();
    return main->take();
}
template <std::invocable Body>
std::invoke_result_t<Body &> run(Body body) {
    return run(round_robin(), std::move(body));
}

} // namespace haft

#endif
