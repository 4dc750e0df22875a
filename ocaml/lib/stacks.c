/*
 * What keeps the stack of a continuation that has survived a minor collection: a block of the major
 * heap, in the continuation's last field. There are two kinds.
 *
 * An image, for a fiber that is alone and small and has frames of OCaml only: the stack is copied
 * into the block, and the fiber's own is free. A million continuations so take a million small
 * blocks, and what dies is simply not marked. No word of an image but its live slots is a value to
 * the collector:
 *
 *   | words | which are live ... | which have the top bit set ... | words of the stack ... |
 * handler |
 *
 * A live slot that refers to a block stands for itself; any other word w is written as 2w + 1, its
 * top bit apart. A stack is restored onto any fiber: the only addresses of stack on it are the
 * links between traps, which an image has relative to the fiber. It is not written to, so
 * continuations can share it.
 *
 * A keeper, for all others: | anchor | handler and live slots ... |. The anchor is a custom block
 * whose finaliser ends the fiber. The fiber is listed, for compaction.
 */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_IMAGE = 256, /* words of stack */
    WORD_BITS = 62,      /* that a word of bits holds: it is an OCaml integer, and positive */
    MOST_BITS = (LARGEST_IMAGE + WORD_BITS - 1) / WORD_BITS
};

bool haft_ocaml_is_image(value block) {
    return Is_long(Field(block, 0));
}

/* In a block that has just been allocated in the major heap. */
HAFT_INLINE void store(value block, size_t field, value content) {
    if (HAFT_UNLIKELY(Is_block(content) && Is_young(content)))
        caml_initialize(&Field(block, field), content);
    else
        Field(block, field) = content;
}

/* ---- Images ---- */

HAFT_INLINE size_t words_of(const ocaml_fiber_t *fiber) {
    return (size_t)((const char *)fiber + FIBER_TRAP - fiber->sp) / sizeof(value);
}

HAFT_INLINE size_t bits_for(size_t words) {
    return (words + WORD_BITS - 1) / WORD_BITS;
}

/* Which words of the stack that is looked at are live slots with blocks. */
static uintnat live[MOST_BITS];
static const value *live_from;
static size_t live_words;

static void note_slot(value content, value *slot) {
    size_t index = (size_t)(slot - live_from);
    if (Is_block(content) && index < live_words) /* The handler is none of them. */
        live[index / WORD_BITS] |= (uintnat)1 << index % WORD_BITS;
}

/* Whether the stack can be moved; if so, `live` tells of its words. */
static bool find_live(ocaml_fiber_t *fiber) {
    if (fiber->top != &fiber->scope || fiber->roots != NULL || words_of(fiber) > LARGEST_IMAGE)
        return false;
    frames_t frames = haft_ocaml_frames(fiber);
    frame_descr *frame;
    char *sp;
    bool border = false;
    live_from = (const value *)(const void *)fiber->sp;
    live_words = words_of(fiber);
    memset(live, 0, bits_for(live_words) * sizeof *live);
    while ((frame = haft_ocaml_next_frame(&frames, &sp, &border)) != NULL && !border)
        haft_ocaml_scan_frame(note_slot, frame, sp, NULL);
    return !border;
}

/* Makes the links between the traps of a fiber's stack relative to the fiber, or absolute again. */
static void move_traps(const ocaml_fiber_t *fiber, bool absolute) {
    uintnat *link = (uintnat *)(void *)fiber->sp;
    for (uintnat next = 0; next != (uintnat)fiber + FIBER_TRAP; link = (uintnat *)next) {
        next = absolute ? *link + (uintnat)fiber : *link;
        *link = absolute ? next : *link - (uintnat)fiber;
    }
}

/* The stack is not used any more after this. */
static value make_image(ocaml_fiber_t *fiber) {
    size_t words = words_of(fiber), bits = bits_for(words);
    value image = caml_alloc_shr_no_track_noexc(1 + 2 * bits + words + 1, 0);
    if (image == 0)
        return 0;
    move_traps(fiber, false);
    const value *stack = (const value *)(const void *)fiber->sp;
    Field(image, 0) = Val_long(words);
    for (size_t group = 0; group < bits; group++) {
        uintnat tops = 0;
        for (size_t i = group * WORD_BITS, bit = 0; i < words && bit < WORD_BITS; i++, bit++)
            if (live[group] >> bit & 1) {
                store(image, 1 + 2 * bits + i, stack[i]);
            } else {
                tops |= ((uintnat)stack[i] >> 63) << bit;
                Field(image, 1 + 2 * bits + i) = (value)((uintnat)stack[i] << 1 | 1);
            }
        Field(image, 1 + group) = (value)(live[group] << 1 | 1);
        Field(image, 1 + bits + group) = (value)(tops << 1 | 1);
    }
    store(image, 1 + 2 * bits + words, fiber->handler);
    return image;
}

/* The words of the stack, to where they end at `high`. Returns where they begin. */
static char *write_stack(value image, char *high) {
    size_t words = (size_t)Long_val(Field(image, 0)), bits = bits_for(words);
    value *stack = (value *)(void *)high - words;
    for (size_t group = 0; group < bits; group++) {
        uintnat lives = (uintnat)Field(image, 1 + group) >> 1;
        uintnat tops = (uintnat)Field(image, 1 + bits + group) >> 1;
        for (size_t i = group * WORD_BITS; i < words && i < (group + 1) * WORD_BITS; i++) {
            value word = Field(image, 1 + 2 * bits + i);
            stack[i] = lives & 1 ? word : (value)((uintnat)word >> 1 | tops << 63);
            lives >>= 1;
            tops >>= 1;
        }
    }
    return (char *)stack;
}

/* Up to the base, which is not on it. */
frames_t haft_ocaml_frames_of_image(value image) {
    static value stack[LARGEST_IMAGE];
    char *high = (char *)(stack + LARGEST_IMAGE);
    const char *sp = write_stack(image, high);
    return (frames_t){.sp = (char *)(uintptr_t)sp + 16,
                      .pc = ((const uintnat *)(const void *)sp)[1],
                      .end = high};
}

static ocaml_fiber_t *restore(value image) {
    ocaml_fiber_t *fiber = haft_ocaml_take();
    if (fiber == NULL)
        return NULL;
    fiber->sp = write_stack(image, (char *)fiber + FIBER_TRAP);
    move_traps(fiber, true);
    fiber->top = &fiber->scope;
    fiber->roots = NULL;
    fiber->handler = Field(image, Wosize_val(image) - 1);
    return fiber;
}

/* ---- Keepers ---- */

static haft_fiber_t *settled; /* linked by `next` and `previous` of the header */

static void list(haft_fiber_t *fiber) {
    fiber->previous = NULL;
    fiber->next = settled;
    if (settled != NULL)
        settled->previous = fiber;
    settled = fiber;
}

static void unlist(haft_fiber_t *fiber) {
    if (fiber->previous != NULL)
        fiber->previous->next = fiber->next;
    else
        settled = fiber->next;
    if (fiber->next != NULL)
        fiber->next->previous = fiber->previous;
}

void haft_ocaml_scan_settled(scanning_action action) {
    for (haft_fiber_t *fiber = settled; fiber != NULL; fiber = fiber->next)
        haft_ocaml_scan_suspended(action, ocaml_of(fiber));
}

static void end_unreachable(value anchor) {
    haft_fiber_t *fiber = *(haft_fiber_t **)Data_custom_val(anchor);
    if (fiber == NULL)
        return; /* It has been resumed. */
    unlist(fiber);
    haft_ocaml_end(ocaml_of(fiber));
}

/* The live slots of a fiber, as values. */
static value *slots;
static size_t slot_count, slot_room;

static void add_slot(value content, value *slot) {
    (void)slot;
    if (!Is_block(content))
        return;
    if (slot_count == slot_room) {
        slot_room = slot_room == 0 ? 1024 : slot_room * 2;
        slots = realloc(slots, slot_room * sizeof(value));
        if (slots == NULL)
            caml_fatal_error("haft: no memory for the roots of a continuation");
    }
    slots[slot_count++] = content;
}

static struct custom_operations anchor_operations = {"haft.fiber",
                                                     end_unreachable,
                                                     custom_compare_default,
                                                     custom_hash_default,
                                                     custom_serialize_default,
                                                     custom_deserialize_default,
                                                     custom_compare_ext_default,
                                                     custom_fixed_length_default};

/* The bytes in use on the stacks of a suspended fiber and of those of OCaml inside it. */
static mlsize_t extent(const ocaml_fiber_t *fiber) {
    mlsize_t bytes = 0;
    const char *sp = fiber->sp;
    for (haft_scope_t *scope = fiber->top;; scope = scope->outer) {
        const haft_fiber_t *inner = haft_fiber_of(scope);
        if (fiber_of_scope(scope) != NULL) {
            if (sp >= inner->low && sp <= inner->high)
                bytes += (mlsize_t)(inner->high - sp);
            sp = ocaml_of(inner)->parent.bottom_of_stack;
        }
        if (scope == &fiber->scope)
            return bytes;
    }
}

static value make_keeper(ocaml_fiber_t *fiber) {
    value anchor = caml_alloc_shr_no_track_noexc(2, Custom_tag);
    if (anchor == 0)
        return 0;
    Custom_ops_val(anchor) = &anchor_operations;
    *(haft_fiber_t **)Data_custom_val(anchor) = NULL;
    slot_count = 0;
    haft_ocaml_scan_suspended(add_slot, fiber);
    value keeper = caml_alloc_shr_no_track_noexc(slot_count + 1, 0);
    if (keeper == 0)
        return 0;
    Field(keeper, 0) = anchor;
    for (size_t i = 0; i < slot_count; i++)
        store(keeper, 1 + i, slots[i]);
    *(haft_fiber_t **)Data_custom_val(anchor) = haft_of(fiber);
    list(haft_of(fiber));
    /* Beside the heap, a stack is a page or two more than what is in use of it. */
    caml_adjust_gc_speed(8192 + extent(fiber), (mlsize_t)1 << 28);
    return keeper;
}

/* ---- A continuation survives, and is used ---- */

bool haft_ocaml_settle(value continuation, ocaml_fiber_t *fiber) {
    bool movable = find_live(fiber);
    value block = movable ? make_image(fiber) : make_keeper(fiber);
    if (block == 0)
        caml_fatal_error("haft: no memory for a continuation");
    Field(continuation, CONTINUATION_STACK_FIELD) = block;
    fiber->continuation = 2; /* Nothing reads it, and the real one may move. */
    if (movable) {
        Field(continuation, CONTINUATION_FIBER_FIELD) = STACK_IMAGE;
        haft_ocaml_end(fiber);
    }
    return movable;
}

/* Makes a continuation that is not YOUNG ready to be resumed and USED. Returns its fiber; NULL if
   it was used before; 1 if there is no memory for a stack. */
ocaml_fiber_t *haft_ocaml_awaken(value continuation);

ocaml_fiber_t *haft_ocaml_awaken(value continuation) {
    value block = Field(continuation, CONTINUATION_STACK_FIELD);
    ocaml_fiber_t *fiber;
    if (block == STACK_USED)
        return NULL;
    if (haft_ocaml_is_image(block)) {
        fiber = restore(block);
        if (fiber == NULL)
            return (ocaml_fiber_t *)1;
    } else {
        value anchor = Field(block, 0);
        fiber = ocaml_of(*(haft_fiber_t **)Data_custom_val(anchor));
        if (fiber == NULL)
            return NULL; /* Through a copy, of Weak.get_copy. */
        *(haft_fiber_t **)Data_custom_val(anchor) = NULL;
        unlist(haft_of(fiber));
    }
    /* What was on the stack when marking began is no longer reachable through the block. */
    if (caml_gc_phase == Phase_mark)
        caml_darken(block, NULL);
    Field(continuation, CONTINUATION_STACK_FIELD) = STACK_USED;
    return fiber;
}

value haft_ocaml_release(value continuation, value again);

/* Moves what `continuation` holds into `again`, which is new. False: no memory for a stack. */
value haft_ocaml_release(value continuation, value again) {
    ocaml_fiber_t *fiber = haft_ocaml_awaken(continuation);
    if (fiber == (ocaml_fiber_t *)1)
        return Val_false;
    Field(again, CONTINUATION_FIBER_FIELD) = (value)fiber | 1;
    Field(again, CONTINUATION_STACK_FIELD) = STACK_YOUNG;
    fiber->continuation = again;
    return Val_true;
}

/* ---- Copies ---- */

value haft_ocaml_clone(value continuation);

/* Both continuations share an image. */
value haft_ocaml_clone(value continuation) {
    CAMLparam1(continuation);
    CAMLlocal1(copy);
    copy = caml_alloc_small(3, 0);
    Field(copy, CONTINUATION_CODE_FIELD) = (value)haft_ocaml_continue;
    Field(copy, CONTINUATION_FIBER_FIELD) = STACK_IMAGE;
    Field(copy, CONTINUATION_STACK_FIELD) = STACK_USED;
    if (Field(continuation, CONTINUATION_STACK_FIELD) == STACK_USED)
        caml_raise_constant(*caml_named_value("haft.Continuation_already_resumed"));
    if (Field(continuation, CONTINUATION_STACK_FIELD) == STACK_YOUNG) {
        ocaml_fiber_t *fiber =
            (ocaml_fiber_t *)(Field(continuation, CONTINUATION_FIBER_FIELD) & ~(value)1);
        if (find_live(fiber) && !haft_ocaml_settle(continuation, fiber))
            caml_raise_out_of_memory();
    }
    value image = Field(continuation, CONTINUATION_STACK_FIELD);
    if (image == STACK_YOUNG || !haft_ocaml_is_image(image))
        caml_invalid_argument(
            "Haft.clone: the computation has handlers of its own, functions of C, or "
            "more than 2 KiB on its stack");
    Field(copy, CONTINUATION_STACK_FIELD) = image;
    CAMLreturn(copy);
}
