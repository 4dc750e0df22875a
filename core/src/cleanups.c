/* SPDX-License-Identifier: MIT */
/*
 * Whether a stack that is about to be unwound has anything to run. The unwinder of the platform
 * takes hundreds of nanoseconds for each frame; most stacks that are dropped have no cleanups, and
 * then need not be unwound at all. Here their frames are only walked:
 *
 *   for each frame:   return address --> its frame description (_Unwind_Find_FDE)
 *                       call frame instructions --> where the caller's frame lies
 *                       exception table (LSDA)   --> whether this call has a landing pad
 *
 * Invariant: the answer is "nothing to run" only if every frame up to the fiber's first was
 * understood completely. Anything unusual (a language with tables of its own, a call that may not
 * throw, a frame that is not described by stack or frame pointer, the end of the stack) is left to
 * the unwinder, which also reports what is wrong. Decoded frame descriptions are cached.
 * Descriptions of the program and of this library never change; any other is trusted only while the
 * same bytes lie at the same place of an object with the same layout, so code may be unloaded.
 *
 * A handler in place has a landing pad that takes its scope off the chain. Code that leaves a stack
 * for good continues in the scope around the fiber, so these landing pads need not run.
 */
#define _GNU_SOURCE
#include "unwinding.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__x86_64__)
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };
#elif defined(__aarch64__)
enum { FRAME_POINTER = 29, STACK_POINTER = 31, RETURN_ADDRESS = 30 };
#endif

/* ---- Reading ---- */

typedef const unsigned char *bytes_t;

static uint64_t read_unsigned(bytes_t *at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static int64_t read_signed(bytes_t *at) {
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

#define READ(type, at)                                                                             \
    (__extension__({                                                                               \
        type value_;                                                                               \
        memcpy(&value_, *(at), sizeof value_);                                                     \
        *(at) += sizeof value_;                                                                    \
        value_;                                                                                    \
    }))

/* Encodings of pointers: a format, what it is relative to, and whether it is the address of one. */
enum {
    ENCODED_ABSOLUTE = 0x00,
    ENCODED_LEB = 0x01,
    ENCODED_DATA4 = 0x03,
    ENCODED_DATA8 = 0x04,
    ENCODED_SIGNED4 = 0x0b,
    ENCODED_SIGNED8 = 0x0c,
    ENCODED_FORMAT = 0x0f,
    ENCODED_TO_ITSELF = 0x10,
    ENCODED_INDIRECT = 0x80,
    ENCODED_NOTHING = 0xff
};

static bool read_encoded(bytes_t *at, unsigned encoding, uintptr_t *value) {
    bytes_t start = *at;
    switch (encoding & ENCODED_FORMAT) {
    case ENCODED_LEB:
        *value = read_unsigned(at);
        break;
    case ENCODED_DATA4:
        *value = READ(uint32_t, at);
        break;
    case ENCODED_SIGNED4:
        *value = (uintptr_t)(intptr_t)READ(int32_t, at);
        break;
    case ENCODED_ABSOLUTE:
    case ENCODED_DATA8:
    case ENCODED_SIGNED8:
        *value = READ(uint64_t, at);
        break;
    default:
        return false;
    }
    if (*value == 0)
        return true;
    switch (encoding & ~(unsigned)(ENCODED_FORMAT | ENCODED_INDIRECT)) {
    case 0:
        break;
    case ENCODED_TO_ITSELF:
        *value += (uintptr_t)start;
        break;
    default:
        return false;
    }
    if (encoding & ENCODED_INDIRECT)
        memcpy(value, (const void *)*value, sizeof *value);
    return true;
}

/* ---- The description of a function's frames ---- */

struct bases { /* struct dwarf_eh_bases of libgcc */
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct bases *bases) __attribute__((weak));
extern int __gcc_personality_v0(int, int, uint64_t, void *, void *) __attribute__((weak));
extern int __gxx_personality_v0(int, int, uint64_t, void *, void *) __attribute__((weak));

typedef struct function {
    uintptr_t start;
    bytes_t fde;
    bytes_t common, common_end; /* call frame instructions of the CIE, and of the FDE */
    bytes_t own, own_end;
    uint64_t code_unit;
    int64_t data_unit;
    bytes_t exceptions; /* LSDA, or NULL */
    uintptr_t personality;
    bool is_c;     /* by the personality of C */
    bool is_other; /* by that of haft_know_frames_of */
} function_t;

/* The personality of a language whose tables are laid out as C++'s; 0: none is known. */
static uintptr_t other_personality;

static bool describe(void *pc, function_t *function) {
    struct bases bases;
    bytes_t fde = _Unwind_Find_FDE(pc, &bases);
    if (fde == NULL)
        return false;
    function->start = (uintptr_t)bases.function;
    bytes_t at = fde;
    uint32_t length = READ(uint32_t, &at);
    if (length == UINT32_MAX)
        return false;
    function->own_end = at + length;
    bytes_t place = at;
    bytes_t cie = place - READ(int32_t, &at);
    bytes_t own = at;
    function->fde = fde;

    at = cie;
    length = READ(uint32_t, &at);
    function->common_end = at + length;
    at += sizeof(uint32_t);
    unsigned char version = *at++;
    const char *augmentation = (const char *)at;
    at += strlen(augmentation) + 1;
    if (length == UINT32_MAX || version != 1 || *augmentation++ != 'z')
        return false;
    function->code_unit = read_unsigned(&at);
    function->data_unit = read_signed(&at);
    if (*at++ != RETURN_ADDRESS)
        return false;
    bytes_t data = at;
    uint64_t data_length = read_unsigned(&data);
    function->common = data + data_length;
    unsigned position = ENCODED_ABSOLUTE, table = ENCODED_NOTHING;
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
            if (!read_encoded(&data, encoding, &personality))
                return false;
            break;
        }
        default:
            return false; /* a frame of a signal, signed return addresses... */
        }
    }

    uintptr_t ignored;
    unsigned format = position & ENCODED_FORMAT;
    if (!read_encoded(&own, format, &ignored) || !read_encoded(&own, format, &ignored))
        return false;
    data_length = read_unsigned(&own);
    function->own = own + data_length;
    uintptr_t exceptions = 0;
    if (table != ENCODED_NOTHING && !read_encoded(&own, table, &exceptions))
        return false;
    function->exceptions = (bytes_t)exceptions;
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
    function_t known = {.personality = 0};
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
static bool execute(const function_t *function, bytes_t at, bytes_t end, uintptr_t pc,
                    const rules_t *initial, rules_t *rules) {
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
            save(rules, reg, (int64_t)read_unsigned(&at) * unit);
            continue;
        case RESTORE:
            restore(rules, initial, reg);
            continue;
        }
        switch (instruction) {
        case NOP:
            break;
        case ADVANCE_LOC1:
            place += READ(uint8_t, &at) * function->code_unit;
            break;
        case ADVANCE_LOC2:
            place += READ(uint16_t, &at) * function->code_unit;
            break;
        case ADVANCE_LOC4:
            place += READ(uint32_t, &at) * function->code_unit;
            break;
        case OFFSET_EXTENDED:
            reg = read_unsigned(&at);
            save(rules, reg, (int64_t)read_unsigned(&at) * unit);
            break;
        case RESTORE_EXTENDED:
            restore(rules, initial, read_unsigned(&at));
            break;
        case SAME_VALUE: {
            rule_t *rule = rule_of(rules, read_unsigned(&at));
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
            rules->base = read_unsigned(&at);
            rules->offset = (int64_t)read_unsigned(&at);
            break;
        case DEF_CFA_REGISTER:
            rules->base = read_unsigned(&at);
            break;
        case DEF_CFA_OFFSET:
            rules->offset = (int64_t)read_unsigned(&at);
            break;
        case OFFSET_EXTENDED_SF:
            reg = read_unsigned(&at);
            save(rules, reg, read_signed(&at) * unit);
            break;
        case DEF_CFA_SF:
            rules->base = read_unsigned(&at);
            rules->offset = read_signed(&at) * unit;
            break;
        case DEF_CFA_OFFSET_SF:
            rules->offset = read_signed(&at) * unit;
            break;
        case GNU_ARGS_SIZE:
            (void)read_unsigned(&at);
            break;
        default:
            return false; /* an expression, say */
        }
    }
    return true;
}

/* ---- From a frame to its caller's ---- */

typedef struct step {
    uintptr_t start;    /* of the function */
    bytes_t exceptions; /* LSDA, or NULL */
    bool by_frame_pointer, saves_frame_pointer;
    bool is_c; /* a call that its table does not list has no cleanups, where C++ would terminate */
    bool is_other;  /* the same; and catches and filters have nothing to run */
    int32_t offset; /* of the caller's frame from the stack pointer, or the frame pointer */
    int16_t return_address, frame_pointer; /* where they are saved, from there */
} step_t;

/* False: it is to be left to the unwinder. */
static bool find_step(uintptr_t pc, function_t *function, step_t *step) {
    if (!describe((void *)(pc - 1), function))
        return false;
    rules_t initial = {.base = STACK_POINTER};
    if (!execute(function, function->common, function->common_end, UINTPTR_MAX, &initial, &initial))
        return false;
    rules_t rules = initial;
    if (!execute(function, function->own, function->own_end, pc, &initial, &rules) ||
        (rules.base != STACK_POINTER && rules.base != FRAME_POINTER) || !rules.return_address.saved)
        return false;
    *step = (step_t){.start = function->start,
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

/* ---- Exception tables ---- */

#if defined(__x86_64__)
extern void _Unwind_Resume(void *exception) __attribute__((weak));

static uintptr_t after_relative(bytes_t at) {
    int32_t distance = READ(int32_t, &at);
    return (uintptr_t)at + (uintptr_t)(intptr_t)distance;
}

static bool is_resume(uintptr_t target) {
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uintptr_t resume = (uintptr_t)_Unwind_Resume, slot;
    bytes_t at = (bytes_t)target;
    if (target == resume)
        return true;
    if (memcmp(at, endbr64, sizeof endbr64) == 0) /* in a procedure linkage table */
        at += sizeof endbr64;
    if (at[0] == 0xf2)
        at++;
    if (at[0] != 0xff || at[1] != 0x25)
        return false;
    memcpy(&slot, (const void *)after_relative(at + 2), sizeof slot);
    return slot == resume;
}

/* Whether a landing pad goes on unwinding at once: without optimisation gcc makes such ones where a
   variable's scope ends. Follows moves between registers, to and from the frame, and jumps. */
static bool resumes_at_once(uintptr_t landing) {
    enum { MOST = 16 };
    bytes_t at = (bytes_t)landing;
    for (int i = 0; i < MOST; i++) {
        bool wide = (at[0] & 0xf8) == 0x48 && (at[1] == 0x89 || at[1] == 0x8b);
        unsigned mode = at[2] >> 6, base = at[2] & 7;
        if (wide && mode == 3)
            at += 3;
        else if (wide && base == 5 && mode == 1)
            at += 4;
        else if (wide && base == 5 && mode == 2)
            at += 7;
        else if (at[0] == 0x90)
            at++;
        else if (at[0] == 0xeb)
            at += 2 + (signed char)at[1];
        else if (at[0] == 0xe9)
            at = (bytes_t)after_relative(at + 1);
        else if (at[0] == 0xe8)
            return is_resume(after_relative(at + 1));
        else
            return false;
    }
    return false;
}
#else
static bool resumes_at_once(uintptr_t landing) {
    (void)landing;
    return false;
}
#endif

/* Where an exception continues that comes out of a call. */
typedef struct landing {
    uintptr_t pad;  /* 0: in the caller */
    bytes_t action; /* NULL: cleanups only */
    bytes_t types_end;
    unsigned type_encoding;
} landing_t;

/* False: it is not known. */
static bool find_landing(const step_t *step, uintptr_t pc, landing_t *landing) {
    bytes_t at = step->exceptions;
    *landing = (landing_t){0, NULL, NULL, ENCODED_NOTHING};
    uintptr_t landings = step->start;
    unsigned landing_base = *at++;
    if (landing_base != ENCODED_NOTHING && !read_encoded(&at, landing_base, &landings))
        return false;
    landing->type_encoding = *at++;
    if (landing->type_encoding != ENCODED_NOTHING) {
        uint64_t distance = read_unsigned(&at);
        landing->types_end = at + distance;
    }
    unsigned encoding = *at++;
    uint64_t length = read_unsigned(&at);
    bytes_t end = at + length;
    uintptr_t place = pc - 1 - step->start;
    while (at < end) {
        uintptr_t start, size, pad;
        if (!read_encoded(&at, encoding, &start) || !read_encoded(&at, encoding, &size) ||
            !read_encoded(&at, encoding, &pad))
            return false;
        uint64_t action = read_unsigned(&at);
        if (place < start)
            break;
        if (place - start < size) {
            landing->pad = pad == 0 ? 0 : landings + pad;
            landing->action = action == 0 ? NULL : end + (action - 1);
            return true;
        }
    }
    return step->is_c;
}

/* Whether the call that returns to `pc` is known to have no landing pad that matters. */
static bool nothing_to_run(const step_t *step, uintptr_t pc) {
    if (step->exceptions == NULL || step->start == (uintptr_t)haft_handle_in_place)
        return true;
    landing_t landing;
    return find_landing(step, pc, &landing) && (landing.pad == 0 || resumes_at_once(landing.pad));
}

enum { MOST_ACTIONS = 64 };

/* The entry of the table of types that belongs to `filter`: 0, of catch (...). False: it is not
   known. */
static bool type_of(const landing_t *landing, uint64_t filter, uintptr_t *type) {
    unsigned format = landing->type_encoding & ENCODED_FORMAT;
    bool wide = format == ENCODED_ABSOLUTE || format == ENCODED_DATA8 || format == ENCODED_SIGNED8;
    if (!wide && format != ENCODED_DATA4 && format != ENCODED_SIGNED4)
        return false;
    bytes_t at = landing->types_end - filter * (wide ? sizeof(uint64_t) : sizeof(uint32_t));
    return read_encoded(&at, landing->type_encoding, type);
}
static bool catches_all(const landing_t *landing, uint64_t filter) {
    uintptr_t type;
    return !type_of(landing, filter, &type) || type == 0;
}

/* From haft_know_copied_frames; NULL: it has not been called. */
static const haft_copied_frames_t *copied_frames;

void haft_know_copied_frames(const haft_copied_frames_t *of) {
    __atomic_store_n(&copied_frames, of, __ATOMIC_RELEASE);
}
static const haft_copied_frames_t *known_frames(void) {
    return __atomic_load_n(&copied_frames, __ATOMIC_ACQUIRE);
}

/* Whether the call is one around which the function catches exceptions of that type. */
static bool catches_type(const step_t *step, uintptr_t pc, const void *type) {
    landing_t landing;
    if (step->exceptions == NULL || step->is_other || !find_landing(step, pc, &landing) ||
        landing.action == NULL || landing.type_encoding == ENCODED_NOTHING)
        return false;
    bytes_t at = landing.action;
    for (int i = 0; i < MOST_ACTIONS; i++) {
        int64_t filter = read_signed(&at);
        uintptr_t caught;
        if (filter > 0 && type_of(&landing, (uint64_t)filter, &caught) && caught == (uintptr_t)type)
            return true;
        bytes_t place = at;
        int64_t next = read_signed(&at);
        if (next == 0)
            return false;
        at = place + next;
    }
    return false;
}

/* Whether an exception that comes out of the call enters the function only to be caught by its
   type, as a `catch (const std::exception &)` does: then an unwinding has nothing to run there.
   In the other language: it is caught, or ends the process. */
static bool catches_types_only(const step_t *step, uintptr_t pc) {
    landing_t landing;
    if (step->exceptions == NULL || !find_landing(step, pc, &landing) || landing.action == NULL ||
        (landing.type_encoding == ENCODED_NOTHING && !step->is_other))
        return false;
    bytes_t at = landing.action;
    for (int i = 0; i < MOST_ACTIONS; i++) {
        int64_t filter = read_signed(&at);
        if (filter == 0 ||
            (!step->is_other && (filter < 0 || catches_all(&landing, (uint64_t)filter))))
            return false;
        bytes_t place = at;
        int64_t next = read_signed(&at);
        if (next == 0)
            return true;
        at = place + next;
    }
    return false;
}

/* ---- Steps that were found before ---- */

/* The object of the dynamic linker's that has the last address. */
typedef struct object {
    uintptr_t start, end;
    uint64_t
        known_by; /* LASTS, or the bytes that say how it is laid out, or 0: these cannot be had */
} object_t;
enum { LASTS = 2 }; /* it is never unloaded */

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35, whose _dl_find_object takes no lock */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

/*
 * An entry lies in one of the PLACES that begin at the hash of its return address. If all are
 * taken, a new entry takes the place of one of them, each in turn: so addresses that are used again
 * and again find room, however they are spread. A writer first makes `version` odd; while it is
 * odd, no other thread reads or writes the entry. The step is valid while
 *
 *   the object there is laid out as it was: so the same bytes can be read
 *   and the frame description is the same there (`fde_bytes` of them: known_by has both)
 *   and the part that it shares with others (`cie_bytes`, `shared`)
 */
typedef union remembered {
    struct {
        uint32_t version;
        uint16_t fde_bytes, cie_bytes;
        uint64_t pc, known_by;
        bytes_t fde;
        step_t step;
        uint64_t shared;
    };
    uint64_t words[9];
} remembered_t;
_Static_assert(sizeof(remembered_t) == sizeof(((remembered_t *)0)->words), "words are all of it");
enum { WORDS = sizeof(remembered_t) / sizeof(uint64_t), PC = 1 /* the word with `pc` */ };
enum { HASH_BITS = 10, PLACES = 4, REMEMBERED = (1 << HASH_BITS) + PLACES - 1 };
_Static_assert(offsetof(remembered_t, pc) == PC * sizeof(uint64_t), "the word of the address");
static uint64_t memory[REMEMBERED][WORDS];
static uint32_t turn; /* whose place the next entry takes where none is free */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static uint64_t mix_bytes(uint64_t hash, bytes_t at, size_t size) {
    bytes_t end = at + size;
    while (end - at >= (ptrdiff_t)sizeof(uint64_t))
        hash = mix(hash, READ(uint64_t, &at));
    while (end - at >= (ptrdiff_t)sizeof(uint32_t))
        hash = mix(hash, READ(uint32_t, &at));
    return hash;
}

static uint64_t layout_of(const struct dl_find_object *found) {
    enum { MOST_SEGMENTS = 32, TABLE_HEADER = 12 /* of the unwind table: where it is, how long */ };
    const ElfW(Ehdr) *header = found->dlfo_map_start;
    if (found->dlfo_eh_frame == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phoff != sizeof *header || header->e_phnum > MOST_SEGMENTS)
        return 0;
    uint64_t hash = mix((uintptr_t)found->dlfo_map_start, (uintptr_t)found->dlfo_map_end);
    hash = mix_bytes(hash, found->dlfo_eh_frame, TABLE_HEADER);
    return mix_bytes(hash, (bytes_t)header, sizeof *header + header->e_phnum * sizeof(ElfW(Phdr))) |
           1;
}

/* The program, and the object with this code, which takes the cache with it when it is unloaded. */
static bool lasts(const struct dl_find_object *found) {
    const void *places[] = {(const void *)getauxval(AT_PHDR), memory};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] >= found->dlfo_map_start && places[i] < found->dlfo_map_end)
            return true;
    return false;
}

static uint64_t object_at(uintptr_t pc, object_t *object) {
    struct dl_find_object found;
    if (pc - object->start < object->end - object->start)
        return object->known_by;
    if (_dl_find_object == NULL || _dl_find_object((void *)pc, &found) != 0)
        return 0;
    *object = (object_t){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
                         lasts(&found) ? LASTS : layout_of(&found)};
    return object->known_by;
}

static bytes_t cie_of(bytes_t fde) {
    bytes_t place = fde + sizeof(uint32_t), at = place;
    return place - READ(int32_t, &at);
}

static uint64_t (*places_of(uintptr_t pc))[WORDS] {
    return &memory[pc * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS)];
}

static uintptr_t address_in(const uint64_t *place) {
    return __atomic_load_n(&place[PC], __ATOMIC_RELAXED);
}

static bool recall_from(const uint64_t *place, uintptr_t pc, object_t *object, step_t *step) {
    remembered_t found;
    for (int i = 0; i < WORDS; i++)
        found.words[i] = __atomic_load_n(&place[i], __ATOMIC_ACQUIRE);
    if (found.pc != pc || found.version % 2 != 0 ||
        __atomic_load_n(&place[0], __ATOMIC_RELAXED) != found.words[0])
        return false;
    if (found.known_by != LASTS) {
        uint64_t layout = object_at(pc - 1, object);
        if (layout == 0 || layout == LASTS ||
            found.known_by != (mix_bytes(layout, found.fde, found.fde_bytes) | 1) ||
            found.shared != mix_bytes(0, cie_of(found.fde), found.cie_bytes))
            return false;
    }
    *step = found.step;
    return true;
}

static bool recall(uintptr_t pc, object_t *object, step_t *step) {
    uint64_t(*places)[WORDS] = places_of(pc);
    for (int i = 0; i < PLACES; i++)
        if (address_in(places[i]) == pc)
            return recall_from(places[i], pc, object, step);
    return false;
}

/* The place of the same address (whose entry holds no longer), or a free one, or another's. */
static uint64_t *place_for(uintptr_t pc) {
    uint64_t(*places)[WORDS] = places_of(pc);
    uint64_t *unused = NULL;
    for (int i = 0; i < PLACES; i++) {
        uintptr_t address = address_in(places[i]);
        if (address == pc)
            return places[i];
        if (address == 0 && unused == NULL)
            unused = places[i];
    }
    return unused != NULL ? unused
                          : places[__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % PLACES];
}

/* `judged`: the table of exceptions is not read again where a walk may forget it. */
static void remember(uintptr_t pc, object_t *object, const function_t *function, const step_t *step,
                     bool judged) {
    uint64_t *place = place_for(pc);
    bytes_t fde = function->fde, cie = cie_of(fde);
    uint64_t layout = object_at(pc - 1, object);
    remembered_t found = {.pc = pc,
                          .fde = fde,
                          .fde_bytes = (uint16_t)(function->own_end - fde),
                          .cie_bytes = (uint16_t)(function->common_end - cie),
                          .step = *step};
    if (layout == 0 || (uintptr_t)fde - object->start >= object->end - object->start ||
        found.fde_bytes != function->own_end - fde || found.cie_bytes != function->common_end - cie)
        return;
    found.known_by = layout;
    if (layout == LASTS) {
        if (judged && nothing_to_run(step, pc))
            found.step.exceptions = NULL; /* so the table is not read again */
    } else {
        found.known_by = mix_bytes(layout, fde, found.fde_bytes) | 1;
        found.shared = mix_bytes(0, cie, found.cie_bytes);
    }
    uint64_t before = __atomic_load_n(&place[0], __ATOMIC_RELAXED);
    remembered_t begun = {.words = {before}};
    if (begun.version % 2 != 0)
        return;
    found.version = begun.version + 2;
    begun.version++;
    if (!__atomic_compare_exchange_n(&place[0], &before, begun.words[0], false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    for (int i = 1; i < WORDS; i++) /* A reader of one of these sees the odd version. */
        __atomic_store_n(&place[i], found.words[i], __ATOMIC_RELEASE);
    __atomic_store_n(&place[0], found.words[0], __ATOMIC_RELEASE);
}
#else
static uint64_t object_at(uintptr_t pc, const object_t *object) {
    (void)pc, (void)object;
    return 0;
}
static bool recall(uintptr_t pc, const object_t *object, step_t *step) {
    (void)pc, (void)object, (void)step;
    return false;
}
static void remember(uintptr_t pc, const object_t *object, const function_t *function,
                     const step_t *step, bool judged) {
    (void)pc, (void)object, (void)function, (void)step, (void)judged;
}
#endif

/* ---- The walk ---- */

static uintptr_t word_at(uintptr_t address) {
    uintptr_t word;
    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

/* How the caller's frame is found; false: that is to be left to the unwinder. */
HAFTI_INLINE bool step_from(uintptr_t pc, bool judged, object_t *object, step_t *step) {
    function_t function;
    if (recall(pc, object, step))
        return true;
    if (!find_step(pc, &function, step))
        return false;
    remember(pc, object, &function, step, judged);
    return true;
}

/* Goes there. False: the frames do not lie as they should. */
HAFTI_INLINE bool take(const step_t *step, haft_frame_t *frame) {
    uintptr_t address =
        (step->by_frame_pointer ? frame->fp : frame->sp) + (uintptr_t)(intptr_t)step->offset;
    if (address <= frame->sp)
        return false;
    frame->pc = word_at(address + (uintptr_t)(intptr_t)step->return_address);
    if (step->saves_frame_pointer)
        frame->fp = word_at(address + (uintptr_t)(intptr_t)step->frame_pointer);
    frame->sp = address;
    return true;
}

bool haft_nothing_to_clean(haft_frame_t frame) {
    if (_Unwind_Find_FDE == NULL || haft_tools_active)
        return false;
    object_t object = {0, 0, 0};
    while (!haft_in_first_frame(frame.pc)) {
        step_t step;
        if (!step_from(frame.pc, true, &object, &step) || !nothing_to_run(&step, frame.pc) ||
            !take(&step, &frame))
            return false;
    }
    return true;
}

/* The switch is no call: the exception table does not list what there is to run. But if there is
   anything, the function has a table. */
static haft_cleanups_t cleanups_at(const step_t *step, uintptr_t pc, bool is_switch,
                                   haft_judge_t *judge) {
    if (is_switch ? step->exceptions == NULL
                  : nothing_to_run(step, pc) || catches_types_only(step, pc))
        return HAFT_CLEANUPS_NONE;
    haft_cleanups_t known = judge(step->start, is_switch);
    if (known != HAFT_CLEANUPS_SOME)
        return known;
    if (is_switch)
        return HAFT_CLEANUPS_AT_SWITCH;
    const haft_copied_frames_t *of = known_frames();
    return of != NULL && catches_type(step, pc, of->caught) ? HAFT_CLEANUPS_COPIED : known;
}

/* The function that has resumed the fiber, if its cleanups may be copied; otherwise 0. */
static uintptr_t resumer_of(const haft_fiber_t *resumed) {
    const haft_copied_frames_t *of = known_frames();
    return of != NULL && resumed != NULL ? (uintptr_t)of->resumer_of(resumed) : 0;
}

void haft_cleanups_learn(uintptr_t pc) {
    object_t object = {0, 0, 0};
    function_t function;
    step_t step;
    if (!find_step(pc, &function, &step) || object_at(pc - 1, &object) != LASTS)
        return;
    step.exceptions = NULL;
    remember(pc, &object, &function, &step, false);
}

haft_cleanups_t haft_cleanups_from(haft_frame_t *frame, bool is_switch, const haft_fiber_t *resumed,
                                   haft_judge_t *judge) {
    if (_Unwind_Find_FDE == NULL)
        return HAFT_CLEANUPS_UNKNOWN;
    object_t object = {0, 0, 0};
    haft_cleanups_t all = HAFT_CLEANUPS_NONE;
    uintptr_t resumer = resumer_of(resumed);
    for (; !haft_in_first_frame(frame->pc); is_switch = false) {
        step_t step;
        if (!step_from(frame->pc, !is_switch, &object, &step))
            return HAFT_CLEANUPS_UNKNOWN;
        haft_cleanups_t here = cleanups_at(&step, frame->pc, is_switch, judge);
        if (step.start == resumer) { /* the first of its frames: here it resumes */
            here = HAFT_CLEANUPS_COPIED;
            resumer = 0;
        }
        if (here > all)
            all = here;
        if (here > HAFT_CLEANUPS_COPIED)
            return here;
        if (!take(&step, frame))
            return HAFT_CLEANUPS_UNKNOWN;
    }
    return all;
}
