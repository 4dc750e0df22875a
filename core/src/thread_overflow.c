/* SPDX-License-Identifier: MIT */
/*
 * Recognising the overflow of a thread's own stack where it comes from resumes within resumes: a
 * clause that goes on after its resume keeps its frames, once a level. Any other overflow of such a
 * stack is not reported here.
 *
 * All of this runs in the fault handler, so it calls nothing but system calls. Where stacks end is
 * read from the list of mappings then: a limit that was noted before would be wrong for a main
 * thread, whose stack grows, and whose limit may change.
 */
#define _GNU_SOURCE /* names of registers */
#include "whole.h"

#include "haft/interrupted.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    BELOW = 4096,            /* how far below the stack pointer a frame may reach */
    LARGEST_FRAME = 1 << 20, /* and how far above it; also, how large a guard may be */
    LOOK_BACK = 32 * 1024    /* bytes of the stack that are searched for resumes */
};

typedef struct mapping {
    uintptr_t low, high;
    bool writable;
} mapping_t;

typedef struct reader {
    int file;
    char buffer[512];
    ssize_t length, next;
} reader_t;

static int next_character(reader_t *reader) {
    if (reader->next == reader->length) {
        reader->length = read(reader->file, reader->buffer, sizeof reader->buffer);
        reader->next = 0;
        if (reader->length <= 0)
            return -1;
    }
    return (unsigned char)reader->buffer[reader->next++];
}

static uintptr_t next_number(reader_t *reader) {
    uintptr_t number = 0;
    for (;;) {
        int digit = next_character(reader);
        if (digit >= '0' && digit <= '9')
            number = number * 16 + (uintptr_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'f')
            number = number * 16 + (uintptr_t)(digit - 'a' + 10);
        else
            return number;
    }
}

/* A line is "LOW-HIGH rw-p ...". */
static bool next_mapping(reader_t *reader, mapping_t *mapping) {
    mapping->low = next_number(reader);
    mapping->high = next_number(reader);
    (void)next_character(reader);
    mapping->writable = next_character(reader) == 'w';
    int letter;
    do
        letter = next_character(reader);
    while (letter != '\n' && letter != -1);
    return letter != -1;
}

/* The lowest memory above an address where a stack may be. */
static bool memory_above(uintptr_t address, mapping_t *found) {
    reader_t reader = {.file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (reader.file < 0)
        return false;
    bool is_there;
    do
        is_there = next_mapping(&reader, found);
    while (is_there && (found->high <= address || !found->writable));
    close(reader.file);
    return is_there;
}

bool haft_faulted_at_sp(const void *address, const void *context) {
    uintptr_t fault = (uintptr_t)address, sp = (uintptr_t)haft_interrupted_sp(context);
    return fault + BELOW >= sp && fault <= sp + LARGEST_FRAME;
}

/* Whether the innermost frames have resumed a fiber: then they refer to it, and it to them. The
   last of them may begin at `sp`, which may not be mapped any more. */
static HAFT_UNINSTRUMENTED bool resumes_within(uintptr_t sp, uintptr_t low, uintptr_t high) {
    for (uintptr_t word = low; word + sizeof word <= high; word += sizeof word) {
        const haft_fiber_t *fiber = haft_pool_fiber_at(*(void **)word);
        if (fiber == NULL || haft_fiber_state(fiber) == HAFT_FIBER_DROPPED)
            continue;
        uintptr_t resumer = (uintptr_t)fiber->resumer.sp;
        if (resumer >= sp && resumer < high)
            return true;
    }
    return false;
}

bool haft_thread_overflow(const void *address, const void *context) {
    uintptr_t fault = (uintptr_t)address, sp = (uintptr_t)haft_interrupted_sp(context);
    mapping_t stack;
    if (!haft_faulted_at_sp(address, context))
        return false;
    if (!memory_above(fault, &stack) || stack.low <= fault || stack.low - fault > LARGEST_FRAME ||
        stack.high <= sp)
        return false;
    uintptr_t low = ((sp < stack.low ? stack.low : sp) + 7) & ~(uintptr_t)7;
    uintptr_t high = stack.high - low < LOOK_BACK ? stack.high : low + LOOK_BACK;
    return resumes_within(sp, low, high);
}
