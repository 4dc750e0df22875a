/* SPDX-License-Identifier: MIT */
/*
 * A thread's queue of tasks that any thread may take, from which others steal: a ring of bounded
 * size.
 *
 *   head             tail
 *    | oldest ... newest |        a task's slot is its number modulo the size
 *
 * Both ends stand in one word, which every step that takes or puts changes:
 *
 *   bits 0 to 31: how many were taken      32 to 47: `head`      48 to 63: `tail`
 *
 * Only the owner puts tasks, and takes the newest; a thread that takes the oldest moves `head`.
 * That thread owns the tasks that it has read from the slots before if the word was still the same.
 * The count in the low bits makes the word differ where both ends are again what they were and the
 * slots are not: for four thousand million tasks.
 *
 * So a task is in one queue at most, and the thread that takes it owns it. (Records of tasks are
 * not freed before the run ends, because a thread that reads slots in vain may have read a task
 * that has ended.)
 *
 * HAFTI_IO_STEP(object) stands before each access to what other threads change: test_protocols
 * tries all orders.
 */
#ifndef HAFTI_IO_QUEUE_H
#define HAFTI_IO_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef HAFTI_IO_STEP
#    define HAFTI_IO_STEP(object) ((void)0)
#endif
#ifndef HAFTI_IO_QUEUE_SIZE
#    define HAFTI_IO_QUEUE_SIZE 256u /* a power of two */
#endif

typedef struct hafti_io_queue {
    __attribute__((aligned(64))) uint64_t ends; /* any thread */
    uint32_t started;                           /* tasks by the owner; any thread reads */
    void *slots[HAFTI_IO_QUEUE_SIZE];
} hafti_io_queue_t;

#define HAFTI_IO_QUEUE_PUT (UINT64_C(1) << 48)
#define HAFTI_IO_QUEUE_HEAD (UINT64_C(0xffff) << 32)

static inline uint16_t hafti_io_queue_tail(uint64_t ends) {
    return (uint16_t)(ends >> 48);
}
/* The number of the task that is the oldest, if there is one. */
static inline uint16_t hafti_io_queue_head(uint64_t ends) {
    return (uint16_t)(ends >> 32);
}
static inline uint16_t hafti_io_queue_inside(uint64_t ends) {
    return (uint16_t)(hafti_io_queue_tail(ends) - hafti_io_queue_head(ends));
}

/* How many tasks were ever put. */
static inline uint16_t hafti_io_queue_puts(uint64_t ends) {
    return (uint16_t)(hafti_io_queue_inside(ends) + (uint16_t)ends);
}
static inline uint64_t hafti_io_queue_counted(uint64_t ends, uint32_t taken) {
    return (ends & ~(uint64_t)UINT32_MAX) | (uint32_t)(ends + taken);
}

static inline uint64_t hafti_io_queue_look(const hafti_io_queue_t *queue) {
    HAFTI_IO_STEP(queue->ends);
    return __atomic_load_n(&queue->ends, __ATOMIC_SEQ_CST);
}
static inline uint32_t hafti_io_queue_count(const hafti_io_queue_t *queue) {
    return hafti_io_queue_inside(hafti_io_queue_look(queue));
}
static inline bool hafti_io_queue_swap(hafti_io_queue_t *queue, uint64_t *seen, uint64_t wanted) {
    HAFTI_IO_STEP(queue->ends);
    return __atomic_compare_exchange_n(&queue->ends, seen, wanted, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_ACQUIRE);
}
static inline void *hafti_io_queue_read(const hafti_io_queue_t *queue, uint16_t number) {
    HAFTI_IO_STEP(queue->slots[number % HAFTI_IO_QUEUE_SIZE]);
    return __atomic_load_n(&queue->slots[number % HAFTI_IO_QUEUE_SIZE], __ATOMIC_RELAXED);
}

/* Puts a task; by the owner. False: the queue is full. */
static inline bool hafti_io_queue_put(hafti_io_queue_t *queue, void *task) {
    uint64_t ends = hafti_io_queue_look(queue);
    if (hafti_io_queue_inside(ends) == HAFTI_IO_QUEUE_SIZE)
        return false;
    uint16_t tail = hafti_io_queue_tail(ends);
    HAFTI_IO_STEP(queue->slots[tail % HAFTI_IO_QUEUE_SIZE]);
    __atomic_store_n(&queue->slots[tail % HAFTI_IO_QUEUE_SIZE], task, __ATOMIC_RELAXED);
    HAFTI_IO_STEP(queue->ends);
    __atomic_fetch_add(&queue->ends, HAFTI_IO_QUEUE_PUT, __ATOMIC_SEQ_CST); /* then the parking */
    return true;
}

/* Takes the oldest, at most `most` of them and, where there are several, half; any thread. */
static inline uint32_t hafti_io_queue_take(hafti_io_queue_t *queue, void **tasks, uint32_t most) {
    uint64_t ends = hafti_io_queue_look(queue);
    for (;;) {
        uint32_t count = hafti_io_queue_inside(ends);
        if (count == 0)
            return 0;
        count -= count / 2;
        if (count > most)
            count = most;
        uint16_t head = hafti_io_queue_head(ends);
        for (uint32_t i = 0; i < count; i++)
            tasks[i] = hafti_io_queue_read(queue, (uint16_t)(head + i));
        uint64_t moved = (uint64_t)(uint16_t)(head + count) << 32;
        uint64_t counted = hafti_io_queue_counted(ends, count);
        if (hafti_io_queue_swap(queue, &ends, (counted & ~HAFTI_IO_QUEUE_HEAD) | moved))
            return count;
    }
}

/* By the owner: takes the newest. NULL: there is none. */
static inline void *hafti_io_queue_take_newest(hafti_io_queue_t *queue) {
    uint64_t ends = hafti_io_queue_look(queue);
    while (hafti_io_queue_inside(ends) != 0) {
        void *task = hafti_io_queue_read(queue, (uint16_t)(hafti_io_queue_tail(ends) - 1));
        if (hafti_io_queue_swap(queue, &ends, hafti_io_queue_counted(ends, 1) - HAFTI_IO_QUEUE_PUT))
            return task;
    }
    return NULL;
}

#endif
