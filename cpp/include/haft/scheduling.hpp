// SPDX-License-Identifier: MIT
/*
 * The interface between a program and the scheduler of cooperative threads (thread.hpp): the
 * options of a thread, the exceptions, a thread as a policy sees it, and the policies: in turn, the
 * newest first, at random, by priority. Any other class with push() and pop() is a policy, too.
 */
#ifndef HAFT_SCHEDULING_HPP
#define HAFT_SCHEDULING_HPP

#include "waiting.hpp"

namespace haft {

namespace detail {
class run_loop;
class thread_list;
} // namespace detail

/* Options for fork(). */
struct thread_options {
    std::string name = {};      /* for messages */
    int priority = 0;           /* for by_priority: the highest runs first */
    std::size_t stack_size = 0; /* 0: haft_stack_size() */
};

/* Thrown when all threads wait and none of these waits can end. */
struct HAFT_SHARED deadlock : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/* Thrown by join() when the thread was killed, or had not ended when its run() was left. */
struct HAFT_SHARED thread_killed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

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
        std::swap(ready[draw() % ready.size()], ready.back());
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

} // namespace haft

#endif
