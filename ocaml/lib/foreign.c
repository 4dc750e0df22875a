/* SPDX-License-Identifier: MIT */
/*
 * C among OCaml: what libhaft asks about OCaml's fibers; effects of OCaml under C functions that
 * have called back; effects of C that suspend OCaml code.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* siglongjmp would be what stands in for it below. */
#include "runtime.h"

#include <setjmp.h>
#include <ucontext.h>
#include <unwind.h>

#include "registers.h"
#include "sections.h"

/* ---- What libhaft asks ---- */

static haft_fiber_state_t state(const haft_fiber_t *fiber) {
    switch (ocaml_of(fiber)->continuation) {
    case FIBER_RUNNING:
    case FIBER_CALLS:
    case FIBER_NESTED:
        return HAFT_FIBER_RUNNING;
    case FIBER_IDLE:
        return HAFT_FIBER_DROPPED;
    default:
        return HAFT_FIBER_SUSPENDED;
    }
}

static void context(const haft_fiber_t *fiber, hafti_context_t *context) {
    char *sp = ocaml_of(fiber)->sp;
    *context = (hafti_context_t){.pc = ((void **)(void *)sp)[1], .sp = sp + 16};
}

void haft_ocaml_overflowed(void);

/* In OCaml code a stack overflow is an exception. The 4.13 runtime's own handling of the fault
   would lose what was allocated since the last call of C. */
static bool overflows(void *context) {
    mcontext_t *registers = &((ucontext_t *)context)->uc_mcontext;
    if (caml_find_code_fragment_by_pc((char *)PC(registers)) == NULL)
        return false;
    /* On the way from C into OCaml code its registers are not there yet. */
    if ((uintptr_t)RUNTIME_STATE(registers) != (uintptr_t)Caml_state)
        load_registers(registers);
    PC(registers) = (uintptr_t)haft_ocaml_overflowed;
    return true;
}

/* ---- Effects of OCaml under callbacks ---- */

/*
 * The runtime calls OCaml code on its own account, wherever the program happens to be: finalisers,
 * signal handlers, memprof's callbacks. Effects that they perform must not suspend the code that
 * they interrupt. These functions of the runtime call them.
 */
extern value caml_execute_signal_exn(int, int);
extern value caml_final_do_calls_exn(void);
extern value caml_memprof_handle_postponed_exn(void);
extern void caml_memprof_track_young(uintnat, int, int, unsigned char *);

static bool calls_on_own_account(uintptr_t function) {
    return function == (uintptr_t)caml_execute_signal_exn ||
           function == (uintptr_t)caml_final_do_calls_exn ||
           function == (uintptr_t)caml_memprof_handle_postponed_exn ||
           function == (uintptr_t)caml_memprof_track_young;
}

#ifdef UNWINDS_BY_RECORDS

/* Whether one of them is among the functions of C that have led to the callback with this link. */
static bool is_called_on_own_account(const struct caml_context *link) {
    const uintptr_t *record = FRAME_RECORD_OF_CALLBACK(link);
    while (caml_find_code_fragment_by_pc((char *)record[1]) == NULL) {
        if (calls_on_own_account((uintptr_t)_Unwind_FindEnclosingFunction((void *)record[1])))
            return true;
        record = (const uintptr_t *)record[0];
    }
    return false;
}

/* Whether the chunk of stack that ends with this link is a callback's, and not a gap's, judged by
   the code of its trap. */
static bool is_callback(const struct caml_context *link) {
    return ((const uintnat *)(const void *)link)[-1] == haft_ocaml_callback_trap;
}

bool haft_ocaml_may_suspend(const ocaml_fiber_t *fiber, const char *sp);
bool haft_ocaml_may_suspend_from(const ocaml_fiber_t *fiber, const char *sp, ocaml_fiber_t *inner);

/* Whether all C functions between `sp`, where the fiber would be suspended, and the base of `fiber`
   were called by OCaml code. */
bool haft_ocaml_may_suspend(const ocaml_fiber_t *fiber, const char *sp) {
    frames_t frames = haft_ocaml_frames_from(fiber, sp);
    char *frame;
    for (bool border = false; haft_ocaml_next_frame(&frames, &frame, &border) != NULL;
         border = false)
        if (border && is_callback(frames.link) && is_called_on_own_account(frames.link))
            return false;
    return true;
}

/* The same, for when this becomes the parent of `inner`: the functions of C may have local
   roots. */
bool haft_ocaml_may_suspend_from(const ocaml_fiber_t *fiber, const char *sp, ocaml_fiber_t *inner) {
    haft_ocaml_list_rooted(inner);
    return haft_ocaml_may_suspend(fiber, sp);
}

#else

typedef struct search {
    const ocaml_fiber_t *fiber; /* where the walk ends */
    bool interrupted;
} search_t;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument) {
    search_t *search = argument;
    search->interrupted |= calls_on_own_account(_Unwind_GetRegionStart(context));
    /* (What is called a frame's CFA here is its stack pointer.) */
    uintptr_t address = _Unwind_GetIP(context);
    bool base = (address == (uintptr_t)haft_ocaml_returned ||
                 address == (uintptr_t)haft_ocaml_nested_returned) &&
                _Unwind_GetCFA(context) == (uintptr_t)search->fiber + FIBER_TRAP;
    return base || search->interrupted ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool haft_ocaml_may_suspend(const ocaml_fiber_t *fiber);
bool haft_ocaml_may_suspend_from(const ocaml_fiber_t *fiber, ocaml_fiber_t *inner);

/* Whether all C functions between here and the base of `fiber` were called by OCaml code. */
bool haft_ocaml_may_suspend(const ocaml_fiber_t *fiber) {
    search_t search = {fiber, false};
    (void)_Unwind_Backtrace(look, &search);
    return !search.interrupted;
}

/* The same, for when this becomes the parent of `inner`: the functions of C may have local
   roots. */
bool haft_ocaml_may_suspend_from(const ocaml_fiber_t *fiber, ocaml_fiber_t *inner) {
    haft_ocaml_list_rooted(inner);
    return haft_ocaml_may_suspend(fiber);
}

#endif

/* ---- Effects of C ---- */

/*
 * A fiber of C may have called OCaml code back when an effect of C suspends it. The runtime's state
 * for that code is put aside, and so, on the other side, is its state for the code that resumes the
 * fiber. These words lie on the stacks that do not run, and are listed.
 *
 *   resumer's stack             the fiber's stack
 *   | OCaml  |                  | C  |
 *   | C      |     trap <------ | callback: trap, link ----> the resumer's OCaml code
 *   | INTO   | <--------------  | OCaml  |
 *                               | C      |
 *                               | OUT_OF |
 *
 * The trap and the link of the fiber's outermost callback lead to its resumer; they are set anew
 * when another resumer resumes it.
 */
typedef struct crossing crossing_t;
struct crossing {
    char *outer_trap;      /* } a trap, when the fiber is entered: exceptions that nothing on it */
    void (*escaped)(void); /* } catches arrive there, and signals may write over it then */
    struct caml__roots_block *roots;
    struct caml_context context;
    haft_fiber_t *fiber;
    const char *end; /* suspended: the resumer's stack at its last OCaml code */
    value kept;      /* inwards: the exception that has left the fiber; outwards: of the code there,
                        see haft_ocaml_kept */
    crossing_t *next, *previous;
    bool inwards;
    bool in_section; /* the code there is in a blocking section */
    char *room;      /* a place on the fiber's stack below what it keeps */
    char *exception;
    crossing_t *next_near, *previous_near; /* in the list of its place */
};
_Static_assert(sizeof(crossing_t) <= sizeof(haft_language_state_t), "it lies in there");
_Static_assert(CROSSING_ROOM == offsetof(crossing_t, room), "layout.h");

static crossing_t *crossings; /* newest first */

/*
 * The same by where they lie: a fiber of C that ends has few of them on its stack, and there may be
 * very many others, of as many tasks that wait.
 */
enum { PLACES = 4096, PLACE_BITS = 20 };
static crossing_t *near_crossings[PLACES];
static size_t crossings_count;

static crossing_t **place_of(uintptr_t address) {
    return &near_crossings[(address >> PLACE_BITS) % PLACES];
}

static void list(crossing_t *crossing) {
    crossing->previous = NULL;
    crossing->next = crossings;
    if (crossings != NULL)
        crossings->previous = crossing;
    crossings = crossing;
    crossings_count++;
    crossing_t **place = place_of((uintptr_t)crossing);
    crossing->previous_near = NULL;
    crossing->next_near = *place;
    if (*place != NULL)
        (*place)->previous_near = crossing;
    *place = crossing;
}

static void unlist(crossing_t *crossing) {
    if (crossing->previous != NULL)
        crossing->previous->next = crossing->next;
    else
        crossings = crossing->next;
    if (crossing->next != NULL)
        crossing->next->previous = crossing->previous;
    crossings_count--;
    if (crossing->previous_near != NULL)
        crossing->previous_near->next_near = crossing->next_near;
    else
        *place_of((uintptr_t)crossing) = crossing->next_near;
    if (crossing->next_near != NULL)
        crossing->next_near->previous_near = crossing->previous_near;
}

/*
 * OCaml's lock at the border. A fiber of C that was resumed with the lock, and is suspended in a
 * blocking section, takes the lock first, and gives it back when it goes on. So its resumer finds
 * the lock as it left it, and the collector finds the frames of the fiber. A fiber that was resumed
 * without the lock runs and is suspended without it, and the runtime learns nothing of it.
 *
 * `holds_lock`: this thread runs OCaml code, or functions that it has called, and not a blocking
 * section. `in_section`: a blocking section, as a whole: not while it is entered or left, when the
 * thread library uses mutexes and conditions of its own.
 */
static __thread bool holds_lock;
static __thread bool in_section;
static void (*enter_before)(void);
static void (*leave_before)(void);

static void enters_blocking_section(void) {
    holds_lock = false;
    enter_before();
    in_section = true;
}

static void leaves_blocking_section(void) {
    in_section = false;
    leave_before();
    holds_lock = true;
}

bool haft_ocaml_in_section(void) {
    return in_section;
}

const void *haft_ocaml_last_frame(void) {
    return Caml_state->bottom_of_stack;
}

value *haft_ocaml_kept;

/* The thread library sets the hooks when it starts, which may be at any time. */
void haft_ocaml_watch_threads(void) {
    holds_lock = true;
    if (caml_enter_blocking_section_hook == enters_blocking_section)
        return;
    enter_before = caml_enter_blocking_section_hook;
    leave_before = caml_leave_blocking_section_hook;
    caml_enter_blocking_section_hook = enters_blocking_section;
    caml_leave_blocking_section_hook = leaves_blocking_section;
}

/*
 * Thread.exit jumps to the start of its thread. The C library's longjmp checks by addresses that it
 * jumps to an outer frame, and aborts if the fiber's frame has the higher address: this function
 * replaces it.
 */
void __longjmp_chk(struct __jmp_buf_tag *environment, int result) __attribute__((noreturn));

void __longjmp_chk(struct __jmp_buf_tag *environment, int result) {
    siglongjmp(environment, result);
}

static crossing_t *find_crossing(const haft_fiber_t *fiber, bool inwards) {
    crossing_t *crossing = crossings;
    while (crossing != NULL && (crossing->inwards != inwards || crossing->fiber != fiber))
        crossing = crossing->next;
    return crossing;
}

/* The place at which the fiber, which is about to be entered, has stopped; or where it began, if it
   stopped on the stack of an inner fiber, which may end before this one. */
static char *room_on(const haft_fiber_t *fiber) {
    char *sp = fiber->context.sp;
    if (sp < fiber->low || sp > fiber->high) {
        const crossing_t *suspended = find_crossing(fiber, false);
        sp = suspended == NULL ? fiber->high : suspended->room;
    }
    return (char *)((uintptr_t)sp & ~(uintptr_t)15);
}

void haft_ocaml_escape(void);
void haft_ocaml_escaped(crossing_t *crossing, value exception);

/* In switch.S's haft_ocaml_escape: on the stack of the fiber, whose frames are given up. */
void haft_ocaml_escaped(crossing_t *crossing, value exception) {
    assert((char *)crossing->fiber->resumer.sp + 64 > (char *)crossing); /* crossing.h */
    crossing->kept = exception;
    haft_language_leave(crossing->fiber);
}

static void before(haft_fiber_t *fiber, enum haft_crossing direction,
                   haft_language_state_t *words) {
    crossing_t *mine = (crossing_t *)(void *)words;
    bool section = direction != HAFT_INTO && in_section && !fiber->unlocked;
    if (section)
        caml_leave_blocking_section();
    if (direction == HAFT_INTO)
        fiber->unlocked = !holds_lock;
    if (!holds_lock) {
        mine->fiber = NULL;
        return;
    }
    *mine = (crossing_t){
        .outer_trap = Caml_state->exception_pointer,
        .escaped = haft_ocaml_escape,
        .exception = Caml_state->exception_pointer,
        .roots = Caml_state->local_roots,
        .context = {Caml_state->bottom_of_stack, Caml_state->last_return_address,
                    Caml_state->gc_regs},
        .fiber = fiber,
        .inwards = direction == HAFT_INTO,
        .in_section = section,
    };
    if (direction == HAFT_INTO) {
        Caml_state->exception_pointer = (char *)mine;
        Caml_state->local_roots = NULL;
        mine->room = room_on(fiber);
    } else {
        const crossing_t *entrance = find_crossing(fiber, true);
        mine->end = entrance == NULL ? NULL : entrance->context.bottom_of_stack;
        mine->room = entrance == NULL ? NULL : entrance->room;
        if (haft_ocaml_kept != NULL)
            mine->kept = Field(*haft_ocaml_kept, 0);
    }
    list(mine);
}

static frames_t frames_of_crossing(const crossing_t *crossing) {
    return (frames_t){.sp = crossing->context.bottom_of_stack,
                      .pc = crossing->context.last_retaddr,
                      .registers = crossing->context.gc_regs,
                      .end = crossing->end};
}

/* Makes the fiber's outermost callback return, and raise, to its present resumer. */
static void set_outermost(const crossing_t *suspended, crossing_t *entrance) {
    frames_t frames = frames_of_crossing(suspended);
    char *sp;
    bool border = false;
    while (haft_ocaml_next_frame(&frames, &sp, &border) != NULL)
        ;
    frames.link->bottom_of_stack = entrance->context.bottom_of_stack;
    frames.link->last_retaddr = entrance->context.last_retaddr;
    frames.link->gc_regs = entrance->context.gc_regs;
    ((crossing_t **)(void *)frames.link)[-2] = entrance;
}

static void put_back(const crossing_t *mine) {
    Caml_state->exception_pointer = mine->exception;
    Caml_state->bottom_of_stack = mine->context.bottom_of_stack;
    Caml_state->last_return_address = mine->context.last_retaddr;
    Caml_state->gc_regs = mine->context.gc_regs;
}

static void put_back_outwards(crossing_t *mine) {
    const haft_fiber_t *fiber = mine->fiber;
    crossing_t *entrance = find_crossing(fiber, true);
    if (mine->kept != 0 && Field(*haft_ocaml_kept, 0) != mine->kept)
        caml_modify(&Field(*haft_ocaml_kept, 0), mine->kept);
    if (entrance != NULL && mine->context.bottom_of_stack == mine->end) {
        /* It has called nothing back: the runtime's state is the resumer's already. */
        Caml_state->exception_pointer = (char *)entrance;
        return;
    }
    if (entrance != NULL)
        set_outermost(mine, entrance);
    put_back(mine);
}

static void after(haft_fiber_t *fiber, enum haft_crossing direction, haft_language_state_t *words) {
    crossing_t *mine = (crossing_t *)(void *)words;
    if (mine->fiber == NULL)
        return;
    if (!holds_lock)
        caml_fatal_error("haft: %s was resumed outside of OCaml's lock, which it holds",
                         haft_fiber_name(fiber));
    unlist(mine);
    Caml_state->local_roots = mine->roots;
    if (direction == HAFT_INTO)
        put_back(mine);
    else
        put_back_outwards(mine);
    if (direction == HAFT_INTO && mine->kept != 0) {
        /* The exception passes the frame of haft_handle, which would have freed it. */
        if (fiber->handler != NULL)
            haft_language_give(fiber);
        caml_raise(mine->kept);
    }
    if (mine->in_section)
        caml_enter_blocking_section_no_pending();
}

void haft_ocaml_scan_foreign(scanning_action action) {
    for (crossing_t *crossing = crossings; crossing != NULL; crossing = crossing->next) {
        haft_ocaml_scan_roots_blocks(action, crossing->roots);
        if (crossing->kept != 0)
            action(crossing->kept, &crossing->kept);
        if (crossing->inwards || crossing->context.bottom_of_stack == crossing->end)
            continue;
        frames_t frames = frames_of_crossing(crossing);
        haft_ocaml_scan_frames(action, &frames);
    }
}

static void forget_if_on(const haft_fiber_t *fiber, crossing_t *crossing) {
    if ((const char *)crossing >= fiber->low && (const char *)crossing < fiber->high)
        unlist(crossing);
}

void haft_ocaml_forget_crossings(const haft_fiber_t *fiber) {
    uintptr_t first = (uintptr_t)fiber->low >> PLACE_BITS;
    size_t places = (((uintptr_t)fiber->high - 1) >> PLACE_BITS) - first + 1;
    if (places > PLACES)
        places = PLACES;
    if (crossings_count <= places) {
        for (crossing_t *crossing = crossings, *next; crossing != NULL; crossing = next) {
            next = crossing->next;
            forget_if_on(fiber, crossing);
        }
        return;
    }
    for (size_t i = 0; i < places; i++)
        for (crossing_t *crossing = *place_of((first + i) << PLACE_BITS), *next; crossing != NULL;
             crossing = next) {
            next = crossing->next_near;
            forget_if_on(fiber, crossing);
        }
}

static void left(hafti_scope_t *innermost, const haft_fiber_t *fiber) {
    haft_ocaml_shelve_placed(); /* on the stacks that are left, perhaps */
    for (hafti_scope_t *scope = innermost, *outer; scope != &fiber->scope; scope = outer) {
        outer = scope->outer;
        if (fiber_of_scope(scope) != NULL)
            haft_ocaml_end_one(fiber_of_scope(scope));
        else if (scope->kind == HAFTI_SCOPE_FIBER)
            haft_ocaml_forget_crossings(hafti_fiber_of(scope));
    }
    haft_ocaml_forget_crossings(fiber);
}

/* Fibers that threads have left behind by Thread.exit, linked by `next`. Atomic, because threads
   end outside of OCaml's lock. */
static haft_fiber_t *abandoned_fibers;

static void abandoned(haft_fiber_t *fiber) {
    if (fiber->language != &haft_ocaml_language)
        caml_fatal_error("haft: a thread has exited (Thread.exit) on the fiber of C \"%s\", whose "
                         "frames are lost: return or raise an exception out of it instead",
                         haft_fiber_name(fiber));
    if (is_nested(ocaml_of(fiber)) && !is_settler(ocaml_of(fiber)))
        return; /* It goes with the stack. */
    ocaml_of(fiber)->parent_roots = NULL;
    fiber->next = __atomic_load_n(&abandoned_fibers, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&abandoned_fibers, &fiber->next, fiber, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

void haft_ocaml_end_abandoned(void) {
    haft_fiber_t *fiber = __atomic_exchange_n(&abandoned_fibers, NULL, __ATOMIC_ACQUIRE);
    if (fiber != NULL)
        haft_ocaml_shelve_placed();
    while (fiber != NULL) {
        haft_fiber_t *next = fiber->next;
        haft_ocaml_end_one(ocaml_of(fiber));
        fiber = next;
    }
}

const haft_language_t haft_ocaml_language = {
    .name = "OCaml",
    .handles = &haft_ocaml_handles,
    .state = state,
    .context = context,
    .overflows = overflows,
    .before = before,
    .after = after,
    .left = left,
    .abandoned = abandoned,
};
