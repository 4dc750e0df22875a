/* SPDX-License-Identifier: MIT */
/*
 * A thread's queue of tasks that any thread may take, from which others steal: a ring of bounded size.
 *
 *   head             tail
 *    | oldest ... newest |        `head` and `tail` only grow; a task's slot is its number modulo the size
 *
 * The owner alone moves `tail`; whoever takes moves `head`, and what he has read from the slots before is his
 * if that succeeds. A slot is written again only when `head` has passed it, so a value that was
 * overwritten meanwhile is never used.
 *
 * A task may be in a queue although it was started from elsewhere, and its record may be another task's by
 * now. That is why a task goes to whoever swaps its state from that in which it was offered (haft_io_claim), and
 * records of tasks are not freed before the run ends.
 *
 * HAFT_IO_STEP(object) stands before each access to what other threads change: test_protocols tries all
 * orders.
 */
#ifndef HAFT_IO_QUEUE_H
#define HAFT_IO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#ifndef HAFT_IO_STEP
#    define HAFT_IO_STEP(object) ((void)0)
#endif
#ifndef HAFT_IO_QUEUE_SIZE
#    define HAFT_IO_QUEUE_SIZE 256u /* a power of two */
#endif

typedef struct haft_io_queue {
    __attribute__((aligned(64))) uint32_t head; /* any thread */
    __attribute__((aligned(64))) uint32_t tail; /* written by the owner */
    void *slots[HAFT_IO_QUEUE_SIZE];
} haft_io_queue_t;

static inline uint32_t haft_io_queue_count(const haft_io_queue_t *queue) {
    HAFT_IO_STEP(queue->head);
    uint32_t head = __atomic_load_n(&queue->head, __ATOMIC_SEQ_CST);
    HAFT_IO_STEP(queue->tail);
    return __atomic_load_n(&queue->tail, __ATOMIC_SEQ_CST) - head;
}

/* Of the task that is taken next. */
static inline uint32_t haft_io_queue_number(const haft_io_queue_t *queue) {
    return __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE);
}

/* By the owner. False: it is full. */
static inline bool haft_io_queue_put(haft_io_queue_t *queue, void *task) {
    uint32_t tail = queue->tail;
    HAFT_IO_STEP(queue->head);
    if (tail - __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) == HAFT_IO_QUEUE_SIZE)
        return false;
    HAFT_IO_STEP(queue->slots[tail % HAFT_IO_QUEUE_SIZE]);
    __atomic_store_n(&queue->slots[tail % HAFT_IO_QUEUE_SIZE], task, __ATOMIC_RELAXED);
    HAFT_IO_STEP(queue->tail);
    __atomic_store_n(&queue->tail, tail + 1, __ATOMIC_SEQ_CST); /* before a look at the parking */
    return true;
}

/* Takes the oldest, at most `most` of them and, where there are several, half; any thread. */
static inline uint32_t haft_io_queue_take(haft_io_queue_t *queue, void **tasks, uint32_t most) {
    for (;;) {
        HAFT_IO_STEP(queue->head);
        uint32_t head = __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE);
        HAFT_IO_STEP(queue->tail);
        uint32_t count = __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) - head;
        if (count == 0)
            return 0;
        if (count > HAFT_IO_QUEUE_SIZE) /* `head` has moved in between */
            continue;
        count -= count / 2;
        if (count > most)
            count = most;
        for (uint32_t i = 0; i < count; i++) {
            HAFT_IO_STEP(queue->slots[(head + i) % HAFT_IO_QUEUE_SIZE]);
            tasks[i] =
                __atomic_load_n(&queue->slots[(head + i) % HAFT_IO_QUEUE_SIZE], __ATOMIC_RELAXED);
        }
        HAFT_IO_STEP(queue->head);
        if (__atomic_compare_exchange_n(&queue->head, &head, head + count, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return count;
    }
}

/* Who has taken an entry has the task only if he swaps its state from that in which it was offered. */
static inline bool haft_io_claim(uint8_t *state, uint8_t offered, uint8_t taken) {
    HAFT_IO_STEP(*state);
    return __atomic_compare_exchange_n(state, &offered, taken, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

#endif
