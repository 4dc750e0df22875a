/* SPDX-License-Identifier: MIT */
/*
 * A block of the major heap keeps the stack of a continuation that has survived a minor collection.
 * The continuation, which is then KEPT, has the block in its last field. There are two kinds of
 * blocks.
 *
 * An image, for a computation that is small and has frames of OCaml only: the stack is copied into
 * the block, and the fiber's own is free. A million continuations so take a million small blocks,
 * and what dies is simply not marked. Fibers suspended inside one another have an image each, the
 * innermost one in the continuation. No word of an image but the next image outwards and its live
 * slots is a value to the collector:
 *
 *   | words | outer image | shots | live.. | tops.. | again.. | words of the stack.. | handler |
 *
 * `live` has a bit for each word: set if the word refers to a block, and is stored as it is; any
 * other word w is stored as 2w + 1, with its top bit in `tops`. (More blocks, with less in each,
 * would cost the collector more.) For a large stack, `again` marks the other words that equal the
 * last but one: they are left out. These are most of what a recursion leaves, return addresses and
 * padding. A stack is restored onto any fiber: the only addresses of stack on it are the links
 * between traps, in place of which an image has the distance below the fiber. Continuations can
 * share an image; it counts how often it may still be restored.
 *
 * A keeper, for all others: | anchor | handler and live slots ... |. The anchor is a custom block
 * whose finaliser ends the fiber. The fiber is listed, for compaction.
 */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_IMAGE = 256,           /* words of stack, when it is not a clone that needs it */
    LARGEST_OF_MANY = 1024 * 1024, /* while there are many stacks */
    LEAST_AGAIN = 64,              /* words of a stack of which repetitions are left out */
    WORD_BITS = 62 /* that a word of bits holds: it is an OCaml integer, and positive */
};

/* The fields of an image; the last one is the handler. */
enum { IMAGE_WORDS, IMAGE_OUTER, IMAGE_SHOTS, IMAGE_LIVE };

static bool is_image(value block) {
    return Is_long(Field(block, IMAGE_WORDS));
}

/* In a block that has just been allocated in the major heap. */
HAFTI_INLINE void store(value block, size_t field, value content) {
    if (HAFTI_UNLIKELY(Is_block(content) && Is_young(content)))
        caml_initialize(&Field(block, field), content);
    else
        Field(block, field) = content;
}

/* ---- Images ---- */

/* One of the fibers of a suspended computation. Its stack begins with the exception pointer, or a
   word that is not in use and may be anything, and the return address. */
typedef struct part {
    ocaml_fiber_t *fiber; /* NULL: it is not one of OCaml */
    const value *stack;
    const value *trap; /* the innermost one on it */
} part_t;

static part_t innermost_part(const ocaml_fiber_t *fiber) {
    return (part_t){fiber_of_scope(fiber->top), (const value *)(const void *)fiber->sp,
                    *(const value *const *)(const void *)fiber->sp};
}

static part_t outer_part(const ocaml_fiber_t *inner) {
    return (part_t){fiber_of_scope(inner->scope.outer),
                    (const value *)(const void *)inner->parent.bottom_of_stack - 2,
                    (const value *)(const void *)inner->parent_exception};
}

HAFTI_INLINE size_t words_of(const part_t *part) {
    return (size_t)(base_trap(part->fiber) - part->stack);
}

/*
 * The stack of a fiber that waits may have gaps (nests.c). Then the part becomes a copy without
 * them, on a stack that end_dense gives back. False: there is no memory for that.
 */
static bool make_dense(part_t *part) {
    const char *stack = (const char *)part->stack;
    char *trap = (char *)(uintptr_t)part->trap;
    ocaml_fiber_t *fiber = part->fiber;
    if (haft_ocaml_dense_bytes(fiber, stack, trap) == words_of(part) * sizeof(value))
        return true;
    part->fiber = haft_ocaml_take_stack();
    if (part->fiber == NULL)
        return false;
    part->fiber->handler = fiber->handler;
    part->stack =
        (const value *)(const void *)haft_ocaml_copy_dense(fiber, stack, &trap, part->fiber);
    part->trap = (const value *)(const void *)trap;
    return true;
}
static void end_dense(const part_t *dense, const part_t *part) {
    if (dense->fiber != part->fiber)
        haft_ocaml_end_one(dense->fiber);
}

HAFTI_INLINE size_t groups_for(size_t words) {
    return (words + WORD_BITS - 1) / WORD_BITS;
}

HAFTI_INLINE size_t groups_of_again(size_t words) {
    return words < LEAST_AGAIN ? 0 : groups_for(words);
}
/* The index of the field with the first word of a stack of this many words. */
HAFTI_INLINE size_t image_begin(size_t words) {
    return IMAGE_LIVE + 2 * groups_for(words) + groups_of_again(words);
}
/* The most fields that an image of this many words of stack has. */
HAFTI_INLINE size_t image_fields(size_t words) {
    return image_begin(words) + words + 1;
}

/* Which words of the stacks that are looked at are live slots with blocks, in groups of WORD_BITS;
   each fiber begins with a new one. */
static uintnat *live;
static size_t live_room;
/* The fiber that is looked at. */
static uintnat *live_here;
static const value *live_from;
/* A handler on them is being asked for a clause, and its continuation is YOUNG. */
static bool live_asked;

static void note_slot(value content, value *slot) {
    size_t index = (size_t)(slot - live_from);
    if (Is_block(content))
        live_here[index / WORD_BITS] |= (uintnat)1 << index % WORD_BITS;
}

static void make_room(size_t groups) {
    if (groups <= live_room)
        return;
    live_room = groups < 64 ? 64 : 2 * groups;
    live = realloc(live, live_room * sizeof *live);
    if (live == NULL)
        caml_fatal_error("haft: no memory to put a continuation away");
}

/* False: there are functions of C on the stack. */
static bool find_live_of(const part_t *part, size_t groups) {
    live_from = part->stack;
    live_here = live + groups;
    memset(live_here, 0, groups_for(words_of(part)) * sizeof *live);
    frames_t frames = haft_ocaml_frames_from(part->fiber, (const char *)part->stack);
    frame_descr *frame;
    char *sp;
    bool border = false;
    while ((frame = haft_ocaml_next_frame(&frames, &sp, &border)) != NULL && !border) {
        haft_ocaml_scan_frame(note_slot, frame, sp, NULL);
        if (frame->retaddr == (uintnat)haft_ocaml_asked)
            live_asked |= Field(((value *)(void *)sp)[1], CONTINUATION_STATE_FIELD) == STACK_YOUNG;
    }
    return !border;
}

/* Whether the stacks can be moved, and have at most this many words; if so, `live` describes
   them. */
static bool find_live(const ocaml_fiber_t *fiber, size_t most) {
    size_t words = 0, groups = 0;
    live_asked = false;
    if (fiber->roots != NULL)
        return false;
    for (part_t part = innermost_part(fiber); part.fiber != NULL; part = outer_part(part.fiber)) {
        part_t dense = part;
        if (words + words_of(&part) > most || !make_dense(&dense))
            return false;
        words += words_of(&dense);
        size_t more = groups_for(words_of(&dense));
        make_room(groups + more);
        bool found = find_live_of(&dense, groups);
        groups += more;
        end_dense(&dense, &part);
        if (!found)
            return false;
        if (part.fiber == fiber)
            return true;
        if (part.fiber->parent_roots != NULL)
            return false;
    }
    return false;
}

HAFTI_INLINE value as_integer(uintnat word) {
    return (value)(word << 1 | 1);
}
/* Without a branch, which would be mispredicted: bit 0 of `choice` chooses. */
HAFTI_INLINE value either(uintnat choice, value if_1, value if_0) {
    return if_0 ^ ((if_0 ^ if_1) & -(value)(choice & 1));
}

/* The words of the stack that an image is made of, and which of them it leaves out. */
static uintnat *image_words, *image_again;
static size_t image_room;

/* In place of the first word, whatever it is, and of the links between traps: distances. */
static void copy_words(const part_t *part, size_t words) {
    if (words > image_room) {
        image_room = words < 1024 ? 1024 : 2 * words;
        image_words = realloc(image_words, image_room * sizeof *image_words);
        image_again = realloc(image_again, groups_for(image_room) * sizeof *image_again);
        if (image_words == NULL || image_again == NULL)
            caml_fatal_error("haft: no memory to put a continuation away");
    }
    memcpy(image_words, part->stack, words * sizeof *image_words);
    const value *trap = part->trap;
    for (uintnat *link = image_words;; trap = (const value *)*trap) {
        *link = (uintnat)part->fiber - (uintnat)trap;
        if (trap == base_trap(part->fiber))
            break;
        link = &image_words[trap - part->stack];
    }
}

/* Returns how many words are left out. */
static size_t find_again(size_t words, const uintnat *lives) {
    size_t found = 0;
    for (size_t group = 0; group < groups_of_again(words); group++) {
        uintnat bits = 0;
        size_t first = group * WORD_BITS, end = first + WORD_BITS;
        for (size_t i = first < 2 ? 2 : first; i < words && i < end; i++) {
            size_t before = i - 2;
            bool is_live = (lives[group] >> (i - first) & 1) != 0 ||
                           (lives[before / WORD_BITS] >> before % WORD_BITS & 1) != 0;
            bits |= (uintnat)(!is_live && image_words[i] == image_words[before]) << (i - first);
        }
        image_again[group] = bits;
        found += (size_t)__builtin_popcountll(bits);
    }
    return found;
}

/* Whether a block fits into the minor heap, without a collection, in which the fiber might go
   elsewhere. */
static bool fits_minor_heap(size_t fields) {
    intnat room = Caml_state->young_ptr - Caml_state->young_limit; /* < 0 when a signal waits */
    return fields <= Max_young_wosize && (intnat)fields < room;
}

/* Has the collector count an eighth of a new image, as far as it is small. Otherwise it would have
   to mark everything about twice as often as OCaml 5's, which does not count stacks at all. */
static void allow_for(size_t fields) {
    uintnat small = fields < LARGEST_IMAGE ? fields : LARGEST_IMAGE, not_counted = small / 8 * 7;
    caml_allocated_words -= not_counted < caml_allocated_words ? not_counted : caml_allocated_words;
}

/* Makes the image of one fiber, given its live words. */
static value make_part(const part_t *part, const uintnat *lives, bool young) {
    size_t words = words_of(part), groups = groups_for(words), repeated = groups_of_again(words);
    size_t tops = IMAGE_LIVE + groups, at = image_begin(words);
    copy_words(part, words);
    size_t fields = image_fields(words) - find_again(words, lives);
    bool fits = young && fits_minor_heap(fields);
    value image = fits ? caml_alloc_small(fields, 0) : caml_alloc_shr_no_track_noexc(fields, 0);
    if (image == 0)
        return 0;
    if (!fits)
        allow_for(fields);
    Field(image, IMAGE_WORDS) = Val_long(words);
    Field(image, IMAGE_OUTER) = Val_unit;
    Field(image, IMAGE_SHOTS) = Val_int(1);
    for (size_t group = 0; group < groups; group++) {
        uintnat top_bits = 0, left_out = group < repeated ? image_again[group] : 0;
        for (size_t i = group * WORD_BITS, bit = 0; i < words && bit < WORD_BITS; i++, bit++) {
            if (left_out >> bit & 1)
                continue;
            if (lives[group] >> bit & 1) {
                store(image, at++, (value)image_words[i]);
            } else {
                top_bits |= (image_words[i] >> 63) << bit;
                Field(image, at++) = as_integer(image_words[i]);
            }
        }
        Field(image, IMAGE_LIVE + group) = as_integer(lives[group]);
        Field(image, tops + group) = as_integer(top_bits);
        if (group < repeated)
            Field(image, tops + groups + group) = as_integer(left_out);
    }
    store(image, at, part->fiber->handler);
    return image;
}

/* Makes one image of the fibers that find_live has found movable. 0: there is no memory. `young`:
   in the minor heap, as far as they fit. */
static value make_image(const ocaml_fiber_t *fiber, bool young) {
    const uintnat *lives = live;
    value innermost = 0, inner = 0;
    for (part_t part = innermost_part(fiber);; part = outer_part(part.fiber)) {
        part_t dense = part;
        if (!make_dense(&dense))
            return 0;
        value image = make_part(&dense, lives, young);
        size_t groups = groups_for(words_of(&dense));
        end_dense(&dense, &part);
        if (image == 0)
            return 0;
        if (inner == 0)
            innermost = image;
        else
            store(inner, IMAGE_OUTER, image);
        if (part.fiber == fiber)
            return innermost;
        inner = image;
        lives += groups;
    }
}

/* Restores an image onto the stack of a fiber. Returns where it begins. */
static char *write_stack(value image, ocaml_fiber_t *fiber) {
    size_t words = (size_t)Long_val(Field(image, IMAGE_WORDS)), groups = groups_for(words);
    size_t tops = IMAGE_LIVE + groups, at = image_begin(words), repeated = groups_of_again(words);
    value *base = base_trap(fiber), *stack = base - words;
    for (size_t group = 0; group < groups; group++) {
        uintnat lives = (uintnat)Field(image, IMAGE_LIVE + group) >> 1;
        uintnat top_bits = (uintnat)Field(image, tops + group) >> 1;
        uintnat left_out = group < repeated ? (uintnat)Field(image, tops + groups + group) >> 1 : 0;
        for (size_t i = group * WORD_BITS; i < words && i < (group + 1) * WORD_BITS; i++) {
            if (HAFTI_UNLIKELY(left_out & 1)) {
                stack[i] = stack[i - 2];
            } else {
                value word = Field(image, at++);
                stack[i] = either(lives, word, (value)((uintnat)word >> 1 | top_bits << 63));
            }
            lives >>= 1;
            top_bits >>= 1;
            left_out >>= 1;
        }
    }
    for (value *link = stack; link != base; link = (value *)*link)
        *link = (value)((uintnat)fiber - (uintnat)*link);
    set_end(fiber);
    return (char *)stack;
}

/* The suspended fiber `inner` goes on inside `fiber`, whose stack begins at `sp`. */
static void put_inside(ocaml_fiber_t *inner, ocaml_fiber_t *fiber, char *sp) {
    fiber->sp = inner->sp;
    fiber->top = inner->top;
    inner->parent = (struct caml_context){.bottom_of_stack = sp + 16,
                                          .last_retaddr = ((const uintnat *)(const void *)sp)[1],
                                          .gc_regs = (value *)(void *)(sp + 16)};
    inner->parent_exception = *(char **)(void *)sp;
    inner->parent_roots = NULL;
    inner->scope.outer = &fiber->scope;
    inner->continuation = FIBER_RUNNING;
}

/* Bytes of the stack to which the image is restored. */
static size_t image_bytes(value image) {
    return sizeof(value) * (size_t)Long_val(Field(image, IMAGE_WORDS));
}

ocaml_fiber_t *haft_ocaml_restore(value image) {
    ocaml_fiber_t *inner = NULL;
    for (; Is_block(image); image = Field(image, IMAGE_OUTER)) {
        ocaml_fiber_t *fiber = haft_ocaml_take_stack_for(image_bytes(image));
        if (fiber == NULL) {
            if (inner != NULL)
                haft_ocaml_end(inner);
            return NULL;
        }
        char *sp = write_stack(image, fiber);
        if (inner == NULL) {
            fiber->sp = sp;
            fiber->top = &fiber->scope;
        } else {
            put_inside(inner, fiber, sp);
        }
        fiber->roots = NULL;
        fiber->handler = Field(image, Wosize_val(image) - 1);
        inner = fiber;
        assert(haft_ocaml_is_valid(fiber));
    }
    return inner;
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
    ocaml_fiber_t *fiber = *(ocaml_fiber_t **)Data_custom_val(anchor);
    if (fiber == NULL)
        return; /* It has been resumed. */
    unlist(haft_of(fiber));
    haft_ocaml_end(fiber);
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
    for (hafti_scope_t *scope = fiber->top;; scope = scope->outer) {
        const ocaml_fiber_t *inner = fiber_of_scope(scope);
        if (inner != NULL) {
            bytes += haft_ocaml_depth(inner, sp);
            sp = inner->parent.bottom_of_stack;
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
    *(ocaml_fiber_t **)Data_custom_val(anchor) = NULL;
    slot_count = 0;
    haft_ocaml_scan_suspended(add_slot, fiber);
    value keeper = caml_alloc_shr_no_track_noexc(slot_count + 1, 0);
    if (keeper == 0)
        return 0;
    Field(keeper, 0) = anchor;
    for (size_t i = 0; i < slot_count; i++)
        store(keeper, 1 + i, slots[i]);
    *(ocaml_fiber_t **)Data_custom_val(anchor) = fiber;
    list(haft_of(fiber));
    /* Outside of the heap, a stack takes a page or two more than its used part. */
    caml_adjust_gc_speed(8192 + extent(fiber), (mlsize_t)1 << 28);
    return keeper;
}

/* ---- A continuation survives, and is used ---- */

/* The block keeps the stack of the continuation. */
static void keep(value continuation, value block) {
    Field(continuation, CONTINUATION_STATE_FIELD) = STACK_KEPT;
    Field(continuation, CONTINUATION_HOLDER_FIELD) = block;
}
/* The same; the fiber was the continuation's. */
static void keep_in(value continuation, ocaml_fiber_t *fiber, value block) {
    keep(continuation, block);
    fiber->continuation = FIBER_KEPT; /* Nothing reads it, and the real one may move. */
}

static void replace_by_image(value continuation, ocaml_fiber_t *fiber, value image) {
    keep_in(continuation, fiber, image);
    haft_ocaml_end(fiber);
}

void haft_ocaml_settle(value continuation, ocaml_fiber_t *fiber) {
    size_t most = haft_ocaml_many_stacks() ? LARGEST_OF_MANY : LARGEST_IMAGE;
    bool movable = find_live(fiber, most);
    value block = movable ? make_image(fiber, false) : make_keeper(fiber);
    if (block == 0)
        caml_fatal_error("haft: no memory for a continuation");
    if (movable)
        replace_by_image(continuation, fiber, block);
    else
        keep_in(continuation, fiber, block);
}

/* Images made before a minor collection, since the last one, and how many of these were restored
   since. Where most are, a few thousand threads take turns: they stay on their stacks, until it is
   tried again after some collections. Where few are, images are made in the major heap, because
   nearly all would be copied there. */
static size_t early, early_restored;
static bool never_early, rarely_restored;

void haft_ocaml_settle_early(value continuation, ocaml_fiber_t *fiber) {
    if (never_early || haft_ocaml_placed != NULL || !find_live(fiber, LARGEST_OF_MANY))
        return;
    value image = make_image(fiber, !rarely_restored);
    if (image == 0)
        return;
    replace_by_image(continuation, fiber, image);
    early++;
}

void haft_ocaml_judge_early(void) {
    enum { COLLECTIONS = 16 };
    static int collections;
    rarely_restored = early_restored < early / 4;
    never_early = (never_early || early_restored > early / 2) && ++collections % COLLECTIONS != 0;
    early = early_restored = 0;
}

/* Marks what was on the stack when marking began: it is no longer reachable through the block. */
static void leave_block(value block) {
    if (caml_gc_phase == Phase_mark)
        caml_darken(block, NULL);
}

static void use(value continuation) {
    Field(continuation, CONTINUATION_STATE_FIELD) = STACK_USED;
    Field(continuation, CONTINUATION_HOLDER_FIELD) = Val_int(0);
}

/* It has been restored. */
static void leave_image(value continuation, value image) {
    early_restored += Is_young(continuation);
    Field(image, IMAGE_SHOTS) -= 2;
    leave_block(image);
}

static ocaml_fiber_t **anchored(value keeper) {
    return (ocaml_fiber_t **)Data_custom_val(Field(keeper, 0));
}

static void take_from_keeper(value keeper, ocaml_fiber_t *fiber) {
    *anchored(keeper) = NULL;
    unlist(haft_of(fiber));
    leave_block(keeper);
}

ocaml_fiber_t *haft_ocaml_fiber(value continuation, bool *image) {
    *image = false;
    if (Field(continuation, CONTINUATION_STATE_FIELD) == STACK_PLACED)
        haft_ocaml_shelve_placed();
    value state = Field(continuation, CONTINUATION_STATE_FIELD);
    if (state == STACK_YOUNG || state == STACK_ASIDE) {
        ocaml_fiber_t *fiber = holder_of(continuation);
        return fiber->continuation == continuation ? fiber : NULL;
    }
    if (state != STACK_KEPT) /* PLACED: a copy, of Weak.get_copy. */
        return NULL;
    value block = Field(continuation, CONTINUATION_HOLDER_FIELD);
    *image = is_image(block) && Field(block, IMAGE_SHOTS) != Val_int(0);
    return is_image(block) ? NULL : *anchored(block);
}

ocaml_fiber_t *haft_ocaml_shelve_awakened(value continuation);

/* Called by switch.S: a continuation that is not YOUNG is about to be nested. Returns the shelf
   that has its stack, and is on no list; NULL: that cannot be. */
ocaml_fiber_t *haft_ocaml_shelve_awakened(value continuation) {
    bool image;
    ocaml_fiber_t *fiber = haft_ocaml_fiber(continuation, &image);
    if (fiber != NULL && is_shelf(fiber))
        haft_ocaml_forget_recent(fiber);
    if (!image)
        return fiber != NULL && is_shelf(fiber) ? fiber : NULL;
    value block = Field(continuation, CONTINUATION_HOLDER_FIELD);
    ocaml_fiber_t *shelf =
        Is_block(Field(block, IMAGE_OUTER)) ? NULL : haft_ocaml_take_shelf(image_bytes(block));
    if (shelf == NULL)
        return NULL;
    shelf->sp = write_stack(block, shelf);
    shelf->handler = Field(block, Wosize_val(block) - 1);
    leave_image(continuation, block);
    use(continuation);
    return shelf;
}

/* Makes a continuation that is not YOUNG ready to be resumed and USED. Returns its fiber; NULL if
   it was used before; 1 if there is no memory for a stack. */
ocaml_fiber_t *haft_ocaml_awaken(value continuation);

ocaml_fiber_t *haft_ocaml_awaken(value continuation) {
    bool image;
    ocaml_fiber_t *fiber = haft_ocaml_fiber(continuation, &image);
    value block = Field(continuation, CONTINUATION_HOLDER_FIELD);
    if (fiber == NULL && !image)
        return NULL;
    assert(image || (is_suspended(fiber) && haft_ocaml_is_valid(fiber)));
    if (image)
        fiber = haft_ocaml_restore(block);
    else
        fiber = haft_ocaml_unshelve(fiber);
    if (fiber == NULL)
        return (ocaml_fiber_t *)1;
    haft_ocaml_forget_recent(fiber);
    if (image)
        leave_image(continuation, block);
    else if (Field(continuation, CONTINUATION_STATE_FIELD) == STACK_KEPT)
        take_from_keeper(block, fiber);
    use(continuation);
    return fiber;
}

value haft_ocaml_release(value continuation, value again);

/* Moves what `continuation` holds into `again`, which is new, for the next handler. Returns 0; 1 if
   there is no memory for a stack; 2 if the continuation was used before, because another copy
   (Haft.unsafe_clone) of the declining code has declined it. A placed fiber stays in place if its
   parent can be suspended around it. */
value haft_ocaml_release(value continuation, value again) {
    value state = STACK_YOUNG;
    ocaml_fiber_t *fiber = holder_of(continuation);
    if (Field(continuation, CONTINUATION_STATE_FIELD) == STACK_PLACED &&
        fiber->continuation == continuation && haft_ocaml_may_pass(fiber)) {
        use(continuation);
        state = STACK_PLACED;
    } else {
        fiber = haft_ocaml_awaken(continuation);
        if (fiber == NULL)
            return Val_int(2);
        if (fiber == (ocaml_fiber_t *)1)
            return Val_int(1);
    }
    set_holder(again, state, fiber);
    fiber->continuation = again;
    return Val_int(0);
}

/* ---- Copies ---- */

value haft_ocaml_clone(value continuation);

/* One that is USED, until it gets a stack. */
static value new_continuation(void) {
    value continuation = caml_alloc_small(CONTINUATION_FIELDS, Closure_tag);
    Field(continuation, CONTINUATION_CODE_FIELD) = (value)haft_ocaml_continue;
    Field(continuation, CONTINUATION_CLOSINFO_FIELD) = CONTINUATION_INFORMATION;
    use(continuation);
    return continuation;
}

/* Whether a handler on the stack is being asked for a clause. Few stacks have the address; that may
   be a word which is not in use. */
static bool is_asked(ocaml_fiber_t *fiber) {
    typedef uintnat words_t __attribute__((vector_size(16), may_alias));
    const words_t *base = (const words_t *)(const void *)base_trap(fiber);
    words_t found = {0};
    for (const words_t *at = (const words_t *)(const void *)fiber->sp; at != base; at++)
        found |= (words_t)(*at == (uintnat)haft_ocaml_asked);
    if ((found[0] | found[1]) == 0)
        return false;
    frames_t frames = haft_ocaml_frames(fiber);
    frame_descr *frame;
    char *sp;
    bool border = false;
    while ((frame = haft_ocaml_next_frame(&frames, &sp, &border)) != NULL)
        if (frame->retaddr == (uintnat)haft_ocaml_asked)
            return true;
    return false;
}

/* The copy of a suspended fiber. NULL: the stack is not small and dense, or has more than frames of
   OCaml, or there is no place. */
static ocaml_fiber_t *copy_stack(ocaml_fiber_t *fiber) {
    enum { LARGEST = 16384, MOST_SHELVES = 8192 };
    const char *trap = *(char **)(void *)fiber->sp;
    size_t bytes = bytes_of(fiber);
    if (!is_alone(fiber) || fiber->roots != NULL || bytes > LARGEST || has_callbacks(fiber, trap) ||
        haft_ocaml_dense_bytes(fiber, fiber->sp, trap) != bytes || is_asked(fiber))
        return NULL;
    ocaml_fiber_t *to = NULL;
    if (haft_ocaml_has_stack())
        to = haft_ocaml_take_stack();
    else if (haft_ocaml_shelves_in_use < MOST_SHELVES)
        to = haft_ocaml_take_shelf(bytes);
    if (to != NULL)
        move_stack(fiber, to);
    return to;
}

/* The copy gets an image. False: the computation is to be looked at again, after a collection. */
static bool copy_to_image(value continuation, ocaml_fiber_t *fiber, value copy, bool again) {
    if (!find_live(fiber, SIZE_MAX))
        caml_invalid_argument(
            "Haft.unsafe_clone: there are functions of C on the computation's stack");
    if (live_asked)
        return false; /* Both copies would decline it; after a collection one of them gets an
                         error. */
    value block = make_image(fiber, !again);
    if (block == 0)
        caml_raise_out_of_memory();
    if (again) {
        if (Field(continuation, CONTINUATION_STATE_FIELD) == STACK_KEPT)
            take_from_keeper(Field(continuation, CONTINUATION_HOLDER_FIELD), fiber);
        replace_by_image(continuation, fiber, block);
        Field(block, IMAGE_SHOTS) += 2;
    }
    keep(copy, block);
    return true;
}

/* Most are small, are copied once, and both are resumed soon: the copy gets a stack, or a shelf
   while there are many stacks, and the computation itself stays where it is. A larger one gets an
   image, in the minor heap. One that is copied again is put away, and shares its image with all
   further copies. */
value haft_ocaml_clone(value continuation) {
    static value copied; /* the last one, or what was there before a collection: no harm */
    CAMLparam1(continuation);
    CAMLlocal1(copy);
    copy = new_continuation();
    bool image;
    ocaml_fiber_t *fiber = haft_ocaml_fiber(continuation, &image);
    if (image) {
        value shared = Field(continuation, CONTINUATION_HOLDER_FIELD);
        Field(shared, IMAGE_SHOTS) += 2;
        keep(copy, shared);
        CAMLreturn(copy);
    }
    if (fiber == NULL)
        caml_raise_constant(*caml_named_value("haft.Continuation_already_resumed"));
    haft_ocaml_shelve_placed();
    bool again = copied == continuation;
    ocaml_fiber_t *to = again ? NULL : copy_stack(fiber);
    if (to != NULL) {
        to->continuation = copy;
        set_holder(copy, is_shelf(to) ? STACK_ASIDE : STACK_YOUNG, to);
        haft_ocaml_list_suspended(to);
        assert(haft_ocaml_is_valid(to));
    } else if (!copy_to_image(continuation, fiber, copy, again)) {
        caml_empty_minor_heap();
        CAMLreturn(haft_ocaml_clone(continuation));
    }
    copied = continuation;
    CAMLreturn(copy);
}
