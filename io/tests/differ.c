/* SPDX-License-Identifier: MIT */
/*
 * Random operations of haft/io.h, and what they answer on each back end, on one thread and on two,
 * without a scheduler, and in a simulation: compared with what the system's own calls answer in an
 * ordinary thread.
 *
 * A plan is a pair of descriptors of some kind and a list of steps, drawn from a seed. First it is
 * recorded: each step is done by a thread of its own, with the system's call. The thread ends, or
 * is seen to sleep in the call: then the operation waits, and a later step ends it, or a cancel at
 * the end of the plan. Then the plan is replayed elsewhere. An operation that waited must wait
 * there, too, as a task; one that ended must end at the same step, with the same result, bytes,
 * addresses and events. A step that could not be compared is passed over when it is recorded: two
 * readers of a stream, or a write of which only a part would fit.
 *
 *   recorded      | replayed on the back ends, in a simulation     | without a scheduler
 *   a thread      | a task in a scope                              | a thread
 *   sleeps        | the task has not ended                         | sleeps
 *   a signal      | a cancel of the scope; or haft_io_close        | (such plans are left out)
 *
 * A difference counts when three recordings in a row have it. The plan is made smaller, and printed
 * with its seed. HAFT_DIFFER_PLANS is how many, HAFT_IO_SEED the first seed, HAFT_DIFFER_KIND one
 * kind of descriptors.
 */
#define _GNU_SOURCE
#include "differ_calls.h"
#include "terminals.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>

/* ---- Plans ---- */

enum kind {
    UNIX_STREAM,
    TCP,
    UNIX_DATAGRAMS,
    UDP,
    SEQPACKET,
    PIPE,
    TERMINAL,
    EVENT,
    TIMER,
    UNIX_LISTENER,
    TCP_LISTENER,
    FILES,
    KINDS
};
static const char *const kind_names[] = {"unix stream", "tcp",           "unix datagrams", "udp",
                                         "seqpacket",   "pipe",          "terminal",       "event",
                                         "timer",       "unix listener", "tcp listener",   "files"};

enum action {
    /* Operations, which may wait. */
    READ,
    READ_PARTS,
    READ_LENT,
    RECEIVE,
    RECEIVE_FROM,
    RECEIVE_MESSAGE,
    WRITE,
    WRITE_ALL,
    WRITE_PARTS,
    SEND,
    SEND_TO,
    SEND_MESSAGE,
    SEND_FILE,
    WAIT_FOR,
    ACCEPT,
    CONNECT,
    READ_AT,
    WRITE_AT,
    SYNC,
    OPEN,
    LIST,
    MAKE_DIRECTORY,
    REMOVE,
    RENAME,
    STATUS,
    /* Events. */
    LOOK,
    SHUT,
    END_OUTPUT,
    CLOSE,
    RESET,
    FILL,
    DRAIN,
    CANCEL,
    ARM,
    ACTIONS
};
/* clang-format off */
static const char *const action_names[] = {
    "read", "readv", "read_lent", "receive", "receive_from", "receive_message", "write", "write_all",
    "writev", "send", "send_to", "send_message", "send_file", "wait_ready", "accept", "connect",
    "pread", "pwrite", "fsync", "open", "list_directory", "mkdir", "remove", "rename", "stat",
    "look", "shutdown", "end_output", "close", "reset", "fill", "drain", "cancel", "arm"};
/* clang-format on */

#define SET(action) (UINT64_C(1) << (action))
static const uint64_t reads = SET(READ) | SET(READ_PARTS) | SET(READ_LENT) | SET(RECEIVE) |
                              SET(RECEIVE_FROM) | SET(RECEIVE_MESSAGE) | SET(ACCEPT) | SET(DRAIN);
static const uint64_t writes = SET(WRITE) | SET(WRITE_ALL) | SET(WRITE_PARTS) | SET(SEND) |
                               SET(SEND_TO) | SET(SEND_MESSAGE) | SET(SEND_FILE) | SET(FILL) |
                               SET(WRITE_AT);
static const uint64_t with_flags = SET(RECEIVE) | SET(RECEIVE_FROM) | SET(RECEIVE_MESSAGE) |
                                   SET(SEND) | SET(SEND_TO) | SET(SEND_MESSAGE);
static const uint64_t of_all = SET(READ) | SET(READ_PARTS) | SET(READ_LENT) | SET(WRITE) |
                               SET(WRITE_ALL) | SET(WRITE_PARTS) | SET(WAIT_FOR) | SET(LOOK) |
                               SET(CLOSE) | SET(CANCEL);
static const uint64_t of_sockets = SET(RECEIVE) | SET(RECEIVE_FROM) | SET(RECEIVE_MESSAGE) |
                                   SET(SEND) | SET(SEND_TO) | SET(SEND_MESSAGE) | SET(SHUT) |
                                   SET(END_OUTPUT);
static const uint64_t of_listeners =
    SET(ACCEPT) | SET(CONNECT) | SET(LOOK) | SET(CLOSE) | SET(CANCEL) | SET(WAIT_FOR) | SET(SHUT);
static const uint64_t of_files = SET(OPEN) | SET(LIST) | SET(MAKE_DIRECTORY) | SET(REMOVE) |
                                 SET(RENAME) | SET(STATUS) | SET(READ_AT) | SET(WRITE_AT) |
                                 SET(SYNC);
static const uint64_t rare = SET(CLOSE) | SET(SHUT) | SET(END_OUTPUT) | SET(RESET);

static uint64_t actions_of(enum kind kind) {
    switch (kind) {
    case UNIX_STREAM:
    case UNIX_DATAGRAMS:
    case SEQPACKET:
        return of_all | of_sockets | SET(FILL) | SET(DRAIN) | SET(SEND_FILE);
    case TCP:
        return of_all | of_sockets | SET(RESET) | SET(SEND_FILE);
    case UDP:
        return of_all | of_sockets;
    case PIPE:
        return of_all | SET(FILL) | SET(DRAIN) | SET(SEND_FILE);
    case EVENT:
        return of_all | SET(FILL) | SET(DRAIN);
    case TERMINAL:
        return of_all;
    case TIMER:
        return of_all | SET(ARM);
    case UNIX_LISTENER:
    case TCP_LISTENER:
        return of_listeners;
    default:
        return of_files | (of_all & ~SET(CANCEL));
    }
}

enum { STEPS = 20, ROOM = 8192, NOBODY = 2 };
static const int bad_number = 1000000;

typedef struct answer {
    int64_t code, extra; /* extra: flags of a message, whose address it is, an offset */
    uint64_t bytes;      /* a hash */
} answer_t;

typedef struct step {
    enum action action;
    int side; /* NOBODY: of no descriptor */
    int size, flags, events;
    bool null;
    int variant;
    int path, other_path;
    int64_t offset;
    /* The record. */
    bool skipped;
    int ends_at; /* the step */
    answer_t answer;
} step_t;

typedef struct plan {
    uint64_t seed;
    enum kind kind;
    bool blocking[2];
    bool lends; /* of TCP: it is read in parts that the kernel chooses */
    int count;
    step_t steps[STEPS];
    /* The record. */
    bool simulable, interrupts;
} plan_t;

static uint64_t drawn;
static unsigned draw(unsigned bound) {
    drawn += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = drawn;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)((z ^ (z >> 31)) % bound);
}

static const char *const paths[] = {"a",  "b",  "d",   "e",  "d/a", "d/e",  "d/e/a",
                                    "a/", "d/", "a/b", ".",  "./.", "d/.",  "d/..",
                                    "..", "/",  "",    NULL, "./a", "d//a", "none/a"};
enum { PATHS = sizeof paths / sizeof paths[0] };

static int draw_path(void) {
    return (int)(draw(2) == 0 ? draw(7) : draw(PATHS));
}

static int draw_flags(bool receives) {
    static const int of_receive[] = {MSG_PEEK, MSG_WAITALL, MSG_DONTWAIT, MSG_TRUNC, MSG_OOB};
    static const int of_send[] = {MSG_MORE, MSG_DONTWAIT, MSG_OOB, MSG_NOSIGNAL, MSG_EOR};
    int flags = 0;
    for (unsigned count = draw(3); count != 0; count--)
        flags |= receives ? of_receive[draw(10) == 0 ? 4 : draw(4)]
                          : of_send[draw(10) == 0 ? 2 + draw(3) : draw(2)];
    return flags;
}

static int draw_open_flags(void) {
    int flags = (const int[]){O_RDONLY, O_WRONLY, O_RDWR, O_RDWR}[draw(4)];
    static const int others[] = {O_CREAT, O_CREAT, O_CREAT, O_EXCL, O_TRUNC, O_APPEND};
    for (unsigned count = draw(4); count != 0; count--)
        flags |= others[draw(6)];
    /* With O_CREAT kernels differ. */
    return (flags & O_CREAT) == 0 && draw(5) == 0 ? flags | O_DIRECTORY : flags;
}

static step_t draw_step(enum kind kind) {
    static const int sizes[] = {0, 1, 2, 5, 7, 8, 9, 64, 1000, 4096, 5000, 8000};
    static const short events[] = {POLLIN,           POLLOUT, POLLPRI,           POLLRDHUP,
                                   POLLIN | POLLOUT, 0,       POLLIN | POLLRDHUP};
    uint64_t set = draw(20) == 0 ? of_all | of_sockets | of_listeners | SET(READ_AT) |
                                       SET(WRITE_AT) | SET(SYNC) | SET(SEND_FILE)
                                 : actions_of(kind);
    step_t step = {.action = ACTIONS};
    do
        step.action = draw(ACTIONS);
    while ((set & SET(step.action)) == 0 || ((rare & SET(step.action)) != 0 && draw(4) != 0));
    step.side = draw(40) == 0 ? NOBODY : (int)draw(2);
    step.size = sizes[draw(2) == 0 ? draw(8) : draw(12)];
    step.variant = (int)draw(8);
    step.null = check_bare() && draw(30) == 0;
    step.events = events[draw(7)];
    step.path = draw_path();
    step.other_path = draw_path();
    step.offset = (const int[]){0, 0, 1, 100, 5000, -1}[draw(6)];
    if ((with_flags & SET(step.action)) != 0)
        step.flags = draw_flags((reads & SET(step.action)) != 0);
    else if (step.action == OPEN)
        step.flags = draw_open_flags();
    else if (step.action == SHUT)
        step.flags = (int)draw(3);
    return step;
}

static plan_t draw_plan(uint64_t seed) {
    const char *only = getenv("HAFT_DIFFER_KIND");
    drawn = seed * UINT64_C(0xd1342543de82ef95);
    plan_t plan = {.seed = seed, .kind = draw(KINDS), .count = (int)(4 + draw(STEPS - 3))};
    for (int i = 0; only != NULL && i < KINDS; i++)
        if (strcmp(kind_names[i], only) == 0)
            plan.kind = (enum kind)i;
    if (only == NULL &&
        plan.kind == TERMINAL) /* whose bytes a thread of the kernel brings, at some time */
        plan.kind = PIPE;
    plan.blocking[0] = draw(2) == 0;
    plan.blocking[1] = draw(2) == 0;
    plan.lends = draw(2) == 0;
    for (int i = 0; i < plan.count; i++)
        plan.steps[i] = draw_step(plan.kind);
    return plan;
}

/* ---- What a plan is about ---- */

enum where { RECORDED, BY_THREADS, BY_TASKS, SIMULATED };

typedef struct stage {
    const plan_t *plan;
    enum where where;
    const calls_t *calls;
    int sides[2], ports[2], file;
    int modes[2];
    int clients[STEPS], client_count;
    struct sockaddr_storage address; /* of the listener */
    socklen_t address_size;
    char folder[32];
} stage_t;

static struct sockaddr_in loopback(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int port_of(int socket) {
    int port = haft_io_port(socket);
    CHECK(port > 0);
    return port;
}

static void make_udp(stage_t *stage) {
    struct sockaddr_in address = loopback(0);
    for (int i = 0; i < 2; i++) {
        stage->sides[i] = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
        CHECK_EQUAL(haft_io_bind(stage->sides[i], (void *)&address, sizeof address), 0);
        stage->ports[i] = port_of(stage->sides[i]);
    }
    for (int i = 0; i < 2; i++) {
        address = loopback(stage->ports[1 - i]);
        CHECK_EQUAL(haft_io_connect(stage->sides[i], (void *)&address, sizeof address), 0);
    }
}

static void make_tcp(stage_t *stage) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0), yes = 1;
    stage->sides[0] = haft_io_connect_tcp("127.0.0.1", (uint16_t)port_of(listener));
    stage->sides[1] = haft_io_accept(listener);
    for (int i = 0; i < 2 && stage->where != SIMULATED; i++)
        setsockopt(stage->sides[i], IPPROTO_TCP, 1 /* TCP_NODELAY */, &yes, sizeof yes);
    CHECK_EQUAL(haft_io_close(listener), 0);
}

static void make_listener(stage_t *stage, bool is_local) {
    static int count;
    enum { BACKLOG = 10 };
    if (is_local) {
        struct sockaddr_un local = {.sun_family = AF_UNIX};
        snprintf(local.sun_path, sizeof local.sun_path, "/tmp/haft-differ-%d-%d", (int)getpid(),
                 count++);
        stage->sides[0] = haft_io_listen_unix(local.sun_path, BACKLOG);
        memcpy(&stage->address, &local, stage->address_size = sizeof local);
        unlink(local.sun_path);
        if (stage->where != SIMULATED) /* the name has to stay */
            stage->sides[0] =
                (haft_io_close(stage->sides[0]), haft_io_listen_unix(local.sun_path, BACKLOG));
    } else {
        stage->sides[0] = haft_io_listen_tcp("127.0.0.1", 0, BACKLOG);
        struct sockaddr_in address = loopback(port_of(stage->sides[0]));
        memcpy(&stage->address, &address, stage->address_size = sizeof address);
    }
    CHECK(stage->sides[0] >= 0);
}

static void make_terminal(stage_t *stage) {
    CHECK(check_open_terminal(stage->sides, 0));
    check_make_raw(stage->sides[1]);
}

/* They block when they are recorded, and as the plan has it elsewhere. */
static void set_mode(const stage_t *stage, int side) {
    int number = stage->sides[side];
    bool blocks = stage->where == RECORDED || stage->plan->blocking[side];
    int flags = fcntl(number, F_GETFL);
    if (flags >= 0)
        fcntl(number, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static void make_stage(stage_t *stage) {
    int *sides = stage->sides;
    sides[0] = sides[1] = stage->file = -1;
    switch (stage->plan->kind) {
    case UNIX_STREAM:
    case UNIX_DATAGRAMS:
    case SEQPACKET: {
        int type = stage->plan->kind == UNIX_STREAM ? SOCK_STREAM
                   : stage->plan->kind == SEQPACKET ? SOCK_SEQPACKET
                                                    : SOCK_DGRAM;
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, type, 0, sides), 0);
        break;
    }
    case TCP:
        make_tcp(stage);
        break;
    case UDP:
        make_udp(stage);
        break;
    case PIPE:
        CHECK_EQUAL(haft_io_pipe(sides), 0);
        break;
    case TERMINAL:
        make_terminal(stage);
        break;
    case EVENT:
        sides[0] = eventfd(0, EFD_CLOEXEC);
        sides[1] = dup(sides[0]);
        break;
    case TIMER:
        sides[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        break;
    case UNIX_LISTENER:
    case TCP_LISTENER:
        make_listener(stage, stage->plan->kind == UNIX_LISTENER);
        break;
    default:
        if (stage->where != SIMULATED) {
            strcpy(stage->folder, "/tmp/haft-differ-XXXXXX");
            CHECK(mkdtemp(stage->folder) != NULL && chdir(stage->folder) == 0);
            CHECK_EQUAL(chmod(".", 0755), 0);
        }
    }
    for (int i = 0; i < 2 && stage->where != SIMULATED; i++)
        set_mode(stage, i);
    if (stage->plan->kind != FILES && stage->where != SIMULATED) {
        char text[ROOM];
        memset(text, 'f', sizeof text);
        text[ROOM - 1] = '\0';
        stage->file = check_file_with(text);
    }
    for (int i = 0; i < 2; i++)
        stage->modes[i] = stage->where != SIMULATED ? fcntl(sides[i], F_GETFL) : 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status, (void)type, (void)where;
    return remove(path);
}

static void close_stage(stage_t *stage) {
    for (int i = 0; i < 2; i++)
        if (stage->sides[i] >= 0) {
            if (stage->where == BY_TASKS && stage->plan->kind != FILES)
                CHECK_EQUAL(fcntl(stage->sides[i], F_GETFL), stage->modes[i]);
            haft_io_close(stage->sides[i]);
        }
    for (int i = 0; i < stage->client_count; i++)
        haft_io_close(stage->clients[i]);
    if (stage->file >= 0)
        close(stage->file);
    if (stage->address.ss_family == AF_UNIX && stage->where != SIMULATED)
        unlink(((struct sockaddr_un *)&stage->address)->sun_path);
    if (stage->folder[0] != '\0') {
        CHECK_EQUAL(chdir("/tmp"), 0);
        nftw(stage->folder, remove_one, 10, FTW_DEPTH | FTW_PHYS);
    }
}

static int number_of(const stage_t *stage, int side) {
    return side == NOBODY ? bad_number : stage->sides[side];
}

/* ---- Operations ---- */

typedef struct job {
    stage_t *stage;
    step_t *step;
    int index;
    answer_t answer;
    atomic_int state; /* 0, 1: it has begun, 2: it has ended */
    pid_t thread_id;
    pthread_t thread;
    haft_io_event_t ended;
    haft_io_scope_t *scope; /* NULL: it has ended. Under the lock */
    pthread_mutex_t lock;
    bool waits;           /* of a replay: it has not been joined */
    const char *ended_by; /* "close", "cancel" */
    char memory[ROOM];
} job_t;

static uint64_t hash(uint64_t before, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        before = (before ^ byte[i]) * UINT64_C(0x100000001b3);
    return before;
}
static const uint64_t NO_BYTES = UINT64_C(0xcbf29ce484222325);

/* Parts of the memory in some way; how many. */
static size_t make_parts(job_t *job, struct iovec parts[1025], void *bytes) {
    size_t size = (size_t)job->step->size, half = size / 2;
    memset(parts, 0, 1025 * sizeof parts[0]);
    parts[0] = (struct iovec){bytes, size};
    switch (job->step->variant) {
    case 0:
        return 0;
    case 1:
        parts[1] = (struct iovec){(char *)bytes + half, size - half};
        parts[0].iov_len = half;
        return 2;
    case 2:
        parts[2] = (struct iovec){job->memory + half, size - half};
        parts[0].iov_len = half;
        return 4;
    case 3:
        return job->step->null && job->stage->plan->kind != PIPE ? 1025 : 1024;
    default:
        return 1;
    }
}

/* Returns whose address it is; -1: nobody's. */
static int side_of(const stage_t *stage, const struct sockaddr_storage *address, socklen_t size) {
    if (size == 0)
        return -1;
    if (address->ss_family != AF_INET)
        return -2;
    int port = ntohs(((const struct sockaddr_in *)address)->sin_port);
    return port == stage->ports[0] ? 0 : port == stage->ports[1] ? 1 : -3;
}

static void receive_message(job_t *job, int number, void *bytes) {
    struct iovec parts[1025];
    struct sockaddr_storage address;
    struct msghdr message = {.msg_iov = parts, .msg_name = &address};
    message.msg_iovlen = make_parts(job, parts, bytes);
    message.msg_namelen = sizeof address;
    job->answer.code = job->stage->calls->receive_message(number, &message, job->step->flags);
    if (job->answer.code >= 0)
        job->answer.extra = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC | MSG_EOR | MSG_OOB)) * 8 +
                            side_of(job->stage, &address, message.msg_namelen);
}

static void send_message(job_t *job, int number, void *bytes) {
    struct iovec parts[1025];
    struct msghdr message = {.msg_iov = parts};
    message.msg_iovlen = make_parts(job, parts, bytes);
    job->answer.code = job->stage->calls->send_message(number, &message, job->step->flags);
}

static void transfer_parts(job_t *job, int number, void *bytes) {
    struct iovec parts[1025];
    size_t count = make_parts(job, parts, bytes);
    const calls_t *calls = job->stage->calls;
    job->answer.code = job->step->action == READ_PARTS ? calls->readv(number, parts, count)
                                                       : calls->writev(number, parts, count);
}

static void receive_from(job_t *job, int number, void *bytes) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    const step_t *step = job->step;
    job->answer.code = job->stage->calls->receive_from(
        number, bytes, (size_t)step->size, step->flags, (struct sockaddr *)&address, &size);
    if (job->answer.code >= 0)
        job->answer.extra = side_of(job->stage, &address, size);
}

static void send_to(job_t *job, int number, const void *bytes) {
    const step_t *step = job->step;
    bool names = job->stage->plan->kind == UDP && step->side != NOBODY && step->variant < 4;
    struct sockaddr_in address = loopback(names ? job->stage->ports[1 - step->side] : 0);
    job->answer.code = job->stage->calls->send_to(number, bytes, (size_t)step->size, step->flags,
                                                  names ? (struct sockaddr *)&address : NULL,
                                                  names ? sizeof address : 0);
}

/* Reads a stream in parts as they come, until there are as many bytes as were recorded at once. */
static void read_lent(job_t *job, int number) {
    const calls_t *calls = job->stage->calls;
    const void *lent = NULL;
    int64_t want = job->stage->where == RECORDED ? 0 : job->step->answer.code, got = 0;
    uint64_t seen = NO_BYTES;
    for (;;) {
        ssize_t size = calls->read_lent(number, &lent);
        if (size > 0)
            seen = hash(seen, lent, (size_t)size);
        got = size >= 0 ? got + size : size;
        if (size <= 0 || got >= want || !job->stage->plan->lends)
            break;
    }
    haft_io_give_back(lent);
    job->answer = (answer_t){.code = got, .bytes = seen};
}

static void read_plainly(job_t *job, int number, void *bytes) {
    const stage_t *stage = job->stage;
    int64_t want = stage->where == RECORDED || !stage->plan->lends ? 0 : job->step->answer.code;
    int64_t got = stage->calls->read(number, bytes, (size_t)job->step->size), more;
    while (got > 0 && got < want &&
           (more = stage->calls->read(number, (char *)bytes + got,
                                      (size_t)(job->step->size - got))) > 0)
        got += more;
    job->answer.code = got;
}

static void send_file(job_t *job, int number) {
    const step_t *step = job->step;
    int64_t offset = step->offset;
    job->answer.code = job->stage->calls->send_file(
        number, job->stage->file, step->variant < 4 ? &offset : NULL, (size_t)step->size);
    job->answer.extra = step->variant < 4 ? offset : lseek(job->stage->file, 0, SEEK_CUR);
}

static void accept_one(job_t *job, int number) {
    int accepted = job->stage->calls->accept(number);
    job->answer.code = accepted < 0 ? accepted : 0;
    if (accepted >= 0)
        haft_io_close(accepted);
}

static void connect_one(job_t *job) {
    stage_t *stage = job->stage;
    int type = SOCK_STREAM, family = stage->address.ss_family;
    int client =
        stage->where == RECORDED ? socket(family, type, 0) : haft_io_socket(family, type, 0);
    if (client < 0) {
        job->answer.code = client;
        return;
    }
    stage->clients[stage->client_count++] = client;
    job->answer.code =
        stage->calls->connect(client, (struct sockaddr *)&stage->address, stage->address_size);
}

static void list(job_t *job) {
    struct dirent **entries;
    job->answer.code = job->stage->calls->list_directory(paths[job->step->path], &entries);
    uint64_t seen = NO_BYTES;
    for (int64_t i = 0; i < job->answer.code; i++) {
        seen = hash(seen, entries[i]->d_name, strlen(entries[i]->d_name) + 1);
        seen = hash(seen, &entries[i]->d_type, 1);
        free(entries[i]);
    }
    if (job->answer.code >= 0)
        free(entries);
    job->answer.bytes = seen;
}

static void status(job_t *job) {
    struct stat status;
    job->answer.code = job->stage->calls->stat(paths[job->step->path], &status);
    if (job->answer.code == 0)
        job->answer.extra =
            (int64_t)status.st_mode << 32 | (S_ISREG(status.st_mode) ? status.st_size : 0);
}

static void open_one(job_t *job) {
    stage_t *stage = job->stage;
    const step_t *step = job->step;
    int number = stage->calls->open(paths[step->path], step->flags, 0600);
    job->answer.code = number >= 0 ? 0 : number;
    if (number >= 0)
        stage->sides[step->side] = number;
}

static void prepare(job_t *job) {
    const step_t *step = job->step;
    for (int i = 0; i < ROOM; i++)
        job->memory[i] =
            (writes & SET(step->action)) != 0 ? (char)('a' + (job->index * 7 + i) % 26) : '-';
    if (job->stage->plan->kind == EVENT && (writes & SET(step->action)) != 0) {
        uint64_t value = step->variant == 0 ? UINT64_MAX - 1 : 3;
        memcpy(job->memory, &value, sizeof value);
    }
}

static void perform(job_t *job) {
    const step_t *step = job->step;
    const calls_t *calls = job->stage->calls;
    int number = number_of(job->stage, step->side);
    size_t size = (size_t)step->size;
    void *bytes = step->null ? NULL : job->memory;
    const char *path = paths[step->path];
    int64_t *code = &job->answer.code;
    switch (step->action) {
    case READ:
        read_plainly(job, number, bytes);
        break;
    case READ_PARTS:
    case WRITE_PARTS:
        transfer_parts(job, number, bytes);
        break;
    case READ_LENT:
        read_lent(job, number);
        return;
    case RECEIVE:
        *code = calls->receive(number, bytes, size, step->flags);
        break;
    case RECEIVE_FROM:
        receive_from(job, number, bytes);
        break;
    case RECEIVE_MESSAGE:
        receive_message(job, number, bytes);
        break;
    case WRITE:
        *code = calls->write(number, bytes, size);
        break;
    case WRITE_ALL:
        *code = calls->write_all(number, bytes, size);
        break;
    case SEND:
        *code = calls->send(number, bytes, size, step->flags);
        break;
    case SEND_TO:
        send_to(job, number, bytes);
        break;
    case SEND_MESSAGE:
        send_message(job, number, bytes);
        break;
    case SEND_FILE:
        send_file(job, number);
        break;
    case WAIT_FOR:
        *code = calls->wait_ready(number, (short)step->events);
        break;
    case ACCEPT:
        accept_one(job, number);
        break;
    case CONNECT:
        connect_one(job);
        break;
    case READ_AT:
        *code = calls->pread(number, bytes, size, step->offset);
        break;
    case WRITE_AT:
        *code = calls->pwrite(number, bytes, size, step->offset);
        break;
    case SYNC:
        *code = calls->fsync(number);
        break;
    case OPEN:
        open_one(job);
        break;
    case LIST:
        list(job);
        return;
    case MAKE_DIRECTORY:
        *code = calls->mkdir(path, 0700);
        break;
    case REMOVE:
        *code = calls->remove(path);
        break;
    case RENAME:
        *code = calls->rename(path, paths[step->other_path]);
        break;
    case STATUS:
        status(job);
        break;
    default:
        break;
    }
    job->answer.bytes = hash(NO_BYTES, job->memory, ROOM);
}

/* ---- Events ---- */

static bool is_real(const stage_t *stage) {
    return stage->where != SIMULATED;
}

static bool is_socket(const stage_t *stage) {
    enum kind kind = stage->plan->kind;
    return kind != PIPE && kind != EVENT;
}

static short ready(const stage_t *stage, int number, short events) {
    struct pollfd entry = {number, events, 0};
    return stage->calls->poll(&entry, 1, 0) > 0 ? entry.revents : 0;
}

/* Fills a socket without waiting, and others while a poll reports that it can be done. */
static void fill(const stage_t *stage, int number) {
    char bytes[4096];
    memset(bytes, 'f', sizeof bytes);
    if (stage->plan->kind == EVENT) {
        uint64_t most = UINT64_MAX - 1;
        memcpy(bytes, &most, sizeof most);
        stage->calls->read(ready(stage, number, POLLIN) != 0 ? number : -1, &most, sizeof most);
        stage->calls->write(number, bytes, sizeof most);
        return;
    }
    if (is_socket(stage))
        while (stage->calls->send(number, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            ;
    else
        while (ready(stage, number, POLLOUT) == POLLOUT)
            stage->calls->write(number, bytes, sizeof bytes);
}

static void drain(const stage_t *stage, int number) {
    char bytes[4096];
    if (is_socket(stage))
        while (stage->calls->receive(number, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            ;
    else
        while ((ready(stage, number, POLLIN) & POLLIN) != 0 &&
               stage->calls->read(number, bytes, sizeof bytes) > 0)
            ;
}

static int64_t look(const stage_t *stage) {
    static const short all = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM;
    struct pollfd entries[] = {{stage->sides[0], all, 0}, {stage->sides[1], all, 0}};
    stage->calls->poll(entries, 2, 0);
    return entries[0].revents << 16 | entries[1].revents;
}

static int close_side(stage_t *stage, int side) {
    int number = number_of(stage, side), code = stage->calls->close(number);
    if (side != NOBODY)
        stage->sides[side] = -1;
    /* By another thread, perhaps. */
    for (int i = 0; i < 20000 && is_real(stage) && code == 0 && fcntl(number, F_GETFD) >= 0; i++)
        haft_io_sleep(50 * HAFT_IO_MICROSECOND);
    return code;
}

static int reset_side(stage_t *stage, int side) {
    struct linger at_once = {1, 0};
    setsockopt(number_of(stage, side), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return close_side(stage, side);
}

static int arm(const stage_t *stage) {
    struct itimerspec soon = {.it_value.tv_nsec = 1};
    return HAFTI_IO_RESULT(timerfd_settime(stage->sides[0], 0, &soon, NULL));
}

/* Waits for what the kernel does after the system call has returned: until there is something to
   read, or the `reader` has got it. */
static void settle(const stage_t *stage, const step_t *step, job_t *reader) {
    enum kind kind = stage->plan->kind;
    bool writes_now = (writes & SET(step->action)) != 0 && step->answer.code > 0;
    if (is_real(stage) && kind == TCP)
        haft_io_sleep(50 * HAFT_IO_MICROSECOND);
    if (!is_real(stage) || (kind != TERMINAL && kind != TIMER) || step->side == NOBODY)
        return;
    int number = number_of(stage, kind == TERMINAL ? 1 - step->side : 0);
    for (int i = 0; i < 100 && (writes_now || step->action == ARM); i++) {
        struct pollfd entry = {number, POLLIN, 0};
        if (reader != NULL ? atomic_load(&reader->state) == 2 : poll(&entry, 1, 0) != 0)
            break;
        haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    if (step->action == CLOSE)
        haft_io_sleep(2 * HAFT_IO_MILLISECOND);
}

static bool is_event(const step_t *step) {
    return step->action >= LOOK;
}

static answer_t happen(stage_t *stage, const step_t *step) {
    answer_t answer = {0};
    int number = number_of(stage, step->side);
    switch (step->action) {
    case LOOK:
        answer.code = look(stage);
        break;
    case SHUT:
        answer.code = is_real(stage) ? HAFTI_IO_RESULT(shutdown(number, step->flags))
                                     : haft_io_shutdown(number, SHUT_WR);
        break;
    case END_OUTPUT:
        answer.code = stage->calls->shutdown(number, SHUT_WR);
        break;
    case CLOSE:
        answer.code = close_side(stage, step->side);
        break;
    case RESET:
        answer.code = reset_side(stage, step->side);
        break;
    case FILL:
        fill(stage, number);
        break;
    case DRAIN:
        drain(stage, number);
        break;
    case ARM:
        answer.code = arm(stage);
        break;
    default:
        break;
    }
    return answer;
}

/* ---- By threads ---- */

typedef struct side {
    bool open, full;
    job_t *reader, *writer, *poller;
    int unread; /* writes that nobody has read, at most */
} side_t;

typedef struct course {
    stage_t stage;
    plan_t *plan;
    job_t *jobs;
    side_t sides[3];
    int waiting;
} course_t;

static void do_nothing(int number) {
    (void)number;
}

static void *run_job(void *argument) {
    job_t *job = argument;
    job->thread_id = gettid();
    atomic_store(&job->state, 1);
    perform(job);
    atomic_store(&job->state, 2);
    return NULL;
}

static bool sleeps(const job_t *job) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)job->thread_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    const char *state = size > 0 ? strrchr(text, ')') : NULL;
    return state != NULL && state[2] == 'S';
}

/* Whether it has ended; if not, it waits. */
static bool has_ended(job_t *job) {
    for (int seen = 0; atomic_load(&job->state) != 2;) {
        seen = atomic_load(&job->state) == 1 && sleeps(job) ? seen + 1 : 0;
        if (seen == 2)
            return false;
        sched_yield();
    }
    return true;
}

static bool is_stream(enum kind kind) {
    return kind == UNIX_STREAM || kind == TCP || kind == PIPE || kind == TERMINAL;
}

/* Whether so much more fits, and would in a simulation. */
static bool fits(course_t *course, const step_t *step) {
    enum kind kind = course->plan->kind;
    const side_t *side = &course->sides[step->side];
    int held = 0;
    if (kind == EVENT)
        return !(course->sides[0].full || course->sides[1].full) ||
               step->size == 8; /* others need not wait to be refused */
    if (kind == TIMER || kind == FILES || !side->open || step->side == NOBODY)
        return true;
    if (side->full)
        return step->size <= 4096 && step->action != SEND_FILE;
    if (course->sides[1 - step->side].unread >= 7)
        return false;
    if (!is_stream(kind))
        return true;
    int peer = course->stage.sides[1 - step->side];
    if (peer >= 0)
        ioctl(peer, FIONREAD, &held);
    if (kind == UNIX_STREAM && held + step->size >= 4096)
        course->plan->simulable = false;
    return held + step->size <= (kind == TERMINAL ? 2000 : 20000) &&
           (kind != PIPE || step->size <= 4096);
}

static bool may_do_event(course_t *course, const step_t *step) {
    enum kind kind = course->plan->kind;
    const side_t *side = &course->sides[step->side];
    switch (step->action) {
    case END_OUTPUT:
        return side->writer == NULL; /* which a poll is not told of */
    case SHUT:
        if (side->writer != NULL)
            return false;
        if (step->flags != SHUT_WR)
            course->plan->simulable = false;
        /* A listener's are lost, but for those that the library has taken (docs/limits.md). */
        return (kind != TCP_LISTENER && kind != UNIX_LISTENER) || side->unread == 0;
    case CLOSE:
        /* A task that has begun to write is told of the reset, and one that begins then, of the
           end. */
        if (kind != EVENT && step->side != NOBODY && course->sides[1 - step->side].writer != NULL)
            return false;
        course->plan->interrupts |=
            side->reader != NULL || side->writer != NULL || course->waiting != 0;
        return side->open || step->side == NOBODY;
    case RESET:
        course->plan->interrupts |= course->waiting != 0;
        return side->open && step->side != NOBODY;
    case FILL:
        course->plan->simulable &= kind != PIPE; /* which is full of pages */
        return side->open && !side->full && side->writer == NULL && side->poller == NULL &&
               course->sides[1 - step->side].poller == NULL && step->side != NOBODY &&
               (kind == EVENT || course->sides[1 - step->side].open) &&
               (kind != PIPE || step->side == 1) &&
               (kind == EVENT || course->sides[1 - step->side].reader == NULL);
    case DRAIN:
        return side->open && side->reader == NULL && side->poller == NULL && step->side != NOBODY &&
               (kind != PIPE || step->side == 0);
    case CANCEL:
        course->plan->interrupts = true;
        return course->waiting != 0;
    case ARM:
        return side->open && step->side == 0;
    default:
        return true;
    }
}

/* Behind urgent data MSG_WAITALL goes on (docs/limits.md). */
static bool waits_for_all_behind_urgent_data(const plan_t *plan, const step_t *step) {
    for (int i = 0; i < plan->count && (step->flags & MSG_WAITALL) != 0; i++)
        if ((plan->steps[i].flags & MSG_OOB) != 0)
            return true;
    return false;
}

/* Whether the step differs for a reason that docs/limits.md has. */
static bool is_known_to_differ(const course_t *course, const step_t *step) {
    enum kind kind = course->plan->kind;
    uint64_t action = SET(step->action);
    enum { WHOLE_PEEK = MSG_PEEK | MSG_WAITALL };
    bool is_urgent = (step->flags & MSG_OOB) != 0;
    return waits_for_all_behind_urgent_data(course->plan, step) ||
           (kind == UDP && is_urgent && (reads & action) != 0) ||
           (kind == TCP && is_urgent && course->plan->lends) ||
           (kind == TCP && (step->flags & WHOLE_PEEK) == WHOLE_PEEK) ||
           (step->action == RENAME &&
            paths[step->other_path] == NULL) || /* two mistakes at times */
           (kind == UNIX_STREAM && is_urgent &&
            (course->sides[0].poller != NULL || course->sides[1].poller != NULL)) ||
           (kind == TCP && course->plan->lends && (reads & action) == 0 && step->side != NOBODY &&
            !course->sides[1 - step->side].open);
}

static bool may_do(course_t *course, const step_t *step) {
    enum kind kind = course->plan->kind;
    const side_t *side = &course->sides[step->side];
    uint64_t action = SET(step->action);
    if (is_known_to_differ(course, step))
        return false;
    if (kind == EVENT && (writes & action) != 0 && step->variant == 0)
        return false; /* fills it, or waits: nobody has counted that */
    if (step->side == NOBODY && (is_event(step) && step->action != CLOSE))
        return false;
    if (kind == EVENT && step->side == 1)
        side = &course->sides[0];
    if (is_event(step))
        return may_do_event(course, step);
    if (step->action == OPEN)
        return kind == FILES && !side->open && step->side != NOBODY;
    if (step->action == CONNECT)
        return course->stage.address_size != 0 && course->sides[0].unread < 7;
    if ((of_files & action) != 0 && kind != FILES &&
        (action & (SET(READ_AT) | SET(WRITE_AT) | SET(SYNC))) == 0)
        return false;
    if ((step->action == LIST || step->action == STATUS) && paths[step->path] != NULL &&
        (strstr(paths[step->path], "..") != NULL || paths[step->path][0] == '/'))
        return false; /* which a simulation has apart */
    if (step->action == SEND_FILE && (kind == FILES || step->offset < 0))
        return false;
    if ((action & (SET(READ_AT) | SET(WRITE_AT))) != 0 && step->offset < 0 &&
        (kind != FILES || !side->open))
        return false; /* two mistakes at once */
    if ((reads & action) != 0 && step->side != NOBODY && kind != EVENT &&
        course->sides[1 - step->side].full)
        return false; /* how much makes room is another matter for a poll */
    if (((action & SET(WAIT_FOR)) != 0 && (side->reader != NULL || side->writer != NULL)) ||
        (side->poller != NULL && ((reads | writes) & action) != 0))
        return false; /* which of the two is first? */
    if (kind == UDP && (step->flags & MSG_MORE) != 0)
        course->plan->simulable = false;
    if (kind == UNIX_DATAGRAMS && step->null && step->side != NOBODY &&
        !course->sides[1 - step->side].open)
        course->plan->simulable = false; /* two mistakes at once, of which each Linux has its own */
    if (step->action == SEND_FILE)
        course->plan->simulable = false;
    if ((reads & action) != 0 && side->reader != NULL)
        return false;
    if ((writes & action) != 0 && (side->writer != NULL || !fits(course, step)))
        return false;
    if (kind == TCP && (reads & action & with_flags) != 0 &&
        (step->size == 0 || step->variant == 0 || step->variant == 3))
        return false; /* of nothing, which any packet ends */
    if (kind == TCP && (reads & action) != 0 && step->action != READ) {
        bool lends = step->action == READ_LENT;
        if (lends != course->plan->lends)
            return false;
    }
    static const int simulated = MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE;
    if ((step->flags & ~simulated) != 0 && step->action != OPEN)
        course->plan->simulable = false;
    return true;
}

static void has_done(course_t *course, job_t *job) {
    const step_t *step = job->step;
    side_t *side = &course->sides[step->side], *peer = &course->sides[step->side == 0];
    bool empties = course->plan->kind == UNIX_LISTENER || course->plan->kind == TCP_LISTENER;
    if (course->plan->kind == EVENT)
        side = &course->sides[0];
    if (side->reader == job)
        side->reader = NULL;
    if (side->writer == job)
        side->writer = NULL;
    if (side->poller == job)
        side->poller = NULL;
    if (step->action == OPEN && job->answer.code == 0)
        side->open = true;
    if (step->side == NOBODY)
        return;
    if ((writes & SET(step->action)) != 0 && job->answer.code >= 0)
        peer->unread++;
    else if (step->action == CONNECT && job->answer.code == 0)
        course->sides[0].unread++;
    else if (!is_stream(course->plan->kind) && (reads & SET(step->action)) != 0 &&
             job->answer.code >= 0 && (step->flags & MSG_PEEK) == 0 && side->unread != 0)
        side->unread--;
    (void)empties;
}

static void take_in(course_t *course, job_t *job, int at) {
    pthread_join(job->thread, NULL);
    job->waits = false;
    course->waiting--;
    if (job->ended_by != NULL && job->answer.code == -EINTR)
        job->answer.code = strcmp(job->ended_by, "close") == 0 ? -EBADF : -ECANCELED;
    job->step->ends_at = at;
    job->step->answer = job->answer;
    has_done(course, job);
}

/* The job that waits to read what the step has written. */
static job_t *reader_of(const course_t *course, const step_t *step) {
    for (int i = 0; i < course->plan->count; i++) {
        job_t *job = &course->jobs[i];
        if (job->waits && (reads & SET(job->step->action)) != 0 &&
            job->step->side == (course->plan->kind == TIMER ? step->side : 1 - step->side))
            return job;
    }
    return NULL;
}

/* Takes in all jobs that the step has ended. */
static void take_in_all(course_t *course, int at) {
    for (int i = 0; i < course->plan->count; i++)
        if (course->jobs[i].waits && has_ended(&course->jobs[i]))
            take_in(course, &course->jobs[i], at);
}

static void interrupt(course_t *course, job_t *job, const char *why, int at) {
    job->ended_by = why;
    while (!has_ended(job)) {
        pthread_kill(job->thread, SIGUSR1);
        usleep(100);
    }
    take_in(course, job, at);
}

static void interrupt_side(course_t *course, int side, int at) {
    for (int i = 0; i < course->plan->count; i++)
        if (course->jobs[i].waits && course->jobs[i].step->side == side)
            interrupt(course, &course->jobs[i], "close", at);
}

/* One of those that wait. */
static job_t *waiting_job(job_t *jobs, int count, const step_t *step) {
    job_t *found = NULL;
    for (int i = 0; i < count; i++)
        if (jobs[i].waits && (found == NULL || i <= step->variant))
            found = &jobs[i];
    return found;
}

static void record_event(course_t *course, step_t *step, int at) {
    side_t *side = &course->sides[step->side];
    if (step->action == CANCEL)
        interrupt(course, waiting_job(course->jobs, course->plan->count, step), "cancel", at);
    if (step->action == CLOSE || step->action == RESET) {
        interrupt_side(course, step->side, at);
        if (step->side != NOBODY)
            side->open = false;
    }
    step->answer = happen(&course->stage, step);
    step->ends_at = at;
    if (step->action == FILL)
        side->full = true;
    if (step->action == DRAIN) {
        /* A writer goes on meanwhile. */
        side_t *peer = &course->sides[course->plan->kind == EVENT ? 0 : 1 - step->side];
        while (peer->writer != NULL && has_ended(peer->writer) == false)
            drain(&course->stage, number_of(&course->stage, step->side));
        drain(&course->stage, number_of(&course->stage, step->side));
        course->sides[1 - step->side].full = false;
        course->sides[0].full &= course->plan->kind != EVENT;
        course->sides[1].full &= course->plan->kind != EVENT;
        side->unread = 0;
    }
}

static job_t *begin_job(course_t *course, int at) {
    job_t *job = &course->jobs[at];
    memset(job, 0, offsetof(job_t, memory));
    pthread_mutex_init(&job->lock, NULL);
    job->stage = &course->stage;
    job->step = &course->plan->steps[at];
    job->index = at;
    prepare(job);
    return job;
}

static void record_operation(course_t *course, int at) {
    job_t *job = begin_job(course, at);
    const step_t *step = job->step;
    side_t *side = &course->sides[course->plan->kind == EVENT ? 0 : step->side];
    pthread_create(&job->thread, NULL, run_job, job);
    job->waits = true;
    course->waiting++;
    if (has_ended(job)) {
        take_in(course, job, at);
        return;
    }
    if (step->side == NOBODY)
        return;
    if ((reads & SET(step->action)) != 0)
        side->reader = job;
    if ((writes & SET(step->action)) != 0)
        side->writer = job;
    if (step->action == WAIT_FOR)
        side->poller = job;
}

static bool sides_are_open(enum kind kind, int side) {
    return kind != FILES &&
           (side == 0 || (kind != TIMER && kind != UNIX_LISTENER && kind != TCP_LISTENER));
}

static void record(plan_t *plan, job_t *jobs) {
    course_t course = {.plan = plan, .jobs = jobs};
    course.stage = (stage_t){.plan = plan, .where = RECORDED, .calls = &by_system};
    plan->simulable = plan->kind != TCP && plan->kind != SEQPACKET && plan->kind != TERMINAL &&
                      plan->kind != EVENT && plan->kind != TIMER;
    plan->interrupts = false;
    make_stage(&course.stage);
    for (int i = 0; i < 2; i++)
        course.sides[i].open = sides_are_open(plan->kind, i);
    for (int i = 0; i < plan->count; i++)
        jobs[i].waits = false;
    for (int i = 0; i < plan->count; i++) {
        step_t *step = &plan->steps[i];
        step->skipped = !may_do(&course, step);
        if (step->skipped)
            continue;
        if (is_event(step))
            record_event(&course, step, i);
        else
            record_operation(&course, i);
        settle(&course.stage, step, reader_of(&course, step));
        take_in_all(&course, i);
    }
    plan->interrupts |= course.waiting != 0;
    for (int i = 0; i < plan->count; i++)
        if (jobs[i].waits)
            interrupt(&course, &jobs[i], "cancel", plan->count);
    close_stage(&course.stage);
}

/* ---- Differences ---- */

static char difference[600];
static int64_t patience = 5 * HAFT_IO_SECOND;

static __attribute__((format(printf, 2, 3))) void differs(int at, const char *format, ...) {
    if (difference[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    int size = snprintf(difference, sizeof difference, "step %d: ", at);
    vsnprintf(difference + size, sizeof difference - (size_t)size, format, arguments);
    va_end(arguments);
}

static void compare(int at, const step_t *step, const answer_t *got) {
    const answer_t *want = &step->answer;
    if (got->code != want->code)
        differs(at, "%s is %lld, not %lld", action_names[step->action], (long long)got->code,
                (long long)want->code);
    else if (got->extra != want->extra)
        differs(at, "%s tells %lld besides, not %lld", action_names[step->action],
                (long long)got->extra, (long long)want->extra);
    else if (got->bytes != want->bytes)
        differs(at, "%s has other bytes", action_names[step->action]);
}

/* ---- Without a scheduler ---- */

static void replay_by_threads(plan_t *plan, job_t *jobs) {
    course_t course = {.plan = plan, .jobs = jobs};
    course.stage = (stage_t){.plan = plan, .where = BY_THREADS, .calls = &by_haft};
    for (int i = 0; i < plan->count; i++)
        jobs[i].waits = false;
    make_stage(&course.stage);
    for (int i = 0; i < plan->count && difference[0] == '\0'; i++) {
        step_t *step = &plan->steps[i];
        if (step->skipped)
            continue;
        if (is_event(step)) {
            answer_t answer = happen(&course.stage, step);
            compare(i, step, &answer);
        } else {
            job_t *job = begin_job(&course, i);
            pthread_create(&job->thread, NULL, run_job, job);
            job->waits = true;
        }
        settle(&course.stage, step, reader_of(&course, step));
        for (int j = 0; j <= i; j++) {
            job_t *job = &jobs[j];
            if (plan->steps[j].skipped || !job->waits)
                continue;
            if (plan->steps[j].ends_at == i) {
                if (step->action == DRAIN)
                    while (!has_ended(job))
                        drain(&course.stage, number_of(&course.stage, step->side));
                pthread_join(job->thread, NULL);
                job->waits = false;
                compare(j, job->step, &job->answer);
            } else if (has_ended(job)) {
                differs(j, "it has ended, with %lld", (long long)job->answer.code);
            }
        }
        if (step->action == DRAIN)
            drain(&course.stage, number_of(&course.stage, step->side));
    }
    close_stage(&course.stage);
}

/* ---- By tasks ---- */

static void set_scope(job_t *job, haft_io_scope_t *scope) {
    pthread_mutex_lock(&job->lock);
    job->scope = scope;
    pthread_mutex_unlock(&job->lock);
}
static void cancel(job_t *job) {
    pthread_mutex_lock(&job->lock);
    if (job->scope != NULL)
        haft_io_scope_cancel(job->scope);
    pthread_mutex_unlock(&job->lock);
}

static void *perform_in_scope(void *argument) {
    job_t *job = argument;
    haft_io_return_cancels(true);
    set_scope(job, haft_io_this_scope());
    atomic_store(&job->state, 1);
    perform(job);
    atomic_store(&job->state, 2);
    set_scope(job, NULL);
    return NULL;
}
static void *run_task(void *argument) {
    job_t *job = argument;
    haft_io_scope(perform_in_scope, job, NULL);
    haft_io_event_set(&job->ended);
    return NULL;
}

static void let_others_go_on(const stage_t *stage, const job_t *job) {
    for (int i = 0; i < 20000 && atomic_load(&job->state) == 0; i++)
        is_real(stage) && i > 10 ? haft_io_sleep(50 * HAFT_IO_MICROSECOND) : haft_io_yield();
    haft_io_sleep(100 * HAFT_IO_MICROSECOND); /* so that the back end is asked */
}

static void end_as_recorded(course_t *course, job_t *job, const step_t *step) {
    const stage_t *stage = &course->stage;
    int64_t until = haft_io_now() + patience;
    int code = -ETIMEDOUT;
    while (code != 0 && step != NULL && step->action == DRAIN && haft_io_now() < until) {
        drain(stage, number_of(stage, step->side));
        code = haft_io_event_wait_until(&job->ended, haft_io_now() + 100 * HAFT_IO_MICROSECOND);
    }
    if (code != 0)
        code = haft_io_event_wait_until(&job->ended, until);
    job->waits = false;
    if (code == 0) {
        compare(job->index, job->step, &job->answer);
        return;
    }
    differs(job->index, "%s has not ended with %lld", action_names[job->step->action],
            (long long)job->step->answer.code);
    cancel(job);
    haft_io_event_wait(&job->ended);
}

static void replay_step(course_t *course, int at) {
    step_t *step = &course->plan->steps[at];
    stage_t *stage = &course->stage;
    if (step->action == CANCEL) {
        job_t *job = waiting_job(course->jobs, at, step);
        if (job != NULL)
            cancel(job);
    } else if (is_event(step)) {
        answer_t answer = happen(stage, step);
        compare(at, step, &answer);
    } else {
        job_t *job = begin_job(course, at);
        job->waits = true;
        haft_io_spawn(run_task, job);
        let_others_go_on(stage, job);
    }
    settle(stage, step, reader_of(course, step));
    for (int i = 0; i <= at; i++) {
        job_t *job = &course->jobs[i];
        if (!job->waits)
            continue;
        if (job->step->ends_at == at) {
            end_as_recorded(course, job, step);
        } else {
            let_others_go_on(stage, job);
            if (atomic_load(&job->state) == 2)
                differs(i, "%s has ended, with %lld", action_names[job->step->action],
                        (long long)job->answer.code);
        }
    }
    if (step->action == DRAIN)
        drain(stage, number_of(stage, step->side));
}

typedef struct replay {
    plan_t *plan;
    job_t *jobs;
    bool simulated;
} replay_t;

static void *replay_steps(void *argument) {
    course_t *course = argument;
    for (int i = 0; i < course->plan->count && difference[0] == '\0'; i++)
        if (!course->plan->steps[i].skipped)
            replay_step(course, i);
    for (int i = 0; i < course->plan->count; i++) {
        job_t *job = &course->jobs[i];
        if (!job->waits)
            continue;
        cancel(job);
        end_as_recorded(course, job, NULL);
    }
    return NULL;
}

static void *replay_plan(void *argument) {
    replay_t *replay = argument;
    course_t course = {.plan = replay->plan, .jobs = replay->jobs};
    course.stage = (stage_t){
        .plan = replay->plan, .where = replay->simulated ? SIMULATED : BY_TASKS, .calls = &by_haft};
    for (int i = 0; i < replay->plan->count; i++)
        replay->jobs[i].waits = false;
    make_stage(&course.stage);
    haft_io_scope(replay_steps, &course, NULL);
    close_stage(&course.stage);
    return NULL;
}

/* ---- Worlds ---- */

typedef struct world {
    const char *name;
    haft_io_run_options_t options;
    bool is_run, simulated;
} world_t;
static const world_t worlds[] = {
    {"no scheduler", {0}, false, false},
    {"epoll, one thread", {.threads = 1, .backend = "epoll"}, true, false},
    {"epoll, two threads", {.threads = 2, .backend = "epoll"}, true, false},
    {"io_uring, one thread", {.threads = 1, .backend = "io_uring"}, true, false},
    {"io_uring, two threads", {.threads = 2, .backend = "io_uring"}, true, false},
    {"simulation", {0}, false, true},
};
enum { WORLDS = sizeof worlds / sizeof worlds[0] };

static bool fits_world(const plan_t *plan, const world_t *world) {
    if (world->simulated)
        return plan->simulable;
    return world->is_run || !plan->interrupts;
}

static const plan_t *current_plan;
static const char *current_world = "";

/* Whether it has differed, as `difference` has it. */
static bool replay(plan_t *plan, job_t *jobs, const world_t *world) {
    replay_t how = {plan, jobs, world->simulated};
    difference[0] = '\0';
    current_plan = plan;
    current_world = world->name;
    alarm(30);
    if (world->simulated) {
        haft_io_simulation_options_t simulation = {
            .seed = plan->seed, .network = true, .files = true};
        if (haft_io_simulate_with(&simulation, replay_plan, &how) != 0)
            differs(0, "the simulation has failed");
    } else if (world->is_run) {
        if (haft_io_run_with(&world->options, replay_plan, &how) != 0)
            differs(0, "the run has failed");
    } else {
        replay_by_threads(plan, jobs);
    }
    alarm(0);
    return difference[0] != '\0';
}

static void print_step(const step_t *step, int at) {
    fprintf(stderr, "  %2d  %-15s", at, action_names[step->action]);
    if (step->side == NOBODY)
        fprintf(stderr, " of no descriptor");
    else
        fprintf(stderr, " of %d", step->side);
    if (((reads | writes) & SET(step->action)) != 0)
        fprintf(stderr, " size %d%s variant %d", step->size, step->null ? " NULL" : "",
                step->variant);
    if (step->flags != 0)
        fprintf(stderr, " flags 0x%x", step->flags);
    if (step->action == WAIT_FOR)
        fprintf(stderr, " events 0x%x", step->events);
    if (step->action == READ_AT || step->action == WRITE_AT || step->action == SEND_FILE)
        fprintf(stderr, " at %lld", (long long)step->offset);
    if (step->action >= OPEN && step->action <= STATUS)
        fprintf(stderr, " \"%s\"", paths[step->path] != NULL ? paths[step->path] : "(null)");
    if (step->action == RENAME)
        fprintf(stderr, " \"%s\"",
                paths[step->other_path] != NULL ? paths[step->other_path] : "(null)");
    fprintf(stderr, " -> %lld", (long long)step->answer.code);
    if (step->ends_at != at)
        fprintf(stderr, ", after step %d", step->ends_at);
    fprintf(stderr, "\n");
}

static void print_plan(const plan_t *plan, const char *world) {
    fprintf(stderr, "differ: seed %llu, %s (%s, %s), %s: %s\n", (unsigned long long)plan->seed,
            kind_names[plan->kind], plan->blocking[0] ? "blocking" : "non-blocking",
            plan->blocking[1] ? "blocking" : "non-blocking", world, difference);
    for (int i = 0; i < plan->count; i++)
        if (!plan->steps[i].skipped)
            print_step(&plan->steps[i], i);
}

static void stand_still(int number) {
    (void)number;
    if (difference[0] == '\0')
        strcpy(difference, "it stands still");
    if (current_plan != NULL)
        print_plan(current_plan, current_world);
    _exit(1);
}

static bool differs_again(plan_t *plan, job_t *jobs, const world_t *world, int times) {
    for (; times != 0; times--) {
        record(plan, jobs);
        if (!fits_world(plan, world) || !replay(plan, jobs, world))
            return false;
    }
    return true;
}

/* Without the steps that make no difference. */
static void make_smaller(plan_t *plan, job_t *jobs, const world_t *world) {
    patience = HAFT_IO_SECOND;
    for (int i = plan->count - 1; i >= 0; i--) {
        plan_t smaller = *plan;
        memmove(&smaller.steps[i], &smaller.steps[i + 1],
                (size_t)(plan->count - i - 1) * sizeof smaller.steps[0]);
        smaller.count--;
        if (differs_again(&smaller, jobs, world, 2))
            *plan = smaller;
    }
    patience = 5 * HAFT_IO_SECOND;
    differs_again(plan, jobs, world, 1);
}

static void every_world_answers_as_the_system(void) {
    static job_t jobs[STEPS];
    const char *given = getenv("HAFT_IO_SEED"), *only = getenv("HAFT_DIFFER_WORLD");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    int count = (int)check_campaign("HAFT_DIFFER_PLANS", 200, 1500);
    bool is_there[WORLDS];
    unsetenv("HAFT_IO_SEED");
    for (int i = 0; i < WORLDS; i++)
        is_there[i] =
            (only == NULL || strstr(worlds[i].name, only) != NULL) &&
            (!worlds[i].is_run || haft_io_run_with(&worlds[i].options, check_nothing, NULL) == 0);
    for (int i = 0; i < count && check_failures < 10; seed++, i++) {
        plan_t plan = draw_plan(seed);
        record(&plan, jobs);
        for (int w = 0; w < WORLDS; w++) {
            if (!is_there[w] || !fits_world(&plan, &worlds[w]) || !replay(&plan, jobs, &worlds[w]))
                continue;
            plan_t other = plan;
            if (!differs_again(&other, jobs, &worlds[w], 2))
                continue;
            make_smaller(&other, jobs, &worlds[w]);
            print_plan(&other, worlds[w].name);
            check_failures++;
        }
    }
}

int main(void) {
    struct sigaction action = {.sa_handler = do_nothing}, still = {.sa_handler = stand_still};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &still, NULL);
    signal(SIGPIPE, SIG_IGN);
    RUN(every_world_answers_as_the_system);
    return check_end();
}
