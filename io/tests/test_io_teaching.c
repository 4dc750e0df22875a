/* SPDX-License-Identifier: MIT */
/* A call that is a mistake of the program returns an error number, and reports on the error handler
   what is wrong, with which value, and what to write instead. */
#include "../../core/tests/teaching.h"
#include "check_io.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

static void *return_argument(void *argument) {
    return argument;
}

/* ---- Outside of a run ---- */

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void sockets_without_a_place_are_refused(void) {
    REFUSES(haft_io_listen_unix(NULL, 0), EINVAL,
            "haft_io_listen_unix: '(NULL)' is no path of a local socket: write one of 1 to 107 "
            "bytes");
    REFUSES(haft_io_connect_unix(""), EINVAL,
            "haft_io_connect_unix: '' is no path of a local socket: write one of 1 to 107 bytes");
    CHECK_EQUAL(haft_io_connect_unix("/" HUNDRED "012345"), -ENOENT); /* 107 */
    CHECK_EQUAL(haft_io_connect_unix("/" HUNDRED "0123456"), -EINVAL);
    CHECK_CONTAINS(refusal_told, "'/" HUNDRED "0123456' is no path");
    haft_take_refusal(-EINVAL, NULL, 0);
    REFUSES(haft_io_listen_tcp(NULL, 8080, 0), EINVAL,
            "haft_io_listen_tcp: the host is NULL: write \"::\" for all addresses of this machine, "
            "or \"0.0.0.0\" for those of IPv4");
}

static void traces_that_cannot_be_kept_are_refused(void) {
    REFUSES(haft_io_trace_start(NULL), EINVAL,
            "haft_io_trace_start: the path is NULL: write that of a file that is not there yet");
    const haft_io_trace_options_t options = {.events = 65};
    REFUSES(haft_io_trace_start_with(&options, "none"), EINVAL,
            "haft_io_trace_start_with: a thread cannot keep 65 events: write a power of two, from "
            "64 to 1073741824, or 0 for 65536");
}

static void processes_that_are_none_are_refused(void) {
    const char *const none[] = {NULL};
    REFUSES(haft_io_process_start(none, NULL), EINVAL,
            "haft_io_process_start: there are no arguments: write the program, its arguments, and "
            "NULL at the end");
    REFUSES(haft_io_process_wait(0, NULL), EINVAL,
            "haft_io_process_wait: 0 is no process: write the number that haft_io_process_start "
            "has returned, if that is positive");
}

static void runs_with_options_that_cannot_be_are_refused(void) {
    const haft_io_run_options_t with_backend = {.backend = "kqueue"};
    REFUSES(haft_io_run_with(&with_backend, return_argument, NULL), EINVAL,
            "haft_io_run: there is no back end 'kqueue': write \"epoll\", \"io_uring\" where the "
            "library has it, or NULL for the best");
    const haft_io_run_options_t with_signal = {.dump_signal = SIGKILL};
    REFUSES(haft_io_run_with(&with_signal, return_argument, NULL), EINVAL,
            "haft_io_run: no run can be dumped on signal 9: write one that can be caught and that "
            "no fault sends, such as SIGUSR1, or 0 for none");
    const haft_io_run_options_t with_file = {.keep_requests = "/proc/version"};
    REFUSES(haft_io_run_with(&with_file, return_argument, NULL), ENOTDIR,
            "haft_io_run: requests cannot be kept in '/proc/version', which is a file or below "
            "one: name a folder, which is made if it is not there (keep_requests, or "
            "HAFT_IO_KEEP_REQUESTS)");
    const haft_io_run_options_t below_file = {.keep_requests = "/proc/version/kept"};
    CHECK_EQUAL(haft_io_run_with(&below_file, return_argument, NULL), -ENOTDIR);
    haft_take_refusal(-ENOTDIR, NULL, 0);
    static const int signals[] = {-1, SIGSTOP, SIGSEGV, SIGFPE, 1000};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        const haft_io_run_options_t options = {.dump_signal = signals[i]};
        CHECK_EQUAL(haft_io_run_with(&options, return_argument, NULL), -EINVAL);
        haft_take_refusal(-EINVAL, NULL, 0);
    }
}

static void what_looks_into_a_run_is_refused_outside_of_one(void) {
    haft_io_counters_t counters;
    REFUSES(haft_io_dump(STDERR_FILENO), ESRCH,
            "haft_io_dump: this is outside of a task, which has no run to look into: call it under "
            "haft_io_run");
    REFUSES(haft_io_count(&counters), ESRCH,
            "haft_io_count: this is outside of a task, which has no run to look into: call it "
            "under haft_io_run");
    REFUSES(haft_io_set_around_sleep(NULL), ESRCH,
            "haft_io_set_around_sleep: this is outside of a task: call it in the first task of a "
            "run");
}

/* ---- Inside ---- */

static haft_io_stepper_t *stepper;

static void *begin_a_run(void *unused) {
    REFUSES(haft_io_run(return_argument, NULL), EBUSY,
            "haft_io_run: the caller is in a run already: spawn a task there (haft_io_spawn), or "
            "begin the run on another thread");
    REFUSES(haft_io_simulate(return_argument, NULL), EBUSY,
            "haft_io_simulate: the caller is in a run already: spawn a task there (haft_io_spawn), "
            "or begin the run on another thread");
    REFUSES(haft_io_stepper_step(stepper, 0), EBUSY,
            "haft_io_stepper_step: the caller is in a run: step from outside of it, as from the "
            "loop of another library");
    return unused;
}

static void *step_elsewhere(void *unused) {
    REFUSES(haft_io_stepper_step(stepper, 0), EXDEV,
            "haft_io_stepper_step: this is another thread than the one that has made the stepper: "
            "step and end it there");
    REFUSES(haft_io_stepper_end(stepper), EXDEV,
            "haft_io_stepper_end: this is another thread than the one that has made the stepper: "
            "step and end it there");
    return unused;
}

static void a_run_inside_of_a_run_is_refused(void) {
    stepper = haft_io_stepper_new(return_argument, NULL);
    CHECK_RUNS(begin_a_run);
    pthread_t thread;
    pthread_create(&thread, NULL, step_elsewhere, NULL);
    pthread_join(thread, NULL);
    CHECK_EQUAL(haft_io_stepper_end(stepper), 0);
}

static void *ask_what_needs_one_thread(void *unused) {
    REFUSES(haft_io_set_around_sleep(NULL), EINVAL,
            "haft_io_set_around_sleep: the run has several threads, which sleep each for "
            "themselves: begin it with .threads = 1");
    REFUSES(haft_io_interrupt(haft_io_self()), EINVAL,
            "haft_io_interrupt: the run has several threads: only a run of one thread lets a "
            "binding end waits, so begin it with .threads = 1");
    return unused;
}

static void what_needs_a_run_of_one_thread_is_refused(void) {
    const haft_io_run_options_t options = {.threads = 2};
    CHECK_EQUAL(haft_io_run_with(&options, ask_what_needs_one_thread, NULL), 0);
}

static void *spawn_who_errs(void *function) {
    const haft_io_task_options_t options = {.name = "server"};
    CHECK_EQUAL(haft_io_spawn_with(&options, (void *(*)(void *))(uintptr_t)function, NULL), 0);
    return NULL;
}

static void *err_with_a_name(void *unused) {
    CHECK_EQUAL(haft_io_process_wait(-5, NULL), -EINVAL);
    CHECK_CONTAINS(refusal_told, "-5 is no process: ");
    bool has_seed = haft_io_seed() != 0;
    const char *end = has_seed ? "positive. It was the task 'server'. (The seed was 7.)"
                               : "positive. It was the task 'server'.";
    CHECK_CONTAINS(refusal_told, end);
    return unused;
}

static void the_words_name_the_task_and_the_seed(void) {
    void *function = (void *)(uintptr_t)err_with_a_name;
    CHECK_EQUAL(haft_io_run(spawn_who_errs, function), 0);
    const haft_io_simulation_options_t options = {.seed = 7};
    CHECK_EQUAL(haft_io_simulate_with(&options, spawn_who_errs, function), 0);
}

static void count_call(void *calls) {
    ++*(int *)calls;
}
static void *call_what_may_open_files(void *unused) {
    int calls = 0, left = 0;
    REFUSES(haft_io_call_blocking(count_call, &calls), ENOTSUP,
            "haft_io_call_blocking: the simulation has files of its own (.files), but what is "
            "called would open the machine's: link libhaft-posix, or leave .files out");
    REFUSES(haft_io_call_or_leave(count_call, &left, count_call), ENOTSUP,
            "haft_io_call_or_leave: the simulation has files of its own (.files), but what is "
            "called would open the machine's: link libhaft-posix, or leave .files out");
    CHECK_EQUAL(calls, 0);
    CHECK_EQUAL(left, 1); /* which gave its argument back */
    return unused;
}
static void *call_what_may_open_none(void *unused) {
    int calls = 0;
    CHECK_EQUAL(haft_io_call_blocking(count_call, &calls), 0);
    CHECK_EQUAL(calls, 1);
    return unused;
}

static void blocking_work_beside_files_of_a_simulation_is_refused(void) {
    const haft_io_simulation_options_t own = {.seed = 7, .files = true}, none = {.seed = 7};
    CHECK_EQUAL(haft_io_simulate_with(&own, call_what_may_open_files, NULL), 0);
    CHECK_EQUAL(haft_io_simulate_with(&none, call_what_may_open_none, NULL), 0);
}

/* On the stacks of 8 KiB, too. */
static void a_small_stack_has_room_for_the_words(void) {
    const haft_io_run_options_t options = {.threads = 1, .dense = true};
    CHECK_EQUAL(haft_io_run_with(&options, spawn_who_errs, (void *)(uintptr_t)err_with_a_name), 0);
}

static int ends[2];

static void *read_a_byte(void *unused) {
    char byte;
    CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), 1);
    return unused;
}

static void *read_by_two(void *unused) {
    char byte;
    int made[2];
    CHECK_EQUAL(haft_io_pipe(made), 0);
    ends[0] = dup2(made[0], 88);
    ends[1] = made[1];
    CHECK_EQUAL(haft_io_spawn(read_a_byte, NULL), 0);
    haft_io_yield();
    REFUSES(haft_io_read(ends[0], &byte, 1), EBUSY,
            "haft_io_read: another task transfers bytes of descriptor 88 in this direction: let "
            "one task do it, and pass the bytes on by a channel, or lock a mutex around it");
    CHECK_EQUAL(haft_io_write(ends[1], "a", 1), 1);
    haft_io_yield();
    haft_io_close(made[0]);
    haft_io_close(made[1]);
    return unused;
}

static void a_second_reader_of_a_stream_is_refused(void) {
    CHECK_RUNS(read_by_two);
    haft_io_close(88);
}

/* ---- Where the words go ---- */

static void err_twice(void) {
    haft_set_error_handler(NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_process_wait(-1, NULL), -EINVAL);
    CHECK_EQUAL(haft_io_process_wait(-2, NULL), -EINVAL);
}

static void without_an_error_handler_each_text_is_printed_once(void) {
    FILE *kept = tmpfile();
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    dup2(fileno(kept), STDERR_FILENO);
    err_twice();
    dup2(before, STDERR_FILENO);
    close(before);
    char text[2000] = "";
    rewind(kept);
    size_t size = fread(text, 1, sizeof text - 1, kept);
    fclose(kept);
    text[size] = '\0';
    const char *first = strstr(text, "haft: haft_io_process_wait: -1 is no process");
    CHECK(first != NULL && strstr(first + 1, "haft: haft_io_process_wait: -1") == NULL);
    CHECK_CONTAINS(text, "haft: haft_io_process_wait: -2 is no process");
    haft_set_error_handler(note_refusal);
}

static void *err_elsewhere(void *unused) {
    CHECK_EQUAL(haft_io_connect_unix(NULL), -EINVAL);
    return unused;
}

static void a_binding_takes_the_words_of_its_own_thread_once(void) {
    char text[400];
    CHECK_EQUAL(haft_io_process_wait(-3, NULL), -EINVAL);
    pthread_t thread;
    pthread_create(&thread, NULL, err_elsewhere, NULL);
    pthread_join(thread, NULL);
    CHECK(haft_take_refusal(-EINVAL, text, sizeof text));
    CHECK_CONTAINS(text, "-3 is no process");
    CHECK(!haft_take_refusal(-EINVAL, text, sizeof text));
    CHECK_EQUAL(haft_io_process_wait(-4, NULL), -EINVAL);
    CHECK(!haft_take_refusal(-EBUSY, text, sizeof text)); /* that was another error */
    CHECK(!haft_take_refusal(-EINVAL, text, sizeof text));
    CHECK_EQUAL(haft_io_process_wait(-4, NULL), -EINVAL);
    char cut[12];
    CHECK(haft_take_refusal(-EINVAL, cut, sizeof cut));
    CHECK_SAME_TEXT(cut, "haft_io_pro");
}

int main(void) {
    haft_set_error_handler(note_refusal);
    RUN(sockets_without_a_place_are_refused);
    RUN(traces_that_cannot_be_kept_are_refused);
    RUN(processes_that_are_none_are_refused);
    RUN(runs_with_options_that_cannot_be_are_refused);
    RUN(what_looks_into_a_run_is_refused_outside_of_one);
    RUN(a_run_inside_of_a_run_is_refused);
    RUN(what_needs_a_run_of_one_thread_is_refused);
    RUN(a_second_reader_of_a_stream_is_refused);
    RUN(the_words_name_the_task_and_the_seed);
    RUN(blocking_work_beside_files_of_a_simulation_is_refused);
    RUN(a_small_stack_has_room_for_the_words);
    RUN(without_an_error_handler_each_text_is_printed_once);
    RUN(a_binding_takes_the_words_of_its_own_thread_once);
    return check_end();
}
