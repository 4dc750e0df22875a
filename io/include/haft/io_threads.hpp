// SPDX-License-Identifier: MIT
/*
 * One notion of a task: in a program that includes this header, the threads, futures and actors of
 * haft/thread.hpp, async.hpp and actor.hpp are tasks of libhaft-io, wherever tasks run.
 *
 *     haft::io::run([] {
 *         haft::future<std::string> page = haft::async([] { return fetch("example.org"); });
 *         haft::future<int> answer = haft::async([] { return ask_the_user(); });
 *         show(haft::await(page), haft::await(answer));
 *     });
 *
 * Programs call only what those headers declare; it is enough that one file of the program includes
 * this one. The effect depends on where the calls are made:
 *
 *                     | fork(), async(), spawn()       | which thread runs
 *   haft::run in a    | a task of that run()           | one thread of the run at a time, chosen by
 *   task              |                                | its policy, on whatever threads of the
 *                     |                                | system the tasks are
 *   a task outside of | a task of the innermost scope  | as all tasks: on several threads of the
 *   haft::run         | of haft/io.hpp                 | system at once, if these run tasks
 *   haft::run outside | as in a program without this header: a fiber of the thread of the system
 *   of all tasks      |
 *
 * An operation of libhaft-io that waits suspends only its own thread: the other threads of the run
 * go on, and so do other tasks. When the thread can go on, it becomes ready, and the policy decides
 * when it runs. So programs written for haft::run need no locks here, either.
 *
 * A future, promise or address may be used from any thread of the system. A task that no haft::run
 * has started may wait for it, and so may a thread of the system that runs no tasks, which then
 * blocks. Threads of a haft::run outside of all tasks are an exception: what they wait for must
 * come from their own thread of the system.
 *
 * These are the same: results, exceptions, names, kill(), the end of actors that only wait. These
 * differ:
 * - A kill is a cancel: it takes effect where the thread waits, and kill() waits for the thread's
 *   end. A thread in a shielded scope first finishes that scope. In scopes of haft/io.hpp the kill
 *   is an exception, haft::io::cancelled.
 * - A cancel from outside, such as a deadline, ends the threads of a run as kill() does; run()
 *   throws haft::io::cancelled then.
 * - A deadlock is not detected, because a descriptor or another task may still wake a thread:
 *   haft::deadlock is never thrown, not even for a policy that does not pop what was pushed.
 *   haft_io_dump() lists the waiting tasks, and haft_io_simulate() detects that none can go on.
 * - Threads of nested runs run alongside those of the outer run.
 * - fork() in a task outside of haft::run: an exception that no join can receive cancels the scope,
 *   and leaves it. Actors that only wait for messages keep their scope from ending: stop them, or
 *   cancel the scope.
 *
 * How it works: a thread is a task that runs its function in a scope of its own, which kill()
 * cancels, under a tail clause that tells which thread is current. The thread goes on when its
 * event is set. In a run with a policy one thread at a time is the holder; the gate of its task
 * (haft_io_gate_set) gives the turn up before every wait. The states:
 *
 *   phase    | holder | in the policy | moved on by
 *   ready    | no     | yes           | the thread that gives the gate up: to running, by its event
 *   running  | yes    | no            | itself: it waits, yields, ends
 *   waiting  | no     | no            | wake(), a cancel, or the end of an operation: to ready
 *   finished | no     | perhaps still |
 *
 * A thread without a policy is never ready: it is running as soon as it may go on. Lock order: the
 * lock of a list, then that of the run or record, then those inside libhaft-io.
 */
#ifndef HAFT_IO_THREADS_HPP
#define HAFT_IO_THREADS_HPP

#include "io.hpp"
#include "io_binding.h"

#include <haft/thread.hpp>

namespace haft {
namespace detail {

/* The part of a thread that is a task, beside its `scheduled`. */
struct task_part : haft_io_gate_t {
    task_part(scheduled &of, std::shared_ptr<tasks> in)
        : haft_io_gate_t{leave, enter}, thread(of), home(std::move(in)) {}
    static void leave(haft_io_gate_t *gate);
    static haft_io_event_t *enter(haft_io_gate_t *gate);

    scheduled &thread;
    const std::shared_ptr<tasks> home;
    lock guard;                                /* if there is no policy */
    haft_io_event_t go = {};                   /* set when the thread may go on */
    haft_io_scope_t *around = nullptr;         /* the scope of the task */
    io::detail::frame *frame_around = nullptr; /* the same for haft/io.hpp */
    haft_io_scope_t *scope = nullptr;          /* its own, while its function runs */
    std::size_t stack_size = 0;
    bool killed = false;
    bool sleeps = false;  /* the task has left the gate already, until it may go on; only its task
                             uses this */
    bool idle = false;    /* not counted as busy */
    bool unwinds = false; /* its next wait is in a destructor, where no cancel reaches it */
};

/* The threads of one run(), or, without a policy, threads outside of every run(). */
class tasks final : public scheduler, public std::enable_shared_from_this<tasks> {
    using phase = scheduled::phase;
    using is = outcome_base::is;

  public:
    explicit tasks(ordering *by) : policy(by) {
        if (policy != nullptr)
            frame_around = io::detail::current_frame();
    }
    ~tasks() = default;

    static const std::shared_ptr<tasks> &outside_of_runs() {
        static const auto *one = new std::shared_ptr<tasks>(new tasks(nullptr));
        return *one;
    }

    /* Stands for a caller that is not one of these threads, while it waits. */
    static thread_of<void> *make_waiting() {
        auto made = std::make_unique<thread_of<void>>();
        outside_of_runs()->adopt(made->thread);
        made->thread.now = phase::running;
        return made.release();
    }

    void launch(scheduled &thread, thread_options &&options) override {
        thread.label = std::move(options.name);
        thread.rank = options.priority;
        task_part &part = adopt(thread);
        part.stack_size = options.stack_size;
        place(part);
        {
            locked by(guard_of(thread));
            thread.outcome.references++;
            thread.serial = ++threads;
            if (policy != nullptr)
                enlist(thread);
            make_ready(thread);
        }
        if (policy == nullptr || scope != nullptr)
            spawn(thread);
    }

    void loop(scheduled &first) override {
        struct opening {
            tasks &self;
            scheduled &first;
            static void *open(void *argument) {
                auto &[self, first] = *static_cast<opening *>(argument);
                self.open(first);
                return nullptr;
            }
        } opening{*this, first};
        haft_io_scope_options_t options = {};
        options.name = "haft::run";
        int code = haft_io_scope_with(&options, &opening::open, &opening, nullptr);
        scope = nullptr;
        close();
        if (lost != nullptr)
            std::rethrow_exception(std::exchange(lost, nullptr));
        if (code != -ECANCELED)
            io::detail::checked(code, "haft::run");
        if (first.outcome.now == is::abandoned)
            io::yield(); /* also throws if the caller is cancelled */
    }

    /* Called under the lock of a list that contains the thread. */
    bool wake(scheduled &thread) override {
        locked by(guard_of(thread));
        bool was_listed = thread.listed.exchange(false, std::memory_order_relaxed);
        if (thread.now != phase::waiting)
            return was_listed;
        make_ready(thread);
        return true;
    }

    void lose(std::exception_ptr failure) override {
        if (policy == nullptr) {
            if (io::detail::frame *frame = io::detail::current_frame())
                frame->fail(std::move(failure));
            else
                haft_io_note_failure(-EPROTO, "an exception left a thread that nobody joins");
            return;
        }
        locked by(guard);
        fail(std::move(failure));
    }

    static void park(scheduled &thread) {
        task_part &part = part_of(thread);
        part.home->wait(thread, part);
    }
    /* False: it is a fiber. */
    static bool yield(scheduled &thread) {
        if (thread.task == nullptr)
            return false;
        task_part &part = part_of(thread);
        part.home->yield(thread, part);
        return true;
    }

    /* leave() and enter() are called by the gate of the thread's task. */
    void leave(scheduled &thread, const task_part &part) {
        if (part.sleeps)
            return;
        locked by(guard);
        thread.now = phase::waiting;
        pass_on(thread);
    }
    haft_io_event_t *enter(scheduled &thread, task_part &part) {
        if (part.sleeps)
            return nullptr;
        locked by(guard);
        make_ready(thread);
        return &part.go;
    }

  private:
    static task_part &part_of(const scheduled &thread) {
        return *static_cast<task_part *>(thread.task.get());
    }
    lock &guard_of(const scheduled &thread) {
        return policy != nullptr ? guard : part_of(thread).guard;
    }

    /* ---- Starting ---- */

    task_part &adopt(scheduled &thread) {
        auto part = std::make_shared<task_part>(thread, shared_from_this());
        thread.home = this;
        thread.task = part;
        return *part;
    }

    /* A forked thread is in the scope of the thread that forks it, unless the latter has opened a
       scope in between. */
    void place(task_part &part) {
        const scheduled *forker = here();
        const task_part *beside =
            forker != nullptr && forker->home == this ? &part_of(*forker) : nullptr;
        if (policy != nullptr) {
            part.around = scope;
            part.frame_around = frame_around;
        } else if (beside != nullptr && beside->scope == haft_io_this_scope()) {
            part.around = beside->around;
            part.frame_around = beside->frame_around;
        } else {
            part.around = haft_io_this_scope();
            part.frame_around = io::detail::current_frame();
        }
    }

    void spawn(scheduled &thread) {
        haft_io_task_options_t options = {};
        options.scope = part_of(thread).around;
        options.name = thread.label.c_str();
        io::detail::inherited by_task(part_of(thread).frame_around);
        if (haft_io_spawn_with(&options, &run_task, &thread) == 0)
            return;
        finish(thread, is::pending);
        throw std::bad_alloc();
    }

    void open(scheduled &first) {
        scope = part_of(first).around = haft_io_this_scope();
        try {
            spawn(first);
        } catch (const std::bad_alloc &) {
            lost = std::current_exception();
        }
    }

    /* ---- The task ---- */

    struct telling : handler<running> {
        scheduled *thread;
        explicit telling(scheduled &of) : thread(&of) {}
        scheduled *operator()(running) noexcept { return thread; }
    };

    /* Its own scope makes it cancellable. */
    class cancellable {
      public:
        explicit cancellable(task_part &of) : part(of) {
            locked by(part.home->guard_of(part.thread));
            part.scope = haft_io_this_scope();
            if (part.killed)
                haft_io_scope_cancel(part.scope);
        }
        ~cancellable() {
            locked by(part.home->guard_of(part.thread));
            part.scope = nullptr;
        }
        cancellable(const cancellable &) = delete;
        cancellable &operator=(const cancellable &) = delete;

      private:
        task_part &part;
    };

    static void *run_task(void *argument) {
        scheduled &thread = *static_cast<scheduled *>(argument);
        task_part &part = part_of(thread);
        std::shared_ptr<tasks> home = part.home;
        haft_io_return_cancels(true);
        is how = is::pending;
        haft_io_event_wait_to_the_end(&part.go);
        haft_io_event_clear(&part.go);
        if (home->policy != nullptr)
            haft_io_gate_set(&part);
        try {
            call(thread, part, how);
        } catch (const io::cancelled &) { /* after its function, if that returns */
        } catch (...) {
            thread.outcome.failure = caught_exception();
            how = is::failure;
        }
        home->finish(thread, how);
        return nullptr;
    }

    static void call(scheduled &thread, task_part &part, is &how) {
        io::detail::checked(haft_io_local_set(&io::detail::frame_key, part.frame_around),
                            "a thread");
        io::detail::frame frame;
        frame.open_in(part.frame_around);
        auto run = [&] {
            haft_io_return_cancels(false);
            frame.scope = haft_io_this_scope();
            cancellable until_the_end(part);
            auto function = [&] { how = thread.outcome.call(); };
            haft_fiber_options_t stack = {};
            stack.stack_size = part.stack_size;
            telling by(thread);
            if (is_killed(part))
                return;
            try {
                if (part.stack_size != 0)
                    handle(function).on(stack).with(by);
                else
                    handle(function).with(by);
            } catch (...) {
                thread.outcome.failure = caught_exception();
                how = is::failure;
            }
            if (how == is::failure && is_cancel(thread.outcome.failure))
                how = is::pending;
        };
        io::detail::bound here(&io::detail::frame_key, &frame);
        int code = haft_io_scope(&call_in_scope<decltype(run)>, &run, nullptr);
        if (std::exception_ptr thrown = frame.first_failure(nullptr, thread.label.c_str()))
            std::rethrow_exception(thrown);
        io::detail::checked(code, "a thread");
    }
    template <typename Function>
    static void *call_in_scope(void *function) {
        (*static_cast<Function *>(function))();
        return nullptr;
    }

    static bool is_killed(task_part &part) {
        locked by(part.home->guard_of(part.thread));
        return part.killed;
    }
    static bool is_cancel(const std::exception_ptr &failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const io::cancelled &) {
            return true;
        } catch (...) {
            return false;
        }
    }

    void finish(scheduled &thread, is how) {
        std::shared_ptr<tasks> kept = shared_from_this();
        if (thread.outcome.end(how))
            lose(thread.outcome.failure);
        thread.outcome.waiting.wake_all();
        bool is_over = true;
        {
            locked by(guard_of(thread));
            thread.now = phase::finished;
            if (policy != nullptr) {
                busy--;
                alive--;
                pass_on(thread);
                end_if_idle();
                is_over = !thread.queued;
                if (is_over)
                    members.remove(thread);
            }
        }
        haft_io_gate_set(nullptr);
        if (is_over)
            reference<outcome_base>::adopt(&thread.outcome);
    }

    /* ---- Waiting ---- */

    void wait(scheduled &thread, task_part &part) {
        {
            locked by(guard_of(thread));
            if (!thread.listed.load(std::memory_order_relaxed))
                return; /* The thread was woken before it began to wait. */
            thread.now = phase::waiting;
            if (policy != nullptr) {
                part.idle = thread.idle;
                busy -= part.idle;
                pass_on(thread);
                end_if_idle();
            }
        }
        sleep(thread, part);
    }

    void yield(scheduled &thread, task_part &part) {
        bool others = false;
        if (policy != nullptr) {
            locked by(guard);
            thread.now = phase::ready;
            push(thread);
            pass_on(thread);
            others = holder != &thread;
            if (!others)
                haft_io_event_clear(&part.go);
        }
        if (others) {
            sleep(thread, part);
            return;
        }
        bool returned = haft_io_return_cancels(true);
        int code = haft_io_yield();
        haft_io_return_cancels(returned);
        if (code != 0)
            unwind(part, returned);
    }

    /* Waits until the thread may go on. A cancelled thread also waits for its turn, in which it is
       unwound. */
    void sleep(scheduled &thread, task_part &part) {
        bool returned = haft_io_return_cancels(true);
        int code = 0;
        part.sleeps = true;
        if (std::exchange(part.unwinds, false))
            haft_io_event_wait_to_the_end(&part.go);
        else
            code = haft_io_event_wait(&part.go);
        if (code != 0) {
            {
                locked by(guard_of(thread));
                if (thread.now == phase::waiting)
                    make_ready(thread);
            }
            haft_io_event_wait_to_the_end(&part.go);
        }
        haft_io_event_clear(&part.go);
        part.sleeps = false;
        haft_io_return_cancels(returned);
        if (code != 0)
            unwind(part, returned);
    }

    /* Returns in a destructor that waits while its thread is being unwound. */
    static void unwind(task_part &part, bool by_exception) {
        if (by_exception)
            throw io::cancelled();
        haft_io_unwind_cancelled();
        part.unwinds = true;
    }

    void end(scheduled &thread) override {
        task_part &part = part_of(thread);
        {
            locked by(guard_of(thread));
            if (thread.now == phase::finished)
                return;
            part.killed = true;
            if (part.scope != nullptr)
                haft_io_scope_cancel(part.scope);
        }
        if (here() == &thread) {
            haft_io_return_cancels(false);
            haft_io_unwind_cancelled();
            return;
        }
        caller self("kill()");
        outcome_base &outcome = thread.outcome;
        auto has_ended = [&] { return outcome.now != is::pending; };
        while (!has_ended())
            outcome.waiting.wait_unless(has_ended, self.thread(), "kill()", &thread, false);
    }

    /* ---- Scheduling; all under the lock ---- */

    void make_ready(scheduled &thread) {
        task_part &part = part_of(thread);
        if (policy == nullptr) {
            thread.now = phase::running;
            haft_io_event_set(&part.go);
            return;
        }
        thread.now = phase::ready;
        busy += std::exchange(part.idle, false);
        push(thread);
        if (holder == nullptr)
            choose();
    }
    void push(scheduled &thread) {
        if (broken)
            return;
        try {
            policy->push(thread);
            thread.queued = true;
        } catch (...) {
            break_with(caught_exception());
        }
    }
    void pass_on(scheduled &thread) {
        if (holder != &thread)
            return;
        holder = nullptr;
        choose();
    }
    void choose() {
        holder = next_ready();
        if (holder == nullptr)
            return;
        holder->now = phase::running;
        haft_io_event_set(&part_of(*holder).go);
    }
    scheduled *next_ready() {
        while (!broken) {
            scheduled *thread = nullptr;
            try {
                thread = policy->pop();
            } catch (...) {
                break_with(caught_exception());
                break;
            }
            if (thread == nullptr)
                return nullptr;
            if (!thread->queued) {
                break_with(std::make_exception_ptr(
                    std::logic_error("haft: the scheduling policy has popped " +
                                     thread->description() + ", which it was not given")));
                break;
            }
            thread->queued = false;
            if (thread->now == phase::ready)
                return thread;
            if (thread->now == phase::finished)
                forget(*thread);
        }
        return members.first([](const scheduled &thread) { return thread.now == phase::ready; });
    }

    /* Only actors that wait for messages are left. */
    void end_if_idle() {
        if (busy == 0 && alive != 0 && scope != nullptr)
            haft_io_scope_cancel(scope);
    }
    void fail(std::exception_ptr failure) {
        if (lost == nullptr)
            lost = std::move(failure);
        if (scope != nullptr)
            haft_io_scope_cancel(scope);
    }
    /* From now on threads run in any order, only to be unwound. */
    void break_with(std::exception_ptr failure) {
        broken = true;
        fail(std::move(failure));
    }

    /* ---- The list of the threads of a run ---- */

    void enlist(scheduled &thread) {
        alive++;
        busy++;
        members.add(thread);
    }
    void forget(scheduled &thread) {
        members.remove(thread);
        reference<outcome_base>::adopt(&thread.outcome);
    }
    /* All have ended. The policy may outlive the run. */
    void close() {
        locked by(guard);
        next_ready();
        while (scheduled *thread = members.first())
            forget(*thread);
    }

    ordering *const policy; /* NULL: all threads may go on */
    lock guard;
    io::detail::frame *frame_around = nullptr;
    haft_io_scope_t *scope = nullptr; /* of the run */
    scheduled *holder = nullptr;      /* the thread that runs */
    thread_list members;
    std::size_t alive = 0;
    std::size_t busy = 0; /* the number of them that keep the run from ending */
    bool broken = false;  /* the policy has thrown, or broken its contract */
    std::exception_ptr lost;
    std::atomic<unsigned long> threads = 0;
};

inline void task_part::leave(haft_io_gate_t *gate) {
    auto &part = *static_cast<task_part *>(gate);
    part.home->leave(part.thread, part);
}
inline haft_io_event_t *task_part::enter(haft_io_gate_t *gate) {
    auto &part = *static_cast<task_part *>(gate);
    return part.home->enter(part.thread, part);
}

class task_host final : public host {
  public:
    std::shared_ptr<scheduler> make_run(ordering &by) override {
        return haft_io_self() != nullptr ? std::make_shared<tasks>(&by) : nullptr;
    }
    scheduler *forking() override {
        return haft_io_self() != nullptr ? tasks::outside_of_runs().get() : nullptr;
    }
    thread_of<void> *make_waiting() override { return tasks::make_waiting(); }
    void park(scheduled &thread) override { tasks::park(thread); }
    bool yield() override {
        if (scheduled *thread = here())
            return tasks::yield(*thread);
        if (haft_io_self() == nullptr)
            return false;
        io::yield();
        return true;
    }
    static bool install() {
        static task_host one;
        installed.store(&one, std::memory_order_release);
        return true;
    }
};
inline const bool tasks_are_threads = task_host::install();

} // namespace detail

namespace io {

/* haft::run(policy, body) as the first task of a run. */
template <scheduling_policy Policy, std::invocable Body>
std::invoke_result_t<Body &> run(const run_options &options, Policy &&policy, Body body) {
    return io::run(options, [&] { return haft::run(policy, std::move(body)); });
}
template <scheduling_policy Policy, std::invocable Body>
std::invoke_result_t<Body &> run(Policy &&policy, Body body) {
    return io::run(run_options{}, policy, std::move(body));
}

} // namespace io
} // namespace haft

#endif
