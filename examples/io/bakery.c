/* SPDX-License-Identifier: MIT */
/*
 * Bakery: tasks with names, to be looked at. A baker puts cakes on a counter with room for one;
 * three customers take them, and pay at a till that serves one at a time.
 *
 *     haft-trace record -- ./bakery && haft-trace draw haft.trace     the picture trace.svg
 */
#include <haft/io.h>
#include <stdio.h>

enum { CUSTOMERS = 3 };
static haft_io_channel_t *counter;
static haft_io_mutex_t till;
static int paid;

static void *bake(void *unused) {
    for (int cake = 1; cake <= CUSTOMERS; cake++) {
        haft_io_sleep(HAFT_IO_MILLISECOND);
        haft_io_channel_send(counter, &cake);
    }
    return unused;
}

static void *buy(void *unused) {
    int cake;
    haft_io_trace_begin("buy");
    haft_io_channel_receive(counter, &cake);
    haft_io_mutex_lock(&till);
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    paid++;
    haft_io_mutex_unlock(&till);
    haft_io_trace_end("buy", cake);
    return unused;
}

static void *open_shop(void *unused) {
    static const char *const names[CUSTOMERS] = {"Ada", "Grace", "Barbara"};
    haft_io_spawn_with(&(haft_io_task_options_t){.name = "baker"}, bake, NULL);
    for (int i = 0; i < CUSTOMERS; i++)
        haft_io_spawn_with(&(haft_io_task_options_t){.name = names[i]}, buy, NULL);
    return unused;
}

static void *day(void *unused) {
    haft_io_task_set_name("shop");
    counter = haft_io_channel_new(sizeof(int), 1);
    int code = haft_io_scope(open_shop, NULL, NULL);
    haft_io_channel_free(counter);
    printf("%d cakes sold\n", paid);
    return code == 0 ? unused : NULL;
}

int main(void) {
    return haft_io_run(day, NULL);
}
