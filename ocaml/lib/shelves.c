/* SPDX-License-Identifier: MIT */
/*
 * Shelves: where suspended stacks lie while there are many.
 *
 * Stacks lie far apart, so that to switch between thousands misses the caches and the tables of
 * pages. So, while there are more than a few, a small stack is moved to a shelf when some more have
 * been suspended after it (not at once, because most continuations are resumed soon), and back to a
 * stack when it is resumed. Threads in turn then share a few stacks, which stay in the caches. One
 * that is too large for a shelf gets an image (stacks.c) at that time, if there are many stacks: at
 * the next minor collection it would get one from memory that is in no cache any more.
 *
 * A shelf is a suspended fiber that is too small to run on, and so it is for the garbage collector:
 *
 *   | ...words of the stack | header, up to the scope |      SHELF bytes
 *
 * They lie side by side in one reservation, whose memory has no other use: a stale pointer is
 * recognised by the continuation in the header.
 */
#include "runtime.h"

#include <string.h>
#include <sys/mman.h>

enum {
    SHELF = 512,
    HEADER = FIBER_SERIAL + 8,
    LARGEST = SHELF - HEADER + FIBER_TRAP, /* bytes of stack */
    WAITING = 16
};
_Static_assert(LARGEST % 16 == 0, "stacks are moved in steps of 16 bytes");
_Static_assert(LARGEST == SHELF_LARGEST, "layout.h");
static const size_t reservation = (size_t)256 << 20;

static char *shelves;
static size_t carved; /* bytes */
/* switch.S frees them, too. */
ocaml_fiber_t *haft_ocaml_free_shelves;
long haft_ocaml_shelves_in_use;

ocaml_fiber_t *haft_ocaml_take_shelf(size_t bytes) {
    if (bytes > LARGEST)
        return NULL;
    ocaml_fiber_t *shelf = haft_ocaml_free_shelves;
    if (HAFTI_LIKELY(shelf != NULL)) {
        haft_ocaml_free_shelves = (ocaml_fiber_t *)(void *)shelf->top;
    } else {
        if (shelves == NULL)
            shelves = mmap(NULL, reservation, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (shelves == MAP_FAILED || carved == reservation)
            return NULL;
        carved += SHELF;
        /* Half of them are for those that are placed. */
        haft_ocaml_most_placed = carved < reservation / 2 ? haft_ocaml_stack_size / 16 : 0;
        shelf = (ocaml_fiber_t *)(void *)(shelves + carved - HEADER);
        shelf->scope.handles = &haft_ocaml_handles;
        shelf->continuation = FIBER_IDLE;
    }
    haft_ocaml_shelves_in_use++;
    return shelf;
}

void haft_ocaml_free_shelf(ocaml_fiber_t *shelf) {
    shelf->continuation = FIBER_IDLE;
    shelf->top = (hafti_scope_t *)(void *)haft_ocaml_free_shelves;
    haft_ocaml_free_shelves = shelf;
    haft_ocaml_shelves_in_use--;
}

void haft_ocaml_trim_shelves(void) {
    if (haft_ocaml_shelves_in_use > 0 || carved == 0)
        return;
    madvise(shelves, carved, MADV_DONTNEED);
    haft_ocaml_free_shelves = NULL;
    carved = 0;
}

static void shelve(ocaml_fiber_t *fiber) {
    value continuation = fiber->continuation;
    if (!Is_young(continuation) || Field(continuation, CONTINUATION_STATE_FIELD) != STACK_YOUNG ||
        !is_alone(fiber) || fiber->roots != NULL ||
        has_callbacks(fiber, *(char **)(void *)fiber->sp))
        return;
    ocaml_fiber_t *shelf = haft_ocaml_take_shelf(bytes_of(fiber));
    if (shelf == NULL) {
        if (haft_ocaml_many_stacks())
            haft_ocaml_settle_early(continuation, fiber);
        return;
    }
    move_stack(fiber, shelf);
    shelf->continuation = continuation;
    assert(haft_ocaml_is_valid(shelf));
    set_holder(continuation, STACK_ASIDE, shelf);
    haft_ocaml_list_shelf(shelf);
    haft_ocaml_end_one(fiber);
}

ocaml_fiber_t *haft_ocaml_unshelve(ocaml_fiber_t *shelf) {
    if (!is_shelf(shelf))
        return shelf;
    ocaml_fiber_t *fiber = haft_ocaml_take_stack();
    if (fiber != NULL) {
        move_stack(shelf, fiber);
        haft_ocaml_forget_recent(shelf);
        haft_ocaml_free_shelf(shelf);
        assert(haft_ocaml_is_valid(fiber));
    }
    return fiber;
}

/* ---- Those that are to be moved ---- */

static ocaml_fiber_t *waiting[WAITING];
static size_t next_waiting;

void haft_ocaml_wait(ocaml_fiber_t *suspended);

/* Called by switch.S. */
void haft_ocaml_wait(ocaml_fiber_t *suspended) {
    ocaml_fiber_t *fiber = waiting[next_waiting];
    waiting[next_waiting] = suspended;
    next_waiting = (next_waiting + 1) % WAITING;
    if (fiber != NULL && fiber != suspended && is_suspended(fiber))
        shelve(fiber);
}

void haft_ocaml_forget_waiting(void) {
    memset(waiting, 0, sizeof waiting);
}
