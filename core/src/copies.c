/* SPDX-License-Identifier: MIT */
/*
 * Copies of suspended computations.
 *
 * Frames hold addresses of one another, so a copy of them is of use at its own addresses only. An
 * image keeps the bytes of a suspended computation aside; they are put back on the same fibers when
 * the copy is to run. At any time a fiber has one instance of what was copied on it, or none:
 *
 *   the fibers of a suspended chain            an image
 *   innermost  | free | frames | header |      | head: the context, what it waits for        |
 *                      ^ sp                    | each inner fiber: how its resumer waits     |
 *   inner      | free | frames | header |      | frames of the innermost, from sp to `high`  |
 *                      ^ resumer.sp of the     | frames of the inner ones                    |
 *                        one further in        | frames of the handler's                     |
 *   handler's  | free | frames | header |
 *
 * A resumption is {fiber, shot}. If the shot is the fiber's, the computation stands on the fiber,
 * and the hot path resumes it. Any other shot is looked up in the table of the fiber's stage
 * (stages.c), which has the images that are still to be used:
 *
 *   the shot is            | it names
 *   the fiber's            | what stands on the fiber
 *   in the table, MADE set | a copy
 *   in the table           | what stood on the fiber, and was set aside for a copy
 *   any other              | nothing: it has been used
 *
 * Invariants
 * - A fiber's shot only grows, whatever stands on the fiber: so a resumption never names anything
 *   else than what it was made for.
 * - An image has a reference for each resumption in a table that names it, and each of its fibers
 *   has a pin for the image. An image never changes.
 * - `standing` of a stage is the image of what stands on the fiber. So that is set aside without a
 *   copy, and a copy of it goes on in place.
 * - Nothing stands on a fiber whose image is put there: what is suspended on it is set aside first,
 *   which moves it, cleanups and all; anything else is an error.
 * - What is put on its fibers has the parent that the code has which resumes it, and so gets new
 *   serials and empty caches, unless that is the scope which had resumed it before. Caches in
 *   frames are those of the image; caches in headers are of what ran on the fiber last: so both
 *   have to be of this chain.
 * - The red zone below the stack pointer is not copied. A function that performs or resumes calls
 *   the library where the switch was special: so it is no leaf, and has no red zone.
 */
#include "copies.h"
#include "claim.h"
#include "crossing.h"

#include <stdlib.h>
#include <string.h>

/* Marks the shots of copies. A fiber's own count never gets there. */
static const uint64_t MADE = UINT64_C(1) << 63;

/* A fiber inside the handler's: it runs, as the next one out waits for it. */
typedef struct inner {
    haft_fiber_t *fiber;
    hafti_context_t resumer;
    hafti_scope_t *outer;
    const haft_handles_t *handles;
    uint64_t serial; /* with another one, its cache is of another chain */
    uint32_t set;
} inner_t;

struct haft_image {
    uint32_t references;
    uint32_t inside : 29; /* how many fibers there are inside the handler's */
    uint32_t cleanups : 2;
    haft_fiber_t *fiber; /* the handler's */
    uintptr_t awaits;
    hafti_scope_t *top;
    hafti_context_t context; /* with the epoch of the stage in the place of the gate */
    inner_t inner[];         /* innermost first */
};

/* ---- The parts of an image: a fiber each, innermost first ---- */

typedef struct part {
    haft_fiber_t *fiber;
    char *low; /* where its frames begin */
} part_t;

static size_t size_of(const part_t *part) {
    return (size_t)(part->fiber->high - part->low);
}

/* The innermost part of what is suspended at the fiber. */
static part_t first_standing(haft_fiber_t *fiber) {
    return (part_t){haft_innermost(fiber), fiber->context.sp};
}
static void next_standing(part_t *part) {
    const haft_fiber_t *inner = part->fiber;
    *part = (part_t){haft_resumer_of(inner), inner->resumer.sp};
}

static part_t part_of(const haft_image_t *image, uint32_t index) {
    return (part_t){index < image->inside ? image->inner[index].fiber : image->fiber,
                    index == 0 ? image->context.sp : image->inner[index - 1].resumer.sp};
}
static char *bytes_of(haft_image_t *image) {
    return (char *)&image->inner[image->inside];
}

static size_t bytes_for(uint32_t inside, size_t frames) {
    return sizeof(haft_image_t) + inside * sizeof(inner_t) + frames;
}
static size_t bytes_in(const haft_image_t *image) {
    size_t frames = 0;
    for (uint32_t i = 0; i <= image->inside; i++) {
        part_t part = part_of(image, i);
        frames += size_of(&part) + haft_shadow_size(size_of(&part));
    }
    return bytes_for(image->inside, frames);
}

/* ---- Images come and go ---- */

static void release(haft_image_t *image) {
    if (--image->references != 0)
        return;
    haft_stage_t *stage = image->fiber->stage;
    if (stage->standing == image)
        stage->standing = NULL;
    uint32_t inside = image->inside;
    bool kept = haft_stage_take_back(stage, image, bytes_in(image));
    for (uint32_t i = 0; i <= inside; i++) /* the handler's is the last one */
        haft_stage_unpin(part_of(image, i).fiber);
    if (!kept)
        free(image);
}

static HAFTI_COLD __attribute__((noreturn)) void no_memory(const haft_fiber_t *fiber) {
    haft_fail(HAFT_ERROR_NO_MEMORY, hafti_awaited(fiber), fiber,
              "No memory for a copy of what runs on %s.", haft_fiber_label(fiber));
}

uintptr_t haft_image_awaits(const haft_image_t *image) {
    return image->awaits;
}

/* ---- What runs on the fibers ---- */

static HAFTI_COLD __attribute__((noreturn)) void
occupied(const haft_image_t *image, const haft_fiber_t *fiber, const char *what, const char *by) {
    haft_effect_t *effect = hafti_effect_in(image->awaits);
    haft_fail(HAFT_ERROR_NOT_RESUMABLE, effect, fiber,
              "A copied resumption of the effect '%s' cannot be %s: %s, on which it goes on, %s.",
              effect->name, what, haft_fiber_label(fiber), by);
}

/* The fiber at which the chain is suspended that goes over this fiber; NULL: it runs. */
static haft_fiber_t *suspended_over(haft_fiber_t *fiber) {
    hafti_scope_t *scope = &fiber->scope;
    for (; scope != NULL; scope = scope->outer)
        if (scope->kind == HAFTI_SCOPE_FIBER &&
            __atomic_load_n(&hafti_fiber_of(scope)->context.gate, __ATOMIC_RELAXED) !=
                HAFTI_GATE_CLOSED)
            return hafti_fiber_of(scope);
    return NULL;
}

/* Reports that another thread runs a copy, as far as that can be seen. */
static void check_thread(hafti_thread_t *thread, const haft_image_t *image, const char *what) {
    haft_fiber_t *fiber = image->fiber;
    if (HAFTI_LIKELY(__atomic_load_n(&fiber->context.gate, __ATOMIC_RELAXED) != HAFTI_GATE_CLOSED ||
                     fiber->state != HAFT_FIBER_RUNNING) ||
        suspended_over(fiber) != NULL)
        return;
    const hafti_scope_t *root = &fiber->scope;
    while (root->outer != NULL)
        root = root->outer;
    if (root != &haft_home(thread)->root)
        occupied(image, fiber, what,
                 "is run by another thread. One thread at a time uses a computation and its "
                 "copies");
}

static void forget(haft_resumption_t k, haft_image_t *image) {
    haft_stage_forget(k.fiber->stage, k.shot);
    release(image);
}

bool haft_image_forget(haft_resumption_t k, haft_image_t *image) {
    if (image == NULL)
        return false;
    hafti_thread_t *thread = haft_thread_ready();
    haft_check_uses(thread, image->fiber, "dropped");
    check_thread(thread, image, "dropped");
    if (image->cleanups != HAFT_CLEANUPS_NONE)
        return false;
    forget(k, image);
    return true;
}

/* ---- What may be copied ---- */

/* Returns why the frames on the fiber cannot leave its stack. NULL: they can. */
static const char *holds(const haft_fiber_t *fiber) {
    if (fiber->language != NULL || hafti_thread()->language != NULL)
        return "another language's frames may be among them";
    if (fiber->kind == HAFT_KIND_SEGMENTED)
        return "its stack is segmented";
    if (fiber->kind == HAFT_KIND_FIXED)
        return "its stack lies in memory of the caller";
    if (haft_fibers_on(fiber))
        return "its frames hold memory in which another fiber runs";
    if (fiber->thrown != NULL || fiber->unwound_under != 0)
        return "it is being unwound";
    if (fiber->excepted != 0)
        return "it is handling an exception";
    return haft_tools_hold(fiber);
}

static HAFTI_COLD __attribute__((noreturn)) void refuse(const haft_fiber_t *fiber,
                                                        const haft_fiber_t *at, const char *why) {
    haft_effect_t *effect = hafti_awaited(fiber);
    haft_fail(
        HAFT_ERROR_NOT_COPYABLE, effect, fiber,
        "A resumption of the effect '%s' cannot be copied, or make room for a copy: the frames "
        "on %s stay where they are, because %s.",
        effect->name, haft_fiber_label(at), why);
}

static HAFTI_COLD __attribute__((noreturn)) void refuse_frame(const haft_fiber_t *fiber,
                                                              uint32_t cleanups, uintptr_t pc) {
    haft_effect_t *effect = hafti_awaited(fiber);
    haft_fail(
        HAFT_ERROR_NOT_COPYABLE, effect, fiber,
        cleanups == HAFT_CLEANUPS_SOME
            ? "A resumption of the effect '%s' cannot be copied: the call%s waits in a frame "
              "with cleanups or destructors, and each copy would run them. Clean up outside of "
              "the handler, or promise haft_may_copy_frames of the function."
            : "A resumption of the effect '%s' cannot be copied: of the call%s it is not known "
              "whether its frame has cleanups. Promise haft_may_copy_frames of the function if "
              "it has none.",
        effect->name, haft_place_label((const void *)pc));
}

/* The worst of what the frames have to run, and where; `asks`: the innermost switch is to be asked,
   too. */
typedef struct seen {
    haft_cleanups_t cleanups;
    uintptr_t pc;
    bool asks;
} seen_t;

static void see(seen_t *seen, haft_cleanups_t cleanups, uintptr_t pc) {
    if (cleanups > seen->cleanups) {
        seen->cleanups = cleanups;
        seen->pc = pc;
    }
}

static haft_frame_t frame_of(const hafti_context_t *context) {
    return (haft_frame_t){(uintptr_t)context->pc, (uintptr_t)context->sp, (uintptr_t)context->fp};
}

/* `all`: also at the frames of fibers that have promised to have no cleanups, as far as these are
   known. */
static seen_t look_at(haft_fiber_t *fiber, haft_judge_t *judge, bool all) {
    seen_t seen = {HAFT_CLEANUPS_NONE, 0, false};
    const hafti_context_t *context = &fiber->context;
    const haft_fiber_t *resumed = NULL;
    for (part_t part = first_standing(fiber);; next_standing(&part)) {
        haft_frame_t frame = frame_of(context);
        haft_cleanups_t here = part.fiber->cleanups || all
                                   ? haft_cleanups_from(&frame, true, resumed, judge)
                                   : HAFT_CLEANUPS_NONE;
        if (here == HAFT_CLEANUPS_UNKNOWN && !part.fiber->cleanups)
            here = HAFT_CLEANUPS_NONE;
        if (here == HAFT_CLEANUPS_AT_SWITCH && context == &fiber->context)
            seen.asks = true;
        else
            see(&seen, here == HAFT_CLEANUPS_AT_SWITCH ? HAFT_CLEANUPS_SOME : here, frame.pc);
        if (part.fiber == fiber)
            return seen;
        context = &part.fiber->resumer;
        resumed = part.fiber;
    }
}

/* ---- Copying out ---- */

/* Returns how many fibers are inside, and stores the bytes of all. Reports frames that cannot leave
   their stack. */
static uint32_t measure(haft_fiber_t *fiber, size_t *size) {
    uint32_t inside = 0;
    *size = 0;
    for (part_t part = first_standing(fiber);; next_standing(&part), inside++) {
        const char *why = part.fiber == NULL ? "they are not on fibers alone" : holds(part.fiber);
        if (HAFTI_UNLIKELY(why != NULL))
            refuse(fiber, part.fiber, why);
        *size += size_of(&part) + haft_shadow_size(size_of(&part));
        if (part.fiber == fiber)
            return inside;
    }
}

static void copy_out(haft_image_t *image, haft_fiber_t *fiber) {
    char *to = bytes_of(image);
    inner_t *inner = image->inner;
    for (part_t part = first_standing(fiber);; next_standing(&part), inner++) {
        size_t size = size_of(&part);
        haft_copy_out(to, part.low, size);
        to += size + haft_shadow_size(size);
        if (part.fiber == fiber)
            return;
        const hafti_scope_t *scope = &part.fiber->scope;
        *inner = (inner_t){part.fiber,     part.fiber->resumer, scope->outer,
                           scope->handles, scope->serial,       part.fiber->set};
    }
}

static bool pin_all(const haft_image_t *image) {
    for (uint32_t i = 0; i <= image->inside; i++)
        if (!haft_stage_pin(part_of(image, i).fiber)) {
            while (i-- != 0)
                haft_stage_unpin(part_of(image, i).fiber);
            return false;
        }
    return true;
}

/*
 * Returns a number that grows whenever the scope that had resumed the computation is another one
 * than it was at the image before. 0: there were too many such scopes; this one is never known
 * again.
 */
static uint32_t epoch_of(const haft_fiber_t *fiber) {
    haft_stage_t *stage = fiber->stage;
    if (HAFTI_UNLIKELY(stage->owner != fiber->owner) && stage->epoch != UINT32_MAX) {
        stage->owner = fiber->owner;
        stage->epoch++;
    }
    return stage->epoch == UINT32_MAX ? 0 : stage->epoch;
}
/* Whether the code that runs has resumed it before, and nothing has changed around that. No other
   code has resumed a copy since, which has left its own in the caches. */
static bool has_same_parent(const haft_image_t *image, const hafti_thread_t *thread) {
    const haft_stage_t *stage = image->fiber->stage;
    return image->context.gate == stage->epoch && stage->owner == thread->current->serial &&
           image->fiber->owner == stage->owner;
}

/* An image of what is suspended at the fiber, without a reference. NULL: no memory. The fiber's
   frames have `cleanups` to run. */
static haft_image_t *image_from(haft_fiber_t *fiber, uint32_t inside, size_t size,
                                haft_cleanups_t cleanups) {
    haft_image_t *image = haft_stage_allocate(fiber, bytes_for(inside, size));
    if (image == NULL)
        return NULL;
    image->references = 0;
    image->inside = inside & 0x1fffffffu;
    image->cleanups = cleanups & 3u;
    image->fiber = fiber;
    image->awaits = fiber->awaits;
    image->top = fiber->top;
    image->context = fiber->context;
    copy_out(image, fiber);
    if (!pin_all(image)) {
        free(image);
        return NULL;
    }
    fiber->stage->standing = image;
    fiber->stage->standing_shot = fiber->scope.shot;
    image->context.gate = epoch_of(fiber);
    return image;
}

/* ---- What there is to run at a switch ---- */

typedef struct question {
    haft_fiber_t *fiber;
    haft_judge_t *judge;
    seen_t seen;
} question_t;

/* Called by hafti_woken, in the place of the reply. */
static void *answer(void *argument) {
    question_t *question = argument;
    haft_frame_t frame = HAFT_CALLERS_FRAME();
    haft_cleanups_t cleanups = haft_cleanups_from(&frame, false, NULL, question->judge);
    question->seen = (seen_t){cleanups, frame.pc, false};
    haft_tools_unwinding();
    (void)haft_cross(hafti_thread(), question->fiber, HAFT_OUT_OF, (hafti_words_t){NULL, 0, false});
    __builtin_unreachable();
}

/* Finds out which cleanups the stack with the innermost switch has. Its frames go on, as far as
   hafti_woken, and are then put back. */
static seen_t ask(hafti_thread_t *thread, haft_image_t *image, haft_judge_t *judge) {
    haft_fiber_t *fiber = image->fiber;
    question_t question = {fiber, judge, {HAFT_CLEANUPS_UNKNOWN, 0, false}};
    haft_call_t call = {answer, &question};
    uint32_t gate = fiber->context.gate;
    fiber->context.gate = HAFTI_GATE_CLOSED;
    haft_footing_t footing;
    haft_leave_segments(thread, &footing);
    (void)haft_cross(thread, fiber, HAFT_INTO, (hafti_words_t){&call, HAFTI_WAKE_CALL, true});
    haft_return_to_segments(&footing);
    part_t part = part_of(image, 0);
    haft_copy_in(part.low, bytes_of(image), size_of(&part));
    fiber->context = image->context;
    fiber->within = NULL;
    __atomic_store_n(&fiber->context.gate, gate, __ATOMIC_RELEASE);
    if (question.seen.cleanups == HAFT_CLEANUPS_NONE)
        haft_cleanups_learn((uintptr_t)image->context.pc);
    return question.seen;
}

/* The image of what is suspended at the fiber, if there is one. */
static haft_image_t *standing_on(const haft_fiber_t *fiber) {
    return fiber->kind == HAFT_KIND_COPIED && fiber->stage->standing_shot == fiber->scope.shot
               ? fiber->stage->standing
               : NULL;
}

/* Returns the image of what is suspended at the fiber, which no other thread may resume meanwhile;
   makes it if there is none. `copied`: frames with cleanups are refused; `all`: also on fibers that
   have promised to have none. */
static haft_image_t *image_at(hafti_thread_t *thread, haft_fiber_t *fiber, haft_judge_t *judge,
                              bool copied, bool all) {
    haft_image_t *image = standing_on(fiber);
    if (image == NULL) {
        size_t size;
        uint32_t gate = __atomic_load_n(&fiber->context.gate, __ATOMIC_RELAXED);
        uint64_t owner = haft_claim_here(thread, fiber, HAFT_ERROR_NOT_RESUMABLE, "copied");
        if (owner != thread->current->serial)
            haft_set_owner(thread, fiber, owner, 0);
        __atomic_store_n(&fiber->context.gate, gate, __ATOMIC_RELEASE);
        uint32_t inside = measure(fiber, &size);
        seen_t seen = look_at(fiber, judge, all);
        image = image_from(fiber, inside, size, seen.cleanups);
        if (image == NULL)
            no_memory(fiber);
        if (HAFTI_UNLIKELY(seen.asks)) {
            seen_t asked = ask(thread, image, judge);
            see(&seen, asked.cleanups, asked.pc);
            image->cleanups = seen.cleanups & 3u;
        }
        /* Code for the address sanitizer has cleanups of its own everywhere. */
        if (HAFTI_UNLIKELY(haft_tools_active) && seen.cleanups == HAFT_CLEANUPS_SOME)
            image->cleanups = seen.cleanups = HAFT_CLEANUPS_COPIED;
        if (copied && seen.cleanups > HAFT_CLEANUPS_COPIED) {
            image->references = 1;
            release(image);
            refuse_frame(fiber, seen.cleanups, seen.pc);
        }
    }
    return image;
}

/* Names the image; an error, without a change, if there is no memory for that. */
static void name(haft_fiber_t *fiber, uint64_t shot, haft_image_t *image) {
    if (HAFTI_UNLIKELY(!haft_stage_make_room(fiber->stage))) {
        image->references++;
        release(image); /* if it is new */
        no_memory(fiber);
    }
    haft_stage_name(fiber->stage, shot, image);
    image->references++;
}

haft_resumption_t haft_image_copy(haft_resumption_t k, haft_image_t *image, haft_judge_t *judge,
                                  bool all) {
    hafti_thread_t *thread = haft_thread_ready();
    if (image == NULL)
        image = image_at(thread, k.fiber, judge, true, all);
    else
        check_thread(thread, image, "copied");
    if (image->cleanups > HAFT_CLEANUPS_COPIED)
        refuse_frame(k.fiber, image->cleanups, (uintptr_t)image->context.pc);
    uint64_t shot = haft_stamp(thread) | MADE;
    name(k.fiber, shot, image);
    return (haft_resumption_t){k.fiber, shot};
}

/* ---- Setting aside ---- */

/* Frees the fibers of the image for other copies: nothing stands on them any more. */
static void leave_all(const haft_image_t *image) {
    for (uint32_t i = 0; i <= image->inside; i++) {
        haft_fiber_t *fiber = part_of(image, i).fiber;
        __atomic_store_n(&fiber->context.gate, HAFTI_GATE_CLOSED, __ATOMIC_RELAXED);
        fiber->state = HAFT_FIBER_DROPPED;
        haft_use_up(fiber);
    }
}

/* Moves the computation that is suspended over a fiber of `image` into an image of its own, which
   its resumption names from then on. */
static void set_aside(hafti_thread_t *thread, const haft_image_t *image, haft_fiber_t *fiber,
                      const char *what, haft_judge_t *judge) {
    if (fiber->state != HAFT_FIBER_RUNNING)
        occupied(image, fiber, what,
                 "has ended and has not been dropped. Call haft_fiber_drop first");
    haft_fiber_t *outermost = suspended_over(fiber);
    if (outermost == NULL)
        occupied(
            image, fiber, what,
            "is running. A computation cannot go on where another copy of it runs: let that end "
            "or perform first");
    if (!haft_is_driven(outermost) || outermost->language != NULL)
        occupied(image, fiber, what, "is suspended, and waits for a haft_resume");
    if ((outermost->scope.shot & 1) != 0)
        occupied(image, fiber, what,
                 "is promised by haft_tail_resume. Return that from the clause first");
    haft_image_t *aside = image_at(thread, outermost, judge, false, false);
    name(outermost, outermost->scope.shot, aside);
    leave_all(aside);
}

/* ---- Copying in ---- */

static void put_inner(haft_fiber_t *fiber, const inner_t *inner) {
    uint32_t room = fiber->resumer.room;
    fiber->resumer = inner->resumer;
    fiber->resumer.room = room;
    fiber->scope.outer = inner->outer;
    fiber->scope.handles = inner->handles;
    fiber->set = inner->set;
    fiber->within = NULL;
    __atomic_store_n(&fiber->context.gate, HAFTI_GATE_CLOSED, __ATOMIC_RELAXED);
}

/* Leaves the handler's fiber as if the code that runs had resumed it before. */
static void put_outermost(hafti_thread_t *thread, const haft_image_t *image) {
    haft_fiber_t *fiber = image->fiber;
    fiber->context = image->context;
    fiber->awaits = image->awaits;
    fiber->top = image->top;
    fiber->within = NULL;
    fiber->scope.outer = thread->current;
    fiber->scope.handles = &((const haft_handler_t *)fiber->handler)->handles;
    fiber->set = haft_number_of(fiber->scope.handles);
    __atomic_store_n(&fiber->owner, haft_scope_serial(thread, thread->current), __ATOMIC_RELAXED);
    __atomic_store_n(&fiber->context.gate, haft_resume_slowly ? HAFTI_GATE_SLOW : HAFTI_GATE_OPEN,
                     __ATOMIC_RELEASE);
}

/* Makes caches and serials that come from the chain outside of the image's scopes invalid. */
static void renew_all(hafti_thread_t *thread, const haft_image_t *image) {
    for (hafti_scope_t *scope = image->top; scope != thread->current; scope = scope->outer)
        haft_scope_renew(thread, scope);
}

/* The owners of the inner fibers may be scopes that have resumed other copies of them. */
static void own_inner(hafti_thread_t *thread, const haft_image_t *image) {
    for (uint32_t i = 0; i < image->inside; i++) {
        haft_fiber_t *fiber = image->inner[i].fiber;
        __atomic_store_n(&fiber->owner, haft_scope_serial(thread, fiber->scope.outer),
                         __ATOMIC_RELAXED);
    }
}

static void put_all(hafti_thread_t *thread, haft_image_t *image) {
    const char *from = bytes_of(image);
    bool same = has_same_parent(image, thread);
    for (uint32_t i = 0; i <= image->inside; i++) {
        part_t part = part_of(image, i);
        size_t size = size_of(&part);
        haft_copy_in(part.low, from, size);
        from += size + haft_shadow_size(size);
        part.fiber->state = HAFT_FIBER_RUNNING;
        part.fiber->stage->abandoned = false;
        haft_use_up(part.fiber);
        if (i < image->inside) {
            same &= part.fiber->scope.serial == image->inner[i].serial;
            put_inner(part.fiber, &image->inner[i]);
        }
    }
    put_outermost(thread, image);
    if (HAFTI_UNLIKELY(!same)) /* otherwise caches and serials hold */
        renew_all(thread, image);
    own_inner(thread, image);
}

/* Tells the sanitizers where the frames will stand. False: no memory, and nothing has changed. */
static bool tell_tools(const haft_image_t *image) {
    const haft_fiber_t *innermost = part_of(image, 0).fiber;
    for (uint32_t i = 0; i <= image->inside; i++)
        if (!haft_tools_stand(part_of(image, i).fiber, innermost,
                              i < image->inside ? part_of(image, i + 1).fiber : NULL))
            return false;
    return true;
}

haft_resumption_t haft_image_stand(haft_resumption_t k, haft_image_t *image, const char *what,
                                   haft_judge_t *judge) {
    hafti_thread_t *thread = haft_thread_ready();
    haft_fiber_t *fiber = image->fiber;
    haft_check_uses(thread, fiber, what);
    bool in_place = standing_on(fiber) == image && fiber->state == HAFT_FIBER_RUNNING &&
                    (fiber->scope.shot & 1) == 0 &&
                    __atomic_load_n(&fiber->context.gate, __ATOMIC_RELAXED) != HAFTI_GATE_CLOSED;
    if (in_place) { /* `k` and the resumption that names the fiber change places */
        haft_stage_forget(fiber->stage, k.shot);
        haft_stage_name(fiber->stage, fiber->scope.shot, image);
        haft_use_up(fiber);
        return (haft_resumption_t){fiber, fiber->scope.shot};
    }
    for (uint32_t i = 0; i <= image->inside; i++)
        if (!haft_stage_is_free(part_of(image, i).fiber))
            set_aside(thread, image, part_of(image, i).fiber, what, judge);
    if (HAFTI_UNLIKELY(haft_tools_active) && !tell_tools(image))
        no_memory(fiber);
    put_all(thread, image);
    haft_stage_forget(fiber->stage, k.shot);
    if (image->references > 1) { /* it still looks like this */
        fiber->stage->standing = image;
        fiber->stage->standing_shot = fiber->scope.shot;
    }
    k = (haft_resumption_t){fiber, fiber->scope.shot};
    release(image);
    return k;
}
