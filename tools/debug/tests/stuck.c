/* SPDX-License-Identifier: MIT */
/*
 * A bank that gets stuck: two transfers lock the same accounts in opposite orders. Beside them tasks
 * wait for a descriptor, a channel, a time, an event, the end of another task. docs/debugging.md
 * looks at it with gdb. `stuck live` waits for a debugger, `stuck` ends by abort() when all wait.
 */
#include <haft/io.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct account {
    haft_io_mutex_t mutex;
    long cents;
} account_t;
typedef struct transfer {
    account_t *from, *to;
    long cents;
} transfer_t;

account_t savings = {.cents = 100000}, household = {.cents = 5000};
haft_io_event_t closing_time;
static haft_io_barrier_t manager = {.needed = 2};
static int to_branch[2], customers_inside, signed_orders;

static void *transfer(void *argument) {
    const transfer_t *order = argument;
    haft_io_mutex_lock(&order->from->mutex);
    haft_io_sleep(HAFT_IO_MILLISECOND); /* asks the manager, which signs two orders at a time */
    haft_io_barrier_wait(&manager);
    signed_orders++;
    haft_io_mutex_lock(&order->to->mutex);
    order->from->cents -= order->cents;
    order->to->cents += order->cents;
    haft_io_mutex_unlock(&order->to->mutex);
    haft_io_mutex_unlock(&order->from->mutex);
    return NULL;
}

static void *listen_to_branch(void *argument) {
    char order[64];
    haft_io_read(to_branch[0], order, sizeof order);
    return argument;
}

static void *print_letters(void *argument) {
    const char *letter;
    while (haft_io_channel_receive(argument, &letter) == 0)
        puts(letter);
    return NULL;
}

static void *serve_customer(void *argument) {
    customers_inside++;
    haft_io_event_wait(&closing_time);
    return argument;
}

static haft_io_task_options_t named(const char *name) {
    return (haft_io_task_options_t){.name = name};
}

static void *open_bank(void *argument) {
    const char *how = argument;
    transfer_t saving = {&household, &savings, 500}, spending = {&savings, &household, 700};
    haft_io_channel_t *letters = haft_io_channel_new(sizeof(char *), 4);
    haft_io_task_options_t clerk = named("clerk"), customer = named("customer");
    haft_io_task_options_t branch = named("branch"), printer = named("printer");
    int customers = strcmp(how, "many") == 0 ? 10000 : 50;
    if (letters == NULL || haft_io_pipe(to_branch) != 0)
        return NULL;
    haft_io_spawn_with(&clerk, transfer, &saving);
    haft_io_task_t *spend = haft_io_async_with(&clerk, transfer, &spending);
    haft_io_spawn_with(&branch, listen_to_branch, NULL);
    haft_io_spawn_with(&printer, print_letters, letters);
    for (int i = 0; i < customers; i++)
        haft_io_spawn_with(&customer, serve_customer, NULL);
    if (strcmp(how, "live") != 0) {
        while (customers_inside < customers || signed_orders < 2)
            haft_io_yield();
        for (int i = 0; i < 10; i++) /* each of the others comes to its wait */
            haft_io_yield();
        abort();
    }
    haft_io_join(spend, NULL);
    return NULL;
}

int main(int count, char **arguments) {
    return haft_io_run(open_bank, count > 1 ? arguments[1] : "dead");
}
