/*
 * The synchronisation objects and streams against what must hold of them, in many simulated runs:
 * tasks that take, give up at deadlines, are cancelled, yield and sleep as the seed has it. A run
 * that fails prints its seed; HAFT_IO_SEED=... repeats that one.
 */
#include "check_io.h"

static uint64_t drawn; /* the tests' own chance, apart from the scheduler's */
static unsigned draw(unsigned bound) {
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(drawn >> 33) % bound;
}

static void pause_a_little(void) {
    switch (draw(4)) {
    case 0:
        haft_io_yield();
        break;
    case 1:
        haft_io_sleep(draw(5) * HAFT_IO_MILLISECOND);
        break;
    default:
        break;
    }
}

static int64_t soon(void) {
    return haft_io_now() + draw(6) * HAFT_IO_MILLISECOND;
}
static int64_t soon_or_never(void) {
    return draw(2) == 0 ? HAFT_IO_FOREVER : soon();
}

/* A wait times out at its deadline, and not before. */
static bool may_be(int code, int64_t deadline) {
    return code == 0 || (code == -ETIMEDOUT && haft_io_now() >= deadline);
}

typedef struct call {
    void *(*body)(void *);
    void *argument;
    bool has_returned;
} call_t;
static void *make_call(void *argument) {
    call_t *call = argument;
    call->body(call->argument);
    call->has_returned = true;
    return NULL;
}
/* Calls the body as it is, or in a scope with a deadline, whose cancel unwinds it. */
static void call_in_some_way(void *(*body)(void *), void *argument) {
    int64_t deadline = draw(2) == 0 ? soon() : 0;
    haft_io_scope_options_t limited = {.deadline = deadline};
    if (draw(3) == 0) {
        body(argument);
        return;
    }
    call_t call = {body, argument, false};
    int code = haft_io_scope_with(&limited, make_call, &call, NULL);
    CHECK_EQUAL(code, call.has_returned ? 0 : -ETIMEDOUT);
    CHECK(may_be(code, deadline != 0 ? deadline : HAFT_IO_FOREVER));
}

enum { TASKS = 6, ROUNDS = 6 };

/* ---- Mutex ---- */

static haft_io_mutex_t mutex;
static int holders;

static void let_go(__attribute__((unused)) int *unused) {
    CHECK_EQUAL(--holders, 0);
    haft_io_mutex_unlock(&mutex);
}
BODY(hold) {
    int64_t limit = soon_or_never();
    int code = limit == HAFT_IO_FOREVER ? haft_io_mutex_lock(&mutex)
                                        : haft_io_mutex_lock_until(&mutex, limit);
    CHECK(may_be(code, limit));
    if (code != 0)
        return NULL;
    __attribute__((cleanup(let_go), unused)) int guard;
    CHECK_EQUAL(++holders, 1);
    pause_a_little();
    return NULL;
}
BODY(hold_often) {
    for (int i = 0; i < ROUNDS; i++) {
        call_in_some_way(hold, NULL);
        pause_a_little();
    }
    return NULL;
}
BODY(mutex_model) {
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(hold_often, NULL);
    return NULL;
}
static void begin_mutex(void) {
    memset(&mutex, 0, sizeof mutex);
    holders = 0;
}
static void end_mutex(void) {
    CHECK_EQUAL(holders, 0);
    CHECK(!mutex.held && !mutex.called && mutex.waiting.first == NULL);
}

/* ---- Semaphore ---- */

static haft_io_semaphore_t semaphore;
static unsigned permits, users;

static void give_back(__attribute__((unused)) int *unused) {
    users--;
    haft_io_semaphore_release(&semaphore);
}
BODY(use) {
    int64_t limit = soon_or_never();
    int code = limit == HAFT_IO_FOREVER ? haft_io_semaphore_acquire(&semaphore)
                                        : haft_io_semaphore_acquire_until(&semaphore, limit);
    CHECK(may_be(code, limit));
    if (code != 0)
        return NULL;
    __attribute__((cleanup(give_back), unused)) int guard;
    CHECK(++users <= permits);
    pause_a_little();
    return NULL;
}
BODY(use_often) {
    for (int i = 0; i < ROUNDS; i++)
        call_in_some_way(use, NULL);
    return NULL;
}
BODY(semaphore_model) {
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(use_often, NULL);
    return NULL;
}
static void begin_semaphore(void) {
    permits = 1 + draw(3);
    users = 0;
    semaphore = (haft_io_semaphore_t){.count = permits};
}
static void end_semaphore(void) {
    CHECK_EQUAL(users, 0);
    CHECK_EQUAL(semaphore.count, permits);
    CHECK(semaphore.waiting.first == NULL);
}

/* ---- Condition: a stock that producers fill and consumers empty ---- */

static haft_io_condition_t condition;
static int stock, produced, consumed;

static void unlock_stock(__attribute__((unused)) int *unused) {
    CHECK_EQUAL(--holders, 0);
    haft_io_mutex_unlock(&mutex);
}
BODY(consume) {
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    __attribute__((cleanup(unlock_stock), unused)) int guard;
    CHECK_EQUAL(++holders, 1);
    int64_t limit = soon_or_never();
    while (stock == 0) {
        holders--;
        bool returned = haft_io_return_cancels(true);
        int code = haft_io_condition_wait_until(&condition, &mutex, limit);
        haft_io_return_cancels(returned);
        CHECK_EQUAL(++holders, 1);
        if (code == -ECANCELED)
            haft_io_unwind_cancelled();
        CHECK(may_be(code, limit));
        if (code != 0)
            return NULL;
    }
    stock--;
    consumed++;
    return NULL;
}
BODY(consume_often) {
    for (int i = 0; i < ROUNDS; i++)
        call_in_some_way(consume, NULL);
    return NULL;
}
BODY(produce_often) {
    for (int i = 0; i < TASKS * ROUNDS; i++) {
        haft_io_mutex_lock(&mutex);
        stock++;
        produced++;
        draw(2) == 0 ? haft_io_condition_signal(&condition)
                     : haft_io_condition_broadcast(&condition);
        haft_io_mutex_unlock(&mutex);
        pause_a_little();
    }
    return NULL;
}
BODY(condition_model) {
    for (int i = 0; i < TASKS - 1; i++)
        haft_io_spawn(consume_often, NULL);
    haft_io_spawn(produce_often, NULL);
    return NULL;
}
static void begin_condition(void) {
    begin_mutex();
    memset(&condition, 0, sizeof condition);
    stock = produced = consumed = 0;
}
static void end_condition(void) {
    end_mutex();
    CHECK_EQUAL(stock, produced - consumed);
    CHECK(condition.waiting.first == NULL);
}

/* ---- Readers and writers, once, barrier ---- */

static haft_io_rwlock_t rwlock;
static int readers, writers;

static void end_reading(__attribute__((unused)) int *unused) {
    readers--;
    haft_io_rwlock_unlock(&rwlock);
}
static void end_writing(__attribute__((unused)) int *unused) {
    CHECK_EQUAL(--writers, 0);
    haft_io_rwlock_unlock(&rwlock);
}
BODY(read_it) {
    int64_t limit = soon_or_never();
    int code = limit == HAFT_IO_FOREVER ? haft_io_rwlock_read_lock(&rwlock)
                                        : haft_io_rwlock_read_lock_until(&rwlock, limit);
    CHECK(may_be(code, limit));
    if (code != 0)
        return NULL;
    __attribute__((cleanup(end_reading), unused)) int guard;
    readers++;
    pause_a_little();
    CHECK_EQUAL(writers, 0);
    return NULL;
}
BODY(write_it) {
    int64_t limit = soon_or_never();
    int code = limit == HAFT_IO_FOREVER ? haft_io_rwlock_write_lock(&rwlock)
                                        : haft_io_rwlock_write_lock_until(&rwlock, limit);
    CHECK(may_be(code, limit));
    if (code != 0)
        return NULL;
    __attribute__((cleanup(end_writing), unused)) int guard;
    CHECK_EQUAL(++writers, 1);
    CHECK_EQUAL(readers, 0);
    pause_a_little();
    CHECK_EQUAL(readers, 0);
    return NULL;
}
BODY(read_and_write) {
    for (int i = 0; i < ROUNDS; i++) {
        call_in_some_way(draw(3) == 0 ? write_it : read_it, NULL);
        pause_a_little();
    }
    return NULL;
}
BODY(rwlock_model) {
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(read_and_write, NULL);
    return NULL;
}
static void begin_rwlock(void) {
    memset(&rwlock, 0, sizeof rwlock);
    readers = writers = 0;
}
static void end_rwlock(void) {
    CHECK(readers == 0 && writers == 0 && rwlock.readers == 0 && !rwlock.writer);
    CHECK(rwlock.waiting.first == NULL);
}

static haft_io_once_t once;
static int begun, completed;
static void do_once(__attribute__((unused)) void *argument) {
    begun++;
    CHECK_EQUAL(completed, 0);
    haft_io_sleep(draw(4) * HAFT_IO_MILLISECOND);
    completed++;
}
BODY(ask_for_it) {
    int64_t limit = soon_or_never();
    int code = limit == HAFT_IO_FOREVER ? haft_io_once_call(&once, do_once, NULL)
                                        : haft_io_once_call_until(&once, do_once, NULL, limit);
    CHECK(may_be(code, limit));
    CHECK(code != 0 || completed == 1);
    return NULL;
}
BODY(ask_often) {
    for (int i = 0; i < ROUNDS; i++)
        call_in_some_way(ask_for_it, NULL);
    return NULL;
}
BODY(once_model) {
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(ask_often, NULL);
    return NULL;
}
static void begin_once(void) {
    memset(&once, 0, sizeof once);
    begun = completed = 0;
}
static void end_once(void) {
    CHECK(begun >= completed && completed <= 1 && !once.mutex.held);
}

static haft_io_barrier_t barrier;
static int last_ones, passed;
BODY(meet_others) {
    int64_t limit = draw(4) != 0 ? soon() : haft_io_now();
    int code = haft_io_barrier_wait_until(&barrier, limit);
    CHECK(code == 1 || may_be(code, limit));
    if (code < 0)
        return NULL;
    last_ones += code;
    passed++;
    return NULL;
}
BODY(meet_often) {
    for (int i = 0; i < ROUNDS; i++) {
        call_in_some_way(meet_others, NULL);
        pause_a_little();
    }
    return NULL;
}
BODY(barrier_model) {
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(meet_often, NULL);
    return NULL;
}
static void begin_barrier(void) {
    barrier = (haft_io_barrier_t){.needed = 1 + draw(4)};
    last_ones = passed = 0;
}
static void end_barrier(void) {
    CHECK_EQUAL(passed, last_ones * (int)barrier.needed);
    CHECK(barrier.arrived == 0 && barrier.waiting.first == NULL);
}

/* ---- Events and promises ---- */

static haft_io_event_t event;
static haft_io_promise_t promise;
static bool is_set, is_kept;
static int told;

BODY(wait_for_both) {
    void *value = NULL;
    int64_t limit = soon_or_never();
    int code = limit == HAFT_IO_FOREVER ? haft_io_promise_wait(&promise, &value)
                                        : haft_io_promise_wait_until(&promise, &value, limit);
    CHECK(may_be(code, limit));
    CHECK(code != 0 || (is_kept && value == &told));
    limit = soon_or_never();
    code = limit == HAFT_IO_FOREVER ? haft_io_event_wait(&event)
                                    : haft_io_event_wait_until(&event, limit);
    CHECK(may_be(code, limit));
    told += code == 0;
    return NULL;
}
BODY(wait_for_both_often) {
    for (int i = 0; i < ROUNDS; i++) {
        call_in_some_way(wait_for_both, NULL);
        pause_a_little();
    }
    return NULL;
}
/* In the end it is set: nobody waits for ever. */
BODY(set_and_clear) {
    for (int i = 0; i < ROUNDS; i++) {
        draw(2) == 0 ? haft_io_event_set(&event) : haft_io_event_clear(&event);
        if (i == 2) {
            is_kept = true;
            haft_io_promise_set(&promise, &told);
        }
        pause_a_little();
    }
    is_set = true;
    haft_io_event_set(&event);
    CHECK_EQUAL(haft_io_event_wait(&event), 0);
    return NULL;
}
BODY(event_model) {
    for (int i = 0; i < TASKS - 1; i++)
        haft_io_spawn(wait_for_both_often, NULL);
    haft_io_spawn(set_and_clear, NULL);
    return NULL;
}
static void begin_event(void) {
    memset(&event, 0, sizeof event);
    memset(&promise, 0, sizeof promise);
    is_set = is_kept = false;
    told = 0;
}
static void end_event(void) {
    CHECK(is_set && is_kept && event.set && event.waiting.first == NULL);
    CHECK(promise.kept.waiting.first == NULL);
}

/* ---- Channels: what was sent is received once, in order; what was given up is not ---- */

enum { VALUES = TASKS * ROUNDS };
static haft_io_channel_t *channels[2];
static bool was_sent[VALUES], was_received[VALUES];
static int senders;

static void *send_value(void *argument) {
    int value = (int)(intptr_t)argument, code;
    int64_t limit = soon_or_never();
    if (draw(2) == 0) {
        haft_io_select_case_t choices[] = {{.channel = channels[0], .send = &value},
                                           {.channel = channels[1], .send = &value}};
        code = haft_io_select_until(choices, 2, limit);
        code = code >= 0 ? choices[code].code : code;
    } else {
        code = haft_io_channel_send_until(channels[draw(2)], &value, limit);
    }
    CHECK(may_be(code, limit));
    was_sent[value] = code == 0;
    return NULL;
}
static void *send_often(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        call_in_some_way(send_value, check_number((intptr_t)argument * ROUNDS + i));
        pause_a_little();
    }
    if (--senders == 0) {
        haft_io_channel_close(channels[0]);
        haft_io_channel_close(channels[1]);
    }
    return NULL;
}

typedef struct receiver {
    int latest[2][TASKS]; /* of each channel and sender */
    bool ends;
} receiver_t;

static void received(receiver_t *receiver, int from, int value) {
    CHECK(value >= 0 && value < VALUES && !was_received[value]);
    was_received[value] = true;
    CHECK(value > receiver->latest[from][value / ROUNDS]);
    receiver->latest[from][value / ROUNDS] = value;
}
static void *receive_value(void *argument) {
    receiver_t *receiver = argument;
    int value = -1, chosen = 0, code;
    int64_t limit = soon_or_never();
    if (draw(2) == 0) {
        haft_io_select_case_t choices[] = {{.channel = channels[0], .receive = &value},
                                           {.channel = channels[1], .receive = &value}};
        chosen = haft_io_select_until(choices, 2, limit);
        code = chosen >= 0 ? choices[chosen].code : chosen;
    } else {
        chosen = (int)draw(2);
        limit = soon(); /* while all senders may wait for the other channel */
        code = haft_io_channel_receive_until(channels[chosen], &value, limit);
    }
    CHECK(may_be(code, limit) || (code == -EPIPE && senders == 0));
    if (code == 0)
        received(receiver, chosen, value);
    receiver->ends = code == -EPIPE;
    return NULL;
}
BODY(receive_often) {
    receiver_t receiver = {.ends = false};
    memset(receiver.latest, -1, sizeof receiver.latest);
    while (!receiver.ends) {
        call_in_some_way(receive_value, &receiver);
        pause_a_little();
    }
    return NULL;
}
BODY(channel_model) {
    for (int i = 0; i < senders; i++)
        haft_io_spawn(send_often, check_number(i));
    for (int i = 0; i < 3; i++)
        haft_io_spawn(receive_often, NULL);
    return NULL;
}
static void begin_channels(void) {
    senders = 3;
    memset(was_sent, 0, sizeof was_sent);
    memset(was_received, 0, sizeof was_received);
    for (int i = 0; i < 2; i++)
        channels[i] = haft_io_channel_new(sizeof(int), draw(3));
}
static void end_channels(void) {
    for (int i = 0; i < 2; i++) {
        for (int value; haft_io_channel_receive_until(channels[i], &value, 0) == 0;) {
            CHECK(!was_received[value]);
            was_received[value] = true;
        }
        haft_io_channel_free(channels[i]);
    }
    for (int value = 0; value < VALUES; value++)
        CHECK_EQUAL(was_received[value], was_sent[value]);
}

/* ---- Streams: every byte comes once and in order, however reads are cancelled ---- */

enum { BYTES = 6000 };
static int ends[2];
static size_t bytes_read;

BODY(write_bytes) {
    char buffer[700];
    for (size_t sent = 0; sent < BYTES;) {
        size_t size = 1 + draw(sizeof buffer);
        size = size < BYTES - sent ? size : BYTES - sent;
        for (size_t i = 0; i < size; i++)
            buffer[i] = (char)((sent + i) * 7);
        CHECK_EQUAL(haft_io_write_all(ends[1], buffer, size), 0);
        sent += size;
        pause_a_little();
    }
    haft_io_close(ends[1]);
    return NULL;
}
static void *read_some(void *at_end) {
    char buffer[500];
    ssize_t got = haft_io_read(ends[0], buffer, 1 + draw(sizeof buffer));
    CHECK(got >= 0);
    for (ssize_t i = 0; i < got; i++)
        CHECK(buffer[i] == (char)(bytes_read++ * 7));
    *(bool *)at_end = got == 0;
    return NULL;
}
BODY(stream_model) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_spawn(write_bytes, NULL);
    for (bool at_end = false; !at_end;)
        call_in_some_way(read_some, &at_end);
    CHECK_EQUAL(bytes_read, BYTES);
    haft_io_close(ends[0]);
    return NULL;
}
static void begin_stream(void) {
    bytes_read = 0;
}
static void end_stream(void) {}

/* ---- Many runs ---- */

static void simulate_with(uint64_t seed, void (*begin)(void), void *(*model)(void *),
                          void (*end)(void)) {
    int before = check_failures;
    drawn = seed;
    begin();
    CHECK_EQUAL(
        haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = seed, .short_counts = true},
                              model, NULL),
        0);
    end();
    if (check_failures != before)
        fprintf(stderr, "the seed was %llu\n", (unsigned long long)seed);
}

static void simulate_often(void (*begin)(void), void *(*model)(void *), void (*end)(void)) {
    const char *seed = getenv("HAFT_IO_SEED"), *campaign = getenv("HAFT_CAMPAIGN");
    if (seed != NULL) {
        simulate_with(strtoull(seed, NULL, 10), begin, model, end);
        return;
    }
    int runs = check_times(campaign != NULL && strcmp(campaign, "long") == 0 ? 100000 : 1500);
    for (int i = 1; i <= runs && check_failures == 0; i++)
        simulate_with((uint64_t)i, begin, model, end);
}

static void a_mutex_has_one_holder(void) {
    simulate_often(begin_mutex, mutex_model, end_mutex);
}
static void a_semaphore_loses_no_permit(void) {
    simulate_often(begin_semaphore, semaphore_model, end_semaphore);
}
static void a_condition_loses_no_signal(void) {
    simulate_often(begin_condition, condition_model, end_condition);
}
static void a_lock_has_many_readers_or_one_writer(void) {
    simulate_often(begin_rwlock, rwlock_model, end_rwlock);
}
static void once_is_once_and_for_all(void) {
    simulate_often(begin_once, once_model, end_once);
}
static void a_barrier_lets_as_many_pass_as_it_needs(void) {
    simulate_often(begin_barrier, barrier_model, end_barrier);
}
static void events_and_promises_let_all_go_on_who_wait(void) {
    simulate_often(begin_event, event_model, end_event);
}
static void channels_deliver_what_was_sent_once_and_in_order(void) {
    simulate_often(begin_channels, channel_model, end_channels);
}
static void streams_deliver_every_byte_once_and_in_order(void) {
    simulate_often(begin_stream, stream_model, end_stream);
}

/* ---- The simulation itself ---- */

static char order[128];
static void *note_in_turn(void *text) {
    for (int i = 0; i < 4; i++) {
        strncat(order, text, sizeof order - strlen(order) - 1);
        haft_io_yield();
    }
    return NULL;
}
BODY(notes) {
    order[0] = '\0';
    haft_io_spawn(note_in_turn, "a");
    haft_io_spawn(note_in_turn, "b");
    haft_io_spawn(note_in_turn, "c");
    return NULL;
}
static void a_seed_is_one_order_and_another_seed_another(void) {
    char first[sizeof order];
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 5}, notes, NULL), 0);
    strcpy(first, order);
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 5}, notes, NULL), 0);
    CHECK_SAME_TEXT(order, first);
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 6}, notes, NULL), 0);
    CHECK(strcmp(order, first) != 0);
}

BODY(sleep_for_days) {
    int64_t before = haft_io_now();
    haft_io_sleep(86400 * HAFT_IO_SECOND);
    CHECK(haft_io_now() - before >= 86400 * HAFT_IO_SECOND);
    return NULL;
}
static void time_passes_only_when_nobody_can_go_on(void) {
    CHECK_EQUAL(haft_io_simulate(sleep_for_days, NULL), 0);
}

BODY(wait_for_ever) {
    haft_io_task_set_name("the forgotten");
    haft_io_mutex_lock(&mutex);
    haft_io_mutex_lock(&mutex);
    return NULL;
}
static void simulate_deadlock(void) {
    begin_mutex();
    CHECK_EQUAL(
        haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 77}, wait_for_ever, NULL),
        -EDEADLK);
}
static void who_waits_for_ever_is_named_with_the_seed(void) {
    if (!check_follows_children()) {
        simulate_deadlock();
        return;
    }
    check_child_t child = check_child(simulate_deadlock);
    CHECK_EQUAL(child.status, 0);
    CHECK_CONTAINS(child.output, "the task 'the forgotten' waits for: a mutex");
    CHECK_CONTAINS(child.output, "the seed was 77");
}

BODY(break_it) {
    char byte;
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_simulated_break(ends[0]);
    CHECK_EQUAL(haft_io_read(ends[1], &byte, 1), -ECONNRESET);
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), -ECONNRESET);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    CHECK_EQUAL(haft_io_close(ends[1]), -EBADF);
    return NULL;
}
static void a_simulated_stream_breaks_when_it_is_told_to(void) {
    CHECK_EQUAL(haft_io_simulate(break_it, NULL), 0);
}

int main(void) {
    check_backend();
    RUN(a_seed_is_one_order_and_another_seed_another);
    RUN(time_passes_only_when_nobody_can_go_on);
    RUN(who_waits_for_ever_is_named_with_the_seed);
    RUN(a_simulated_stream_breaks_when_it_is_told_to);
    RUN(a_mutex_has_one_holder);
    RUN(a_semaphore_loses_no_permit);
    RUN(a_condition_loses_no_signal);
    RUN(a_lock_has_many_readers_or_one_writer);
    RUN(once_is_once_and_for_all);
    RUN(a_barrier_lets_as_many_pass_as_it_needs);
    RUN(events_and_promises_let_all_go_on_who_wait);
    RUN(channels_deliver_what_was_sent_once_and_in_order);
    RUN(streams_deliver_every_byte_once_and_in_order);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
