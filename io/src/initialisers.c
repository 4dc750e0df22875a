/* SPDX-License-Identifier: MIT */
/*
 * Initialisers of thread-local variables that wait. Neither Rust's thread_local! nor C++'s
 * thread_local expects another function of the thread to run before the first initialiser has
 * returned: with Rust a second task makes a second value, which the first one then drops, although
 * it is borrowed; with C++ the second task uses an object that is not constructed.
 *
 * So a task that is about to wait looks on its stack for a return address in a function that
 * initialises such variables, by the program's symbols. Nearly always there is none. Words on a
 * stack may be left from earlier calls, so an address that is found is looked for in the backtrace.
 *
 * To look takes a nanosecond for each word of the stack. Therefore a worker remembers the places at
 * which nothing was found: the task's function, the caller that waits, and how much of the stack it
 * has. A wait in an initialiser is missed only where an earlier wait, outside of it, had all three
 * alike.
 */
#include "waits.h"

#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#    include <valgrind/valgrind.h>
#else
#    define RUNNING_ON_VALGRIND false
#endif

/* ---- The functions ---- */

typedef struct range {
    uintptr_t first, after; /* addresses */
    bool is_told;
} range_t;

static struct {
    range_t *ranges; /* in order */
    size_t count;
} known;

/* Names begin like this in both manglings of Rust. (Few names get further.) */
static bool initialises(const char *name) {
    if (strncmp(name, "_ZN3std3sys", 11) != 0 && strncmp(name, "_R", 2) != 0)
        return strcmp(name, "__tls_init") == 0;
    return strstr(name, "thread_local") != NULL && strstr(name, "get_or_init_slow") != NULL;
}

static int base_of_program(struct dl_phdr_info *object, size_t size, void *base) {
    (void)size;
    *(uintptr_t *)base = object->dlpi_addr;
    return 1; /* the program comes first */
}

static int in_order(const void *one, const void *other) {
    uintptr_t a = ((const range_t *)one)->first, b = ((const range_t *)other)->first;
    return (a > b) - (a < b);
}

static void add_symbols(const char *file, const ElfW(Shdr) * table, const char *names) {
    uintptr_t base = 0;
    dl_iterate_phdr(base_of_program, &base);
    const ElfW(Sym) *symbols = (const void *)(file + table->sh_offset);
    size_t count = table->sh_size / sizeof *symbols;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size == 0 ||
            !initialises(names + symbol->st_name))
            continue;
        range_t *more = realloc(known.ranges, (known.count + 1) * sizeof *more);
        if (more == NULL)
            return;
        known.ranges = more;
        uintptr_t first = base + symbol->st_value;
        known.ranges[known.count++] = (range_t){first, first + symbol->st_size, false};
    }
}

static void read_program(const char *file, size_t size) {
    const ElfW(Ehdr) *head = (const void *)file;
    if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shoff == 0 ||
        head->e_shoff + (size_t)head->e_shnum * sizeof(ElfW(Shdr)) > size)
        return;
    const ElfW(Shdr) *sections = (const void *)(file + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB && sections[i].sh_link < head->e_shnum)
            add_symbols(file, &sections[i], file + sections[sections[i].sh_link].sh_offset);
    if (known.count != 0)
        qsort(known.ranges, known.count, sizeof *known.ranges, in_order);
}

/* Outside of tasks, so that the calls are the system's own. */
static void find_functions(void) {
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (program >= 0 && fstat(program, &status) == 0 && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, program, 0);
        if (file != MAP_FAILED) {
            read_program(file, size);
            munmap(file, size);
        }
    }
    if (program >= 0)
        close(program);
}

void hafti_io_find_initialisers(void) {
    if (RUNNING_ON_VALGRIND) /* which would tell of words that are not initialised */
        return;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_functions);
    if (known.count != 0)
        __atomic_fetch_or(&hafti_io_watched, HAFTI_IO_LOOKS_FOR_INITIALISERS, __ATOMIC_RELEASE);
}

/* ---- On a task ---- */

static range_t *range_with(uintptr_t address) {
    size_t low = 0, high = known.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (known.ranges[middle].after <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < known.count && known.ranges[low].first < address ? &known.ranges[low] : NULL;
}

static void tell(const haft_io_task_t *task) {
    enum { MOST = 64 };
    void *addresses[MOST];
    int count = backtrace(addresses, MOST);
    range_t *range = NULL;
    for (int i = 0; i < count && range == NULL; i++)
        range = range_with((uintptr_t)addresses[i]);
    if (range == NULL || __atomic_exchange_n(&range->is_told, true, __ATOMIC_RELAXED))
        return;
    dprintf(STDERR_FILENO,
            "haft-io: the task '%s' waits in an initialiser of a thread-local variable. Another "
            "task of the thread may use the variable meanwhile, which breaks memory. Let it block "
            "the thread: call what waits there by haft_io_block_thread (Rust: "
            "haft::block_thread).\n",
            haft_io_task_name(task));
    backtrace_symbols_fd(addresses, count, STDERR_FILENO);
}

/* The fiber on whose stack the task is, if that is its own or that of a scope's body. (A
   computation inside, and a segment of a stack, are not looked at.) */
static const haft_fiber_t *fiber_at(const haft_io_task_t *task, const char *here) {
    const haft_fiber_t *fiber = task->runner->fiber;
    for (const haft_io_scope_t *scope = task->runner->scope;
         scope != NULL && scope->owner == task && scope->body != NULL; scope = scope->outer)
        if (here >= scope->body->low && here < scope->body->high)
            return scope->body;
    return fiber != NULL && here >= fiber->low && here < fiber->high ? fiber : NULL;
}

/* Whether none was found there before; remembers that. */
static bool is_new_place(const haft_io_task_t *task, const char *caller, size_t depth) {
    const uint64_t spread = 0x9E3779B97F4A7C15; /* odd; its products differ in the high bits */
    uint64_t place = ((uintptr_t)task->function * spread) ^ (uintptr_t)caller;
    place = ((place * spread) ^ depth) * spread;
    uint64_t *known_place = &task->worker->looked_at[place % HAFTI_IO_PLACES];
    bool is_new = *known_place != place;
    *known_place = place;
    return is_new;
}

/* Some of the words have no value: they are room of the frames. */
__attribute__((no_sanitize_address, no_sanitize_thread)) void
hafti_io_look_for_initialiser(const haft_io_task_t *task, const char *caller, const void *frames) {
    if (task->runner->owns) /* the variable is the task's own */
        return;
    const haft_fiber_t *fiber = fiber_at(task, frames);
    unsigned watched = __atomic_load_n(&hafti_io_watched, __ATOMIC_ACQUIRE);
    if (fiber == NULL || !(watched & HAFTI_IO_LOOKS_FOR_INITIALISERS) ||
        !is_new_place(task, caller, (size_t)(fiber->high - (const char *)frames)))
        return; /* (`known` is read after the flag) */
    uintptr_t lowest = known.ranges[0].first, after = known.ranges[known.count - 1].after;
    const uintptr_t *word = __builtin_frame_address(0), *end = (const void *)fiber->high;
    while (word < end && (*word - lowest >= after - lowest || range_with(*word) == NULL))
        word++;
    if (word < end)
        tell(task);
}
