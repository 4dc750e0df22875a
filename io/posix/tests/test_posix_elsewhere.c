/* SPDX-License-Identifier: MIT */
/* Calls that wait for what is not a descriptor of the task's own: the other end of a FIFO, a lock,
   a signal, a child, a command, the end of a thread; and those that move bytes from one descriptor
   to another; and those that make the thread wait. Each test is a run of one thread in which
   another task does what the call waits for. */
#include "check_posix.h"

#include <arpa/nameser.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <resolv.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char folder[] = "/tmp/haft-posix-XXXXXX", path[64];

static void name_a_file(void) {
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
}
static void remove_the_file(void) {
    CHECK_EQUAL(unlink(path), 0);
    CHECK_EQUAL(rmdir(folder), 0);
}
static void close_ends(void) {
    CHECK_EQUAL(close(ends[0]), 0);
    CHECK_EQUAL(close(ends[1]), 0);
}

/* ---- FIFOs ---- */

/* How the two ends are opened: one of them blocks until the other one comes. */
int __open_2(const char *path, int flags);
BODY(write_to_fifo) {
    int fifo = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fifo >= 0);
    CHECK_EQUAL(fcntl(fifo, F_GETFL) & O_NONBLOCK, 0);
    haft_io_sleep(
        HAFT_IO_MILLISECOND); /* The reader's open is over before there is something to read. */
    CHECK_EQUAL(write(fifo, "fifo", 4), 4);
    CHECK_EQUAL(close(fifo), 0);
    return NULL;
}
BODY(read_from_fifo) {
    char text[8];
    int fifo = argument != NULL ? open(path, O_RDONLY) : __open_2(path, O_RDONLY);
    CHECK(fifo >= 0);
    CHECK_EQUAL(fcntl(fifo, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQUAL(read(fifo, text, sizeof text), 4);
    CHECK_EQUAL(read(fifo, text, sizeof text), 0);
    CHECK_EQUAL(close(fifo), 0);
    return NULL;
}
BODY(open_both_ends) {
    for (int i = 0; i < 3; i++) {
        haft_io_task_t *first = haft_io_async(i == 0 ? write_to_fifo : read_from_fifo, NULL);
        haft_io_sleep(5 * HAFT_IO_MILLISECOND);
        haft_io_task_t *second = haft_io_async(i == 0 ? read_from_fifo : write_to_fifo, path);
        haft_io_join(first, NULL);
        haft_io_join(second, NULL);
    }
    CHECK_EQUAL(open(path, O_WRONLY | O_NONBLOCK), -1);
    CHECK_EQUAL(errno, ENXIO);
    return NULL;
}
static void opening_a_fifo_waits_for_the_other_end(void) {
    name_a_file();
    CHECK_EQUAL(mkfifo(path, 0600), 0);
    CHECK_RUNS(open_both_ends);
    remove_the_file();
}

BODY(open_in_vain) {
    errno = 0;
    CHECK_EQUAL(open(path, argument != NULL ? O_RDONLY : O_WRONLY), -1);
    CHECK_EQUAL(errno, ECANCELED);
    return NULL;
}
BODY(cancel_opening) {
    int descriptors = check_descriptors();
    for (int i = 0; i < 2; i++) {
        haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
        CHECK_EQUAL(haft_io_scope_with(&options, open_in_vain, i == 0 ? path : NULL, NULL),
                    -ETIMEDOUT);
    }
    CHECK_EQUAL(check_descriptors(), descriptors);
    return NULL;
}
static void a_cancel_ends_the_opening_of_a_fifo(void) {
    name_a_file();
    CHECK_EQUAL(mkfifo(path, 0600), 0);
    CHECK_RUNS(cancel_opening);
    remove_the_file();
}

BODY(open_files) {
    int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0640);
    CHECK(file >= 0);
    struct stat status;
    CHECK_EQUAL(fstat(file, &status), 0);
    CHECK_EQUAL(status.st_mode & 0777, 0640);
    CHECK_EQUAL(close(file), 0);
    CHECK_EQUAL(open(path, O_CREAT | O_EXCL, 0600), -1);
    CHECK_EQUAL(errno, EEXIST);
    file = creat(path, 0600);
    CHECK_EQUAL(write(file, "x", 1), 1);
    CHECK_EQUAL(close(file), 0);
    int directory = open(folder, O_DIRECTORY | O_RDONLY);
    errno = ERANGE;
    file = openat(directory, "file", O_RDONLY);
    CHECK(file >= 0);
    CHECK_EQUAL(errno, ERANGE);
    CHECK_EQUAL(close(file), 0);
    CHECK_EQUAL(openat(directory, "none", O_RDONLY), -1);
    CHECK_EQUAL(errno, ENOENT);
    CHECK_EQUAL(close(directory), 0);
    return NULL;
}
static void files_are_opened_as_ever(void) {
    name_a_file();
    CHECK_RUNS(open_files);
    remove_the_file();
}

/* ---- Locks ---- */

static int holders, rounds;
static void *hold_with_flock(void *unused) {
    int file = open(path, O_RDWR);
    CHECK_EQUAL(flock(file, LOCK_EX), 0);
    CHECK_EQUAL(holders++, 0);
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    int other = open(path, O_RDWR);
    CHECK_EQUAL(flock(other, LOCK_SH | LOCK_NB), -1);
    CHECK_EQUAL(errno, EWOULDBLOCK);
    CHECK_EQUAL(close(other), 0);
    holders--;
    rounds++;
    CHECK_EQUAL(flock(file, LOCK_UN), 0);
    CHECK_EQUAL(close(file), 0);
    return unused;
}
/* A lock of an open file, since one of a process does not keep its own tasks out. */
static void *hold_with_record(void *unused) {
    int file = open(path, O_RDWR);
    struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    CHECK_EQUAL(fcntl(file, F_OFD_SETLKW, &record), 0);
    CHECK_EQUAL(holders++, 0);
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    holders--;
    rounds++;
    record.l_type = F_UNLCK;
    CHECK_EQUAL(fcntl(file, F_OFD_SETLKW, &record), 0);
    CHECK_EQUAL(close(file), 0);
    return unused;
}
BODY(hold_in_turn) {
    for (int i = 0; i < 4; i++)
        haft_io_spawn(hold_with_flock, NULL);
    return NULL;
}
BODY(hold_records_in_turn) {
    for (int i = 0; i < 4; i++)
        haft_io_spawn(hold_with_record, NULL);
    return NULL;
}
static void a_task_waits_for_a_lock_that_another_has(void) {
    name_a_file();
    CHECK_EQUAL(close(creat(path, 0600)), 0);
    rounds = 0;
    CHECK_RUNS(hold_in_turn);
    CHECK_RUNS(hold_records_in_turn);
    CHECK_EQUAL(rounds, 8);
    remove_the_file();
}

/* Another process has the lock until it is told to end. */
static void hold_in_a_child(const int told[2], int ready) {
    char byte;
    int file = open(path, O_RDWR);
    close(told[1]);
    _exit(lockf(file, F_LOCK, 1) == 0 && write(ready, "x", 1) == 1 && read(told[0], &byte, 1) == 0
              ? 0
              : 1);
}
BODY(let_the_child_end) {
    haft_io_sleep(3 * HAFT_IO_MILLISECOND);
    rounds++;
    CHECK_EQUAL(close(ends[1]), 0);
    return NULL;
}
BODY(wait_for_a_process) {
    char byte;
    int ready[2], status;
    if (!check_follows_children())
        return NULL;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pipe(ends), 0);
        CHECK_EQUAL(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0)
            hold_in_a_child(ends, ready[1]);
        CHECK_EQUAL(read(ready[0], &byte, 1), 1);
        int file = open(path, O_RDWR);
        struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        CHECK_EQUAL(lockf(file, F_TLOCK, 1), -1);
        rounds = 0;
        haft_io_spawn(let_the_child_end, NULL);
        CHECK_EQUAL(i == 0 ? lockf(file, F_LOCK, 1) : fcntl(file, F_SETLKW, &record), 0);
        CHECK_EQUAL(rounds, 1);
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        CHECK_EQUAL(status, 0);
        CHECK_EQUAL(close(file), 0);
        CHECK_EQUAL(close(ends[0]), 0);
        CHECK_EQUAL(close(ready[0]), 0);
        CHECK_EQUAL(close(ready[1]), 0);
    }
    return NULL;
}
static void a_task_waits_for_a_record_lock_of_another_process(void) {
    name_a_file();
    CHECK_EQUAL(close(creat(path, 0600)), 0);
    CHECK_RUNS(wait_for_a_process);
    remove_the_file();
}

/* ---- From one descriptor to another ---- */

BODY(send_files) {
    int file = open(path, O_RDWR | O_CREAT, 0600), copy = open(folder, O_RDWR | O_TMPFILE, 0600);
    CHECK_EQUAL(write(file, large, LARGE), LARGE);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(i == 0 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        haft_io_task_t *drained = haft_io_async(drain, check_number(2 * LARGE - 10));
        off_t offset = 10;
        CHECK_EQUAL(sendfile(ends[1], file, &offset, LARGE), LARGE - 10);
        CHECK_EQUAL(offset, LARGE);
        CHECK_EQUAL(sendfile(ends[1], file, &offset, LARGE), 0);
        CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
        CHECK_EQUAL(sendfile(ends[1], file, NULL, LARGE), LARGE);
        CHECK_EQUAL(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
        CHECK_EQUAL(close(ends[1]), 0);
        haft_io_join(drained, NULL);
        CHECK_EQUAL(close(ends[0]), 0);
    }
    off64_t from = 0, to = 0;
    CHECK_EQUAL(copy_file_range(file, &from, copy, &to, 100, 0), 100);
    from = 0;
    CHECK_EQUAL(sendfile(copy, file, &from, 100), 100);
    CHECK_EQUAL(sendfile(-1, file, NULL, 1), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(close(copy), 0);
    CHECK_EQUAL(close(file), 0);
    return NULL;
}
static void a_file_is_sent_in_full(void) {
    name_a_file();
    CHECK_RUNS(send_files);
    remove_the_file();
}

BODY(write_a_word) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(write(ends[1], "word", 4), 4);
    return NULL;
}
BODY(read_what_fills) {
    static char buffer[LARGE];
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(read((int)(intptr_t)argument, buffer, sizeof buffer) > 0);
    return NULL;
}
BODY(splice_pipes) {
    int more[2];
    char text[8];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(pipe(more), 0);
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(splice(ends[0], NULL, more[1], NULL, 100, 0), 4);
    CHECK_EQUAL(read(more[0], text, sizeof text), 4);
    close_ends();

    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(splice(ends[0], NULL, more[1], NULL, 100, SPLICE_F_NONBLOCK), -1);
    CHECK_EQUAL(errno, EAGAIN);
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(tee(ends[0], more[1], 100, 0), 4);
    fcntl(more[1], F_SETFL, O_NONBLOCK);
    while (write(more[1], large, 4096) > 0)
        continue;
    fcntl(more[1], F_SETFL, 0);
    haft_io_spawn(read_what_fills, check_number(more[0]));
    CHECK_EQUAL(splice(ends[0], NULL, more[1], NULL, 100, 0), 4);
    close_ends();
    CHECK_EQUAL(close(more[0]), 0);
    CHECK_EQUAL(close(more[1]), 0);
    return NULL;
}
static void splice_and_tee_wait_for_bytes_and_for_room(void) {
    CHECK_RUNS(splice_pipes);
}

/* ---- Several messages in a call ---- */

BODY(send_three) {
    struct mmsghdr messages[3];
    struct iovec parts[] = {{large, 1}, {large, 2}, {large, 3}};
    for (int i = 0; i < 3; i++)
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(send(ends[1], large, 4, 0), 4);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(sendmmsg(ends[1], messages, 3, 0), 3);
    CHECK_EQUAL(messages[2].msg_len, 3);
    return NULL;
}
BODY(receive_several) {
    struct mmsghdr messages[4];
    static char room[4][8];
    struct iovec parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){room[i], sizeof room[i]};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
    }
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    CHECK_EQUAL(recvmmsg(ends[0], messages, 4, MSG_DONTWAIT, NULL), -1);
    CHECK_EQUAL(errno, EAGAIN);
    haft_io_task_t *sender = haft_io_async(send_three, NULL);
    CHECK_EQUAL(recvmmsg(ends[0], messages, 4, 0, NULL), 4);
    CHECK_EQUAL(messages[0].msg_len, 4);
    CHECK_EQUAL(messages[3].msg_len, 3);
    haft_io_join(sender, NULL);
    sender = haft_io_async(send_three, NULL);
    CHECK_EQUAL(recvmmsg(ends[0], messages, 4, MSG_WAITFORONE, NULL), 1);
    haft_io_join(sender, NULL);
    CHECK_EQUAL(recvmmsg(ends[0], messages, 4, 0, &(struct timespec){0, 0}), 3);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    CHECK_EQUAL(recvmmsg(ends[0], messages, 4, 0, NULL), -1);
    CHECK_EQUAL(errno, EAGAIN);
    close_ends();
    CHECK_EQUAL(recvmmsg(ends[0], messages, 4, 0, NULL), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(sendmmsg(ends[0], messages, 4, 0), -1);
    CHECK_EQUAL(errno, EBADF);
    return NULL;
}
static void several_messages_are_waited_for(void) {
    CHECK_RUNS(receive_several);
}

BODY(use_parts_of_a_file) {
    char text[8] = "";
    struct iovec parts[] = {{text, 2}, {text + 2, 3}};
    int file = open(folder, O_RDWR | O_TMPFILE, 0600);
    CHECK_EQUAL(write(file, "0123456789", 10), 10);
    CHECK_EQUAL(preadv(file, parts, 2, 4), 5);
    CHECK(strcmp(text, "45678") == 0);
    CHECK_EQUAL(pwritev(file, parts, 2, 0), 5);
    CHECK_EQUAL(preadv2(file, parts, 2, 1, 0), 5);
    CHECK(strcmp(text, "56785") == 0);
    CHECK_EQUAL(lseek(file, 0, SEEK_CUR), 10);
    CHECK_EQUAL(pwritev2(file, parts, 2, -1, 0), 5);
    CHECK_EQUAL(lseek(file, 0, SEEK_CUR), 15);
    CHECK_EQUAL(preadv(file, parts, 2, -1), -1);
    CHECK_EQUAL(errno, EINVAL);
    /* From the disk, as far as there is one. */
    CHECK_EQUAL(fcntl(file, F_SETFL, O_DSYNC), 0);
    CHECK_EQUAL(pwritev(file, parts, 2, 7), 5);
    CHECK_EQUAL(preadv2(file, parts, 2, 7, 0), 5);
    CHECK(strcmp(text, "56785") == 0);
    CHECK_EQUAL(close(file), 0);
    return NULL;
}
static void parts_are_read_and_written_at_a_place(void) {
    name_a_file();
    CHECK_RUNS(use_parts_of_a_file);
    CHECK_EQUAL(rmdir(folder), 0);
}

/* ---- Signals ---- */

BODY(send_signal) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    kill(getpid(), SIGUSR1);
    return NULL;
}
static volatile sig_atomic_t signals;
static void count_signal(int number) {
    (void)number;
    signals++;
}
BODY(wait_for_signals) {
    sigset_t one, before;
    int number = 0;
    siginfo_t information;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    haft_io_spawn(send_signal, NULL);
    CHECK_EQUAL(sigwait(&one, &number), 0);
    CHECK_EQUAL(number, SIGUSR1);
    haft_io_spawn(send_signal, NULL);
    CHECK_EQUAL(sigwaitinfo(&one, &information), SIGUSR1);
    CHECK_EQUAL(information.si_pid, getpid());
    raise(SIGUSR1);
    CHECK_EQUAL(sigtimedwait(&one, NULL, &(struct timespec){0, 0}), SIGUSR1);
    CHECK_EQUAL(sigtimedwait(&one, NULL, &(struct timespec){0, 1000}), -1);
    CHECK_EQUAL(errno, EAGAIN);
    signal(SIGUSR1, count_signal);
    haft_io_spawn(send_signal, NULL);
    CHECK_EQUAL(sigsuspend(&before), -1);
    CHECK_EQUAL(errno, EINTR);
    CHECK_EQUAL(signals, 1);
    signal(SIGUSR1, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return NULL;
}
static void a_signal_is_waited_for(void) {
    CHECK_RUNS(wait_for_signals);
}

/* ---- Children and commands ---- */

static pid_t start_child(void) {
    CHECK_EQUAL(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 1 ? 3 : 4);
    }
    return child;
}
BODY(wait_for_children) {
    int status;
    struct rusage usage;
    siginfo_t information;
    if (!check_follows_children())
        return NULL;
    pid_t child = start_child();
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(wait4(child, &status, 0, &usage), child);
    CHECK_EQUAL(WEXITSTATUS(status), 3);
    close_ends();

    child = start_child();
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(wait3(&status, 0, &usage), child);
    close_ends();

    child = start_child();
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT), 0);
    CHECK_EQUAL(information.si_pid, child);
    CHECK_EQUAL(information.si_status, 3);
    memset(&information, 0, sizeof information);
    CHECK_EQUAL(waitid(P_ALL, 0, &information, WEXITED), 0);
    CHECK_EQUAL(information.si_pid, child);
    close_ends();
    CHECK_EQUAL(waitid(P_ALL, 0, &information, WEXITED), -1);
    CHECK_EQUAL(errno, ECHILD);

    child = start_child();
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(waitid(P_ALL, 0, NULL, WEXITED), 0);
    close_ends();
    return NULL;
}
static void a_child_is_waited_for_in_every_way(void) {
    CHECK_RUNS(wait_for_children);
}

static char command[128];
BODY(feed_the_command) {
    int fifo = open(path, O_WRONLY);
    CHECK_EQUAL(write(fifo, "3\n", 2), 2);
    CHECK_EQUAL(close(fifo), 0);
    return NULL;
}
BODY(run_commands) {
    snprintf(command, sizeof command, "read number <%s; exit $number", path);
    haft_io_spawn(feed_the_command, NULL);
    int status = system(command);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 3);
    /* A signal is not blocked there. */
    status = system("kill -TERM $$; exit 5");
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), SIGTERM);
    CHECK(system(NULL) != 0);

    FILE *stream = popen(command, "w");
    CHECK(stream != NULL);
    haft_io_spawn(feed_the_command, NULL);
    CHECK_EQUAL(WEXITSTATUS(pclose(stream)), 3);
    return NULL;
}
static void commands_are_waited_for(void) {
    name_a_file();
    CHECK_EQUAL(mkfifo(path, 0600), 0);
    CHECK_RUNS(run_commands);
    remove_the_file();
}

/* ---- Threads ---- */

static void *read_in_a_thread(void *unused) {
    char byte;
    (void)unused;
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    return ends;
}
static void *join_cancelled(void *thread) {
    void *result;
    CHECK_EQUAL(pthread_join(*(pthread_t *)thread, &result), 0);
    CHECK(result == ends);
    CHECK_EQUAL(usleep(1), -1);
    CHECK_EQUAL(errno, ECANCELED);
    return NULL;
}
BODY(join_threads) {
    pthread_t thread;
    void *result;
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, read_in_a_thread, NULL), 0);
    haft_io_spawn(write_a_word, NULL);
    CHECK_EQUAL(pthread_join(thread, &result), 0);
    CHECK(result == ends);
    CHECK_EQUAL(pthread_join(pthread_self(), NULL), EDEADLK);
    close_ends();

    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, read_in_a_thread, NULL), 0);
    haft_io_spawn(write_a_word, NULL);
    haft_io_scope_options_t options = {.deadline = 1};
    CHECK_EQUAL(haft_io_scope_with(&options, join_cancelled, &thread, NULL), -ETIMEDOUT);
    close_ends();
    return NULL;
}
static void the_end_of_a_thread_is_waited_for_also_by_a_cancelled_task(void) {
    CHECK_RUNS(join_threads);
}

/* ---- Names ---- */

BODY(resolve) {
    struct hostent room, *found = NULL;
    char memory[4096];
    int error = 0;
    struct in_addr own = {htonl(INADDR_LOOPBACK)};
    const struct hostent *entry = gethostbyname2("127.0.0.1", AF_INET);
    CHECK(entry != NULL && entry->h_length == 4);
    CHECK_EQUAL(
        gethostbyname2_r("127.0.0.1", AF_INET, &room, memory, sizeof memory, &found, &error), 0);
    CHECK(found == &room);
    /* Whether the system has a name for it or not. */
    CHECK_EQUAL(
        gethostbyaddr_r(&own, sizeof own, AF_INET, &room, memory, sizeof memory, &found, &error),
        0);
    entry = gethostbyaddr(&own, sizeof own, AF_INET);
    CHECK((entry != NULL) == (found != NULL));
    errno = 0;
    CHECK(gethostbyaddr(&own, 3, AF_INET) == NULL);
    CHECK(errno != 0);
    return NULL;
}
static void *resolve_cancelled(void *unused) {
    struct hostent room, *found = &room;
    char memory[512];
    int error = 0;
    CHECK_EQUAL(usleep(1000), -1);
    CHECK(gethostbyname2("127.0.0.1", AF_INET) == NULL);
    CHECK_EQUAL(errno, ECANCELED);
    CHECK_EQUAL(h_errno, TRY_AGAIN);
    CHECK_EQUAL(gethostbyname_r("127.0.0.1", &room, memory, sizeof memory, &found, &error),
                ECANCELED);
    CHECK(found == NULL);
    CHECK_EQUAL(error, TRY_AGAIN);
    unsigned char answer[512];
    CHECK_EQUAL(res_query("localhost", ns_c_in, ns_t_a, answer, sizeof answer), -1);
    CHECK_EQUAL(errno, ECANCELED);
    return unused;
}
BODY(cancel_resolving) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 1};
    CHECK_EQUAL(haft_io_scope_with(&options, resolve_cancelled, NULL, NULL), -ETIMEDOUT);
    return NULL;
}
/* ---- Results that the C library keeps in memory of its own ---- */

enum { ASKING = 150 };

static bool is_host(const struct hostent *host, int number) {
    return host != NULL && host->h_length == 4 &&
           (unsigned char)host->h_addr_list[0][3] == number + 1;
}
static void *ask_for_own_host(void *argument) {
    int number = (int)(intptr_t)argument;
    char name[20];
    snprintf(name, sizeof name, "127.0.0.%d", number + 1);
    struct hostent *host = gethostbyname(name);
    CHECK(is_host(host, number));
    haft_io_yield();
    CHECK(is_host(host, number));
    const struct hostent *other = gethostbyname2(name, AF_INET);
    CHECK(is_host(other, number) && is_host(host, number));
    const struct passwd *user = getpwuid((uid_t)number % 2); /* if the machine knows it */
    haft_io_yield();
    CHECK(is_host(host, number) && is_host(other, number));
    CHECK(user == NULL || user->pw_uid == (uid_t)number % 2);
    CHECK(gethostbyname(name) == host); /* where the task's last result was */
    return NULL;
}
BODY(ask_for_hosts) {
    haft_io_call_t calls[ASKING];
    for (int i = 0; i < ASKING; i++)
        calls[i] = (haft_io_call_t){ask_for_own_host, (void *)(intptr_t)i, NULL};
    CHECK_EQUAL(haft_io_all(calls, ASKING), 0);
    return NULL;
}
/* A task inherits nothing of it that it would write to. */
static void *ask_for_another(void *host) {
    CHECK(is_host(host, 0));
    const struct hostent *own = gethostbyname("127.0.0.2");
    CHECK(is_host(own, 1) && own != host);
    CHECK(is_host(host, 0));
    return NULL;
}
BODY(ask_and_spawn) {
    struct hostent *host = gethostbyname("127.0.0.1");
    CHECK(is_host(host, 0));
    haft_io_spawn(ask_for_another, host);
    haft_io_sleep(5 * HAFT_IO_MILLISECOND);
    CHECK(is_host(host, 0));
    return NULL;
}
static void each_task_has_its_own_static_results(void) {
    CHECK_RUNS(ask_for_hosts);
    CHECK_RUNS(ask_and_spawn);
}

static void names_are_resolved_by_every_function(void) {
    CHECK_RUNS(resolve);
    CHECK_RUNS(cancel_resolving);
}

/* ---- Calls for which the thread waits ---- */

static int turns;
BODY(take_turns) {
    for (int i = 0; i < 3; i++, turns++)
        haft_io_yield();
    return NULL;
}
static void *write_in_a_moment(void *unused) {
    usleep(2000);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    return unused;
}
static void *drain_in_a_moment(void *unused) {
    usleep(2000);
    drain((void *)LARGE);
    return unused;
}
static void begin_thread(pthread_t *thread, void *(*function)(void *)) {
    CHECK_EQUAL(pthread_create(thread, NULL, function, NULL), 0);
}

static void *wait_without_tasks(void *argument) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t writer;
    char byte;
    CHECK_EQUAL(usleep(1000), 0);
    CHECK_EQUAL(sched_yield(), 0);
    begin_thread(&writer, write_in_a_moment);
    CHECK_EQUAL(read(ends[0], &byte, 1), 1);
    CHECK_EQUAL(pthread_join(writer, NULL), 0);
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return argument;
}
BODY(block_the_thread) {
    haft_io_spawn(take_turns, NULL);
    CHECK(haft_io_block_thread(wait_without_tasks, ends) == ends);
    CHECK_EQUAL(turns, 0);
    return NULL;
}
static void in_a_block_of_the_thread_calls_are_the_systems(void) {
    turns = 0;
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_RUNS(block_the_thread);
    CHECK_EQUAL(turns, 3);
    close_ends();
}

/* Writes more than there is room for. */
BODY(write_much) {
    pthread_t reader;
    begin_thread(&reader, drain_in_a_moment);
    haft_io_spawn(take_turns, NULL);
    CHECK_EQUAL(write(ends[1], large, LARGE), LARGE);
    CHECK_EQUAL(turns, 0);
    CHECK_EQUAL(close(ends[1]), 0);
    CHECK_EQUAL(pthread_join(reader, NULL), 0);
    return NULL;
}
static void a_write_that_is_to_block_does(void) {
    turns = 0;
    CHECK_EQUAL(pipe(ends), 0);
    haft_posix_block_writes(ends[1]);
    haft_posix_block_writes(1000); /* of no effect */
    CHECK_RUNS(write_much);
    CHECK_EQUAL(close(ends[0]), 0);
}

/* Code that resolves the addresses of a backtrace reads the maps so, under a lock. (An emulator
   makes the maps itself.) */
BODY(read_status) {
    char text[512];
    haft_io_spawn(take_turns, NULL);
    int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    while (read(status, text, sizeof text) > 0)
        continue;
    CHECK_EQUAL(close(status), 0);
    CHECK_EQUAL(turns, 0);
    return NULL;
}
static void a_file_of_the_kernel_is_read_at_once(void) {
    turns = 0;
    CHECK_RUNS(read_status);
}

int main(void) {
    check_backend();
    RUN(opening_a_fifo_waits_for_the_other_end);
    RUN(a_cancel_ends_the_opening_of_a_fifo);
    RUN(files_are_opened_as_ever);
    RUN(a_task_waits_for_a_lock_that_another_has);
    RUN(a_task_waits_for_a_record_lock_of_another_process);
    RUN(a_file_is_sent_in_full);
    RUN(splice_and_tee_wait_for_bytes_and_for_room);
    RUN(several_messages_are_waited_for);
    RUN(parts_are_read_and_written_at_a_place);
    RUN(a_signal_is_waited_for);
    RUN(a_child_is_waited_for_in_every_way);
    RUN(commands_are_waited_for);
    RUN(the_end_of_a_thread_is_waited_for_also_by_a_cancelled_task);
    RUN(names_are_resolved_by_every_function);
    RUN(each_task_has_its_own_static_results);
    RUN(in_a_block_of_the_thread_calls_are_the_systems);
    RUN(a_write_that_is_to_block_does);
    RUN(a_file_of_the_kernel_is_read_at_once);
    return check_end();
}
