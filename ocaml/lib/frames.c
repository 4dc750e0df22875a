/*
 * The frames of suspended code, by the tables of the compiler. The runtime's own walk ends where a
 * caml_context says that nothing comes after it; this one ends at the base of the fiber that it
 * was asked about, whose context leads to whoever resumed it last.
 */
#include "runtime.h"

static frame_descr *descriptor(uintnat pc) {
    uintnat hash = Hash_retaddr(pc);
    while (caml_frame_descriptors[hash]->retaddr != pc)
        hash = (hash + 1) & caml_frame_descriptors_mask;
    return caml_frame_descriptors[hash];
}

frames_t haft_ocaml_frames(const ocaml_fiber_t *fiber) {
    /* The exception pointer, the return address. */
    return (frames_t){.sp = fiber->sp + 16,
                      .pc = ((const uintnat *)(const void *)fiber->sp)[1],
                      .end = (const char *)&fiber->parent - 16};
}

frame_descr *haft_ocaml_next_frame(frames_t *frames, char **sp, bool *border) {
    if (frames->sp == frames->end)
        return NULL;
    frame_descr *frame = descriptor(frames->pc);
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
    frames_t frames = haft_ocaml_frames(fiber);
    haft_ocaml_scan_frames(action, &frames);
    haft_ocaml_scan_roots_blocks(action, fiber->roots);
    for (haft_scope_t *scope = fiber->top; scope != &fiber->scope; scope = scope->outer) {
        const ocaml_fiber_t *inner = fiber_of_scope(scope);
        if (inner != NULL)
            haft_ocaml_scan_roots_blocks(action, inner->parent_roots);
    }
}

/* ---- Backtraces of continuations ---- */

static frames_t frames_of_continuation(value continuation, bool *used) {
    value block = Field(continuation, CONTINUATION_STACK_FIELD);
    *used = block == STACK_USED;
    if (*used)
        return (frames_t){.sp = NULL};
    if (block != STACK_YOUNG && haft_ocaml_is_image(block))
        return haft_ocaml_frames_of_image(block);
    return haft_ocaml_frames(
        (const ocaml_fiber_t *)(Field(continuation, CONTINUATION_FIBER_FIELD) & ~(value)1));
}

/* The number of frames, at most `most`; stores them in `found` unless that is NULL. */
static mlsize_t collect_frames(value continuation, mlsize_t most, frame_descr **found) {
    bool used, border = false;
    mlsize_t count = 0;
    frames_t frames = frames_of_continuation(continuation, &used);
    char *sp;
    while (!used && count < most) {
        frame_descr *frame = haft_ocaml_next_frame(&frames, &sp, &border);
        if (frame == NULL)
            break;
        if (found != NULL)
            found[count] = frame;
        count++;
    }
    return count;
}

value haft_ocaml_callstack(value continuation, value most);

value haft_ocaml_callstack(value continuation, value most) {
    CAMLparam1(continuation);
    CAMLlocal1(backtrace);
    mlsize_t count =
        Long_val(most) < 0 ? 0 : collect_frames(continuation, (mlsize_t)Long_val(most), NULL);
    frame_descr **found = caml_stat_alloc((count + 1) * sizeof(frame_descr *));
    (void)collect_frames(continuation, count, found);
    backtrace = caml_alloc(count, 0);
    for (mlsize_t i = 0; i < count; i++)
        caml_modify(&Field(backtrace, i), (value)found[i] | 1);
    caml_stat_free(found);
    CAMLreturn(backtrace);
}
