/* SPDX-License-Identifier: MIT */
/*
 * A peer that goes away sends this process no signal. With SIGPIPE at its default, which would end
 * the program, each operation that promises to send none writes to connections that another thread
 * resets meanwhile. The system raises the signal also where it returns the size of a part that went
 * before: two calls are told to, each time.
 */
#define _GNU_SOURCE
#include "check_io.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum { MUCH = 8 << 20, PART = 256 << 10 };

/* ---- The system's calls ---- */

/* The kernel does so when the peer resets between two parts. */
static bool breaks_after_part;
static size_t part_of(size_t size) {
    return breaks_after_part && size > 1 ? size / 2 : size;
}
static ssize_t after_part(ssize_t done) {
    if (breaks_after_part && done > 0)
        raise(SIGPIPE);
    return done;
}
ssize_t __real_sendfile(int to, int from, off_t *offset, size_t size);
ssize_t __wrap_sendfile(int to, int from, off_t *offset, size_t size);
ssize_t __wrap_sendfile(int to, int from, off_t *offset, size_t size) {
    return after_part(__real_sendfile(to, from, offset, part_of(size)));
}
ssize_t __real_splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
                      unsigned flags);
ssize_t __wrap_splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
                      unsigned flags);
ssize_t __wrap_splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
                      unsigned flags) {
    return after_part(__real_splice(from, from_offset, to, to_offset, part_of(size), flags));
}

/* ---- The operations ---- */

static char much[MUCH];
static int file, through[2];

static ssize_t by_write(int to) {
    return haft_io_write(to, much, MUCH);
}
static ssize_t by_write_all(int to) {
    return haft_io_write_all(to, much, MUCH);
}
static ssize_t by_writev(int to) {
    struct iovec parts[] = {{much, 100}, {much, MUCH - 100}};
    return haft_io_writev(to, parts, 2);
}
static ssize_t by_writev_of_nothing(int to) {
    struct iovec parts[] = {{much, 0}, {much, 0}};
    ssize_t sent = haft_io_writev(to, parts, 2);
    return sent < 0 ? sent : haft_io_write(to, much, PART);
}
static ssize_t by_send(int to) {
    return haft_io_send(to, much, MUCH, 0);
}
static ssize_t by_send_of_little(int to) {
    ssize_t sent = haft_io_send(to, much, 1, MSG_MORE);
    return sent < 0 ? sent : haft_io_send(to, much, 1, MSG_DONTWAIT);
}
static ssize_t without_copies(int to) {
    setsockopt(to, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int));
    ssize_t sent = haft_io_send(to, much, PART, MSG_ZEROCOPY);
    return sent != -ENOBUFS ? sent : haft_io_send(to, much, PART, 0);
}
static ssize_t by_message(int to) {
    struct iovec parts[] = {{much, 100}, {much, MUCH - 100}};
    return haft_io_send_message(to, &(struct msghdr){.msg_iov = parts, .msg_iovlen = 2}, 0);
}
static ssize_t by_writer(int to) {
    char memory[100];
    haft_io_writer_t out = {.descriptor = to, .memory = memory, .size = sizeof memory};
    int code = haft_io_writer_print(&out, "%d items\n", 5);
    if (code == 0)
        code = haft_io_writer_write(&out, much, PART);
    return code == 0 ? haft_io_writer_flush(&out) : code;
}
static ssize_t by_send_file(int to) {
    int64_t offset = 0;
    return haft_io_send_file(to, file, &offset, MUCH);
}
static ssize_t by_splice(int to) {
    char unused[4096];
    ssize_t size = haft_io_splice(file, through[1], PART);
    ssize_t done = size < 0 ? size : haft_io_splice(through[0], to, (size_t)size);
    for (ssize_t left = size - (done > 0 ? done : 0); left > 0;)
        left -= haft_io_read(through[0], unused, sizeof unused);
    return done;
}

static const struct {
    const char *name;
    ssize_t (*once)(int to); /* negative: it is broken */
    bool counts;             /* parts, of which another goes after one that went; or else all */
    bool takes_pipes;        /* without a signal; a write to a pipe sends it */
} operations[] = {
    {"write", by_write, true, false},
    {"write_all", by_write_all, false, false},
    {"writev", by_writev, true, false},
    {"writev of nothing", by_writev_of_nothing, true, false},
    {"send", by_send, true, false},
    {"send of little", by_send_of_little, true, false},
    {"send without copies", without_copies, true, false},
    {"send_message", by_message, true, false},
    {"writer", by_writer, false, false},
    {"send_file", by_send_file, true, true},
    {"splice", by_splice, true, true},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void make_file(void) {
    file = check_file_with("");
    CHECK_EQUAL(write(file, much, MUCH), MUCH);
    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
}
/* For splice, which moves from where the file is. */
static void from_its_begin(void) {
    lseek(file, 0, SEEK_SET);
}

/* ---- Peers that reset ---- */

typedef struct attack {
    size_t operation;
    bool is_pipe, blocks;
} attack_t;

static int listener, made_pipes[2];
static struct sockaddr_in place = {.sin_family = AF_INET};
static int resets;

static void listen_here(void) {
    socklen_t size = sizeof place;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(bind(listener, (const struct sockaddr *)&place, sizeof place), 0);
    CHECK_EQUAL(listen(listener, 16), 0);
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&place, &size), 0);
}

/* The peer's end. */
static int connect_to_writer(bool is_pipe) {
    int ends[2];
    if (is_pipe) {
        CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
        CHECK_EQUAL(write(made_pipes[1], &ends[1], sizeof ends[1]), sizeof ends[1]);
        return ends[0];
    }
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(ends[0], (const struct sockaddr *)&place, sizeof place), 0);
    return ends[0];
}

static int accept_from_peer(const attack_t *attack) {
    int end;
    if (attack->is_pipe)
        CHECK_EQUAL(haft_io_read(made_pipes[0], &end, sizeof end), sizeof end);
    else
        end = haft_io_accept(listener);
    CHECK(end >= 0);
    int flags = fcntl(end, F_GETFL) & ~O_NONBLOCK;
    fcntl(end, F_SETFL, attack->blocks ? flags : flags | O_NONBLOCK);
    return end;
}

/* Reads some of what comes while more does, and goes: over TCP by a reset, because some was not
   read. */
static void *reset_connections(void *argument) {
    static char heard[PART];
    const attack_t *attack = argument;
    unsigned seed = 1;
    for (int i = 0; i < resets; i++) {
        int connection = connect_to_writer(attack->is_pipe);
        if (i % 2 != 0 && !attack->is_pipe)
            shutdown(connection, SHUT_WR);
        for (int parts = rand_r(&seed) % 4; parts > 0; parts--)
            if (read(connection, heard, (size_t)rand_r(&seed) % PART + 1) <= 0)
                break;
        struct linger at_once = {.l_onoff = 1};
        if (i % 4 < 2 && !attack->is_pipe)
            setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(connection);
    }
    return NULL;
}

static void *write_until_they_reset(void *argument) {
    const attack_t *attack = argument;
    const char *name = operations[attack->operation].name;
    for (int i = 0; i < resets; i++) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = accept_from_peer(attack);
        ssize_t done;
        do {
            from_its_begin();
            done = operations[attack->operation].once(connection);
        } while (done > 0 || (done == 0 && !operations[attack->operation].counts));
        if (done != -EPIPE && done != -ECONNRESET)
            fprintf(stderr, "%s: %s\n", name, haft_io_error_text((int)done));
        CHECK(done == -EPIPE || done == -ECONNRESET);
    }
    return NULL;
}

static void attack(size_t operation, bool is_pipe, bool blocks) {
    pthread_t peers;
    attack_t attack = {operation, is_pipe, blocks};
    CHECK_EQUAL(pthread_create(&peers, NULL, reset_connections, &attack), 0);
    CHECK_EQUAL(haft_io_run(write_until_they_reset, &attack), 0);
    pthread_join(peers, NULL);
}

static void a_reset_meanwhile_sends_no_signal(void) {
    resets = (int)check_campaign("HAFT_RESETS", check_times(20), check_times(300));
    for (size_t i = 0; i < OPERATIONS; i++)
        for (int how = 0; how < (operations[i].takes_pipes ? 4 : 2); how++)
            attack(i, how >= 2, how % 2 != 0);
}

/* ---- A part, and the signal ---- */

static bool is_pending(void) {
    sigset_t pending;
    CHECK_EQUAL(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}

static void check_part(int to) {
    int64_t offset = 0;
    from_its_begin();
    CHECK_EQUAL(haft_io_send_file(to, file, &offset, 100), 50);
    CHECK_EQUAL(haft_io_splice(file, through[1], 100), 50);
    CHECK_EQUAL(haft_io_splice(through[0], to, 50), 25);
    CHECK_EQUAL(haft_io_splice(through[0], to, 25), 12);
}

BODY(move_parts) {
    sigset_t broken, before;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    for (int blocks = 0; blocks < 2; blocks++) {
        int ends[2];
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | (blocks ? 0 : SOCK_NONBLOCK), 0, ends), 0);
        check_part(ends[0]);
        pthread_sigmask(SIG_BLOCK, &broken, &before);
        check_part(ends[0]);
        CHECK(!is_pending());
        raise(SIGPIPE); /* which is the program's */
        check_part(ends[0]);
        CHECK(is_pending());
        CHECK_EQUAL(sigtimedwait(&broken, NULL, &(struct timespec){0}), SIGPIPE);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        haft_io_close(ends[0]);
        haft_io_close(ends[1]);
    }
    return NULL;
}

static void a_part_before_a_reset_sends_no_signal(void) {
    breaks_after_part = true;
    move_parts(NULL);
    CHECK_RUNS(move_parts);
    breaks_after_part = false;
}

int main(void) {
    check_backend();
    signal(SIGPIPE, SIG_DFL);
    CHECK_EQUAL(pipe2(made_pipes, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(through, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK(fcntl(through[1], F_SETPIPE_SZ, PART) > 0);
    make_file();
    listen_here();
    RUN(a_part_before_a_reset_sends_no_signal);
    RUN(a_reset_meanwhile_sends_no_signal);
    return check_end();
}
