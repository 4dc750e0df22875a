/* SPDX-License-Identifier: MIT */
/* One wait for channels, events, descriptors and signals. */
#include "check_io.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

enum { CHANNEL, EVENT, SOCKET, SIGNAL, KINDS };

typedef struct things {
    haft_io_channel_t *channel;
    haft_io_event_t event;
    int pair[2];
    sigset_t signals;
} things_t;

static void make_things(things_t *things) {
    *things = (things_t){.channel = haft_io_channel_new(sizeof(int), 0)};
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, things->pair), 0);
    sigemptyset(&things->signals);
    sigaddset(&things->signals, SIGUSR2);
}
static void free_things(things_t *things) {
    haft_io_channel_free(things->channel);
    haft_io_close(things->pair[0]);
    haft_io_close(things->pair[1]);
}

static int select_one(things_t *things, int *code, int64_t deadline) {
    int value = 0;
    haft_io_select_case_t choices[KINDS] = {
        [CHANNEL] = {.channel = things->channel, .receive = &value},
        [EVENT] = {.event = &things->event},
        [SOCKET] = {.descriptor = things->pair[0], .events = POLLIN},
        [SIGNAL] = {.signals = &things->signals},
    };
    int index = haft_io_select_until(choices, KINDS, deadline);
    *code = index < 0 ? 0 : choices[index].code;
    if (index == CHANNEL && *code == 0)
        CHECK_EQUAL(value, 7);
    return index;
}

static void let_one_come(things_t *things, int kind) {
    int value = 7;
    switch (kind) {
    case CHANNEL:
        CHECK_EQUAL(haft_io_channel_send(things->channel, &value), 0);
        break;
    case EVENT:
        haft_io_event_set(&things->event);
        break;
    case SOCKET:
        CHECK_EQUAL(haft_io_write(things->pair[1], "x", 1), 1);
        break;
    default:
        kill(getpid(), SIGUSR2);
    }
}

static void check_comes(things_t *things, int kind) {
    char byte;
    int code;
    CHECK_EQUAL(select_one(things, &code, HAFT_IO_FOREVER), kind);
    switch (kind) {
    case EVENT:
        CHECK_EQUAL(code, 0);
        haft_io_event_clear(&things->event);
        break;
    case SOCKET:
        CHECK_EQUAL(code, POLLIN);
        CHECK_EQUAL(haft_io_read(things->pair[0], &byte, 1), 1);
        break;
    case SIGNAL:
        CHECK_EQUAL(code, SIGUSR2);
        break;
    default:
        CHECK_EQUAL(code, 0);
    }
}

typedef struct later {
    things_t *things;
    int kind;
} later_t;
static void *come_later(void *argument) {
    later_t *later = argument;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    let_one_come(later->things, later->kind);
    return NULL;
}
BODY(wait_for_each) {
    things_t things;
    int code;
    make_things(&things);
    for (int round = 0; round < 3 * KINDS; round++) {
        later_t later = {&things, round % KINDS};
        haft_io_task_t *task = haft_io_async(come_later, &later);
        check_comes(&things, later.kind);
        CHECK_EQUAL(haft_io_join(task, NULL), 0);
    }
    for (int kind = EVENT; kind < KINDS; kind++) {
        let_one_come(&things, kind);
        check_comes(&things, kind);
    }
    CHECK_EQUAL(select_one(&things, &code, haft_io_now() + HAFT_IO_MILLISECOND), -ETIMEDOUT);
    CHECK_EQUAL(select_one(&things, &code, 0), -ETIMEDOUT);
    haft_io_channel_close(things.channel);
    CHECK_EQUAL(select_one(&things, &code, HAFT_IO_FOREVER), CHANNEL);
    CHECK_EQUAL(code, -EPIPE);
    free_things(&things);
    return NULL;
}
static void each_of_several_ends_the_wait(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, wait_for_each, NULL), 0);
}
static void each_ends_the_wait_everywhere(void) {
    check_everywhere(each_of_several_ends_the_wait);
}

/* ---- None is passed over, none is lost ---- */

BODY(select_what_is_always_ready) {
    things_t things;
    make_things(&things);
    int seen[KINDS] = {0}, code, value = 7;
    haft_io_channel_free(things.channel);
    things.channel = haft_io_channel_new(sizeof(int), 1);
    haft_io_event_set(&things.event);
    CHECK_EQUAL(haft_io_write(things.pair[1], "x", 1), 1);
    for (int i = 0; i < 1000; i++) {
        haft_io_channel_try_send(things.channel, &value);
        int index = select_one(&things, &code, HAFT_IO_FOREVER);
        CHECK(index >= 0 && index < SIGNAL);
        seen[index]++;
    }
    for (int kind = 0; kind < SIGNAL; kind++)
        CHECK(seen[kind] > 50);
    free_things(&things);
    return NULL;
}
static void none_is_passed_over(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, select_what_is_always_ready, NULL), 0);
}
static void none_is_passed_over_anywhere(void) {
    check_everywhere(none_is_passed_over);
}

enum { VALUES = 2000 };
static haft_io_channel_t *values;
static int stream[2];
static void *send_values(void *argument) {
    for (int i = 0; i < VALUES; i++) {
        CHECK_EQUAL(haft_io_channel_send(values, &i), 0);
        if (i % 7 == 0)
            haft_io_sleep(1);
    }
    return argument;
}
static void *send_bytes(void *argument) {
    for (int i = 0; i < VALUES; i++) {
        char byte = (char)i;
        CHECK_EQUAL(haft_io_write(stream[1], &byte, 1), 1);
        if (i % 5 == 0)
            haft_io_yield();
    }
    return argument;
}
BODY(receive_both) {
    values = haft_io_channel_new(sizeof(int), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
    haft_io_spawn(send_values, NULL);
    haft_io_spawn(send_bytes, NULL);
    int value = -1;
    for (int numbers = 0, bytes = 0; numbers < VALUES || bytes < VALUES;) {
        haft_io_select_case_t choices[] = {{.channel = values, .receive = &value},
                                           {.descriptor = stream[0], .events = POLLIN}};
        int index = haft_io_select(choices, 2);
        CHECK(index == 0 || index == 1);
        if (index == 0) {
            CHECK_EQUAL(value, numbers);
            numbers++;
            continue;
        }
        char byte;
        CHECK_EQUAL(haft_io_read(stream[0], &byte, 1), 1);
        CHECK_EQUAL(byte, (char)bytes);
        bytes++;
    }
    haft_io_channel_free(values);
    haft_io_close(stream[0]);
    haft_io_close(stream[1]);
    return NULL;
}
static void nothing_is_lost_between_both(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, receive_both, NULL), 0);
}
static void nothing_is_lost_anywhere(void) {
    check_everywhere(nothing_is_lost_between_both);
}
static void nothing_is_lost_in_a_simulation(void) {
    for (uint64_t seed = 1; seed <= 5; seed++)
        CHECK_EQUAL(
            check_simulate(receive_both, seed, (haft_io_simulation_options_t){.network = true}), 0);
}

/* ---- Ends ---- */

static void *select_for_ever(void *argument) {
    int code;
    select_one(argument, &code, HAFT_IO_FOREVER);
    CHECK(!"a cancel unwinds");
    return NULL;
}
static void *cancel_a_selection(void *argument) {
    haft_io_spawn(select_for_ever, argument);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void *select_and_tell(void *argument) {
    int code;
    CHECK_EQUAL(select_one(argument, &code, HAFT_IO_FOREVER), SOCKET);
    CHECK((code & POLLNVAL) != 0);
    return NULL;
}
BODY(end_in_other_ways) {
    things_t things;
    make_things(&things);
    CHECK_EQUAL(haft_io_scope(cancel_a_selection, &things, NULL), -ECANCELED);
    haft_io_task_t *task = haft_io_async(select_and_tell, &things);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(things.pair[0]);
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
    things.pair[0] = stream[0];
    haft_io_close(stream[1]);
    free_things(&things);
    return NULL;
}
static void a_cancel_and_a_close_end_the_wait(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, end_in_other_ways, NULL), 0);
}
static void a_cancel_and_a_close_end_the_wait_everywhere(void) {
    check_everywhere(a_cancel_and_a_close_end_the_wait);
}
static void outside_of_tasks_descriptors_are_refused(void) {
    haft_io_select_case_t choice = {.descriptor = 0, .events = POLLIN};
    CHECK_EQUAL(haft_io_select(&choice, 1), -EOPNOTSUPP);
    haft_io_event_t event = {.set = true};
    choice = (haft_io_select_case_t){.event = &event};
    CHECK_EQUAL(haft_io_select(&choice, 1), 0);
}

int main(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    check_backend();
    RUN(each_ends_the_wait_everywhere);
    RUN(none_is_passed_over_anywhere);
    RUN(nothing_is_lost_anywhere);
    RUN(nothing_is_lost_in_a_simulation);
    RUN(a_cancel_and_a_close_end_the_wait_everywhere);
    RUN(outside_of_tasks_descriptors_are_refused);
    return check_end();
}
