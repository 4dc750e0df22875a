/* SPDX-License-Identifier: MIT */
/* Runs that are recorded and replayed (src/tape/): the same order, the same bytes, the same ends;
   records that were cut, of other programs, other versions; what is refused. */
#include "check_io.h"

#include <dirent.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- What a run does: its trace, in memory that a child of fork shares ---- */

typedef struct trace {
    size_t size;
    char text[1 << 16];
} trace_t;
static trace_t *trace;
static char file[64];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof trace->text - trace->size;
    int size = vsnprintf(trace->text + trace->size, room, format, arguments);
    va_end(arguments);
    if (size > 0 && (size_t)size < room)
        trace->size += (size_t)size;
}

static int record(void *(*program)(void *)) {
    memset(trace, 0, sizeof *trace);
    return haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .record = file}, program, NULL);
}
static int replay(void *(*program)(void *)) {
    memset(trace, 0, sizeof *trace);
    return haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .replay = file}, program, NULL);
}

/* Replays in a process of its own: returns its exit status, or 100 plus a signal, and in `words` its
   standard error. */
static int replay_apart(void *(*program)(void *), char *words, size_t size) {
    int ends[2], status;
    CHECK_EQUAL(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(replay(program) == 0 ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more = 1; more > 0; got += more > 0 ? (size_t)more : 0)
        more = read(ends[0], words + got, got < size - 1 ? size - 1 - got : 0);
    words[got] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Records the program, and replays it some times: what it notes is the same. */
static void check_repeats(void *(*program)(void *)) {
    static trace_t first;
    CHECK_EQUAL(record(program), 0);
    first = *trace;
    CHECK(first.size != 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(replay(program), 0);
        if (strcmp(first.text, trace->text) != 0)
            printf("recorded:\n%s\nreplayed:\n%s\n", first.text, trace->text);
        CHECK(strcmp(first.text, trace->text) == 0);
    }
}

/* ---- Programs ---- */

static void *ask(void *argument) {
    int connection = haft_io_connect_tcp("127.0.0.1", (uint16_t)(intptr_t)argument);
    unsigned char drawn[3];
    char text[64];
    CHECK_EQUAL(haft_io_random(drawn, sizeof drawn), 0);
    haft_io_sleep(drawn[0] % 4 * HAFT_IO_MILLISECOND);
    int size = snprintf(text, sizeof text, "%d %d", drawn[1], drawn[2]);
    CHECK_EQUAL(haft_io_write_all(connection, text, (size_t)size), 0);
    ssize_t got = haft_io_receive(connection, text, sizeof text, 0);
    note("answer %.*s\n", (int)got, text);
    haft_io_close(connection);
    return NULL;
}
static void *answer(void *argument) {
    int connection = (int)(intptr_t)argument;
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    for (ssize_t got; (got = haft_io_read_lent(connection, &bytes)) > 0;) {
        note("question %.*s at %lld\n", (int)got, (const char *)bytes, (long long)haft_io_now());
        CHECK_EQUAL(haft_io_write_all(connection, bytes, (size_t)got), 0);
    }
    haft_io_close(connection);
    return NULL;
}
enum { CLIENTS = 20 };
static void *serve(void *argument) {
    for (int i = 0; i < CLIENTS; i++) {
        int connection = haft_io_accept((int)(intptr_t)argument);
        note("connection %d\n", connection);
        haft_io_spawn(answer, (void *)(intptr_t)connection);
    }
    return NULL;
}
BODY(talk_on_network) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0), port = haft_io_port(listener);
    note("port %d by %s\n", port, haft_io_backend());
    haft_io_task_t *tasks[CLIENTS + 1];
    tasks[CLIENTS] = haft_io_async(serve, (void *)(intptr_t)listener);
    for (int i = 0; i < CLIENTS; i++)
        tasks[i] = haft_io_async(ask, (void *)(intptr_t)port);
    for (int i = 0; i <= CLIENTS; i++)
        haft_io_join(tasks[i], NULL);
    haft_io_close(listener);
    return NULL;
}

static void add(void *argument) {
    *(int *)argument += 41;
}
BODY(ask_the_machine) {
    struct timespec date = haft_io_date();
    note("%lld %lld.%ld\n", (long long)haft_io_now_roughly(), (long long)date.tv_sec, date.tv_nsec);
    int number = 1;
    CHECK_EQUAL(haft_io_call_blocking(add, &number), 0);
    note("%d\n", number);
    struct addrinfo *addresses = NULL;
    int code = haft_io_resolve("127.0.0.1", "80", &(struct addrinfo){.ai_socktype = SOCK_STREAM},
                               &addresses);
    note("resolve %d\n", code);
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next)
        note("family %d, %u bytes\n", one->ai_family, (unsigned)one->ai_addrlen);
    if (code == 0)
        freeaddrinfo(addresses);
    const char *const arguments[] = {"sh", "-c", "exit 3", NULL};
    int status = 0;
    pid_t child = haft_io_process_start(arguments, NULL);
    note("child %d, %d\n", (int)child, haft_io_process_wait(child, &status));
    note("status %d\n", status);
    return NULL;
}

BODY(use_files) {
    char path[80], folder[80], bytes[32];
    snprintf(path, sizeof path, "%s.text", file);
    snprintf(folder, sizeof folder, "%s.folder", file);
    note("%d\n", haft_io_mkdir(folder, 0700));
    int opened = haft_io_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    note("%d %d\n", opened, haft_io_write_all(opened, "some text", 9));
    note("%d %d\n", (int)haft_io_pwrite(opened, "S", 1, 0), haft_io_fsync(opened));
    ssize_t got = haft_io_pread(opened, bytes, sizeof bytes, 0);
    note("%.*s\n", (int)got, bytes);
    struct stat status;
    note("%d\n", haft_io_stat(path, &status));
    note("%lld\n", (long long)status.st_ino);
    haft_io_close(opened);
    struct dirent **names;
    int count = haft_io_list_directory(folder, &names);
    for (int i = 0; i < count; i++) {
        note("%s\n", names[i]->d_name);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    note("%d\n", haft_io_list_directory("/does/not/exist", &names));
    note("%d %d\n", haft_io_remove(path), haft_io_remove(folder));
    return NULL;
}

static void *sleep_long(void *unused) {
    haft_io_sleep(HAFT_IO_FOREVER);
    return unused;
}
static void *wait_and_cancel(void *unused) {
    haft_io_spawn(sleep_long, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}
static void *read_end(void *argument) {
    char bytes[8];
    note("read %d\n", (int)haft_io_read(*(int *)argument, bytes, sizeof bytes));
    return NULL;
}
static void *write_late(void *argument) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    note("written %d\n", (int)haft_io_write(*(int *)argument, "abc", 3));
    return NULL;
}
BODY(wait_in_many_ways) {
    int ends[2];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    note("scope %d\n", haft_io_scope(wait_and_cancel, NULL, NULL));
    haft_io_task_t *reader = haft_io_async(read_end, &ends[0]);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_write(ends[1], "abc", 3);
    haft_io_join(reader, NULL);
    reader = haft_io_async(read_end, &ends[0]);
    haft_io_yield();
    haft_io_close(ends[0]); /* under the reader */
    haft_io_join(reader, NULL);
    haft_io_close(ends[1]);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct pollfd entry = {ends[0], POLLIN, 0};
    note("poll %d\n", haft_io_poll(&entry, 1, haft_io_now() + HAFT_IO_MILLISECOND));
    haft_io_task_t *writer = haft_io_async(write_late, &ends[1]);
    haft_io_select_case_t choices[] = {{.descriptor = ends[0], .events = POLLIN}};
    note("select %d\n", haft_io_select_until(choices, 1, haft_io_now() + HAFT_IO_SECOND));
    haft_io_join(writer, NULL);
    char all[3];
    note("all %d\n", (int)haft_io_receive(ends[0], all, 3, MSG_WAITALL));
    haft_io_mutex_t mutex = {0};
    haft_io_mutex_lock(&mutex);
    note("lock %d\n", haft_io_mutex_lock_until(&mutex, haft_io_now() + HAFT_IO_MILLISECOND));
    haft_io_mutex_unlock(&mutex);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}

static void *take_turns(void *argument) {
    for (int i = 0; i < 3; i++) {
        note("%d", (int)(intptr_t)argument);
        haft_io_yield();
    }
    return NULL;
}
BODY(change_turns) {
    haft_io_task_t *tasks[4];
    for (int i = 0; i < 4; i++)
        tasks[i] = haft_io_async(take_turns, (void *)(intptr_t)i);
    for (int i = 3; i >= 0; i--)
        haft_io_join(tasks[i], NULL);
    note("\n");
    return NULL;
}

static haft_io_rest_t rest;
static int rested[2];
static void *go_on(void *unused) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    ssize_t got = haft_io_read_lent(rested[0], &bytes);
    note("rested for %d\n", (int)got);
    return unused;
}
static void *begin_rest(void *unused) {
    haft_io_rest(&rest, rested[0], HAFT_IO_FOREVER, go_on, NULL);
    return unused;
}
BODY(rest_without_stack) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, rested), 0);
    haft_io_task_t *task = haft_io_async(begin_rest, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_write(rested[1], "x", 1);
    haft_io_join(task, NULL);
    haft_io_close(rested[0]);
    haft_io_close(rested[1]);
    return NULL;
}

/* Notes an address that is longer than the room for it, after which the bytes follow; and the number
   of a descriptor that a message brings, and of one that the system makes after it. */
BODY(receive_from_a_socket) {
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    struct sockaddr_storage from = {0};
    snprintf(own.sun_path, sizeof own.sun_path, "%s.socket", file);
    int made = haft_io_socket(AF_UNIX, SOCK_DGRAM, 0), ends[2], pipes[2];
    CHECK_EQUAL(haft_io_bind(made, (struct sockaddr *)&own, sizeof own), 0);
    enum { ROOM = 4 };
    for (int i = 0; i < 2; i++) {
        char bytes[8] = "";
        socklen_t size = ROOM;
        struct msghdr message = {.msg_iov = &(struct iovec){bytes, sizeof bytes},
                                 .msg_iovlen = 1,
                                 .msg_name = &from,
                                 .msg_namelen = ROOM};
        CHECK_EQUAL(haft_io_send_to(made, "some", 4, 0, (struct sockaddr *)&own, sizeof own), 4);
        CHECK_EQUAL(i == 0 ? haft_io_receive_from(made, bytes, sizeof bytes, 0,
                                                  (struct sockaddr *)&from, &size)
                           : haft_io_receive_message(made, &message, 0),
                    4);
        note("%.4s from %d\n", bytes, (int)(i == 0 ? size : message.msg_namelen));
    }
    haft_io_close(made);
    unlink(own.sun_path);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_send_descriptor(ends[0], ends[0]), 0);
    int got = haft_io_receive_descriptor(ends[1]);
    CHECK_EQUAL(pipe(pipes), 0);
    note("got %d, and then %d\n", got, pipes[0]);
    int all[] = {got, pipes[0], pipes[1], ends[0], ends[1]};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        haft_io_close(all[i]);
    return argument;
}

static void messages_are_the_same_again(void) {
    check_repeats(receive_from_a_socket);
}
static void a_network_is_the_same_again(void) {
    check_repeats(talk_on_network);
}
static void time_names_processes_and_blocking_work_are_the_same_again(void) {
    check_repeats(ask_the_machine);
}
static void files_are_the_same_again_and_not_touched(void) {
    check_repeats(use_files);
}
static void cancels_deadlines_and_polls_are_the_same_again(void) {
    check_repeats(wait_in_many_ways);
}
static void turns_are_the_same_again(void) {
    check_repeats(change_turns);
}
static void a_task_that_rests_goes_on_again(void) {
    check_repeats(rest_without_stack);
}

/* ---- Records that end early, and other programs ---- */

static void copy_part(const char *from, size_t size) {
    static char bytes[1 << 16];
    int opened = open(from, O_RDONLY | O_CLOEXEC);
    CHECK(read(opened, bytes, size) == (ssize_t)size);
    close(opened);
    opened = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(write(opened, bytes, size) == (ssize_t)size);
    close(opened);
}

BODY(ask_little) {
    int ends[2];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_task_t *reader = haft_io_async(read_end, &ends[0]);
    haft_io_yield();
    note("%lld\n", (long long)haft_io_now());
    haft_io_write(ends[1], "abc", 3);
    haft_io_join(reader, NULL);
    haft_io_close(ends[0]);
    note("closed %d\n", haft_io_close(ends[1]));
    return NULL;
}

static void a_record_that_is_cut_at_any_byte_replays_up_to_there(void) {
    static trace_t whole;
    CHECK_EQUAL(record(ask_little), 0);
    whole = *trace;
    char copy[80], words[4096];
    struct stat status;
    snprintf(copy, sizeof copy, "%s.whole", file);
    CHECK_EQUAL(rename(file, copy), 0);
    CHECK_EQUAL(stat(copy, &status), 0);
    size_t step = check_bare() ? 1 : 37, reached = 0;
    for (size_t size = 0; size < (size_t)status.st_size; size += step) {
        copy_part(copy, size);
        int end = replay_apart(ask_little, words, sizeof words);
        CHECK(end == 3 || end == 1 || end == 0); /* the last byte means only that the run ended */
        CHECK(end == 0 || words[0] != '\0');
        CHECK(trace->size >= reached || end == 1);
        CHECK(memcmp(trace->text, whole.text, trace->size) == 0);
        reached = trace->size;
    }
    copy_part(copy, (size_t)status.st_size);
    CHECK_EQUAL(replay_apart(ask_little, words, sizeof words), 0);
    CHECK(strcmp(trace->text, whole.text) == 0);
    unlink(copy);
}

BODY(ask_for_else) {
    int ends[2];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_write(ends[1], "abc", 3);
    haft_io_close(ends[1]);
    return NULL;
}
static void a_changed_program_is_told_where_it_asks_for_something_else(void) {
    char words[4096];
    CHECK_EQUAL(record(ask_little), 0);
    CHECK_EQUAL(replay_apart(ask_for_else, words, sizeof words), 3);
    CHECK(strstr(words, "is not the run that was recorded: the task '' (0) asks for write of the "
                        "descriptor ") != NULL);
    CHECK(strstr(words, "is here:\n") != NULL);
}

BODY(be_killed) {
    note("before\n");
    haft_io_sleep(HAFT_IO_MILLISECOND);
    note("%lld\n", (long long)haft_io_now());
    if (getenv("HAFT_KILLED") != NULL)
        raise(SIGKILL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return NULL;
}
static void a_process_that_was_killed_leaves_its_record(void) {
    static trace_t killed;
    char words[4096];
    int status;
    setenv("HAFT_KILLED", "1", 1);
    pid_t child = fork();
    if (child == 0)
        _exit(record(be_killed));
    waitpid(child, &status, 0);
    unsetenv("HAFT_KILLED");
    CHECK(WIFSIGNALED(status));
    killed = *trace;
    CHECK_EQUAL(replay_apart(be_killed, words, sizeof words), 3);
    CHECK(strcmp(trace->text, killed.text) == 0);
    CHECK(strstr(words, "has no more") != NULL);
}

BODY(fork_and_go_on) {
    pid_t child = fork();
    if (child == 0)
        exit(0); /* with what is called at exit */
    int status = 0;
    note("child %d\n", haft_io_process_wait(child, &status));
    for (int i = 0; i < 100; i++)
        haft_io_yield();
    return NULL;
}
static void fork_in_run(void) {
    setenv("HAFT_IO_RECORD", file, 1);
    exit(haft_io_run(fork_and_go_on, NULL));
}
static void a_child_of_fork_leaves_the_record_alone(void) {
    check_child_t child = check_child(fork_in_run);
    CHECK_EQUAL(child.status, 0);
    struct stat status;
    CHECK_EQUAL(stat(file, &status), 0);
    CHECK(status.st_size > 100);
}

/* ---- What is refused ---- */

static void check_refused(const char *head, size_t size, const char *why) {
    char words[4096];
    int opened = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(write(opened, head, size) == (ssize_t)size);
    close(opened);
    CHECK_EQUAL(replay_apart(ask_little, words, sizeof words), 1);
    if (strstr(words, why) == NULL)
        printf("%s", words);
    CHECK(strstr(words, why) != NULL);
}
static void records_of_other_versions_and_architectures_are_refused(void) {
    check_refused("some text", 9, "it is no record of a run");
    check_refused("HAFTTAPE9\0x86_64\0id\0program\0", 29, "it has version 9 of the format");
    check_refused("HAFTTAPE2\0vax\0id\0program\0", 25, "it was recorded on vax");
    check_refused("HAFTTAPE2\0", 10, "it ends before the first run begins");
    check_refused("", 0, "it is empty");
}
static void several_threads_are_refused(void) {
    haft_io_run_options_t options = {.threads = 2, .record = file};
    CHECK_EQUAL(haft_io_run_with(&options, ask_little, NULL), -ENOTSUP);
    options = (haft_io_run_options_t){.threads = 1, .record = file, .replay = file};
    CHECK_EQUAL(haft_io_run_with(&options, ask_little, NULL), -EINVAL);
    options = (haft_io_run_options_t){.threads = 1, .record = "/does/not/exist"};
    CHECK_EQUAL(haft_io_run_with(&options, ask_little, NULL), -ENOENT);
    options = (haft_io_run_options_t){.threads = 1, .replay = "/does/not/exist"};
    CHECK_EQUAL(haft_io_run_with(&options, ask_little, NULL), -EINVAL);
}

/* ---- By the environment: all runs of a process, one after the other ---- */

static int run_twice(const char *variable) {
    memset(trace, 0, sizeof *trace);
    int status;
    pid_t child = fork();
    if (child == 0) {
        setenv(variable, file, 1);
        int first = haft_io_run(ask_little, NULL), second = haft_io_run(change_turns, NULL);
        exit(first == 0 && second == 0 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status;
}
static void the_environment_records_and_replays_runs_in_turn(void) {
    static trace_t recorded;
    CHECK_EQUAL(run_twice("HAFT_IO_RECORD"), 0);
    recorded = *trace;
    CHECK_EQUAL(run_twice("HAFT_IO_REPLAY"), 0);
    CHECK(recorded.size != 0);
    CHECK(strcmp(trace->text, recorded.text) == 0);
}

int main(void) {
    trace = mmap(NULL, sizeof *trace, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *folder = getenv("TMPDIR");
    snprintf(file, sizeof file, "%.30s/haft-replay.%d", folder != NULL ? folder : "/tmp",
             (int)getpid());
    RUN(a_network_is_the_same_again);
    RUN(messages_are_the_same_again);
    RUN(time_names_processes_and_blocking_work_are_the_same_again);
    RUN(files_are_the_same_again_and_not_touched);
    RUN(cancels_deadlines_and_polls_are_the_same_again);
    RUN(turns_are_the_same_again);
    RUN(a_task_that_rests_goes_on_again);
    if (check_follows_children()) {
        RUN(a_record_that_is_cut_at_any_byte_replays_up_to_there);
        RUN(a_changed_program_is_told_where_it_asks_for_something_else);
        RUN(a_process_that_was_killed_leaves_its_record);
        RUN(a_child_of_fork_leaves_the_record_alone);
        RUN(records_of_other_versions_and_architectures_are_refused);
        RUN(the_environment_records_and_replays_runs_in_turn);
    }
    RUN(several_threads_are_refused);
    unlink(file);
    return check_end();
}
