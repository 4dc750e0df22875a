/* Mutexes, semaphores, conditions, events, promises, channels: between tasks, and between tasks and
   threads. */
#include "check_io.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char order[256];
static void note(const char *what) {
    strncat(order, what, sizeof order - strlen(order) - 1);
}

static haft_io_channel_t *channel, *other;

/* ---- Mutexes ---- */

static haft_io_mutex_t mutex;
static int inside;

static void *hold_and_note(void *text) {
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    CHECK_EQUAL(++inside, 1);
    haft_io_yield();
    note(text);
    inside--;
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
BODY(three_holders) {
    order[0] = '\0';
    haft_io_spawn(hold_and_note, "a");
    haft_io_spawn(hold_and_note, "b");
    haft_io_spawn(hold_and_note, "c");
    return NULL;
}
static void a_mutex_is_handed_over_in_order(void) {
    CHECK_RUNS(three_holders);
    CHECK_SAME_TEXT(order, "abc");
    CHECK(haft_io_mutex_try_lock(&mutex));
    CHECK(!haft_io_mutex_try_lock(&mutex));
    haft_io_mutex_unlock(&mutex);
}

BODY(lock_and_note) {
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    note("w");
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
BODY(lock_again_and_again) {
    order[0] = '\0';
    haft_io_mutex_lock(&mutex);
    haft_io_spawn(lock_and_note, NULL);
    haft_io_spawn(lock_and_note, NULL);
    haft_io_yield();
    for (int i = 0; i < 3; i++) {
        haft_io_mutex_unlock(&mutex); /* Nobody else has run: */
        CHECK(haft_io_mutex_try_lock(&mutex));
    }
    haft_io_yield();
    haft_io_mutex_unlock(&mutex); /* The first has come for it in vain. */
    CHECK(!haft_io_mutex_try_lock(&mutex));
    note("o");
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    note("o");
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
static void a_mutex_passes_over_who_waits_only_until_his_turn_has_come(void) {
    CHECK_RUNS(lock_again_and_again);
    CHECK_SAME_TEXT(order, "owwo");
}

BODY(leave_when_called) {
    order[0] = '\0';
    haft_io_mutex_lock(&mutex);
    haft_io_spawn(lock_and_note, NULL);
    haft_io_spawn(lock_and_note, NULL);
    haft_io_yield();
    haft_io_mutex_unlock(&mutex);
    haft_io_mutex_lock(&mutex);
    haft_io_yield(); /* The first is owed the mutex now, */
    haft_io_scope_cancel(haft_io_this_scope());
    haft_io_mutex_unlock(&mutex); /* and does not want it any more. */
    CHECK(haft_io_mutex_try_lock(&mutex));
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
static void a_mutex_owed_to_a_cancelled_task_is_free(void) {
    CHECK_EQUAL(haft_io_run(leave_when_called, NULL), -ECANCELED);
    CHECK_SAME_TEXT(order, "");
    CHECK(!mutex.held && !mutex.called && mutex.waiting.first == NULL);
}

BODY(lock_for_long) {
    haft_io_mutex_lock(&mutex);
    haft_io_mutex_unlock(&mutex);
    note("never");
    return NULL;
}
BODY(give_up) {
    order[0] = '\0';
    haft_io_mutex_lock(&mutex);
    int64_t soon = haft_io_now() + HAFT_IO_MILLISECOND;
    CHECK_EQUAL(haft_io_mutex_lock_until(&mutex, soon), -ETIMEDOUT);
    haft_io_scope_options_t limited = {.deadline = soon};
    CHECK_EQUAL(haft_io_scope_with(&limited, lock_for_long, NULL, NULL), -ETIMEDOUT);
    haft_io_mutex_unlock(&mutex);
    CHECK(haft_io_mutex_try_lock(&mutex));
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
static void who_gives_up_waiting_has_no_lock_and_is_in_nobodys_way(void) {
    CHECK_RUNS(give_up);
    CHECK_SAME_TEXT(order, "");
    haft_io_mutex_lock(&mutex);
    CHECK_EQUAL(haft_io_mutex_lock_until(&mutex, haft_io_now() + HAFT_IO_MILLISECOND), -ETIMEDOUT);
    haft_io_mutex_unlock(&mutex);
}

static void unlock_unlocked(void) {
    haft_io_mutex_unlock(&mutex);
}
static void unlock_unlocked_rwlock(void) {
    haft_io_rwlock_unlock(&(haft_io_rwlock_t){.readers = 0});
}
static void keep_twice(void) {
    haft_io_promise_t promise = {.value = NULL};
    haft_io_promise_set(&promise, NULL);
    haft_io_promise_set(&promise, NULL);
}
BODY(receive_for_ever) {
    int number;
    haft_io_channel_receive(channel, &number);
    return NULL;
}
BODY(free_in_use) {
    channel = haft_io_channel_new(sizeof(int), 0);
    haft_io_spawn(receive_for_ever, NULL);
    haft_io_yield();
    haft_io_channel_free(channel);
    return NULL;
}
static void run_free_in_use(void) {
    haft_io_run(free_in_use, NULL);
}
static void mistakes_are_named(void) {
    if (check_follows_children())
        CHECK_ABORTS(run_free_in_use, "A channel was freed while somebody waits for it");
    CHECK_ABORTS(unlock_unlocked, "A mutex that is not locked was unlocked");
    CHECK_ABORTS(unlock_unlocked_rwlock, "A lock for readers and writers that is not locked");
    CHECK_ABORTS(keep_twice, "A promise was kept twice");
}

/* ---- Semaphores, events, conditions, promises ---- */

static haft_io_semaphore_t semaphore = {.count = 2};
static int most;
BODY(use_one_of_two) {
    CHECK_EQUAL(haft_io_semaphore_acquire(&semaphore), 0);
    inside++;
    most = inside > most ? inside : most;
    haft_io_sleep(HAFT_IO_MILLISECOND / 4);
    inside--;
    haft_io_semaphore_release(&semaphore);
    return NULL;
}
BODY(ten_users) {
    for (int i = 0; i < 10; i++)
        haft_io_spawn(use_one_of_two, NULL);
    return NULL;
}
static void a_semaphore_lets_as_many_in_as_it_counts(void) {
    inside = most = 0;
    CHECK_RUNS(ten_users);
    CHECK_EQUAL(most, 2);
    CHECK(haft_io_semaphore_try_acquire(&semaphore) && haft_io_semaphore_try_acquire(&semaphore));
    CHECK(!haft_io_semaphore_try_acquire(&semaphore));
    haft_io_semaphore_release(&semaphore);
    haft_io_semaphore_release(&semaphore);
}

static haft_io_event_t event;
static int waiting;
static void *wait_and_note(void *text) {
    waiting++;
    CHECK_EQUAL(haft_io_event_wait(&event), 0);
    note(text);
    return NULL;
}
BODY(set_it) {
    order[0] = '\0';
    haft_io_spawn(wait_and_note, "1");
    haft_io_spawn(wait_and_note, "2");
    while (waiting < 2)
        haft_io_yield();
    CHECK_EQUAL(haft_io_event_wait_until(&event, haft_io_now() + HAFT_IO_MILLISECOND), -ETIMEDOUT);
    note("set");
    haft_io_event_set(&event);
    haft_io_yield();
    CHECK_EQUAL(haft_io_event_wait(&event), 0);
    haft_io_event_clear(&event);
    return NULL;
}
static void an_event_lets_all_go_on_once_it_is_set(void) {
    CHECK_RUNS(set_it);
    CHECK_SAME_TEXT(order, "set12");
}

static haft_io_condition_t condition;
static int stock;
BODY(take_from_stock) {
    haft_io_mutex_lock(&mutex);
    while (stock == 0)
        CHECK_EQUAL(haft_io_condition_wait(&condition, &mutex), 0);
    stock--;
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
static void unlock_mutex(__attribute__((unused)) int *unused) {
    haft_io_mutex_unlock(&mutex);
}
BODY(wait_in_vain) {
    haft_io_mutex_lock(&mutex);
    __attribute__((cleanup(unlock_mutex), unused)) int guard;
    haft_io_condition_wait(&condition, &mutex);
    return NULL;
}
BODY(fill_stock) {
    for (int i = 0; i < 3; i++)
        haft_io_spawn(take_from_stock, NULL);
    haft_io_yield();
    for (int i = 0; i < 3; i++) {
        haft_io_mutex_lock(&mutex);
        stock++;
        haft_io_condition_signal(&condition);
        haft_io_mutex_unlock(&mutex);
    }
    haft_io_scope_options_t limited = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&limited, wait_in_vain, NULL, NULL), -ETIMEDOUT);
    CHECK(haft_io_mutex_try_lock(&mutex));
    CHECK_EQUAL(
        haft_io_condition_wait_until(&condition, &mutex, haft_io_now() + HAFT_IO_MILLISECOND),
        -ETIMEDOUT);
    haft_io_mutex_unlock(&mutex);
    return NULL;
}
static void a_condition_releases_its_mutex_and_has_it_again_afterwards(void) {
    CHECK_RUNS(fill_stock);
    CHECK_EQUAL(stock, 0);
}

static haft_io_promise_t promise;
BODY(keep_it) {
    haft_io_promise_set(&promise, check_number(9));
    return NULL;
}
BODY(await_it) {
    haft_io_spawn(keep_it, NULL);
    void *value = NULL;
    CHECK_EQUAL(haft_io_promise_wait(&promise, &value), 0);
    CHECK_EQUAL((intptr_t)value, 9);
    CHECK_EQUAL(haft_io_promise_wait(&promise, &value), 0);
    return NULL;
}
static void a_promise_is_awaited_before_and_after_it_is_kept(void) {
    CHECK_RUNS(await_it);
}

/* ---- Channels ---- */

BODY(send_numbers) {
    for (int i = 1; i <= 100; i++)
        CHECK_EQUAL(haft_io_channel_send(channel, &i), 0);
    haft_io_channel_close(channel);
    return NULL;
}
static void *sum_up(void *capacity) {
    channel = haft_io_channel_new(sizeof(int), (size_t)(intptr_t)capacity);
    haft_io_spawn(send_numbers, NULL);
    int sum = 0, number, code;
    for (int next = 1; (code = haft_io_channel_receive(channel, &number)) == 0; next++) {
        CHECK_EQUAL(number, next);
        sum += number;
    }
    CHECK_EQUAL(code, -EPIPE);
    CHECK_EQUAL(sum, 5050);
    CHECK_EQUAL(haft_io_channel_send(channel, &sum), -EPIPE);
    haft_io_channel_free(channel);
    return NULL;
}
static void a_channel_keeps_the_order_and_ends_when_it_is_closed(void) {
    for (int capacity = 0; capacity < 5; capacity++)
        CHECK_EQUAL(haft_io_run(sum_up, check_number(capacity)), 0);
}

/* Values of some sizes are copied in ways of their own. */
enum { LARGEST = 40, VALUES = 10 };
static size_t value_size;
static void make_value(unsigned char *value, int number) {
    for (int i = 0; i < LARGEST; i++)
        value[i] = (unsigned char)(number + i);
}
BODY(send_values) {
    unsigned char value[LARGEST];
    for (int number = 0; number < VALUES; number++) {
        make_value(value, number);
        CHECK_EQUAL(haft_io_channel_send(channel, value), 0);
    }
    haft_io_channel_close(channel);
    return NULL;
}
static void receive_values(void) {
    unsigned char received[LARGEST + 1], expected[LARGEST];
    for (int number = 0; number < VALUES; number++) {
        memset(received, 0xee, sizeof received);
        CHECK_EQUAL(haft_io_channel_receive(channel, received), 0);
        make_value(expected, number);
        CHECK(memcmp(received, expected, value_size) == 0);
        CHECK_EQUAL(received[value_size], 0xee);
    }
    CHECK_EQUAL(haft_io_channel_receive(channel, received), -EPIPE);
}
static void *pass_values(void *capacity) {
    static const size_t sizes[] = {0, 1, 4, 7, 8, LARGEST};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int senders_first = 0; senders_first < 2; senders_first++) {
            value_size = sizes[i];
            channel = haft_io_channel_new(value_size, (size_t)(intptr_t)capacity);
            haft_io_task_t *sender = haft_io_async(send_values, NULL);
            if (senders_first)
                haft_io_yield();
            receive_values();
            CHECK_EQUAL(haft_io_join(sender, NULL), 0);
            haft_io_channel_free(channel);
        }
    return NULL;
}
static void a_channel_carries_values_of_any_size(void) {
    for (int capacity = 0; capacity < 4; capacity++)
        CHECK_EQUAL(haft_io_run(pass_values, check_number(capacity)), 0);
}

BODY(give_up_on_channels) {
    channel = haft_io_channel_new(sizeof(int), 0);
    int number = 1;
    int64_t soon = haft_io_now() + HAFT_IO_MILLISECOND;
    CHECK_EQUAL(haft_io_channel_send_until(channel, &number, soon), -ETIMEDOUT);
    CHECK_EQUAL(haft_io_channel_receive_until(channel, &number, soon), -ETIMEDOUT);
    haft_io_channel_free(channel);
    return NULL;
}
static void a_channel_is_waited_for_until_a_deadline(void) {
    CHECK_RUNS(give_up_on_channels);
    give_up_on_channels(NULL);
}

static void who_tries_does_not_wait(void) {
    int number = 3;
    channel = haft_io_channel_new(sizeof(int), 1);
    CHECK_EQUAL(haft_io_channel_try_receive(channel, &number), -EAGAIN);
    CHECK_EQUAL(haft_io_channel_try_send(channel, &number), 0);
    CHECK_EQUAL(haft_io_channel_try_send(channel, &number), -EAGAIN);
    haft_io_channel_close(channel);
    CHECK_EQUAL(haft_io_channel_try_send(channel, &number), -EPIPE);
    CHECK_EQUAL(haft_io_channel_try_receive(channel, &number), 0);
    CHECK_EQUAL(haft_io_channel_try_receive(channel, &number), -EPIPE);
    haft_io_channel_free(channel);
}

static void *send_one(void *to) {
    int number = to == channel ? 1 : 2;
    haft_io_sleep(HAFT_IO_MILLISECOND / 2);
    CHECK_EQUAL(haft_io_channel_send(to, &number), 0);
    return NULL;
}
BODY(choose_between) {
    channel = haft_io_channel_new(sizeof(int), 0);
    other = haft_io_channel_new(sizeof(int), 1);
    int a = 0, b = 0;
    haft_io_select_case_t choices[] = {{.channel = channel, .receive = &a},
                                       {.channel = other, .receive = &b}};
    CHECK_EQUAL(haft_io_select_until(choices, 2, haft_io_now() + HAFT_IO_MILLISECOND / 4),
                -ETIMEDOUT);
    haft_io_spawn(send_one, channel);
    CHECK_EQUAL(haft_io_select(choices, 2), 0);
    CHECK_EQUAL(a, 1);
    haft_io_spawn(send_one, other);
    CHECK_EQUAL(haft_io_select(choices, 2), 1);
    CHECK_EQUAL(b, 2);

    /* To send where there is room, or to receive from the other. */
    haft_io_select_case_t both[] = {{.channel = channel, .receive = &a},
                                    {.channel = other, .send = &b}};
    CHECK_EQUAL(haft_io_select(both, 2), 1);
    CHECK_EQUAL(haft_io_channel_receive(other, &a), 0);
    CHECK_EQUAL(a, 2);

    /* Its own places on both sides of one channel are none to deal with. */
    haft_io_select_case_t same[] = {{.channel = channel, .receive = &a},
                                    {.channel = channel, .send = &b}};
    CHECK_EQUAL(haft_io_select_until(same, 2, haft_io_now() + HAFT_IO_MILLISECOND / 4), -ETIMEDOUT);

    haft_io_channel_close(other);
    CHECK_EQUAL(haft_io_select(choices, 2), 1);
    CHECK_EQUAL(choices[1].code, -EPIPE);
    haft_io_channel_free(channel);
    haft_io_channel_free(other);
    return NULL;
}
static void a_choice_does_the_first_that_can_be_done(void) {
    CHECK_RUNS(choose_between);
}

static void *send_its_number(void *to) {
    int number = to == channel ? 1 : 2;
    haft_io_channel_send_until(to, &number, haft_io_now() + HAFT_IO_MILLISECOND);
    return NULL;
}
BODY(receive_to_one_place) {
    channel = haft_io_channel_new(sizeof(int), 0);
    other = haft_io_channel_new(sizeof(int), 0);
    haft_io_spawn(send_its_number, channel);
    haft_io_spawn(send_its_number, other);
    int value = 0;
    haft_io_select_case_t choices[] = {{.channel = channel, .receive = &value},
                                       {.channel = other, .receive = &value}};
    CHECK_EQUAL(haft_io_select(choices, 2), 0);
    CHECK_EQUAL(value, 1);
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    haft_io_channel_free(channel);
    haft_io_channel_free(other);
    return NULL;
}
static void a_choice_that_was_done_is_not_overwritten_by_the_other(void) {
    CHECK_RUNS(receive_to_one_place);
}

enum { CHANNELS = 1000 };
static haft_io_channel_t *many[CHANNELS];
BODY(choose_among_many) {
    static haft_io_select_case_t choices[CHANNELS];
    int value = 0;
    for (int i = 0; i < CHANNELS; i++) {
        many[i] = haft_io_channel_new(sizeof(int), 0);
        choices[i] = (haft_io_select_case_t){.channel = many[i], .receive = &value};
    }
    CHECK_EQUAL(haft_io_select_until(choices, CHANNELS, haft_io_now()), -ETIMEDOUT);
    channel = many[CHANNELS / 2];
    haft_io_spawn(send_one, channel);
    CHECK_EQUAL(haft_io_select(choices, CHANNELS), CHANNELS / 2);
    CHECK_EQUAL(value, 1);
    if (check_bare())
        CHECK_EQUAL(haft_io_select(choices, (size_t)-1 / 8), -ENOMEM);
    for (int i = 0; i < CHANNELS; i++)
        haft_io_channel_free(many[i]);
    return NULL;
}
static void a_choice_among_a_thousand_needs_no_large_stack(void) {
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.stack_size = 32 << 10}, choose_among_many, NULL),
        0);
}

/* ---- Tasks and threads ---- */

enum { ROUNDS = 3000 };
static long total;

static int rounds(void) {
    return check_times(ROUNDS);
}
BODY(add_under_mutex) {
    for (int i = 0; i < rounds(); i++) {
        CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
        total++;
        if (i % 16 == 0)
            haft_io_yield();
        haft_io_mutex_unlock(&mutex);
    }
    return NULL;
}
BODY(produce) {
    for (int i = 1; i <= rounds(); i++)
        CHECK_EQUAL(haft_io_channel_send(channel, &i), 0);
    return NULL;
}
BODY(consume) {
    for (int i = 0; i < rounds(); i++) {
        int number = 0;
        haft_io_select_case_t choices[] = {{.channel = channel, .receive = &number},
                                           {.channel = other, .receive = &number}};
        if (i % 2 == 0)
            CHECK_EQUAL(haft_io_channel_receive(channel, &number), 0);
        else
            CHECK_EQUAL(haft_io_select(choices, 2), 0);
        __atomic_add_fetch(&total, number, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *(*on_both)(void *);
BODY(several_tasks) {
    for (int i = 0; i < 4; i++)
        haft_io_spawn(on_both, NULL);
    return NULL;
}
BODY(run_several_tasks) {
    CHECK_RUNS(several_tasks);
    return NULL;
}
static void in_threads(void *(*const bodies[])(void *), int count) {
    pthread_t threads[8];
    for (int i = 0; i < count; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, bodies[i], NULL), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}
static void two_runs_and_two_threads_share_a_mutex(void) {
    total = 0;
    on_both = add_under_mutex;
    in_threads((void *(*const[])(void *)){run_several_tasks, run_several_tasks, add_under_mutex,
                                          add_under_mutex},
               4);
    CHECK_EQUAL(total, 10L * rounds());
}

BODY(produce_in_run) {
    CHECK_RUNS(produce);
    return NULL;
}
BODY(consume_in_run) {
    CHECK_RUNS(consume);
    return NULL;
}
static void runs_and_threads_send_to_each_other(void) {
    other = haft_io_channel_new(sizeof(int), 0);
    for (size_t capacity = 0; capacity < 3; capacity++) {
        total = 0;
        channel = haft_io_channel_new(sizeof(int), capacity);
        in_threads((void *(*const[])(void *)){produce_in_run, consume, produce, consume_in_run}, 4);
        CHECK_EQUAL(total, (long)rounds() * (rounds() + 1));
        haft_io_channel_free(channel);
    }
    haft_io_channel_free(other);
}

/* HAFT_SYNC_SECONDS=60 goes on with several threads for a minute. */
/* ---- Objects that end with the wait ---- */

static void set_event(void *object) {
    haft_io_event_set(object);
}
static int wait_event(void *object) {
    return haft_io_event_wait(object);
}
static void keep_promise(void *object) {
    haft_io_promise_set(object, NULL);
}
static int await_promise(void *object) {
    void *value;
    return haft_io_promise_wait(object, &value);
}
static void release_semaphore(void *object) {
    haft_io_semaphore_release(object);
}
static int acquire_semaphore(void *object) {
    return haft_io_semaphore_acquire(object);
}
static void send_value(void *object) {
    CHECK_EQUAL(haft_io_channel_send(object, &(int){1}), 0);
}
static int receive_value(void *object) {
    int value;
    return haft_io_channel_receive(object, &value);
}
static int wait_to_send(void *object) {
    return haft_io_channel_send(object, &(int){2});
}
static void receive_and_check(void *object) {
    CHECK_EQUAL(receive_value(object), 0);
}
static void close_channel(void *object) {
    haft_io_channel_close(object);
}
static int receive_the_end(void *object) {
    return receive_value(object) == -EPIPE ? 0 : -EIO;
}
static const struct ending {
    size_t size; /* 0: a channel */
    int (*wait)(void *object);
    void (*end)(void *object);
} endings[] = {{sizeof(haft_io_event_t), wait_event, set_event},
               {sizeof(haft_io_promise_t), await_promise, keep_promise},
               {sizeof(haft_io_semaphore_t), acquire_semaphore, release_semaphore},
               {0, receive_value, send_value},
               {0, wait_to_send, receive_and_check},
               {0, receive_the_end, close_channel}};
enum { ENDINGS = sizeof endings / sizeof endings[0] };
static const struct ending *ending;
static void *end_a_wait(void *object) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    ending->end(object);
    return NULL;
}
BODY(wait_for_what_ends) {
    for (int i = 0; i < 10 * ENDINGS; i++) {
        pthread_t thread;
        ending = &endings[i % ENDINGS];
        bool is_channel = ending->size == 0;
        void *object = is_channel ? haft_io_channel_new(sizeof(int), 0) : calloc(1, ending->size);
        CHECK_EQUAL(pthread_create(&thread, NULL, end_a_wait, object), 0);
        CHECK_EQUAL(ending->wait(object), 0);
        if (is_channel)
            haft_io_channel_free(object);
        else
            free(object);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    }
    return NULL;
}
/* The promise is in the frame of the task that keeps it. */
static void *keep_and_forget(void *where) {
    haft_io_promise_t mine = {.value = NULL};
    *(haft_io_promise_t **)where = &mine;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_promise_set(&mine, check_number(7));
    memset(&mine, 0xa5, sizeof mine);
    __asm__ volatile("" : : "r"(&mine) : "memory");
    return NULL;
}
BODY(await_what_ends) {
    haft_io_promise_t *theirs = NULL;
    void *value = NULL;
    haft_io_spawn(keep_and_forget, &theirs);
    while (theirs == NULL)
        haft_io_yield();
    CHECK_EQUAL(haft_io_promise_wait(theirs, &value), 0);
    CHECK_EQUAL((intptr_t)value, 7);
    return NULL;
}
static void a_promise_may_end_when_it_has_been_kept(void) {
    CHECK_RUNS(await_what_ends);
}

/* (What is wrong here the thread sanitizer sees.) */
static void an_object_may_end_with_the_only_wait_for_it(void) {
    wait_for_what_ends(NULL);
    CHECK_RUNS(wait_for_what_ends);
}

/* Two by turns, each among two channels of its own, all of which have something. */
static void *choose_often(void *unused) {
    enum { OFTEN = 200 };
    haft_io_channel_t *channels[2];
    haft_io_select_case_t choices[2];
    int value = 0, times[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        channels[i] = haft_io_channel_new(sizeof(int), OFTEN);
        for (int k = 0; k < OFTEN; k++)
            haft_io_channel_send(channels[i], &k);
        choices[i] = (haft_io_select_case_t){.channel = channels[i], .receive = &value};
    }
    for (int k = 0; k < OFTEN; k++) {
        times[haft_io_select(choices, 2)]++;
        haft_io_yield();
    }
    for (int i = 0; i < 2; i++) {
        CHECK(times[i] > OFTEN / 4);
        haft_io_channel_free(channels[i]);
    }
    return unused;
}
BODY(choose_by_turns) {
    haft_io_spawn(choose_often, NULL);
    haft_io_spawn(choose_often, NULL);
    return NULL;
}
static void no_choice_is_passed_over_where_several_choose_by_turns(void) {
    CHECK_RUNS(choose_by_turns);
}

/* A choice that can be done again and again keeps nobody waiting, and ends by a cancel. */
static void *choose_closed(void *closed) {
    haft_io_select_case_t choice = {.channel = closed, .receive = &(int){0}};
    while (haft_io_select(&choice, 1) == 0)
        continue;
    return NULL;
}
BODY(cancel_after_others) {
    haft_io_channel_t *closed = haft_io_channel_new(sizeof(int), 1);
    haft_io_channel_close(closed);
    haft_io_spawn(choose_closed, closed);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return closed;
}
BODY(choose_what_is_closed) {
    void *closed = NULL;
    CHECK_EQUAL(haft_io_scope(cancel_after_others, NULL, &closed), -ECANCELED);
    haft_io_channel_free(closed);
    return NULL;
}
static void who_chooses_a_closed_channel_for_ever_lets_others_go_on(void) {
    CHECK_RUNS(choose_what_is_closed);
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, choose_what_is_closed, NULL), 0);
}

static bool others_went_on;
static void *lock_for_others(void *unused) {
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    others_went_on = true;
    haft_io_mutex_unlock(&mutex);
    return unused;
}
BODY(lock_until_others_have_gone_on) {
    others_went_on = false;
    haft_io_mutex_lock(&mutex);
    haft_io_task_t *another = haft_io_async(lock_for_others, NULL);
    haft_io_yield();
    haft_io_mutex_unlock(&mutex);
    int times = 0;
    for (; !others_went_on; times++) {
        CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
        haft_io_mutex_unlock(&mutex);
    }
    CHECK_EQUAL(times, 257);
    CHECK_EQUAL(haft_io_join(another, NULL), 0);
    CHECK(!mutex.held && !mutex.called && mutex.waiting.first == NULL);
    return NULL;
}
static void who_locks_again_and_again_passes_over_who_waits_256_times(void) {
    CHECK_RUNS(lock_until_others_have_gone_on);
}

/* The task that waits for the mutex is called on another thread, which is busy until the mutex has
   been taken many times. */
static int busy;
static void *be_busy(void *unused) {
    __atomic_store_n(&busy, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&busy, __ATOMIC_SEQ_CST))
        ;
    return unused;
}
BODY(wait_for_mutex_on_a_busy_thread) {
    haft_io_task_t *another = haft_io_async(lock_for_others, NULL);
    haft_io_yield();
    haft_io_spawn(be_busy, NULL);
    CHECK_EQUAL(haft_io_join(another, NULL), 0);
    return NULL;
}
BODY(run_busy_thread) {
    CHECK_RUNS(wait_for_mutex_on_a_busy_thread);
    return NULL;
}
static bool lock_many_times(void) {
    bool done = true;
    for (int i = 0; i < 1000 && done; i++) {
        done = haft_io_mutex_lock_until(&mutex, 0) == 0;
        if (done)
            haft_io_mutex_unlock(&mutex);
    }
    return done;
}
BODY(lock_many_times_while_another_is_called) {
    pthread_t another;
    haft_io_mutex_lock(&mutex);
    CHECK_EQUAL(pthread_create(&another, NULL, run_busy_thread, NULL), 0);
    while (!__atomic_load_n(&busy, __ATOMIC_SEQ_CST))
        sched_yield();
    haft_io_mutex_unlock(&mutex);
    CHECK(mutex.called);
    bool done = lock_many_times();
    pid_t child = fork(); /* The threads' memory is not freed there: no check may report it. */
    if (child == 0) {
        if (lock_many_times())
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    __atomic_store_n(&busy, false, __ATOMIC_SEQ_CST);
    CHECK(done && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pthread_join(another, NULL);
    CHECK(!mutex.held && !mutex.called && mutex.waiting.first == NULL);
    return NULL;
}
static void a_mutex_that_is_free_is_not_waited_for(void) {
    CHECK_RUNS(lock_many_times_while_another_is_called);
    lock_many_times_while_another_is_called(NULL);
}

/* ---- Turns ---- */

/*
 * Operations that can be done at once, again and again: each of these goes on until another task of
 * the thread, which waits for a time, has gone on.
 */
static haft_io_semaphore_t supply;
static haft_io_rwlock_t readers_and_writer;
static haft_io_event_t event_set;
static haft_io_promise_t promise_kept;
static haft_io_once_t once_done;
static haft_io_barrier_t barrier_of_one;
static int ends[2];

static void lock_and_unlock(void) {
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    haft_io_mutex_unlock(&mutex);
}
static void try_a_mutex(void) {
    CHECK(haft_io_mutex_try_lock(&mutex));
    haft_io_mutex_unlock(&mutex);
}
static void try_a_mutex_in_vain(void) {
    static haft_io_mutex_t held;
    if (haft_io_mutex_try_lock(&held))
        CHECK(!haft_io_mutex_try_lock(&held));
}
static void acquire_and_release(void) {
    CHECK_EQUAL(haft_io_semaphore_acquire(&supply), 0);
    haft_io_semaphore_release(&supply);
}
static void try_a_semaphore(void) {
    if (haft_io_semaphore_try_acquire(&supply))
        haft_io_semaphore_release(&supply);
}
static void lock_to_read(void) {
    CHECK_EQUAL(haft_io_rwlock_read_lock(&readers_and_writer), 0);
    haft_io_rwlock_unlock(&readers_and_writer);
}
static void lock_to_write(void) {
    CHECK_EQUAL(haft_io_rwlock_write_lock(&readers_and_writer), 0);
    haft_io_rwlock_unlock(&readers_and_writer);
}
static void try_to_read_and_write(void) {
    if (haft_io_rwlock_try_read_lock(&readers_and_writer)) {
        CHECK(!haft_io_rwlock_try_write_lock(&readers_and_writer));
        haft_io_rwlock_unlock(&readers_and_writer);
    }
}
static void wait_for_what_is_set(void) {
    CHECK_EQUAL(haft_io_event_wait(&event_set), 0);
}
static void await_what_is_kept(void) {
    CHECK_EQUAL(haft_io_promise_wait(&promise_kept, NULL), 0);
}
static void call_nothing(void *unused) {
    (void)unused;
}
static void call_once_more(void) {
    CHECK_EQUAL(haft_io_once_call(&once_done, call_nothing, NULL), 0);
}
static void arrive_alone(void) {
    CHECK_EQUAL(haft_io_barrier_wait(&barrier_of_one), 1);
}
static void send_and_receive(void) {
    CHECK_EQUAL(haft_io_channel_send(channel, &(int){1}), 0);
    CHECK_EQUAL(haft_io_channel_receive(channel, &(int){0}), 0);
}
static void try_a_channel(void) {
    CHECK_EQUAL(haft_io_channel_try_receive(channel, &(int){0}), -EAGAIN);
}
static void receive_the_end_again(void) {
    CHECK_EQUAL(haft_io_channel_receive(other, &(int){0}), -EPIPE);
}
static void choose_the_end(void) {
    CHECK_EQUAL(haft_io_select(&(haft_io_select_case_t){.channel = other, .receive = &(int){0}}, 1),
                0);
}
static void *return_at_once(void *argument) {
    return argument;
}
static void open_a_scope(void) {
    CHECK_EQUAL(haft_io_scope(return_at_once, NULL, NULL), 0);
}
static void shield_nothing(void) {
    CHECK_EQUAL(haft_io_shield(return_at_once, NULL), 0);
}
static void join_a_task(void) {
    CHECK_EQUAL(haft_io_join(haft_io_async(return_at_once, NULL), NULL), 0);
}
static void sleep_until_the_past(void) {
    CHECK_EQUAL(haft_io_sleep_until(1), 0);
}
static void write_and_read(void) {
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(ends[1], &(char){0}, 1), 1);
}
static void send_and_receive_bytes(void) {
    CHECK_EQUAL(haft_io_send(ends[0], "x", 1, 0), 1);
    CHECK_EQUAL(haft_io_receive(ends[1], &(char){0}, 1, 0), 1);
}
static void write_and_read_parts(void) {
    char byte = 'x';
    struct iovec part = {&byte, 1};
    CHECK_EQUAL(haft_io_writev(ends[0], &part, 1), 1);
    CHECK_EQUAL(haft_io_readv(ends[1], &part, 1), 1);
}
static void write_and_read_lent(void) {
    const void *bytes = NULL;
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), 1);
    CHECK_EQUAL(haft_io_read_lent(ends[1], &bytes), 1);
    haft_io_give_back(bytes);
}
static void poll_what_is_ready(void) {
    CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLOUT), POLLOUT);
    CHECK_EQUAL(haft_io_poll(&(struct pollfd){ends[0], POLLOUT, 0}, 1, HAFT_IO_FOREVER), 1);
}
static void close_what_is_opened(void) {
    haft_io_close(haft_io_socket(AF_INET, SOCK_DGRAM, 0));
}
static void (*const at_once[])(void) = {lock_and_unlock,       try_a_mutex,
                                        try_a_mutex_in_vain,   acquire_and_release,
                                        try_a_semaphore,       lock_to_read,
                                        lock_to_write,         try_to_read_and_write,
                                        wait_for_what_is_set,  await_what_is_kept,
                                        call_once_more,        arrive_alone,
                                        send_and_receive,      try_a_channel,
                                        receive_the_end_again, choose_the_end,
                                        open_a_scope,          shield_nothing,
                                        join_a_task,           sleep_until_the_past,
                                        write_and_read,        send_and_receive_bytes,
                                        write_and_read_parts,  write_and_read_lent,
                                        poll_what_is_ready,    close_what_is_opened};
enum { AT_ONCE = sizeof at_once / sizeof at_once[0] };

static void *go_on_in_time(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    __atomic_store_n(&others_went_on, true, __ATOMIC_RELAXED);
    return unused;
}
BODY(do_each_until_others_have_gone_on) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (int i = 0; i < AT_ONCE; i++) {
        __atomic_store_n(&others_went_on, false, __ATOMIC_RELAXED);
        haft_io_task_t *another = haft_io_async(go_on_in_time, NULL);
        while (!__atomic_load_n(&others_went_on, __ATOMIC_RELAXED))
            at_once[i]();
        CHECK_EQUAL(haft_io_join(another, NULL), 0);
    }
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void do_each_with(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, do_each_until_others_have_gone_on, NULL), 0);
}
static void whatever_a_task_does_at_once_again_and_again_others_go_on(void) {
    supply = (haft_io_semaphore_t){.count = 1};
    barrier_of_one = (haft_io_barrier_t){.needed = 1};
    haft_io_event_set(&event_set);
    haft_io_promise_set(&promise_kept, NULL);
    channel = haft_io_channel_new(sizeof(int), 1);
    other = haft_io_channel_new(sizeof(int), 1);
    haft_io_channel_close(other);
    check_everywhere(do_each_with); /* No channel is simple in a run of two threads. */
    haft_io_channel_free(channel);
    haft_io_channel_free(other);
}

/* The wait for a value ends by a cancel while another thread tries to end it by a value. (What is
   wrong here the thread sanitizer sees.) */
static void *try_to_send_until_closed(void *to) {
    while (haft_io_channel_try_send(to, &(int){1}) != -EPIPE)
        sched_yield();
    return NULL;
}
static void *receive_again_and_again(void *from) {
    while (haft_io_channel_receive(from, &(int){0}) == 0)
        continue;
    return NULL;
}
BODY(cancel_a_receiver) {
    haft_io_spawn(receive_again_and_again, channel);
    for (int i = 0; i < 4; i++)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(cancel_many_receivers) {
    pthread_t another;
    channel = haft_io_channel_new(sizeof(int), 0);
    CHECK_EQUAL(pthread_create(&another, NULL, try_to_send_until_closed, channel), 0);
    for (int i = check_times(2000); i > 0; i--)
        CHECK_EQUAL(haft_io_scope(cancel_a_receiver, NULL, NULL), -ECANCELED);
    haft_io_channel_close(channel);
    pthread_join(another, NULL);
    haft_io_channel_free(channel);
    return NULL;
}
static void a_wait_ends_by_a_cancel_or_by_another_thread(void) {
    CHECK_RUNS(cancel_many_receivers);
}

/* ---- Cleanups ---- */

enum { VERY_MANY = 200 };
static void send_very_many(haft_io_channel_t **numbers) {
    for (int i = 0; i < VERY_MANY; i++)
        CHECK_EQUAL(haft_io_channel_send(*numbers, &i), 0);
    CHECK_EQUAL(haft_io_channel_send(*numbers, &(int){0}), -ECANCELED);
}
BODY(be_cancelled_and_send) {
    __attribute__((cleanup(send_very_many), unused)) haft_io_channel_t *numbers = channel;
    haft_io_scope_cancel(haft_io_this_scope());
    haft_io_sleep(HAFT_IO_SECOND);
    return NULL;
}
static void a_cleanup_does_at_once_what_it_can_however_much_that_is(void) {
    pthread_t another;
    CHECK_EQUAL(pthread_create(&another, NULL, check_nothing, NULL), 0);
    channel = haft_io_channel_new(sizeof(int), VERY_MANY);
    CHECK_EQUAL(haft_io_run(be_cancelled_and_send, NULL), -ECANCELED);
    haft_io_channel_free(channel);
    pthread_join(another, NULL);
}

BODY(choose_without_channels) {
    haft_io_channel_t *numbers = haft_io_channel_new(sizeof(int), 1);
    int value = 0;
    haft_io_select_case_t choices[] = {{.receive = &value},
                                       {.channel = numbers, .receive = &value},
                                       {.send = &value},
                                       {.channel = numbers, .receive = &value}};
    CHECK_EQUAL(haft_io_select_until(choices, 4, haft_io_now()), -ETIMEDOUT);
    CHECK_EQUAL(haft_io_channel_send(numbers, &(int){1}), 0);
    CHECK(haft_io_select(choices, 4) % 2 == 1);
    CHECK_EQUAL(haft_io_channel_send(numbers, &(int){2}), 0);
    CHECK_EQUAL(haft_io_select(choices, 3), 1);
    CHECK_EQUAL(value, 2);
    choices[1].channel = NULL;
    CHECK_EQUAL(haft_io_select_until(choices, 3, haft_io_now() + HAFT_IO_MILLISECOND / 4),
                -ETIMEDOUT);
    haft_io_channel_free(numbers);
    return NULL;
}
static void a_choice_without_a_channel_is_never_done(void) {
    CHECK_RUNS(choose_without_channels);
}

BODY(send_nothings) {
    haft_io_channel_t *empty = haft_io_channel_new(0, 1);
    CHECK_EQUAL(haft_io_channel_send(empty, NULL), 0);
    CHECK_EQUAL(haft_io_channel_try_send(empty, NULL), -EAGAIN);
    CHECK_EQUAL(haft_io_channel_receive(empty, NULL), 0);
    CHECK_EQUAL(haft_io_channel_try_receive(empty, NULL), -EAGAIN);
    haft_io_channel_free(empty);
    return NULL;
}
static void a_value_of_no_bytes_needs_no_memory(void) {
    CHECK_RUNS(send_nothings);
}

int main(void) {
    check_backend();
    RUN(a_mutex_is_handed_over_in_order);
    RUN(a_mutex_passes_over_who_waits_only_until_his_turn_has_come);
    RUN(a_mutex_owed_to_a_cancelled_task_is_free);
    RUN(who_gives_up_waiting_has_no_lock_and_is_in_nobodys_way);
    RUN(mistakes_are_named);
    RUN(a_semaphore_lets_as_many_in_as_it_counts);
    RUN(an_event_lets_all_go_on_once_it_is_set);
    RUN(a_condition_releases_its_mutex_and_has_it_again_afterwards);
    RUN(a_promise_is_awaited_before_and_after_it_is_kept);
    RUN(a_channel_keeps_the_order_and_ends_when_it_is_closed);
    RUN(a_channel_carries_values_of_any_size);
    RUN(a_channel_is_waited_for_until_a_deadline);
    RUN(who_tries_does_not_wait);
    RUN(a_choice_does_the_first_that_can_be_done);
    RUN(a_choice_that_was_done_is_not_overwritten_by_the_other);
    RUN(a_choice_among_a_thousand_needs_no_large_stack);
    RUN(no_choice_is_passed_over_where_several_choose_by_turns);
    RUN(who_chooses_a_closed_channel_for_ever_lets_others_go_on);
    RUN(who_locks_again_and_again_passes_over_who_waits_256_times);
    RUN(a_mutex_that_is_free_is_not_waited_for);
    RUN(whatever_a_task_does_at_once_again_and_again_others_go_on);
    RUN(a_wait_ends_by_a_cancel_or_by_another_thread);
    RUN(a_cleanup_does_at_once_what_it_can_however_much_that_is);
    RUN(a_choice_without_a_channel_is_never_done);
    RUN(an_object_may_end_with_the_only_wait_for_it);
    RUN(a_promise_may_end_when_it_has_been_kept);
    double seconds = check_campaign("HAFT_SYNC_SECONDS", 0, CHECK_RACE_SECONDS);
    double begin = (double)time(NULL);
    do {
        RUN(two_runs_and_two_threads_share_a_mutex);
        RUN(runs_and_threads_send_to_each_other);
    } while (check_failures == 0 && (double)time(NULL) < begin + seconds);
    RUN(a_value_of_no_bytes_needs_no_memory);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
