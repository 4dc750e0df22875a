/* SPDX-License-Identifier: MIT */
/*
 * Streams of numbered bytes, whose operations are cancelled and meet deadlines at random moments:
 * the answer of each is exactly how many bytes it has moved, so that nothing is lost, moved twice,
 * or out of order.
 *
 * A test that fails prints its seed; HAFT_IO_SEED=... begins with that one. The moments are the
 * system's, so the same seed need not fail again. HAFT_BYTES_SECONDS=60 goes on for a minute.
 */
#define _GNU_SOURCE
#include "check_io.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 20000 };

typedef enum { PAIR, BLOCKING_PAIR, PIPE, BLOCKING_PIPE, TCP, SPLICED, KINDS } kind_t;
static const char *const names[] = {"socket pair", "blocking socket pair",
                                    "pipe",        "blocking pipe",
                                    "TCP",         "pipe that is spliced to a socket pair"};

/* The work of one task on one end. */
typedef struct side {
    int descriptor, other; /* `other`: where a spliced stream goes */
    bool is_socket;
    uint64_t drawn;
    size_t moved;
    ssize_t answer;
    bool at_end;
    ssize_t (*operate)(struct side *side);
    unsigned turns; /* until the operation is cancelled; NO_CANCEL: it is not */
    atomic_bool is_cut, was_cut_before_cancel, is_cancelled;
} side_t;

enum { NO_CANCEL = 6 };

static kind_t kind;
static int threads;
static uint64_t seed;
static size_t total;
static atomic_size_t cancelled;

static unsigned draw(side_t *side, unsigned bound) {
    side->drawn = side->drawn * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(side->drawn >> 33) % bound;
}
static unsigned char byte_at(size_t position) {
    return (unsigned char)(position * 0x9e3779b97f4a7c15u >> 56);
}
static size_t draw_size(side_t *side) {
    return 1 + draw(side, draw(side, 3) == 0 ? LARGEST : 100);
}

/* ---- One operation ---- */

static ssize_t write_some(side_t *side) {
    unsigned char bytes[LARGEST];
    size_t size = draw_size(side), first = draw(side, (unsigned)size);
    if (size > total - side->moved)
        size = total - side->moved;
    if (first > size)
        first = size;
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(side->moved + i);
    struct iovec parts[2] = {{bytes, first}, {bytes + first, size - first}};
    ssize_t answer;
    switch (draw(side, side->is_socket ? 3 : 2)) {
    case 0:
        answer = haft_io_write(side->descriptor, bytes, size);
        break;
    case 1:
        answer = haft_io_writev(side->descriptor, parts, 2);
        break;
    default:
        answer = haft_io_send(side->descriptor, bytes, size, MSG_NOSIGNAL);
    }
    memset(bytes, 0, sizeof bytes); /* what the kernel still took from there would be wrong */
    side->at_end = answer >= 0 && side->moved + (size_t)answer == total;
    return answer;
}

static void check_bytes(const side_t *side, const unsigned char *bytes, ssize_t count) {
    for (ssize_t i = 0; i < count; i++)
        if (bytes[i] != byte_at(side->moved + (size_t)i)) {
            fprintf(stderr, "byte %zu of %zu\n", side->moved + (size_t)i, total);
            CHECK(false);
            break;
        }
}

static ssize_t read_some(side_t *side) {
    unsigned char bytes[LARGEST + 1];
    HAFT_IO_SCOPED_LENT const void *lent = NULL;
    size_t size = draw_size(side), first = draw(side, (unsigned)size);
    struct iovec parts[2] = {{bytes, first}, {bytes + first, size - first}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t answer;
    switch (draw(side, side->is_socket ? 7 : 4)) {
    case 0:
        answer = haft_io_read(side->descriptor, bytes, size);
        break;
    case 1:
        answer = haft_io_readv(side->descriptor, parts, 2);
        break;
    case 2:
    case 3:
        answer = haft_io_read_lent(side->descriptor, &lent);
        break;
    case 4:
        answer = haft_io_receive_message(side->descriptor, &message, 0);
        break;
    case 5:
        answer = haft_io_receive(side->descriptor, bytes, size, MSG_PEEK);
        check_bytes(side, bytes, answer);
        if (answer < 0)
            break;
        /* fall through */
    default:
        answer = haft_io_receive(side->descriptor, bytes, size, 0);
    }
    check_bytes(side, lent != NULL ? lent : bytes, answer);
    side->at_end = answer == 0;
    return answer;
}

static ssize_t splice_some(side_t *side) {
    ssize_t answer = haft_io_splice(side->descriptor, side->other, draw_size(side));
    side->at_end = answer == 0;
    return answer;
}

/* ---- Operations that are cut short ---- */

static void *cancel_soon(void *argument) {
    side_t *side = argument;
    for (unsigned i = 0; i < side->turns; i++)
        haft_io_yield();
    side->was_cut_before_cancel = side->is_cut;
    haft_io_scope_cancel(haft_io_this_scope());
    side->is_cancelled = true;
    return NULL;
}
static void *operate(void *argument) {
    side_t *side = argument;
    haft_io_return_cancels(true);
    if (side->turns != NO_CANCEL)
        CHECK_EQUAL(haft_io_spawn(cancel_soon, side), 0);
    if (draw(side, 4) == 0 && haft_io_yield() < 0)
        side->is_cut = true;
    side->answer = side->operate(side);
    if (side->answer == -ECANCELED)
        side->is_cut = true;
    return NULL;
}
/* Whether the scope of an operation may end with this code after what has happened in it. */
static bool is_due(const side_t *side, int code) {
    if (side->turns == NO_CANCEL)
        return code == (side->is_cut ? -ETIMEDOUT : 0);
    /* The deadline has cut short the task that would have cancelled; or the operation, before
       that. */
    if (!side->is_cancelled || side->was_cut_before_cancel)
        return code == -ETIMEDOUT;
    /* Another thread may have seen the deadline while he was about to cancel. */
    return code == -ECANCELED || (code == -ETIMEDOUT && side->is_cut && threads > 1);
}
static void *operate_to_the_end(void *argument) {
    side_t *side = argument;
    while (!side->at_end) {
        haft_io_scope_options_t limited = {.deadline = haft_io_now() +
                                                       draw(side, 4) * 40 * HAFT_IO_MICROSECOND};
        side->answer = -1;
        side->turns = draw(side, 2) == 0 ? draw(side, NO_CANCEL) : NO_CANCEL;
        side->is_cut = side->was_cut_before_cancel = side->is_cancelled = false;
        int code = haft_io_scope_with(&limited, operate, side, NULL);
        CHECK(is_due(side, code));
        if (side->answer == -ECANCELED)
            atomic_fetch_add(&cancelled, 1);
        else if (side->answer >= 0)
            side->moved += (size_t)side->answer;
        else
            CHECK_EQUAL(side->answer, 0);
        if (check_failures != 0)
            break;
    }
    /* The next task sees the end of the stream. */
    if (side->operate != read_some)
        CHECK_EQUAL(haft_io_close(side->operate == splice_some ? side->other : side->descriptor),
                    0);
    return NULL;
}

/* ---- Streams ---- */

static void connect_ends(int ends[2]) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 1);
    ends[1] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    ends[0] = haft_io_accept(listener);
    haft_io_close(listener);
}
/* Reads come from [0]. */
static void open_ends(int ends[2]) {
    switch (kind) {
    case PIPE:
    case SPLICED:
        CHECK_EQUAL(haft_io_pipe(ends), 0);
        break;
    case BLOCKING_PIPE:
        CHECK_EQUAL(pipe(ends), 0);
        break;
    case TCP:
        connect_ends(ends);
        break;
    default:
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | (kind == PAIR ? SOCK_NONBLOCK : 0), 0, ends),
                    0);
    }
    int little = 4096; /* so that writes wait */
    if (kind == PAIR || kind == BLOCKING_PAIR || kind == TCP)
        setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    else
        fcntl(ends[1], F_SETPIPE_SZ, little);
}

BODY(move_a_stream) {
    int ends[2], further[2] = {-1, -1};
    bool are_sockets = kind == PAIR || kind == BLOCKING_PAIR || kind == TCP;
    open_ends(ends);
    if (kind == SPLICED)
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, further), 0);
    side_t writer = {
        .descriptor = ends[1], .is_socket = are_sockets, .drawn = seed, .operate = write_some};
    side_t between = {
        .descriptor = ends[0], .other = further[1], .drawn = seed + 1, .operate = splice_some};
    side_t reader = {.descriptor = kind == SPLICED ? further[0] : ends[0],
                     .is_socket = are_sockets || kind == SPLICED,
                     .drawn = seed + 2,
                     .operate = read_some};
    haft_io_call_t calls[3] = {{operate_to_the_end, &writer, NULL},
                               {operate_to_the_end, &reader, NULL},
                               {operate_to_the_end, &between, NULL}};
    CHECK_EQUAL(haft_io_all(calls, kind == SPLICED ? 3 : 2), 0);
    CHECK_EQUAL(reader.moved, total);
    CHECK_EQUAL(writer.moved, total);
    haft_io_close(ends[0]);
    if (kind == SPLICED)
        haft_io_close(further[0]);
    return NULL;
}

static void every_byte_arrives_once_and_is_answered_for(void) {
    const char *given = getenv("HAFT_IO_SEED");
    double seconds = check_campaign("HAFT_BYTES_SECONDS", 0.5, 1);
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    total = (size_t)check_times(300000);
    double end = (double)time(NULL) + seconds;
    do {
        for (int i = 0; i < 3 * KINDS && check_failures == 0; i++, seed++) {
            kind = (kind_t)(i % KINDS);
            threads = 1 + i / KINDS;
            haft_io_run_options_t options = {.threads = threads};
            CHECK_EQUAL(haft_io_run_with(&options, move_a_stream, NULL), 0);
            if (check_failures != 0)
                fprintf(stderr, "a %s on %d threads; the seed was %llu\n", names[kind], threads,
                        (unsigned long long)seed);
        }
    } while (check_failures == 0 && (double)time(NULL) < end);
    CHECK(atomic_load(&cancelled) > 0);
}

int main(void) {
    check_backend();
    RUN(every_byte_arrives_once_and_is_answered_for);
    return check_end();
}
