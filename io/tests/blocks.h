/* SPDX-License-Identifier: MIT */
/*
 * Counts the blocks of memory that a test and the library have, for tests that look whether any is
 * left.
 *
 * The linker puts these functions (__wrap_) in the way of the C library's. The test defines before
 * it includes this which of them fail: FAILS_TO_ALLOCATE(name, size).
 */
#ifndef HAFT_IO_BLOCKS_H
#define HAFT_IO_BLOCKS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static long blocks;

#define COUNTED(name, parameters, arguments, size, is_new)                                         \
    void *__real_##name parameters;                                                                \
    void *__wrap_##name parameters;                                                                \
    void *__wrap_##name parameters {                                                               \
        if (FAILS_TO_ALLOCATE(name, size)) {                                                       \
            errno = ENOMEM;                                                                        \
            return NULL;                                                                           \
        }                                                                                          \
        void *block = __real_##name arguments;                                                     \
        __atomic_add_fetch(&blocks, block != NULL && (is_new), __ATOMIC_RELAXED);                  \
        return block;                                                                              \
    }
COUNTED(malloc, (size_t size), (size), size, true)
COUNTED(calloc, (size_t count, size_t size), (count, size), size, true)
COUNTED(aligned_alloc, (size_t alignment, size_t size), (alignment, size), size, true)
COUNTED(strdup, (const char *text), (text), strlen(text) + 1, true)
COUNTED(strndup, (const char *text, size_t length), (text, length), length + 1, true)
COUNTED(realloc, (void *before, size_t size), (before, size), size, before == NULL)

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
    __atomic_sub_fetch(&blocks, block != NULL, __ATOMIC_RELAXED);
    __real_free(block);
}
static void sample_free(void *block) {
    __real_free(block);
}

#endif
