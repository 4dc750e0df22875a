/* SPDX-License-Identifier: MIT */
/*
 * The frames of suspended code, by the tables of the compiler. The runtime's own walk ends where a
 * caml_context is marked as the last; this one ends before the frame at the base of the given
 * fiber, whose context leads to its last resumer.
 */
#include "runtime.h"

static frame_descr *descriptor(uintnat pc) {
    uintnat hash = Hash_retaddr(pc);
    while (caml_frame_descriptors[hash]->retaddr != pc)
        hash = (hash + 1) & caml_frame_descriptors_mask;
    return caml_frame_descriptors[hash];
}

frames_t haft_ocaml_frames_from(const ocaml_fiber_t *fiber, const char *sp) {
    return (frames_t){.sp = (char *)(uintptr_t)sp + 16,
                      .pc = ((const uintnat *)(const void *)sp)[1],
                      .end = (const char *)base_trap(fiber)};
}

frames_t haft_ocaml_frames(const ocaml_fiber_t *fiber) {
    return haft_ocaml_frames_from(fiber, fiber->sp);
}

frame_descr *haft_ocaml_next_frame(frames_t *frames, char **sp, bool *border) {
    if (frames->sp == frames->end)
        return NULL;
    frame_descr *frame = frames->last;
    if (frame == NULL || frame->retaddr != frames->pc)
        frame = descriptor(frames->pc);
    while (frame->frame_size == 0xffff) {
        struct caml_context *next = Callback_link(frames->sp);
        *border = true;
        frames->link = next;
        frames->sp = next->bottom_of_stack;
        if (frames->sp == frames->end)
            return NULL;
        frames->pc = next->last_retaddr;
        frames->registers = next->gc_regs;
        frame = descriptor(frames->pc);
    }
    frames->last = frame;
    *sp = frames->sp;
    frames->sp += frame->frame_size & 0xfffc;
    frames->pc = Saved_return_address(frames->sp);
    return frame;
}

void haft_ocaml_scan_frame(scanning_action action, const frame_descr *frame, char *sp,
                           value *registers) {
    for (int i = 0; i < frame->num_live; i++) {
        int offset = frame->live_ofs[i];
        value *slot = offset & 1 ? registers + (offset >> 1) : (value *)(void *)(sp + offset);
        action(*slot, slot);
    }
}

void haft_ocaml_scan_frames(scanning_action action, frames_t *frames) {
    char *sp;
    bool border = false;
    for (frame_descr *frame; (frame = haft_ocaml_next_frame(frames, &sp, &border)) != NULL;)
        haft_ocaml_scan_frame(action, frame, sp, frames->registers);
}

void haft_ocaml_scan_suspended(scanning_action action, ocaml_fiber_t *fiber) {
    assert(is_suspended(fiber) && haft_ocaml_is_valid(fiber));
    frames_t frames = haft_ocaml_frames(fiber);
    haft_ocaml_scan_frames(action, &frames);
    action(fiber->handler, &fiber->handler);
    haft_ocaml_scan_roots_blocks(action, fiber->roots);
    for (hafti_scope_t *scope = fiber->top; scope != &fiber->scope; scope = scope->outer) {
        const ocaml_fiber_t *inner = fiber_of_scope(scope);
        if (inner != NULL)
            haft_ocaml_scan_roots_blocks(action, inner->parent_roots);
    }
}

/* ---- Backtraces of continuations ---- */

/* The number of frames, at most `most`; stores them in `found` unless that is NULL. */
static mlsize_t collect_frames(const ocaml_fiber_t *fiber, mlsize_t most, frame_descr **found) {
    bool border = false;
    mlsize_t count = 0;
    frames_t frames = haft_ocaml_frames(fiber);
    char *sp;
    for (; count < most; count++) {
        frame_descr *frame = haft_ocaml_next_frame(&frames, &sp, &border);
        if (frame == NULL)
            break;
        if (found != NULL)
            found[count] = frame;
    }
    return count;
}

value haft_ocaml_callstack(value continuation, value most);

value haft_ocaml_callstack(value continuation, value most) {
    bool image;
    ocaml_fiber_t *fiber = haft_ocaml_fiber(continuation, &image);
    if (image)
        fiber = haft_ocaml_restore(Field(continuation, CONTINUATION_HOLDER_FIELD));
    if (image && fiber == NULL)
        caml_raise_out_of_memory();
    mlsize_t count = fiber != NULL && Long_val(most) > 0
                         ? collect_frames(fiber, (mlsize_t)Long_val(most), NULL)
                         : 0;
    frame_descr **found = caml_stat_alloc((count + 1) * sizeof(frame_descr *));
    if (count > 0)
        (void)collect_frames(fiber, count, found);
    if (image)
        haft_ocaml_end(fiber);
    value backtrace = caml_alloc(count, 0);
    for (mlsize_t i = 0; i < count; i++)
        caml_modify(&Field(backtrace, i), (value)found[i] | 1);
    caml_stat_free(found);
    return backtrace;
}
