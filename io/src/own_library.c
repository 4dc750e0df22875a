/* SPDX-License-Identifier: MIT */
/*
 * The facts about the C library that thread-local storage of a task's own needs (own_storage.c).
 * No header of the library has the places of the fields of `struct pthread`. So they are found by
 * reading two threads that are made for that, word by word. A word is one of these, or the option
 * is refused:
 *
 *   in both threads it is                | the task's block gets
 *   the same                             | the same
 *   an address in the struct pthread     | the same place of its own
 *   the lowest address of the stack      | its stack's; the word behind it is the size
 *   an address in the frames, or of what | 0
 *     the thread was given               |
 *   of a field that debuggers are told   | a number of its own; a list of itself alone; what
 *     of: number, list, storage          |   the allocation has written
 *   of the area of restartable sequences | "not registered"
 *
 * Malloc's words are those of the C library's storage that a thread's first malloc and free change.
 * The table of keys' destructors is where the library has written those of two new keys.
 */
#include "own_storage.h"
#include "own_threads.h"
#include "system_call.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

hafti_io_library_t hafti_io_known;
intptr_t hafti_io_kept_words[HAFTI_IO_KEPT_WORDS];

enum {
    MOST_STRUCT = 8192,  /* bytes of the struct pthread */
    MOST_STORAGE = 1024, /* of the C library's thread-locals */
};

/* ---- Before or behind the thread pointer ---- */

#if defined(__x86_64__)
/* The struct pthread is where the thread pointer leads to, and the last of the storage. */
static size_t place_before_pointer(void) {
    return 0;
}
static void measure_storage(const char *pointer, const char *memory, size_t size) {
    (void)size;
    hafti_io_known.below = (size_t)(pointer - memory);
    hafti_io_known.above = hafti_io_known.size;
}
static size_t place_of_memory(void) {
    return hafti_io_known.size;
}
#elif defined(__aarch64__)
/* The struct pthread ends there, and is the first of the storage. */
static size_t place_before_pointer(void) {
    return hafti_io_known.size;
}
static void measure_storage(const char *pointer, const char *memory, size_t size) {
    hafti_io_known.below = hafti_io_known.size;
    hafti_io_known.above = (size_t)(memory + size - pointer);
}
static size_t place_of_memory(void) {
    return -sizeof(void *);
}
#endif

/* ---- What debuggers are told ---- */

/* The place of a field, which has `bits`, `count` times. False: another than is known here. */
static bool find_field(const char *name, size_t *place, uint32_t bits, uint32_t count) {
    const uint32_t *field = dlsym(RTLD_DEFAULT, name);
    if (field == NULL || field[0] != bits || field[1] != count)
        return false;
    *place = field[2];
    return true;
}

static bool find_size(const char *name, size_t *size) {
    const uint32_t *word = dlsym(RTLD_DEFAULT, name);
    if (word != NULL)
        *size = *word;
    return word != NULL;
}

static bool find_function(const char *name, void *function) {
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static const char *find_names(void) {
    size_t key_size = 0, keys_in_block = 0, data = 0, sequence = 0;
    if (!find_function("_dl_allocate_tls", &hafti_io_known.allocate) ||
        !find_function("_dl_deallocate_tls", &hafti_io_known.deallocate) ||
        !find_function("__call_tls_dtors", &hafti_io_known.call_destructors) ||
        !find_function("__ctype_init", &hafti_io_known.initialise_ctype))
        return "the C library is not glibc's, or the program is linked with it statically";
    if (!find_size("_thread_db_sizeof_pthread", &hafti_io_known.size) ||
        hafti_io_known.size > MOST_STRUCT || hafti_io_known.size % sizeof(uintptr_t) != 0 ||
        !find_field("_thread_db_pthread_tid", &hafti_io_known.number, 32, 1) ||
        !find_field("_thread_db_pthread_list", &hafti_io_known.list, 128, 1) ||
        !find_field("_thread_db_pthread_specific", &hafti_io_known.specific,
                    64 * HAFTI_IO_KEY_BLOCKS, 1) ||
        !find_field("_thread_db_pthread_dtvp", &hafti_io_known.storage, 64, 1) ||
        !find_field("_thread_db_pthread_key_data_level2_data", &keys_in_block, 128,
                    HAFTI_IO_KEYS_IN_BLOCK) ||
        !find_field("_thread_db_pthread_key_data_data", &data, 64, 1) ||
        !find_field("_thread_db_pthread_key_data_seq", &sequence, 64, 1) ||
        !find_size("_thread_db_sizeof_pthread_key_struct", &key_size))
        return "the C library does not say what its threads are made of, as to debuggers";
    if (keys_in_block != 0 || data != offsetof(hafti_io_key_data_t, data) ||
        sequence != offsetof(hafti_io_key_data_t, sequence) || key_size != sizeof(hafti_io_key_t))
        return "the C library keeps keys in a way that is not known";
    hafti_io_known.before = place_before_pointer();
    const ptrdiff_t *sequences = dlsym(RTLD_DEFAULT, "__rseq_offset");
    hafti_io_known.sequences = sequences != NULL ? *sequences : 0;
    return NULL;
}

/* ---- Two threads to look at ---- */

typedef struct specimen {
    char *stack;
    uintptr_t place; /* of the struct pthread */
    int number;
    _Alignas(16) uintptr_t words[MOST_STRUCT / sizeof(uintptr_t)];
    uintptr_t library[MOST_STORAGE / sizeof(uintptr_t)];
    uintptr_t after_malloc[MOST_STORAGE / sizeof(uintptr_t)];
    uintptr_t after_destructor[MOST_STORAGE / sizeof(uintptr_t)];
    size_t robust; /* where the list of robust mutexes begins that the thread has locked */
    bool is_self;
} specimen_t;

void hafti_io_marker(void *value) {
    (void)value;
}
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *symbol);

/* The list leads to the place in the mutex that leads to the next; so does the word before it,
   which leads to the last. 0: it is not found. */
static size_t find_robust_list(uintptr_t place) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    size_t found = 0;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_mutex_lock(&mutex);
    const uintptr_t *words = (const uintptr_t *)place;
    uintptr_t sought = (uintptr_t)&mutex.__data.__list.__next;
    for (size_t at = sizeof sought; at < hafti_io_known.size; at += sizeof sought)
        if (words[at / sizeof sought] == sought && words[at / sizeof sought - 1] == sought)
            found = at;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
    return found;
}

static void *look_at_self(void *argument) {
    specimen_t *self = argument;
    const char *pointer = hafti_io_own_pointer();
    self->place = (uintptr_t)pthread_self();
    self->is_self = self->place == (uintptr_t)pointer - hafti_io_known.before;
    self->number = (int)hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    memcpy(self->words, (const void *)self->place, hafti_io_known.size);
    memcpy(self->library, pointer + hafti_io_known.library, hafti_io_known.library_size);
    void *volatile memory = malloc(100);
    free(memory);
    memcpy(self->after_malloc, pointer + hafti_io_known.library, hafti_io_known.library_size);
    __cxa_thread_atexit_impl(hafti_io_marker, NULL, &hafti_io_known);
    memcpy(self->after_destructor, pointer + hafti_io_known.library, hafti_io_known.library_size);
    self->robust = find_robust_list(self->place);
    return NULL;
}

bool hafti_io_run_on(char *stack, void *(*function)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    void *result = argument;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_attr_setstack(&attributes, stack, HAFTI_IO_TRIAL_STACK) == 0 &&
                pthread_create(&thread, &attributes, function, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return runs && pthread_join(thread, &result) == 0 && result == NULL;
}

/* Whether the word is of the area of restartable sequences. */
static bool is_sequences(size_t at) {
    return hafti_io_known.sequences != 0 &&
           at - (size_t)hafti_io_known.sequences - hafti_io_known.before < 32;
}
static bool is_field(size_t at) {
    return at == hafti_io_known.storage || at == hafti_io_known.list ||
           at == hafti_io_known.list + sizeof(uintptr_t) ||
           at == (hafti_io_known.number & ~(sizeof(uintptr_t) - 1)) || is_sequences(at);
}

static bool is_within(const specimen_t *of, uintptr_t value) {
    return value - of->place < hafti_io_known.size;
}
static bool is_frame(const specimen_t *of, uintptr_t value) {
    return value - (uintptr_t)of->stack < HAFTI_IO_TRIAL_STACK;
}

static void note(hafti_io_word_t *words, int *count, size_t most, size_t at, uintptr_t value) {
    if ((size_t)*count < most)
        words[*count] = (hafti_io_word_t){at, value};
    (*count)++;
}
#define NOTE(list, at, value)                                                                      \
    note(hafti_io_known.list, &hafti_io_known.list##_count,                                        \
         sizeof hafti_io_known.list / sizeof *hafti_io_known.list, at, value)
#define OVERFLOWS(list)                                                                            \
    ((size_t)hafti_io_known.list##_count > sizeof hafti_io_known.list / sizeof *hafti_io_known.list)

/* Whether the word, in both, is of a kind in the table above. */
static bool understand(const specimen_t *a, const specimen_t *b, size_t at) {
    uintptr_t one = a->words[at / sizeof one], other = b->words[at / sizeof one];
    if (is_field(at))
        return true;
    if (is_within(a, one) && is_within(b, other)) {
        NOTE(inside, at, one - a->place);
        return one - a->place == other - b->place;
    }
    if (one == (uintptr_t)a->stack && other == (uintptr_t)b->stack) {
        bool is_first = hafti_io_known.stack == 0;
        hafti_io_known.stack = at;
        return is_first && a->words[at / sizeof one + 1] == HAFTI_IO_TRIAL_STACK;
    }
    if (one == other) {
        if (one != 0 && (hafti_io_known.stack == 0 || at != hafti_io_known.stack + sizeof one))
            NOTE(same, at, one);
        return !is_frame(a, one) && !is_frame(b, one);
    }
    return (is_frame(a, one) && is_frame(b, other)) ||
           (one == (uintptr_t)a && other == (uintptr_t)b);
}

static const char *understand_library(const specimen_t *a, const specimen_t *b) {
    int kept = 0;
    for (size_t i = 0; i < hafti_io_known.library_size / sizeof(uintptr_t); i++) {
        uintptr_t one = a->library[i], other = b->library[i];
        size_t at = i * sizeof one;
        if (is_within(a, one) && one - a->place == other - b->place)
            NOTE(inside_storage, at, one - a->place);
        else if (one != other)
            return "a thread-local variable of the C library is not understood";
        if (a->after_destructor[i] != a->after_malloc[i] && a->after_malloc[i] == 0) {
            if (hafti_io_known.destructor_count < 2)
                hafti_io_known.destructors[hafti_io_known.destructor_count] =
                    hafti_io_known.library + (intptr_t)at;
            hafti_io_known.destructor_count++;
        }
        bool changes = a->after_malloc[i] != one;
        if (changes != (b->after_malloc[i] != other))
            return "two threads' first malloc changed different variables of the C library";
        if (changes && kept < HAFTI_IO_KEPT_WORDS)
            hafti_io_kept_words[kept] = hafti_io_known.library + (intptr_t)at;
        kept += changes;
    }
    for (int i = kept; i < HAFTI_IO_KEPT_WORDS; i++) /* a word that no task changes (or none) */
        hafti_io_kept_words[i] =
            kept != 0 ? hafti_io_kept_words[0] : (intptr_t)hafti_io_known.same[0].at;
    if (hafti_io_known.destructor_count == 0 || hafti_io_known.destructor_count > 2)
        return "the C library's list of destructors is not found";
    return kept > HAFTI_IO_KEPT_WORDS || OVERFLOWS(inside_storage)
               ? "the C library's malloc has more thread-local variables than are known"
               : NULL;
}

static const char *compare(const specimen_t *a, const specimen_t *b) {
    static char text[96];
    if (!a->is_self || !b->is_self)
        return "pthread_self is not where the thread pointer leads to";
    if (*(const int *)(const void *)((const char *)a->words + hafti_io_known.number) != a->number)
        return "the number of a thread is not where debuggers are told";
    for (size_t at = 0; at < hafti_io_known.size; at += sizeof(uintptr_t))
        if (!understand(a, b, at)) {
            snprintf(text, sizeof text, "the word at %zu of the C library's threads is unknown",
                     at);
            return text;
        }
    hafti_io_known.robust = a->robust;
    if (hafti_io_known.robust == 0 || b->robust != hafti_io_known.robust)
        return "the C library's list of robust mutexes is not found";
    if (hafti_io_known.stack == 0 || OVERFLOWS(same) || OVERFLOWS(inside) ||
        hafti_io_known.same_count == 0)
        return "a thread's stack is not found in what the C library has of the thread";
    return understand_library(a, b);
}

/* ---- The C library as a file ---- */

static void other_marker(void *value) {
    (void)value;
    __asm__ volatile("" : : : "memory");
}

typedef struct search {
    pthread_key_t key, other;
    const hafti_io_key_t *keys;
    int found;
    bool is_there; /* the file */
} search_t;

static bool is_key(const hafti_io_key_t *key, void (*destructor)(void *)) {
    return key->destructor == destructor && key->sequence % 2 == 1;
}

static void search_segment(search_t *search, const char *low, size_t size) {
    for (size_t at = 0; at + sizeof(hafti_io_key_t) <= size; at += sizeof(uintptr_t)) {
        const hafti_io_key_t *key = (const void *)(low + at);
        uintptr_t distance = (uintptr_t)(search->other - search->key) * sizeof *key;
        if (is_key(key, hafti_io_marker) && at + distance + sizeof *key <= size &&
            is_key((const void *)((const char *)key + distance), other_marker)) {
            search->keys = key - search->key;
            search->found++;
        }
    }
}

static int search_file(struct dl_phdr_info *file, size_t size, void *argument) {
    search_t *search = argument;
    const char *place = (const char *)__errno_location(), *storage = file->dlpi_tls_data;
    (void)size;
    for (int i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        if (part->p_type == PT_TLS && storage != NULL && place >= storage &&
            place < storage + part->p_memsz) {
            hafti_io_known.library = storage - hafti_io_own_pointer();
            hafti_io_known.error = place - hafti_io_own_pointer();
            hafti_io_known.library_size = part->p_memsz & ~(sizeof(uintptr_t) - 1);
            search->is_there = hafti_io_known.library_size <= MOST_STORAGE;
        }
    }
    if (!search->is_there)
        return 0;
    for (int i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0)
            search_segment(search, (const char *)file->dlpi_addr + part->p_vaddr, part->p_memsz);
    }
    return 1;
}

static const char *find_keys(void) {
    search_t search = {0};
    if (pthread_key_create(&search.key, hafti_io_marker) != 0)
        return "the process is out of keys of threads";
    if (pthread_key_create(&search.other, other_marker) != 0) {
        pthread_key_delete(search.key);
        return "the process is out of keys of threads";
    }
    if (search.other > search.key)
        dl_iterate_phdr(search_file, &search);
    pthread_key_delete(search.other);
    pthread_key_delete(search.key);
    if (!search.is_there)
        return "the C library's thread-local variables are not found";
    if (search.found != 1 || is_key(&search.keys[search.key], hafti_io_marker))
        return "the C library's table of keys is not found";
    hafti_io_known.keys = search.keys;
    return NULL;
}

/* ---- The size of its storage ---- */

static int find_alignment(struct dl_phdr_info *file, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < file->dlpi_phnum; i++)
        if (file->dlpi_phdr[i].p_type == PT_TLS &&
            file->dlpi_phdr[i].p_align > hafti_io_known.alignment)
            hafti_io_known.alignment = file->dlpi_phdr[i].p_align;
    return 0;
}

/* The C library is asked for storage once, and leaves there, for itself, where its memory begins.
   The memory of tasks' storage is ours (own_storage.c). */
static const char *find_size_of_storage(void) {
    enum { MOST_ALIGNMENT = 4096 };
    hafti_io_known.alignment = 64;
    dl_iterate_phdr(find_alignment, NULL);
    char *pointer = hafti_io_known.allocate(NULL);
    if (pointer == NULL)
        return "there is no memory to look at threads";
    char *memory = *(char **)hafti_io_at(hafti_io_struct_of(pointer), place_of_memory());
    bool is_known = memory < pointer && (size_t)(pointer - memory) < (size_t)1 << 20 &&
                    hafti_io_known.alignment <= MOST_ALIGNMENT;
    if (is_known) {
        measure_storage(pointer, memory, malloc_usable_size(memory));
        hafti_io_known.below =
            (hafti_io_known.below + hafti_io_known.alignment - 1) & -hafti_io_known.alignment;
        hafti_io_known.deallocate(pointer, true);
    }
    return is_known ? NULL : "the C library keeps the memory of thread-locals elsewhere";
}

/* ---- All of it ---- */

static const char *look_with(char *stacks, specimen_t *specimens) {
    for (int i = 0; i < 2; i++) {
        specimens[i].stack = stacks + i * HAFTI_IO_TRIAL_STACK;
        if (!hafti_io_run_on(specimens[i].stack, look_at_self, &specimens[i]))
            return "there is no thread to look at";
    }
    return compare(&specimens[0], &specimens[1]);
}

static const char *look_at_threads(void) {
    size_t size = 2 * HAFTI_IO_TRIAL_STACK + 2 * sizeof(specimen_t);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return "there is no memory to look at threads";
    const char *refused = look_with(memory, (void *)(memory + 2 * HAFTI_IO_TRIAL_STACK));
    munmap(memory, size);
    return refused;
}

/* A call that all threads make (setuid and its kin) marks them for a moment. */
static const char *look_until_known(void) {
    enum { LOOKS = 10 };
    const hafti_io_library_t before = hafti_io_known;
    const char *refused = look_at_threads();
    for (int looks = 1; refused != NULL && looks < LOOKS; looks++) {
        hafti_io_known = before;
        refused = look_at_threads();
    }
    return refused;
}

const char *hafti_io_know_library(void) {
    const char *refused = find_names();
    if (refused == NULL)
        refused = find_keys();
    if (refused == NULL)
        refused = find_size_of_storage();
    return refused != NULL ? refused : look_until_known();
}
