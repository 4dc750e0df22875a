/* SPDX-License-Identifier: MIT */
/*
 * The block of thread-local storage of a task, which the C library fills as it does for a thread:
 *
 *     low                                             x86-64: the thread pointer
 *     | variables of libraries | of the C library | of the program | struct pthread            |
 *     |                        | errno, locale,   |                | itself, number, keys,     |
 *     |                        | malloc's words   |                | stack, guards, robust list|
 *
 *     | struct pthread         | of the program   | of the C library | of libraries            |
 *                              AArch64: the thread pointer
 *
 * The library would not clear the room for libraries that are loaded later: so the memory is ours,
 * and zeroed, because variables that begin with 0 do so also where their library is loaded later.
 */
#include "own_storage.h"
#include "system_call.h"

#include <stdlib.h>
#include <string.h>

static void free_memory(char *pointer) {
    free(pointer - hafti_io_known.below);
}

static char *allocate(void) {
    size_t size = (hafti_io_known.below + hafti_io_known.above + hafti_io_known.alignment - 1) &
                  -hafti_io_known.alignment;
    char *memory = aligned_alloc(hafti_io_known.alignment, size);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, size);
    char *pointer = memory + hafti_io_known.below;
    if (hafti_io_known.allocate(pointer) == NULL) {
        free_memory(pointer);
        return NULL;
    }
    return pointer;
}

void hafti_io_storage_set_stack(char *pointer, char *stack, size_t size) {
    char *own = hafti_io_struct_of(pointer);
    *hafti_io_word_at(own, hafti_io_known.stack) = (uintptr_t)stack;
    *hafti_io_word_at(own, hafti_io_known.stack + sizeof stack) = size;
}

char *hafti_io_storage_new(int id, char *stack, size_t size) {
    char *pointer = allocate();
    if (pointer == NULL)
        return NULL;
    char *own = hafti_io_struct_of(pointer);
    for (int i = 0; i < hafti_io_known.same_count; i++)
        *hafti_io_word_at(own, hafti_io_known.same[i].at) = hafti_io_known.same[i].value;
    for (int i = 0; i < hafti_io_known.inside_count; i++)
        *hafti_io_word_at(own, hafti_io_known.inside[i].at) =
            (uintptr_t)own + hafti_io_known.inside[i].value;
    for (int i = 0; i < hafti_io_known.inside_storage_count; i++)
        *hafti_io_word_at(pointer + hafti_io_known.library, hafti_io_known.inside_storage[i].at) =
            (uintptr_t)own + hafti_io_known.inside_storage[i].value;
    uintptr_t list = (uintptr_t)own + hafti_io_known.list;
    *hafti_io_word_at(own, hafti_io_known.list) =
        *hafti_io_word_at(own, hafti_io_known.list + sizeof list) = list;
    *(int *)hafti_io_at(own, hafti_io_known.number) = id;
    hafti_io_storage_set_stack(pointer, stack, size);
    if (hafti_io_known.sequences != 0)
        *(int *)hafti_io_at(pointer, (size_t)hafti_io_known.sequences + sizeof(int)) = -2;
    return pointer;
}

/* A child of fork has put the one under which it was made into a list. */
void hafti_io_storage_free(char *pointer) {
    char *own = hafti_io_struct_of(pointer);
    char *next = *(char **)hafti_io_at(own, hafti_io_known.list);
    char *previous = *(char **)hafti_io_at(own, hafti_io_known.list + sizeof next);
    *(char **)(void *)(previous) = next;
    *(char **)(void *)(next + sizeof next) = previous;
    char **blocks = hafti_io_at(own, hafti_io_known.specific);
    for (int i = 1; i < HAFTI_IO_KEY_BLOCKS; i++)
        free(blocks[i]);
    hafti_io_known.deallocate(pointer, false);
    free_memory(pointer);
}

bool hafti_io_storage_destroy_keys(char *pointer) {
    hafti_io_key_data_t **blocks =
        hafti_io_at(hafti_io_struct_of(pointer), hafti_io_known.specific);
    bool called = false;
    for (int i = 0; i < HAFTI_IO_KEY_BLOCKS; i++)
        for (int j = 0; blocks[i] != NULL && j < HAFTI_IO_KEYS_IN_BLOCK; j++) {
            hafti_io_key_data_t *value = &blocks[i][j];
            void *data = value->data;
            if (data == NULL)
                continue;
            const hafti_io_key_t *key = &hafti_io_known.keys[i * HAFTI_IO_KEYS_IN_BLOCK + j];
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
static bool holds_robust_mutexes(const char *own) {
    uintptr_t begin = (uintptr_t)own + hafti_io_known.robust;
    return next_robust(begin) != begin;
}

bool hafti_io_storage_has_destructors(char *pointer) {
    for (int i = 0; i < hafti_io_known.destructor_count; i++)
        if (*hafti_io_word_at(pointer, (size_t)hafti_io_known.destructors[i]) != 0)
            return true;
    char *own = hafti_io_struct_of(pointer);
    if (holds_robust_mutexes(own))
        return true;
    hafti_io_key_data_t *const *blocks = hafti_io_at(own, hafti_io_known.specific);
    for (int i = 0; i < HAFTI_IO_KEY_BLOCKS; i++) {
        const hafti_io_key_data_t *block = blocks[i];
        uintptr_t any = 0;
        for (int j = 0; block != NULL && j < HAFTI_IO_KEYS_IN_BLOCK; j++)
            any |= (uintptr_t)block[j].data;
        if (any != 0)
            return true;
    }
    return false;
}

/* The word becomes what the system leaves of a thread's. */
static void end_owner(uint32_t *word) {
    uint32_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &now, (now & FUTEX_WAITERS) | FUTEX_OWNER_DIED, false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

void hafti_io_storage_leave_mutexes(char *pointer) {
    uintptr_t begin = (uintptr_t)hafti_io_struct_of(pointer) + hafti_io_known.robust,
              place = next_robust(begin);
    while (place != begin) {
        pthread_mutex_t *mutex =
            (pthread_mutex_t *)(place - offsetof(pthread_mutex_t, __data.__list.__next));
        place = next_robust(place);
        mutex->__data.__list.__next = mutex->__data.__list.__prev = NULL;
        end_owner((uint32_t *)&mutex->__data.__lock);
        hafti_io_system_call(SYS_futex, (long)&mutex->__data.__lock, FUTEX_WAKE, 1, 0, 0, 0);
    }
    *(uintptr_t *)begin = ((uintptr_t *)begin)[-1] = begin;
}
