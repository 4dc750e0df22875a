/* SPDX-License-Identifier: MIT */
/* The flags of receive and send at the ends of simulated streams; simulations that end otherwise
   than well. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "check_io.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int ends[2];
static char buffer[8192];

static const haft_io_simulation_options_t with_short_counts = {.short_counts = true};

BODY(say_world) {
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(haft_io_write_all(ends[1], "world", 5), 0);
    return NULL;
}

BODY(peek) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(say_world, NULL);
    ssize_t seen = haft_io_receive(ends[0], buffer, 5, MSG_PEEK);
    CHECK(seen >= 1 && seen <= 5 && buffer[0] == 'w');
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 5, MSG_PEEK | MSG_WAITALL), 5);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 5, MSG_WAITALL), 5);
    CHECK(memcmp(buffer, "world", 5) == 0);
    return NULL;
}
static void what_is_peeked_at_stays(void) {
    check_seeds(peek, 10, with_short_counts);
}

BODY(receive_all) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(haft_io_write_all(ends[1], "hello ", 6), 0);
    haft_io_spawn(say_world, NULL);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 11, MSG_PEEK | MSG_WAITALL), 11);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer + 11, 11, MSG_WAITALL), 11);
    CHECK(memcmp(buffer, "hello worldhello world", 22) == 0);
    haft_io_spawn(say_world, NULL);
    haft_io_task_t *rest = haft_io_async(say_world, NULL);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 10, MSG_WAITALL), 10);
    haft_io_join(rest, NULL);
    return NULL;
}
static void waitall_waits_for_all(void) {
    check_seeds(receive_all, 10, with_short_counts);
}

BODY(write_much) {
    static char much[6000];
    memset(much, 'x', sizeof much);
    CHECK_EQUAL(haft_io_write_all(ends[1], much, sizeof much), 0);
    haft_io_close(ends[1]);
    return NULL;
}
BODY(receive_much) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(write_much, NULL);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, sizeof buffer, MSG_PEEK | MSG_WAITALL), 4096);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, sizeof buffer, MSG_WAITALL), 6000);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 1, MSG_WAITALL), 0);
    return NULL;
}
static void waitall_ends_with_the_stream(void) {
    check_seeds(receive_much, 10, with_short_counts);
}

BODY(receive_messages) {
    char first[4], second[5], third[2];
    struct iovec parts[] = {{first, 4}, {NULL, 0}, {second, 5}, {third, 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 4};
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    struct msghdr hello = {.msg_iov = &(struct iovec){(char[]){"hello "}, 6}, .msg_iovlen = 1};
    for (ssize_t sent = 0; sent < 6; hello.msg_iov->iov_base = (char *)"hello " + sent) {
        hello.msg_iov->iov_len = 6 - (size_t)sent;
        sent += haft_io_send_message(ends[1], &hello, 0);
    }
    haft_io_spawn(say_world, NULL);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL), 11);
    CHECK(memcmp(first, "hell", 4) == 0 && memcmp(second, "o wor", 5) == 0 &&
          memcmp(third, "ld", 2) == 0);
    struct cmsghdr other = {CMSG_LEN(0), SOL_SOCKET, SO_TIMESTAMP};
    hello.msg_control = &other;
    hello.msg_controllen = sizeof other;
    CHECK_EQUAL(haft_io_send_message(ends[1], &hello, 0), -EOPNOTSUPP);
    return NULL;
}
static void waitall_waits_for_all_of_a_message(void) {
    check_seeds(receive_messages, 10, with_short_counts);
}

BODY(peek_at_messages) {
    char first[4], second[5], third[2];
    struct iovec parts[] = {{first, 4}, {NULL, 0}, {second, 5}, {third, 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 4};
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(haft_io_write_all(ends[1], "hello ", 6), 0);
    haft_io_spawn(say_world, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(haft_io_receive_message(ends[0], &message, MSG_WAITALL | MSG_PEEK), 11);
        CHECK(memcmp(first, "hell", 4) == 0 && memcmp(second, "o wor", 5) == 0 &&
              memcmp(third, "ld", 2) == 0);
        memset(third, 0, sizeof third);
    }
    return NULL;
}
static void waitall_peeks_at_all_of_a_message(void) {
    check_seeds(peek_at_messages, 10, with_short_counts);
}

/* On the system's network, too. */
static int events_of(int end) {
    struct pollfd entry = {end, POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLRDHUP | POLLPRI,
                           0};
    int ready = haft_io_poll(&entry, 1, 0);
    CHECK(ready >= 0);
    return entry.revents;
}
BODY(end_a_stream) {
    enum { TO_WRITE = POLLOUT | POLLWRNORM, TO_READ = POLLIN | POLLRDNORM };
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(events_of(ends[0]), TO_WRITE);
    CHECK_EQUAL(haft_io_write_all(ends[0], "unread", 6), 0);
    CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
    CHECK_EQUAL(events_of(ends[0]), TO_READ | TO_WRITE);
    CHECK_EQUAL(haft_io_shutdown(ends[1], SHUT_WR), 0);
    CHECK_EQUAL(events_of(ends[0]), TO_READ | TO_WRITE | POLLRDHUP);
    CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLRDHUP), POLLRDHUP);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    CHECK_EQUAL(events_of(ends[0]), TO_READ | TO_WRITE | POLLRDHUP | POLLHUP | POLLERR);
    CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLPRI), POLLHUP | POLLERR);
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), -EPIPE);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, 10), 1);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, 10), -ECONNRESET);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, 10), 0);
    CHECK_EQUAL(events_of(ends[0]), TO_READ | TO_WRITE | POLLRDHUP | POLLHUP);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    return NULL;
}
static void the_end_of_a_stream_is_told_as_by_the_system(void) {
    CHECK_RUNS(end_a_stream);
    check_seeds(end_a_stream, 10, (haft_io_simulation_options_t){.network = true});
}

static void *receive_in_vain(void *got) {
    *(ssize_t *)got = haft_io_receive(ends[0], buffer, 6, MSG_WAITALL);
    haft_io_yield();
    CHECK(!"a wait after the cancel returned");
    return NULL;
}
BODY(cancel_a_receiver) {
    ssize_t got = 0;
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(say_world, NULL);
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 2 * HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, receive_in_vain, &got, NULL), -ETIMEDOUT);
    CHECK_EQUAL(got, 5);
    return NULL;
}
static void a_cancel_leaves_waitall_what_it_has(void) {
    check_seeds(cancel_a_receiver, 10, with_short_counts);
}

BODY(use_other_flags) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 1, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 1, MSG_OOB), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_send(ends[1], "x", 1, MSG_OOB), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_send(ends[1], "x", 1, MSG_NOSIGNAL | MSG_MORE), 1);
    CHECK_EQUAL(haft_io_receive(ends[0], buffer, 1, MSG_DONTWAIT), 1);
    return NULL;
}
static void dontwait_does_not_wait_and_what_is_not_simulated_is_refused(void) {
    check_seeds(use_other_flags, 10, with_short_counts);
}

BODY(simulate_inside) {
    CHECK_EQUAL(haft_io_simulate(use_other_flags, NULL), -EBUSY);
    return NULL;
}
static void simulate_in_a_run(void) {
    exit(haft_io_run(simulate_inside, NULL));
}
static void a_simulation_that_has_not_begun_has_no_seed_to_print(void) {
    if (!check_follows_children())
        return;
    check_child_t child = check_child(simulate_in_a_run);
    CHECK_EQUAL(child.status, 0);
    CHECK(strstr(child.output, "seed") == NULL);
}

enum { CHOICES = 33 };
static char chosen[CHOICES + 1];
BODY(choose_in_simulation) {
    haft_io_select_case_t choices[2];
    int value = 0;
    for (int i = 0; i < 2; i++) {
        choices[i] = (haft_io_select_case_t){.channel = haft_io_channel_new(sizeof(int), CHOICES),
                                             .receive = &value};
        for (int k = 0; k < CHOICES; k++)
            haft_io_channel_send(choices[i].channel, &k);
    }
    for (int k = 0; k < CHOICES; k++)
        chosen[k] = (char)('0' + haft_io_select(choices, 2));
    for (int i = 0; i < 2; i++)
        haft_io_channel_free(choices[i].channel);
    return NULL;
}
static void the_seed_decides_among_choices(void) {
    char before[CHOICES + 1];
    const haft_io_simulation_options_t options = {.seed = 5};
    CHECK_EQUAL(haft_io_simulate_with(&options, choose_in_simulation, NULL), 0);
    memcpy(before, chosen, sizeof before);
    CHECK_EQUAL(haft_io_simulate_with(&options, choose_in_simulation, NULL), 0);
    CHECK_SAME_TEXT(chosen, before);
}

static const char *seed_given;
static int run_with_seed(void) {
    setenv("HAFT_IO_SEED", seed_given, 1);
    return haft_io_simulate(check_nothing, NULL);
}
static void simulate_with_what_is_no_seed(void) {
    CHECK_EQUAL(run_with_seed(), -EINVAL);
}
static void simulate_with_a_seed(void) {
    CHECK_EQUAL(run_with_seed(), 0);
}
static void what_is_no_seed_in_the_environment_is_refused(void) {
    static const char *const wrong[] = {"seven", "7up", "-7", " 7", "0", "18446744073709551616"},
                             *const right[] = {"7", "18446744073709551615", ""};
    if (!check_follows_children())
        return;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        seed_given = wrong[i];
        check_child_t child = check_child(simulate_with_what_is_no_seed);
        CHECK_EQUAL(child.status, 0);
        CHECK_CONTAINS(child.output, seed_given);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        seed_given = right[i];
        check_child_t child = check_child(simulate_with_a_seed);
        CHECK_EQUAL(child.status, 0);
        CHECK_EQUAL(strlen(child.output), 0);
    }
}

static void *receive_for_ever(void *unused) {
    haft_io_receive(ends[0], buffer, 1, 0);
    return unused;
}
static int shield_code;
static void *receive_in_shields(void *depth) {
    if (depth != NULL)
        shield_code = haft_io_shield(receive_in_shields, check_number((intptr_t)depth - 1));
    else
        receive_for_ever(NULL);
    return NULL;
}
static bool outside_was_unwound;
static void note_unwinding(const int *unused) {
    (void)unused;
    outside_was_unwound = true;
}
BODY(wait_in_shields) {
    __attribute__((cleanup(note_unwinding))) int unwound = 0;
    (void)unwound;
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(receive_for_ever, NULL);
    receive_in_shields(check_number(2));
    haft_io_yield();
    CHECK(!"a wait after the cancel returned");
    return NULL;
}
static void a_deadlock_in_shields_is_an_error_of_theirs(void) {
    CHECK_EQUAL(haft_io_simulate(wait_in_shields, NULL), -EDEADLK);
    CHECK_EQUAL(shield_code, -EDEADLK);
    CHECK(outside_was_unwound);
}

static void clean_up_for_ever(const int *unused) {
    (void)unused;
    shield_code = haft_io_shield(receive_for_ever, NULL);
}
BODY(fail_and_wait) {
    __attribute__((cleanup(clean_up_for_ever))) int unwound = 0;
    (void)unwound;
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_fail(-EIO, "no more");
}
static void a_deadlock_in_a_cleanup_leaves_the_failure_what_it_is(void) {
    CHECK_EQUAL(haft_io_simulate(fail_and_wait, NULL), -EIO);
    CHECK_EQUAL(shield_code, -EDEADLK);
}

static haft_io_event_t never;
BODY(wait_to_the_end) {
    haft_io_event_wait_to_the_end(&never);
    return NULL;
}
static void simulate_a_wait_to_the_end(void) {
    haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 4711}, wait_to_the_end, NULL);
}
static void who_waits_for_ever_where_no_cancel_reaches_ends_the_process_with_the_seed(void) {
    if (check_follows_children())
        CHECK_ABORTS(simulate_a_wait_to_the_end,
                     "Tasks wait for ever where no cancel reaches them. (The seed was 4711.)");
}

/* A race as of two threads: another task goes on between a look at the count and its change. */
static int count, log_ends[2];
static haft_io_mutex_t mutex;
static void *count_around_a_write(void *unused) {
    int seen = count;
    haft_io_write(log_ends[0], "x", 1);
    count = seen + 1;
    return unused;
}
static void *count_around_a_lock(void *unused) {
    haft_io_mutex_lock(&mutex);
    int seen = count;
    haft_io_mutex_unlock(&mutex);
    haft_io_mutex_lock(&mutex);
    count = seen + 1;
    haft_io_mutex_unlock(&mutex);
    return unused;
}
static void *count_in_a_lock(void *unused) {
    haft_io_mutex_lock(&mutex);
    count_around_a_write(unused);
    haft_io_mutex_unlock(&mutex);
    return unused;
}
static void *count_twice(void *counts) {
    count = 0;
    CHECK_EQUAL(haft_io_simulated_pair(log_ends), 0);
    haft_io_call_t calls[2] = {*(haft_io_call_t *)counts, *(haft_io_call_t *)counts};
    CHECK_EQUAL(haft_io_all(calls, 2), 0);
    return NULL;
}
/* In how many of 100 runs one of two was lost. */
static int count_races(void *(*function)(void *), unsigned switches_one_in) {
    haft_io_call_t call = {function, NULL, NULL};
    int races = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        haft_io_simulation_options_t how = {.seed = seed, .switches_one_in = switches_one_in};
        CHECK_EQUAL(haft_io_simulate_with(&how, count_twice, &call), 0);
        int first = count;
        CHECK_EQUAL(haft_io_simulate_with(&how, count_twice, &call), 0);
        CHECK_EQUAL(count, first); /* by the same seed */
        races += count != 2;
    }
    return races;
}
static void a_race_between_operations_is_found_where_each_may_switch(void) {
    for (unsigned one_in = 1; one_in <= 4; one_in++) {
        CHECK(count_races(count_around_a_write, one_in) > 0);
        CHECK(count_races(count_around_a_lock, one_in) > 0);
        CHECK_EQUAL(count_races(count_in_a_lock, one_in), 0);
    }
    CHECK_EQUAL(count_races(count_around_a_write, 0), 0);
    CHECK_EQUAL(count_races(count_around_a_lock, 0), 0);
}

/* ---- Which task goes on ---- */

enum { LOTS = 6, DRAWS = 3000 };
static unsigned first_of[LOTS], last_of[LOTS], drawn_lots;
static void *draw_lot(void *number) {
    if (drawn_lots++ == 0)
        first_of[(uintptr_t)number]++;
    if (drawn_lots == LOTS)
        last_of[(uintptr_t)number]++;
    return NULL;
}
BODY(let_tasks_draw_lots) {
    for (int i = 0; i < DRAWS; i++) {
        haft_io_task_t *tasks[LOTS];
        drawn_lots = 0;
        for (uintptr_t task = 0; task < LOTS; task++)
            tasks[task] = haft_io_async(draw_lot, (void *)task);
        for (int task = 0; task < LOTS; task++)
            haft_io_join(tasks[task], NULL);
    }
    return NULL;
}
static void each_ready_task_has_the_same_chance(void) {
    haft_io_simulation_options_t how = {.seed = 42};
    CHECK_EQUAL(haft_io_simulate_with(&how, let_tasks_draw_lots, NULL), 0);
    for (int i = 0; i < LOTS; i++) { /* 500 each; four deviations are 82 */
        CHECK(first_of[i] > 400 && first_of[i] < 600);
        CHECK(last_of[i] > 400 && last_of[i] < 600);
    }
}

static size_t yields;
static void *yield_often(void *unused) {
    for (int i = 0; i < 10; i++, yields++)
        haft_io_yield();
    return unused;
}
enum { MANY = 10000 };
BODY(let_many_yield) {
    for (int i = 0; i < check_times(MANY); i++)
        CHECK_EQUAL(haft_io_spawn(yield_often, NULL), 0);
    return NULL;
}
/* (A switch took 65 us among so many.) */
static void many_ready_tasks_take_turns(void) {
    CHECK_EQUAL(haft_io_simulate(let_many_yield, NULL), 0);
    CHECK_EQUAL(yields, 10 * check_times(MANY));
}

int main(void) {
    RUN(each_ready_task_has_the_same_chance);
    RUN(many_ready_tasks_take_turns);
    RUN(what_is_peeked_at_stays);
    RUN(waitall_waits_for_all);
    RUN(waitall_waits_for_all_of_a_message);
    RUN(waitall_peeks_at_all_of_a_message);
    RUN(waitall_ends_with_the_stream);
    RUN(the_end_of_a_stream_is_told_as_by_the_system);
    RUN(a_cancel_leaves_waitall_what_it_has);
    RUN(dontwait_does_not_wait_and_what_is_not_simulated_is_refused);
    RUN(a_simulation_that_has_not_begun_has_no_seed_to_print);
    RUN(the_seed_decides_among_choices);
    RUN(what_is_no_seed_in_the_environment_is_refused);
    RUN(a_race_between_operations_is_found_where_each_may_switch);
    RUN(a_deadlock_in_shields_is_an_error_of_theirs);
    RUN(a_deadlock_in_a_cleanup_leaves_the_failure_what_it_is);
    RUN(who_waits_for_ever_where_no_cancel_reaches_ends_the_process_with_the_seed);
    return check_end();
}
