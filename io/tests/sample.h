/* SPDX-License-Identifier: MIT */
/*
 * Small programs that together use everything of haft/io.h, for tests that cancel them, or let the
 * system fail, at each moment. Whatever goes wrong fails the program's scope, and everything is
 * given back by cleanups; sample_is_idle() checks that nothing is held afterwards.
 */
#ifndef HAFT_IO_TESTS_SAMPLE_H
#define HAFT_IO_TESTS_SAMPLE_H

#include "check_io.h"

#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* The test's: called before a task yields; and frees what the system's library has allocated. */
static void sample_yields(void);
static void sample_free(void *block);

/* Where a sample runs; NULL: in a simulation. */
static const haft_io_run_options_t *how;
static uint64_t seed = 1; /* of the next simulation */

static int give_way(void) {
    sample_yields();
    return haft_io_yield();
}

/* The code of a deadline is the scope's that has it. */
static ssize_t must(ssize_t code) {
    if (code < 0)
        haft_io_fail(code == -ETIMEDOUT ? -ETIME : (int)code, "a step of the sample");
    return code;
}
static void start(void *(*function)(void *), void *argument) {
    must(haft_io_spawn(function, argument));
}

BODY(pause_shielded) {
    give_way();
    haft_io_sleep(1);
    return NULL;
}
static void clean_up_slowly(__attribute__((unused)) const int *unused) {
    haft_io_shield(pause_shielded, NULL);
}
#define CLEANS_UP_SLOWLY __attribute__((cleanup(clean_up_slowly), unused)) int slow = 0

/* ---- Locks ---- */

static struct objects {
    haft_io_mutex_t mutex, for_condition;
    haft_io_semaphore_t semaphore;
    haft_io_condition_t condition;
    haft_io_rwlock_t rwlock;
    haft_io_once_t once;
    haft_io_barrier_t barrier;
    haft_io_event_t event;
    haft_io_promise_t promise;
    bool is_so;
} objects;

static void unlock_it(haft_io_mutex_t **mutex) {
    haft_io_mutex_unlock(*mutex);
}
static void release_it(haft_io_semaphore_t **semaphore) {
    haft_io_semaphore_release(*semaphore);
}
static void unlock_rwlock(haft_io_rwlock_t **lock) {
    haft_io_rwlock_unlock(*lock);
}
#define UNTIL_THE_END(function, pointer)                                                           \
    __attribute__((cleanup(function), unused)) __typeof__(pointer) held = (pointer)

BODY(hold_mutex) {
    must(haft_io_mutex_lock(&objects.mutex));
    UNTIL_THE_END(unlock_it, &objects.mutex);
    CLEANS_UP_SLOWLY;
    must(give_way());
    must(haft_io_sleep(1));
    return NULL;
}
BODY(hold_semaphore) {
    must(haft_io_semaphore_acquire(&objects.semaphore));
    UNTIL_THE_END(release_it, &objects.semaphore);
    must(haft_io_sleep(1));
    return NULL;
}
BODY(hold_to_read) {
    must(haft_io_rwlock_read_lock(&objects.rwlock));
    UNTIL_THE_END(unlock_rwlock, &objects.rwlock);
    must(give_way());
    return NULL;
}
BODY(hold_to_write) {
    must(haft_io_rwlock_write_lock(&objects.rwlock));
    UNTIL_THE_END(unlock_rwlock, &objects.rwlock);
    must(give_way());
    return NULL;
}
BODY(wait_until_it_is_so) {
    must(haft_io_mutex_lock(&objects.for_condition));
    UNTIL_THE_END(unlock_it, &objects.for_condition);
    while (!objects.is_so)
        must(haft_io_condition_wait(&objects.condition, &objects.for_condition));
    return NULL;
}
BODY(make_it_so) {
    must(give_way());
    must(haft_io_mutex_lock(&objects.for_condition));
    UNTIL_THE_END(unlock_it, &objects.for_condition);
    objects.is_so = true;
    haft_io_condition_broadcast(&objects.condition);
    return NULL;
}
static void pause_once(__attribute__((unused)) void *unused) {
    give_way();
}
BODY(do_it_once) {
    must(haft_io_once_call(&objects.once, pause_once, NULL));
    return NULL;
}
BODY(meet) {
    must(haft_io_barrier_wait(&objects.barrier));
    return NULL;
}
BODY(await_both) {
    void *value;
    must(haft_io_event_wait(&objects.event));
    must(haft_io_promise_wait(&objects.promise, &value));
    return NULL;
}
BODY(keep_both) {
    haft_io_event_set(&objects.event);
    must(give_way());
    haft_io_promise_set(&objects.promise, NULL);
    return NULL;
}

BODY(use_locks) {
    void *(*const bodies[])(void *) = {hold_mutex,     hold_mutex,          hold_semaphore,
                                       hold_semaphore, hold_to_read,        hold_to_write,
                                       hold_to_read,   wait_until_it_is_so, make_it_so,
                                       do_it_once,     do_it_once,          meet,
                                       meet,           await_both,          keep_both};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        start(bodies[i], NULL);
    return NULL;
}

/* ---- Channels ---- */

static haft_io_channel_t *bounded, *unbounded_pair[2];

static void free_channel(haft_io_channel_t **channel) {
    haft_io_channel_free(*channel);
}
static void close_channel(haft_io_channel_t **channel) {
    haft_io_channel_close(*channel);
}
BODY(produce) {
    UNTIL_THE_END(close_channel, bounded);
    for (int i = 0; i < 3; i++)
        must(haft_io_channel_send(bounded, &i));
    return NULL;
}
BODY(consume) {
    int value, code;
    while ((code = haft_io_channel_receive(bounded, &value)) == 0)
        must(give_way());
    if (code != -EPIPE)
        must(code);
    return NULL;
}
BODY(answer) {
    int value;
    haft_io_select_case_t choices[] = {{.channel = unbounded_pair[0], .receive = &value},
                                       {.channel = bounded, .receive = &value}};
    must(haft_io_select(choices, 1));
    must(haft_io_channel_send_until(unbounded_pair[1], &value, HAFT_IO_FOREVER));
    return NULL;
}
BODY(ask) {
    int value = 1;
    must(haft_io_channel_send(unbounded_pair[0], &value));
    haft_io_select_case_t choices[] = {{.channel = unbounded_pair[0], .receive = &value},
                                       {.channel = unbounded_pair[1], .receive = &value}};
    must(haft_io_select(choices, 2));
    int code = haft_io_select_until(choices, 2, haft_io_now());
    if (code != -ETIMEDOUT)
        must(code);
    return NULL;
}
BODY(talk) {
    start(produce, NULL);
    start(consume, NULL);
    start(answer, NULL);
    start(ask, NULL);
    return NULL;
}
static haft_io_channel_t *channel_or_fail(size_t capacity) {
    haft_io_channel_t *channel = haft_io_channel_new(sizeof(int), capacity);
    must(channel != NULL ? 0 : -ENOMEM);
    return channel;
}
BODY(use_channels) {
    __attribute__((cleanup(free_channel))) haft_io_channel_t *one = channel_or_fail(1);
    __attribute__((cleanup(free_channel))) haft_io_channel_t *two = channel_or_fail(0);
    __attribute__((cleanup(free_channel))) haft_io_channel_t *three = channel_or_fail(0);
    bounded = one, unbounded_pair[0] = two, unbounded_pair[1] = three;
    must(haft_io_scope(talk, NULL, NULL));
    return NULL;
}

/* ---- Scopes ---- */

static const char key;

BODY(nap) {
    CLEANS_UP_SLOWLY;
    must(haft_io_sleep(1));
    return NULL;
}
BODY(sleep_for_ever) {
    CLEANS_UP_SLOWLY;
    must(haft_io_sleep(HAFT_IO_FOREVER));
    return NULL;
}
BODY(fail_soon) {
    must(give_way());
    haft_io_fail(-EIO, "as it should");
}
BODY(two_of_which_one_fails) {
    start(sleep_for_ever, NULL);
    start(fail_soon, NULL);
    return NULL;
}
BODY(return_cancels) {
    haft_io_return_cancels(true);
    haft_io_sleep(HAFT_IO_FOREVER);
    return NULL;
}
BODY(nest) {
    must(haft_io_local_set(&key, NULL));
    haft_io_task_t *task = haft_io_async(nap, NULL);
    must(task != NULL ? 0 : -ENOMEM);
    must(haft_io_join(task, NULL));
    haft_io_async(nap, NULL);
    int code = haft_io_scope(two_of_which_one_fails, NULL, NULL);
    must(code == -EIO ? 0 : code);
    haft_io_scope_options_t limited = {.deadline = haft_io_now() + 1};
    code = haft_io_scope_with(&limited, sleep_for_ever, NULL, NULL);
    must(code == -ETIMEDOUT ? 0 : code);
    limited.deadline = haft_io_now() + 1;
    code = haft_io_scope_with(&limited, return_cancels, NULL, NULL);
    must(code == -ETIMEDOUT ? 0 : code);
    haft_io_call_t calls[] = {{nap, NULL, NULL}, {nap, NULL, NULL}, {sleep_for_ever, NULL, NULL}};
    must(haft_io_all(calls, 2));
    must(haft_io_first(calls, 3));
    return NULL;
}
BODY(use_scopes) {
    must(haft_io_scope(nest, NULL, NULL));
    return NULL;
}

/* ---- Descriptors ---- */

static int pipe_ends[2], pair_ends[2], datagrams[2];

BODY(write_slowly) {
    must(give_way());
    must(haft_io_write_all(pipe_ends[1], "ab", 2));
    must(haft_io_sleep(1));
    struct iovec part = {(char[]){"c"}, 1};
    must(haft_io_writev(pipe_ends[1], &part, 1));
    return NULL;
}
BODY(read_three) {
    char bytes[3];
    for (size_t got = 0; got < sizeof bytes;) {
        struct iovec part = {bytes + got, sizeof bytes - got};
        ssize_t count = got == 0 ? haft_io_read(pipe_ends[0], bytes, sizeof bytes)
                                 : haft_io_readv(pipe_ends[0], &part, 1);
        must(count == 0 ? -EPIPE : count);
        got += (size_t)count;
    }
    return NULL;
}
/* More than the pair holds. */
enum { MUCH = 300000, MUCH_IN_SIMULATION = 10000 };
static size_t how_much(void) {
    return how != NULL ? MUCH : MUCH_IN_SIMULATION;
}
BODY(send_much) {
    static char zeros[MUCH];
    must(haft_io_write_all(pair_ends[1], zeros, how_much()));
    must(haft_io_send_descriptor(pair_ends[1], datagrams[0]));
    return NULL;
}
BODY(receive_much) {
    char buffer[20000];
    for (size_t got = 0, all = how_much(); got < all;) {
        size_t left = all - got < sizeof buffer ? all - got : sizeof buffer;
        ssize_t part = haft_io_receive(pair_ends[0], buffer, left, 0);
        must(part == 0 ? -EPIPE : part);
        got += (size_t)part;
        must(give_way());
    }
    HAFT_IO_SCOPED_DESCRIPTOR __attribute__((unused)) int passed =
        (int)must(haft_io_receive_descriptor(pair_ends[0]));
    return NULL;
}
BODY(send_a_datagram) {
    must(haft_io_wait_ready(datagrams[1], POLLOUT));
    must(haft_io_send_to(datagrams[1], "x", 1, 0, NULL, 0));
    return NULL;
}
BODY(receive_a_datagram) {
    char byte;
    struct pollfd entries[] = {{datagrams[0], POLLIN, 0}, {datagrams[1], POLLIN, 0}};
    must(haft_io_poll(entries, 2, HAFT_IO_FOREVER));
    entries[0].events = POLLPRI;
    must(haft_io_poll(entries, 2, haft_io_now() + 1));
    must(haft_io_receive_from(datagrams[0], &byte, 1, 0, NULL, NULL));
    return NULL;
}
BODY(transfer) {
    start(read_three, NULL);
    start(write_slowly, NULL);
    start(receive_much, NULL);
    start(send_much, NULL);
    start(receive_a_datagram, NULL);
    start(send_a_datagram, NULL);
    return NULL;
}
static void close_both(int (*ends)[2]) {
    for (int i = 0; i < 2; i++)
        if ((*ends)[i] >= 0)
            haft_io_close((*ends)[i]);
}
#define PAIR(name) __attribute__((cleanup(close_both))) int name[2] = {-1, -1}
BODY(use_descriptors) {
    PAIR(first);
    PAIR(second);
    PAIR(third);
    must(haft_io_pipe(first));
    must(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, second));
    must(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, third));
    memcpy(pipe_ends, first, sizeof first);
    memcpy(pair_ends, second, sizeof second);
    memcpy(datagrams, third, sizeof third);
    must(haft_io_scope(transfer, NULL, NULL));
    return NULL;
}

/* ---- Sockets ---- */

static int listeners[2];
static char socket_path[64];

/* The task that opened the scope closes it: a task that gets no stack fails before it has run. */
static int accepted[2];
static void close_accepted(__attribute__((unused)) const int *unused) {
    for (int i = 0; i < 2; i++)
        if (accepted[i] >= 0)
            haft_io_close(accepted[i]);
}
static void *answer_one(void *connection) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    ssize_t got = must(haft_io_read_lent(*(int *)connection, &bytes));
    while (got != 0) {
        must(haft_io_write_all(*(int *)connection, bytes, (size_t)got));
        got = must(haft_io_read_lent(*(int *)connection, &bytes));
    }
    return NULL;
}
static void *accept_one(void *listener) {
    int *connection = &accepted[(int *)listener - listeners];
    *connection = (int)must(haft_io_accept(*(int *)listener));
    start(answer_one, connection);
    return NULL;
}
static void *ask_one(void *is_local) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)must(
        is_local ? haft_io_connect_unix(socket_path)
                 : haft_io_connect_tcp("localhost", (uint16_t)haft_io_port(listeners[0])));
    char bytes[8];
    ssize_t sent = must(haft_io_send(connection, "hello", 5, 0));
    for (ssize_t got, taken = 0; taken < sent; taken += got) {
        got = must(haft_io_read(connection, bytes, sizeof bytes));
        must(got != 0 ? 0 : -EPIPE);
    }
    return NULL;
}
BODY(connect_all) {
    start(accept_one, &listeners[0]);
    start(accept_one, &listeners[1]);
    start(ask_one, NULL);
    start(ask_one, socket_path);
    return NULL;
}
static void unlink_path(__attribute__((unused)) const int *unused) {
    unlink(socket_path);
}
BODY(use_sockets) {
    snprintf(socket_path, sizeof socket_path, "/tmp/haft-io-sample-%d", (int)getpid());
    HAFT_IO_SCOPED_DESCRIPTOR int tcp = (int)must(haft_io_listen_tcp("127.0.0.1", 0, 0));
    __attribute__((cleanup(unlink_path), unused)) int bound = 0;
    unlink(socket_path);
    HAFT_IO_SCOPED_DESCRIPTOR int local = (int)must(haft_io_listen_unix(socket_path, 0));
    listeners[0] = tcp, listeners[1] = local;
    __attribute__((cleanup(close_accepted), unused)) int come = 0;
    accepted[0] = accepted[1] = -1;
    must(haft_io_scope(connect_all, NULL, NULL));
    return NULL;
}

/* ---- Datagrams that come with their sender ---- */

static int asked, asking;
BODY(answer_a_datagram) {
    char byte;
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    must(haft_io_receive_from(asked, &byte, 1, 0, (struct sockaddr *)&from, &size));
    must(haft_io_send_to(asked, &byte, 1, 0, (struct sockaddr *)&from, size));
    return NULL;
}
BODY(ask_by_datagram) {
    char byte;
    must(haft_io_send(asking, "x", 1, 0));
    must(haft_io_receive(asking, &byte, 1, 0));
    return NULL;
}
BODY(ask_and_answer) {
    start(answer_a_datagram, NULL);
    start(ask_by_datagram, NULL);
    return NULL;
}
BODY(use_datagrams) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HAFT_IO_SCOPED_DESCRIPTOR int one = (int)must(haft_io_socket(AF_INET, SOCK_DGRAM, 0));
    HAFT_IO_SCOPED_DESCRIPTOR int other = (int)must(haft_io_socket(AF_INET, SOCK_DGRAM, 0));
    must(haft_io_bind(one, (struct sockaddr *)&address, sizeof address));
    address.sin_port = htons((uint16_t)must(haft_io_port(one)));
    must(haft_io_connect(other, (struct sockaddr *)&address, sizeof address));
    asked = one, asking = other;
    must(haft_io_scope(ask_and_answer, NULL, NULL));
    return NULL;
}

/* ---- Answers, of several that the same poll wakes ---- */

enum { ANSWERERS = 3 };
static int answerers[ANSWERERS][2];
static void *ask_twice(void *ends) {
    int connection = ((int *)ends)[1];
    char memory[8], *line;
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    for (int round = 0; round < 2; round++) {
        must(haft_io_write_all(connection, "hello\n", 6));
        must(haft_io_write_all(connection, "again\n", 6));
        for (int i = 0; i < 2; i++)
            must(must(haft_io_reader_line(&lines, &line)) != 0 ? 0 : -EPIPE);
    }
    must(haft_io_shutdown(connection, SHUT_WR));
    return NULL;
}
BODY(answer_all) {
    for (int i = 0; i < ANSWERERS; i++)
        start(answer_one, answerers[i]);
    for (int i = 0; i < ANSWERERS; i++)
        start(ask_twice, answerers[i]);
    return NULL;
}
static void close_answerers(__attribute__((unused)) const int *unused) {
    for (int i = 0; i < ANSWERERS; i++)
        for (int end = 0; end < 2; end++)
            if (answerers[i][end] >= 0)
                haft_io_close(answerers[i][end]);
}
BODY(use_answers) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = (int)must(haft_io_listen_tcp("127.0.0.1", 0, 0));
    memset(answerers, -1, sizeof answerers);
    __attribute__((cleanup(close_answerers), unused)) int opened = 0;
    for (int i = 0; i < ANSWERERS; i++) {
        answerers[i][1] =
            (int)must(haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener)));
        answerers[i][0] = (int)must(haft_io_accept(listener));
    }
    must(haft_io_scope(answer_all, NULL, NULL));
    return NULL;
}

/* ---- Files ---- */

static char directory[64], file_name[80], other_name[80];

/* The simulation allocates in the library's own way. */
static void free_entry(void *entry) {
    if (how == NULL)
        free(entry);
    else
        sample_free(entry);
}
static void free_entries(struct dirent ***entries) {
    free_entry(*entries);
}
BODY(use_a_file) {
    char bytes[4];
    HAFT_IO_SCOPED_DESCRIPTOR int file = (int)must(haft_io_open(file_name, O_RDWR | O_CREAT, 0600));
    must(haft_io_pwrite(file, "text", 4, 0));
    must(haft_io_fsync(file));
    must(haft_io_pread(file, bytes, 4, 0));
    must(haft_io_read(file, bytes, 4));
    __attribute__((cleanup(free_entries))) struct dirent **entries = NULL;
    int count = (int)must(haft_io_list_directory(directory, &entries));
    for (int i = 0; i < count; i++)
        free_entry(entries[i]);
    must(haft_io_rename(file_name, other_name));
    struct stat status;
    must(haft_io_stat(other_name, &status));
    return NULL;
}
BODY(remove_shielded) {
    haft_io_remove(file_name);
    haft_io_remove(other_name);
    haft_io_remove(directory);
    return NULL;
}
static void remove_all(__attribute__((unused)) const int *unused) {
    haft_io_shield(remove_shielded, NULL);
    /* Where the system has failed. */
    unlink(file_name);
    unlink(other_name);
    rmdir(directory);
}
BODY(use_files) {
    snprintf(directory, sizeof directory, "haft-io-sample-%d", (int)getpid());
    snprintf(file_name, sizeof file_name, "%s/file", directory);
    snprintf(other_name, sizeof other_name, "%s/other", directory);
    __attribute__((cleanup(remove_all), unused)) int made = 0;
    must(haft_io_mkdir(directory, 0700));
    must(haft_io_scope(use_a_file, NULL, NULL));
    return NULL;
}

/* ---- The pool, processes, signals ---- */

static void compute(void *sum) {
    *(int *)sum += 1;
}
BODY(call_twice) {
    int sum = 0;
    must(haft_io_call_blocking(compute, &sum));
    must(haft_io_call_blocking(compute, &sum));
    return NULL;
}
static void *reap(void *process) {
    haft_io_process_wait(*(pid_t *)process, NULL);
    return NULL;
}
static void reap_shielded(pid_t *process) {
    if (*process > 0)
        haft_io_shield(reap, process);
    if (*process > 0) /* the same: waits only if the system has failed */
        waitpid(*process, NULL, 0);
}
BODY(use_a_process) {
    static const char *const arguments[] = {"true", NULL};
    __attribute__((cleanup(reap_shielded))) pid_t process = 0;
    process = (pid_t)must(haft_io_process_start(arguments, NULL));
    must(haft_io_process_wait(process, NULL));
    process = 0;
    return NULL;
}
BODY(use_a_signal) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    must(haft_io_signal_wait(&signals));
    return NULL;
}
BODY(send_a_signal) {
    must(give_way());
    kill(getpid(), SIGUSR1);
    return NULL;
}
static void forget_signal(__attribute__((unused)) const int *unused) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigtimedwait(&signals, NULL, &(struct timespec){0, 0});
}
BODY(use_the_system) {
    start(call_twice, NULL);
    start(use_a_process, NULL);
    start(use_a_signal, NULL);
    start(send_a_signal, NULL);
    return NULL;
}
BODY(use_pool) {
    __attribute__((cleanup(forget_signal), unused)) int signal_sent = 0;
    must(haft_io_scope(use_the_system, NULL, NULL));
    return NULL;
}

/* ---- All of them ---- */

typedef struct sample {
    const char *name;
    void *(*body)(void *);
    bool simulated; /* it can be */
} sample_t;

static const sample_t samples[] = {
    {"locks", use_locks, true},     {"channels", use_channels, true},
    {"scopes", use_scopes, true},   {"descriptors", use_descriptors, true},
    {"sockets", use_sockets, true}, {"datagrams", use_datagrams, true},
    {"answers", use_answers, true}, {"files", use_files, true},
    {"pool", use_pool, false},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static const sample_t *sample; /* that runs */

static inline int sample_run(void *(*body)(void *)) {
    if (how != NULL)
        return haft_io_run_with(how, body, NULL);
    return haft_io_simulate_with(
        &(haft_io_simulation_options_t){
            .seed = seed++, .short_counts = true, .network = true, .files = true},
        body, NULL);
}
static inline bool sample_has_one_thread(void) {
    return how == NULL || how->threads == 1;
}
static inline const char *sample_place(void) {
    static char text[96];
    if (how != NULL)
        snprintf(text, sizeof text, "%s on %s, %d threads", sample->name, how->backend,
                 how->threads);
    else
        snprintf(text, sizeof text, "%s in a simulation, seed %llu", sample->name,
                 (unsigned long long)seed - 1);
    return text;
}

/* Nothing is held, and nobody waits. */
static inline bool sample_is_idle(void) {
    return !objects.mutex.held && objects.mutex.waiting.first == NULL &&
           !objects.for_condition.held && objects.for_condition.waiting.first == NULL &&
           objects.condition.waiting.first == NULL && objects.semaphore.count == 1 &&
           objects.semaphore.waiting.first == NULL && !objects.rwlock.writer &&
           objects.rwlock.readers == 0 && objects.rwlock.waiting.first == NULL &&
           !objects.once.mutex.held && objects.barrier.arrived == 0 &&
           objects.barrier.waiting.first == NULL && objects.event.waiting.first == NULL &&
           objects.promise.kept.waiting.first == NULL;
}

static inline void sample_reset(void) {
    memset(&objects, 0, sizeof objects);
    objects.semaphore.count = 1;
    objects.barrier.needed = 2;
}

/* To be called before anything else: the signal of the samples is blocked in all threads. */
static inline void sample_begin(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

#endif
