/* SPDX-License-Identifier: MIT */
/*
 * The fibers of OCaml: taken from libhaft's pool, kept for reuse, ended; and the start of the
 * library.
 *
 * Everything here is done by the thread that holds OCaml's master lock, so nothing is locked.
 *
 * Where a fiber is, and what its fields mean there (haft_ocaml_is_valid):
 *
 * state      header at       `continuation`   `young`             moved by, to
 * ----------------------------------------------------------------------------------------------
 * IDLE       end of a stack  FIBER_IDLE       may be on the list  switch.S (runstack, continue):
 *                                                                 RUNNING; give: the pool
 * RUNNING    end of a stack  FIBER_RUNNING,   may be on the list  switch.S (perform): SUSPENDED;
 *                            FIBER_CALLS                          nests.c (settle): another stack
 * NESTED     on the stack of FIBER_NESTED     YOUNG_END           nests.c (leave_nest): SHELVED,
 *            another one                                          SUSPENDED; or it is a SETTLER;
 *                                                                 switch.S (perform): PLACED
 * PLACED     the same        the continuation YOUNG_END           switch.S (continue, or its parent
 *                                                                 is captured): NESTED; nests.c:
 *                                                                 SHELVED, SUSPENDED with those
 *                                                                 inside
 * SETTLER    the same        as of RUNNING and SUSPENDED          as those; when it has ended,
 *                                                                 the stack is IDLE
 * SUSPENDED  end of a stack  the continuation on the list         roots.c, when a collection
 *                                                                 ends: IDLE (dropped), RECENT, an
 *                                                                 image, KEPT; shelves.c: SHELVED
 * SHELVED    on a shelf      the continuation in the list of      the same; switch.S (continue):
 *                                             shelves             NESTED; shelves.c: RUNNING
 * RECENT     either          the continuation its place, odd      roots.c: an image, KEPT;
 *                                                                 resumed: as before
 * KEPT       end of a stack  FIBER_KEPT       NULL                stacks.c: RUNNING; IDLE when the
 *                                                                 keeper is not reachable
 * (an image) none: a block of the heap (stacks.c)                 stacks.c, switch.S: RUNNING,
 *                                                                 NESTED
 *
 * Only NESTED and PLACED fibers share a stack, and only PLACED, SUSPENDED, SHELVED, RECENT and KEPT
 * fibers are not in the chain of a thread. A fiber that is suspended inside another one stays
 * RUNNING or NESTED: the outermost is the one that has the continuation.
 *
 * - `sp`: IDLE: the next idle fiber. SUSPENDED and such: where the stack begins. RUNNING: nothing.
 * - `of_language`: whether the fiber is on the list of those whose parents may have local roots.
 * - `argument`: of a SETTLER, the fiber whose stack it has; of any other fiber at the end of a
 *   stack, not NULL if that is full of nested fibers, or was.
 * - `next`, `previous`: KEPT: those of the list of all that are.
 * - IDLE fibers have no serial, no caches, and nothing suspended on them.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SAME(offset, field)                                                                        \
    _Static_assert(offset == offsetof(ocaml_fiber_t, field), "layout.h tells where fields lie")
#define SHARED(field, other)                                                                       \
    _Static_assert(offsetof(ocaml_fiber_t, field) == offsetof(haft_fiber_t, other),                \
                   "OCaml's view of a fiber's header is libhaft's")
_Static_assert(CONTINUATION_CLOSINFO == sizeof(value) * CONTINUATION_CLOSINFO_FIELD &&
                   CONTINUATION_STATE == sizeof(value) * CONTINUATION_STATE_FIELD &&
                   CONTINUATION_HOLDER == sizeof(value) * CONTINUATION_HOLDER_FIELD,
               "layout.h tells where fields lie");
SAME(FIBER_YOUNG, young);
SAME(FIBER_CONTINUATION, continuation);
SAME(FIBER_SP, sp);
SAME(FIBER_HANDLER, handler);
SAME(FIBER_ROOTS, roots);
SAME(FIBER_BASE_RETURN, base_return);
SAME(FIBER_TOP, top);
SAME(FIBER_PARENT, parent.bottom_of_stack);
SAME(FIBER_PARENT_PC, parent.last_retaddr);
SAME(FIBER_PARENT_SP, parent.gc_regs);
SAME(FIBER_PARENT_EXCEPTION, parent_exception);
SAME(FIBER_PARENT_ROOTS, parent_roots);
SAME(FIBER_SCOPE, scope);
SAME(FIBER_OUTER, scope.outer);
SAME(FIBER_HANDLES, scope.handles);
SAME(FIBER_SERIAL, scope.serial);
SHARED(sp, context.sp);
SHARED(base_return, owner);
SHARED(awaits, awaits);
SHARED(top, top);
SHARED(parent.gc_regs, resumer.sp);
SHARED(scope, scope);
_Static_assert(THREAD_CURRENT == offsetof(hafti_thread_t, current), "layout.h");
_Static_assert(THREAD_STAMP == offsetof(hafti_thread_t, stamp), "layout.h");

const haft_handles_t haft_ocaml_handles = {.all = 0};
ocaml_fiber_t *haft_ocaml_idle;
value haft_ocaml_unhandled, haft_ocaml_already, haft_ocaml_identity;
uintnat haft_ocaml_decline, haft_ocaml_decline_after_guards, haft_ocaml_perform_rarely;
/* Value of `continuation` in a fiber that begins to run. */
uintnat haft_ocaml_running = FIBER_RUNNING;
uintnat haft_ocaml_callback_trap;

/* With more stacks than the first number, a fiber that begins to run is nested if possible
   (nests.c); with more than the second, suspended fibers go to the shelves (shelves.c). */
static size_t stacks_before_nests = 128;
enum { FEW_STACKS = 1024 };
static long few_stacks = FEW_STACKS;
static long taken, most_stacks = LONG_MAX;
/* The least size of a stack. The first DEEP_STACKS have `deep_stack_size`, which is more where
   there are not addresses enough for many stacks of that size. */
size_t haft_ocaml_stack_size;
static size_t deep_stack_size;
enum { DEEP_STACKS = 64 };
uintnat haft_ocaml_nest_reserve = UINTPTR_MAX;
uintnat haft_ocaml_nest_most;

/* A perform comes by haft_ocaml_wait only if it calls its clause. */
static void set_crowded(bool crowded) {
    haft_ocaml_running = crowded ? FIBER_CALLS : FIBER_RUNNING;
}

static void set_taken(long count) {
    taken = count;
    haft_ocaml_nest_reserve =
        taken > (long)stacks_before_nests ? haft_ocaml_stack_size / 2 : UINTPTR_MAX;
}

bool haft_ocaml_many_stacks(void) {
    return taken > 2 * few_stacks;
}

/* ---- Settings ---- */

/* A number from the environment, as OCAMLRUNPARAM has them: 64k, 64M, 1G. */
static bool setting(const char *name, size_t *number) {
    const char *text = getenv(name);
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return false;
    *number = strtoull(text, &end, 0);
    *number <<= *end == 'k' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return true;
}

/* Whether the system counts what might be written (vm.overcommit_memory). */
static bool counts_addresses(void) {
    int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    char mode = '0';
    if (file >= 0 && read(file, &mode, 1) != 1)
        mode = '0';
    if (file >= 0)
        close(file);
    return mode == '2';
}

/* The addresses that the process may have (ulimit -v). */
static size_t limit_of_addresses(void) {
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : SIZE_MAX;
}

/* How deep a fiber may go: as deep as OCaml 5's, or as the main stack, whichever is more, because
   addresses cost nothing. */
static size_t stack_depth(void) {
    static const size_t least = (size_t)64 << 20, most = (size_t)1 << 30;
    struct rlimit limit;
    size_t depth = (size_t)8 << 20;
    if (getrlimit(RLIMIT_STACK, &limit) == 0)
        depth = limit.rlim_cur < most ? limit.rlim_cur / 8 * 9 : most;
    if (depth < least && !counts_addresses())
        depth = least;
    return depth < most ? depth : most;
}

/* libhaft rounds the size of a stack up to a power of two. */
static size_t rounded(size_t size) {
    size_t power = 1;
    while (power < size)
        power *= 2;
    return power;
}

/* The most that a stack takes of the addresses, with the guard below it. */
static size_t addresses_of(size_t size) {
    static const size_t beside = (size_t)128 << 10, large = (size_t)64 << 20;
    return rounded(size) < large ? rounded(size) + beside : rounded(size) / 4 * 5 + large / 4;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/*
 * Stacks have twice the depth: nested fibers have the other half. Where addresses are limited,
 * stacks take at most three quarters of them, and the heap has the rest: the first stacks a
 * quarter, so that a few fibers may go deep, and all others, for some thousand fibers that wait or
 * are passed by an effect, the half.
 */
static void set_sizes(void) {
    static const size_t least = (size_t)64 << 10, most = (size_t)1 << 30;
    enum { MANY_STACKS = 4096 };
    size_t depth, limit = limit_of_addresses();
    if (setting("HAFT_OCAML_STACK", &depth)) {
        depth = smaller(depth < least ? least : depth, most);
        deep_stack_size = haft_ocaml_stack_size = 2 * depth;
    } else {
        size_t few = limit / 4 / DEEP_STACKS, many = limit / 2 / MANY_STACKS;
        haft_ocaml_stack_size = smaller(2 * stack_depth(), many < 4 * least ? 4 * least : many);
        deep_stack_size = smaller(2 * stack_depth(), few);
        if (deep_stack_size < haft_ocaml_stack_size)
            deep_stack_size = haft_ocaml_stack_size;
    }
    haft_ocaml_nest_most = rounded(haft_ocaml_stack_size);
    if (limit == SIZE_MAX)
        return;
    size_t room = limit / 4 * 3, deep = DEEP_STACKS * addresses_of(deep_stack_size);
    most_stacks =
        (long)(room < deep ? room / addresses_of(deep_stack_size)
                           : DEEP_STACKS + (room - deep) / addresses_of(haft_ocaml_stack_size));
    /* Computations that wait are to move to shelves before stacks run short. */
    if (few_stacks > most_stacks / 4)
        few_stacks = most_stacks / 4;
}

/* ---- Taking and giving ---- */

bool haft_ocaml_is_valid(const ocaml_fiber_t *fiber) {
    const haft_fiber_t *header = haft_of(fiber);
    if (fiber == NULL || (uintptr_t)fiber % 16 != 0 || fiber->scope.handles != &haft_ocaml_handles)
        return false;
    if (is_shelf(fiber))
        return fiber->continuation == FIBER_IDLE ||
               (is_suspended(fiber) && is_alone(fiber) && fiber->roots == NULL &&
                fiber->sp < (const char *)fiber && (uintptr_t)fiber->sp % 16 == 0);
    if (fiber->base_return != haft_ocaml_base || header->scope.kind != HAFTI_SCOPE_FIBER ||
        !header->scope.slow || header->high != (const char *)fiber || header->low >= header->high)
        return false;
    if (fiber->continuation == FIBER_NESTED)
        return is_nested(fiber) && !is_settler(fiber) && fiber->young == (void *)YOUNG_END &&
               fiber->parent_roots == NULL && fiber->parent.bottom_of_stack > (char *)fiber;
    if (is_nested(fiber) && !is_settler(fiber))
        return fiber->continuation == FIBER_IDLE ||
               (is_suspended(fiber) && haft_ocaml_is_placed(fiber));
    if (fiber->continuation == FIBER_IDLE)
        return fiber->scope.serial == 0;
    return !is_suspended(fiber) || !is_alone(fiber) ||
           (fiber->sp >= header->low && fiber->sp < (const char *)base_trap(fiber) &&
            (uintptr_t)fiber->sp % 16 == 0);
}

/* Idle stacks are in three lists, and are taken from them in this order: from `haft_ocaml_idle`,
   which is the list of switch.S; from the list of hosts, which were full of nested fibers; from the
   list of all others. */
static ocaml_fiber_t *idle_hosts, *idle_others;

static ocaml_fiber_t *take_idle(ocaml_fiber_t **list) {
    ocaml_fiber_t *fiber = *list;
    assert(fiber->continuation == FIBER_IDLE && haft_ocaml_is_valid(fiber));
    *list = (ocaml_fiber_t *)(void *)fiber->sp;
    __builtin_prefetch(*list, 1);
    return fiber;
}

static void set_base_trap(ocaml_fiber_t *fiber, void (*raised)(void)) {
    base_trap(fiber)[1] = (value)(uintptr_t)raised;
}

/* One that libhaft has. */
static ocaml_fiber_t *take_new(size_t size) {
    if (taken >= most_stacks)
        return NULL;
    set_crowded(taken >= few_stacks);
    haft_fiber_t *taking = haft_language_take(&haft_ocaml_language, size);
    if (taking == NULL)
        return NULL;
    set_taken(taken + 1);
    /* The computations suspended on most of them are to become images. */
    if (haft_ocaml_many_stacks() && taken % few_stacks == 0)
        caml_request_minor_gc();
    ocaml_fiber_t *fiber = ocaml_of(taking);
    taking->argument = NULL;
    fiber->young = NULL;
    fiber->continuation = FIBER_IDLE;
    fiber->base_return = haft_ocaml_base;
    set_base_trap(fiber, haft_ocaml_raised);
    return fiber;
}

ocaml_fiber_t *haft_ocaml_take_stack(void) {
    if (HAFTI_LIKELY(haft_ocaml_idle != NULL))
        return take_idle(&haft_ocaml_idle);
    if (idle_hosts != NULL)
        return take_idle(&idle_hosts);
    if (idle_others != NULL)
        return take_idle(&idle_others);
    return take_new(taken < DEEP_STACKS ? deep_stack_size : haft_ocaml_stack_size);
}

static void make_idle_in(ocaml_fiber_t **list, ocaml_fiber_t *fiber) {
    fiber->continuation = FIBER_IDLE;
    fiber->sp = (char *)*list;
    *list = fiber;
}

static void make_idle(ocaml_fiber_t *fiber) {
    make_idle_in(&haft_ocaml_idle, fiber);
}

/* The list of switch.S keeps its first `most` stacks. */
static void keep_idle(size_t most) {
    ocaml_fiber_t **link = &haft_ocaml_idle;
    while (*link != NULL && most-- > 0)
        link = (ocaml_fiber_t **)(void *)&(*link)->sp;
    while (*link != NULL)
        make_idle_in(&idle_others, take_idle(link));
}

static bool has_room(const ocaml_fiber_t *fiber, size_t bytes) {
    return (size_t)((const char *)base_trap(fiber) - haft_of(fiber)->low) >= bytes;
}

ocaml_fiber_t *haft_ocaml_take_stack_for(size_t bytes) {
    ocaml_fiber_t *fiber = haft_ocaml_take_stack();
    if (fiber == NULL || has_room(fiber, bytes))
        return fiber;
    make_idle(fiber);
    fiber = take_new(deep_stack_size);
    if (fiber == NULL || has_room(fiber, bytes))
        return fiber;
    make_idle(fiber);
    return NULL;
}

bool haft_ocaml_has_stack(void) {
    return haft_ocaml_running == FIBER_RUNNING &&
           (haft_ocaml_idle != NULL || taken < (long)stacks_before_nests);
}

static void give(ocaml_fiber_t *fiber) {
    haft_language_give(haft_of(fiber));
    set_taken(taken - 1);
}

/* In place of the handler of an idle stack: nothing has run on it since `give_from` marked it.
   Whatever takes the stack writes a handler there. */
#define UNUSED Val_unit

/* Gives back those of the first `most` on the list that no list of roots.c has until the next
   collection, and, if `unused`, that are marked; marks the others. */
static void give_from(ocaml_fiber_t **list, long most, bool unused) {
    ocaml_fiber_t **link = list;
    while (most-- > 0 && *link != NULL) {
        ocaml_fiber_t *fiber = *link, **next = (ocaml_fiber_t **)(void *)&fiber->sp;
        if (haft_of(fiber)->of_language == 0 && fiber->young == NULL &&
            (!unused || fiber->handler == UNUSED)) {
            *link = *next;
            give(fiber);
        } else {
            fiber->handler = UNUSED;
            link = next;
        }
    }
}

static void give_all(bool unused) {
    give_from(&haft_ocaml_idle, LONG_MAX, unused);
    give_from(&idle_hosts, LONG_MAX, unused);
    give_from(&idle_others, LONG_MAX, unused);
    haft_ocaml_trim_shelves();
}

void haft_ocaml_give_idle(void) {
    give_all(false);
}

static bool a_period_has_ended(void) {
    enum { PERIOD = 1000 }; /* milliseconds */
    static int64_t end;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    int64_t now = (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
    if (now < end)
        return false;
    end = now + PERIOD;
    return true;
}

void haft_ocaml_trim(long dropped) {
    enum { COLLECTIONS = 8 };
    static int collections;
    /* If many were dropped, those in use may be few. */
    if (dropped > few_stacks / 2 || ++collections % COLLECTIONS == 0)
        set_crowded(false);
    /* Keeps as many as a recursion has before it nests, and its first host. Otherwise, where
       thousands have been in use at some time, each of as many handlers would have one. */
    if (taken > 2 * (long)stacks_before_nests)
        keep_idle(stacks_before_nests + 1);
    if (!a_period_has_ended())
        return;
    haft_ocaml_give_spares();
    if (taken > 2 * few_stacks)
        give_from(&idle_others, taken - few_stacks, false);
    /* Keeps the stacks that the next recursion needs again, because touching new pages costs more
       than everything else. Cycles of the collector do not measure time: with a small heap one
       takes a millisecond. */
    give_all(true);
}

/* ---- Hosts that are full ---- */

/*
 * A host on which no more can be nested ends in haft_ocaml_nested_returned, as a settler does, and
 * has `argument` for a mark: so leave_host is called, which puts the stack on the list of hosts.
 * The first host of a recursion, though, goes to the list of switch.S, where nothing else stays,
 * and the stacks of its parents follow. So the same recursion, done again, has the same hosts in
 * the same order. Otherwise it would take hosts for its first fibers, each with a stack of its own,
 * nest on others, and touch their memory, too.
 */
static void mark_full(ocaml_fiber_t *host) {
    if (is_nested(host) || haft_of(host)->argument != NULL ||
        base_trap(host)[-1] != (value)haft_ocaml_returned)
        return;
    haft_of(host)->argument = host;
    base_trap(host)[-1] = (value)haft_ocaml_nested_returned;
    set_base_trap(host, haft_ocaml_nested_raised);
}

static void unmark_full(ocaml_fiber_t *host) {
    if (haft_of(host)->argument == NULL)
        return;
    haft_of(host)->argument = NULL;
    set_base_trap(host, haft_ocaml_raised);
}

/* Another stack is needed: marks that of the current fiber if the reason is that no more fibers can
   be nested there. */
static void note_full(const ocaml_fiber_t *current) {
    static const ocaml_fiber_t *noted; /* the walk is long */
    if (current == NULL || current->continuation != FIBER_NESTED || current == noted ||
        (uintnat)((const char *)current - haft_of(current)->low) >= haft_ocaml_nest_reserve)
        return;
    noted = current;
    while (current->continuation == FIBER_NESTED)
        current = fiber_of_scope(current->scope.outer);
    mark_full((ocaml_fiber_t *)(uintptr_t)current);
}

void haft_ocaml_leave_full(ocaml_fiber_t *host) {
    unmark_full(host);
    if (host->scope.serial != 0)
        haft_language_moved(&host->scope, haft_of(host));
    const ocaml_fiber_t *parent = fiber_of_scope(host->scope.outer);
    if (parent != NULL && parent->continuation == FIBER_NESTED) {
        make_idle_in(&idle_hosts, host);
        return;
    }
    keep_idle(0);
    make_idle(host);
}

/* `depth`: how many bytes of its stack were in use. */
static void end_one(ocaml_fiber_t *fiber, size_t depth) {
    enum { DEEP = 64 * 1024 };
    assert(haft_ocaml_is_valid(fiber));
    haft_ocaml_forget_recent(fiber);
    if (is_shelf(fiber)) {
        haft_ocaml_free_shelf(fiber);
        return;
    }
    haft_ocaml_forget_crossings(haft_of(fiber));
    if (is_nested(fiber)) {
        if (is_settler(fiber))
            haft_ocaml_leave_host(fiber);
        fiber->continuation = FIBER_IDLE;
        return;
    }
    if (fiber->scope.serial != 0)
        haft_language_moved(&fiber->scope, haft_of(fiber));
    unmark_full(fiber);
    make_idle(fiber);
    if (depth > DEEP)
        give_from(&haft_ocaml_idle, 1, false);
}

void haft_ocaml_end_one(ocaml_fiber_t *fiber) {
    end_one(fiber, 0);
}

void haft_ocaml_end(ocaml_fiber_t *fiber) {
    /* Some may be placed on its stack. */
    if (!is_shelf(fiber))
        haft_ocaml_shelve_placed();
    const char *sp = fiber->sp; /* of the OCaml fiber whose scope it is, or in which the scope is */
    for (hafti_scope_t *scope = fiber->top, *outer; scope != &fiber->scope; scope = outer) {
        ocaml_fiber_t *inner = fiber_of_scope(scope);
        outer = scope->outer;
        if (inner != NULL) {
            size_t depth = haft_ocaml_depth(inner, sp);
            sp = inner->parent.bottom_of_stack;
            end_one(inner, depth);
        } else if (scope->kind == HAFTI_SCOPE_FIBER) {
            /* Its owner's frames have ended, too. */
            haft_ocaml_forget_crossings(hafti_fiber_of(scope));
            haft_language_give(hafti_fiber_of(scope));
        }
    }
    end_one(fiber, is_shelf(fiber) ? 0 : haft_ocaml_depth(fiber, sp));
}

/* ---- What the assembly calls ---- */

/* Makes an idle fiber, and makes the thread known to libhaft. False: no memory. */
bool haft_ocaml_refill(void);
/* Invalidates what was derived through the fiber, which has ended. */
void haft_ocaml_forget(ocaml_fiber_t *fiber);
/* The suspended fiber is about to get a parent, on this thread. */
void haft_ocaml_prepare(ocaml_fiber_t *fiber);
/* The innermost fiber of OCaml around the caller, further out than handlers of C. */
ocaml_fiber_t *haft_ocaml_innermost(void);

bool haft_ocaml_refill(void) {
    hafti_scope_t *scope = haft_language_thread()->current;
    haft_ocaml_watch_threads();
    note_full(fiber_of_scope(scope));
    ocaml_fiber_t *fiber = haft_ocaml_take_stack();
    if (fiber == NULL)
        return false;
    make_idle(fiber);
    return true;
}

void haft_ocaml_forget(ocaml_fiber_t *fiber) {
    assert(haft_ocaml_is_valid(fiber));
    haft_language_moved(&fiber->scope, haft_of(fiber));
}

void haft_ocaml_prepare(ocaml_fiber_t *fiber) {
    assert(haft_ocaml_is_valid(fiber));
    (void)haft_language_thread();
    haft_ocaml_watch_threads();
    if (fiber->scope.serial != 0)
        haft_language_moved(fiber->top, haft_of(fiber));
}

ocaml_fiber_t *haft_ocaml_innermost(void) {
    hafti_scope_t *scope = haft_language_thread()->current;
    while (scope != NULL && fiber_of_scope(scope) == NULL)
        scope = scope->outer;
    return scope == NULL ? NULL : fiber_of_scope(scope);
}

value haft_ocaml_free_dropped(value unit);

/* Called when there is no memory for a stack, before an exception is raised: ends the fibers to
   which nothing refers any more. (The first cycle may keep what was reachable when it began, the
   second one recent fibers.) */
value haft_ocaml_free_dropped(value unit) {
    for (int cycles = 0; cycles < 3; cycles++) {
        caml_empty_minor_heap();
        caml_finish_major_cycle();
    }
    return unit;
}

/* ---- The start ---- */

extern intnat haft_ocaml_frametable[];
extern char haft_ocaml_states[], haft_ocaml_states_end[];
extern value haft_ocaml_closure_perform[], haft_ocaml_closure_perform_captured[],
    haft_ocaml_closure_reperform[], haft_ocaml_closure_runstack[], haft_ocaml_closure_resume_with[],
    haft_ocaml_closure_resume_under[], haft_ocaml_closure_raise[], haft_ocaml_closure_reraise[];
value haft_ocaml_closure(value number);
value haft_ocaml_start(value decline, value decline_after_guards, value perform_rarely,
                       value unhandled, value already, value identity);
value haft_ocaml_probe(value unit);
value haft_ocaml_call_probe(value probe);

value haft_ocaml_closure(value number) {
    value *const closures[] = {haft_ocaml_closure_perform,         haft_ocaml_closure_reperform,
                               haft_ocaml_closure_runstack,        haft_ocaml_closure_resume_with,
                               haft_ocaml_closure_resume_under,    haft_ocaml_stack_young,
                               haft_ocaml_closure_raise,           haft_ocaml_closure_reraise,
                               haft_ocaml_closure_perform_captured};
    return (value)closures[Long_val(number)];
}

/* Called by OCaml code that C has called back: finds the address that caml_start_program traps
   with. */
value haft_ocaml_probe(value unit) {
    haft_ocaml_callback_trap = ((const uintnat *)(const void *)Caml_state->exception_pointer)[1];
    return unit;
}

value haft_ocaml_call_probe(value probe) {
    return caml_callback(probe, Val_unit);
}

value haft_ocaml_start(value decline, value decline_after_guards, value perform_rarely,
                       value unhandled, value already, value identity) {
    set_sizes();
    (void)setting("HAFT_OCAML_STACKS", &stacks_before_nests);
    haft_ocaml_decline = (uintnat)Field(decline, 2);
    haft_ocaml_decline_after_guards = (uintnat)Field(decline_after_guards, 2);
    haft_ocaml_perform_rarely = (uintnat)Field(perform_rarely, 0);
    haft_ocaml_unhandled = unhandled;
    haft_ocaml_already = already;
    haft_ocaml_identity = identity;
#ifndef NO_NAKED_POINTERS
    if (caml_page_table_add(In_static_data, haft_ocaml_states, haft_ocaml_states_end) != 0)
        caml_raise_out_of_memory();
#endif
    caml_register_frametable(haft_ocaml_frametable);
    caml_register_code_fragment(haft_ocaml_code_begin, haft_ocaml_code_end, DIGEST_IGNORE, NULL);
    haft_language_register(&haft_ocaml_language);
    haft_ocaml_watch_collector();
    haft_ocaml_watch_threads();
    return Val_unit;
}
