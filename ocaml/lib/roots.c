/*
 * The garbage collector's hooks.
 *
 * Running fibers need none: the runtime's own walk goes from each into its parent. For the others:
 *
 * - Fibers that were suspended since the last minor collection are on a list, `haft_ocaml_young`.
 * Every scan of the roots takes what is on them for live. When a minor collection ends, the list is
 * emptied: fibers whose continuation has died are ended; those whose continuation has survived get
 * a block of the major heap that keeps what their stacks refer to (stacks.c). From then on the
 * major collector decides. No minor collection looks at them again, because a suspended stack does
 * not change.
 * - The local roots of C functions that have called back into code which has changed its fiber
 * since are no longer in the runtime's list; they are found from `fiber->parent_roots`.
 */
#include "runtime.h"

#include <stdlib.h>

ocaml_fiber_t *haft_ocaml_young = (ocaml_fiber_t *)YOUNG_END;

HAFT_INLINE bool is_end(const ocaml_fiber_t *fiber) {
    return fiber == (ocaml_fiber_t *)YOUNG_END;
}

/* ---- Local roots of functions whose stack is a parent's ---- */

static ocaml_fiber_t **rooted;
static size_t rooted_count, rooted_room;

void haft_ocaml_list_rooted(ocaml_fiber_t *fiber) {
    haft_fiber_t *header = haft_of(fiber);
    if (header->alias != NULL)
        return; /* It is on the list. */
    if (rooted_count == rooted_room) {
        rooted_room = rooted_room == 0 ? 64 : rooted_room * 2;
        rooted = realloc(rooted, rooted_room * sizeof(ocaml_fiber_t *));
        if (rooted == NULL)
            caml_fatal_error("haft: no memory for the list of local roots");
    }
    header->alias = &haft_ocaml_handles;
    rooted[rooted_count++] = fiber;
}

void haft_ocaml_parent_has_roots(ocaml_fiber_t *fiber);

/* Called when `fiber` gets a parent with local roots; it goes on with its own. */
void haft_ocaml_parent_has_roots(ocaml_fiber_t *fiber) {
    Caml_state->local_roots = NULL;
    haft_ocaml_list_rooted(fiber);
}

/* Whether the fiber is suspended inside another one. */
static bool within_suspended(const ocaml_fiber_t *fiber) {
    for (haft_scope_t *scope = fiber->scope.outer; scope != NULL; scope = scope->outer) {
        const ocaml_fiber_t *outer = fiber_of_scope(scope);
        if (outer != NULL && is_suspended(outer))
            return true;
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
    for (size_t i = 0; i < rooted_count; i++) {
        ocaml_fiber_t *fiber = rooted[i];
        if (fiber->continuation != FIBER_RUNNING || fiber->parent_roots == NULL) {
            haft_of(fiber)->alias = NULL;
            continue;
        }
        rooted[kept++] = fiber;
        if (!within_suspended(fiber))
            haft_ocaml_scan_roots_blocks(action, fiber->parent_roots);
    }
    rooted_count = kept;
}

/* ---- The hooks ---- */

static void (*scan_before)(scanning_action action);
static void (*end_before)(void);

static void scan(scanning_action action) {
    if (scan_before != NULL)
        scan_before(action);
    scan_parents(action);
    haft_ocaml_scan_foreign(action);
    for (ocaml_fiber_t *fiber = haft_ocaml_young; !is_end(fiber); fiber = fiber->young) {
        __builtin_prefetch(fiber->young);
        if (is_suspended(fiber))
            haft_ocaml_scan_suspended(action, fiber);
    }
    if (action != caml_oldify_one && action != caml_darken) /* compaction: everything moves */
        haft_ocaml_scan_settled(action);
}

static void minor_collection_ends(void) {
    if (end_before != NULL)
        end_before();
    long put_away = 0;
    ocaml_fiber_t *fiber = haft_ocaml_young;
    haft_ocaml_young = (ocaml_fiber_t *)YOUNG_END;
    while (!is_end(fiber)) {
        ocaml_fiber_t *next = fiber->young;
        __builtin_prefetch(next);
        fiber->young = NULL;
        if (is_suspended(fiber)) {
            value continuation = fiber->continuation;
            if (Hd_val(continuation) != 0) /* it was not moved */
                haft_ocaml_end(fiber);
            else
                put_away += haft_ocaml_settle(Field(continuation, 0), fiber);
        }
        fiber = next;
    }
    haft_ocaml_trim(put_away);
    haft_ocaml_watch_threads();
}

void haft_ocaml_watch_collector(void) {
    scan_before = caml_scan_roots_hook;
    caml_scan_roots_hook = scan;
    end_before = caml_minor_gc_end_hook;
    caml_minor_gc_end_hook = minor_collection_ends;
}
