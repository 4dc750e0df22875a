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
#include "frame_tables.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

/* ---- Exception tables ---- */

#if defined(__x86_64__)
extern void _Unwind_Resume(void *exception) __attribute__((weak));

static uintptr_t after_relative(haft_bytes_t at) {
    int32_t distance = HAFT_READ(int32_t, &at);
    return (uintptr_t)at + (uintptr_t)(intptr_t)distance;
}

static bool is_resume(uintptr_t target) {
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uintptr_t resume = (uintptr_t)_Unwind_Resume, slot;
    haft_bytes_t at = (haft_bytes_t)target;
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
    haft_bytes_t at = (haft_bytes_t)landing;
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
            at = (haft_bytes_t)after_relative(at + 1);
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
    uintptr_t pad;       /* 0: in the caller */
    haft_bytes_t action; /* NULL: cleanups only */
    haft_bytes_t types_end;
    unsigned type_encoding;
} landing_t;

/* False: it is not known. */
static bool find_landing(const haft_step_t *step, uintptr_t pc, landing_t *landing) {
    haft_bytes_t at = step->exceptions;
    *landing = (landing_t){0, NULL, NULL, HAFT_ENCODED_NOTHING};
    uintptr_t landings = step->start;
    unsigned landing_base = *at++;
    if (landing_base != HAFT_ENCODED_NOTHING && !haft_read_encoded(&at, landing_base, &landings))
        return false;
    landing->type_encoding = *at++;
    if (landing->type_encoding != HAFT_ENCODED_NOTHING) {
        uint64_t distance = haft_read_unsigned(&at);
        landing->types_end = at + distance;
    }
    unsigned encoding = *at++;
    uint64_t length = haft_read_unsigned(&at);
    haft_bytes_t end = at + length;
    uintptr_t place = pc - 1 - step->start;
    while (at < end) {
        uintptr_t start, size, pad;
        if (!haft_read_encoded(&at, encoding, &start) || !haft_read_encoded(&at, encoding, &size) ||
            !haft_read_encoded(&at, encoding, &pad))
            return false;
        uint64_t action = haft_read_unsigned(&at);
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
static bool nothing_to_run(const haft_step_t *step, uintptr_t pc) {
    if (step->exceptions == NULL || step->start == (uintptr_t)haft_handle_in_place)
        return true;
    landing_t landing;
    return find_landing(step, pc, &landing) && (landing.pad == 0 || resumes_at_once(landing.pad));
}

enum { MOST_ACTIONS = 64 };

/* Reads the entry of the table of types that belongs to `filter`, which is 0 for catch (...).
   False: it is not known. */
static bool type_of(const landing_t *landing, uint64_t filter, uintptr_t *type) {
    unsigned format = landing->type_encoding & HAFT_ENCODED_FORMAT;
    bool wide = format == HAFT_ENCODED_ABSOLUTE || format == HAFT_ENCODED_DATA8 ||
                format == HAFT_ENCODED_SIGNED8;
    if (!wide && format != HAFT_ENCODED_DATA4 && format != HAFT_ENCODED_SIGNED4)
        return false;
    haft_bytes_t at = landing->types_end - filter * (wide ? sizeof(uint64_t) : sizeof(uint32_t));
    return haft_read_encoded(&at, landing->type_encoding, type);
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
static bool catches_type(const haft_step_t *step, uintptr_t pc, const void *type) {
    landing_t landing;
    if (step->exceptions == NULL || step->is_other || !find_landing(step, pc, &landing) ||
        landing.action == NULL || landing.type_encoding == HAFT_ENCODED_NOTHING)
        return false;
    haft_bytes_t at = landing.action;
    for (int i = 0; i < MOST_ACTIONS; i++) {
        int64_t filter = haft_read_signed(&at);
        uintptr_t caught;
        if (filter > 0 && type_of(&landing, (uint64_t)filter, &caught) && caught == (uintptr_t)type)
            return true;
        haft_bytes_t place = at;
        int64_t next = haft_read_signed(&at);
        if (next == 0)
            return false;
        at = place + next;
    }
    return false;
}

/* Whether an exception that comes out of the call enters the function only to be caught by its
   type, as a `catch (const std::exception &)` does: then an unwinding has nothing to run there.
   In the other language (haft_know_frames_of) it is caught, or ends the process. */
static bool catches_types_only(const haft_step_t *step, uintptr_t pc) {
    landing_t landing;
    if (step->exceptions == NULL || !find_landing(step, pc, &landing) || landing.action == NULL ||
        (landing.type_encoding == HAFT_ENCODED_NOTHING && !step->is_other))
        return false;
    haft_bytes_t at = landing.action;
    for (int i = 0; i < MOST_ACTIONS; i++) {
        int64_t filter = haft_read_signed(&at);
        if (filter == 0 ||
            (!step->is_other && (filter < 0 || catches_all(&landing, (uint64_t)filter))))
            return false;
        haft_bytes_t place = at;
        int64_t next = haft_read_signed(&at);
        if (next == 0)
            return true;
        at = place + next;
    }
    return false;
}

/* ---- Steps that were found before ---- */

/* The object of the dynamic linker in which the last address was found. */
typedef struct object {
    uintptr_t start, end;
    uint64_t known_by; /* LASTS, or the bytes that describe its layout, or 0: these cannot be had */
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
        haft_bytes_t fde;
        haft_step_t step;
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

static uint64_t mix_bytes(uint64_t hash, haft_bytes_t at, size_t size) {
    haft_bytes_t end = at + size;
    while (end - at >= (ptrdiff_t)sizeof(uint64_t))
        hash = mix(hash, HAFT_READ(uint64_t, &at));
    while (end - at >= (ptrdiff_t)sizeof(uint32_t))
        hash = mix(hash, HAFT_READ(uint32_t, &at));
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
    return mix_bytes(hash, (haft_bytes_t)header,
                     sizeof *header + header->e_phnum * sizeof(ElfW(Phdr))) |
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

static haft_bytes_t cie_of(haft_bytes_t fde) {
    haft_bytes_t place = fde + sizeof(uint32_t), at = place;
    return place - HAFT_READ(int32_t, &at);
}

static uint64_t (*places_of(uintptr_t pc))[WORDS] {
    return &memory[pc * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS)];
}

static uintptr_t address_in(const uint64_t *place) {
    return __atomic_load_n(&place[PC], __ATOMIC_RELAXED);
}

static bool recall_from(const uint64_t *place, uintptr_t pc, object_t *object, haft_step_t *step) {
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

static bool recall(uintptr_t pc, object_t *object, haft_step_t *step) {
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
static void remember(uintptr_t pc, object_t *object, const haft_framed_function_t *function,
                     const haft_step_t *step, bool judged) {
    uint64_t *place = place_for(pc);
    haft_bytes_t fde = function->fde, cie = cie_of(fde);
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
static bool recall(uintptr_t pc, const object_t *object, haft_step_t *step) {
    (void)pc, (void)object, (void)step;
    return false;
}
static void remember(uintptr_t pc, const object_t *object, const haft_framed_function_t *function,
                     const haft_step_t *step, bool judged) {
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
HAFTI_INLINE bool step_from(uintptr_t pc, bool judged, object_t *object, haft_step_t *step) {
    haft_framed_function_t function;
    if (recall(pc, object, step))
        return true;
    if (!haft_find_step(pc, &function, step))
        return false;
    remember(pc, object, &function, step, judged);
    return true;
}

/* Goes to the caller's frame. False: the frames do not lie as they should. */
HAFTI_INLINE bool take(const haft_step_t *step, haft_frame_t *frame) {
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
        haft_step_t step;
        if (!step_from(frame.pc, true, &object, &step) || !nothing_to_run(&step, frame.pc) ||
            !take(&step, &frame))
            return false;
    }
    return true;
}

/* The switch is no call: the exception table does not list what there is to run. But if there is
   anything, the function has a table. */
static haft_cleanups_t cleanups_at(const haft_step_t *step, uintptr_t pc, bool is_switch,
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
    haft_framed_function_t function;
    haft_step_t step;
    if (!haft_find_step(pc, &function, &step) || object_at(pc - 1, &object) != LASTS)
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
        haft_step_t step;
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
