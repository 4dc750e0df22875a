/* SPDX-License-Identifier: MIT */
/* Arguments that cannot be, and calls in the wrong place: an error, or a message that names the
   mistake. Memory that is read or written may not be NULL: as for any function of C, that is
   a fault. */
#include "check_io.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define RUNS_BOTH_WAYS(body)                                                                       \
    do {                                                                                           \
        body(NULL);                                                                                \
        CHECK_RUNS(body);                                                                          \
    } while (0)
/* In a simulation, too. */
#define RUNS_ALL_WAYS(body)                                                                        \
    do {                                                                                           \
        RUNS_BOTH_WAYS(body);                                                                      \
        CHECK_EQUAL(haft_io_simulate_with(&simulated, body, NULL), 0);                             \
    } while (0)
static const haft_io_simulation_options_t simulated = {.seed = 1, .network = true, .files = true};

/* ---- What the system, or the library, refuses ---- */

static void *volatile nothing; /* not NULL to the compiler */

BODY(refuse_transfers) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_write(ends[0], nothing, 1), -EFAULT);
    CHECK_EQUAL(haft_io_write(ends[1], "ab", 2), 2);
    CHECK_EQUAL(haft_io_read(ends[0], nothing, 1), -EFAULT);
    CHECK_EQUAL(haft_io_receive(ends[0], nothing, 1, 0), -EFAULT);
    CHECK_EQUAL(haft_io_send(ends[0], nothing, 1, 0), -EFAULT);
    CHECK_EQUAL(haft_io_readv(ends[0], nothing, 1), -EFAULT);
    CHECK_EQUAL(haft_io_writev(ends[0], nothing, 1), -EFAULT);
    CHECK_EQUAL(haft_io_receive_message(ends[0], nothing, 0), -EFAULT);
    CHECK_EQUAL(haft_io_send_message(ends[0], nothing, 0), -EFAULT);
    CHECK_EQUAL(haft_io_write_all(ends[0], nothing, 1), -EFAULT);
    struct iovec none = {nothing, 1};
    CHECK_EQUAL(haft_io_readv(ends[0], &none, 1), -EFAULT);
    CHECK_EQUAL(haft_io_writev(ends[0], &none, 1), -EFAULT);
    struct msghdr of_none = {.msg_iov = &none, .msg_iovlen = 1}, without = {.msg_iovlen = 1};
    CHECK_EQUAL(haft_io_receive_message(ends[0], &of_none, 0), -EFAULT);
    CHECK_EQUAL(haft_io_send_message(ends[0], &of_none, 0), -EFAULT);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &without, 0), -EFAULT);
    CHECK_EQUAL(haft_io_send_message(ends[0], &without, 0), -EFAULT);
    CHECK_EQUAL(haft_io_read(ends[0], nothing, 0), 0);
    CHECK_EQUAL(haft_io_readv(ends[0], nothing, 0), 0);
    struct iovec part = {(char[]){"x"}, 1};
    CHECK_EQUAL(haft_io_readv(ends[0], &part, (size_t)1 << 32), -EINVAL);
    CHECK_EQUAL(haft_io_writev(ends[0], &part, 1025), -EINVAL);
    CHECK_EQUAL(haft_io_accept(ends[0]), -EINVAL);
    CHECK_EQUAL(haft_io_send_descriptor(ends[0], -1), -EBADF);
    CHECK_EQUAL(haft_io_port(ends[0]), -EAFNOSUPPORT);
    CHECK(haft_io_connect(ends[0], nothing, 0) < 0);
    CHECK_EQUAL(haft_io_poll(nothing, 1, 0), -EFAULT);
    CHECK_EQUAL(haft_io_poll(nothing, SIZE_MAX / 64, 0), -EINVAL);
    CHECK_EQUAL(haft_io_poll(nothing, 0, 0), 0);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
BODY(refuse_files) {
    const char *name = "test_io_misuse.file";
    int file = haft_io_open(name, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    CHECK_EQUAL(haft_io_write(file, "ab", 2), 2);
    CHECK_EQUAL(haft_io_write(file, nothing, 1), -EFAULT);
    CHECK_EQUAL(haft_io_pwrite(file, nothing, 1, 5), -EFAULT);
    CHECK_EQUAL(haft_io_pread(file, nothing, 1, 0), -EFAULT);
    CHECK_EQUAL(haft_io_stat(name, nothing), -EFAULT);
    CHECK_EQUAL(haft_io_close(file), 0);
    CHECK_EQUAL(haft_io_remove(name), 0);
    return NULL;
}
BODY(refuse_descriptors) {
    char byte = 0;
    const int numbers[] = {-1, INT32_MIN, 1000000, INT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int none = numbers[i];
        struct iovec part = {&byte, 1};
        CHECK_EQUAL(haft_io_read(none, &byte, 1), -EBADF);
        CHECK_EQUAL(haft_io_write(none, &byte, 1), -EBADF);
        CHECK_EQUAL(haft_io_write_all(none, &byte, 1), -EBADF);
        CHECK_EQUAL(haft_io_readv(none, &part, 1), -EBADF);
        CHECK_EQUAL(haft_io_writev(none, &part, 1), -EBADF);
        CHECK_EQUAL(haft_io_send_file(none, none, NULL, 1), -EBADF);
        CHECK_EQUAL(haft_io_splice(none, none, 1), -EBADF);
        CHECK_EQUAL(haft_io_wait_ready(none, POLLIN), -EBADF);
        CHECK_EQUAL(haft_io_close(none), -EBADF);
        CHECK_EQUAL(haft_io_receive(none, &byte, 1, 0), -EBADF);
        CHECK_EQUAL(haft_io_send(none, &byte, 1, 0), -EBADF);
        CHECK_EQUAL(haft_io_send_descriptor(none, 0), -EBADF);
        CHECK_EQUAL(haft_io_receive_descriptor(none), -EBADF);
        CHECK_EQUAL(haft_io_accept(none), -EBADF);
        CHECK(haft_io_connect(none, (struct sockaddr *)&part, sizeof part) < 0);
        CHECK_EQUAL(haft_io_port(none), -EBADF);
        CHECK_EQUAL(haft_io_pread(none, &byte, 1, 0), -EBADF);
        CHECK_EQUAL(haft_io_pwrite(none, &byte, 1, 0), -EBADF);
        CHECK_EQUAL(haft_io_fsync(none), -EBADF);
    }
    return NULL;
}
BODY(refuse_names) {
    char long_name[300];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    CHECK_EQUAL(haft_io_listen_tcp(nothing, 0, 0), -EINVAL);
    CHECK_EQUAL(haft_io_listen_unix(nothing, 0), -EINVAL);
    CHECK_EQUAL(haft_io_listen_unix("", 0), -EINVAL);
    CHECK_EQUAL(haft_io_listen_unix(long_name, 0), -EINVAL);
    CHECK_EQUAL(haft_io_connect_unix(nothing), -EINVAL);
    CHECK_EQUAL(haft_io_connect_unix(""), -EINVAL);
    CHECK_EQUAL(haft_io_connect_unix(long_name), -EINVAL);
    CHECK_EQUAL(haft_io_socket(-1, -1, -1), -EINVAL);
    CHECK_EQUAL(haft_io_poll(nothing, 2, 0), -EFAULT);
    int connected_ones[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, connected_ones), 0); /* which block */
    CHECK_EQUAL(haft_io_accept(connected_ones[0]), -EINVAL);
    haft_io_close(connected_ones[0]);
    haft_io_close(connected_ones[1]);
    CHECK_EQUAL(haft_io_open(nothing, O_RDONLY, 0), -EFAULT);
    CHECK_EQUAL(haft_io_open("", O_RDONLY, 0), -ENOENT);
    struct dirent **entries;
    CHECK_EQUAL(haft_io_list_directory(nothing, &entries), -EFAULT);
    CHECK_EQUAL(haft_io_mkdir(nothing, 0), -EFAULT);
    CHECK_EQUAL(haft_io_remove(nothing), -EFAULT);
    CHECK_EQUAL(haft_io_rename(nothing, nothing), -EFAULT);
    CHECK_EQUAL(haft_io_stat(nothing, nothing), -EFAULT);
    CHECK_EQUAL(haft_io_list_directory(nothing, nothing), -EFAULT);
    CHECK_EQUAL(haft_io_list_directory("/", nothing), -EFAULT);
    struct addrinfo *result = NULL;
    CHECK(haft_io_resolve(nothing, nothing, NULL, &result) ==
          HAFT_IO_ERROR_OF_RESOLVER + EAI_NONAME);
    return NULL;
}
BODY(refuse_processes) {
    static const char *const none[] = {NULL}, *const missing[] = {"no such program", NULL};
    CHECK_EQUAL(haft_io_process_start(nothing, NULL), -EINVAL);
    CHECK_EQUAL(haft_io_process_start(none, NULL), -EINVAL);
    if (!RUNNING_ON_VALGRIND) /* which does not tell whether a program could be started */
        CHECK_EQUAL(haft_io_process_start(missing, NULL), -ENOENT);
    CHECK_EQUAL(haft_io_process_start(missing, (int[]){1000000, -1, -1}), -EBADF);
    CHECK_EQUAL(haft_io_process_wait(0, NULL), -EINVAL);
    CHECK_EQUAL(haft_io_process_wait(INT32_MAX, NULL), -ECHILD);
    CHECK_EQUAL(haft_io_process_wait(getpid(), NULL), -ECHILD);
    return NULL;
}
static void what_cannot_be_done_is_a_code(void) {
    /* (Where the sanitizers and Valgrind look at what system calls are given.) */
    if (check_bare()) {
        RUNS_ALL_WAYS(refuse_transfers);
        RUNS_ALL_WAYS(refuse_files);
        RUNS_ALL_WAYS(refuse_names);
    }
    RUNS_ALL_WAYS(refuse_descriptors);
    RUNS_BOTH_WAYS(refuse_processes);
}

BODY(sleep_at_once) {
    CHECK_EQUAL(haft_io_sleep(INT64_MIN), 0);
    CHECK_EQUAL(haft_io_sleep_until(-5), 0);
    haft_io_mutex_t mutex = {.held = true};
    CHECK_EQUAL(haft_io_mutex_lock_until(&mutex, -5), -ETIMEDOUT);
    return NULL;
}
static void a_time_long_past_is_now(void) {
    RUNS_BOTH_WAYS(sleep_at_once);
}

BODY(absurd_sizes) {
    CHECK(haft_io_channel_new(SIZE_MAX, 1) == NULL);
    CHECK(haft_io_channel_new(SIZE_MAX / 2, 2) == NULL);
    CHECK(haft_io_channel_new(1, SIZE_MAX) == NULL);
    haft_io_channel_free(NULL);
    haft_io_channel_t *channel = haft_io_channel_new(0, 0);
    haft_io_channel_close(channel);
    CHECK_EQUAL(haft_io_channel_send(channel, ""), -EPIPE);
    haft_io_channel_free(channel);
    haft_io_barrier_t barrier = {.needed = 0};
    CHECK_EQUAL(haft_io_barrier_wait(&barrier), 1);
    if (haft_io_self() != NULL)
        CHECK_EQUAL(haft_io_all(NULL, 0), 0);
    return NULL;
}
static void sizes_that_cannot_be_had_are_refused(void) {
    RUNS_BOTH_WAYS(absurd_sizes);
}

static void options_that_cannot_be_are_taken_for_the_nearest(void) {
    haft_io_run_options_t options = {.threads = -3, .blocking_threads = -1};
    CHECK_EQUAL(haft_io_run_with(&options, check_nothing, NULL), 0);
    options = (haft_io_run_options_t){.threads = 1, .backend = "none"};
    CHECK_EQUAL(haft_io_run_with(&options, check_nothing, NULL), -EINVAL);
}

/* ---- Outside of a scheduler ---- */

static void without_a_scheduler_what_asks_for_the_task_finds_none(void) {
    haft_io_counters_t counters;
    CHECK(haft_io_self() == NULL);
    CHECK(haft_io_this_scope() == NULL);
    CHECK(!haft_io_runs_here());
    CHECK_EQUAL(haft_io_yield(), 0);
    CHECK_EQUAL(haft_io_unwind_cancelled(), -ECANCELED);
    CHECK(!haft_io_return_cancels(true));
    CHECK(haft_io_local_get(&counters) == NULL);
    haft_io_task_set_name("nobody");
    CHECK_EQUAL(haft_io_dump(STDERR_FILENO), -ESRCH);
    CHECK_EQUAL(haft_io_count(&counters), -ESRCH);
    CHECK_EQUAL(haft_io_seed(), 0);
}

/* ---- Mistakes that end the process ---- */

static void spawn_nowhere(void) {
    haft_io_spawn(check_nothing, NULL);
}
static void async_nowhere(void) {
    haft_io_async(check_nothing, NULL);
}
static void all_nowhere(void) {
    haft_io_all(&(haft_io_call_t){check_nothing, NULL, NULL}, 1);
}
static void set_local_nowhere(void) {
    haft_io_local_set("key", NULL);
}
static void note_nowhere(void) {
    haft_io_note_failure(-EIO, "lost");
}
static void fail_nowhere(void) {
    haft_io_fail(-EIO, "lost");
}
static void simulated_nowhere(void) {
    int ends[2];
    haft_io_simulated_pair(ends);
}
static void break_nowhere(void) {
    haft_io_simulated_break(0);
}
static void count_nowhere(void) {
    haft_io_simulated_count();
}
static void fail_simulated_nowhere(void) {
    haft_io_simulated_fail(0, -EIO);
}
static void run_nothing(void) {
    haft_io_run(NULL, NULL);
}
static void simulate_nothing(void) {
    haft_io_simulate(NULL, NULL);
}
static void scope_nothing(void) {
    haft_io_scope(NULL, NULL, NULL);
}
static void choose_nothing(void) {
    haft_io_select(NULL, 0);
}
static void first_of_nothing(void) {
    haft_io_first(NULL, 0);
}

/* The mistake of a task. */
static void (*mistake)(void);
BODY(make_mistake) {
    mistake();
    return NULL;
}
static void in_a_task(void) {
    haft_io_run(make_mistake, NULL);
}
static void spawn_nothing(void) {
    haft_io_spawn(NULL, NULL);
}
static void fail_well(void) {
    haft_io_fail(0, "no failure");
}
static void note_well(void) {
    haft_io_note_failure(5, "no failure");
}
static void give_back_twice(void) {
    const void *bytes = haft_io_lend();
    haft_io_give_back(bytes);
    haft_io_give_back(bytes);
}
static void break_no_end(void) {
    haft_io_simulated_break(0);
}
static void in_a_simulation(void) {
    haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 3}, make_mistake, NULL);
}

/* ---- Scopes on fibers of the program's own ---- */

HAFT_EFFECT(pause_inside, void, {});

BODY(pause_in_scope) {
    haft_io_spawn(check_nothing, NULL);
    HAFT_PERFORM(pause_inside);
    return NULL;
}
BODY(open_and_pause) {
    haft_io_scope_options_t options = {.name = "paused"};
    haft_io_scope_with(&options, pause_in_scope, NULL, NULL);
    return NULL;
}
static haft_fiber_t *paused;
static void make_paused(void) {
    haft_io_task_set_name("opener");
    paused = haft_fiber_new(open_and_pause, NULL);
    haft_resume(paused, HAFT_NO_REPLY, HAFT_HANDLES(pause_inside));
}
BODY(leave_paused) {
    haft_resume(paused, HAFT_NO_REPLY, HAFT_HANDLES(pause_inside));
    return NULL;
}
BODY(drop_paused) {
    haft_fiber_drop(paused);
    return NULL;
}
static void leave_outer_first(void) {
    make_paused();
    haft_io_scope(leave_paused, NULL, NULL);
}
static void end_with_open_scope(void) {
    make_paused();
}
static void fail_with_open_scope(void) {
    make_paused();
    haft_io_fail(-EIO, "lost");
}
static void join_another(void *(*function)(void *)) {
    make_paused();
    haft_io_task_options_t options = {.name = "other"};
    haft_io_join(haft_io_async_with(&options, function, NULL), NULL);
}
static void leave_from_another_task(void) {
    join_another(leave_paused);
}
static void drop_from_another_task(void) {
    join_another(drop_paused);
}
static void leave_from_a_thread(void) {
    make_paused();
    pthread_t thread;
    pthread_create(&thread, NULL, leave_paused, NULL);
    pthread_join(thread, NULL);
}
/* The opener holds its thread until the other is done, or the process. */
static atomic_bool left_elsewhere;
BODY(leave_elsewhere) {
    leave_paused(NULL);
    atomic_store(&left_elsewhere, true);
    return NULL;
}
static void leave_from_another_task_elsewhere(void) {
    make_paused();
    haft_io_task_options_t options = {.name = "other"};
    haft_io_spawn_with(&options, leave_elsewhere, NULL);
    while (!atomic_load(&left_elsewhere))
        sched_yield();
}
static void in_a_task_of_two_threads(void) {
    haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, make_mistake, NULL);
}
static void a_scope_is_left_by_its_own_task_and_in_order(void) {
    if (!check_follows_children())
        return;
    static const struct {
        void (*mistake)(void);
        const char *message;
    } mistakes[] = {
        {leave_outer_first,
         "The task 'opener' has left the scope 'paused' before one that it opened inside"},
        {end_with_open_scope, "The task 'opener' has ended before it left the scope 'paused'"},
        {fail_with_open_scope, "The task 'opener' has ended before it left the scope 'paused'"},
        {leave_from_another_task,
         "The scope 'paused' of the task 'opener' is left by the task 'other'"},
        {drop_from_another_task,
         "The scope 'paused' of the task 'opener' is left by the task 'other'"},
        {leave_from_a_thread, "The scope 'paused' of the task 'opener' is left outside of a task"}};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        mistake = mistakes[i].mistake;
        CHECK_ABORTS(in_a_task, mistakes[i].message);
        CHECK_ABORTS(in_a_task_of_two_threads, mistakes[i].message);
    }
    mistake = leave_from_another_task_elsewhere;
    CHECK_ABORTS(in_a_task_of_two_threads,
                 "The scope 'paused' of the task 'opener' is left by the task 'other'");
}

/* From now on this process may make io_uring's rings, but not call this. */
static bool refuse(unsigned call) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
BODY(refuse_uring) {
    if (refuse(SYS_io_uring_enter))
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return NULL;
}

static int waited_on;
static void *wait_in_vain(void *unused) {
    char byte;
    haft_io_read(waited_on, &byte, 1);
    return unused;
}
BODY(refuse_uring_and_close) {
    int ends[2];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    waited_on = ends[0];
    haft_io_spawn(wait_in_vain, NULL);
    haft_io_yield();
    if (refuse(SYS_io_uring_enter))
        haft_io_close(ends[0]);
    return NULL;
}
static void *accept_one(void *listener) {
    haft_io_close(haft_io_accept((int)(intptr_t)listener));
    return NULL;
}
BODY(refuse_uring_and_end) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    haft_io_task_t *accepting = haft_io_async(accept_one, check_number(listener));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener)) >= 0);
    haft_io_join(accepting, NULL);
    refuse(SYS_io_uring_enter);
    return NULL;
}

/* Reads a connection into lent memory, as often as somebody writes. */
static void *hear(void *connection) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    intptr_t heard = 0;
    for (ssize_t size; (size = haft_io_read_lent((int)(intptr_t)connection, &bytes)) > 0;)
        heard += size;
    return (void *)heard;
}
static int connected[2];
static haft_io_task_t *begin_to_hear(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    connected[1] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    connected[0] = haft_io_accept(listener);
    haft_io_close(listener);
    haft_io_task_t *hearer = haft_io_async(hear, check_number(connected[0]));
    CHECK_EQUAL(haft_io_write(connected[1], "five!", 5), 5);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return hearer;
}
BODY(refuse_uring_to_who_hears) {
    begin_to_hear();
    if (refuse(SYS_io_uring_enter))
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return NULL;
}
BODY(hear_twice) {
    void *heard;
    haft_io_task_t *hearer = begin_to_hear();
    CHECK_EQUAL(haft_io_write(connected[1], "five!", 5), 5);
    haft_io_close(connected[1]);
    CHECK_EQUAL(haft_io_join(hearer, &heard), 0);
    CHECK_EQUAL((intptr_t)heard, 10);
    haft_io_close(connected[0]);
    return NULL;
}

static const haft_io_run_options_t with_uring = {.threads = 1, .backend = "io_uring"};
static void run_and_refuse_uring(void) {
    haft_io_run_with(&with_uring, refuse_uring, NULL);
}
static void close_and_refuse_uring(void) {
    haft_io_run_with(&with_uring, refuse_uring_and_close, NULL);
}
static void end_and_refuse_uring(void) {
    haft_io_run_with(&with_uring, refuse_uring_and_end, NULL);
}
static void hear_and_refuse_uring(void) {
    haft_io_run_with(&with_uring, refuse_uring_to_who_hears, NULL);
}
/* Without registered buffers there is no multishot receive. */
static void hear_without_registering(void) {
    if (refuse(SYS_io_uring_register))
        CHECK_RUNS(hear_twice);
}
static void a_run_whose_back_end_is_refused_says_so(void) {
    if (!RUNNING_ON_VALGRIND && check_follows_children() &&
        haft_io_run_with(&with_uring, check_nothing, NULL) == 0) {
        CHECK_ABORTS(run_and_refuse_uring, "The system refuses io_uring to a run that has begun");
        CHECK_ABORTS(hear_and_refuse_uring, "The system refuses io_uring to a run that has begun");
        CHECK_ABORTS(close_and_refuse_uring, "The system refuses io_uring to a run that has begun");
        CHECK_ABORTS(end_and_refuse_uring, "The system refuses io_uring to a run that has begun");
    }
}
static void run_where_rings_cannot_be_used(void) {
    if (refuse(SYS_io_uring_enter))
        CHECK_RUNS(hear_twice);
}
static void a_run_is_on_epoll_where_rings_can_be_made_and_not_used(void) {
    if (!RUNNING_ON_VALGRIND && check_follows_children() && getenv("HAFT_IO_BACKEND") == NULL)
        CHECK_SUCCEEDS(run_where_rings_cannot_be_used);
}
static void lent_memory_needs_no_registered_buffers(void) {
    if (!RUNNING_ON_VALGRIND && check_follows_children())
        CHECK_SUCCEEDS(hear_without_registering);
}

static void mistakes_are_named(void) {
    CHECK_ABORTS(spawn_nowhere, "A task is spawned outside of a scheduler");
    CHECK_ABORTS(async_nowhere, "A task is spawned outside of a scheduler");
    CHECK_ABORTS(all_nowhere, "Several calls are run as tasks outside of a scheduler");
    CHECK_ABORTS(set_local_nowhere, "haft_io_local_set was called outside of a task");
    CHECK_ABORTS(note_nowhere, "haft_io_note_failure was called outside of a task (lost)");
    CHECK_ABORTS(fail_nowhere, "hafti_io_unwind");
    CHECK_ABORTS(simulated_nowhere,
                 "haft_io_simulated_pair was called outside of haft_io_simulate");
    CHECK_ABORTS(break_nowhere, "haft_io_simulated_break was called outside of haft_io_simulate");
    CHECK_ABORTS(count_nowhere, "haft_io_simulated_count was called outside of haft_io_simulate");
    CHECK_ABORTS(fail_simulated_nowhere,
                 "haft_io_simulated_fail was called outside of haft_io_simulate");
    CHECK_ABORTS(run_nothing, "A run needs a function to begin with (NULL)");
    CHECK_ABORTS(simulate_nothing, "A run needs a function to begin with (NULL)");
    CHECK_ABORTS(scope_nothing, "A scope needs a body to call (NULL)");
    CHECK_ABORTS(choose_nothing, "haft_io_select needs a choice");
    CHECK_ABORTS(first_of_nothing, "haft_io_first needs a call");
    if (!check_follows_children())
        return;
    static const struct {
        void (*mistake)(void);
        const char *message;
    } mistakes[] = {{spawn_nothing, "A task needs a function to run (NULL)"},
                    {scope_nothing, "A scope needs a body to call (NULL)"},
                    {fail_well, "haft_io_fail takes a negative error number; it was given 0"},
                    {note_well, "takes a negative error number; it was given 5"},
                    {first_of_nothing, "haft_io_first needs a call"}};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        mistake = mistakes[i].mistake;
        CHECK_ABORTS(in_a_task, mistakes[i].message);
    }
    mistake = give_back_twice;
    if (!CHECK_ADDRESS_SANITIZER) /* which reports it itself */
        CHECK_ABORTS(in_a_task, "Memory that haft_io_read_lent has given is given back twice");
    mistake = break_no_end;
    CHECK_ABORTS(in_a_simulation, "haft_io_simulated_break was given no open end of a stream");
}

static void end_outer_deadline(void) {
    haft_io_deadline_t outer = {0}, inner = {0};
    haft_io_deadline_set(&outer, HAFT_IO_FOREVER);
    haft_io_deadline_set(&inner, HAFT_IO_FOREVER);
    haft_io_deadline_end(&outer);
}
static haft_io_deadline_t another_s;
BODY(set_another_s_deadline) {
    haft_io_deadline_set(&another_s, HAFT_IO_FOREVER);
    return NULL;
}
static void set_deadline_of_another_task(void) {
    haft_io_deadline_set(&another_s, HAFT_IO_FOREVER);
    haft_io_join(haft_io_async(set_another_s_deadline, NULL), NULL);
}
static void end_inside_of_a_block(void) {
    static haft_io_deadline_t left_behind;
    haft_io_deadline_set(&left_behind, HAFT_IO_FOREVER);
}
static void *leave_a_deadline_behind(void *argument) {
    end_inside_of_a_block();
    return argument;
}
static void leave_a_scope_inside_of_a_block(void) {
    haft_io_scope(leave_a_deadline_behind, NULL, NULL);
}
static void deadlines_of_blocks_nest_in_one_task(void) {
    if (!check_follows_children())
        return;
    mistake = end_outer_deadline;
    CHECK_ABORTS(in_a_task, "A deadline is ended that is not the innermost of the current task");
    mistake = set_deadline_of_another_task;
    CHECK_ABORTS(in_a_task, "was given a deadline that another task has begun");
    mistake = end_inside_of_a_block;
    CHECK_ABORTS(in_a_task, "has ended inside of a block with a deadline");
    mistake = leave_a_scope_inside_of_a_block;
    CHECK_ABORTS(in_a_task, "with a deadline that it set first inside");
}

/* The name by which initialisers of thread-local variables are found, also where compilers
   optimise. */
__attribute__((noinline)) void __tls_init(void);
__attribute__((noinline)) void __tls_init(void) {
    haft_io_sleep(HAFT_IO_MICROSECOND);
    check_failures += haft_io_yield() != 0;
}
static void *wait_in_initialiser(void *unused) {
    haft_io_sleep(HAFT_IO_MICROSECOND); /* at another place */
    haft_io_yield();
    __tls_init();
    __tls_init();
    return unused;
}
static void run_initialiser(void) {
    haft_io_run(wait_in_initialiser, NULL);
}
static void a_wait_in_an_initialiser_is_reported_in_every_build(void) {
    if (RUNNING_ON_VALGRIND || CHECK_THREAD_SANITIZER)
        return;
    check_child_t child = check_child(run_initialiser);
    const char *report = "waits in an initialiser of a thread-local variable";
    const char *first = strstr(child.output, report);
    CHECK_EQUAL(child.status, 0);
    CHECK(first != NULL && strstr(first + 1, report) == NULL);
}

int main(void) {
    check_backend();
    RUN(a_wait_in_an_initialiser_is_reported_in_every_build);
    RUN(deadlines_of_blocks_nest_in_one_task);
    RUN(what_cannot_be_done_is_a_code);
    RUN(a_time_long_past_is_now);
    RUN(sizes_that_cannot_be_had_are_refused);
    RUN(options_that_cannot_be_are_taken_for_the_nearest);
    RUN(without_a_scheduler_what_asks_for_the_task_finds_none);
    RUN(mistakes_are_named);
    RUN(a_scope_is_left_by_its_own_task_and_in_order);
    RUN(a_run_whose_back_end_is_refused_says_so);
    RUN(a_run_is_on_epoll_where_rings_can_be_made_and_not_used);
    RUN(lent_memory_needs_no_registered_buffers);
    return check_end();
}
