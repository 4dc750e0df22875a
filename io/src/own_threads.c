/* SPDX-License-Identifier: MIT */
/*
 * Tasks with thread-locals of their own (own_thread_locals). The C library makes a block of storage
 * for such a task as it does for a thread, and the scheduler writes the thread pointer before it
 * resumes the task, and after:
 *
 *     low                                             x86-64: the thread pointer
 *     | variables of libraries | of the C library | of the program | struct pthread            |
 *     |                        | errno, locale,   |                | itself, number, keys,     |
 *     |                        | malloc's words   |                | stack, guards, robust list|
 *
 *     | struct pthread         | of the program   | of the C library | of libraries            |
 *                              AArch64: the thread pointer
 *
 *     loop, under the thread's pointer              the task, under its own
 *       hafti_io_stand_on(worker, own) ---------->    everything that its fiber runs: the program,
 *         carries the current handlers and              clauses in place, this library, core
 *         malloc's words over, writes the
 *         pointer
 *       hafti_io_stand_on(worker, &worker->home) <-   when the request has come
 *     Where tasks yield in turn, the one goes over to the other's at once.
 *
 * So this library's thread-locals are in the block, too, and are set when it is made and when it
 * comes to another thread: the worker, what signals the program blocks, core's state.
 *
 * The C library does not publish where the fields of `struct pthread` are. So they are found by
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
 * The table of keys' destructors is where the library has written those of two new keys. At last a
 * third thread goes over to such a block, and back, and looks whether it is what it should be.
 */
#include "own_threads.h"
#include "system_call.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#    include <asm/prctl.h>
#    define HAFTI_IO_KNOWN 1
#elif defined(__aarch64__)
#    define HAFTI_IO_KNOWN 1
#endif

intptr_t hafti_io_kept_words[HAFTI_IO_KEPT_WORDS];
bool hafti_io_sets_pointer_by_call;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HAFTI_IO_SANITIZED 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
        __has_feature(memory_sanitizer)
#        define HAFTI_IO_SANITIZED 1
#    endif
#endif

enum {
    MOST_STRUCT = 8192,  /* bytes of the struct pthread */
    MOST_STORAGE = 1024, /* of the C library's thread-locals */
    KEYS_IN_BLOCK = 32,
    KEY_BLOCKS = 32,
    STACK = 128 << 10 /* of the threads that are looked at */
};

typedef struct key_data {
    uintptr_t sequence;
    void *data;
} key_data_t;
typedef struct key {
    uintptr_t sequence; /* odd: in use */
    void (*destructor)(void *);
} key_t_;

typedef struct word {
    size_t at;
    uintptr_t value;
} word_t;

/* The facts about the C library; all distances are from the start of the struct pthread, but for
   those of its storage and of the area of restartable sequences, which are from the thread pointer:
   glibc 2.41 has the area outside of the struct. */
static struct {
    const char *refused;
    size_t before;                  /* of the struct pthread, that far before the thread pointer */
    size_t below, above, alignment; /* of the storage, around the thread pointer */
    void *(*allocate)(void *);
    void (*deallocate)(void *, bool);
    void (*call_destructors)(void);
    void (*initialise_ctype)(void);
    size_t size;
    size_t number, list, specific, storage, stack, robust;
    ptrdiff_t sequences; /* 0: it has none */
    word_t same[64];     /* words that are not 0 */
    word_t inside[64];
    int same_count, inside_count, inside_storage_count;
    word_t inside_storage[8]; /* `at` from the C library's storage */
    intptr_t destructors[2];  /* its variables that are not 0 where destructors of C++ are to run */
    int destructor_count;
    intptr_t library; /* its storage, from the thread pointer */
    intptr_t error;   /* errno */
    size_t library_size;
    const key_t_ *keys;
} known;

#if defined(__x86_64__)
static char *own_pointer(void) {
    char *pointer;
    __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

void hafti_io_set_pointer_by_call(char *pointer) {
    hafti_io_system_call(SYS_arch_prctl, ARCH_SET_FS, (long)pointer, 0, 0, 0, 0);
    __asm__ volatile("" : : : "memory");
}

/* Whether AT_HWCAP2 has the bit with which the kernel lets programs write the base of FS. */
static bool has_instruction(void) {
    return (getauxval(AT_HWCAP2) & 2) != 0;
}

/* The struct pthread is where the thread pointer leads to, and the last of the storage. */
static size_t place_before_pointer(void) {
    return 0;
}
static void measure_storage(const char *pointer, const char *memory, size_t size) {
    (void)size;
    known.below = (size_t)(pointer - memory);
    known.above = known.size;
}
static size_t place_of_memory(void) {
    return known.size;
}
#elif defined(__aarch64__)
static char *own_pointer(void) {
    char *pointer;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

void hafti_io_set_pointer_by_call(char *pointer) {
    (void)pointer; /* never called: any program may write the register */
}

static bool has_instruction(void) {
    return true;
}

/* The struct pthread ends there, and is the first of the storage. */
static size_t place_before_pointer(void) {
    return known.size;
}
static void measure_storage(const char *pointer, const char *memory, size_t size) {
    known.below = known.size;
    known.above = (size_t)(memory + size - pointer);
}
static size_t place_of_memory(void) {
    return -sizeof(void *);
}
#else
void hafti_io_set_pointer_by_call(char *pointer) {
    (void)pointer;
}
#endif

#if defined(HAFTI_IO_KNOWN)

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
    if (!find_function("_dl_allocate_tls", &known.allocate) ||
        !find_function("_dl_deallocate_tls", &known.deallocate) ||
        !find_function("__call_tls_dtors", &known.call_destructors) ||
        !find_function("__ctype_init", &known.initialise_ctype))
        return "the C library is not glibc's, or the program is linked with it statically";
    if (!find_size("_thread_db_sizeof_pthread", &known.size) || known.size > MOST_STRUCT ||
        known.size % sizeof(uintptr_t) != 0 ||
        !find_field("_thread_db_pthread_tid", &known.number, 32, 1) ||
        !find_field("_thread_db_pthread_list", &known.list, 128, 1) ||
        !find_field("_thread_db_pthread_specific", &known.specific, 64 * KEY_BLOCKS, 1) ||
        !find_field("_thread_db_pthread_dtvp", &known.storage, 64, 1) ||
        !find_field("_thread_db_pthread_key_data_level2_data", &keys_in_block, 128,
                    KEYS_IN_BLOCK) ||
        !find_field("_thread_db_pthread_key_data_data", &data, 64, 1) ||
        !find_field("_thread_db_pthread_key_data_seq", &sequence, 64, 1) ||
        !find_size("_thread_db_sizeof_pthread_key_struct", &key_size))
        return "the C library does not say what its threads are made of, as to debuggers";
    if (keys_in_block != 0 || data != offsetof(key_data_t, data) ||
        sequence != offsetof(key_data_t, sequence) || key_size != sizeof(key_t_))
        return "the C library keeps keys in a way that is not known";
    known.before = place_before_pointer();
    const ptrdiff_t *sequences = dlsym(RTLD_DEFAULT, "__rseq_offset");
    known.sequences = sequences != NULL ? *sequences : 0;
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

static void marker(void *value) {
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
    for (size_t at = sizeof sought; at < known.size; at += sizeof sought)
        if (words[at / sizeof sought] == sought && words[at / sizeof sought - 1] == sought)
            found = at;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
    return found;
}

static void *look_at_self(void *argument) {
    specimen_t *self = argument;
    const char *pointer = own_pointer();
    self->place = (uintptr_t)pthread_self();
    self->is_self = self->place == (uintptr_t)pointer - known.before;
    self->number = (int)hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    memcpy(self->words, (const void *)self->place, known.size);
    memcpy(self->library, pointer + known.library, known.library_size);
    void *volatile memory = malloc(100);
    free(memory);
    memcpy(self->after_malloc, pointer + known.library, known.library_size);
    __cxa_thread_atexit_impl(marker, NULL, &known);
    memcpy(self->after_destructor, pointer + known.library, known.library_size);
    self->robust = find_robust_list(self->place);
    return NULL;
}

/* On a stack that the caller knows, with all signals blocked. */
static bool run_thread(void *(*function)(void *), void *argument, char *stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    void *result = argument;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_attr_setstack(&attributes, stack, STACK) == 0 &&
                pthread_create(&thread, &attributes, function, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return runs && pthread_join(thread, &result) == 0 && result == NULL;
}

/* Whether the word is of the area of restartable sequences. */
static bool is_sequences(size_t at) {
    return known.sequences != 0 && at - (size_t)known.sequences - known.before < 32;
}
static bool is_field(size_t at) {
    return at == known.storage || at == known.list || at == known.list + sizeof(uintptr_t) ||
           at == (known.number & ~(sizeof(uintptr_t) - 1)) || is_sequences(at);
}

static bool is_within(const specimen_t *of, uintptr_t value) {
    return value - of->place < known.size;
}
static bool is_frame(const specimen_t *of, uintptr_t value) {
    return value - (uintptr_t)of->stack < STACK;
}

static void note(word_t *words, int *count, size_t most, size_t at, uintptr_t value) {
    if ((size_t)*count < most)
        words[*count] = (word_t){at, value};
    (*count)++;
}
#    define NOTE(list, at, value)                                                                  \
        note(known.list, &known.list##_count, sizeof known.list / sizeof *known.list, at, value)
#    define OVERFLOWS(list) ((size_t)known.list##_count > sizeof known.list / sizeof *known.list)

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
        bool is_first = known.stack == 0;
        known.stack = at;
        return is_first && a->words[at / sizeof one + 1] == STACK;
    }
    if (one == other) {
        if (one != 0 && (known.stack == 0 || at != known.stack + sizeof one))
            NOTE(same, at, one);
        return !is_frame(a, one) && !is_frame(b, one);
    }
    return (is_frame(a, one) && is_frame(b, other)) ||
           (one == (uintptr_t)a && other == (uintptr_t)b);
}

static const char *understand_library(const specimen_t *a, const specimen_t *b) {
    int kept = 0;
    for (size_t i = 0; i < known.library_size / sizeof(uintptr_t); i++) {
        uintptr_t one = a->library[i], other = b->library[i];
        size_t at = i * sizeof one;
        if (is_within(a, one) && one - a->place == other - b->place)
            NOTE(inside_storage, at, one - a->place);
        else if (one != other)
            return "a thread-local variable of the C library is not understood";
        if (a->after_destructor[i] != a->after_malloc[i] && a->after_malloc[i] == 0) {
            if (known.destructor_count < 2)
                known.destructors[known.destructor_count] = known.library + (intptr_t)at;
            known.destructor_count++;
        }
        bool changes = a->after_malloc[i] != one;
        if (changes != (b->after_malloc[i] != other))
            return "two threads' first malloc changed different variables of the C library";
        if (changes && kept < HAFTI_IO_KEPT_WORDS)
            hafti_io_kept_words[kept] = known.library + (intptr_t)at;
        kept += changes;
    }
    for (int i = kept; i < HAFTI_IO_KEPT_WORDS; i++) /* a word that no task changes (or none) */
        hafti_io_kept_words[i] = kept != 0 ? hafti_io_kept_words[0] : (intptr_t)known.same[0].at;
    if (known.destructor_count == 0 || known.destructor_count > 2)
        return "the C library's list of destructors is not found";
    return kept > HAFTI_IO_KEPT_WORDS || OVERFLOWS(inside_storage)
               ? "the C library's malloc has more thread-local variables than are known"
               : NULL;
}

static const char *compare(const specimen_t *a, const specimen_t *b) {
    static char text[96];
    if (!a->is_self || !b->is_self)
        return "pthread_self is not where the thread pointer leads to";
    if (*(const int *)(const void *)((const char *)a->words + known.number) != a->number)
        return "the number of a thread is not where debuggers are told";
    for (size_t at = 0; at < known.size; at += sizeof(uintptr_t))
        if (!understand(a, b, at)) {
            snprintf(text, sizeof text, "the word at %zu of the C library's threads is unknown",
                     at);
            return text;
        }
    known.robust = a->robust;
    if (known.robust == 0 || b->robust != known.robust)
        return "the C library's list of robust mutexes is not found";
    if (known.stack == 0 || OVERFLOWS(same) || OVERFLOWS(inside) || known.same_count == 0)
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
    const key_t_ *keys;
    int found;
    bool is_there; /* the file */
} search_t;

static bool is_key(const key_t_ *key, void (*destructor)(void *)) {
    return key->destructor == destructor && key->sequence % 2 == 1;
}

static void search_segment(search_t *search, const char *low, size_t size) {
    for (size_t at = 0; at + sizeof(key_t_) <= size; at += sizeof(uintptr_t)) {
        const key_t_ *key = (const void *)(low + at);
        uintptr_t distance = (uintptr_t)(search->other - search->key) * sizeof *key;
        if (is_key(key, marker) && at + distance + sizeof *key <= size &&
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
            known.library = storage - own_pointer();
            known.error = place - own_pointer();
            known.library_size = part->p_memsz & ~(sizeof(uintptr_t) - 1);
            search->is_there = known.library_size <= MOST_STORAGE;
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
    if (pthread_key_create(&search.key, marker) != 0)
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
    if (search.found != 1 || is_key(&search.keys[search.key], marker))
        return "the C library's table of keys is not found";
    known.keys = search.keys;
    return NULL;
}

/* ---- The storage ---- */

static void *at(char *pointer, size_t distance) {
    return pointer + distance;
}

static uintptr_t *word_at(char *pointer, size_t distance) {
    return at(pointer, distance);
}
/* The struct pthread of the storage that the pointer leads to. */
static char *struct_of(char *pointer) {
    return pointer - known.before;
}

static int find_alignment(struct dl_phdr_info *file, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < file->dlpi_phnum; i++)
        if (file->dlpi_phdr[i].p_type == PT_TLS && file->dlpi_phdr[i].p_align > known.alignment)
            known.alignment = file->dlpi_phdr[i].p_align;
    return 0;
}

/* The C library is asked for storage once, and leaves there, for itself, where its memory begins.
   It would not clear the room for libraries that are loaded later: so the memory is ours. */
static const char *find_size_of_storage(void) {
    enum { MOST_ALIGNMENT = 4096 };
    known.alignment = 64;
    dl_iterate_phdr(find_alignment, NULL);
    char *pointer = known.allocate(NULL);
    if (pointer == NULL)
        return "there is no memory to look at threads";
    char *memory = *(char **)at(struct_of(pointer), place_of_memory());
    bool is_known = memory < pointer && (size_t)(pointer - memory) < (size_t)1 << 20 &&
                    known.alignment <= MOST_ALIGNMENT;
    if (is_known) {
        measure_storage(pointer, memory, malloc_usable_size(memory));
        known.below = (known.below + known.alignment - 1) & -known.alignment;
        known.deallocate(pointer, true);
    }
    return is_known ? NULL : "the C library keeps the memory of thread-locals elsewhere";
}

static void free_memory(char *pointer) {
    free(pointer - known.below);
}

/* Variables that begin with 0 do so, too, where their library is loaded later. */
static char *allocate(void) {
    size_t size = (known.below + known.above + known.alignment - 1) & -known.alignment;
    char *memory = aligned_alloc(known.alignment, size);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, size);
    char *pointer = memory + known.below;
    if (known.allocate(pointer) == NULL) {
        free_memory(pointer);
        return NULL;
    }
    return pointer;
}

static char *storage_new(int id, char *stack, size_t size) {
    char *pointer = allocate();
    if (pointer == NULL)
        return NULL;
    char *own = struct_of(pointer);
    for (int i = 0; i < known.same_count; i++)
        *word_at(own, known.same[i].at) = known.same[i].value;
    for (int i = 0; i < known.inside_count; i++)
        *word_at(own, known.inside[i].at) = (uintptr_t)own + known.inside[i].value;
    for (int i = 0; i < known.inside_storage_count; i++)
        *word_at(pointer + known.library, known.inside_storage[i].at) =
            (uintptr_t)own + known.inside_storage[i].value;
    uintptr_t list = (uintptr_t)own + known.list;
    *word_at(own, known.list) = *word_at(own, known.list + sizeof list) = list;
    *(int *)at(own, known.number) = id;
    *word_at(own, known.stack) = (uintptr_t)stack;
    *word_at(own, known.stack + sizeof list) = size;
    if (known.sequences != 0)
        *(int *)at(pointer, (size_t)known.sequences + sizeof(int)) = -2;
    return pointer;
}

/* A child of fork has put the one under which it was made into a list. */
static void storage_free(char *pointer) {
    char *own = struct_of(pointer);
    char *next = *(char **)at(own, known.list);
    char *previous = *(char **)at(own, known.list + sizeof next);
    *(char **)(void *)(previous) = next;
    *(char **)(void *)(next + sizeof next) = previous;
    char **blocks = at(own, known.specific);
    for (int i = 1; i < KEY_BLOCKS; i++)
        free(blocks[i]);
    known.deallocate(pointer, false);
    free_memory(pointer);
}

/* True: some destructor was called, which may have set another value. */
static bool call_key_destructors(char *pointer) {
    key_data_t **blocks = at(struct_of(pointer), known.specific);
    bool called = false;
    for (int i = 0; i < KEY_BLOCKS; i++)
        for (int j = 0; blocks[i] != NULL && j < KEYS_IN_BLOCK; j++) {
            key_data_t *value = &blocks[i][j];
            void *data = value->data;
            if (data == NULL)
                continue;
            const key_t_ *key = &known.keys[i * KEYS_IN_BLOCK + j];
            value->data = NULL;
            if (value->sequence == key->sequence && key->destructor != NULL) {
                called = true;
                key->destructor(data);
            }
        }
    return called;
}

/* The address of the next one in the list of robust mutexes, whose lowest bit is no part of it. */
static uintptr_t next_robust(uintptr_t place) {
    return *(const uintptr_t *)place & ~(uintptr_t)1;
}
static bool holds_robust_mutexes(char *pointer) {
    uintptr_t begin = (uintptr_t)struct_of(pointer) + known.robust;
    return next_robust(begin) != begin;
}

/* The next task that locks one is told that its owner has ended. */
static void leave_robust_mutexes(char *pointer) {
    uintptr_t begin = (uintptr_t)struct_of(pointer) + known.robust, place = next_robust(begin);
    while (place != begin) {
        pthread_mutex_t *mutex =
            (pthread_mutex_t *)(place - offsetof(pthread_mutex_t, __data.__list.__next));
        place = next_robust(place);
        mutex->__data.__list.__next = mutex->__data.__list.__prev = NULL;
        __atomic_fetch_or(&mutex->__data.__lock, (int)FUTEX_OWNER_DIED, __ATOMIC_RELEASE);
        hafti_io_system_call(SYS_futex, (long)&mutex->__data.__lock, FUTEX_WAKE, 1, 0, 0, 0);
    }
    *(uintptr_t *)begin = ((uintptr_t *)begin)[-1] = begin;
}

/* ---- A trial, in a third thread ---- */

enum { TRIAL_ID = HAFTI_IO_LAST_OWN_ID };

typedef struct trial {
    char *storage;
    pthread_key_t key;
    bool went_well;
} trial_t;

/* The functions are called by way of these, so that no compiler takes what they return before for
   what they return now. */
static int *(*volatile errno_place)(void) = __errno_location;
static pthread_t (*volatile self)(void) = pthread_self;
static void *(*volatile value_of)(pthread_key_t) = pthread_getspecific;
static int (*volatile set_value)(pthread_key_t, const void *) = pthread_setspecific;

static bool is_as_it_should_be(const trial_t *trial) {
    const char *storage = trial->storage;
    pthread_mutex_t mutex;
    pthread_mutexattr_t recursive;
    known.initialise_ctype();
    *errno_place() = EDOM;
    bool good =
        (uintptr_t)self() == (uintptr_t)storage - known.before && own_pointer() == storage &&
        (const char *)errno_place() - storage >= known.library &&
        (const char *)errno_place() - storage < known.library + (intptr_t)known.library_size &&
        value_of(trial->key) == NULL && set_value(trial->key, &trial) == 0 &&
        value_of(trial->key) == &trial && uselocale((locale_t)0) == LC_GLOBAL_LOCALE;
    void *memory = malloc(100);
    free(memory);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    good = good && memory != NULL && pthread_mutex_lock(&mutex) == 0 &&
           mutex.__data.__owner == TRIAL_ID && pthread_mutex_trylock(&mutex) == 0 &&
           pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0;
    pthread_mutexattr_destroy(&recursive);
    return good && call_key_destructors((char *)(uintptr_t)storage) && value_of(trial->key) == NULL;
}

static void *go_over_and_back(void *argument) {
    trial_t *trial = argument;
    char *own = own_pointer();
    *errno_place() = ERANGE;
    set_value(trial->key, trial);
    hafti_io_carry_kept_words(own, trial->storage);
    hafti_io_set_thread_pointer(trial->storage);
    bool good = is_as_it_should_be(trial);
    hafti_io_carry_kept_words(trial->storage, own);
    hafti_io_set_thread_pointer(own);
    trial->went_well = good && *errno_place() == ERANGE && value_of(trial->key) == trial &&
                       (uintptr_t)self() == (uintptr_t)own - known.before;
    set_value(trial->key, NULL);
    return NULL;
}

static const char *try_it(char *stack) {
    trial_t trial = {.storage = storage_new(TRIAL_ID, stack, STACK)};
    if (trial.storage == NULL)
        return "there is no memory to try it";
    bool runs =
        pthread_key_create(&trial.key, marker) == 0 && run_thread(go_over_and_back, &trial, stack);
    pthread_key_delete(trial.key);
    storage_free(trial.storage);
    return !runs             ? "there is no thread to try it"
           : trial.went_well ? NULL
                             : "in a trial, what the C library knows of a thread was another's";
}

static const char *prove_with(char *stacks, specimen_t *specimens) {
    for (int i = 0; i < 2; i++) {
        specimens[i].stack = stacks + i * STACK;
        if (!run_thread(look_at_self, &specimens[i], specimens[i].stack))
            return "there is no thread to look at";
    }
    const char *refused = compare(&specimens[0], &specimens[1]);
    return refused != NULL ? refused : try_it(stacks);
}

static const char *prove(void) {
#    if defined(HAFTI_IO_SANITIZED)
    return "the sanitizers keep what they know of a thread in thread-local variables";
#    endif
    if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL ||
        dlsym(RTLD_DEFAULT, "__msan_init") != NULL)
        return "the sanitizers keep what they know of a thread in thread-local variables";
    hafti_io_sets_pointer_by_call = !has_instruction();
    const char *refused = find_names();
    if (refused == NULL)
        refused = find_keys();
    if (refused == NULL)
        refused = find_size_of_storage();
    if (refused != NULL)
        return refused;
    size_t size = 2 * STACK + 2 * sizeof(specimen_t);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return "there is no memory to look at threads";
    refused = prove_with(memory, (specimen_t *)(void *)(memory + 2 * STACK));
    munmap(memory, size);
    return refused;
}
#else
static const char *prove(void) {
    return "it is made for x86-64 and AArch64";
}
#endif

static void *prove_here(void *unused) {
    known.refused = prove();
    return unused;
}

/* The threads are waited for: here, and not by a task's wait. */
static void prove_once(void) {
    HAFT_PERFORM(haft_io_block_thread, prove_here, NULL);
}

const char *hafti_io_own_threads_refused(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prove_once);
    return known.refused;
}

const char *haft_io_own_thread_locals_refused(void) {
    return hafti_io_own_threads_refused();
}

bool hafti_io_may_own_threads(void) {
    static bool told;
    const char *refused = hafti_io_own_threads_refused();
    if (refused == NULL || __atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        return refused == NULL;
    char line[320];
    int size =
        snprintf(line, sizeof line,
                 "haft-io: own_thread_locals cannot be had here: %s. Tasks run without it if "
                 "haft_io_own_thread_locals_refused() is asked first.\n",
                 refused);
    if (write(STDERR_FILENO, line, (size_t)size) < 0)
        return false;
    return false;
}

/* NULL: the caller is under the pointer of its thread. */
static hafti_io_own_thread_t *this_own_thread(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_own_thread_t *thread = worker != NULL ? worker->stands_on : NULL;
    return thread != NULL && thread->id != 0 ? thread : NULL;
}

int haft_io_own_thread_id(void) {
    const hafti_io_own_thread_t *thread = this_own_thread();
    return thread != NULL ? thread->id : 0;
}

void *haft_io_own_thread_keep(void) {
    hafti_io_own_thread_t *thread = this_own_thread();
    if (thread != NULL)
        __atomic_fetch_add(&thread->holders, 1, __ATOMIC_RELAXED);
    return thread;
}

void haft_io_own_thread_release(void *kept) {
    hafti_io_own_thread_free(kept);
}

/* ---- Tasks ---- */

#if defined(HAFTI_IO_KNOWN)
/* Records are never given back: each has a number and serials, which are not drawn again. */
static struct {
    uint32_t lock;
    int last_id; /* drawn so far, less 1 */
    hafti_io_own_thread_t *free;
} records = {.last_id = HAFTI_IO_FIRST_OWN_ID};

static HAFTI_IO_COLD hafti_io_own_thread_t *record_new(void) {
    hafti_io_own_thread_t *record = calloc(1, sizeof *record);
    if (record != NULL)
        record->id = __atomic_fetch_add(&records.last_id, 1, __ATOMIC_RELAXED);
    return record;
}

static hafti_io_own_thread_t *record_take(void) {
    hafti_io_guard(&records.lock);
    hafti_io_own_thread_t *record = records.free;
    if (record != NULL)
        records.free = record->next;
    hafti_io_unguard(&records.lock);
    return record != NULL ? record : record_new();
}

static void record_give(hafti_io_own_thread_t *record) {
    hafti_io_guard(&records.lock);
    record->next = records.free;
    records.free = record;
    hafti_io_unguard(&records.lock);
}

void hafti_io_own_threads_start(hafti_io_worker_t *worker) {
    _Static_assert(sizeof(hafti_io_own_thread_t) <= sizeof worker->place_of_home,
                   "a worker has room for its home");
    hafti_io_own_thread_t *home = (void *)worker->place_of_home;
    *home =
        (hafti_io_own_thread_t){.pointer = own_pointer(), .error = worker->error, .worker = worker};
    worker->home = worker->stands_on = home;
    worker->by_loop = worker->owns = true;
    __libc_single_threaded = 0; /* one task may use what another is changing, and waits in */
}

hafti_io_own_thread_t *hafti_io_own_thread_new(void) {
    hafti_io_own_thread_t *thread = record_take();
    if (thread == NULL)
        return NULL;
    thread->worker = NULL;
    thread->holders = 1;
    thread->pointer = storage_new(thread->id, NULL, 0);
    thread->error = at(thread->pointer, (size_t)known.error);
    if (thread->pointer != NULL && haft_thread_pointer_join(thread->pointer, &thread->serials))
        return thread;
    if (thread->pointer != NULL)
        storage_free(thread->pointer);
    record_give(thread);
    return NULL;
}

void hafti_io_own_thread_set_stack(hafti_io_own_thread_t *thread, char *stack, size_t size) {
    char *own = struct_of(thread->pointer);
    *word_at(own, known.stack) = (uintptr_t)stack;
    *word_at(own, known.stack + sizeof size) = size;
}

void hafti_io_own_thread_free(hafti_io_own_thread_t *thread) {
    if (__atomic_sub_fetch(&thread->holders, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    haft_thread_pointer_leave(thread->pointer, &thread->serials);
    storage_free(thread->pointer);
    record_give(thread);
}

void hafti_io_own_thread_begin(void) {
    known.initialise_ctype();
    haft_thread_pointer_begin();
}

bool hafti_io_own_thread_has_destructors(const hafti_io_own_thread_t *thread) {
    for (int i = 0; i < known.destructor_count; i++)
        if (*word_at(thread->pointer, (size_t)known.destructors[i]) != 0)
            return true;
    if (holds_robust_mutexes(thread->pointer))
        return true;
    key_data_t *const *blocks = at(struct_of(thread->pointer), known.specific);
    for (int i = 0; i < KEY_BLOCKS; i++) {
        const key_data_t *block = blocks[i];
        uintptr_t any = 0;
        for (int j = 0; block != NULL && j < KEYS_IN_BLOCK; j++)
            any |= (uintptr_t)block[j].data;
        if (any != 0)
            return true;
    }
    return false;
}

void hafti_io_own_thread_end(hafti_io_own_thread_t *thread) {
    known.call_destructors();
    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; round++)
        if (!call_key_destructors(thread->pointer))
            break;
    leave_robust_mutexes(thread->pointer);
}

void hafti_io_own_thread_moves(hafti_io_worker_t *worker, hafti_io_own_thread_t *thread) {
    const char *from = worker->home->pointer;
    if (thread->worker != NULL)
        haft_thread_pointer_join(thread->pointer, NULL);
    hafti_io_copy_worker(from, thread->pointer);
    hafti_io_copy_programs_mask(from, thread->pointer);
    thread->worker = worker;
}
#else
/* Never called: the option is refused. */
void hafti_io_own_threads_start(hafti_io_worker_t *worker) {
    (void)worker;
}
hafti_io_own_thread_t *hafti_io_own_thread_new(void) {
    return NULL;
}
void hafti_io_own_thread_set_stack(hafti_io_own_thread_t *thread, char *stack, size_t size) {
    (void)thread, (void)stack, (void)size;
}
void hafti_io_own_thread_free(hafti_io_own_thread_t *thread) {
    (void)thread;
}
void hafti_io_own_thread_begin(void) {}
bool hafti_io_own_thread_has_destructors(const hafti_io_own_thread_t *thread) {
    (void)thread;
    return false;
}
void hafti_io_own_thread_end(hafti_io_own_thread_t *thread) {
    (void)thread;
}
void hafti_io_own_thread_moves(hafti_io_worker_t *worker, hafti_io_own_thread_t *thread) {
    (void)worker, (void)thread;
}
#endif
