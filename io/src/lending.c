/* SPDX-License-Identifier: MIT */
/*
 * Memory that is lent to readers: blocks of one size, each with a header.
 *
 *   | next | result | from | bytes ... |
 *                            ^ what the reader knows of it
 *
 * Any thread may give back any block. A worker keeps some for its next reads, without looking at
 * their headers, which are seldom in its caches; the others are malloc's.
 */
#include "descriptors.h"
#include "memcheck.h"

#include <stdlib.h>

/* Valgrind and AddressSanitizer report uses of memory that has been given back. */
#if defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define WATCHED
#    endif
#elif defined __SANITIZE_ADDRESS__
#    define WATCHED
#endif

#ifdef WATCHED
enum { MOST_KEPT = 0 };
#else
enum { MOST_KEPT = HAFTI_IO_MOST_KEPT };
#endif

/* The value of `from` while the block is not lent. */
static const unsigned AT_HOME = UINT32_MAX;

#if __has_include(<valgrind/memcheck.h>)
bool hafti_io_in_valgrind;
__attribute__((constructor)) static void look_for_valgrind(void) {
    hafti_io_in_valgrind = RUNNING_ON_VALGRIND != 0;
}
#    define TELL(what)                                                                             \
        void hafti_io_tell_##what(const void *address, size_t size) {                              \
            VALGRIND_MAKE_MEM_##what(address, size);                                               \
        }
TELL(NOACCESS)
TELL(UNDEFINED)
TELL(DEFINED)
#endif

HAFTI_IO_HOT hafti_io_lent_t *hafti_io_lend_block(hafti_io_worker_t *worker) {
    hafti_io_lent_t *block;
    if (worker != NULL && worker->lent_count != 0) {
        block = worker->lent[--worker->lent_count];
        HAFTI_IO_TELL_VALGRIND(UNDEFINED, block->bytes, HAFT_IO_LENT_SIZE);
    } else {
        block = malloc(sizeof *block + HAFT_IO_LENT_SIZE);
    }
    return block;
}

HAFTI_IO_HOT void hafti_io_take_back(hafti_io_lent_t *block) {
    hafti_io_worker_t *worker = hafti_io_worker();
    block->from = AT_HOME;
    if (worker == NULL || worker->lent_count == MOST_KEPT) {
        free(block);
        return;
    }
    HAFTI_IO_TELL_VALGRIND(NOACCESS, block->bytes, HAFT_IO_LENT_SIZE);
    worker->lent[worker->lent_count++] = block;
}

void hafti_io_free_lent(hafti_io_worker_t *worker) {
    while (worker->lent_count != 0)
        free(worker->lent[--worker->lent_count]);
}

void *haft_io_lend(void) {
    hafti_io_lent_t *block = hafti_io_lend_block(hafti_io_worker());
    if (block == NULL)
        return NULL;
    block->from = 0;
    return block->bytes;
}

HAFTI_IO_HOT hafti_io_lent_t *hafti_io_block_of(const void *bytes) {
    hafti_io_lent_t *block = HAFTI_IO_OWNER((uintptr_t)bytes, hafti_io_lent_t, bytes);
    if (HAFTI_IO_UNLIKELY(block->from == AT_HOME))
        hafti_io_misuse("Memory that haft_io_read_lent has given is given back twice.");
    return block;
}

HAFTI_IO_HOT void haft_io_give_back(const void *bytes) {
    if (bytes != NULL)
        hafti_io_take_back(hafti_io_block_of(bytes));
}

ssize_t hafti_io_read_into_lent(const hafti_io_operation_t *operation,
                                ssize_t (*read)(hafti_io_operation_t *operation)) {
    hafti_io_lent_t *block = hafti_io_lend_block(hafti_io_worker());
    if (block == NULL)
        return -ENOMEM;
    hafti_io_operation_t reading = {.kind = HAFTI_IO_READ,
                                    .descriptor = operation->descriptor,
                                    .buffer = block->bytes,
                                    .size = HAFT_IO_LENT_SIZE};
    ssize_t done = read(&reading);
    block->from = 0;
    if (done > 0)
        *(const void **)operation->buffer = block->bytes;
    else
        hafti_io_take_back(block);
    return done;
}
