/* SPDX-License-Identifier: MIT */
/*
 * An answer and a wait for the next message: a write of all, and then a read into lent memory; a
 * wait without a stack (haft_io_rest), and both as one call (haft_io_send_and_rest). io_uring
 * submits together what tasks do that the same poll has woken: so there are many here, each with a
 * connection of its own.
 */
#include "check_io.h"

#include <alloca.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS = 12, ROUNDS = 10, MUCH = HAFT_IO_LENT_SIZE, LOAD = 4 << 20 };
static int ours[PAIRS], theirs[PAIRS];
static ssize_t answers[PAIRS];
static haft_io_scope_t *scopes[PAIRS]; /* by `started`, until they are cancelled */
static char much[MUCH];
static bool alone; /* the run has one thread */

static ssize_t answer_and_read(int descriptor, const void *buffer, size_t size,
                               const void **bytes) {
    int code = haft_io_write_all(descriptor, buffer, size);
    if (code == 0)
        return haft_io_read_lent(descriptor, bytes);
    haft_io_give_back(*bytes);
    *bytes = NULL;
    return code;
}

/* ---- Connections ---- */

static void open_pairs(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    for (int i = 0; i < PAIRS; i++) {
        theirs[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQUAL(connect(theirs[i], (struct sockaddr *)&address, sizeof address), 0);
        ours[i] = haft_io_accept(listener);
        CHECK(ours[i] >= 0);
        answers[i] = 1;
        scopes[i] = NULL;
    }
    haft_io_close(listener);
}
static void close_pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        haft_io_close(ours[i]);
        if (theirs[i] >= 0)
            close(theirs[i]);
    }
}
static void they_send(int pair, const char *text) {
    CHECK_EQUAL(send(theirs[pair], text, strlen(text), 0), (ssize_t)strlen(text));
}
/* So many bytes, which come there while others run. */
static void they_get(int pair, char *bytes, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t more = recv(theirs[pair], bytes + got, size - got, MSG_DONTWAIT);
        if (more > 0)
            got += (size_t)more;
        else
            haft_io_sleep(HAFT_IO_MILLISECOND);
    }
}
static void they_get_text(int pair, const char *text) {
    char bytes[100];
    they_get(pair, bytes, strlen(text));
    CHECK(memcmp(bytes, text, strlen(text)) == 0);
}

static int started, woken;
static bool counts_stacks; /* elsewhere some are kept of tasks that wait at the same time */
static void count(int *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
}
static void await_all(const int *counter) {
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) != PAIRS)
        haft_io_sleep(HAFT_IO_MILLISECOND);
}

/* Each waits for a first byte before it does what is to be tested, so that one poll wakes them
   all. */
static void (*each)(int pair, const void **bytes);
static void *serve(void *pair) {
    int i = (int)(intptr_t)pair;
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    count(&started);
    ssize_t got = haft_io_read_lent(ours[i], &bytes);
    count(&woken);
    if (got == 1)
        each(i, &bytes);
    else /* The other of two threads may have ended it. */
        answers[i] = got;
    return NULL;
}
static void *serve_in_scope(void *pair) {
    scopes[(intptr_t)pair] = haft_io_this_scope();
    haft_io_return_cancels(true);
    return serve(pair);
}
static void *serve_apart(void *pair) {
    haft_io_scope(serve_in_scope, pair, NULL);
    return NULL;
}
static haft_io_task_t *servers[PAIRS];
static void begin(void *(*task)(void *), void (*what)(int pair, const void **bytes)) {
    each = what;
    started = woken = 0;
    open_pairs();
    for (int i = 0; i < PAIRS; i++)
        servers[i] = haft_io_async(task, check_number(i));
    await_all(&started);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < PAIRS; i++)
        they_send(i, "x");
    await_all(&woken);
}
static void finish(void) {
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(haft_io_join(servers[i], NULL), 0);
    close_pairs();
}

/* ---- Answers and what comes next ---- */

static void echo(int pair, const void **bytes) {
    ssize_t size = 1;
    while (size > 0)
        size = answer_and_read(ours[pair], *bytes, (size_t)size, bytes);
    CHECK(*bytes == NULL);
    answers[pair] = size;
}
BODY(echo_many) {
    begin(serve, echo);
    for (int i = 0; i < PAIRS; i++)
        they_get_text(i, "x");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PAIRS; i++)
            they_send(i, "a message");
        for (int i = 0; i < PAIRS; i++)
            they_get_text(i, "a message");
    }
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(shutdown(theirs[i], SHUT_WR), 0);
    finish();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], 0);
    return NULL;
}

/* The next has come before the answer is sent. */
static void answer_late(int pair, const void **bytes) {
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    answers[pair] = answer_and_read(ours[pair], "late", 4, bytes);
    CHECK(answers[pair] == 4 && memcmp(*bytes, "next", 4) == 0);
}
/* To all tasks, which end with that. */
static void send_next(void) {
    for (int i = 0; i < PAIRS; i++)
        they_send(i, "next");
    finish();
}
/* And each has got it. */
static void check_next(void) {
    send_next();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], 4);
}
BODY(next_comes_first) {
    begin(serve, answer_late);
    send_next();
    return NULL;
}

/* ---- More than the system takes at once ---- */

static void send_much(int pair, const void **bytes) {
    for (int sent = 0; sent < LOAD; sent += MUCH)
        if (sent + MUCH < LOAD)
            CHECK_EQUAL(haft_io_write_all(ours[pair], much, MUCH), 0);
        else
            answers[pair] = answer_and_read(ours[pair], much, MUCH, bytes);
}
static void send_much_at_once(int pair, const void **bytes) {
    int size = 1;
    setsockopt(ours[pair], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    answers[pair] = answer_and_read(ours[pair], much, MUCH, bytes);
}
static void receive_much(int pair, size_t all) {
    static char bytes[MUCH];
    for (size_t got = 0; got < all; got += MUCH) {
        they_get(pair, bytes, MUCH);
        CHECK(memcmp(bytes, much, MUCH) == 0);
    }
}
static void send_and_receive_much(void (*what)(int pair, const void **bytes), size_t all) {
    begin(serve, what);
    for (int i = 0; i < PAIRS; i++)
        receive_much(i, all);
    for (int i = 0; i < PAIRS; i++)
        they_send(i, "enough");
    finish();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], 6);
}
BODY(answer_much) {
    for (int i = 0; i < MUCH; i++)
        much[i] = (char)(i * 7 + i / 256);
    send_and_receive_much(send_much_at_once, MUCH);
    send_and_receive_much(send_much, LOAD);
    return NULL;
}

/* ---- Errors ---- */

static void answer_text(int pair, const void **bytes) {
    answers[pair] = answer_and_read(ours[pair], "text", 4, bytes);
    CHECK((*bytes != NULL) == (answers[pair] > 0));
}
static void shut_and_answer(int pair, const void **bytes) {
    CHECK_EQUAL(shutdown(ours[pair], SHUT_WR), 0);
    answer_text(pair, bytes);
}
BODY(answer_nobody) {
    begin(serve, shut_and_answer);
    finish();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], -EPIPE);
    return NULL;
}
BODY(answer_a_peer_that_resets) {
    begin(serve, answer_text);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(setsockopt(theirs[i], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
                               sizeof(struct linger)),
                    0);
        close(theirs[i]);
        theirs[i] = -1;
    }
    finish();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], -ECONNRESET);
    return NULL;
}
BODY(close_the_connection) {
    begin(serve, answer_text);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(haft_io_close(ours[i]), 0);
        ours[i] = -1;
    }
    finish();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], -EBADF);
    return NULL;
}
BODY(cancel_all) {
    begin(serve_apart, answer_text);
    for (int i = 0; i < PAIRS; i++)
        haft_io_scope_cancel(scopes[i]);
    finish();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(answers[i], -ECANCELED);
    return NULL;
}

/* Before the system has been asked to send: by the next that the same poll has woken. */
/* ---- Others that use the connection ---- */

/* A poll takes the connection from the kernel's own deliveries; then the kernel is asked again. */
BODY(poll_meanwhile) {
    begin(serve, answer_text);
    for (int i = 0; i < PAIRS; i++) {
        struct pollfd entry = {ours[i], POLLIN, 0};
        CHECK_EQUAL(haft_io_poll(&entry, 1, haft_io_now()), 0);
    }
    check_next();
    return NULL;
}
BODY(read_meanwhile) {
    begin(serve, answer_text);
    for (int i = 0; i < PAIRS && alone; i++) /* So they all wait by then. */
        CHECK_EQUAL(haft_io_read(ours[i], &(char){0}, 1), -EBUSY);
    send_next();
    return NULL;
}

/* The answer's task waits for the next message: another may write meanwhile, and wait for that,
   too. */
static void *get_load(void *unused) {
    receive_much(0, LOAD);
    return unused;
}
BODY(write_meanwhile) {
    begin(serve, answer_text);
    they_get_text(0, "text");
    haft_io_task_t *reader = haft_io_async(get_load, NULL);
    CHECK_EQUAL(setsockopt(ours[0], SOL_SOCKET, SO_SNDBUF, &(int){MUCH}, sizeof(int)), 0);
    for (int sent = 0; sent < LOAD; sent += MUCH)
        CHECK_EQUAL(haft_io_write_all(ours[0], much, MUCH), 0);
    CHECK_EQUAL(haft_io_join(reader, NULL), 0);
    check_next();
    return NULL;
}

/* ---- Without a connection, without a run ---- */

BODY(answer_over_a_pair) {
    int ends[2];
    char text[4];
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_write_all(ends[1], "next", 4), 0);
    CHECK_EQUAL(answer_and_read(ends[0], "text", 4, &bytes), 4);
    CHECK(memcmp(bytes, "next", 4) == 0);
    CHECK_EQUAL(haft_io_read(ends[1], text, sizeof text), 4);
    CHECK(memcmp(text, "text", 4) == 0);
    haft_io_close(ends[1]);
    CHECK_EQUAL(answer_and_read(ends[0], NULL, 0, &bytes), 0);
    CHECK_EQUAL(haft_io_write_all(ends[0], NULL, 0), 0);
    CHECK(bytes == NULL);
    haft_io_close(ends[0]);
    CHECK_EQUAL(answer_and_read(ends[0], "text", 4, &bytes), -EBADF);
    return NULL;
}
static void without_a_run_it_blocks(void) {
    answer_over_a_pair(NULL);
}
static void in_a_simulation_it_is_the_same(void) {
    CHECK_EQUAL(haft_io_simulate(answer_over_a_pair, NULL), 0);
}

/* ---- Waits without a stack ---- */

typedef struct {
    haft_io_rest_t rest;
    int64_t deadline; /* 0: none */
    int pair, turns;
    ssize_t got;       /* by the last read */
    const void *bytes; /* lent */
    void *(*then)(void *);
} resting_t;
static resting_t resting[PAIRS];
static int at_rest; /* that rest, or are about to */
static int ended;
static bool rest_sends; /* the answer */

static void *answer_and_rest(void *argument);
static void rest_again(resting_t *self) {
    haft_io_rest(&self->rest, ours[self->pair],
                 self->deadline != 0 ? self->deadline : HAFT_IO_FOREVER, answer_and_rest, self);
    count(&at_rest);
}
static void *answer_and_rest(void *argument) {
    resting_t *self = argument;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, self->deadline != 0 ? self->deadline : HAFT_IO_FOREVER);
    self->turns++;
    self->got = haft_io_read_lent(ours[self->pair], &self->bytes);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&resting), self->pair + 1);
    CHECK_EQUAL(haft_io_rest_sent(&self->rest), 0);
    if (self->got > 0 && rest_sends) {
        haft_io_send_and_rest(&self->rest, self->bytes, (size_t)self->got, ours[self->pair],
                              HAFT_IO_FOREVER, answer_and_rest, self);
        self->bytes = NULL;
    } else if (self->got > 0 &&
               haft_io_write_all(ours[self->pair], self->bytes, (size_t)self->got) == 0) {
        rest_again(self);
    } else {
        haft_io_give_back(self->bytes);
        self->bytes = NULL;
    }
    return &resting[self->pair];
}
static void *begin_to_rest(void *argument) {
    resting_t *self = argument;
    haft_io_return_cancels(true); /* of this turn only */
    haft_io_task_set_name("one that rests");
    CHECK_EQUAL(haft_io_local_set(&resting, check_number(self->pair + 1)), 0);
    rest_again(self);
    return NULL;
}
static void rest_all(int64_t deadline) {
    open_pairs();
    at_rest = 0;
    for (int i = 0; i < PAIRS; i++) {
        resting[i] = (resting_t){.pair = i, .deadline = deadline};
        servers[i] = haft_io_async(begin_to_rest, &resting[i]);
    }
    await_all(&at_rest);
    haft_io_sleep(HAFT_IO_MILLISECOND);
}
static void finish_resting(ssize_t got) {
    for (int i = 0; i < PAIRS; i++) {
        void *result = NULL;
        CHECK_EQUAL(haft_io_join(servers[i], &result), 0);
        CHECK(result == &resting[i]);
        CHECK_EQUAL(resting[i].got, got);
    }
    close_pairs();
}
BODY(rest_and_answer) {
    size_t before = haft_pool_report().stacks;
    rest_all(0);
    for (int round = 0; round < ROUNDS; round++) {
        if (counts_stacks)
            CHECK(haft_pool_report().stacks <= before + 2);
        for (int i = 0; i < PAIRS; i++)
            they_send(i, "a message");
        for (int i = 0; i < PAIRS; i++)
            they_get_text(i, "a message");
    }
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(shutdown(theirs[i], SHUT_WR), 0);
    finish_resting(0);
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(resting[i].turns, ROUNDS + 1);
    return NULL;
}
BODY(send_and_rest) {
    rest_sends = true;
    counts_stacks = alone;
    rest_and_answer(NULL);
    rest_sends = false;
    return NULL;
}

/* The peers do not read, and there is room for nothing. */
static size_t filled[PAIRS];
static void fill(int pair) {
    filled[pair] = 0;
    for (ssize_t more; (more = haft_io_send(ours[pair], much, sizeof much, MSG_DONTWAIT)) > 0;)
        filled[pair] += (size_t)more;
}
static void end_answer(resting_t *const *self) {
    (*self)->got = haft_io_rest_sent(&(*self)->rest);
    count(&ended);
}
static void *read_after_answer(void *argument) {
    __attribute__((cleanup(end_answer))) resting_t *self = argument;
    char byte;
    if (haft_io_rest_sent(&self->rest) == 0 && self->deadline == 0)
        CHECK_EQUAL(haft_io_read(ours[self->pair], &byte, 1), 1);
    return NULL;
}
static void *send_much_and_rest(void *argument) {
    resting_t *self = argument;
    char *bytes = haft_io_lend();
    memset(bytes, 'a' + self->pair, MUCH);
    fill(self->pair);
    count(&at_rest);
    haft_io_send_and_rest(&self->rest, bytes, MUCH, ours[self->pair],
                          self->deadline != 0 ? self->deadline : HAFT_IO_FOREVER, read_after_answer,
                          self);
    return NULL;
}
static void begin_to_send(void *(*task)(void *), int64_t deadline) {
    open_pairs();
    at_rest = ended = 0;
    for (int i = 0; i < PAIRS; i++) {
        resting[i] = (resting_t){.pair = i, .deadline = deadline};
        servers[i] = haft_io_async(task, &resting[i]);
    }
    await_all(&at_rest);
}
/* How many have been told this; the others are told that it was sent. */
static int finish_to_send(ssize_t sent) {
    int count = 0;
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(haft_io_join(servers[i], NULL), 0);
        CHECK(resting[i].got == sent || resting[i].got == 0);
        count += resting[i].got == sent;
    }
    CHECK_EQUAL(ended, PAIRS);
    close_pairs();
    return count;
}
BODY(send_much_before_a_rest) {
    static char bytes[MUCH];
    begin_to_send(send_much_and_rest, 0);
    for (int i = 0; i < PAIRS; i++) {
        for (size_t left = filled[i]; left != 0;) {
            size_t part = left < MUCH ? left : MUCH;
            they_get(i, bytes, part);
            left -= part;
        }
        they_get(i, bytes, MUCH);
        for (int at = 0; at < MUCH; at++)
            CHECK(bytes[at] == 'a' + i);
        CHECK_EQUAL(resting[i].turns, 0);
        they_send(i, "x");
    }
    CHECK_EQUAL(finish_to_send(0), PAIRS);
    return NULL;
}
/* The kernel may move what it has to the peer meanwhile, and so make room. */
BODY(send_in_vain_before_a_rest) {
    begin_to_send(send_much_and_rest, 20 * HAFT_IO_MILLISECOND);
    CHECK(finish_to_send(-ETIMEDOUT) != 0);
    return NULL;
}
static void *send_to_nobody_and_rest(void *argument) {
    resting_t *self = argument;
    char *bytes = haft_io_lend();
    memset(bytes, 'a', 9);
    CHECK_EQUAL(shutdown(ours[self->pair], SHUT_WR), 0);
    haft_io_send_and_rest(&self->rest, bytes, 9, ours[self->pair], HAFT_IO_FOREVER,
                          read_after_answer, self);
    count(&at_rest);
    return NULL;
}
BODY(send_to_nobody_before_a_rest) {
    begin_to_send(send_to_nobody_and_rest, 0);
    CHECK_EQUAL(finish_to_send(-EPIPE), PAIRS);
    return NULL;
}

/* A cancel, or a close, when the answer is about to be sent: it is sent, and to nobody else. */
static void *wait_to_be_cancelled(void *argument) {
    __attribute__((cleanup(end_answer), unused)) resting_t *self = argument;
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK(!"it is cancelled");
    return NULL;
}
static void *send_and_rest_to_be_cancelled(void *argument) {
    resting_t *self = argument;
    char *bytes = haft_io_lend();
    haft_io_return_cancels(true);
    memcpy(bytes, "an answer", 9);
    char byte;
    CHECK_EQUAL(haft_io_read(ours[self->pair], &byte, 1), 1);
    haft_io_send_and_rest(&self->rest, bytes, 9, ours[self->pair], HAFT_IO_FOREVER,
                          wait_to_be_cancelled, self);
    count(&at_rest);
    return NULL;
}
BODY(send_in_a_scope) {
    for (int i = 0; i < PAIRS; i++) {
        resting[i] = (resting_t){.pair = i};
        haft_io_spawn(send_and_rest_to_be_cancelled, &resting[i]);
    }
    haft_io_return_cancels(true);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < PAIRS; i++)
        they_send(i, "x");
    while (__atomic_load_n(&at_rest, __ATOMIC_ACQUIRE) != PAIRS)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(cancel_before_it_is_sent) {
    open_pairs();
    at_rest = ended = 0;
    CHECK_EQUAL(haft_io_scope(send_in_a_scope, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(ended, PAIRS);
    for (int i = 0; i < PAIRS; i++)
        they_get_text(i, "an answer");
    close_pairs();
    return NULL;
}
static void *send_and_rest_to_be_closed(void *argument) {
    resting_t *self = argument;
    char *bytes = haft_io_lend(), byte;
    memcpy(bytes, "an answer", 9);
    CHECK_EQUAL(haft_io_read(ours[self->pair], &byte, 1), 1);
    haft_io_send_and_rest(&self->rest, bytes, 9, ours[self->pair], HAFT_IO_FOREVER, check_nothing,
                          self);
    count(&at_rest);
    return NULL;
}
BODY(close_before_it_is_sent) {
    char bytes[10];
    open_pairs();
    at_rest = 0;
    for (int i = 0; i < PAIRS; i++) {
        resting[i] = (resting_t){.pair = i};
        servers[i] = haft_io_async(send_and_rest_to_be_closed, &resting[i]);
    }
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < PAIRS; i++)
        they_send(i, "x");
    while (__atomic_load_n(&at_rest, __ATOMIC_ACQUIRE) != PAIRS)
        haft_io_yield();
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(haft_io_close(ours[i]), 0);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(haft_io_join(servers[i], NULL), 0);
        they_get_text(i, "an answer");
        CHECK_EQUAL(recv(theirs[i], bytes, sizeof bytes, 0), 0);
        CHECK_EQUAL(close(theirs[i]), 0);
    }
    return NULL;
}

/* An answer without room waits for its turn on a stack, when the number becomes another file's. */
static void *note_answer(void *argument) {
    resting_t *self = argument;
    end_answer(&self);
    return NULL;
}
static void *fill_and_rest_to_be_closed(void *argument) {
    resting_t *self = argument;
    fill(self->pair);
    char *bytes = haft_io_lend();
    memset(bytes, 'b', MUCH);
    haft_io_send_and_rest(&self->rest, bytes, MUCH, ours[self->pair],
                          haft_io_now() + 10 * HAFT_IO_SECOND, note_answer, self);
    count(&at_rest);
    return NULL;
}
BODY(close_when_there_is_no_room) {
    int others[PAIRS][2];
    char byte;
    if (!alone) /* it is sent by the call */
        return NULL;
    open_pairs();
    at_rest = ended = 0;
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, others[i]), 0);
        resting[i] = (resting_t){.pair = i};
        servers[i] = haft_io_async(fill_and_rest_to_be_closed, &resting[i]);
    }
    while (__atomic_load_n(&at_rest, __ATOMIC_ACQUIRE) != PAIRS)
        haft_io_yield();
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(haft_io_close(ours[i]), 0);
        CHECK_EQUAL(dup2(others[i][0], ours[i]), ours[i]);
    }
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(haft_io_join(servers[i], NULL), 0);
        CHECK(resting[i].got == -EBADF || resting[i].got == 0); /* there was room after all */
        CHECK_EQUAL(recv(others[i][1], &byte, 1, MSG_DONTWAIT), -1);
        CHECK_EQUAL(close(others[i][0]), 0);
        CHECK_EQUAL(close(others[i][1]), 0);
    }
    CHECK_EQUAL(ended, PAIRS);
    close_pairs();
    return NULL;
}

/* A function that is unwound afterwards, or rests otherwise, sends nothing; the memory is given
   back. */
static void *change_its_mind(void *argument) {
    resting_t *self = argument;
    haft_io_send_and_rest(&self->rest, haft_io_lend(), 9, ours[self->pair], HAFT_IO_FOREVER,
                          read_after_answer, self);
    if (self->pair % 2 == 0)
        haft_io_fail(-EIO, "after the call");
    haft_io_send_and_rest(&self->rest, haft_io_lend(), 0, ours[self->pair], HAFT_IO_FOREVER,
                          read_after_answer, self);
    return NULL;
}
BODY(change_all_minds) {
    for (int i = 0; i < PAIRS; i++) {
        resting[i] = (resting_t){.pair = i};
        haft_io_spawn(change_its_mind, &resting[i]);
    }
    return NULL;
}
static void ignore_failure(haft_io_on_failure_t *unused, const haft_io_failure_t *failure) {
    (void)unused;
    CHECK_EQUAL(failure->code, -EIO);
}
BODY(send_nothing_before_a_rest) {
    haft_io_on_failure_t on_failure = {ignore_failure};
    char byte;
    if (!alone) /* it is sent by the call */
        return NULL;
    open_pairs();
    ended = 0;
    for (int i = 0; i < PAIRS; i++)
        they_send(i, "x");
    CHECK_EQUAL(haft_io_scope_with(&(haft_io_scope_options_t){.on_failure = &on_failure},
                                   change_all_minds, NULL, NULL),
                0);
    CHECK_EQUAL(ended, PAIRS / 2);
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(recv(theirs[i], &byte, 1, MSG_DONTWAIT), -1);
    close_pairs();
    return NULL;
}

/* On what `pair` is itself. */
static void *rest_at_once(void *argument) {
    resting_t *self = argument;
    haft_io_rest(&self->rest, self->pair, HAFT_IO_FOREVER, self->then, self);
    count(&at_rest);
    return NULL;
}
/* All need a stack at once, and there is memory for a few. */
enum { LARGE = 40 };
static void *answer_slowly(void *argument) {
    const resting_t *self = argument;
    char byte = 0;
    haft_io_sleep(20 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_read(self->pair, &byte, 1), 1);
    CHECK_EQUAL(haft_io_write_all(self->pair, &byte, 1), 0);
    return NULL;
}
BODY(rest_until_there_is_memory) {
    if (CHECK_ADDRESS_SANITIZER || CHECK_THREAD_SANITIZER || RUNNING_ON_VALGRIND)
        return NULL; /* which need memory of their own */
    static resting_t large[LARGE];
    static int ends[LARGE][2];
    const haft_io_task_options_t options = {.stack_size = (size_t)1 << 30};
    haft_io_task_t *tasks[LARGE];
    struct rlimit before, none;
    getrlimit(RLIMIT_AS, &before);
    none = before;
    none.rlim_cur = 1;
    for (int i = at_rest = 0; i < LARGE; i++) {
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        large[i] = (resting_t){.pair = ends[i][0], .then = answer_slowly};
        tasks[i] = haft_io_async_with(&options, rest_at_once, &large[i]);
        while (__atomic_load_n(&at_rest, __ATOMIC_ACQUIRE) <= i)
            haft_io_yield();
    }
    setrlimit(RLIMIT_AS, &none);
    for (int i = 0; i < LARGE; i++)
        CHECK_EQUAL(haft_io_write_all(ends[i][1], "a", 1), 0);
    haft_io_sleep(50 * HAFT_IO_MILLISECOND);
    setrlimit(RLIMIT_AS, &before);
    for (int i = 0; i < LARGE; i++) {
        char byte = 0;
        CHECK_EQUAL(haft_io_read(ends[i][1], &byte, 1), 1);
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
        haft_io_close(ends[i][0]);
        haft_io_close(ends[i][1]);
    }
    return NULL;
}
BODY(rest_until_a_time) {
    int64_t deadline = haft_io_now() + 20 * HAFT_IO_MILLISECOND;
    rest_all(deadline);
    finish_resting(-ETIMEDOUT);
    CHECK(haft_io_now() >= deadline);
    rest_all(haft_io_now());
    finish_resting(-ETIMEDOUT);
    return NULL;
}
BODY(rest_until_a_close) {
    rest_all(0);
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(haft_io_close(ours[i]), 0);
    finish_resting(-EBADF);
    return NULL;
}

/* An ordinary thread closes the descriptor just when the task comes to rest: it goes on, before the
   close or by it. */
enum { CLOSES = 500 };
static int to_close;
static void *close_as_told(void *unused) {
    for (int told = 0; told >= 0; told = __atomic_load_n(&to_close, __ATOMIC_ACQUIRE))
        if (told != 0) {
            __atomic_store_n(&to_close, 0, __ATOMIC_RELAXED);
            haft_io_close(told);
        }
    return unused;
}
static void *read_closed(void *argument) {
    resting_t *self = argument;
    char byte;
    self->got = haft_io_read(self->pair, &byte, 1);
    count(&ended);
    return NULL;
}
static void *rest_to_be_closed(void *argument) {
    resting_t *self = argument;
    __atomic_store_n(&to_close, self->pair, __ATOMIC_RELEASE);
    for (volatile int i = self->turns; i > 0; i--)
        continue;
    return rest_at_once(self);
}
BODY(close_when_it_rests) {
    pthread_t closer;
    if (alone) /* the run itself closes, after a poll */
        return NULL;
    to_close = 0;
    CHECK_EQUAL(pthread_create(&closer, NULL, close_as_told, NULL), 0);
    for (int i = 0; i < CLOSES && check_failures == 0; i++) {
        int ends[2];
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        ended = 0;
        resting[0] = (resting_t){.pair = ends[0], .turns = i % 100 * 10, .then = read_closed};
        haft_io_task_t *task = haft_io_async(rest_to_be_closed, &resting[0]);
        int64_t limit = haft_io_now() + 20 * HAFT_IO_SECOND;
        while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) == 0 && haft_io_now() < limit)
            haft_io_yield();
        CHECK_EQUAL(ended, 1);
        if (ended == 0)
            haft_io_close(ends[0]); /* which ends it after all */
        haft_io_join(task, NULL);
        CHECK_EQUAL(resting[0].got, -EBADF);
        haft_io_close(ends[1]);
    }
    __atomic_store_n(&to_close, -1, __ATOMIC_RELEASE);
    CHECK_EQUAL(pthread_join(closer, NULL), 0);
    return NULL;
}

/* The function of a cancelled task is called, and its first wait ends it; so are those that rest
   after the cancel. */
static void end_resting(resting_t *const *self) {
    count(&ended);
    haft_io_give_back((*self)->bytes);
    (*self)->bytes = NULL;
}
static void *read_to_be_cancelled(void *argument) {
    __attribute__((cleanup(end_resting))) resting_t *self = argument;
    haft_io_read_lent(ours[self->pair], &self->bytes);
    CHECK(!"it is cancelled");
    return NULL;
}
static void *rest_to_be_cancelled(void *argument) {
    resting_t *self = argument;
    haft_io_return_cancels(true);
    haft_io_sleep(self->pair % 2 * HAFT_IO_MILLISECOND); /* some wait on a stack before */
    haft_io_rest(&self->rest, ours[self->pair], HAFT_IO_FOREVER, read_to_be_cancelled, self);
    count(&at_rest);
    return NULL;
}
BODY(rest_all_in_scope) {
    for (int i = 0; i < PAIRS; i++) {
        resting[i] = (resting_t){.pair = i};
        haft_io_spawn(rest_to_be_cancelled, &resting[i]);
    }
    if (argument == NULL)
        haft_io_scope_cancel(haft_io_this_scope());
    haft_io_return_cancels(true);
    while (__atomic_load_n(&at_rest, __ATOMIC_ACQUIRE) != PAIRS)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(cancel_a_rest) {
    for (int late = 0; late < 2; late++) {
        open_pairs();
        at_rest = ended = 0;
        CHECK_EQUAL(haft_io_scope(rest_all_in_scope, late ? &at_rest : NULL, NULL), -ECANCELED);
        CHECK_EQUAL(ended, PAIRS);
        close_pairs();
    }
    return NULL;
}

/* Bytes that came before, and were not read, wake it; so do a read of another task, and a
   descriptor that no back end watches. */
static void *read_rest(void *argument) {
    resting_t *self = argument;
    char bytes[9];
    self->got = haft_io_read(ours[self->pair], bytes, sizeof bytes);
    return NULL;
}
static void *read_some_and_rest(void *argument) {
    resting_t *self = argument;
    char bytes[4];
    CHECK_EQUAL(haft_io_read(ours[self->pair], bytes, sizeof bytes), 4);
    haft_io_rest(&self->rest, ours[self->pair], HAFT_IO_FOREVER, read_rest, self);
    return NULL;
}
BODY(rest_before_what_has_come) {
    open_pairs();
    for (int i = 0; i < PAIRS; i++) {
        they_send(i, "and what follows"); /* of which less is asked for than there is */
        resting[i] = (resting_t){.pair = i};
        servers[i] = haft_io_async(read_some_and_rest, &resting[i]);
    }
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(haft_io_join(servers[i], NULL), 0);
        CHECK_EQUAL(resting[i].got, 9);
    }
    close_pairs();
    return NULL;
}
static void *read_file(void *argument) {
    resting_t *self = argument;
    char byte;
    self->got = haft_io_pread(self->pair, &byte, 1, 0);
    return NULL;
}
BODY(rest_where_nothing_wakes) {
    int files[] = {check_file_with("x"), -1};
    for (int i = 0; i < 2; i++) {
        resting[i] = (resting_t){.pair = files[i], .then = read_file};
        CHECK_EQUAL(haft_io_join(haft_io_async(rest_at_once, &resting[i]), NULL), 0);
        CHECK_EQUAL(resting[i].got, i == 0 ? 1 : -EBADF);
    }
    haft_io_close(files[0]);
    return NULL;
}
static void *accept_rest(void *argument) {
    resting_t *self = argument;
    self->got = haft_io_accept(self->pair);
    return NULL;
}
BODY(rest_until_a_connection) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    resting[0] = (resting_t){.pair = listener, .then = accept_rest};
    haft_io_task_t *task = haft_io_async(rest_at_once, &resting[0]);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    HAFT_IO_SCOPED_DESCRIPTOR __attribute__((unused)) int client =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    CHECK(resting[0].got >= 0);
    haft_io_close((int)resting[0].got);
    haft_io_close(listener);
    return NULL;
}
BODY(look_at_rests) {
    static char text[8192];
    rest_all(0);
    int dump = check_file_with(""), size;
    CHECK_EQUAL(haft_io_dump_with(&(haft_io_dump_options_t){.backtraces = true}, dump), 0);
    size = (int)haft_io_pread(dump, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    CHECK(strstr(text, "task 'one that rests' waits for: read on descriptor") != NULL);
    haft_io_close(dump);
    for (int i = 0; i < PAIRS; i++)
        CHECK_EQUAL(shutdown(theirs[i], SHUT_WR), 0);
    finish_resting(0);
    return NULL;
}
static void rest_outside(void) {
    static haft_io_rest_t rest;
    haft_io_rest(&rest, 0, HAFT_IO_FOREVER, check_nothing, NULL);
}
static void *rest_with_deadline(void *unused) {
    static haft_io_rest_t rest;
    haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_SECOND);
    haft_io_rest(&rest, 0, HAFT_IO_FOREVER, check_nothing, unused);
    return NULL;
}
static void rest_inside_a_deadline(void) {
    haft_io_run(rest_with_deadline, NULL);
}
static void *rest_for_nothing(void *unused) {
    static haft_io_rest_t rest;
    haft_io_rest(&rest, 0, HAFT_IO_FOREVER, NULL, unused);
    return NULL;
}
static void rest_without_a_function(void) {
    haft_io_run(rest_for_nothing, NULL);
}
static void *rest_in_a_local_variable(void *unused) {
    haft_io_rest_t *rest = alloca(sizeof *rest);
    haft_io_rest(rest, 0, HAFT_IO_FOREVER, check_nothing, unused);
    return NULL;
}
static void rest_on_the_stack(void) {
    haft_io_run(rest_in_a_local_variable, NULL);
}
static haft_io_rest_t kept_rest;
static void *send_no_memory(void *unused) {
    haft_io_send_and_rest(&kept_rest, NULL, 1, 0, HAFT_IO_FOREVER, check_nothing, unused);
    return NULL;
}
static void rest_after_sending_no_memory(void) {
    haft_io_run(send_no_memory, NULL);
}
static void *send_more_than_is_lent(void *unused) {
    haft_io_send_and_rest(&kept_rest, haft_io_lend(), HAFT_IO_LENT_SIZE + 1, 0, HAFT_IO_FOREVER,
                          check_nothing, unused);
    return NULL;
}
static void rest_after_sending_too_much(void) {
    haft_io_run(send_more_than_is_lent, NULL);
}
static void mistakes_with_rests_are_named(void) {
    CHECK_ABORTS(rest_outside, "haft_io_rest was called outside of a task.");
    CHECK_ABORTS(rest_without_a_function,
                 "A task that rests needs a function to go on with (NULL).");
    CHECK_ABORTS(rest_inside_a_deadline, "rests inside of a block with a deadline");
    CHECK_ABORTS(rest_on_the_stack, "rests in memory on its own stack, which is given up");
    CHECK_ABORTS(rest_after_sending_no_memory, "was given 1 bytes of no memory (NULL)");
    CHECK_ABORTS(rest_after_sending_too_much, "and no memory has as many");
}
BODY(rest_in_a_simulation) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ours[0] = ends[0];
    resting[0] = (resting_t){.pair = 0};
    haft_io_task_t *task = haft_io_async(begin_to_rest, &resting[0]);
    char bytes[4];
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQUAL(haft_io_write_all(ends[1], "text", 4), 0);
        CHECK_EQUAL(haft_io_read_all(ends[1], bytes, 4), 4);
    }
    haft_io_close(ends[1]);
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    CHECK_EQUAL(resting[0].got, 0);
    haft_io_close(ends[0]);
    return NULL;
}
static void in_a_simulation_a_task_rests_too(void) {
    haft_io_simulation_options_t how = {.network = true};
    CHECK_EQUAL(haft_io_simulate_with(&how, rest_in_a_simulation, NULL), 0);
    rest_sends = true;
    CHECK_EQUAL(haft_io_simulate_with(&how, rest_in_a_simulation, NULL), 0);
    rest_sends = false;
}

static void *(*body)(void *);
static void run_on(const haft_io_run_options_t *options) {
    alone = options->threads == 1;
    counts_stacks = alone && strcmp(options->backend, "epoll") == 0;
    CHECK_EQUAL(haft_io_run_with(options, body, NULL), 0);
}
#define ON_ALL(name, what)                                                                         \
    static void name(void) {                                                                       \
        body = what;                                                                               \
        check_everywhere(run_on);                                                                  \
    }
ON_ALL(each_gets_its_answer_and_the_next, echo_many)
ON_ALL(what_has_come_before_the_answer_is_read, next_comes_first)
ON_ALL(much_is_sent_whole, answer_much)
ON_ALL(who_does_not_write_any_more_is_told, answer_nobody)
ON_ALL(a_reset_is_told, answer_a_peer_that_resets)
ON_ALL(a_close_ends_it, close_the_connection)
ON_ALL(a_cancel_ends_it, cancel_all)
ON_ALL(a_poll_meanwhile_takes_nothing_away, poll_meanwhile)
ON_ALL(it_is_a_read_for_others, read_meanwhile)
ON_ALL(others_may_write_meanwhile, write_meanwhile)
ON_ALL(other_streams_have_it_too, answer_over_a_pair)
ON_ALL(a_task_that_rests_has_no_stack_and_answers, rest_and_answer)
ON_ALL(what_is_sent_before_a_rest_takes_no_stack, send_and_rest)
ON_ALL(what_has_no_room_before_a_rest_is_sent_whole, send_much_before_a_rest)
ON_ALL(a_send_before_a_rest_ends_at_its_time, send_in_vain_before_a_rest)
ON_ALL(a_send_before_a_rest_that_fails_is_told, send_to_nobody_before_a_rest)
ON_ALL(a_cancel_before_a_rest_sends_the_answer, cancel_before_it_is_sent)
ON_ALL(a_close_before_a_rest_sends_the_answer_to_nobody_else, close_before_it_is_sent)
ON_ALL(what_had_no_room_is_not_sent_to_the_next_file, close_when_there_is_no_room)
ON_ALL(who_does_not_rest_after_all_sends_nothing, send_nothing_before_a_rest)
ON_ALL(without_memory_for_stacks_tasks_rest_on, rest_until_there_is_memory)
ON_ALL(a_rest_ends_at_its_time, rest_until_a_time)
ON_ALL(a_close_ends_a_rest, rest_until_a_close)
ON_ALL(a_close_by_another_thread_ends_a_rest_that_just_begins, close_when_it_rests)
ON_ALL(a_cancel_ends_a_rest, cancel_a_rest)
ON_ALL(what_has_come_before_a_rest_ends_it, rest_before_what_has_come)
ON_ALL(where_nothing_wakes_it_a_task_does_not_rest, rest_where_nothing_wakes)
ON_ALL(a_connection_ends_a_rest_on_a_listener, rest_until_a_connection)
ON_ALL(who_looks_sees_what_a_task_rests_for, look_at_rests)

int main(void) {
    RUN(each_gets_its_answer_and_the_next);
    RUN(what_has_come_before_the_answer_is_read);
    RUN(much_is_sent_whole);
    RUN(who_does_not_write_any_more_is_told);
    RUN(a_reset_is_told);
    RUN(a_close_ends_it);
    RUN(a_cancel_ends_it);
    RUN(a_poll_meanwhile_takes_nothing_away);
    RUN(it_is_a_read_for_others);
    RUN(others_may_write_meanwhile);
    RUN(other_streams_have_it_too);
    RUN(without_a_run_it_blocks);
    RUN(in_a_simulation_it_is_the_same);
    RUN(a_task_that_rests_has_no_stack_and_answers);
    RUN(what_is_sent_before_a_rest_takes_no_stack);
    RUN(what_has_no_room_before_a_rest_is_sent_whole);
    RUN(a_send_before_a_rest_ends_at_its_time);
    RUN(a_send_before_a_rest_that_fails_is_told);
    RUN(a_cancel_before_a_rest_sends_the_answer);
    RUN(a_close_before_a_rest_sends_the_answer_to_nobody_else);
    RUN(what_had_no_room_is_not_sent_to_the_next_file);
    RUN(who_does_not_rest_after_all_sends_nothing);
    RUN(without_memory_for_stacks_tasks_rest_on);
    RUN(a_rest_ends_at_its_time);
    RUN(a_close_ends_a_rest);
    RUN(a_close_by_another_thread_ends_a_rest_that_just_begins);
    RUN(a_cancel_ends_a_rest);
    RUN(what_has_come_before_a_rest_ends_it);
    RUN(where_nothing_wakes_it_a_task_does_not_rest);
    RUN(a_connection_ends_a_rest_on_a_listener);
    RUN(who_looks_sees_what_a_task_rests_for);
    RUN(mistakes_with_rests_are_named);
    RUN(in_a_simulation_a_task_rests_too);
    return check_end();
}
