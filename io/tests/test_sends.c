/* SPDX-License-Identifier: MIT */
/*
 * Sends of tasks that one poll has woken: io_uring may take them all at once, after each task has
 * begun to wait. Only the time that it takes shows this.
 */
#include "check_io.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS = 24, MESSAGE = 5 };
static int ours[PAIRS], theirs[PAIRS];
static ssize_t sent[PAIRS];
static haft_io_scope_t *scopes[PAIRS];

static void open_pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        int ends[2];
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        ours[i] = ends[0];
        theirs[i] = ends[1];
        sent[i] = 0;
        scopes[i] = NULL;
    }
}
static void close_pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        haft_io_close(ours[i]);
        close(theirs[i]);
    }
}

/* All of them read already; one poll then finds a byte for each. */
static void wake_all(void) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(write(theirs[i], "x", 1), 1);
}
static void await_byte(int pair) {
    CHECK_EQUAL(haft_io_read(ours[pair], &(char){0}, 1), 1);
}
static ssize_t arrived(int pair) {
    char bytes[2 * MESSAGE];
    ssize_t got = recv(theirs[pair], bytes, sizeof bytes, MSG_DONTWAIT);
    return got >= 0 ? got : -errno;
}

static void in_scope_of_all(void *(*task)(void *), void (*then)(void)) {
    open_pairs();
    haft_io_task_t *tasks[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        tasks[i] = haft_io_async(task, check_number(i));
    wake_all();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    then();
    close_pairs();
}

/* ---- Each to its own stream, and two to one ---- */

static void *send_after_a_byte(void *pair) {
    int i = (int)(intptr_t)pair;
    await_byte(i);
    sent[i] = haft_io_write(ours[i], "hello", MESSAGE);
    return NULL;
}
static void *send_after_a_byte_to_one(void *pair) {
    await_byte((int)(intptr_t)pair);
    sent[(intptr_t)pair] = haft_io_write(ours[0], "h", 1);
    return NULL;
}
static void all_have_come(void) {
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(sent[i], MESSAGE);
        CHECK_EQUAL(arrived(i), MESSAGE);
    }
}
static void all_have_come_to_one(void) {
    int all = 0;
    for (ssize_t got; (got = arrived(0)) > 0;)
        all += (int)got;
    CHECK_EQUAL(all, PAIRS);
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(sent[i], 1);
}
BODY(send_all) {
    in_scope_of_all(send_after_a_byte, all_have_come);
    in_scope_of_all(send_after_a_byte_to_one, all_have_come_to_one);
    return NULL;
}

/* By tasks of all threads, in many rounds, each of which is over before there is no room in the
   stream. */
static int one_of_all[2];
static void *answer_to_one(void *pair) {
    int i = (int)(intptr_t)pair;
    for (char byte; haft_io_read(ours[i], &byte, 1) == 1;)
        CHECK_EQUAL(haft_io_write(one_of_all[0], &byte, 1), 1);
    return NULL;
}
static void answer(haft_io_scope_t *scope, int first, int end) {
    for (int i = first; i < end; i++)
        haft_io_spawn_with(&(haft_io_task_options_t){.scope = scope}, answer_to_one,
                           check_number(i));
}
static int threads;
static atomic_int half_are_there;
static void *answer_half(void *scope) {
    answer(scope, 0, PAIRS / 2);
    atomic_store(&half_are_there, 1);
    return NULL;
}
static void *ask_all(void *unused) {
    atomic_store(&half_are_there, 0);
    haft_io_spawn(answer_half, haft_io_this_scope());
    while (threads != 1 && !atomic_load(&half_are_there))
        sched_yield(); /* It does not wait, so the other thread takes that task. */
    answer(haft_io_this_scope(), PAIRS / 2, PAIRS);
    for (int round = 0; round < check_times(1000); round++) {
        char bytes[PAIRS];
        for (int i = 0; i < PAIRS; i++)
            CHECK_EQUAL(write(theirs[i], "x", 1), 1);
        for (ssize_t got, all = 0; all < PAIRS; all += got)
            if ((got = haft_io_read(one_of_all[1], bytes, PAIRS)) <= 0)
                haft_io_fail((int)got, "an answer has not come");
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}
BODY(send_all_to_one_in_rounds) {
    open_pairs();
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, one_of_all), 0);
    CHECK_EQUAL(haft_io_scope(ask_all, NULL, NULL), -ECANCELED);
    haft_io_close(one_of_all[0]);
    haft_io_close(one_of_all[1]);
    close_pairs();
    return NULL;
}

/* ---- After another sender, whose message has arrived, and which has not gone on ---- */

enum { FIRST, SECOND, LOAD = 4 << 20 };
static char load[LOAD];
static void *take_load(void *unused) {
    for (size_t got = 0; got < LOAD;) {
        ssize_t more = haft_io_read(theirs[SECOND], &(char[4096]){0}, 4096);
        CHECK(more > 0);
        got += (size_t)more;
    }
    return unused;
}
static void *send_a_load_after_another(void *pair) {
    send_after_a_byte(pair);
    if ((intptr_t)pair != FIRST)
        return NULL;
    while (arrived(SECOND) != MESSAGE)
        haft_io_yield();
    haft_io_task_t *taker = haft_io_async(take_load, NULL);
    CHECK_EQUAL(haft_io_write_all(ours[SECOND], load, LOAD), 0);
    CHECK_EQUAL(haft_io_join(taker, NULL), 0);
    return NULL;
}
static void all_have_sent(void) {
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(sent[i], MESSAGE);
}
BODY(send_a_load_after_others) {
    in_scope_of_all(send_a_load_after_another, all_have_sent);
    return NULL;
}

/* ---- To a receiver that has gone ---- */

static void *send_to_nobody(void *pair) {
    int i = (int)(intptr_t)pair;
    await_byte(i);
    CHECK_EQUAL(shutdown(ours[i], SHUT_WR), 0);
    sent[i] = i % 2 == 0 ? haft_io_write(ours[i], "hello", MESSAGE)
                         : haft_io_send(ours[i], "hello", MESSAGE, 0);
    return NULL;
}
static void all_were_told(void) {
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(sent[i], -EPIPE);
}
BODY(send_all_to_nobody) {
    in_scope_of_all(send_to_nobody, all_were_told);
    return NULL;
}

/* ---- Cancelled, or closed, by the next, before the kernel has taken it ---- */

static ssize_t code_of_the_one_before; /* unless the kernel has taken it by then */
/* The next may come first, before this has its byte. */
static void *send_unless_it_ends_before(void *pair) {
    int i = (int)(intptr_t)pair;
    ssize_t got = haft_io_read(ours[i], &(char){0}, 1);
    CHECK(got == 1 || got == code_of_the_one_before);
    sent[i] = got == 1 ? haft_io_write(ours[i], "hello", MESSAGE) : got;
    return NULL;
}
static void *send_in_scope(void *pair) {
    scopes[(intptr_t)pair] = haft_io_this_scope();
    haft_io_return_cancels(true);
    send_unless_it_ends_before(pair);
    scopes[(intptr_t)pair] = NULL;
    return NULL;
}
static void *cancel_the_one_before(void *pair) {
    int i = (int)(intptr_t)pair;
    if (i % 2 == 0) {
        haft_io_scope(send_in_scope, pair, NULL);
    } else {
        await_byte(i);
        if (scopes[i - 1] != NULL)
            haft_io_scope_cancel(scopes[i - 1]);
    }
    return NULL;
}
static void *close_the_one_before(void *pair) {
    int i = (int)(intptr_t)pair;
    if (i % 2 == 0)
        return send_unless_it_ends_before(pair);
    await_byte(i);
    CHECK_EQUAL(haft_io_close(ours[i - 1]), 0);
    return NULL;
}
static void what_was_reported_is_so(void) {
    for (int i = 0; i < PAIRS; i += 2) {
        ssize_t got = arrived(i);
        CHECK_EQUAL(got > 0 ? got : 0, sent[i] > 0 ? sent[i] : 0);
        CHECK(sent[i] == MESSAGE || sent[i] == code_of_the_one_before);
    }
}
BODY(cancel_and_close) {
    code_of_the_one_before = -ECANCELED;
    in_scope_of_all(cancel_the_one_before, what_was_reported_is_so);
    code_of_the_one_before = -EBADF;
    in_scope_of_all(close_the_one_before, what_was_reported_is_so);
    return NULL;
}

static void *(*body)(void *);
static void run_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, body, NULL), 0);
}
static void what_all_send_arrives(void) {
    body = send_all;
    check_everywhere(run_on);
}
static void run_in_rounds(const haft_io_run_options_t *options) {
    threads = options->threads;
    CHECK_EQUAL(haft_io_run_with(options, send_all_to_one_in_rounds, NULL), 0);
}
static void what_tasks_of_all_threads_send_to_one_stream_is_sent(void) {
    check_everywhere(run_in_rounds);
}
static void who_knows_that_another_has_sent_may_send_next(void) {
    body = send_a_load_after_others;
    check_everywhere(run_on);
}
static void who_sends_to_nobody_gets_an_error_and_no_signal(void) {
    body = send_all_to_nobody;
    check_everywhere(run_on);
}
static void what_was_cancelled_or_closed_is_reported_as_it_was_done(void) {
    body = cancel_and_close;
    check_everywhere(run_on);
}

int main(void) {
    RUN(what_all_send_arrives);
    RUN(what_tasks_of_all_threads_send_to_one_stream_is_sent);
    RUN(who_knows_that_another_has_sent_may_send_next);
    RUN(who_sends_to_nobody_gets_an_error_and_no_signal);
    RUN(what_was_cancelled_or_closed_is_reported_as_it_was_done);
    return check_end();
}
