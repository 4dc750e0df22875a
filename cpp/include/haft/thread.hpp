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
 * - When no thread can go on, run() throws haft::deadlock, whose message names each thread that
 *   waits, and for what.
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

#include "detail/run_loop.hpp"

namespace haft {

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
