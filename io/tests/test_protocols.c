/* SPDX-License-Identifier: MIT */
/*
 * The queue that is stolen from and the parking of threads, in every order of their steps: the code
 * itself (queue.h, parking.h), whose threads are fibers here that perform `step` before each access
 * to what they share. The handler chooses the task that goes on, and begins anew for each other
 * choice.
 *
 * A state that was seen before is not gone on from: what is shared, and for each thread what it has
 * read at its steps, since nothing else tells it what to do. Orders of memory that are weaker than
 * sequential consistency are not tried.
 */
#include "check_io.h"

HAFT_EFFECT(step, void, {
    const void *object;
    size_t size;
});
/* Nothing but this number tells the thread what to do from here on: what it has read before is
   forgotten. */
HAFT_EFFECT(begin_anew, void, { uint64_t state; });
/* Goes on when the word is 0. */
HAFT_EFFECT(await_zero, void, { const int *word; });

#define HAFTI_IO_STEP(accessed) HAFT_PERFORM(step, &(accessed), sizeof(accessed))
#define HAFTI_IO_QUEUE_SIZE 2u
#include "../src/parking.h"
#include "../src/queue.h"

enum { THREADS = 3, ITEMS = 3, OFFERS = 2, DEEPEST = 200 };

static struct {
    hafti_io_queue_t queue;
    hafti_io_parking_t parking;
    int sleeping[THREADS];
    int taken[ITEMS + 1]; /* how often; items are numbers from 1 on. Nobody looks at it. */
} shared;

/* ---- Every order ---- */

typedef struct model {
    void *(*threads[THREADS])(void *);
    int count;
    bool (*holds)(bool stuck); /* at the end, or when nobody can go on */
} model_t;

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0xbf58476d1ce4e5b9) + UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}
static uint64_t hash_shared(void) {
    const unsigned char *bytes = (const unsigned char *)&shared;
    uint64_t hash = 1;
    for (size_t i = 0; i < sizeof shared; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = mix(hash, word);
    }
    return hash;
}

/* The states that were seen, by open addressing. */
enum { SEEN = 1 << 22 };
static uint64_t *seen;
static size_t seen_count;
static bool is_new(uint64_t state) {
    size_t at = state % SEEN;
    for (; seen[at] != 0; at = (at + 1) % SEEN)
        if (seen[at] == state)
            return false;
    seen[at] = state;
    if (++seen_count > SEEN / 2)
        abort();
    return true;
}

static int choice[DEEPEST], width[DEEPEST];

typedef struct thread {
    haft_fiber_t *fiber;
    const int *awaits;
    HAFT_PAYLOAD(step) next; /* what it accesses when it goes on */
    uint64_t history;
    bool ended;
} thread_t;

static bool can_go_on(const thread_t *thread) {
    return !thread->ended && (thread->awaits == NULL || *thread->awaits == 0);
}

static void go_on(thread_t *thread) {
    uint64_t value = 1; /* for the begin, and a wait that is over */
    if (thread->next.object != NULL)
        memcpy(&value, thread->next.object, thread->next.size);
    thread->history = mix(thread->history, value);
    thread->next.object = NULL;
    thread->awaits = NULL;
    haft_request_t request;
    while ((request = haft_resume(thread->fiber, HAFT_NO_REPLY,
                                  HAFT_HANDLES(step, await_zero, begin_anew)))
               .effect == HAFT_ID(begin_anew))
        thread->history = mix(1, ((HAFT_PAYLOAD(begin_anew) *)request.payload)->state);
    if (request.effect == HAFT_ID(step))
        thread->next = *(HAFT_PAYLOAD(step) *)request.payload;
    else if (request.effect == HAFT_ID(await_zero))
        thread->awaits = ((HAFT_PAYLOAD(await_zero) *)request.payload)->word;
    else if (haft_finished(request))
        thread->ended = true;
}

/* One run, along the choices up to `depth`; the depth at which it ended. False: the model does not
   hold. */
static bool run_once(const model_t *model, int *depth) {
    thread_t threads[THREADS];
    memset(&shared, 0, sizeof shared);
    for (intptr_t i = 0; i < model->count; i++)
        threads[i] =
            (thread_t){.fiber = haft_fiber_new(model->threads[i], check_number(i)), .history = 1};
    bool holds = true;
    for (int at = 0;; at++) {
        uint64_t state = hash_shared();
        int able[THREADS], count = 0, ended = 0;
        for (int i = 0; i < model->count; i++) {
            state = mix(state, threads[i].history);
            ended += threads[i].ended;
            if (can_go_on(&threads[i]))
                able[count++] = i;
        }
        if (count == 0)
            holds = model->holds(ended < model->count);
        bool goes_on = count != 0 && at < DEEPEST && (at < *depth || is_new(state));
        if (!goes_on) {
            *depth = at;
            break;
        }
        if (at >= *depth)
            choice[at] = 0;
        width[at] = count;
        go_on(&threads[able[choice[at]]]);
    }
    for (int i = 0; i < model->count; i++)
        haft_fiber_drop(threads[i].fiber);
    return holds;
}

/* True: the model holds in every order. */
static bool holds_in_every_order(const model_t *model) {
    seen = calloc(SEEN, sizeof *seen);
    seen_count = 0;
    int depth = 0, runs = 0;
    bool holds = seen != NULL;
    while (holds) {
        holds = run_once(model, &depth);
        runs++;
        while (depth > 0 && choice[depth - 1] + 1 == width[depth - 1])
            depth--;
        if (depth == 0)
            break;
        choice[depth - 1]++;
    }
    fprintf(stderr, "%d runs, %zu states%s\n", runs, seen_count,
            holds ? "" : ", one that does not hold");
    free(seen);
    return holds;
}

/* ---- The queue: each item is taken once ---- */

static void put(intptr_t item) {
    if (!hafti_io_queue_put(&shared.queue, (void *)item))
        shared.taken[item]++; /* full: its owner keeps it */
}
static int take(uint32_t most) {
    void *items[HAFTI_IO_QUEUE_SIZE] = {NULL};
    uint32_t count = hafti_io_queue_take(&shared.queue, items, most);
    for (uint32_t i = 0; i < count; i++)
        shared.taken[(intptr_t)items[i]]++;
    return (int)count;
}

static bool first_taken(int items) {
    for (int item = 1; item <= items; item++)
        if (shared.taken[item] != 1)
            return false;
    return true;
}

BODY(own_three) {
    put(1);
    put(2);
    take(1);
    put(3);
    while (take(1) != 0)
        continue;
    return NULL;
}
static void take_newest(void) {
    intptr_t item = (intptr_t)hafti_io_queue_take_newest(&shared.queue);
    if (item != 0)
        shared.taken[item]++;
}
/* A slot is written again before the end has passed it. */
BODY(own_newest) {
    put(1);
    take_newest();
    put(2);
    put(3);
    take_newest();
    take_newest();
    while (take(1) != 0)
        continue;
    return NULL;
}
BODY(own_two) {
    put(1);
    put(2);
    take(1);
    return NULL;
}
BODY(steal_some) {
    take(2);
    return NULL;
}
static bool three_taken(bool stuck) {
    return !stuck && first_taken(3);
}
static bool taken_or_inside(bool stuck) {
    int inside = hafti_io_queue_inside(shared.queue.ends);
    int taken = shared.taken[1] + shared.taken[2];
    return !stuck && taken + inside == 2 && shared.taken[1] <= 1 && shared.taken[2] <= 1;
}
static void each_task_in_a_queue_is_taken_once(void) {
    CHECK(holds_in_every_order(&(model_t){{own_three, steal_some}, 2, three_taken}));
    CHECK(holds_in_every_order(&(model_t){{own_newest, steal_some}, 2, three_taken}));
    CHECK(holds_in_every_order(&(model_t){{own_newest, steal_some, steal_some}, 3, three_taken}));
    CHECK(holds_in_every_order(&(model_t){{own_two, steal_some, steal_some}, 3, taken_or_inside}));
}

/* ---- Parking: nobody sleeps while there is something to take ---- */

static bool looks_again; /* before it sleeps; without, wake-ups are lost */

static void rouse(int index) {
    HAFTI_IO_STEP(shared.sleeping[index]);
    __atomic_store_n(&shared.sleeping[index], 0, __ATOMIC_SEQ_CST);
}
static void wake_one(void) {
    int index = hafti_io_parking_wake(&shared.parking);
    if (index >= 0)
        rouse(index);
}

static void *look_for_work(void *argument) {
    int index = (int)(intptr_t)argument;
    hafti_io_parking_search(&shared.parking);
    for (bool searching = true;;) {
        HAFT_PERFORM(begin_anew, searching);
        if (!searching)
            hafti_io_parking_search(&shared.parking);
        if (take(1) != 0) {
            searching = false;
            HAFT_PERFORM(begin_anew, 2);
            if (hafti_io_parking_found(&shared.parking) && hafti_io_queue_count(&shared.queue) != 0)
                wake_one();
            continue;
        }
        HAFT_PERFORM(begin_anew, 3);
        HAFTI_IO_STEP(shared.sleeping[index]);
        __atomic_store_n(&shared.sleeping[index], 1, __ATOMIC_SEQ_CST);
        HAFT_PERFORM(begin_anew, 4);
        hafti_io_parking_sleep(&shared.parking, (unsigned)index);
        HAFT_PERFORM(begin_anew, 5);
        if (!looks_again || hafti_io_queue_count(&shared.queue) == 0)
            HAFT_PERFORM(await_zero, &shared.sleeping[index]);
        HAFT_PERFORM(begin_anew, 6);
        HAFTI_IO_STEP(shared.sleeping[index]);
        __atomic_store_n(&shared.sleeping[index], 0, __ATOMIC_SEQ_CST);
        HAFT_PERFORM(begin_anew, 7);
        searching = hafti_io_parking_rise(&shared.parking, (unsigned)index);
    }
    return NULL;
}
BODY(offer_two) {
    for (intptr_t item = 1; item <= OFFERS; item++) {
        HAFT_PERFORM(begin_anew, (uint64_t)item);
        put(item);
        HAFT_PERFORM(begin_anew, (uint64_t)item + ITEMS);
        wake_one();
    }
    return NULL;
}
/* All sleep in the end. */
static bool both_taken(bool stuck) {
    return stuck && first_taken(OFFERS);
}
static const model_t parking_model = {{look_for_work, look_for_work, offer_two}, 3, both_taken};

static void nobody_sleeps_while_there_is_a_task(void) {
    looks_again = true;
    CHECK(holds_in_every_order(&parking_model));
}
static void a_thread_that_does_not_look_again_would_lose_a_wake_up(void) {
    looks_again = false;
    CHECK(!holds_in_every_order(&parking_model));
}

int main(void) {
    RUN(each_task_in_a_queue_is_taken_once);
    RUN(nobody_sleeps_while_there_is_a_task);
    RUN(a_thread_that_does_not_look_again_would_lose_a_wake_up);
    return check_end();
}
