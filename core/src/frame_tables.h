/* SPDX-License-Identifier: MIT */
/*
 * The tables that compilers write for unwinding, as far as a walk over frames needs them: how they
 * are read, and the description of one frame (frame_tables.c). Layouts: DWARF 5, section 6.4, and
 * the exception tables (LSDA) of the Itanium C++ ABI.
 */
#ifndef HAFT_FRAME_TABLES_H
#define HAFT_FRAME_TABLES_H

#include "unwinding.h"

#include <string.h>

/* ---- Reading ---- */

typedef const unsigned char *haft_bytes_t;

static inline uint64_t haft_read_unsigned(haft_bytes_t *at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static inline int64_t haft_read_signed(haft_bytes_t *at) {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
        unsigned char byte = *(*at)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if ((byte & 0x40) && shift < 64)
            value |= ~(uint64_t)0 << shift;
        return (int64_t)value;
    }
}

#define HAFT_READ(type, at)                                                                        \
    (__extension__({                                                                               \
        type value_;                                                                               \
        memcpy(&value_, *(at), sizeof value_);                                                     \
        *(at) += sizeof value_;                                                                    \
        value_;                                                                                    \
    }))

/* Encodings of pointers: a format, what it is relative to, and whether it is the address of one. */
enum {
    HAFT_ENCODED_ABSOLUTE = 0x00,
    HAFT_ENCODED_LEB = 0x01,
    HAFT_ENCODED_DATA4 = 0x03,
    HAFT_ENCODED_DATA8 = 0x04,
    HAFT_ENCODED_SIGNED4 = 0x0b,
    HAFT_ENCODED_SIGNED8 = 0x0c,
    HAFT_ENCODED_FORMAT = 0x0f,
    HAFT_ENCODED_TO_ITSELF = 0x10,
    HAFT_ENCODED_INDIRECT = 0x80,
    HAFT_ENCODED_NOTHING = 0xff
};

static inline bool haft_read_encoded(haft_bytes_t *at, unsigned encoding, uintptr_t *value) {
    haft_bytes_t start = *at;
    switch (encoding & HAFT_ENCODED_FORMAT) {
    case HAFT_ENCODED_LEB:
        *value = haft_read_unsigned(at);
        break;
    case HAFT_ENCODED_DATA4:
        *value = HAFT_READ(uint32_t, at);
        break;
    case HAFT_ENCODED_SIGNED4:
        *value = (uintptr_t)(intptr_t)HAFT_READ(int32_t, at);
        break;
    case HAFT_ENCODED_ABSOLUTE:
    case HAFT_ENCODED_DATA8:
    case HAFT_ENCODED_SIGNED8:
        *value = HAFT_READ(uint64_t, at);
        break;
    default:
        return false;
    }
    if (*value == 0)
        return true;
    switch (encoding & ~(unsigned)(HAFT_ENCODED_FORMAT | HAFT_ENCODED_INDIRECT)) {
    case 0:
        break;
    case HAFT_ENCODED_TO_ITSELF:
        *value += (uintptr_t)start;
        break;
    default:
        return false;
    }
    if (encoding & HAFT_ENCODED_INDIRECT)
        memcpy(value, (const void *)*value, sizeof *value);
    return true;
}

/* ---- A function, and a frame of it ---- */

typedef struct haft_framed_function {
    uintptr_t start;
    haft_bytes_t fde;
    haft_bytes_t common, common_end; /* call frame instructions of the CIE, and of the FDE */
    haft_bytes_t own, own_end;
    uint64_t code_unit;
    int64_t data_unit;
    haft_bytes_t exceptions; /* LSDA, or NULL */
    uintptr_t personality;
    bool is_c;     /* by the personality of C */
    bool is_other; /* by that of haft_know_frames_of */
} haft_framed_function_t;

/* From the frame of a call that returns to some address to its caller's. */
typedef struct haft_step {
    uintptr_t start;         /* of the function */
    haft_bytes_t exceptions; /* LSDA, or NULL */
    bool by_frame_pointer, saves_frame_pointer;
    bool is_c; /* a call that its table does not list has no cleanups, where C++ would terminate */
    bool is_other;  /* the same; and catches and filters have nothing to run */
    int32_t offset; /* of the caller's frame from the stack pointer, or the frame pointer */
    int16_t return_address, frame_pointer; /* where they are saved, from there */
} haft_step_t;

struct bases; /* struct dwarf_eh_bases of libgcc; without its unwinder nothing is known */
extern const void *_Unwind_Find_FDE(void *pc, struct bases *bases) __attribute__((weak));

/* False: that is to be left to the unwinder. */
bool haft_find_step(uintptr_t pc, haft_framed_function_t *function, haft_step_t *step);

#endif
