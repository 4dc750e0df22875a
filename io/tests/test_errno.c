/* SPDX-License-Identifier: MIT */
/* An operation that succeeds leaves errno alone: on a task, on each back end, and without a
   scheduler; and a run leaves its thread as it was. */
#include "check_io.h"

#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRANGE = 4711 };

static char bytes[64];
static int pipe_ends[2], socket_ends[2], listener, connection, accepted, file;
static int blocking_pipe[2];
static char path[64], other_path[80];
static haft_io_channel_t *channel;

/* Each needs no other, but for those named before it. */
typedef struct operation {
    const char *name;
    ssize_t (*function)(void);
} operation_t;

static ssize_t write_pipe(void) {
    return haft_io_write(pipe_ends[1], "some bytes", 10);
}
static ssize_t read_pipe(void) {
    return haft_io_read(pipe_ends[0], bytes, 2);
}
static ssize_t read_parts_of_pipe(void) {
    struct iovec parts[] = {{bytes, 1}, {bytes + 1, 1}};
    return haft_io_readv(pipe_ends[0], parts, 2);
}
static ssize_t write_parts_of_pipe(void) {
    struct iovec parts[] = {{bytes, 1}, {bytes + 1, 1}};
    return haft_io_writev(pipe_ends[1], parts, 2);
}
static ssize_t read_lent_of_pipe(void) {
    HAFT_IO_SCOPED_LENT const void *lent = NULL;
    return haft_io_read_lent(pipe_ends[0], &lent);
}
static ssize_t write_blocking_pipe(void) {
    return haft_io_write(blocking_pipe[1], "some bytes", 10);
}
static ssize_t read_blocking_pipe(void) {
    return haft_io_read(blocking_pipe[0], bytes, 10);
}
static void *write_pipe_later(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    write_pipe();
    return unused;
}
static ssize_t read_pipe_after_a_wait(void) {
    if (haft_io_self() == NULL)
        return 0;
    haft_io_spawn(write_pipe_later, NULL);
    return haft_io_read(pipe_ends[0], bytes, 10);
}
static ssize_t send_socket(void) {
    return haft_io_send(socket_ends[1], "some bytes", 10, 0);
}
static ssize_t receive_socket(void) {
    return haft_io_receive(socket_ends[0], bytes, 3, 0);
}
static ssize_t receive_all_of_socket(void) {
    return haft_io_receive(socket_ends[0], bytes, 3, MSG_WAITALL);
}
static ssize_t read_socket(void) {
    return haft_io_read(socket_ends[0], bytes, 1);
}
static ssize_t receive_message(void) {
    struct msghdr message = {.msg_iov = &(struct iovec){bytes, 3}, .msg_iovlen = 1};
    return haft_io_receive_message(socket_ends[0], &message, 0);
}
static ssize_t send_message(void) {
    struct msghdr message = {.msg_iov = &(struct iovec){bytes, 3}, .msg_iovlen = 1};
    return haft_io_send_message(socket_ends[1], &message, 0);
}
static ssize_t splice_bytes(void) {
    return haft_io_splice(pipe_ends[0], socket_ends[1], 2);
}
static ssize_t send_file(void) {
    int64_t offset = 0;
    return haft_io_send_file(socket_ends[0], file, &offset, 5);
}
static ssize_t read_what_was_sent(void) {
    return haft_io_read(socket_ends[1], bytes, 5);
}
static ssize_t send_descriptor(void) {
    return haft_io_send_descriptor(socket_ends[0], STDERR_FILENO);
}
static ssize_t receive_descriptor(void) {
    int received = haft_io_receive_descriptor(socket_ends[1]);
    return received < 0 ? received : haft_io_close(received);
}
static ssize_t wait_for(void) {
    return haft_io_wait_ready(pipe_ends[1], POLLOUT);
}
static ssize_t poll_both(void) {
    struct pollfd entries[] = {{pipe_ends[1], POLLOUT, 0}, {socket_ends[0], POLLIN, 0}};
    return haft_io_poll(entries, 2, HAFT_IO_FOREVER);
}
static ssize_t poll_in_vain(void) {
    return haft_io_poll(&(struct pollfd){listener, POLLIN, 0}, 1,
                        haft_io_now() + HAFT_IO_MILLISECOND);
}
static ssize_t make_pipe(void) {
    int made[2];
    int code = haft_io_pipe(made);
    return code != 0 ? code : haft_io_close(made[0]) | haft_io_close(made[1]);
}
static ssize_t listen_tcp(void) {
    return listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
}
static ssize_t listen_tcp_6(void) {
    int made = haft_io_listen_tcp("::", 0, 0);
    return made == -EAFNOSUPPORT ? 0 : made < 0 ? made : haft_io_close(made);
}
static ssize_t connect_tcp(void) {
    return connection = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
}
static ssize_t connect_name(void) {
    int made = haft_io_connect_tcp("localhost", (uint16_t)haft_io_port(listener));
    if (made < 0)
        return made;
    haft_io_close(haft_io_accept(listener));
    return haft_io_close(made);
}
static ssize_t accept_tcp(void) {
    return accepted = haft_io_accept(listener);
}
static void *write_connection_later(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_write(connection, "some bytes", 10);
    return unused;
}
static ssize_t read_lent_of_connection(void) {
    HAFT_IO_SCOPED_LENT const void *lent = NULL;
    if (haft_io_self() == NULL)
        return 0;
    haft_io_spawn(write_connection_later, NULL);
    return haft_io_read_lent(accepted, &lent);
}
static ssize_t close_connection(void) {
    return haft_io_close(accepted) | haft_io_close(connection) | haft_io_close(listener);
}
static ssize_t connect_local(void) {
    unlink(other_path);
    errno = STRANGE;
    int made = haft_io_listen_unix(other_path, 0);
    int client = made < 0 ? made : haft_io_connect_unix(other_path);
    ssize_t done = client < 0 ? client : haft_io_close(client) | haft_io_close(made);
    return done != 0 ? done : haft_io_remove(other_path);
}
static ssize_t open_file(void) {
    return file = haft_io_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}
static ssize_t write_file(void) {
    return haft_io_write(file, "contents", 8);
}
static ssize_t write_file_at(void) {
    return haft_io_pwrite(file, "CON", 3, 0);
}
static ssize_t read_file_at(void) {
    return haft_io_pread(file, bytes, 8, 0);
}
static ssize_t read_file_at_its_end(void) {
    return haft_io_read(file, bytes, 8);
}
static ssize_t sync_file(void) {
    return haft_io_fsync(file);
}
static ssize_t status_of_file(void) {
    struct stat status;
    return haft_io_stat(path, &status);
}
static ssize_t rename_file(void) {
    return haft_io_rename(path, other_path);
}
static ssize_t remove_file(void) {
    return haft_io_remove(other_path);
}
static ssize_t make_directory(void) {
    return haft_io_mkdir(other_path, 0700);
}
static ssize_t list_directory(void) {
    struct dirent **entries;
    int count = haft_io_list_directory(other_path, &entries);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
    return count;
}
static ssize_t remove_directory(void) {
    return haft_io_remove(other_path);
}
static ssize_t resolve(void) {
    struct addrinfo *found;
    int code = haft_io_resolve("127.0.0.1", "80", NULL, &found);
    if (code == 0)
        freeaddrinfo(found);
    return code == 0 ? 0 : -EIO;
}
static ssize_t run_process(void) {
    static const char *const command[] = {"true", NULL};
    pid_t process = haft_io_process_start(command, NULL);
    return process < 0 ? process : haft_io_process_wait(process, NULL);
}
static ssize_t wait_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    kill(getpid(), SIGUSR2);
    return haft_io_signal_wait(&set);
}
static ssize_t sleep_a_little(void) {
    return haft_io_sleep(HAFT_IO_MICROSECOND);
}
static ssize_t yield(void) {
    return haft_io_yield();
}
static void set_errno(void *unused) {
    (void)unused;
    errno = ENOENT;
}
static ssize_t call_blocking(void) {
    return haft_io_self() == NULL ? 0 : haft_io_call_blocking(set_errno, NULL);
}
static void *set_errno_too(void *unused) {
    errno = ENOENT;
    return unused;
}
static ssize_t join(void) {
    return haft_io_self() == NULL ? 0 : haft_io_join(haft_io_async(set_errno_too, NULL), NULL);
}
static ssize_t open_scope(void) {
    return haft_io_scope(check_nothing, NULL, NULL);
}
static ssize_t lock_until(void) {
    haft_io_mutex_t mutex = {0};
    haft_io_mutex_lock(&mutex);
    ssize_t code = haft_io_mutex_lock_until(&mutex, haft_io_now());
    haft_io_mutex_unlock(&mutex);
    return code == -ETIMEDOUT ? 0 : -1;
}
static ssize_t use_channel(void) {
    int value = 1;
    ssize_t code = haft_io_channel_send(channel, &value);
    return code != 0 ? code : haft_io_channel_receive(channel, &value);
}
static ssize_t dump(void) {
    return haft_io_self() == NULL ? 0 : haft_io_dump(blocking_pipe[1]);
}

static const operation_t operations[] = {
    {"write to a pipe", write_pipe},
    {"read of a pipe", read_pipe},
    {"readv of a pipe", read_parts_of_pipe},
    {"writev to a pipe", write_parts_of_pipe},
    {"splice", splice_bytes},
    {"read_lent of a pipe", read_lent_of_pipe},
    {"read of a pipe, after a wait", read_pipe_after_a_wait},
    {"write to a pipe that blocks", write_blocking_pipe},
    {"read of a pipe that blocks", read_blocking_pipe},
    {"send", send_socket},
    {"receive", receive_socket},
    {"receive all", receive_all_of_socket},
    {"read of a socket", read_socket},
    {"send_message", send_message},
    {"receive_message", receive_message},
    {"wait_for", wait_for},
    {"poll", poll_both},
    {"open", open_file},
    {"write to a file", write_file},
    {"pwrite", write_file_at},
    {"pread", read_file_at},
    {"read at the end of a file", read_file_at_its_end},
    {"sync", sync_file},
    {"status", status_of_file},
    {"send_file", send_file},
    {"read of what was sent", read_what_was_sent},
    {"rename", rename_file},
    {"remove", remove_file},
    {"mkdir", make_directory},
    {"list_directory", list_directory},
    {"remove of a directory", remove_directory},
    {"send_descriptor", send_descriptor},
    {"receive_descriptor, close", receive_descriptor},
    {"pipe", make_pipe},
    {"listen_tcp", listen_tcp},
    {"listen_tcp, all addresses", listen_tcp_6},
    {"connect_tcp", connect_tcp},
    {"accept", accept_tcp},
    {"read_lent of a connection", read_lent_of_connection},
    {"connect_tcp by name", connect_name},
    {"poll until a deadline", poll_in_vain},
    {"close", close_connection},
    {"listen_unix, connect_unix", connect_local},
    {"resolve", resolve},
    {"process_start, process_wait", run_process},
    {"wait_signal", wait_signal},
    {"sleep", sleep_a_little},
    {"yield", yield},
    {"call_blocking", call_blocking},
    {"async, join", join},
    {"scope", open_scope},
    {"lock_until", lock_until},
    {"a channel", use_channel},
    {"dump", dump},
};

/* Not of a compiler that knows errno from before. */
static __attribute__((noinline)) int errno_now(void) {
    __asm__ volatile("" : : : "memory");
    return errno;
}

BODY(operate) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        errno = STRANGE;
        ssize_t done = operations[i].function();
        int error = errno_now();
        if (done < 0 || error != STRANGE)
            printf("%s: %zd, errno %d\n", operations[i].name, done, error);
        CHECK(done >= 0);
        CHECK_EQUAL(error, STRANGE);
    }
    haft_io_close(file);
    return NULL;
}

static void set_up(void) {
    snprintf(path, sizeof path, "/tmp/haft-errno-%d", (int)getpid());
    snprintf(other_path, sizeof other_path, "%s-other", path);
    CHECK_EQUAL(haft_io_pipe(pipe_ends), 0);
    CHECK_EQUAL(pipe(blocking_pipe), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, socket_ends), 0);
}
static void clean_up(void) {
    for (int i = 0; i < 2; i++) {
        close(pipe_ends[i]);
        close(blocking_pipe[i]);
        close(socket_ends[i]);
    }
}

static void operate_in_a_run(const haft_io_run_options_t *options) {
    set_up();
    CHECK_EQUAL(haft_io_run_with(options, operate, NULL), 0);
    clean_up();
}
static void a_success_on_a_task_leaves_errno_alone(void) {
    check_everywhere(operate_in_a_run);
}
static void a_success_without_a_scheduler_leaves_errno_alone(void) {
    set_up();
    operate(NULL);
    clean_up();
}

/* ---- After a run ---- */

/* Calls that end with their limit, or with EINTR if the kernel interrupts them. */
enum { LIMIT = 40 }; /* milliseconds */
static int wait_for_events(void) {
    struct epoll_event event;
    int epoll = epoll_create1(0), code = epoll_wait(epoll, &event, 1, LIMIT);
    close(epoll);
    return code == 0 ? EAGAIN : errno;
}
static int wait_for_a_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &(struct timespec){.tv_nsec = LIMIT * 1000000}) == -1 ? errno
                                                                                          : 0;
}
static void limit_waits(int socket) {
    struct timeval limit = {.tv_usec = LIMIT * 1000};
    CHECK_EQUAL(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
}
static int wait_for_bytes(void) {
    char byte;
    int sockets[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    limit_waits(sockets[0]);
    int code = recv(sockets[0], &byte, 1, 0) == -1 ? errno : 0;
    close(sockets[0]);
    close(sockets[1]);
    return code;
}
static int wait_for_a_connection(void) {
    int own = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(listen(own, 1), 0);
    limit_waits(own);
    int code = accept(own, NULL, NULL) == -1 ? errno : 0;
    close(own);
    return code;
}

static void *say_later(void *unused) {
    haft_io_yield();
    CHECK_EQUAL(haft_io_write(socket_ends[1], "x", 1), 1);
    return unused;
}
BODY(hear_one) {
    char byte;
    haft_io_spawn(say_later, NULL);
    CHECK_EQUAL(haft_io_read(socket_ends[0], &byte, 1), 1);
    return NULL;
}
static void wait_after_runs(const haft_io_run_options_t *options) {
    static int (*const calls[])(void) = {wait_for_events, wait_for_a_signal, wait_for_bytes,
                                         wait_for_a_connection};
    set_up();
    for (int i = 0; i < 8; i++) {
        int before = check_descriptors();
        CHECK_EQUAL(haft_io_run_with(options, hear_one, NULL), 0);
        CHECK_EQUAL(check_descriptors(), before);
        CHECK_EQUAL(calls[i / 2](), EAGAIN);
    }
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(haft_io_run_with(options, hear_one, NULL), 0);
    clean_up();
}
static void after_runs_nothing_interrupts_the_calls_of_the_thread(void) {
    check_everywhere(wait_after_runs);
}

static void *run_twice(void *options) {
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_run_with(options, hear_one, NULL), 0);
    return NULL;
}
static void run_in_threads_and_children(const haft_io_run_options_t *options) {
    haft_io_run_options_t copy = *options;
    set_up();
    run_twice(&copy);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, run_twice, &copy), 0);
        pthread_join(thread, NULL);
    }
    pid_t child = check_follows_children() ? fork() : -1;
    if (child == 0) {
        run_twice(&copy);
        _exit(check_failures != 0);
    }
    int status = 0;
    if (child > 0)
        CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    run_twice(&copy);
    clean_up();
}
static void threads_that_end_and_children_of_fork_have_runs_of_their_own(void) {
    check_everywhere(run_in_threads_and_children);
}

int main(void) {
    check_backend();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    channel = haft_io_channel_new(sizeof(int), 1);
    RUN(a_success_on_a_task_leaves_errno_alone);
    RUN(a_success_without_a_scheduler_leaves_errno_alone);
    RUN(after_runs_nothing_interrupts_the_calls_of_the_thread);
    RUN(threads_that_end_and_children_of_fork_have_runs_of_their_own);
    haft_io_channel_free(channel);
    return check_end();
}
