/* SPDX-License-Identifier: MIT */
/*
 * Cleanup: a computation that is dropped half-way is unwound. Dropping a suspended fiber runs the
 * cleanups on its stack and on those of the fibers suspended inside it, innermost first.
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(pause_work, void, { int step; });

static void close_door(const char **name) {
    printf("  closing the door of the %s\n", *name);
}
#define ROOM __attribute__((cleanup(close_door))) const char *

static void work(void) {
    ROOM room = "workshop";
    for (int step = 1;; step++) {
        printf("working in the %s, step %d\n", room, step);
        HAFT_PERFORM(pause_work, step);
    }
}

static void *in_the_hall(void *argument) {
    ROOM hall = "hall";
    (void)hall;
    work();
    return argument;
}

static void *in_the_house(void *argument) {
    ROOM house = "house";
    (void)house;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(in_the_hall, argument);
    haft_resume(k, HAFT_NO_REPLY,
                HAFT_HANDLES()); /* handles nothing: pause_work goes further out */
    return argument;
}

int main(void) {
    haft_fiber_t *k = haft_fiber_new(in_the_house, NULL);
    for (int i = 0; i < 2; i++)
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(pause_work));
    puts("that is enough");
    haft_fiber_drop(k);
    puts("everything is closed");
    return 0;
}
