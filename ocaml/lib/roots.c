/* SPDX-License-Identifier: MIT */
/*
 * The garbage collector's hooks.
 *
 * Running fibers need no hook: the runtime's own walk goes from each into its parent. Others do:
 *
 * - Fibers that were suspended since the last minor collection are on a list, `haft_ocaml_young`.
 *   A minor collection scans the stacks of those whose continuation it has reached, in rounds: each
 *   may reach further ones. When it ends, the list is emptied: fibers whose continuation has died
 *   are ended, the others are recent. No minor collection scans them again, because a suspended
 *   stack does not change. Every other scan of the roots treats what is on their stacks as live.
 * - A small fiber stays recent for a while: it is a root of the next cycle of the major collector.
 *   If it is still suspended when another one begins, or there are many, it gets a block of the
 *   major heap that keeps what its stack refers to (stacks.c), and from then on the collector
 *   decides. Threads that take turns are mostly resumed earlier. A cycle that runs already needs no
 *   such roots: everything that it could miss was reachable when it began. If the program asks for
 *   whole cycles (`Gc.full_major`), the last cycle must find all dropped continuations.
 * - A C function may have called back into OCaml code that has changed its fiber since. The local
 *   roots of such functions are no longer in the runtime's list; they are found from
 *   `fiber->parent_roots`.
 */
#include "runtime.h"

#include <stdlib.h>

typedef struct fibers {
    ocaml_fiber_t **at;
    size_t count, room;
} fibers_t;

static void add(fibers_t *fibers, ocaml_fiber_t *fiber) {
    if (fibers->count == fibers->room) {
        fibers->room = fibers->room == 0 ? 64 : fibers->room * 2;
        fibers->at = realloc(fibers->at, fibers->room * sizeof(ocaml_fiber_t *));
        if (fibers->at == NULL)
            caml_fatal_error("haft: no memory for a list of fibers");
    }
    fibers->at[fibers->count++] = fiber;
}

/* Prefetches the memory that a scan of the shelf will need. */
HAFTI_INLINE void prefetch_shelf(const ocaml_fiber_t *shelf) {
    for (int line = 0; line < 3; line++)
        __builtin_prefetch((const char *)shelf - 64 * line);
}
enum { AHEAD = 8 };

/* ---- Fibers that were suspended since the last minor collection ---- */

ocaml_fiber_t *haft_ocaml_young = (ocaml_fiber_t *)YOUNG_END;
static fibers_t young_shelves;

HAFTI_INLINE bool is_end(const ocaml_fiber_t *fiber) {
    return fiber == (ocaml_fiber_t *)YOUNG_END;
}

void haft_ocaml_list_young(ocaml_fiber_t *fiber) {
    if (fiber->young != NULL)
        return;
    fiber->young = haft_ocaml_young;
    haft_ocaml_young = fiber;
}

void haft_ocaml_list_shelf(ocaml_fiber_t *shelf) {
    if (shelf->young != NULL)
        return;
    shelf->young = (ocaml_fiber_t *)YOUNG_END;
    add(&young_shelves, shelf);
}

void haft_ocaml_list_suspended(ocaml_fiber_t *fiber) {
    if (is_shelf(fiber))
        haft_ocaml_list_shelf(fiber);
    else
        haft_ocaml_list_young(fiber);
}

/* ---- Local roots of functions whose stack is a parent's ---- */

static fibers_t rooted;

/* Values of `of_language`: whether the fiber is on the list and, during a scan, what was found. */
enum { UNLISTED, LISTED, WITHIN_RUNNING, WITHIN_SUSPENDED };

void haft_ocaml_list_rooted(ocaml_fiber_t *fiber) {
    haft_fiber_t *header = haft_of(fiber);
    if (header->of_language != UNLISTED)
        return;
    header->of_language = LISTED;
    add(&rooted, fiber);
}

void haft_ocaml_parent_has_roots(ocaml_fiber_t *fiber);

/* Called when `fiber` gets a parent with local roots; it goes on with its own. */
void haft_ocaml_parent_has_roots(ocaml_fiber_t *fiber) {
    assert(haft_ocaml_is_valid(fiber));
    Caml_state->local_roots = NULL;
    haft_ocaml_list_rooted(fiber);
}

/* Whether the fiber is suspended inside another one. An outer fiber that the scan has come past
   knows the answer: so fibers that were listed from the outermost inwards cost a step each. */
static bool within_suspended(const ocaml_fiber_t *fiber) {
    for (hafti_scope_t *scope = fiber->scope.outer; scope != NULL; scope = scope->outer) {
        ocaml_fiber_t *outer = fiber_of_scope(scope);
        if (outer == NULL)
            continue;
        if (is_suspended(outer) || haft_of(outer)->of_language == WITHIN_SUSPENDED)
            return true;
        if (haft_of(outer)->of_language == WITHIN_RUNNING)
            return false;
    }
    return false;
}

void haft_ocaml_scan_roots_blocks(scanning_action action, struct caml__roots_block *blocks) {
    for (; blocks != NULL; blocks = blocks->next)
        for (intnat i = 0; i < blocks->ntables; i++)
            for (intnat j = 0; j < blocks->nitems; j++) {
                value *root = &blocks->tables[i][j];
                action(*root, root);
            }
}

static void scan_parents(scanning_action action) {
    size_t kept = 0;
    for (size_t i = 0; i < rooted.count; i++) {
        ocaml_fiber_t *fiber = rooted.at[i];
        if (!is_running(fiber) || fiber->parent_roots == NULL) {
            haft_of(fiber)->of_language = UNLISTED;
            continue;
        }
        rooted.at[kept++] = fiber;
        bool suspended = within_suspended(fiber);
        haft_of(fiber)->of_language = suspended ? WITHIN_SUSPENDED : WITHIN_RUNNING;
        if (!suspended)
            haft_ocaml_scan_roots_blocks(action, fiber->parent_roots);
    }
    rooted.count = kept;
    for (size_t i = 0; i < kept; i++)
        haft_of(rooted.at[i])->of_language = LISTED;
}

/* ---- Fibers that a minor collection has found suspended ---- */

enum { MOST_RECENT = 65536, SMALL = 2048 }; /* fibers; bytes of stack */

/* In the order in which they were suspended; NULL: it has been resumed. Their places are numbered
   continuously, modulo MOST_RECENT. */
static ocaml_fiber_t *recent[MOST_RECENT];
static size_t recent_first, recent_end;
static size_t recent_seen; /* those before it were there when the present cycle began */

HAFTI_INLINE ocaml_fiber_t **recent_at(size_t place) {
    return &recent[place % MOST_RECENT];
}

void haft_ocaml_forget_recent(ocaml_fiber_t *fiber) {
    uintptr_t mark = (uintptr_t)fiber->young;
    if ((mark & 1) == 0 || mark == YOUNG_END)
        return;
    size_t place = (mark - YOUNG_END - 2) / 2;
    *recent_at(place) = NULL;
    fiber->young = NULL;
    prefetch_shelf(*recent_at(place + 2)); /* Threads in turn are resumed in this order. */
}

static void settle_oldest(void) {
    ocaml_fiber_t *fiber = *recent_at(recent_first++);
    prefetch_shelf(*recent_at(recent_first + AHEAD));
    if (fiber != NULL) {
        fiber->young = NULL;
        haft_ocaml_settle(fiber->continuation, fiber);
    }
}

static void add_recent(value continuation, ocaml_fiber_t *fiber) {
    if (recent_end - recent_first == MOST_RECENT)
        settle_oldest();
    fiber->young = (ocaml_fiber_t *)(2 * recent_end + YOUNG_END + 2);
    fiber->continuation = continuation;
    Field(continuation, CONTINUATION_STATE_FIELD) = STACK_ASIDE;
    *recent_at(recent_end++) = fiber;
}

/* Whether no minor collection has come since the last marking ended. Some come before the next
   cycle begins, unless the program asks for whole cycles. */
static bool has_asked;

static void settle_seen(void) {
    if (has_asked)
        recent_seen = recent_end;
    while (recent_first < recent_seen)
        settle_oldest();
    recent_seen = recent_end;
}

/* Its fields refer to nothing in the heap; what is on its stack is scanned with the fiber. */
HAFTI_INLINE void darken_alone(value continuation) {
    if (Is_white_hd(Hd_val(continuation)))
        Hd_val(continuation) = Blackhd_hd(Hd_val(continuation));
}

void haft_ocaml_scan_continuation(scanning_action action, ocaml_fiber_t *fiber) {
    if (action == caml_darken)
        darken_alone(fiber->continuation);
    else
        action(fiber->continuation, &fiber->continuation);
}

static void scan_recent(scanning_action action) {
    for (size_t place = recent_first; place < recent_end; place++) {
        ocaml_fiber_t *fiber = *recent_at(place);
        prefetch_shelf(*recent_at(place + AHEAD));
        if (fiber != NULL) {
            haft_ocaml_scan_suspended(action, fiber);
            haft_ocaml_scan_continuation(action, fiber);
        }
    }
}

/* ---- The hooks ---- */

static void (*scan_before)(scanning_action action);
static void (*end_before)(void), (*marked_before)(void);
static void (*slice_begin_before)(void), (*slice_end_before)(void);

/* The major collector is doing a slice of its work. A compaction during that is the collector's own
   decision, and with a small heap there is one in some milliseconds; any other one the program has
   asked for. */
static bool in_slice;

static void slice_begins(void) {
    if (slice_begin_before != NULL)
        slice_begin_before();
    in_slice = true;
}

static void slice_ends(void) {
    if (slice_end_before != NULL)
        slice_end_before();
    in_slice = false;
}

/* A fiber that was placed before the last minor collection may be among them, with a continuation
   in the major heap. */
static void scan_young_fiber(scanning_action action, ocaml_fiber_t *fiber) {
    if (!is_suspended(fiber))
        return;
    haft_ocaml_scan_suspended(action, fiber);
    if (!Is_young(fiber->continuation) && action != caml_oldify_one)
        haft_ocaml_scan_continuation(action, fiber);
}

/* The list is walked far apart in memory, the shelves side by side. */
static void scan_young(scanning_action action) {
    for (ocaml_fiber_t *fiber = haft_ocaml_young; !is_end(fiber); fiber = fiber->young) {
        __builtin_prefetch(fiber->young);
        scan_young_fiber(action, fiber);
    }
    for (size_t i = 0; i < young_shelves.count; i++) {
        if (i + AHEAD < young_shelves.count)
            prefetch_shelf(young_shelves.at[i + AHEAD]);
        scan_young_fiber(action, young_shelves.at[i]);
    }
}

/* Young fibers that the present minor collection has not reached. (A shelf that it has reached is
   not marked as listed during the rounds.) */
static ocaml_fiber_t *unreached = (ocaml_fiber_t *)YOUNG_END;

HAFTI_INLINE bool is_reached(const ocaml_fiber_t *fiber) {
    value continuation = fiber->continuation;
    return !Is_young(continuation) || Hd_val(continuation) == 0;
}

/* Appends to the list that ends there; returns its new end. */
HAFTI_INLINE ocaml_fiber_t **append(ocaml_fiber_t **end, ocaml_fiber_t *fiber) {
    *end = fiber;
    return &fiber->young;
}

/* Scans the stacks of what has been reached since the last round, or of all. Returns whether there
   was any. */
static bool scan_reached(ocaml_fiber_t ***end, bool all) {
    bool some = false;
    ocaml_fiber_t *fiber = unreached, **left = &unreached;
    while (!is_end(fiber)) {
        ocaml_fiber_t *next = fiber->young;
        __builtin_prefetch(next);
        if (all || !is_suspended(fiber) || is_reached(fiber)) {
            *end = append(*end, fiber);
            scan_young_fiber(caml_oldify_one, fiber);
            some = true;
        } else {
            left = append(left, fiber);
        }
        fiber = next;
    }
    *left = (ocaml_fiber_t *)YOUNG_END;
    for (size_t i = 0; i < young_shelves.count; i++) {
        ocaml_fiber_t *shelf = young_shelves.at[i];
        if (i + 2 * AHEAD < young_shelves.count)
            prefetch_shelf(young_shelves.at[i + 2 * AHEAD]);
        if (i + AHEAD < young_shelves.count)
            __builtin_prefetch((void *)young_shelves.at[i + AHEAD]->continuation);
        if (shelf->young == NULL || !is_suspended(shelf) || !(all || is_reached(shelf)))
            continue;
        shelf->young = NULL;
        scan_young_fiber(caml_oldify_one, shelf);
        some = true;
    }
    return some;
}

/* The runtime has moved what its own roots lead to; now what the table of its major heap leads to,
   and then what the stacks do. (A chain of computations, each of which has the next one's
   continuation, could take a round each: after some rounds all that are left are scanned.) */
static void scan_reached_youth(void) {
    enum { ROUNDS = 8 };
    if (is_end(haft_ocaml_young) && young_shelves.count == 0)
        return;
    const struct caml_ref_table *table = Caml_state->ref_table;
    for (value **reference = table->base; reference < table->ptr; reference++)
        caml_oldify_one(**reference, *reference);
    unreached = haft_ocaml_young;
    ocaml_fiber_t **end = &haft_ocaml_young;
    int round = 0;
    do
        caml_oldify_mopup();
    while (scan_reached(&end, ++round == ROUNDS));
    *end = (ocaml_fiber_t *)YOUNG_END;
    for (size_t i = 0; i < young_shelves.count; i++)
        young_shelves.at[i]->young = (ocaml_fiber_t *)YOUNG_END;
}

static void scan(scanning_action action) {
    if (scan_before != NULL)
        scan_before(action);
    if (action == caml_darken)
        haft_ocaml_darken_placed();
    else
        haft_ocaml_scan_placed(action, action != caml_oldify_one);
    scan_parents(action);
    haft_ocaml_scan_foreign(action);
    /* (A hook around this one may have roots that it has not scanned yet.) */
    if (action == caml_oldify_one && caml_scan_roots_hook == scan)
        scan_reached_youth();
    else
        scan_young(action);
    if (action == caml_darken) {
        settle_seen(); /* This cycle finds out whether they are reachable. */
        scan_recent(action);
    } else if (action != caml_oldify_one) { /* compaction: everything moves */
        haft_ocaml_scan_settled(action);
        scan_recent(action);
        if (!in_slice)
            haft_ocaml_give_idle();
    }
}

/* Returns whether it has been dropped, and has ended. */
static bool end_youth(ocaml_fiber_t *fiber) {
    fiber->young = NULL;
    if (!is_suspended(fiber))
        return false;
    assert(haft_ocaml_is_valid(fiber));
    value continuation = fiber->continuation;
    if (Is_young(continuation)) {
        if (Hd_val(continuation) != 0) { /* it was not moved */
            haft_ocaml_end(fiber);
            return true;
        }
        continuation = Field(continuation, 0);
    }
    if ((is_shelf(fiber) || !haft_ocaml_many_stacks()) && is_alone(fiber) &&
        (char *)fiber - fiber->sp < SMALL)
        add_recent(continuation, fiber);
    else /* The collector is to know how much memory it stands for. */
        haft_ocaml_settle(continuation, fiber);
    return false;
}

/* Of all on the list. Returns how many have been dropped. */
static long end_youth_of(ocaml_fiber_t **list) {
    ocaml_fiber_t *fiber = *list;
    *list = (ocaml_fiber_t *)YOUNG_END;
    long dropped = 0;
    while (!is_end(fiber)) {
        ocaml_fiber_t *next = fiber->young;
        __builtin_prefetch(next);
        dropped += end_youth(fiber);
        fiber = next;
    }
    return dropped;
}

static void minor_collection_ends(void) {
    if (end_before != NULL)
        end_before();
    has_asked = false;
    haft_ocaml_end_placed_youth();
    long dropped = end_youth_of(&haft_ocaml_young) + end_youth_of(&unreached);
    for (size_t i = 0; i < young_shelves.count; i++) {
        if (i + 2 * AHEAD < young_shelves.count)
            __builtin_prefetch(young_shelves.at[i + 2 * AHEAD]);
        if (i + AHEAD < young_shelves.count)
            __builtin_prefetch((void *)young_shelves.at[i + AHEAD]->continuation);
        end_youth(young_shelves.at[i]);
    }
    young_shelves.count = 0;
    haft_ocaml_end_abandoned();
    haft_ocaml_reuse_hosts();
    haft_ocaml_forget_waiting();
    haft_ocaml_judge_early();
    haft_ocaml_trim(dropped);
    haft_ocaml_watch_threads();
}

static void marking_ends(void) {
    if (marked_before != NULL)
        marked_before();
    has_asked = true;
}

void haft_ocaml_watch_collector(void) {
    scan_before = caml_scan_roots_hook;
    caml_scan_roots_hook = scan;
    end_before = caml_minor_gc_end_hook;
    caml_minor_gc_end_hook = minor_collection_ends;
    slice_begin_before = caml_major_slice_begin_hook;
    caml_major_slice_begin_hook = slice_begins;
    slice_end_before = caml_major_slice_end_hook;
    caml_major_slice_end_hook = slice_ends;
    marked_before = caml_major_gc_hook;
    caml_major_gc_hook = marking_ends;
}
