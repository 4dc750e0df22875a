/* SPDX-License-Identifier: MIT */
/*
 * Blocking work: threads that take calls from a queue. One is started when there is work and none
 * is idle, up to a limit, and up to as many more for those that are in calls that were left; all
 * end with the run.
 *
 * A call lies in the frame of the task that waits for it. While it is queued a cancelled task
 * withdraws it; once a thread has taken it, the task waits for its end with a second cell. The
 * thread wins the cell under the lock, under which alone the task changes it, and does not touch
 * the call any more. A call that may be left has memory of its own: a cancelled task puts NULL for
 * its cell and goes, and the thread frees the call.
 */
#include "operations.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct call {
    hafti_io_link_t link;  /* in the queue, until it is taken */
    hafti_io_cell_t *cell; /* NULL: it was left */
    void (*function)(void *);
    void *argument;
    void (*left)(void *); /* or NULL: it may not be left */
    bool done;
} call_t;

enum { DEFAULT_THREADS = 64 };

typedef struct hafti_io_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    hafti_io_link_t queue;
    int queued, idle, count, most;
    int left; /* of `count`: those that are in calls that were left */
    bool ends;
    pthread_t *threads;
} hafti_io_pool_t;

static void end_left(call_t *call) {
    call->left(call->argument);
    free(call);
}

static void *serve(void *argument) {
    hafti_io_pool_t *pool = argument;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (hafti_io_ring_empty(&pool->queue) && !pool->ends) {
            pool->idle++;
            pthread_cond_wait(&pool->work, &pool->lock);
            pool->idle--;
        }
        if (hafti_io_ring_empty(&pool->queue))
            break;
        call_t *call = HAFTI_IO_OWNER(pool->queue.next, call_t, link);
        hafti_io_unlink(&call->link);
        pool->queued--;
        pthread_mutex_unlock(&pool->lock);
        call->function(call->argument);
        pthread_mutex_lock(&pool->lock);
        if (call->cell != NULL) {
            call->done = true;
            hafti_io_cell_win(call->cell, HAFTI_IO_WOKEN);
        } else {
            pthread_mutex_unlock(&pool->lock);
            end_left(call);
            pthread_mutex_lock(&pool->lock);
            pool->left--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static hafti_io_pool_t *pool_new(int threads) {
    hafti_io_pool_t *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->most = threads > 0 ? threads : DEFAULT_THREADS;
    pool->threads = calloc(2 * (size_t)pool->most, sizeof *pool->threads);
    if (pool->threads == NULL) {
        free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    hafti_io_ring(&pool->queue);
    return pool;
}

static hafti_io_pool_t *pool_of(hafti_io_crew_t *crew) {
    hafti_io_pool_t *pool = __atomic_load_n(&crew->pool, __ATOMIC_ACQUIRE);
    if (pool != NULL)
        return pool;
    hafti_io_guard(&crew->lock);
    pool = crew->pool;
    if (pool == NULL) {
        pool = pool_new(crew->blocking_threads);
        __atomic_store_n(&crew->pool, pool, __ATOMIC_RELEASE);
    }
    hafti_io_unguard(&crew->lock);
    return pool;
}

/* Under the lock. */
static void add_thread(hafti_io_pool_t *pool) {
    if (pool->count - pool->left < pool->most && pool->count / 2 < pool->most &&
        hafti_io_start_thread(&pool->threads[pool->count], serve, pool) == 0)
        pool->count++;
}

/* False: there is no thread to serve it, and the system refuses one. */
static bool submit(hafti_io_pool_t *pool, call_t *call) {
    pthread_mutex_lock(&pool->lock);
    if (pool->queued >= pool->idle)
        add_thread(pool);
    bool served = pool->count != 0;
    if (served) {
        hafti_io_append(&pool->queue, &call->link);
        pool->queued++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (served)
        pthread_cond_signal(&pool->work);
    return served;
}

/* BEGUN: `cell` is won when it has been called, and wakes the task, which must wait for that. LEFT:
   it is the thread's. */
enum withdrawn { WITHDRAWN, BEGUN, LEFT, DONE };
static enum withdrawn withdraw(hafti_io_pool_t *pool, call_t *call, hafti_io_cell_t *cell) {
    enum withdrawn how = DONE;
    pthread_mutex_lock(&pool->lock);
    if (hafti_io_linked(&call->link)) {
        hafti_io_unlink(&call->link);
        pool->queued--;
        how = WITHDRAWN;
    } else if (!call->done && call->left == NULL) {
        call->cell = cell;
        how = BEGUN;
    } else if (!call->done) {
        call->cell = NULL;
        how = LEFT;
        pool->left++;
        if (pool->queued > pool->idle)
            add_thread(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return how;
}

/* How it was withdrawn: DONE if it was not. */
static enum withdrawn wait_for(hafti_io_pool_t *pool, call_t *call, haft_io_task_t *task,
                               enum hafti_io_wait_kind kind) {
    if (hafti_io_cell_wait(call->cell, kind, HAFT_IO_FOREVER, "blocking work") !=
        HAFTI_IO_CANCELLED)
        return DONE;
    hafti_io_cell_t last = {HAFTI_IO_WAITING, task};
    enum withdrawn how = withdraw(pool, call, &last);
    if (how != BEGUN)
        return how;
    hafti_io_cell_wait(&last, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, "blocking work");
    return DONE;
}

int hafti_io_pool_call(hafti_io_runner_t *runner, void (*function)(void *), void *argument,
                       void (*left)(void *), enum hafti_io_wait_kind kind) {
    hafti_io_pool_t *pool = pool_of(runner->worker->crew);
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
    call_t in_frame, *call = left == NULL ? &in_frame : malloc(sizeof *call);
    int code = -ENOMEM;
    if (pool != NULL && call != NULL) {
        *call = (call_t){.cell = &cell, .function = function, .argument = argument, .left = left};
        bool cancelled = kind == HAFTI_IO_CANCELLABLE && hafti_io_is_withdrawn(runner);
        code = cancelled ? -ECANCELED : submit(pool, call) ? 0 : -EAGAIN;
    }
    enum withdrawn how = code == 0 ? wait_for(pool, call, runner->task, kind) : WITHDRAWN;
    if (how == LEFT)
        return -ECANCELED;
    if (how == WITHDRAWN && code == 0)
        code = -ECANCELED;
    if (left != NULL)
        free(call);
    if (left != NULL && code != 0)
        left(argument);
    return code;
}

void hafti_io_pool_stop(hafti_io_crew_t *crew) {
    hafti_io_pool_t *pool = crew->pool;
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_broadcast(&pool->work);
    for (int i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
    crew->pool = NULL;
}
