/*
 * Three nested fibers, for a debugger to stop in at `here`. The argument gives, outermost first,
 * where each lies: s static memory, h heap, p a stack of the pool, q the same but made beforehand,
 * so that it lies below the stack of the fiber around it.
 */
#include <haft.h>

#include <stdlib.h>

HAFT_EFFECT(unused, void, {});

enum { SIZE = 64 * 1024 };

static const char *places;
static haft_fiber_t *beforehand[3];
static char memory[3][SIZE];

void here(void);
__attribute__((noinline)) void here(void) {
    __asm__ volatile("" ::: "memory");
}

static void *body_0(void *place);
static void *body_1(void *place);
static void *body_2(void *place);
static void *(*const bodies[])(void *) = {body_0, body_1, body_2};

static haft_fiber_t *make(int level) {
    haft_fiber_options_t options = {.name = "nested"};
    if (places[level] == 's')
        options.memory = memory[level];
    if (places[level] == 'h')
        options.memory = malloc(SIZE);
    options.memory_size = options.memory != NULL ? SIZE : 0;
    return haft_fiber_new_with(&options, bodies[level], NULL);
}

static __attribute__((noinline)) void run(int level) {
    haft_fiber_t *k = places[level] == 'q' ? beforehand[level] : make(level);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(unused));
    haft_fiber_drop(k);
}

static __attribute__((noinline)) void *body_0(void *place) {
    run(1);
    return place;
}
static __attribute__((noinline)) void *body_1(void *place) {
    run(2);
    return place;
}
static __attribute__((noinline)) void *body_2(void *place) {
    here();
    return place;
}

int main(int count, char **arguments) {
    places = count > 1 ? arguments[1] : "ppp";
    for (int level = 2; level >= 0; level--)
        if (places[level] == 'q')
            beforehand[level] = make(level);
    run(0);
    return 0;
}
/* SPDX-License-Identifier: MIT */
