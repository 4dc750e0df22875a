// SPDX-License-Identifier: MIT
/*
 * Schedulers of cooperative threads (thread.hpp): the interface that handles, fork() and waiting
 * lists use, and the scheduler of run(), whose threads are fibers that its loop resumes.
 */
#ifndef HAFT_DETAIL_RUN_LOOP_HPP
#define HAFT_DETAIL_RUN_LOOP_HPP

#include "../scheduling.hpp"

#include <cstdio>

namespace haft {

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
    /* nullptr: the list is empty. */
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
        std::move(thread.suspended).drop_under_caller();
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
HAFT_DETAIL_INLINE void waiter::unlink(waiting_list &from) {
    (before == nullptr ? from.first : before->after) = after;
    (after == nullptr ? from.last : after->before) = before;
}
/* A woken waiter does not look at the list, which may be gone. */
HAFT_DETAIL_INLINE void waiter::leave() {
    waiting_list *from = list.load(std::memory_order_acquire);
    if (from == nullptr)
        return;
    locked by(from->guard);
    if (list.load(std::memory_order_relaxed) != nullptr)
        unlink(*from);
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

/* Called under the guard, which keeps the waiter from leaving as long as the waiter names the
   list. */
inline bool waiting_list::wake_first() {
    while (first != nullptr) {
        detail::waiter &woken = *first;
        woken.unlink(*this);
        bool wakes = detail::scheduler::of(woken.thread).wake(woken.thread);
        woken.list.store(nullptr, std::memory_order_release);
        if (wakes)
            return true;
    }
    return false;
}

} // namespace haft

#endif
