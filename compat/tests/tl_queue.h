/* SPDX-License-Identifier: MIT */
/* The queue that the paper's scheduler uses: first in, first out, of the power of two asked for. */
#ifndef TL_QUEUE_H
#define TL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct tl_queue {
    void **tasks;
    size_t size, first, end;
} tl_queue_t;

static inline void tl_queue_init(tl_queue_t *queue, int logarithm) {
    *queue = (tl_queue_t){.size = (size_t)1 << logarithm};
    queue->tasks = malloc(queue->size * sizeof *queue->tasks);
    if (queue->tasks == NULL)
        abort();
}
static inline bool tl_queue_empty(const tl_queue_t *queue) {
    return queue->first == queue->end;
}
static inline void tl_queue_push(tl_queue_t *queue, void *task) {
    if (queue->end - queue->first == queue->size)
        abort();
    queue->tasks[queue->end++ % queue->size] = task;
}
static inline void *tl_queue_steal(tl_queue_t *queue) {
    return queue->tasks[queue->first++ % queue->size];
}

#endif
