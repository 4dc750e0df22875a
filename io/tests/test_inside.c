/* SPDX-License-Identifier: MIT */
/* The dump of a run's tasks, and its counters. */
#include "check_io.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static haft_io_semaphore_t never;

static void *read_byte(void *unused) {
    char byte;
    haft_io_read(ends[0], &byte, 1);
    return unused;
}
static void *acquire(void *unused) {
    haft_io_task_set_name("the patient");
    haft_io_semaphore_acquire(&never);
    return unused;
}
static void *open_inner(void *unused) {
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "inner"}, acquire, NULL, NULL);
    return unused;
}
static char text[8192];
static void take_dump(void) {
    FILE *file = tmpfile();
    CHECK_EQUAL(haft_io_dump(fileno(file)), 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
}

BODY(dump_others) {
    char expected[64];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_async_with(&(haft_io_task_options_t){.name = "the reader"}, read_byte, NULL);
    haft_io_spawn(open_inner, NULL);
    do { /* until both wait */
        haft_io_sleep(HAFT_IO_MILLISECOND);
        take_dump();
    } while (strstr(text, "a semaphore") == NULL || strstr(text, "read on") == NULL);
    CHECK_CONTAINS(text, "scope 'main'\n");
    snprintf(expected, sizeof expected, "task 'the reader' waits for: %s on descriptor %d, ",
             "read", ends[0]);
    CHECK_CONTAINS(text, expected);
    CHECK_CONTAINS(text, "  scope 'inner'\n    task 'the patient' waits for: a semaphore, ");
    CHECK_CONTAINS(text, "task '' runs\n");
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void a_dump_says_who_waits_for_what(void) {
    CHECK_EQUAL(haft_io_run(dump_others, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, dump_others, NULL),
                -ECANCELED);
}

/* Polls the first few of several descriptors. */
static int several[12][2];
static void *poll_several(void *count) {
    struct pollfd entries[12];
    for (int i = 0; i < (int)(intptr_t)count; i++)
        entries[i] = (struct pollfd){several[i][0], i % 2 == 0 ? POLLIN : POLLIN | POLLPRI, 0};
    entries[1].fd = -1;
    haft_io_poll(entries, (size_t)(intptr_t)count, HAFT_IO_FOREVER);
    CHECK(!"a poll that was cancelled returned");
    return NULL;
}
BODY(dump_polls) {
    char three[64], all[256] = "";
    for (int i = 0; i < 12; i++)
        CHECK_EQUAL(haft_io_pipe(several[i]), 0);
    snprintf(three, sizeof three, "'three' waits for: poll on descriptors %d, %d, %d, ",
             several[0][0], several[2][0], several[3][0]);
    for (int i = 0, size = 0; i < 9; i++)
        size += snprintf(all + size, sizeof all - (size_t)size, "%d%s", several[i + (i > 0)][0],
                         i < 7   ? ", "
                         : i < 8 ? " and 3 more, "
                                 : "");
    haft_io_async_with(&(haft_io_task_options_t){.name = "three"}, poll_several, check_number(4));
    haft_io_async_with(&(haft_io_task_options_t){.name = "all"}, poll_several, check_number(12));
    do { /* until both wait */
        haft_io_sleep(HAFT_IO_MILLISECOND);
        take_dump();
    } while (strstr(text, "'three' waits for: poll on") == NULL || strstr(text, "more") == NULL);
    CHECK_CONTAINS(text, three);
    *strrchr(all, ' ') = '\0';
    CHECK_CONTAINS(text, all);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void dump_polls_of(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, dump_polls, NULL), -ECANCELED);
    for (int i = 0; i < 12; i++) {
        close(several[i][0]);
        close(several[i][1]);
    }
}
static void a_dump_shows_all_descriptors_of_a_poll(void) {
    check_everywhere(dump_polls_of);
}

static int simulated[2];
static void *read_simulated(void *unused) {
    char byte;
    haft_io_read(simulated[0], &byte, 1);
    return unused;
}
BODY(dump_simulated) {
    char expected[64];
    CHECK_EQUAL(haft_io_simulated_pair(simulated), 0);
    haft_io_spawn(read_simulated, NULL);
    haft_io_sleep(HAFT_IO_SECOND);
    take_dump();
    snprintf(expected, sizeof expected, "waits for: read on descriptor %d, 1000 ms", simulated[0]);
    CHECK_CONTAINS(text, expected);
    haft_io_close(simulated[0]);
    return NULL;
}
static void a_dump_of_a_simulation_shows_its_descriptors(void) {
    CHECK_EQUAL(haft_io_simulate(dump_simulated, NULL), 0);
}

/* However long somebody has waited; more ticks of timers than 32 bits count. */
static void *wait_for_ever(void *unused) {
    haft_io_semaphore_acquire(&never);
    return unused;
}
BODY(dump_after_long) {
    haft_io_spawn(wait_for_ever, NULL);
    static const int64_t HOURS[] = {40, 60, 1000};
    for (int64_t i = 0, hours = 0; i < 3; i++) {
        char expected[64];
        hours += HOURS[i];
        haft_io_sleep(HOURS[i] * 3600 * HAFT_IO_SECOND);
        take_dump();
        snprintf(expected, sizeof expected, "waits for: a semaphore, %lld ms\n",
                 (long long)hours * 3600 * 1000);
        CHECK_CONTAINS(text, expected);
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void a_dump_says_how_long_somebody_waits_however_long_that_is(void) {
    CHECK_EQUAL(haft_io_simulate(dump_after_long, NULL), -ECANCELED);
}

static char long_name[3000];
static void *sleep_with_a_long_name(void *unused) {
    haft_io_task_set_name(long_name);
    haft_io_sleep(HAFT_IO_FOREVER);
    return unused;
}
BODY(dump_long_names) {
    memset(long_name, 'n', sizeof long_name - 1);
    haft_io_spawn(sleep_with_a_long_name, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    take_dump();
    CHECK_CONTAINS(text, long_name);
    CHECK_CONTAINS(text, "n' waits for: a time, ");
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void a_dump_shows_names_however_long(void) {
    CHECK_EQUAL(haft_io_run(dump_long_names, NULL), -ECANCELED);
}

/* Tasks and scopes come and go while another thread looks. */
static void *scope_and_wait(void *unused) {
    for (int i = 0; i < check_times(300); i++) {
        haft_io_scope(check_nothing, NULL, NULL);
        haft_io_sleep(HAFT_IO_MICROSECOND);
    }
    return unused;
}
BODY(dump_often) {
    HAFT_IO_SCOPED_DESCRIPTOR int null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 20; i++)
        haft_io_spawn(scope_and_wait, NULL);
    for (int i = 0; i < check_times(300); i++) {
        CHECK_EQUAL(haft_io_dump(null), 0);
        haft_io_yield();
    }
    return NULL;
}
static void a_dump_is_safe_while_others_go_on(void) {
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 4}, dump_often, NULL), 0);
}

BODY(count_events) {
    haft_io_counters_t before, after;
    CHECK_EQUAL(haft_io_count(&before), 0);
    CHECK_EQUAL(before.tasks, 1);
    haft_io_join(haft_io_async(check_nothing, NULL), NULL);
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_write(ends[1], "x", 1);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_count(&after), 0);
    CHECK_EQUAL(after.tasks, 2);
    CHECK_EQUAL(after.operations - before.operations, 1);
    CHECK(after.polls > before.polls);
    CHECK_EQUAL(after.steals, 0);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void counters_count_tasks_operations_and_polls(void) {
    CHECK_RUNS(count_events);
}

/* The wheel on which a timer stands has slots that its thread passes on the way. */
BODY(sleep_ten_times) {
    enum { SLEEPS = 10 };
    haft_io_counters_t before, after;
    CHECK_EQUAL(haft_io_count(&before), 0);
    for (int i = 0; i < SLEEPS; i++)
        haft_io_sleep(30 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_count(&after), 0);
    CHECK(after.polls - before.polls < SLEEPS + SLEEPS / 2);
    return NULL;
}
static void a_thread_wakes_up_once_for_a_timer_that_is_alone(void) {
    CHECK_RUNS(sleep_ten_times);
}

/* ---- Backtraces ---- */

void *wait_in_a_function_with_a_name(void *unused);
__attribute__((noinline)) void *wait_in_a_function_with_a_name(void *unused) {
    haft_io_semaphore_acquire(&never);
    CHECK(false);
    return unused;
}
static void *wait_in_a_scope(void *unused) {
    haft_io_scope(wait_in_a_function_with_a_name, NULL, NULL);
    return unused;
}
/* Dumps into `text`, with backtraces, until it has the words. */
static void dump_until(const char *words) {
    do {
        haft_io_sleep(HAFT_IO_MILLISECOND);
        FILE *file = tmpfile();
        haft_io_dump_options_t options = {.backtraces = true};
        CHECK_EQUAL(haft_io_dump_with(&options, fileno(file)), 0);
        rewind(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    } while (strstr(text, words) == NULL);
}
static bool walks_stacks; /* of other threads' tasks, too */
BODY(dump_backtraces) {
    haft_io_spawn(wait_in_a_scope, NULL);
    dump_until("waits for: a semaphore");
    if (walks_stacks)
        CHECK_CONTAINS(text, "wait_in_a_function_with_a_name");
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void a_dump_shows_where_tasks_wait(void) {
    walks_stacks = true;
    CHECK_EQUAL(haft_io_run(dump_backtraces, NULL), -ECANCELED);
    walks_stacks = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, dump_backtraces, NULL),
                -ECANCELED);
}

static haft_io_mutex_t contended;
static void *hold_the_mutex(void *unused) {
    haft_io_mutex_lock(&contended);
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return unused;
}
static void *wait_for_the_mutex(void *unused) {
    haft_io_mutex_lock(&contended);
    return unused;
}
BODY(dump_a_mutex) {
    char expected[200];
    contended = (haft_io_mutex_t){0};
    haft_io_spawn_with(&(haft_io_task_options_t){.name = "the owner"}, hold_the_mutex, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_spawn(wait_for_the_mutex, NULL);
    snprintf(expected, sizeof expected, "waits for: a mutex at %p, held by 'the owner', ",
             (void *)&contended);
    dump_until("waits for: a mutex");
    if (walks_stacks)
        CHECK_CONTAINS(text, expected);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void a_dump_shows_who_holds_a_mutex(void) {
    walks_stacks = true;
    CHECK_EQUAL(haft_io_run(dump_a_mutex, NULL), -ECANCELED);
    walks_stacks = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, dump_a_mutex, NULL),
                -ECANCELED);
}

BODY(dump_backtraces_often) {
    HAFT_IO_SCOPED_DESCRIPTOR int null = open("/dev/null", O_WRONLY);
    haft_io_dump_options_t options = {.backtraces = true};
    for (int i = 0; i < 20; i++)
        haft_io_spawn(scope_and_wait, NULL);
    for (int i = 0; i < check_times(30); i++) {
        CHECK_EQUAL(haft_io_dump_with(&options, null), 0);
        haft_io_yield();
    }
    return NULL;
}
static void backtraces_are_safe_while_others_go_on(void) {
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.threads = 4}, dump_backtraces_often, NULL), 0);
}

/* ---- What the run writes itself, on standard error ---- */

static bool is_written_often(const char *words, int times) {
    struct stat status;
    if (fstat(STDERR_FILENO, &status) != 0 || (size_t)status.st_size >= sizeof text)
        return true;
    ssize_t size = pread(STDERR_FILENO, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    for (const char *place = text; (place = strstr(place, words)) != NULL; place++)
        times--;
    return times <= 0;
}
static bool is_written(const char *words) {
    return is_written_often(words, 1);
}
static void collect_standard_error(void) {
    FILE *file = tmpfile();
    dup2(fileno(file), STDERR_FILENO);
}
/* Valgrind takes the stack of another thread for the current one when that has run while this was
   in a signal handler, and then reports the next frame as no memory (mostly with alternate stacks).
   So it has none of these. */
static int most_threads(void) {
    return RUNNING_ON_VALGRIND ? 0 : 3;
}
static void show_what_is_written(int copy) {
    dup2(copy, STDERR_FILENO);
    close(copy);
}

BODY(raise_until_dumped) {
    haft_io_async_with(&(haft_io_task_options_t){.name = "the waiter"},
                       wait_in_a_function_with_a_name, NULL);
    while (!is_written("'the waiter' waits for: a semaphore")) {
        kill(getpid(), SIGUSR1);
        haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void a_signal_writes_the_dump(void) {
    for (int threads = 1; threads <= most_threads(); threads += 2) {
        int copy = dup(STDERR_FILENO);
        collect_standard_error();
        haft_io_run_options_t options = {.threads = threads, .dump_signal = SIGUSR1};
        int code = haft_io_run_with(&options, raise_until_dumped, NULL);
        kill(getpid(), SIGUSR1); /* is caught still */
        show_what_is_written(copy);
        CHECK_EQUAL(code, -ECANCELED);
        CHECK_CONTAINS(text, "scope 'main'");
    }
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.dump_signal = SIGKILL}, check_nothing, NULL),
        -EINVAL);
}

/* A child is forked while another thread is in the handler of the signal, which then wakes a
   thread. */
static atomic_bool holds_wake, is_held;
void __real_hafti_io_waker_wake(int waker);
void __wrap_hafti_io_waker_wake(int waker);
void __wrap_hafti_io_waker_wake(int waker) {
    if (atomic_load(&holds_wake)) {
        atomic_store(&is_held, true);
        while (atomic_load(&holds_wake))
            continue;
    }
    __real_hafti_io_waker_wake(waker);
}

static haft_io_event_t over;
static void *wait_until_over(void *unused) {
    haft_io_event_wait(&over);
    return unused;
}
static const haft_io_run_options_t with_dump = {.threads = 1, .dump_signal = SIGUSR1};
static void *run_beside(void *unused) {
    CHECK_EQUAL(haft_io_run_with(&with_dump, wait_until_over, NULL), 0);
    return unused;
}
static void a_child_forked_while_a_dump_is_asked_for_has_runs_of_its_own(void) {
    if (!check_follows_children() || most_threads() == 0)
        return;
    pthread_t beside, asked;
    int copy = dup(STDERR_FILENO), status = -1;
    collect_standard_error();
    CHECK_EQUAL(pthread_create(&beside, NULL, run_beside, NULL), 0);
    CHECK_EQUAL(pthread_create(&asked, NULL, wait_until_over, NULL), 0);
    for (atomic_store(&holds_wake, true); !atomic_load(&is_held); sched_yield())
        pthread_kill(asked, SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        enum { SECONDS = 10 };
        alarm(SECONDS);
        atomic_store(&holds_wake, false);
        _exit(haft_io_run_with(&with_dump, check_nothing, NULL) != 0);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    atomic_store(&holds_wake, false);
    haft_io_event_set(&over);
    pthread_join(asked, NULL);
    pthread_join(beside, NULL);
    show_what_is_written(copy);
    CHECK_EQUAL(status, 0);
}

/* The child returns from the first task, too; a thread that it joined then would not be there. */
static pid_t forked = -1;
static int joined_in_child;
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result) {
    if (forked != 0)
        return __real_pthread_join(thread, result);
    joined_in_child++;
    return 0;
}
static void *fork_here(void *unused) {
    forked = fork();
    return unused;
}
static void a_child_of_fork_ends_its_run_without_the_threads_of_its_parent(void) {
    if (!check_follows_children())
        return;
    for (int threads = 1; threads <= most_threads(); threads++) {
        haft_io_run_options_t options = {.threads = threads, .watchdog = 10 * HAFT_IO_MILLISECOND};
        int status = -1, code = haft_io_run_with(&options, fork_here, NULL);
        if (forked == 0)
            _exit(code == 0 ? joined_in_child : 100);
        CHECK_EQUAL(code, 0);
        CHECK_EQUAL(waitpid(forked, &status, 0), forked);
        CHECK_EQUAL(status, 0);
    }
}

void *hold_the_thread(void *unused);
__attribute__((noinline)) void *hold_the_thread(void *unused) {
    haft_io_task_set_name("the miner");
    while (!is_written("hold_the_thread") || !is_written_often("ms: 'the miner'\n", 2))
        sched_yield();
    return unused;
}
static void *hold_twice(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND); /* so that it is resumed */
    hold_the_thread(NULL);
    return unused;
}
static const char *last_line_of(const char *lines) {
    const char *last = lines;
    for (const char *end = strchr(lines, '\n'); end != NULL && end[1] != '\0';
         end = strchr(last, '\n'))
        last = end + 1;
    return last;
}
static void *spawn_holder(void *unused) {
    haft_io_spawn(hold_the_thread, unused);
    return unused;
}
static void a_watchdog_names_who_holds_a_thread(void) {
    for (int threads = 1; threads <= most_threads(); threads++) {
        int copy = dup(STDERR_FILENO);
        collect_standard_error();
        haft_io_run_options_t options = {.threads = threads, .watchdog = 10 * HAFT_IO_MILLISECOND};
        int code = haft_io_run_with(&options, threads == 2 ? hold_twice : spawn_holder, NULL);
        show_what_is_written(copy);
        CHECK_EQUAL(code, 0);
        CHECK_CONTAINS(text, "haft-io: a task has held its thread for more than ");
        CHECK_CONTAINS(text, "0 ms: 'the miner'\n");
        /* The frames of the library, which has called the task, are left out. (The thread sanitizer
           delivers signals later, when the task may have ended.) */
        if (threads == 1 && !CHECK_THREAD_SANITIZER)
            CHECK_CONTAINS(last_line_of(text), "hold_the_thread");
    }
}
/* Then it computes for long enough to be looked at. */
static void *be_stopped(void *unused) {
    struct timespec used;
    raise(SIGSTOP);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 100 * HAFT_IO_MILLISECOND);
    return unused;
}
static void a_process_that_is_stopped_holds_no_thread(void) {
    if (!check_follows_children())
        return;
    int words[2], status = 0;
    CHECK_EQUAL(pipe(words), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(words[1], STDERR_FILENO);
        haft_io_run_options_t options = {.watchdog = 500 * HAFT_IO_MILLISECOND};
        _exit(haft_io_run_with(&options, be_stopped, NULL));
    }
    close(words[1]);
    CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    usleep(700000);
    kill(child, SIGCONT);
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ssize_t size = read(words[0], text, sizeof text - 1);
    close(words[0]);
    text[size > 0 ? size : 0] = '\0';
    CHECK(strstr(text, "has held its thread") == NULL);
}
/* Blocks like a task that waits for a lock that no task has. */
static void *block_the_thread(void *unused) {
    haft_io_task_set_name("the blocker");
    while (!is_written("ms: 'the blocker'\n"))
        usleep(1000);
    return unused;
}
static void a_watchdog_names_who_blocks_a_thread(void) {
    int copy = dup(STDERR_FILENO);
    collect_standard_error();
    haft_io_run_options_t options = {.threads = 1, .watchdog = 20 * HAFT_IO_MILLISECOND};
    int code = haft_io_run_with(&options, block_the_thread, NULL);
    show_what_is_written(copy);
    CHECK_EQUAL(code, 0);
    CHECK_CONTAINS(text, "0 ms: 'the blocker'\n");
}
BODY(count_polling) {
    haft_io_counters_t counters;
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_count(&counters), 0);
    CHECK((counters.polling != 0) == (argument != NULL));
    return NULL;
}
static void the_time_in_polls_is_counted_if_it_is_asked_for(void) {
    haft_io_run_options_t options = {.times_polls = true};
    CHECK_EQUAL(haft_io_run(count_polling, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(&options, count_polling, &options), 0);
}

static void outside_of_a_task_there_is_nothing_to_see(void) {
    haft_io_counters_t counters;
    CHECK_EQUAL(haft_io_dump(STDERR_FILENO), -ESRCH);
    CHECK_EQUAL(haft_io_count(&counters), -ESRCH);
}

int main(void) {
    check_backend();
    RUN(a_dump_says_who_waits_for_what);
    RUN(a_dump_shows_all_descriptors_of_a_poll);
    RUN(a_dump_of_a_simulation_shows_its_descriptors);
    RUN(a_dump_says_how_long_somebody_waits_however_long_that_is);
    RUN(a_dump_shows_names_however_long);
    RUN(a_dump_is_safe_while_others_go_on);
    RUN(counters_count_tasks_operations_and_polls);
    RUN(a_thread_wakes_up_once_for_a_timer_that_is_alone);
    RUN(a_dump_shows_where_tasks_wait);
    RUN(a_dump_shows_who_holds_a_mutex);
    RUN(backtraces_are_safe_while_others_go_on);
    RUN(a_signal_writes_the_dump);
    RUN(a_child_forked_while_a_dump_is_asked_for_has_runs_of_its_own);
    RUN(a_child_of_fork_ends_its_run_without_the_threads_of_its_parent);
    RUN(a_watchdog_names_who_holds_a_thread);
    RUN(a_watchdog_names_who_blocks_a_thread);
    RUN(a_process_that_is_stopped_holds_no_thread);
    RUN(the_time_in_polls_is_counted_if_it_is_asked_for);
    RUN(outside_of_a_task_there_is_nothing_to_see);
    return check_end();
}
