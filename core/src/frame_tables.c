/* SPDX-License-Identifier: MIT */
/*
 * Reads the entries for one frame in the unwind tables: where its function begins, where the
 * caller's frame lies, and which exception table the function has. The answer is "unknown" (false)
 * unless every part of the description was understood: a language with tables of its own, an
 * expression, a frame of a signal, and a frame that is found by another register than the stack or
 * frame pointer are not.
 */
#define _GNU_SOURCE
#include "frame_tables.h"

#if defined(__x86_64__)
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };
#elif defined(__aarch64__)
enum { FRAME_POINTER = 29, STACK_POINTER = 31, RETURN_ADDRESS = 30 };
#endif

/* ---- The description of a function's frames ---- */

struct bases { /* struct dwarf_eh_bases of libgcc */
    void *text, *data, *function;
};
extern int __gcc_personality_v0(int, int, uint64_t, void *, void *) __attribute__((weak));
extern int __gxx_personality_v0(int, int, uint64_t, void *, void *) __attribute__((weak));

/* The personality of a language whose tables are laid out as C++'s; 0: none is known. */
static uintptr_t other_personality;

static bool describe(void *pc, haft_framed_function_t *function) {
    struct bases bases;
    haft_bytes_t fde = _Unwind_Find_FDE(pc, &bases);
    if (fde == NULL)
        return false;
    function->start = (uintptr_t)bases.function;
    haft_bytes_t at = fde;
    uint32_t length = HAFT_READ(uint32_t, &at);
    if (length == UINT32_MAX)
        return false;
    function->own_end = at + length;
    haft_bytes_t place = at;
    haft_bytes_t cie = place - HAFT_READ(int32_t, &at);
    haft_bytes_t own = at;
    function->fde = fde;

    at = cie;
    length = HAFT_READ(uint32_t, &at);
    function->common_end = at + length;
    at += sizeof(uint32_t);
    unsigned char version = *at++;
    const char *augmentation = (const char *)at;
    at += strlen(augmentation) + 1;
    if (length == UINT32_MAX || version != 1 || *augmentation++ != 'z')
        return false;
    function->code_unit = haft_read_unsigned(&at);
    function->data_unit = haft_read_signed(&at);
    if (*at++ != RETURN_ADDRESS)
        return false;
    haft_bytes_t data = at;
    uint64_t data_length = haft_read_unsigned(&data);
    function->common = data + data_length;
    unsigned position = HAFT_ENCODED_ABSOLUTE, table = HAFT_ENCODED_NOTHING;
    uintptr_t personality = 0;
    for (; *augmentation != '\0'; augmentation++) {
        switch (*augmentation) {
        case 'R':
            position = *data++;
            break;
        case 'L':
            table = *data++;
            break;
        case 'P': {
            unsigned encoding = *data++;
            if (!haft_read_encoded(&data, encoding, &personality))
                return false;
            break;
        }
        default:
            return false; /* a frame of a signal, signed return addresses... */
        }
    }

    uintptr_t ignored;
    unsigned format = position & HAFT_ENCODED_FORMAT;
    if (!haft_read_encoded(&own, format, &ignored) || !haft_read_encoded(&own, format, &ignored))
        return false;
    data_length = haft_read_unsigned(&own);
    function->own = own + data_length;
    uintptr_t exceptions = 0;
    if (table != HAFT_ENCODED_NOTHING && !haft_read_encoded(&own, table, &exceptions))
        return false;
    function->exceptions = (haft_bytes_t)exceptions;
    function->personality = personality;
    function->is_c = personality == (uintptr_t)__gcc_personality_v0;
    function->is_other =
        personality != 0 && personality == __atomic_load_n(&other_personality, __ATOMIC_RELAXED);
    return exceptions == 0 ||
           (personality != 0 &&
            (personality == (uintptr_t)__gcc_personality_v0 ||
             personality == (uintptr_t)__gxx_personality_v0 || function->is_other));
}

void haft_know_frames_of(haft_function_t *function) {
    haft_framed_function_t known = {.personality = 0};
    if (_Unwind_Find_FDE == NULL)
        return;
    (void)describe((void *)(uintptr_t)function, &known);
    if (known.personality != 0 && known.personality != (uintptr_t)__gcc_personality_v0 &&
        known.personality != (uintptr_t)__gxx_personality_v0)
        __atomic_store_n(&other_personality, known.personality, __ATOMIC_RELAXED);
}

/* ---- Call frame instructions ---- */

typedef struct rule {
    bool saved; /* at `offset` from the frame's address; otherwise unchanged */
    int64_t offset;
} rule_t;

typedef struct rules {
    uint64_t base; /* the register from which the frame's address is computed */
    int64_t offset;
    rule_t frame_pointer, return_address;
} rules_t;

static rule_t *rule_of(rules_t *rules, uint64_t reg) {
    return reg == FRAME_POINTER    ? &rules->frame_pointer
           : reg == RETURN_ADDRESS ? &rules->return_address
                                   : NULL;
}

static void save(rules_t *rules, uint64_t reg, int64_t offset) {
    rule_t *rule = rule_of(rules, reg);
    if (rule != NULL)
        *rule = (rule_t){true, offset};
}

static void restore(rules_t *rules, const rules_t *initial, uint64_t reg) {
    if (reg == FRAME_POINTER)
        rules->frame_pointer = initial->frame_pointer;
    if (reg == RETURN_ADDRESS)
        rules->return_address = initial->return_address;
}

/* The instructions of a table of frames, by their names DW_CFA_... in DWARF 5, section 6.4.2. The
   first three have the instruction in the upper two bits and an operand in the others. */
enum {
    UPPER_BITS = 0xc0,
    OPERAND_BITS = 0x3f,
    ADVANCE_LOC = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    NOP = 0x00,
    ADVANCE_LOC1 = 0x02,
    ADVANCE_LOC2 = 0x03,
    ADVANCE_LOC4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    SAME_VALUE = 0x08,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    OFFSET_EXTENDED_SF = 0x11, /* ..._SF: signed, in units of the data */
    DEF_CFA_SF = 0x12,
    DEF_CFA_OFFSET_SF = 0x13,
    GNU_ARGS_SIZE = 0x2e,
};

/* The rules for `pc` according to the instructions in [at, end). */
static bool execute(const haft_framed_function_t *function, haft_bytes_t at, haft_bytes_t end,
                    uintptr_t pc, const rules_t *initial, rules_t *rules) {
    enum { DEPTH = 8 };
    rules_t remembered[DEPTH];
    unsigned depth = 0;
    uintptr_t place = function->start;
    int64_t unit = function->data_unit;
    while (at < end && place < pc) {
        unsigned char instruction = *at++;
        uint64_t reg = instruction & OPERAND_BITS;
        switch (instruction & UPPER_BITS) {
        case ADVANCE_LOC:
            place += reg * function->code_unit;
            continue;
        case OFFSET:
            save(rules, reg, (int64_t)haft_read_unsigned(&at) * unit);
            continue;
        case RESTORE:
            restore(rules, initial, reg);
            continue;
        }
        switch (instruction) {
        case NOP:
            break;
        case ADVANCE_LOC1:
            place += HAFT_READ(uint8_t, &at) * function->code_unit;
            break;
        case ADVANCE_LOC2:
            place += HAFT_READ(uint16_t, &at) * function->code_unit;
            break;
        case ADVANCE_LOC4:
            place += HAFT_READ(uint32_t, &at) * function->code_unit;
            break;
        case OFFSET_EXTENDED:
            reg = haft_read_unsigned(&at);
            save(rules, reg, (int64_t)haft_read_unsigned(&at) * unit);
            break;
        case RESTORE_EXTENDED:
            restore(rules, initial, haft_read_unsigned(&at));
            break;
        case SAME_VALUE: {
            rule_t *rule = rule_of(rules, haft_read_unsigned(&at));
            if (rule != NULL)
                *rule = (rule_t){false, 0};
            break;
        }
        case REMEMBER_STATE:
            if (depth == DEPTH)
                return false;
            remembered[depth++] = *rules;
            break;
        case RESTORE_STATE:
            if (depth == 0)
                return false;
            *rules = remembered[--depth];
            break;
        case DEF_CFA:
            rules->base = haft_read_unsigned(&at);
            rules->offset = (int64_t)haft_read_unsigned(&at);
            break;
        case DEF_CFA_REGISTER:
            rules->base = haft_read_unsigned(&at);
            break;
        case DEF_CFA_OFFSET:
            rules->offset = (int64_t)haft_read_unsigned(&at);
            break;
        case OFFSET_EXTENDED_SF:
            reg = haft_read_unsigned(&at);
            save(rules, reg, haft_read_signed(&at) * unit);
            break;
        case DEF_CFA_SF:
            rules->base = haft_read_unsigned(&at);
            rules->offset = haft_read_signed(&at) * unit;
            break;
        case DEF_CFA_OFFSET_SF:
            rules->offset = haft_read_signed(&at) * unit;
            break;
        case GNU_ARGS_SIZE:
            (void)haft_read_unsigned(&at);
            break;
        default:
            return false; /* such as an expression */
        }
    }
    return true;
}

/* ---- From a frame to its caller's ---- */

bool haft_find_step(uintptr_t pc, haft_framed_function_t *function, haft_step_t *step) {
    if (!describe((void *)(pc - 1), function))
        return false;
    rules_t initial = {.base = STACK_POINTER};
    if (!execute(function, function->common, function->common_end, UINTPTR_MAX, &initial, &initial))
        return false;
    rules_t rules = initial;
    if (!execute(function, function->own, function->own_end, pc, &initial, &rules) ||
        (rules.base != STACK_POINTER && rules.base != FRAME_POINTER) || !rules.return_address.saved)
        return false;
    *step = (haft_step_t){.start = function->start,
                          .exceptions = function->exceptions,
                          .is_c = function->is_c || function->is_other,
                          .is_other = function->is_other,
                          .by_frame_pointer = rules.base == FRAME_POINTER,
                          .saves_frame_pointer = rules.frame_pointer.saved,
                          .offset = (int32_t)rules.offset,
                          .return_address = (int16_t)rules.return_address.offset,
                          .frame_pointer = (int16_t)rules.frame_pointer.offset};
    return step->offset == rules.offset && step->return_address == rules.return_address.offset &&
           step->frame_pointer == rules.frame_pointer.offset;
}
