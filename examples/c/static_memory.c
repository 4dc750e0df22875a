/* SPDX-License-Identifier: MIT */
/*
 * Static memory: fibers without an allocator. Two small fibers live in an array of the program, as
 * they would on a microcontroller, and blink at their own pace; one is reset and used again.
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(sleep_ticks, void, { int ticks; });
HAFT_EFFECT(light, void, {
    char name;
    bool on;
});

typedef struct blinker {
    char name;
    int period;
} blinker_t;

static void *blink(void *argument) {
    const blinker_t *blinker = argument;
    for (bool on = true; blinker->period > 0; on = !on) {
        HAFT_PERFORM(light, blinker->name, on);
        HAFT_PERFORM(sleep_ticks, blinker->period);
    }
    return NULL;
}

enum { TASKS = 2, STACK = 16 * 1024 };
static char memory[TASKS][STACK];

int main(void) {
    blinker_t blinkers[TASKS] = {{'a', 2}, {'b', 3}};
    haft_fiber_t *tasks[TASKS];
    int wakes_at[TASKS] = {0};
    bool lights[TASKS] = {false};
    for (int i = 0; i < TASKS; i++) {
        haft_fiber_options_t options = {
            .memory = memory[i], .memory_size = sizeof memory[i], .no_cleanups = true};
        tasks[i] = haft_fiber_new_with(&options, blink, &blinkers[i]);
    }
    for (int tick = 0; tick < 12; tick++) {
        if (tick == 8) { /* the second light starts again, three times as fast */
            blinkers[1].period = 1;
            haft_fiber_reset(tasks[1], blink, &blinkers[1]);
            wakes_at[1] = tick;
        }
        for (int i = 0; i < TASKS; i++) {
            while (wakes_at[i] <= tick) {
                haft_request_t request =
                    haft_resume(tasks[i], HAFT_NO_REPLY, HAFT_HANDLES(sleep_ticks, light));
                HAFT_MATCH(request) {
                    HAFT_CASE(light, payload) {
                        lights[i] = payload->on;
                    }
                    HAFT_CASE(sleep_ticks, payload) {
                        wakes_at[i] = tick + payload->ticks;
                    }
                }
            }
        }
        printf("tick %2d  %c %c\n", tick, lights[0] ? '*' : '.', lights[1] ? '*' : '.');
    }
    for (int i = 0; i < TASKS; i++)
        haft_fiber_drop(tasks[i]);
    return 0;
}
