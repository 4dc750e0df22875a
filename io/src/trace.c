/* SPDX-License-Identifier: MIT */
/*
 * The trace: a file that is mapped into memory, so that nothing is lost when the process is killed.
 *
 *   header_t          what the other parts are, and two pairs of ticks and nanoseconds, which show
 *                     how long a tick takes
 *   texts             each ends with '\0'; an event has the offset of its own, 0: none
 *   ring_t × RINGS    of one thread each: its number, how many events it has had, the events
 *
 * Only a ring's thread writes to it. `count` is stored after the event, so a reader takes the
 * events before it, but for the oldest, which may be being replaced. A ring's part of the file has
 * its blocks from the beginning: a full file system is an error then, and no SIGBUS later.
 *
 * An event has its task's address; an address belongs to one task from its spawn to its end.
 */
#include "probes.h"
#include "system_call.h"
#include "workers.h"

#include <haft/observe.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned hafti_io_watched;

enum {
    RINGS = 64,
    EVENTS = 65536,
    LEAST_EVENTS = 64,
    HEADER = 4096,
    TEXTS = 256 * 1024,
    KNOWN = 8192, /* addresses of texts */
    LOOKS = 8,    /* places in which one may stand */
};

typedef struct event {
    uint64_t ticks;
    uint64_t task;
    uint64_t other;
    uint64_t what; /* the text's offset, 32 bits; enum hafti_io_event, 8; the code, 8 */
} event_t;
_Static_assert(sizeof(event_t) == 32, "tools/haft-trace reads as many");

typedef struct ring {
    uint64_t count; /* stored by its thread, read by others */
    uint32_t thread;
    uint32_t is_there;
    char unused[HAFTI_IO_LINE - 16];
    event_t events[];
} ring_t;

typedef struct header {
    char magic[8];
    uint32_t version, process;
    uint32_t rings, events; /* of a ring */
    uint64_t texts_at, rings_at, ring_size;
    uint64_t ticks_first, nanoseconds_first, ticks_last, nanoseconds_last;
    uint64_t date_first; /* in nanoseconds since 1970 */
} header_t;
_Static_assert(sizeof(header_t) <= HEADER, "texts begin behind it");

typedef struct known {
    const char *address;
    uint32_t text;
} known_t;

/* Not given back when it is stopped: a thread may be about to write. */
static struct {
    uint32_t lock; /* for what follows but `rings`, and for new texts */
    header_t *header;
    uint32_t texts_end;
    uint32_t rings;  /* that were given away */
    uint32_t number; /* of the file */
    bool effects;    /* are kept, too */
    known_t known[KNOWN];
} trace;

/* The calling thread's state, in the file of that number. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
    ring_t *ring; /* NULL: it gets none */
    uint64_t last;
    uint64_t ticks;   /* of its last event */
    uint64_t ran;     /* at this tick it began to run a task */
    uint64_t longest; /* hold of a task so far */
    uint32_t number;
    bool locked;                           /* it has `trace.lock` */
    enum { RUNS, POLLS, HAS_WOKEN } state; /* in a poll: whether that has woken a task */
} own;

static void lock_trace(void) {
    own.locked = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    hafti_io_guard(&trace.lock);
}

static void unlock_trace(void) {
    hafti_io_unguard(&trace.lock);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own.locked = false;
}

/* Shorter holds, below some 0.1 ms, are not looked at. */
#if defined(__aarch64__)
enum { SHORT = 1 << 12 };
#else
enum { SHORT = 1 << 18 };
#endif

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return (uint64_t)hafti_io_clock();
#endif
}

/* ---- Texts ---- */

static uint32_t add_text(const char *text) {
    size_t size = strlen(text) + 1;
    if (size > TEXTS - trace.texts_end)
        return 0;
    uint32_t at = trace.texts_end;
    memcpy((char *)trace.header + HEADER + at, text, size);
    trace.texts_end += (uint32_t)size;
    return at;
}

static known_t *place_of(const char *address, unsigned look) {
    uint64_t spread = (uintptr_t)address * UINT64_C(0x9E3779B97F4A7C15);
    return &trace.known[((spread >> 48) + look) % KNOWN];
}

static bool is_text_at(uint32_t at, const char *text) {
    return strcmp((const char *)trace.header + HEADER + at, text) == 0;
}

/* The address, which is the text's or what the text describes, has no place yet, or had another
   text before. */
static HAFTI_IO_COLD uint32_t learn(const char *address, const char *text) {
    lock_trace();
    uint32_t at = 0;
    for (unsigned look = 0; look < LOOKS && at == 0; look++) {
        known_t *known = place_of(address, look);
        if (known->address != NULL && known->address != address)
            continue;
        bool is_same = known->address == address && is_text_at(known->text, text);
        at = is_same ? known->text : add_text(text);
        __atomic_store_n(&known->text, at, __ATOMIC_RELAXED);
        __atomic_store_n(&known->address, address, __ATOMIC_RELEASE);
        break;
    }
    unlock_trace();
    return at;
}

static uint32_t offset_of(const char *text, bool is_new) {
    if (text == NULL)
        return 0;
    for (unsigned look = 0; look < LOOKS; look++) {
        const known_t *known = place_of(text, look);
        const char *address = __atomic_load_n(&known->address, __ATOMIC_ACQUIRE);
        if (address == NULL)
            break;
        if (address != text)
            continue;
        uint32_t at = __atomic_load_n(&known->text, __ATOMIC_RELAXED);
        if (is_new && !is_text_at(at, text))
            break;
        return at;
    }
    return learn(text, text);
}

/* ---- Rings ---- */

/* Makes the memory's pages present, so that the file system's fault is an error here. (Kernels
   before 5.14 have them later.) */
static int populate(void *from, size_t size) {
    enum { POPULATE_WRITE = 23 };
    long code = hafti_io_system_call(SYS_madvise, (long)from, (long)size, POPULATE_WRITE, 0, 0, 0);
    return code == -EFAULT ? -ENOSPC : code == -EINVAL ? 0 : (int)code;
}

static ring_t *ring_at(const header_t *header, uint32_t index) {
    return (void *)((char *)header + header->rings_at + index * header->ring_size);
}

static haft_observer_t keep_effect;

static HAFTI_IO_COLD void take_ring(void) {
    lock_trace();
    own.number = trace.number;
    own.ring = NULL;
    if (trace.rings < RINGS) {
        ring_t *ring = ring_at(trace.header, trace.rings);
        if (populate(ring, trace.header->ring_size) == 0) {
            ring->thread = (uint32_t)hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
            __atomic_store_n(&ring->is_there, 1, __ATOMIC_RELEASE);
            own.ring = ring;
            own.last = trace.header->events - 1;
            own.ticks = own.ran = ticks();
            own.longest = SHORT;
            own.state = RUNS; /* the last trace may have been stopped during a poll */
            trace.rings++;
        }
    }
    unlock_trace();
    if (trace.effects)
        haft_observe(keep_effect);
}

static HAFTI_IO_COLD void note_time(void) {
    lock_trace();
    trace.header->ticks_last = ticks();
    trace.header->nanoseconds_last = (uint64_t)hafti_io_clock();
    unlock_trace();
}

/* A run and a poll come just after the thread's last event, and so does a wake by a poll after its
   first one: to read the clock may take longer than all else here. */
static inline bool has_time_of_last(enum hafti_io_event event) {
    return event == HAFTI_IO_EVENT_RUN || event == HAFTI_IO_EVENT_POLL ||
           (event == HAFTI_IO_EVENT_WAKE && own.state == HAS_WOKEN);
}

/* Puts the event into the thread's ring. */
static inline void put(enum hafti_io_event event, const void *task, uint32_t text, uint64_t other,
                       unsigned code) {
    ring_t *ring = own.ring;
    uint64_t count = ring->count, now = has_time_of_last(event) ? own.ticks : ticks();
    own.ticks = now;
    if (event == HAFTI_IO_EVENT_RUN)
        own.ran = now;
    else if (event == HAFTI_IO_EVENT_WAKE && own.state == POLLS)
        own.state = HAS_WOKEN;
    else if (event == HAFTI_IO_EVENT_POLL || event == HAFTI_IO_EVENT_POLLED)
        own.state = event == HAFTI_IO_EVENT_POLL ? POLLS : RUNS;
    event_t *place = &ring->events[count & own.last];
    place->ticks = now;
    place->task = (uintptr_t)task;
    place->other = other;
    place->what = text | (uint64_t)event << 32 | (uint64_t)code << 40;
    __atomic_store_n(&ring->count, count + 1, __ATOMIC_RELEASE);
}

static inline bool has_ring(void) {
    return own.number == __atomic_load_n(&trace.number, __ATOMIC_ACQUIRE) && own.ring != NULL;
}

static HAFTI_IO_COLD void keep(enum hafti_io_event event, const void *task, uint32_t text,
                               uint64_t other, unsigned code) {
    enum { TICKS_BETWEEN_NOTES = 1 << 22 };
    if (own.number != __atomic_load_n(&trace.number, __ATOMIC_ACQUIRE))
        take_ring();
    if (own.ring == NULL)
        return;
    put(event, task, text, other, code);
    if (event == HAFTI_IO_EVENT_POLLED &&
        own.ticks - trace.header->ticks_last > TICKS_BETWEEN_NOTES)
        note_time();
}

static __attribute__((noinline)) void trace_generally(enum hafti_io_event event, const void *task,
                                                      const char *text, bool is_new, uint64_t other,
                                                      unsigned code) {
    unsigned watched = hafti_io_watches();
    if (watched & HAFTI_IO_TRACES)
        keep(event, task, offset_of(text, is_new), other, code);
    if (watched & HAFTI_IO_PROBES)
        hafti_io_probe(event, task, text, other, code);
    if ((watched & HAFTI_IO_COUNTS_WAKES) && event == HAFTI_IO_EVENT_WAKE && task != NULL)
        hafti_io_count_wake(task);
}

/* False: the thread has no ring yet, or the text stands in another place than its first. Calls
   nothing. */
static inline __attribute__((always_inline)) bool put_known(enum hafti_io_event event,
                                                            const void *task, const char *text,
                                                            uint64_t other, unsigned code) {
    const known_t *known = place_of(text, 0);
    bool is_known = text == NULL || __atomic_load_n(&known->address, __ATOMIC_ACQUIRE) == text;
    if (HAFTI_IO_UNLIKELY(!is_known || !has_ring()))
        return false;
    uint32_t at = text != NULL ? __atomic_load_n(&known->text, __ATOMIC_RELAXED) : 0;
    put(event, task, at, other, code);
    return true;
}

__attribute__((noinline)) void hafti_io_trace(enum hafti_io_event event, const void *task,
                                              const char *text, bool is_new, uint64_t other,
                                              unsigned code) {
    const unsigned any = HAFTI_IO_TRACES | HAFTI_IO_PROBES | HAFTI_IO_COUNTS_WAKES;
    bool is_short =
        (hafti_io_watches() & any) == HAFTI_IO_TRACES && !is_new && event != HAFTI_IO_EVENT_POLLED;
    if (HAFTI_IO_UNLIKELY(!is_short || !put_known(event, task, text, other, code)))
        trace_generally(event, task, text, is_new, other, code);
}

/* ---- The longest holds ---- */

bool hafti_io_trace_held_longest(void) {
    if (own.ring == NULL || own.ticks - own.ran <= own.longest)
        return false;
    own.longest = own.ticks - own.ran;
    return true;
}

/* "FILE+0xOFFSET SYMBOL", of the call that returns to `address`. */
static uint32_t learn_frame(const char *address) {
    char text[512];
    Dl_info object = {.dli_fname = NULL};
    if (dladdr(address - 1, &object) == 0 || object.dli_fname == NULL)
        return 0;
    snprintf(text, sizeof text, "%s+0x%tx %s", object.dli_fname,
             address - 1 - (const char *)object.dli_fbase,
             object.dli_sname != NULL ? object.dli_sname : "?");
    return learn(address, text);
}

void hafti_io_trace_frames(const void *task, void *const *addresses, int count) {
    for (int i = 0; i < count; i++)
        keep(HAFTI_IO_EVENT_FRAME, task, learn_frame(addresses[i]), (uintptr_t)addresses[i],
             (unsigned)i);
}

/* ---- Effects ---- */

/* Runs and waits of tasks, and operations, have events of their own. */
static bool is_known_otherwise(const hafti_io_worker_t *worker, const haft_observed_t *what) {
    if (worker == NULL)
        return false;
    const hafti_io_crew_t *crew = worker->crew;
    return what->kind == HAFT_OBSERVED_HANDLE ? what->handles == &crew->operations->handles
                                              : haft_fiber_name(what->fiber) == crew->stacks.name;
}

static void keep_effect(const haft_observed_t *what) {
    static const uint8_t events[] = {[HAFT_OBSERVED_RESUME] = HAFTI_IO_EVENT_RESUME,
                                     [HAFT_OBSERVED_PERFORM] = HAFTI_IO_EVENT_PERFORM,
                                     [HAFT_OBSERVED_HANDLE] = HAFTI_IO_EVENT_HANDLE,
                                     [HAFT_OBSERVED_FINISH] = HAFTI_IO_EVENT_FINISH,
                                     [HAFT_OBSERVED_DROP] = HAFTI_IO_EVENT_DROP};
    const hafti_io_worker_t *worker = hafti_io_worker();
    if (HAFTI_IO_UNLIKELY(!trace.effects || (hafti_io_watches() & HAFTI_IO_TRACES) == 0)) {
        haft_observe(NULL);
        return;
    }
    if (own.locked || is_known_otherwise(worker, what)) /* `locked`: a signal handler performs */
        return;
    const hafti_io_runner_t *runner = worker != NULL ? worker->running : NULL;
    const char *effect = what->effect != NULL ? what->effect->name : NULL;
    const char *text = what->kind == HAFT_OBSERVED_RESUME ? what->name : effect;
    const void *task = runner != NULL ? runner->task : NULL;
    enum hafti_io_event event = events[what->kind];
    if (HAFTI_IO_UNLIKELY(!put_known(event, task, text, (uintptr_t)what->fiber, 0)))
        keep(event, task, offset_of(text, false), (uintptr_t)what->fiber, 0);
}

/* ---- Operations ---- */

void hafti_io_trace_operation(const void *task, const char *kind, int descriptor, size_t size) {
    uint64_t bytes = size < UINT32_MAX ? size : UINT32_MAX;
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_OPERATION, task, kind, false,
                       (uint64_t)(uint32_t)descriptor << 32 | bytes, 0);
}

void hafti_io_trace_result(const void *task, const char *kind, int descriptor, ssize_t result) {
    int32_t kept = result > INT32_MAX ? INT32_MAX : (int32_t)result;
    hafti_io_trace(HAFTI_IO_EVENT_OPERATED, task, kind, false,
                   (uint64_t)(uint32_t)descriptor << 32 | (uint32_t)kept, 0);
}

/* ---- The file ---- */

/* The system's own calls: the caller may be a task, whose open(2) is libhaft-posix's. */
static header_t *map_new_file(const char *path, size_t size, int *code) {
    long file = hafti_io_system_call(SYS_openat, AT_FDCWD, (long)path,
                                     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0);
    if (file < 0) {
        *code = (int)file;
        return NULL;
    }
    long result = hafti_io_system_call(SYS_ftruncate, file, (long)size, 0, 0, 0, 0);
    if (result == 0)
        result = hafti_io_system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED,
                                      file, 0);
    hafti_io_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    bool failed = result < 0 && result > -HEADER;
    *code = failed ? (int)result : populate((void *)result, HEADER + TEXTS);
    return failed ? NULL : (header_t *)result;
}

static uint64_t date(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * HAFT_IO_SECOND + (uint64_t)now.tv_nsec;
}

static int begin(const char *path, size_t events, bool effects) {
    const size_t ring_size = sizeof(ring_t) + events * sizeof(event_t),
                 size = HEADER + TEXTS + RINGS * ring_size;
    int code;
    header_t *header = map_new_file(path, size, &code);
    if (code != 0) {
        if (header != NULL)
            munmap(header, size);
        return code;
    }
    *header = (header_t){.magic = "HAFTTRC",
                         .version = 2,
                         .process = (uint32_t)getpid(),
                         .rings = RINGS,
                         .events = (uint32_t)events,
                         .texts_at = HEADER,
                         .rings_at = HEADER + TEXTS,
                         .ring_size = ring_size,
                         .ticks_first = ticks(),
                         .nanoseconds_first = (uint64_t)hafti_io_clock(),
                         .date_first = date()};
    header->ticks_last = header->ticks_first;
    header->nanoseconds_last = header->nanoseconds_first;
    memset(trace.known, 0, sizeof trace.known);
    trace.header = header;
    trace.texts_end = 1;
    trace.rings = 0;
    trace.effects = effects;
    __atomic_store_n(&trace.number, trace.number + 1, __ATOMIC_RELEASE);
    __atomic_fetch_or(&hafti_io_watched, HAFTI_IO_TRACES, __ATOMIC_RELEASE);
    return 0;
}

int haft_io_trace_start_with(const haft_io_trace_options_t *options, const char *path) {
    size_t events = options != NULL && options->events != 0 ? options->events : EVENTS;
    bool is_power = (events & (events - 1)) == 0;
    if (path == NULL)
        return haft_io_refuse(-EINVAL, "haft_io_trace_start",
                              "the path is NULL: write that of a file that is not there yet");
    if (!is_power || events < LEAST_EVENTS || events > UINT32_MAX / 2)
        return haft_io_refuse(-EINVAL, __func__,
                              "a thread cannot keep %zu events: write a power of two, from %d to "
                              "1073741824, or 0 for %d",
                              events, LEAST_EVENTS, EVENTS);
    lock_trace();
    bool effects = options != NULL && options->effects;
    int code = hafti_io_watches() & HAFTI_IO_TRACES ? -EALREADY : begin(path, events, effects);
    unlock_trace();
    hafti_io_worker_t *worker = hafti_io_worker();
    if (worker != NULL)
        hafti_io_set_plain(worker);
    if (code == 0 && effects)
        take_ring();
    return code;
}

int haft_io_trace_start(const char *path) {
    return haft_io_trace_start_with(NULL, path);
}

void haft_io_trace_stop(void) {
    if (__atomic_fetch_and(&hafti_io_watched, ~HAFTI_IO_TRACES, __ATOMIC_ACQ_REL) & HAFTI_IO_TRACES)
        note_time();
}

void hafti_io_forget_trace(void) {
    __atomic_fetch_and(&hafti_io_watched, ~HAFTI_IO_TRACES, __ATOMIC_RELAXED);
}

void hafti_io_count_wakes(bool count) {
    if (count)
        __atomic_fetch_or(&hafti_io_watched, HAFTI_IO_COUNTS_WAKES, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&hafti_io_watched, ~HAFTI_IO_COUNTS_WAKES, __ATOMIC_RELAXED);
}
