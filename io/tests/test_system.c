/* Parts and messages, descriptors that are passed, bytes that go past the program, signals,
   processes, directories: on tasks, and the same calls with no scheduler. */
#include "check_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define RUNS_BOTH_WAYS(body)                                                                       \
    do {                                                                                           \
        body(NULL);                                                                                \
        CHECK_RUNS(body);                                                                          \
    } while (0)

static int ends[2];
static void close_ends(void) {
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
}

/* ---- Parts and messages ---- */

static char first[3], second[8];
static const struct iovec places[] = {{first, 3}, {NULL, 0}, {second, 8}};
static const struct iovec texts[] = {{(void *)(uintptr_t) "abc", 3},
                                     {(void *)(uintptr_t) "defg", 4}};

static void transfer_parts(void) {
    memset(second, 0, sizeof second);
    CHECK_EQUAL(haft_io_writev(ends[1], texts, 2), 7);
    CHECK_EQUAL(haft_io_readv(ends[0], places, 3), 7);
    CHECK(memcmp(first, "abc", 3) == 0 && strcmp(second, "defg") == 0);
}
BODY(use_parts) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    transfer_parts();
    close_ends();
    CHECK_EQUAL(pipe(ends), 0);
    transfer_parts();
    close_ends();
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    transfer_parts();
    struct msghdr out = {.msg_iov = (struct iovec *)(uintptr_t)texts, .msg_iovlen = 2};
    struct msghdr in = {.msg_iov = (struct iovec *)(uintptr_t)places, .msg_iovlen = 3};
    CHECK_EQUAL(haft_io_send_message(ends[1], &out, 0), 7);
    CHECK_EQUAL(haft_io_receive_message(ends[0], &in, 0), 7);
    haft_io_close(ends[0]);
    CHECK_EQUAL(haft_io_writev(ends[1], texts, 2), -EPIPE);
    haft_io_close(ends[1]);
    char path[] = "/tmp/haft-io-XXXXXX";
    ends[0] = mkstemp(path);
    ends[1] = open(path, O_WRONLY | O_CLOEXEC);
    unlink(path);
    transfer_parts();
    CHECK_EQUAL(haft_io_readv(ends[0], places, 3), 0);
    close_ends();
    CHECK_EQUAL(haft_io_readv(ends[0], places, 3), -EBADF);
    return NULL;
}
BODY(write_parts_later) {
    haft_io_yield();
    CHECK(haft_io_writev(ends[1], texts, 2) >= 3);
    return NULL;
}
BODY(read_parts_that_come) {
    haft_io_spawn(write_parts_later, NULL);
    CHECK(haft_io_readv(ends[0], places, 3) > 0);
    CHECK(memcmp(first, "abc", 3) == 0);
    close_ends();
    return NULL;
}
BODY(read_parts_of_a_pipe) {
    CHECK_EQUAL(pipe(ends), 0);
    return read_parts_that_come(NULL);
}
BODY(read_parts_of_a_socket) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    return read_parts_that_come(NULL);
}
BODY(read_parts_of_a_simulated_stream) {
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    return read_parts_that_come(NULL);
}
static void parts_are_read_and_written_in_order(void) {
    RUNS_BOTH_WAYS(use_parts);
    CHECK_RUNS(read_parts_of_a_pipe);
    CHECK_RUNS(read_parts_of_a_socket);
    CHECK_EQUAL(haft_io_simulate(read_parts_of_a_simulated_stream, NULL), 0);
}

/* ---- Descriptors ---- */

static void pass(int passed) {
    char byte;
    int got = haft_io_receive_descriptor(ends[0]);
    CHECK(got >= 0 && got != passed);
    CHECK((fcntl(got, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQUAL(haft_io_write(got, "x", 1), 1);
    haft_io_close(got);
    CHECK_EQUAL(haft_io_read(passed, &byte, 1), 1);
}
static int pair[2];
BODY(send_later) {
    haft_io_yield();
    CHECK_EQUAL(haft_io_send_descriptor(ends[1], pair[1]), 0);
    return NULL;
}
BODY(pass_descriptors) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQUAL(haft_io_send_descriptor(ends[1], pair[1]), 0);
    pass(pair[0]);
    if (haft_io_self() != NULL) {
        haft_io_spawn(send_later, NULL);
        pass(pair[0]);
    }
    CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_receive_descriptor(ends[0]), -EBADMSG);
    haft_io_close(ends[1]);
    CHECK_EQUAL(haft_io_receive_descriptor(ends[0]), -EPIPE);
    haft_io_close(ends[0]);
    haft_io_close(pair[0]);
    haft_io_close(pair[1]);
    return NULL;
}
static void a_descriptor_is_passed_over_a_unix_socket(void) {
    RUNS_BOTH_WAYS(pass_descriptors);
}

BODY(receive_one_of_two) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    memcpy(CMSG_DATA(&control.header), ends, sizeof ends);
    struct msghdr message = {.msg_iov = &(struct iovec){"x", 1},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(haft_io_send_message(ends[1], &message, 0), 1);
    int before = check_descriptors(), got = haft_io_receive_descriptor(ends[0]);
    CHECK_EQUAL(check_descriptors(), before + (got >= 0));
    haft_io_close(got);
    close_ends();
    return NULL;
}
static void of_two_descriptors_that_come_at_once_none_is_left_open(void) {
    RUNS_BOTH_WAYS(receive_one_of_two);
}

/* ---- Past the program ---- */

enum { LARGE = 1 << 20 };
static char large[LARGE];
static size_t drained;
BODY(drain) {
    static char buffer[65536];
    for (ssize_t got; (got = haft_io_read(ends[0], buffer, sizeof buffer)) > 0;)
        drained += (size_t)got;
    return NULL;
}
BODY(send_a_file) {
    char path[] = "/tmp/haft-io-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    CHECK_EQUAL(write(file, large, LARGE), LARGE);
    for (int blocks = 0; blocks < 2; blocks++) {
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | (blocks ? 0 : SOCK_NONBLOCK), 0, ends), 0);
        drained = 0;
        haft_io_task_t *drainer = haft_io_async(drain, NULL);
        int64_t offset = 10;
        for (ssize_t sent; (sent = haft_io_send_file(ends[1], file, &offset, LARGE)) != 0;)
            CHECK(sent > 0);
        CHECK_EQUAL(offset, LARGE);
        CHECK_EQUAL((fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0, blocks);
        haft_io_close(ends[1]);
        haft_io_join(drainer, NULL);
        CHECK_EQUAL(drained, LARGE - 10);
        haft_io_close(ends[0]);
    }
    close(file);
    return NULL;
}
static int through[2];
BODY(splice_all) {
    for (ssize_t moved; (moved = haft_io_splice(through[0], ends[1], LARGE)) != 0;)
        CHECK(moved > 0);
    haft_io_close(ends[1]);
    return NULL;
}
BODY(splice_a_pipe) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_pipe(through), 0);
    drained = 0;
    haft_io_spawn(splice_all, NULL);
    haft_io_task_t *drainer = haft_io_async(drain, NULL);
    CHECK_EQUAL(haft_io_write_all(through[1], large, LARGE), 0);
    haft_io_close(through[1]);
    haft_io_join(drainer, NULL);
    CHECK_EQUAL(drained, LARGE);
    haft_io_close(ends[0]);
    haft_io_close(through[0]);
    return NULL;
}
static void bytes_go_past_the_program(void) {
    CHECK_RUNS(send_a_file);
    CHECK_RUNS(splice_a_pipe);
}

/* SIGPIPE would end the program here. */
static void check_broken(int to) {
    int64_t offset = 0;
    HAFT_IO_SCOPED_DESCRIPTOR int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL(haft_io_pipe(through), 0);
    CHECK_EQUAL(haft_io_write(through[1], "a", 1), 1);
    CHECK_EQUAL(haft_io_send_file(to, file, &offset, 10), -EPIPE);
    CHECK_EQUAL(offset, 0);
    CHECK_EQUAL(haft_io_splice(through[0], to, 10), -EPIPE);
    haft_io_close(through[0]);
    haft_io_close(through[1]);
}
static bool is_pending(void) {
    sigset_t pending;
    CHECK_EQUAL(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}
BODY(move_to_nobody) {
    sigset_t broken, before;
    for (int blocks = 0; blocks < 2; blocks++) {
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | (blocks ? 0 : SOCK_NONBLOCK), 0, ends), 0);
        haft_io_close(ends[0]);
        check_broken(ends[1]);
        haft_io_close(ends[1]);
        CHECK_EQUAL(blocks ? pipe(ends) : haft_io_pipe(ends), 0);
        haft_io_close(ends[0]);
        check_broken(ends[1]);
    }
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    check_broken(ends[1]);
    CHECK(!is_pending());
    raise(SIGPIPE); /* which is the program's */
    check_broken(ends[1]);
    CHECK(is_pending());
    CHECK_EQUAL(sigtimedwait(&broken, NULL, &(struct timespec){0}), SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    haft_io_close(ends[1]);
    return NULL;
}
static void bytes_to_nobody_send_no_signal(void) {
    RUNS_BOTH_WAYS(move_to_nobody);
}

/* ---- Signals ---- */

static sigset_t signals;
BODY(send_signals) {
    haft_io_yield();
    kill(getpid(), SIGUSR1);
    return NULL;
}
BODY(wait_for_signals) {
    if (haft_io_self() != NULL)
        haft_io_spawn(send_signals, NULL);
    else
        raise(SIGUSR1);
    CHECK_EQUAL(haft_io_signal_wait(&signals), SIGUSR1);
    raise(SIGUSR2);
    CHECK_EQUAL(haft_io_signal_wait(&signals), SIGUSR2);
    return NULL;
}
BODY(wait_in_vain) {
    haft_io_signal_wait(&signals);
    return NULL;
}
BODY(cancel_a_wait) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, wait_in_vain, NULL, NULL), -ETIMEDOUT);
    return NULL;
}
static void a_signal_is_waited_for(void) {
    sigset_t before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    RUNS_BOTH_WAYS(wait_for_signals);
    CHECK_RUNS(cancel_a_wait);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- Processes ---- */

BODY(run_processes) {
    int in[2], out[2], status;
    char text[16] = "";
    CHECK_EQUAL(haft_io_pipe(in), 0);
    CHECK_EQUAL(haft_io_pipe(out), 0);
    pid_t cat = haft_io_process_start((const char *[]){"cat", NULL}, (int[]){in[0], out[1], -1});
    CHECK(cat > 0);
    haft_io_close(in[0]);
    haft_io_close(out[1]);
    CHECK_EQUAL(haft_io_write(in[1], "there", 5), 5);
    CHECK_EQUAL(haft_io_read(out[0], text, sizeof text), 5);
    CHECK(strcmp(text, "there") == 0);
    haft_io_close(in[1]);
    CHECK_EQUAL(haft_io_process_wait(cat, &status), 0);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(haft_io_process_wait(cat, &status), -ECHILD);
    haft_io_close(out[0]);

    pid_t shell = haft_io_process_start((const char *[]){"sh", "-c", "exit 7", NULL}, NULL);
    CHECK_EQUAL(haft_io_process_wait(shell, &status), 0);
    CHECK_EQUAL(WEXITSTATUS(status), 7);
    /* (Emulators, which start it by fork, tell by its status.) */
    pid_t nothing = haft_io_process_start((const char *[]){"there is no such program", NULL}, NULL);
    CHECK(nothing == -ENOENT ||
          (haft_io_process_wait(nothing, &status) == 0 && WEXITSTATUS(status) == 127));
    return NULL;
}

static void check_prints(haft_io_process_options_t options, const char *script,
                         const char *expected) {
    int out[2], status;
    char text[64] = "";
    CHECK_EQUAL(haft_io_pipe(out), 0);
    options.streams = (int[]){-1, out[1], -1};
    pid_t shell = haft_io_process_start_with(&options, (const char *[]){"sh", "-c", script, NULL});
    CHECK(shell > 0);
    haft_io_close(out[1]);
    CHECK_EQUAL(haft_io_read(out[0], text, sizeof text - 1), (ssize_t)strlen(expected));
    CHECK(strcmp(text, expected) == 0);
    haft_io_close(out[0]);
    CHECK_EQUAL(haft_io_process_wait(shell, &status), 0);
    CHECK_EQUAL(status, 0);
}
BODY(run_processes_with_options) {
    const char *environment[] = {"ANIMAL=cat", NULL}, *nothing[] = {NULL};
    haft_io_process_options_t defaults = {0};
    setenv("ANIMAL", "dog", 1);
    check_prints(defaults, "echo $ANIMAL", "dog\n");
    check_prints((haft_io_process_options_t){.environment = environment}, "echo $ANIMAL", "cat\n");
    check_prints((haft_io_process_options_t){.environment = nothing}, "echo $ANIMAL", "\n");
    check_prints((haft_io_process_options_t){.folder = "/"}, "pwd", "/\n");
    check_prints((haft_io_process_options_t){.folder = "/usr", .environment = nothing}, "pwd",
                 "/usr\n");
    haft_io_process_options_t nowhere = {.folder = "/nowhere at all"};
    const char *command[] = {"sh", "-c", "exit 0", NULL};
    int status;
    pid_t shell = haft_io_process_start_with(&nowhere, command);
    CHECK(shell == -ENOENT ||
          (haft_io_process_wait(shell, &status) == 0 && WEXITSTATUS(status) == 127));
    shell = haft_io_process_start_with(NULL, command);
    CHECK_EQUAL(haft_io_process_wait(shell, &status), 0);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(haft_io_process_start_with(NULL, nothing), -EINVAL);
    CHECK_EQUAL(haft_io_process_start_with(NULL, NULL), -EINVAL);
    return NULL;
}

static int next_free;
/* Another task gives a descriptor back, or what is waited for comes without one. */
BODY(close_and_signal) {
    haft_io_sleep(15 * HAFT_IO_MILLISECOND);
    if (*(bool *)argument)
        haft_io_close(next_free);
    kill(getpid(), SIGUSR2);
    return NULL;
}
BODY(wait_without_descriptors) {
    for (int i = 0; i < 2; i++) {
        bool gives = i == 1;
        int status, lowest = dup(0), last;
        next_free = lowest;
        pid_t child = haft_io_process_start((const char *[]){"sleep", "0.03", NULL}, NULL);
        CHECK(child > 0);
        while ((last = dup(0)) >= 0)
            next_free = last;
        haft_io_spawn(close_and_signal, &gives);
        CHECK_EQUAL(haft_io_signal_wait(argument), SIGUSR2);
        CHECK_EQUAL(haft_io_process_wait(child, &status), 0);
        CHECK_EQUAL(status, 0);
        CHECK_EQUAL(haft_io_process_wait(child, &status), -ECHILD);
        for (int number = lowest; number <= next_free; number++)
            close(number);
    }
    return NULL;
}
static void who_waits_without_descriptors_looks_now_and_then(void) {
    struct rlimit before;
    sigset_t blocked, mask;
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit few = {64, before.rlim_max};
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, &mask);
    setrlimit(RLIMIT_NOFILE, &few);
    CHECK_EQUAL(haft_io_run(wait_without_descriptors, &blocked), 0);
    setrlimit(RLIMIT_NOFILE, &before);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* On threads of the library, too, which themselves block nearly all signals. */
static void check_mask(void *unused) {
    sigset_t mask;
    haft_io_signal_mask(&mask);
    CHECK(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGTERM) == 0);
    if (!check_follows_children())
        return;
    pid_t child = fork();
    if (child == 0) {
        kill(getpid(), SIGUSR2);
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(WTERMSIG(status), SIGTERM);
    (void)unused;
}
BODY(check_own_mask) {
    check_mask(NULL);
    CHECK_EQUAL(haft_io_call_blocking(check_mask, NULL), 0);
    return NULL;
}
BODY(check_masks) {
    haft_io_task_options_t spread = {.spread = true};
    for (int i = 0; i < 4; i++)
        haft_io_spawn_with(&spread, check_own_mask, NULL);
    return check_own_mask(NULL);
}
static void what_is_forked_blocks_what_the_program_does(void) {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    check_own_mask(NULL);
    for (int threads = 1; threads <= 2; threads++)
        CHECK_EQUAL(
            haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, check_masks, NULL), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The child's child, which alone holds the pipe, ends with the group. */
BODY(stop_a_group) {
    int out[2], status;
    char byte;
    CHECK_EQUAL(haft_io_pipe(out), 0);
    haft_io_process_options_t options = {.streams = (int[]){-1, out[1], -1}, .group = true};
    pid_t shell = haft_io_process_start_with(
        &options, (const char *[]){"sh", "-c", "sleep 1000 & echo; wait", NULL});
    CHECK(shell > 0);
    haft_io_close(out[1]);
    CHECK_EQUAL(haft_io_read(out[0], &byte, 1), 1);
    CHECK_EQUAL(getpgid(shell), shell);
    CHECK_EQUAL(kill(-shell, SIGKILL), 0);
    CHECK_EQUAL(haft_io_process_wait(shell, &status), 0);
    CHECK_EQUAL(WTERMSIG(status), SIGKILL);
    CHECK_EQUAL(haft_io_read(out[0], &byte, 1), 0);
    haft_io_close(out[0]);
    return NULL;
}

/* A signal that is blocked or ignored here is neither there: a program that gets it ends. */
BODY(stop_a_process) {
    int status;
    pid_t sleeper = haft_io_process_start((const char *[]){"sleep", "1000", NULL}, NULL);
    CHECK(sleeper > 0);
    kill(sleeper, SIGTERM);
    CHECK_EQUAL(haft_io_process_wait(sleeper, &status), 0);
    CHECK_EQUAL(WTERMSIG(status), SIGTERM);
    return NULL;
}
static void processes_are_started_and_waited_for(void) {
    int before = check_descriptors();
    RUNS_BOTH_WAYS(run_processes);
    RUNS_BOTH_WAYS(run_processes_with_options);
    RUNS_BOTH_WAYS(stop_a_group);
    sigset_t blocked, mask;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &mask);
    RUNS_BOTH_WAYS(stop_a_process);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    CHECK_EQUAL(check_descriptors(), before);
}

/* ---- Directories ---- */

BODY(use_directories) {
    char path[] = "/tmp/haft-io-XXXXXX", inner[64], other[64];
    CHECK(mkdtemp(path) != NULL);
    snprintf(inner, sizeof inner, "%s/b", path);
    snprintf(other, sizeof other, "%s/a", path);
    CHECK_EQUAL(haft_io_mkdir(inner, 0700), 0);
    CHECK_EQUAL(haft_io_mkdir(inner, 0700), -EEXIST);
    CHECK_EQUAL(haft_io_rename(inner, other), 0);
    struct stat status;
    CHECK_EQUAL(haft_io_stat(other, &status), 0);
    CHECK(S_ISDIR(status.st_mode));
    CHECK_EQUAL(haft_io_stat(inner, &status), -ENOENT);
    struct dirent **entries;
    int count = haft_io_list_directory(path, &entries);
    CHECK_EQUAL(count, 3); /* with . and .. */
    CHECK(strcmp(entries[2]->d_name, "a") == 0);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    CHECK_EQUAL(haft_io_remove(path), -ENOTEMPTY);
    CHECK_EQUAL(haft_io_remove(other), 0);
    CHECK_EQUAL(haft_io_remove(path), 0);
    CHECK_EQUAL(haft_io_list_directory(path, &entries), -ENOENT);
    return NULL;
}
static void directories_are_made_listed_and_removed(void) {
    RUNS_BOTH_WAYS(use_directories);
}

/* ---- TCP_NODELAY ---- */

static int sends_at_once(int socket) {
    int value = -1;
    socklen_t size = sizeof value;
    getsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &value, &size);
    return value != 0;
}
static void check_pair(int listener, int connection, int expected_of_accepted) {
    HAFT_IO_SCOPED_DESCRIPTOR int accepted = haft_io_accept(listener);
    CHECK_EQUAL(sends_at_once(connection), 1);
    CHECK_EQUAL(sends_at_once(accepted), expected_of_accepted);
    haft_io_close(connection);
}
static int connect_by_socket(int port) {
    struct sockaddr_in address = {AF_INET, htons((uint16_t)port), {htonl(INADDR_LOOPBACK)}, {0}};
    int connection = haft_io_socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(haft_io_connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    return connection;
}
/* (With io_uring the second and later ones are accepted by the kernel itself.) */
BODY(connect_and_look) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int port = haft_io_port(listener);
    for (int i = 0; i < 4; i++) {
        check_pair(listener, haft_io_connect_tcp("127.0.0.1", (uint16_t)port), 1);
        check_pair(listener, connect_by_socket(port), 1);
    }
    CHECK_EQUAL(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &(int){0}, sizeof(int)), 0);
    check_pair(listener, haft_io_connect_tcp("localhost", (uint16_t)port), 0);
    HAFT_IO_SCOPED_DESCRIPTOR int datagrams = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    HAFT_IO_SCOPED_DESCRIPTOR int local = haft_io_socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(datagrams >= 0 && local >= 0);
    return NULL;
}
static void look_everywhere(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, connect_and_look, NULL), 0);
}
static void tcp_sends_at_once_unless_the_listener_is_told_otherwise(void) {
    connect_and_look(NULL);
    check_everywhere(look_everywhere);
}

int main(void) {
    check_backend();
    RUN(parts_are_read_and_written_in_order);
    RUN(a_descriptor_is_passed_over_a_unix_socket);
    RUN(of_two_descriptors_that_come_at_once_none_is_left_open);
    RUN(bytes_go_past_the_program);
    RUN(bytes_to_nobody_send_no_signal);
    RUN(a_signal_is_waited_for);
    RUN(processes_are_started_and_waited_for);
    RUN(who_waits_without_descriptors_looks_now_and_then);
    RUN(what_is_forked_blocks_what_the_program_does);
    RUN(directories_are_made_listed_and_removed);
    RUN(tcp_sends_at_once_unless_the_listener_is_told_otherwise);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
