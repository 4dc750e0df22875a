/* SPDX-License-Identifier: MIT */
/* A block of thread-local storage for a task (own_storage.c), and what is known of the C library
   to make one (own_library.c). */
#ifndef HAFTI_IO_OWN_STORAGE_H
#define HAFTI_IO_OWN_STORAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HAFTI_IO_KEYS_IN_BLOCK = 32, HAFTI_IO_KEY_BLOCKS = 32 };

/* A thread's value of a key, and the key. */
typedef struct hafti_io_key_data {
    uintptr_t sequence;
    void *data;
} hafti_io_key_data_t;
typedef struct hafti_io_key {
    uintptr_t sequence; /* odd: in use */
    void (*destructor)(void *);
} hafti_io_key_t;

typedef struct hafti_io_word {
    size_t at;
    uintptr_t value;
} hafti_io_word_t;

/* The facts about the C library; all distances are from the start of the struct pthread, but for
   those of its storage and of the area of restartable sequences, which are from the thread pointer:
   glibc 2.41 has the area outside of the struct. */
typedef struct hafti_io_library {
    size_t before;                  /* of the struct pthread, that far before the thread pointer */
    size_t below, above, alignment; /* of the storage, around the thread pointer */
    void *(*allocate)(void *);
    void (*deallocate)(void *, bool);
    void (*call_destructors)(void);
    void (*initialise_ctype)(void);
    size_t size;
    size_t number, list, specific, storage, stack, robust;
    ptrdiff_t sequences;      /* 0: it has none */
    hafti_io_word_t same[64]; /* words that are not 0 */
    hafti_io_word_t inside[64];
    int same_count, inside_count, inside_storage_count;
    hafti_io_word_t inside_storage[8]; /* `at` from the C library's storage */
    intptr_t destructors[2]; /* its variables that are not 0 where destructors of C++ are to run */
    int destructor_count;
    intptr_t library; /* its storage, from the thread pointer */
    intptr_t error;   /* errno */
    size_t library_size;
    const hafti_io_key_t *keys;
} hafti_io_library_t;
extern hafti_io_library_t hafti_io_known;

static inline char *hafti_io_own_pointer(void) {
    char *pointer;
#if defined(__x86_64__)
    __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

/* ---- Looking at the C library ---- */

/* NULL: all of it is known; else what is not understood. */
const char *hafti_io_know_library(void);

/* Calls the function by a thread on that stack, of HAFTI_IO_TRIAL_STACK bytes, with all signals
   blocked; false: there is none, or it returns anything but NULL. */
enum { HAFTI_IO_TRIAL_STACK = 128 << 10 };
bool hafti_io_run_on(char *stack, void *(*function)(void *), void *argument);
/* The destructor of a key that is tried. */
void hafti_io_marker(void *value);

/* ---- Blocks ---- */

/* NULL: no memory. */
char *hafti_io_storage_new(int id, char *stack, size_t size);
void hafti_io_storage_free(char *pointer);
void hafti_io_storage_set_stack(char *pointer, char *stack, size_t size);
/* Whether its thread's end would call anything. */
bool hafti_io_storage_has_destructors(char *pointer);
/* Under the pointer. True: some destructor was called, which may have set another value. */
bool hafti_io_storage_destroy_keys(char *pointer);
/* The next task that locks one of its robust mutexes is told that the owner has ended. */
void hafti_io_storage_leave_mutexes(char *pointer);

static inline void *hafti_io_at(char *pointer, size_t distance) {
    return pointer + distance;
}
static inline uintptr_t *hafti_io_word_at(char *pointer, size_t distance) {
    return hafti_io_at(pointer, distance);
}
/* The struct pthread of the storage that the pointer leads to. */
static inline char *hafti_io_struct_of(char *pointer) {
    return pointer - hafti_io_known.before;
}

#endif
