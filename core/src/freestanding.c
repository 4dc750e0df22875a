/* SPDX-License-Identifier: MIT */
/*
 * The parts of a freestanding build that the hosted one has in thread.c, given_memory.c and
 * error.c: one thread, a list of the fibers without a lock, messages without libc.
 *
 * Invariant: stacks are small, those on which errors are reported too. Messages are therefore made
 * in static memory, without recursion.
 */
#include "stacks.h"

#include <stdarg.h>

/* ---- The thread ---- */

hafti_exceptions_t haft_no_exceptions;
const haft_handles_t haft_handles_none = {.all = 0};
static haft_known_t known[HAFT_KNOWN];
hafti_scope_t haft_unborn; /* never current */
const haft_language_t *haft_process_language;

hafti_thread_t hafti_thread_state = {
    .current = &hafti_thread_state.root,
    .exceptions = &haft_no_exceptions,
    .globals = &haft_no_exceptions,
    .stamp = 1,
    .root = {.kind = HAFTI_SCOPE_ROOT, .handles = &haft_handles_none, .serial = 1},
    .defaults = {.kind = HAFTI_SCOPE_DEFAULTS,
                 .handles = &haft_handles_none,
                 .outer = &hafti_thread_state.root},
    .known = known,
};

/* It is ready from the start, has no blocks of serials, and waits for no other thread. */
void haft_thread_start(hafti_thread_t *thread) {
    (void)thread;
}
uint64_t haft_stamp_block(hafti_thread_t *thread) {
    return thread->stamp;
}
void haft_thread_barrier(void) {}

/* ---- The fibers: a list without a lock. A fiber that is not on it is its own `previous` ---- */

static haft_fiber_t *fibers;

static bool lies_on(const void *address, const haft_fiber_t *fiber) {
    return (const char *)address >= fiber->low && (const char *)address < fiber->high;
}

/* Like in_its_frames of given_memory.c, as far as one thread can tell. */
static bool in_its_frames(const haft_fiber_t *outer, const char *low, const char *high) {
    const char *here = __builtin_frame_address(0), *stopped = outer->context.sp;
    if (low < outer->low || high > outer->high)
        return false;
    switch (haft_fiber_state(outer)) {
    case HAFT_FIBER_RUNNING:
        return low >= here || !lies_on(here, outer);
    case HAFT_FIBER_SUSPENDED:
        return low >= stopped || stopped >= outer->high;
    default:
        return false;
    }
}

bool haft_fibers_list(haft_fiber_t *fiber, void *memory, size_t size, const char *name,
                      bool is_new) {
    const char *low = memory, *high = low + size;
    for (haft_fiber_t *other = fibers; other != NULL; other = other->next)
        if (low < (const char *)(other + 1) && high > other->low &&
            !in_its_frames(other, low, high)) {
            if (!is_new)
                haft_set_finished(fiber);
            haft_memory_taken(other, name);
        }
    if (is_new)
        haft_fiber_prepare(fiber, memory);
    fiber->previous = NULL;
    fiber->next = fibers;
    if (fibers != NULL)
        fibers->previous = fiber;
    fibers = fiber;
    return true;
}

void haft_fibers_unlist(haft_fiber_t *fiber) {
    if (fiber->previous == fiber)
        return;
    if (fiber->previous != NULL)
        fiber->previous->next = fiber->next;
    else
        fibers = fiber->next;
    if (fiber->next != NULL)
        fiber->next->previous = fiber->previous;
    fiber->previous = fiber;
}

/* Memory of the caller may itself lie on another fiber's stack: the smallest that fits is meant. */
haft_fiber_t *haft_fiber_at(const void *address) {
    haft_fiber_t *found = NULL;
    for (haft_fiber_t *fiber = fibers; fiber != NULL; fiber = fiber->next)
        if (lies_on(address, fiber) && (found == NULL || lies_on(fiber, found)))
            found = fiber;
    return found;
}

void haft_fibers_lost(const haft_fiber_t *fiber) {
    haft_fiber_t *next;
    for (haft_fiber_t *inner = fibers; inner != NULL; inner = next) {
        next = inner->next;
        if (lies_on(inner, fiber)) {
            haft_fibers_unlist(inner);
            inner->state = HAFT_FIBER_DROPPED;
            inner->context.gate = HAFTI_GATE_CLOSED;
        }
    }
}

/* ---- Errors ---- */

static haft_error_handler_t *error_handler;

haft_error_handler_t *haft_set_error_handler(haft_error_handler_t *handler) {
    haft_error_handler_t *before = error_handler;
    error_handler = handler;
    return before;
}

__attribute__((weak)) void haft_panic(const char *message) {
    (void)message;
    __builtin_trap();
}

typedef struct writer {
    char *next;
    char *end; /* the last byte, for the terminating zero */
} writer_t;

static void write_text(writer_t *writer, const char *text) {
    while (*text != '\0' && writer->next < writer->end)
        *writer->next++ = *text++;
    *writer->next = '\0';
}

static void write_number(writer_t *writer, uintptr_t number, unsigned base) {
    char digits[24];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do
        *--first = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    write_text(writer, first);
}

/* Conversions of printf that the messages of the library use: %s and %zu. */
static void write_format(writer_t *writer, const char *format, va_list arguments) {
    for (; *format != '\0'; format++) {
        if (format[0] == '%' && format[1] == 's') {
            write_text(writer, va_arg(arguments, const char *));
            format += 1;
        } else if (format[0] == '%' && format[1] == 'z' && format[2] == 'u') {
            write_number(writer, va_arg(arguments, size_t), 10);
            format += 2;
        } else {
            write_text(writer, (const char[]){*format, '\0'});
        }
    }
}

const char *haft_place_label(const void *returns_to) {
    (void)returns_to;
    return "";
}

const char *haft_fiber_label(const haft_fiber_t *fiber) {
    static char label[96];
    writer_t writer = {label, label + sizeof label - 1};
    if (fiber == NULL)
        return "the thread's own stack";
    if (fiber->name == NULL) {
        write_text(&writer, "the unnamed fiber 0x");
        write_number(&writer, (uintptr_t)fiber, 16);
    } else {
        write_text(&writer, "the fiber '");
        writer.end = writer.next + 64;
        write_text(&writer, fiber->name);
        writer.end = label + sizeof label - 1;
        write_text(&writer, "'");
    }
    return label;
}

static HAFTI_COLD void report(haft_error_code_t code, const haft_effect_t *effect,
                              const haft_fiber_t *fiber, const char *format, va_list arguments) {
    static char message[512];
    writer_t writer = {message, message + sizeof message - 1};
    write_format(&writer, format, arguments);
    if (error_handler != NULL)
        error_handler(&(haft_error_t){code, message, effect, fiber});
    else
        haft_panic(message);
}

void haft_report(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
                 const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(code, effect, fiber, format, arguments);
    va_end(arguments);
}

void haft_misused(const haft_error_t *error) {
    haft_fail(error->code, error->effect, error->fiber, "%s", error->message);
}

void haft_fail(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
               const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(code, effect, fiber, format, arguments);
    va_end(arguments);
    __builtin_trap();
}
