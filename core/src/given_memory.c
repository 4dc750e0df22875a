/* SPDX-License-Identifier: MIT */
/*
 * The fibers outside the pool, by the memory that their callers gave them: for finding a fiber by
 * an address of its stack, for haft_fibers_dump, and for refusing memory that a live fiber has.
 *
 * A fiber has a place from when it is made until it has finished or is given up. Places are nodes
 * of a search tree (a treap: ordered by address, and a heap by a hash of the address, which keeps
 * it balanced). Nodes do not lie in the memory that they describe, and keep their own copy of what
 * they need: a program that overwrites the memory of a live fiber harms only that fiber.
 *
 * Invariants
 * - Places are disjoint, or one lies within the stack of the other: memory on a fiber's frame may
 *   serve another fiber. `around` is the next larger place around one. So the innermost place
 *   around an address is the last one that begins at or before it, or one around that.
 * - Nodes are never freed. A reader needs no lock, whatever writers do meanwhile, and trusts what
 *   it has read if `version` is even and has not changed.
 */
#define _GNU_SOURCE
#include "stacks.h"

#include <pthread.h>
#include <sys/mman.h>

typedef struct haft_place {
    struct haft_place *left, *right;
    struct haft_place *around;
    const char *low, *high;
    haft_fiber_t *fiber;
} place_t;

place_t *haft_places;
static place_t *spare;
static uint64_t version; /* odd while the tree is being changed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

static void begin_change(void) {
    pthread_mutex_lock(&lock);
    SET(version, version + 1);
}

static void end_change(void) {
    SET(version, version + 1);
    pthread_mutex_unlock(&lock);
}

/* ---- The tree ---- */

static uint64_t height_of(const place_t *place) {
    uint64_t mixed = ((uintptr_t)place->low >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (mixed ^ mixed >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

static void insert(place_t *place) {
    place_t **link = &haft_places;
    uint64_t height = height_of(place);
    while (*link != NULL && height_of(*link) > height)
        link = place->low < (*link)->low ? &(*link)->left : &(*link)->right;
    place_t *rest = *link, **left = &place->left, **right = &place->right;
    while (rest != NULL) {
        bool before = rest->low < place->low;
        place_t ***end = before ? &left : &right;
        SET(**end, rest);
        *end = before ? &rest->right : &rest->left;
        rest = **end;
    }
    SET(*left, NULL);
    SET(*right, NULL);
    SET(*link, place);
}

static void take_out(place_t *place) {
    place_t **link = &haft_places;
    while (*link != place)
        link = place->low < (*link)->low ? &(*link)->left : &(*link)->right;
    place_t *left = place->left, *right = place->right;
    while (left != NULL && right != NULL) {
        bool left_on_top = height_of(left) > height_of(right);
        place_t **top = left_on_top ? &left : &right;
        SET(*link, *top);
        link = left_on_top ? &left->right : &right->left;
        *top = *link;
    }
    SET(*link, left != NULL ? left : right);
    SET(place->left, spare);
    spare = place;
}

/* The first place that begins after `address`. */
static place_t *after(const char *address) {
    place_t *found = NULL;
    for (place_t *place = haft_places; place != NULL;) {
        bool later = place->low > address;
        found = later ? place : found;
        place = later ? place->left : place->right;
    }
    return found;
}

/* The innermost place around `address`; without the lock, while the tree is at version `at`. */
static place_t *around(const char *address, uint64_t at) {
    place_t *found = NULL;
    for (place_t *place = GET(haft_places); place != NULL && GET(version) == at;) {
        bool later = GET(place->low) > address;
        found = later ? found : place;
        place = later ? GET(place->left) : GET(place->right);
    }
    while (found != NULL && address >= GET(found->high) && GET(version) == at)
        found = GET(found->around);
    return found;
}

static place_t *place_of(const haft_fiber_t *fiber) {
    place_t *place = around(fiber->low, version);
    while (place != NULL && place->fiber != fiber)
        place = place->around;
    return place;
}

static place_t *new_place(void) {
    enum { BLOCK = 64 * 1024 };
    if (spare == NULL) {
        place_t *block =
            mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            return NULL;
        for (size_t i = 0; i < BLOCK / sizeof *block; i++) {
            block[i].left = spare;
            spare = &block[i];
        }
    }
    place_t *place = spare;
    spare = place->left;
    return place;
}

/* ---- Listing ---- */

/* Whether the fiber's header is intact, so that its name and state can be read. */
static bool intact(const place_t *place) {
    return place->fiber->low == haft_stack_in(place->low) &&
           place->fiber->high == (const char *)place->fiber;
}

/* Whether frames of the fiber of `outer` may hold the memory in [low, high). */
static bool in_its_frames(const place_t *outer, const char *low, const char *high) {
    const haft_fiber_t *fiber = outer->fiber;
    if (!intact(outer) || low < fiber->low || high > fiber->high)
        return false;
    const char *here = __builtin_frame_address(0);
    const char *stopped = fiber->context.sp;
    switch (haft_fiber_state(fiber)) {
    case HAFT_FIBER_RUNNING:
        return low >= here || around(here, version) != outer;
    case HAFT_FIBER_SUSPENDED: /* perhaps in another one */
        return low >= stopped || stopped >= fiber->high;
    default:
        return false;
    }
}

bool haft_fibers_list(haft_fiber_t *fiber, void *memory, size_t size, const char *name,
                      bool is_new) {
    const char *low = memory, *high = low + size;
    begin_change();
    place_t *outer = around(low, version);
    place_t *taken = after(low);
    if (taken == NULL || taken->low >= high)
        taken = outer != NULL && !in_its_frames(outer, low, high) ? outer : NULL;
    const haft_fiber_t *live = taken != NULL && intact(taken) ? taken->fiber : NULL;
    place_t *place = taken == NULL ? new_place() : NULL;
    if (place != NULL) {
        if (is_new)
            haft_fiber_prepare(fiber, memory);
        SET(place->around, outer);
        SET(place->low, low);
        SET(place->high, high);
        SET(place->fiber, fiber);
        insert(place);
    }
    end_change();
    if (place == NULL && !is_new)
        haft_set_finished(fiber);
    if (taken != NULL)
        haft_memory_taken(live, name);
    if (place == NULL)
        (void)haft_pool_exhausted(size);
    return place != NULL;
}

static void remove_inside(const char *low, const char *high) {
    for (place_t *inner; (inner = after(low)) != NULL && inner->low < high;) {
        if (intact(inner)) {
            inner->fiber->state = HAFT_FIBER_DROPPED;
            __atomic_store_n(&inner->fiber->context.gate, HAFTI_GATE_CLOSED, __ATOMIC_RELEASE);
        }
        take_out(inner);
    }
}

void haft_fibers_unlist(haft_fiber_t *fiber) {
    begin_change();
    place_t *place = place_of(fiber);
    if (place != NULL) {
        remove_inside(place->low, place->high);
        take_out(place);
    }
    end_change();
}

void haft_fibers_lost(const haft_fiber_t *fiber) {
    if (GET(haft_places) == NULL)
        return;
    begin_change();
    remove_inside(fiber->low - 1, fiber->high);
    end_change();
}

/* ---- Looking ---- */

bool haft_fibers_on(const haft_fiber_t *fiber) {
    if (GET(haft_places) == NULL)
        return false;
    pthread_mutex_lock(&lock);
    const place_t *place = after(fiber->low - 1);
    bool some = place != NULL && place->low < fiber->high;
    pthread_mutex_unlock(&lock);
    return some;
}

/* Called from signal handlers too: a list that is being changed is left out. */
void haft_fibers_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument) {
    haft_pool_each(visit, argument);
    if (pthread_mutex_trylock(&lock) != 0)
        return;
    for (place_t *place = after(NULL); place != NULL; place = after(place->low))
        if (intact(place))
            visit(place->fiber, argument);
    pthread_mutex_unlock(&lock);
}

/* A place may lie on a stack of the pool. */
haft_fiber_t *haft_fiber_at(const void *address) {
    if (GET(haft_places) != NULL) {
        uint64_t at = GET(version);
        place_t *place = around(address, at);
        haft_fiber_t *fiber = place != NULL ? GET(place->fiber) : NULL;
        if (HAFTI_UNLIKELY((at & 1) != 0 || GET(version) != at)) {
            pthread_mutex_lock(&lock);
            place = around(address, version);
            fiber = place != NULL ? place->fiber : NULL;
            pthread_mutex_unlock(&lock);
        }
        if (fiber != NULL)
            return fiber;
    }
    return haft_pool_fiber_at(address);
}

/* ---- A child of fork has the locks as they were, and only the thread that called it ---- */

static void before_fork(void) {
    pthread_mutex_lock(&lock);
    haft_pool_before_fork();
}

static void after_fork(void) {
    haft_pool_after_fork();
    pthread_mutex_unlock(&lock);
}

void haft_fibers_watch_forks(void) {
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- For debuggers ---- */

const haft_shown_t haft_shown_given_memory[] = {
    HAFT_SHOWN_FIELD("place", place_t, left), HAFT_SHOWN_FIELD("place", place_t, right),
    HAFT_SHOWN_FIELD("place", place_t, fiber), HAFT_SHOWN_ADDRESS("places", haft_places),
    HAFT_SHOWN_END};
