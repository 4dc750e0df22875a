/* A chain of handlers a thread; fibers that move between threads; two threads at one fiber. */
#include <haft.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(move, void, {});
HAFT_EFFECT(where, pthread_t, {});

static void *run_on_thread(void *(*function)(void *), void *argument) {
    pthread_t thread;
    void *result = NULL;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, argument), 0);
    pthread_join(thread, &result);
    return result;
}

/* ---- A root a thread ---- */

static void *see_root(void *handler_count) {
    (void)handler_count;
    CHECK(haft_fiber_current() == NULL);
    CHECK(haft_locate(HAFT_ID(ask)) == NULL);
    return NULL;
}
static void *start_thread_inside(void *unused) {
    CHECK(haft_locate(HAFT_ID(ask)) != NULL);
    return run_on_thread(see_root, unused);
}

static void a_new_thread_has_no_handlers_of_the_one_that_started_it(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(start_thread_inside, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
}

static int add(void *state, HAFT_PAYLOAD(ask) * payload) {
    return payload->question + *(int *)state;
}
HAFT_HANDLER(adding, NULL, HAFT_TAIL(ask, add));
static void *add_many(void *count) {
    intptr_t sum = 0;
    for (intptr_t i = 0; i < (intptr_t)count; i++)
        sum += HAFT_PERFORM(ask, 1);
    return (void *)sum;
}
static void *handle_on_thread(void *number) {
    int state = (int)(intptr_t)number;
    intptr_t count = check_times(20000);
    for (int i = 0; i < 20; i++) {
        intptr_t sum = (intptr_t)haft_handle(&adding, &state, add_many, (void *)count);
        CHECK_EQUAL(sum, count * (1 + state));
    }
    return NULL;
}

/* In a library with one process-wide handler stack these crash each other. */
static void threads_that_each_use_only_their_own_handlers_do_not_meet(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, handle_on_thread, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Moving ---- */

typedef struct moving {
    haft_fiber_t *fiber;
    haft_request_t request;
    int reply;
    bool detach;
} moving_t;

static void *ask_everywhere(void *inner_state) {
    int sum = 0;
    for (int i = 0; i < 50; i++)
        sum += HAFT_PERFORM(ask, i);
    (void)inner_state;
    return (void *)(intptr_t)sum;
}
static void *resume_moving(void *argument) {
    moving_t *moving = argument;
    bool is_new = haft_fiber_state(moving->fiber) == HAFT_FIBER_NEW;
    moving->request = haft_resume(
        moving->fiber, is_new ? HAFT_NO_REPLY : HAFT_REPLY(ask, moving->reply), HAFT_HANDLES(ask));
    if (moving->detach && !haft_finished(moving->request))
        haft_fiber_detach(moving->fiber);
    return NULL;
}

static void move_around(void *(*body)(void *), bool detach) {
    moving_t moving = {.fiber = haft_fiber_new(body, NULL), .detach = detach};
    resume_moving(&moving);
    for (int i = 0; i < 50; i++) {
        CHECK(moving.request.effect == HAFT_ID(ask));
        CHECK_EQUAL(((HAFT_PAYLOAD(ask) *)moving.request.payload)->question, i);
        moving.reply = 2 * i;
        if (i % 3 == 0)
            resume_moving(&moving);
        else
            run_on_thread(resume_moving, &moving);
    }
    CHECK(haft_finished(moving.request));
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)moving.request.payload)->result, 2450);
    haft_fiber_drop(moving.fiber);
}

static void a_suspended_fiber_goes_on_on_any_thread(void) {
    move_around(ask_everywhere, false);
}
static void a_detached_fiber_goes_on_on_any_thread(void) {
    move_around(ask_everywhere, true);
}

/* The suspended chain between fiber and performer moves as a whole, stackless handlers too. */
static pthread_t answer_where(void *state, HAFT_PAYLOAD(where) * payload) {
    (void)state, (void)payload;
    return pthread_self();
}
HAFT_HANDLER(locating, NULL, HAFT_TAIL(where, answer_where));
static void *ask_innermost(void *unused) {
    (void)unused;
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        sum += HAFT_PERFORM(ask, i);
        CHECK(pthread_equal(HAFT_PERFORM(where), pthread_self()));
    }
    return (void *)(intptr_t)sum;
}
static void *ask_middle(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(ask_innermost, unused);
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(move));
    CHECK(haft_finished(request));
    return ((HAFT_PAYLOAD(return ) *)request.payload)->result;
}
static void *ask_in_a_chain(void *unused) {
    return haft_handle(&locating, NULL, ask_middle, unused);
}

static void a_chain_of_fibers_and_handlers_moves_as_a_whole(void) {
    move_around(ask_in_a_chain, false);
}

/* Moved under handlers of another thread, a fiber finds those and not the ones it knew. */
static void *ask_twice(void *unused) {
    (void)unused;
    int first = HAFT_PERFORM(ask, 100);
    HAFT_PERFORM(move);
    return (void *)(intptr_t)(1000 * first + HAFT_PERFORM(ask, 100));
}
static void *finish_it(void *fiber) {
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(move));
    return ((HAFT_PAYLOAD(return ) *)request.payload)->result;
}
static void *start_it(void *fiber) {
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(move));
    return NULL;
}
static void *finish_under_handler(void *fiber) {
    int state = 2;
    return haft_handle(&adding, &state, finish_it, fiber);
}

static void a_moved_fiber_finds_the_handlers_of_its_new_thread(void) {
    int state = 1;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_twice, NULL);
    haft_handle(&adding, &state, start_it, k);
    CHECK_EQUAL((intptr_t)run_on_thread(finish_under_handler, k), 101 * 1000 + 102);
}

static int cleaned;
static void count_cleanup(int *one) {
    cleaned += *one;
}
static void *wait_with_cleanup(void *unused) {
    __attribute__((cleanup(count_cleanup), unused)) int one = 1;
    HAFT_PERFORM(move);
    return unused;
}
static void *free_on_thread(void *fiber) {
    haft_fiber_drop(fiber);
    return NULL;
}

static void a_fiber_may_be_dropped_by_another_thread_than_it_ran_on(void) {
    haft_fiber_t *k = haft_fiber_new(wait_with_cleanup, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(move));
    run_on_thread(free_on_thread, k);
    CHECK_EQUAL(cleaned, 1);
    run_on_thread(free_on_thread, haft_fiber_new(wait_with_cleanup, NULL));
    CHECK_EQUAL(cleaned, 1);
}

static void *leave_suspended(void *fiber) {
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(move));
    return NULL;
}

static void a_fiber_outlives_the_thread_that_it_was_suspended_on(void) {
    for (int i = 0; i < 20; i++) {
        haft_fiber_t *k = haft_fiber_new(wait_with_cleanup, NULL);
        run_on_thread(leave_suspended, k);
        CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(move))));
        haft_fiber_drop(k);
    }
}

/* ---- Two threads at one fiber ---- */

static haft_fiber_t *contested;
static int gate;
static int loops;

static void *loop_body(void *unused) {
    for (;;)
        HAFT_PERFORM(move);
    return unused;
}

static void meet(void) {
    __atomic_add_fetch(&gate, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&gate, __ATOMIC_SEQ_CST) < 2)
        continue;
}

static void *contend(void *unused) {
    meet();
    for (int i = 0; i < loops; i++)
        haft_resume(contested, HAFT_NO_REPLY, HAFT_HANDLES(move));
    return unused;
}

static void two_threads_resume(void) {
    pthread_t thread;
    contested = haft_fiber_new(loop_body, NULL);
    haft_resume(contested, HAFT_NO_REPLY, HAFT_HANDLES(move));
    CHECK_EQUAL(pthread_create(&thread, NULL, contend, NULL), 0);
    contend(NULL);
    pthread_join(thread, NULL);
}

static void two_threads_free(void) {
    pthread_t thread;
    contested = haft_fiber_new(loop_body, NULL);
    haft_resume(contested, HAFT_NO_REPLY, HAFT_HANDLES(move));
    CHECK_EQUAL(pthread_create(&thread, NULL, contend, NULL), 0);
    meet();
    haft_fiber_drop(contested);
    pthread_join(thread, NULL);
}

/* Whatever the threads do to each other, the process ends well (they took turns by luck) or by a
   message of the library, never by a crash. */
static void run_race(void (*race)(void), int rounds, int resumes) {
    loops = resumes;
    for (int i = 0; i < rounds; i++) {
        gate = 0;
        check_child_t child = check_child(race);
        if (child.signal == 0 && child.status == 0)
            continue;
        CHECK_EQUAL(child.signal, SIGABRT);
        CHECK_CONTAINS(child.output, "haft: ");
        if (strstr(child.output, "is being resumed by two threads at once. Only one may own") ==
            NULL)
            CHECK_CONTAINS(child.output, " cannot be ");
    }
}

static void two_threads_that_resume_one_fiber_are_caught(void) {
    run_race(two_threads_resume, check_times(100), 100000);
}
static void two_threads_that_resume_one_fiber_once_are_caught_or_take_turns(void) {
    run_race(two_threads_resume, check_times(200), 1);
}
static void a_thread_that_frees_what_another_resumes_is_caught(void) {
    run_race(two_threads_free, check_times(100), 100000);
}

/* Threads that do what they like with each other's fibers, and an error handler that leaves:
   whoever gets an error has changed nothing, so nobody ever runs where another one does. */
enum { ROGUES = 4, PREY = 4 };
static haft_fiber_t *prey[PREY];
static int inside[PREY];
static int rogues_ready;
static __thread jmp_buf way_out;

static void leave(const haft_error_t *error) {
    CHECK(error->code == HAFT_ERROR_NOT_RESUMABLE || error->code == HAFT_ERROR_IN_USE);
    longjmp(way_out, 1);
}
static void enter_alone(intptr_t number) {
    CHECK_EQUAL(__atomic_add_fetch(&inside[number], 1, __ATOMIC_SEQ_CST), 1);
}
static void leave_alone(intptr_t number) {
    CHECK_EQUAL(__atomic_sub_fetch(&inside[number], 1, __ATOMIC_SEQ_CST), 0);
}
static haft_reply_t look_around(void *number) {
    enter_alone((intptr_t)number);
    leave_alone((intptr_t)number);
    return HAFT_NO_REPLY;
}
static void *prey_body(void *number) {
    for (;;) {
        (void)look_around(number);
        HAFT_PERFORM(move);
    }
    return NULL;
}
static void do_something(unsigned what, intptr_t number) {
    switch (what) {
    default:
        if (what % 2 == 0)
            haft_resume(prey[number], HAFT_NO_REPLY, HAFT_HANDLES(move));
        else
            haft_resume(prey[number], HAFT_NO_REPLY, HAFT_HANDLES(move, where));
        break;
    case 0:
        haft_fiber_detach(prey[number]);
        break;
    case 1:
        haft_handles_changed(prey[number]);
        break;
    case 2:
        haft_fiber_reset(prey[number], prey_body, (void *)number);
        break;
    case 3:
        haft_discontinue(prey[number], look_around, (void *)number, HAFT_HANDLES(move));
        break;
    }
}
static void wait_for_rogues(int round) {
    __atomic_add_fetch(&rogues_ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&rogues_ready, __ATOMIC_SEQ_CST) < (round + 1) * ROGUES)
        sched_yield();
}
/* Apart from what calls setjmp. */
static __attribute__((noinline)) haft_fiber_t *make_prey(intptr_t number, bool started) {
    haft_fiber_options_t options = {.stack_size = 16384, .no_cleanups = true};
    haft_fiber_t *made = haft_fiber_new_with(&options, prey_body, (void *)number);
    if (started)
        haft_resume(made, HAFT_NO_REPLY, HAFT_HANDLES(move));
    return made;
}
static void *roam(void *number) {
    volatile uint32_t state = (uint32_t)(uintptr_t)number * 2654435761u + 1;
    volatile int round = 0;
    while (round < 2 * check_times(1000)) {
        if (number == NULL)
            for (volatile intptr_t i = 0; i < PREY; i = i + 1) {
                inside[i] = 0;
                prey[i] = make_prey(i, round % 4 == 0);
            }
        wait_for_rogues(round++);
        for (volatile int i = 0; i < 500; i = i + 1) {
            state = state * 1664525u + 1013904223u;
            if (setjmp(way_out) == 0)
                do_something((state >> 20) % 12, state >> 28 & (PREY - 1));
        }
        if (setjmp(way_out) == 0)
            haft_fiber_drop(prey[(intptr_t)number]);
        wait_for_rogues(round++);
    }
    return NULL;
}
static void roam_together(void) {
    haft_set_error_handler(leave);
    pthread_t threads[ROGUES];
    for (uintptr_t i = 0; i < ROGUES; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, roam, (void *)i), 0);
    for (int i = 0; i < ROGUES; i++)
        pthread_join(threads[i], NULL);
}
static void threads_that_fight_for_fibers_and_survive_the_errors_never_meet_on_one(void) {
    CHECK_SUCCEEDS(roam_together);
}

/* Every pair of frees of one finished fiber is one error. */
enum { FINISHED = 500 };
static haft_fiber_t *finished[FINISHED];
static int next_round, freed_twice;
static __thread jmp_buf after_error;
static void count_error(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_IN_USE);
    __atomic_add_fetch(&freed_twice, 1, __ATOMIC_RELAXED);
    longjmp(after_error, 1);
}
static __attribute__((noinline)) void free_one(haft_fiber_t *fiber) {
    if (setjmp(after_error) == 0)
        haft_fiber_drop(fiber);
}
static void *free_all(void *unused) {
    for (int i = 0; i < FINISHED; i++) {
        __atomic_add_fetch(&next_round, 1, __ATOMIC_SEQ_CST);
        for (int tries = 1; __atomic_load_n(&next_round, __ATOMIC_SEQ_CST) < 2 * (i + 1); tries++)
            if (tries % 1000 == 0)
                sched_yield();
        free_one(finished[i]);
    }
    return unused;
}
static void *return_at_once(void *unused) {
    return unused;
}
static void free_on_two_threads(bool with_the_last) {
    haft_set_error_handler(count_error);
    for (int i = 0; i < FINISHED; i++) {
        finished[i] = haft_fiber_new(return_at_once, NULL);
        haft_resume(finished[i], HAFT_NO_REPLY, HAFT_HANDLES(move));
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (i == 0 || !with_the_last)
            pthread_create(&threads[i], NULL, free_all, NULL);
    if (with_the_last)
        free_all(NULL);
    else
        pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    CHECK_EQUAL(freed_twice, FINISHED);
}
static void free_here_and_elsewhere(void) {
    free_on_two_threads(true);
}
static void free_elsewhere_twice(void) {
    free_on_two_threads(false);
}
static void two_threads_that_free_one_finished_fiber_are_always_caught(void) {
    for (int i = 0; i < check_times(10); i++) {
        CHECK_SUCCEEDS(free_here_and_elsewhere);
        CHECK_SUCCEEDS(free_elsewhere_twice);
    }
}

/* The same fibers in memory of the caller, which both would have run again: a fiber that one has
   reset can be dropped afterwards, and its memory used again. */
static char *memories[FINISHED];
static void go_on_after_error(const haft_error_t *error) {
    CHECK(error->code == HAFT_ERROR_IN_USE || error->code == HAFT_ERROR_BAD_ARGUMENT);
    longjmp(after_error, 1);
}
static __attribute__((noinline)) void reset_one(haft_fiber_t *fiber) {
    if (setjmp(after_error) == 0)
        haft_fiber_reset(fiber, return_at_once, NULL);
}
static void *reset_all(void *unused) {
    for (int i = 0; i < FINISHED; i++) {
        __atomic_add_fetch(&next_round, 1, __ATOMIC_SEQ_CST);
        for (int tries = 1; __atomic_load_n(&next_round, __ATOMIC_SEQ_CST) < 2 * (i + 1); tries++)
            if (tries % 1000 == 0)
                sched_yield();
        reset_one(finished[i]);
    }
    return unused;
}
static void reset_on_two_threads(void) {
    enum { SIZE = 8192 };
    for (int i = 0; i < FINISHED; i++) {
        memories[i] = malloc(SIZE);
        haft_fiber_options_t options = {.memory = memories[i], .memory_size = SIZE};
        finished[i] = haft_fiber_new_with(&options, return_at_once, NULL);
        haft_resume(finished[i], HAFT_NO_REPLY, HAFT_HANDLES(move));
    }
    haft_set_error_handler(go_on_after_error);
    pthread_t other;
    pthread_create(&other, NULL, reset_all, NULL);
    reset_all(NULL);
    pthread_join(other, NULL);
    haft_set_error_handler(NULL);
    for (int i = 0; i < FINISHED; i++) {
        haft_fiber_options_t options = {.memory = memories[i], .memory_size = SIZE};
        haft_fiber_drop(finished[i]);
        haft_fiber_drop(haft_fiber_new_with(&options, return_at_once, NULL));
        free(memories[i]);
    }
}
static void memory_of_a_fiber_that_two_threads_have_reset_can_be_used_again(void) {
    for (int i = 0; i < check_times(20); i++)
        CHECK_SUCCEEDS(reset_on_two_threads);
}

/* ---- Whose a fiber is while its stack is looked at ---- */

/* In memory of the caller the low end of a stack is read when the fiber has been suspended. Here
   that faults, and the handler of the fault sees whether other threads may have the fiber
   already. */
enum { MEMORY = 256 * 1024, LOW_END = 64 * 1024 };
static haft_fiber_t *looked_at;
static char *low_end;
static volatile sig_atomic_t looks, late_looks;

static void let_read(int signal) {
    (void)signal;
    looks++;
    late_looks += haft_fiber_state(looked_at) == HAFT_FIBER_SUSPENDED;
    mprotect(low_end, LOW_END, PROT_READ | PROT_WRITE);
}
static void *forbid_reading(void *unused) {
    HAFT_PERFORM(move);
    mprotect(low_end, LOW_END, PROT_NONE);
    HAFT_PERFORM(move); /* what it finds is known by now */
    return unused;
}
static void a_stack_is_looked_at_before_another_thread_can_have_the_fiber(void) {
    low_end = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(low_end != MAP_FAILED);
    haft_fiber_options_t options = {.memory = low_end, .memory_size = MEMORY};
    looked_at = haft_fiber_new_with(&options, forbid_reading, NULL);
    struct sigaction before, action = {.sa_handler = let_read, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, &before);
    haft_resume(looked_at, HAFT_NO_REPLY, HAFT_HANDLES(move));
    haft_resume(looked_at, HAFT_NO_REPLY, HAFT_HANDLES(move));
    sigaction(SIGSEGV, &before, NULL);
    CHECK_EQUAL(looks, 1);
    CHECK_EQUAL(late_looks, 0);
    haft_fiber_drop(looked_at);
    munmap(low_end, MEMORY);
}

int main(void) {
    RUN(a_new_thread_has_no_handlers_of_the_one_that_started_it);
    RUN(threads_that_each_use_only_their_own_handlers_do_not_meet);
    RUN(a_suspended_fiber_goes_on_on_any_thread);
    RUN(a_detached_fiber_goes_on_on_any_thread);
    RUN(a_chain_of_fibers_and_handlers_moves_as_a_whole);
    RUN(a_moved_fiber_finds_the_handlers_of_its_new_thread);
    RUN(a_fiber_may_be_dropped_by_another_thread_than_it_ran_on);
    RUN(a_fiber_outlives_the_thread_that_it_was_suspended_on);
    if (!RUNNING_ON_VALGRIND) /* whose handlers of faults do not end them */
        RUN(a_stack_is_looked_at_before_another_thread_can_have_the_fiber);
    /* ThreadSanitizer rightly reports these. */
    if (!CHECK_THREAD_SANITIZER) {
        RUN(two_threads_that_resume_one_fiber_are_caught);
        RUN(two_threads_that_resume_one_fiber_once_are_caught_or_take_turns);
        RUN(a_thread_that_frees_what_another_resumes_is_caught);
        RUN(threads_that_fight_for_fibers_and_survive_the_errors_never_meet_on_one);
        RUN(two_threads_that_free_one_finished_fiber_are_always_caught);
        RUN(memory_of_a_fiber_that_two_threads_have_reset_can_be_used_again);
    }
    return check_end();
}
/* SPDX-License-Identifier: MIT */
