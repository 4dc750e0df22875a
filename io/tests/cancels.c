/* SPDX-License-Identifier: MIT */
/*
 * A cancel, or a deadline that passes, at each wait of programs that use everything, and at each
 * two of their waits: of the scope of the whole, or of the innermost around the wait; before the
 * back end knows of the wait, when others have run, when the thread has polled. Afterwards no
 * descriptor, stack, memory, timer, waiter or registered operation is left, and the scope ends with
 * -ETIMEDOUT if its deadline has cut something short, and only then.
 *
 * The linker puts functions of this file (__wrap_) in the way of the library's waits and
 * allocations, and of what it does at a cancelled wait, and at the end of a scope.
 */
#include "../src/simulation/simulation.h"
#include "sample.h"

#include <pthread.h>
#include <time.h>

/* ---- What is left of memory ---- */

#define FAILS_TO_ALLOCATE(name, size) false
#include "blocks.h"

/* ---- Cancels and deadlines ---- */

enum moment { AT_ONCE, SOON, LATER, MOMENTS };
typedef struct injection {
    int wait;      /* its number; -1: none */
    bool deadline; /* of the scope passes; else it is cancelled */
    bool innermost;
    enum moment moment;
} injection_t;

static injection_t injections[2];
static int waits;
static haft_io_scope_t *root, *whole; /* whole: NULL once it may have ended */
static pthread_mutex_t whole_is_there = PTHREAD_MUTEX_INITIALIZER;
static bool whole_is_cancelled;
static int cancels_to_come;

/* By injection. */
static struct late {
    haft_io_scope_t *scope; /* whose deadline passes; NULL once it has ended */
    int cuts;               /* waits that the deadline has cut short */
} late[2];
static void (*time_out)(hafti_io_timer_t *timer); /* the library's, of scopes */

/* The scope's thread looks at its timers at this moment, or finds that the time has come when it
   looks next. */
static void pass_deadline(haft_io_scope_t *scope, hafti_io_worker_t *worker, int number) {
    enum moment moment = injections[number].moment;
    bool is_here = scope->worker == worker;
    hafti_io_lock_scope(scope);
    bool has_passed = scope->late;
    hafti_io_unlock_scope(scope);
    if (has_passed)
        return;
    if (is_here)
        hafti_io_timer_remove(&worker->timers, &scope->timer);
    __atomic_store_n(&late[number].scope, scope, __ATOMIC_RELEASE);
    if (moment == AT_ONCE || !is_here) {
        time_out(&scope->timer);
        return;
    }
    scope->timer.fire = time_out;
    int64_t deadline = moment == SOON ? 0 : hafti_io_worker_now(worker) + 1;
    hafti_io_timer_add(&worker->timers, &scope->timer, deadline);
}

static void cancel_whole(void) {
    pthread_mutex_lock(&whole_is_there);
    if (whole != NULL) {
        whole_is_cancelled = true;
        haft_io_scope_cancel(whole);
    }
    pthread_mutex_unlock(&whole_is_there);
}
static void pass_deadline_of_whole(hafti_io_worker_t *worker, int number) {
    pthread_mutex_lock(&whole_is_there);
    if (whole != NULL)
        pass_deadline(whole, worker, number);
    pthread_mutex_unlock(&whole_is_there);
}
static void *cancel_soon(void *moment) {
    if ((enum moment)(intptr_t)moment == SOON)
        haft_io_yield();
    else
        haft_io_sleep(1);
    cancel_whole();
    __atomic_sub_fetch(&cancels_to_come, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Not by haft_io_spawn, since a wait may be in a clause of the handler that this asks for the
   task. */
static void start_cancel(hafti_io_worker_t *worker, enum moment moment) {
    haft_io_task_t *task = hafti_io_task_new(worker, root, cancel_soon, check_number(moment));
    CHECK(task != NULL);
    __atomic_add_fetch(&cancels_to_come, 1, __ATOMIC_RELAXED);
    hafti_io_enqueue_new(worker, task);
}

static void come_to_a_wait(haft_io_task_t *task) {
    if (task == NULL || task->runner->scope == root)
        return;
    int number = __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        const injection_t *injection = &injections[i];
        if (number != injection->wait)
            continue;
        if (injection->deadline && injection->innermost)
            pass_deadline(task->runner->scope, task->worker, i);
        else if (injection->deadline)
            pass_deadline_of_whole(task->worker, i);
        else if (injection->innermost)
            haft_io_scope_cancel(task->runner->scope);
        else if (injection->moment == AT_ONCE)
            cancel_whole();
        else
            start_cancel(task->worker, injection->moment);
    }
}

uint32_t __real_hafti_io_cell_wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind,
                                   int64_t deadline, const char *waits_for);
uint32_t __wrap_hafti_io_cell_wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind,
                                   int64_t deadline, const char *waits_for);
uint32_t __wrap_hafti_io_cell_wait(hafti_io_cell_t *cell, enum hafti_io_wait_kind kind,
                                   int64_t deadline, const char *waits_for) {
    come_to_a_wait(cell->task);
    return __real_hafti_io_cell_wait(cell, kind, deadline, waits_for);
}
static void sample_yields(void) {
    come_to_a_wait(haft_io_self());
}
/* Where an operation of the simulation that does not wait begins: it yields before. */
bool __real_hafti_io_fault_is_drawn(hafti_io_simulated_t *simulated);
bool __wrap_hafti_io_fault_is_drawn(hafti_io_simulated_t *simulated);
bool __wrap_hafti_io_fault_is_drawn(hafti_io_simulated_t *simulated) {
    come_to_a_wait(haft_io_self());
    return __real_hafti_io_fault_is_drawn(simulated);
}
int __real_hafti_io_fault_of(hafti_io_simulated_state_t *state, hafti_io_object_t *object,
                             bool writes);
int __wrap_hafti_io_fault_of(hafti_io_simulated_state_t *state, hafti_io_object_t *object,
                             bool writes);
int __wrap_hafti_io_fault_of(hafti_io_simulated_state_t *state, hafti_io_object_t *object,
                             bool writes) {
    come_to_a_wait(haft_io_self());
    return __real_hafti_io_fault_of(state, object, writes);
}

/* ---- What a deadline cuts short ---- */

/* A cancel has reached the task where it waits. */
static void is_cut_short(void) {
    const haft_io_scope_t *scope = hafti_io_this_task()->runner->scope;
    bool is_cancelled = __atomic_load_n(&scope->cancelled, __ATOMIC_ACQUIRE);
    CHECK(is_cancelled);
    for (int i = 0; i < 2; i++)
        if (is_cancelled &&
            __atomic_load_n(&late[i].scope, __ATOMIC_ACQUIRE) == scope->cancelled_by)
            __atomic_add_fetch(&late[i].cuts, 1, __ATOMIC_RELAXED);
}
int __real_haft_io_unwind_cancelled(void);
int __wrap_haft_io_unwind_cancelled(void);
int __wrap_haft_io_unwind_cancelled(void) {
    is_cut_short();
    return __real_haft_io_unwind_cancelled();
}
/* Waits for the tasks of a scope are cancelled, too; scope.c does that by itself. */
__attribute__((noreturn)) void __real_haft_throw(haft_effect_t *effect, const void *payload,
                                                 size_t size);
__attribute__((noreturn)) void __wrap_haft_throw(haft_effect_t *effect, const void *payload,
                                                 size_t size);
void __wrap_haft_throw(haft_effect_t *effect, const void *payload, size_t size) {
    const haft_payload_hafti_io_unwind *unwound = payload;
    if (effect == HAFT_ID(hafti_io_unwind) && unwound->code == -ECANCELED)
        is_cut_short();
    __real_haft_throw(effect, payload, size);
}

/* Nobody is in it any more. A failure or a cancel may have ended it before the deadline cut
   anything short. */
static void scope_ends(struct late *of) {
    int code = of->scope->code;
    if (code == 0 || code == -ETIMEDOUT)
        CHECK_EQUAL(code, of->cuts != 0 ? -ETIMEDOUT : 0);
    __atomic_store_n(&of->scope, NULL, __ATOMIC_RELAXED);
}
/* A task that leaves a scope removes its timer at the end. */
void __real_hafti_io_timer_remove(hafti_io_timers_t *timers, hafti_io_timer_t *timer);
void __wrap_hafti_io_timer_remove(hafti_io_timers_t *timers, hafti_io_timer_t *timer);
void __wrap_hafti_io_timer_remove(hafti_io_timers_t *timers, hafti_io_timer_t *timer) {
    __real_hafti_io_timer_remove(timers, timer);
    for (int i = 0; i < 2; i++) {
        haft_io_scope_t *scope = __atomic_load_n(&late[i].scope, __ATOMIC_ACQUIRE);
        if (scope != NULL && timer == &scope->timer)
            scope_ends(&late[i]);
    }
}

/* ---- One run ---- */

static int code_of_whole;

static void forget_whole(__attribute__((unused)) const int *unused) {
    pthread_mutex_lock(&whole_is_there);
    whole = NULL;
    pthread_mutex_unlock(&whole_is_there);
}
BODY(run_sample) {
    whole = haft_io_this_scope();
    __attribute__((cleanup(forget_whole), unused)) int ends = 0;
    must(haft_io_scope(sample->body, NULL, NULL));
    return NULL;
}
BODY(run_in_a_scope) {
    code_of_whole = haft_io_scope(run_sample, NULL, NULL);
    return NULL;
}

static bool nobody_waits_on(hafti_io_crew_t *crew, int descriptor) {
    const hafti_io_descriptor_t *entry = hafti_io_descriptor(crew->descriptors, descriptor, false);
    return entry == NULL || (hafti_io_ring_empty(&entry->waiters[HAFTI_IO_INWARD]) &&
                             hafti_io_ring_empty(&entry->waiters[HAFTI_IO_OUTWARD]) &&
                             __atomic_load_n(&entry->uses, __ATOMIC_ACQUIRE) == 0);
}
BODY(learn_time_out) {
    time_out = haft_io_this_scope()->timer.fire;
    return NULL;
}
BODY(run_and_look) {
    hafti_io_crew_t *crew = haft_io_self()->worker->crew;
    root = haft_io_this_scope();
    if (crew->count ==
        1) /* All waits are by hafti_io_cell_wait, as those of several threads are. */
        crew->workers[0]->plain = false;
    haft_io_scope_with(&(haft_io_scope_options_t){.deadline = HAFT_IO_FOREVER}, learn_time_out,
                       NULL, NULL);
    run_in_a_scope(NULL);
    while (__atomic_load_n(&cancels_to_come, __ATOMIC_ACQUIRE) != 0)
        haft_io_sleep(1);
    for (int i = 0; i < 256; i++)
        CHECK(nobody_waits_on(crew, i) && nobody_waits_on(crew, HAFTI_IO_FIRST_SIMULATED + i));
    if (how == NULL)
        CHECK_EQUAL(haft_io_simulated_count(), 0);
    for (unsigned i = 0; i < crew->count; i++) {
        CHECK_EQUAL(crew->workers[i]->waiting, 0);
        CHECK_EQUAL(crew->workers[i]->timers.count, 0);
    }
    return NULL;
}

static long runs; /* -1: the first in each way, of which the libraries keep something */

/* Memory that a library keeps after the first run of a way is kept once: another such run keeps no
   more. */
static bool runs_again;

/* True: all injections have come. */
static bool run_with(injection_t first, injection_t second) {
    int before = check_failures, descriptors = check_descriptors();
    long blocks_before = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
    injections[0] = first;
    injections[1] = second;
    memset(late, 0, sizeof late);
    waits = 0;
    whole_is_cancelled = false;
    code_of_whole = 1;
    sample_reset();
    CHECK_EQUAL(sample_run(run_and_look), 0);
    /* Code that goes on after the end of the innermost scope may fail in its own way. */
    if (!first.innermost && !second.innermost)
        CHECK_EQUAL(code_of_whole, whole_is_cancelled  ? -ECANCELED
                                   : late[0].cuts != 0 ? -ETIMEDOUT
                                                       : 0);
    CHECK(late[0].scope == NULL && late[1].scope == NULL);
    CHECK(sample_is_idle());
    CHECK_EQUAL(check_descriptors(), descriptors);
    CHECK_EQUAL(haft_pool_report().stacks, 0);
    if (runs >= 0 && sample_has_one_thread()) {
        long blocks_after = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
        if (blocks_after != blocks_before && !runs_again) {
            runs_again = true;
            bool all = run_with(first, second);
            runs_again = false;
            return all;
        }
        CHECK_EQUAL(blocks_after, blocks_before);
    }
    if (check_failures != before)
        fprintf(stderr, "%s; cancels or deadlines %d.%d.%d.%d and %d.%d.%d.%d\n", sample_place(),
                first.wait, first.deadline, first.innermost, first.moment, second.wait,
                second.deadline, second.innermost, second.moment);
    return waits > first.wait && waits > second.wait;
}

/* ---- All runs ---- */

static double seconds; /* for the pairs of one program on one back end; negative: all of them */
static const injection_t never = {-1, false, false, AT_ONCE};

/* Which scope ends when: that of the whole at each moment, the innermost at once. */
enum { WAYS = MOMENTS + 1 };
static injection_t in_way(int wait, bool deadline, int way) {
    return way == MOMENTS ? (injection_t){wait, deadline, true, AT_ONCE}
                          : (injection_t){wait, deadline, false, (enum moment)way};
}

static void cut_at_each_wait(void) {
    for (int way = 0; way < 2 * WAYS; way++)
        for (int i = 0; check_failures == 0 && run_with(in_way(i, way >= WAYS, way % WAYS), never);
             i++)
            runs++;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool drawn(void) {
    return rand() % 2 != 0;
}

/* The second is of the innermost scope: that of a cleanup, or of what goes on after the first.
   Whether they are cancels or deadlines is drawn. */
static void cut_at_each_two_waits(void) {
    double until = now() + seconds;
    for (int way = 0; way < 2; way++)
        for (int i = 0; check_failures == 0; i++) {
            int way_of_first = way == 0 ? AT_ONCE : MOMENTS;
            if (!run_with(in_way(i, drawn(), way_of_first), never))
                break;
            for (int j = i + 1; check_failures == 0 && run_with(in_way(i, drawn(), way_of_first),
                                                                in_way(j, drawn(), MOMENTS));
                 j++) {
                runs++;
                if (seconds >= 0 && now() > until)
                    j += rand() % 16;
            }
            if (seconds >= 0 && now() > until)
                i += rand() % 16;
        }
}

static void cut_everywhere(const haft_io_run_options_t *options) {
    how = options;
    for (int i = 0; i < SAMPLES; i++) {
        sample = &samples[i];
        if (how == NULL && !sample->simulated)
            continue;
        double began = now();
        runs = -1;
        run_with(never, never);
        int waits_of_one = waits;
        for (int way = 0; way < 2 * WAYS; way++)
            run_with(in_way(0, way >= WAYS, way % WAYS), never);
        runs = 0;
        long blocks_before = blocks;
        cut_at_each_wait();
        long single = runs;
        cut_at_each_two_waits();
        /* Threads that have ended leave a few for the next ones, in hundreds of runs. */
        CHECK(blocks < blocks_before + 16);
        printf("%s: %d waits, %ld runs with a cancel or deadline, %ld with two (%.1f s)\n",
               sample_place(), waits_of_one, single, runs - single, now() - began);
        fflush(stdout);
    }
}

static void nothing_is_left_by_a_cancel_or_deadline_at_any_wait(void) {
    check_everywhere(cut_everywhere);
}
static void nothing_is_left_by_a_cancel_or_deadline_at_any_wait_of_a_simulation(void) {
    cut_everywhere(NULL);
}

int main(void) {
    sample_begin();
    seconds =
        check_campaign("HAFT_CANCEL_SECONDS", check_bare() ? -1 : 0.1, check_bare() ? -1 : 0.3);
    /* The thread sanitizer's long campaign does this for a minute: what the threads do meanwhile
       differs. */
    double until = now() + check_campaign("HAFT_CANCELS_FOR", 0, CHECK_THREAD_SANITIZER ? 30 : 0);
    do {
        RUN(nothing_is_left_by_a_cancel_or_deadline_at_any_wait_of_a_simulation);
        RUN(nothing_is_left_by_a_cancel_or_deadline_at_any_wait);
    } while (check_failures == 0 && now() < until);
    return check_end();
}
