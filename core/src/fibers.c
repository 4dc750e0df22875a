/*
 * The fibers outside the pool, for haft_fibers_dump and for finding a fiber by an address of its
 * stack.
 */
#include "internal.h"

#include <pthread.h>

static haft_fiber_t *outside;
static pthread_mutex_t outside_lock = PTHREAD_MUTEX_INITIALIZER;

void haft_fibers_list(haft_fiber_t *fiber) {
    pthread_mutex_lock(&outside_lock);
    haft_list_insert(&outside, fiber);
    pthread_mutex_unlock(&outside_lock);
}

void haft_fibers_unlist(haft_fiber_t *fiber) {
    pthread_mutex_lock(&outside_lock);
    haft_list_remove(&outside, fiber);
    pthread_mutex_unlock(&outside_lock);
}

/* Called from signal handlers too: a list that is being changed is left out. */
void haft_fibers_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument) {
    haft_pool_each(visit, argument);
    if (pthread_mutex_trylock(&outside_lock) != 0)
        return;
    for (haft_fiber_t *fiber = outside; fiber != NULL; fiber = fiber->next)
        visit(fiber, argument);
    pthread_mutex_unlock(&outside_lock);
}

/* Memory of the caller may itself lie on another fiber's stack: the smallest that fits is meant. */
haft_fiber_t *haft_fiber_at(const void *address) {
    haft_fiber_t *found = NULL;
    pthread_mutex_lock(&outside_lock);
    for (haft_fiber_t *fiber = outside; fiber != NULL; fiber = fiber->next)
        if ((const char *)address >= fiber->low && (const char *)address < fiber->high &&
            (found == NULL || fiber->high - fiber->low < found->high - found->low))
            found = fiber;
    pthread_mutex_unlock(&outside_lock);
    return found != NULL ? found : haft_pool_fiber_at(address);
}
