/* SPDX-License-Identifier: MIT */
/*
 * A bug that comes seldom, caught for good. A shop sells its last items over the network: the task
 * of a customer looks at the stock, asks the bank, and takes an item. Two customers whose bank
 * answers at nearly the same time may both take the last one, in some runs and not in others. The
 * program records runs of the shop until one fails, and then has that run again a hundred times:
 * each fails in the same way. For a whole program HAFT_IO_RECORD=FILE and HAFT_IO_REPLAY=FILE in
 * the environment do the same.
 */
#include <haft/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUSTOMERS = 4, ITEMS = 3, REPLAYS = 100 };
static int stock, bank;
static char sold_to[64]; /* the customers, in the order in which they got an item */

/* ---- The bank, which answers when it likes ---- */

static int64_t some_time(int64_t most) {
    unsigned char drawn;
    haft_io_random(&drawn, 1);
    return drawn * most / 256;
}

static void *agree(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char question;
    haft_io_read(connection, &question, 1);
    haft_io_sleep(some_time(HAFT_IO_MILLISECOND));
    haft_io_write_all(connection, "y", 1);
    return NULL;
}

static void *serve(void *listener) {
    for (int connection; (connection = haft_io_accept((int)(intptr_t)listener)) >= 0;)
        haft_io_spawn(agree, (void *)(intptr_t)connection);
    return NULL;
}

/* ---- The shop ---- */

static void *sell(void *customer) {
    char answer;
    if (stock == 0)
        return NULL;
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", (uint16_t)bank);
    haft_io_write_all(connection, "?", 1);
    haft_io_read(connection, &answer, 1); /* meanwhile others may sell the last item */
    stock--;
    strcat(sold_to, (const char *)customer);
    return NULL;
}

static void *open_shop(void *unused) {
    static const char *const customers[CUSTOMERS] = {"A", "B", "C", "D"};
    haft_io_task_t *tasks[CUSTOMERS];
    stock = ITEMS;
    sold_to[0] = '\0';
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    bank = haft_io_port(listener);
    haft_io_spawn(serve, (void *)(intptr_t)listener);
    for (int i = 0; i < CUSTOMERS; i++) {
        haft_io_sleep(some_time(10 * HAFT_IO_MILLISECOND));
        tasks[i] = haft_io_async(sell, (void *)(uintptr_t)customers[i]);
    }
    for (int i = 0; i < CUSTOMERS; i++)
        haft_io_join(tasks[i], NULL);
    haft_io_close(listener); /* which ends the bank */
    return unused;
}

int main(void) {
    char file[64], caught[sizeof sold_to];
    snprintf(file, sizeof file, "/tmp/lost_order.%d.haft", (int)getpid());
    do
        haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .record = file}, open_shop, NULL);
    while (stock >= 0);
    printf("a recorded run has sold %zu of %d items\n", strlen(sold_to), ITEMS);
    strcpy(caught, sold_to);
    int same = 0;
    for (int i = 0; i < REPLAYS; i++) {
        haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .replay = file}, open_shop, NULL);
        same += stock < 0 && strcmp(sold_to, caught) == 0;
    }
    printf("it fails in the same way in %d of %d replays\n", same, REPLAYS);
    unlink(file);
    return 0;
}
