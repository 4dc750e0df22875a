/* SPDX-License-Identifier: MIT */
/* Sockets of a simulation, by the calls of the C library: the same programs as on the machine. */
#include "../../tests/check_io.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static const haft_io_simulation_options_t with_network = {.seed = 1, .network = true};

/* ---- The simulation and the machine answer alike ---- */

/*
 * A program of random calls on a few sockets, none of which blocks, is run on the machine and then
 * in a simulation, and notes what each call gives. Differences by design are left out: sizes of
 * buffers, and calls that take time.
 */
enum { SLOTS = 8, CALLS = 60, NAMES = 2, NOTES = 1 << 15 };

typedef struct program {
    bool internet; /* otherwise AF_UNIX */
    uint64_t seed;
} program_t;

typedef struct notes {
    char text[NOTES];
    size_t size;
} notes_t;
static notes_t noted[2], *now;
static int slots[SLOTS];
static program_t program;
static uint64_t state;
static uint16_t ports[NAMES];

static unsigned draw(unsigned bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(state >> 33) % bound;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(now->text + now->size, NOTES - now->size, format, arguments);
    va_end(arguments);
    now->size += (size_t)more < NOTES - now->size ? (size_t)more : 0;
}
static void note_result(const char *call, unsigned slot, long result) {
    note("%s(%u): %ld %s\n", call, slot, result, result < 0 ? strerror(errno) : "");
}

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_un local;
} address_t;

static address_t name_of(unsigned name, socklen_t *size) {
    address_t address;
    memset(&address, 0, sizeof address);
    if (program.internet) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(ports[name]);
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        *size = sizeof address.v4;
        return address;
    }
    address.local.sun_family = AF_UNIX;
    int length = snprintf(address.local.sun_path + 1, sizeof address.local.sun_path - 1,
                          "haft-%d-%u", (int)getpid(), name);
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return address;
}

/* Notes whose name it is; ports that are chosen differ, and a connect in vain leaves one on the
   machine. */
static void note_name(const address_t *address, socklen_t size) {
    if (address->any.sa_family == AF_INET) {
        uint16_t port = ntohs(address->v4.sin_port);
        note("  %s port %s size %u\n", inet_ntoa(address->v4.sin_addr),
             port == ports[0]   ? "first"
             : port == ports[1] ? "second"
                                : "some, or none",
             size);
        return;
    }
    note("  family %d size %u %s\n", address->any.sa_family, size,
         size > sizeof address->any.sa_family + 1 ? address->local.sun_path + 1 : "");
}

static bool is_connected(unsigned slot) {
    address_t peer;
    return getpeername(slots[slot], &peer.any, &(socklen_t){sizeof peer}) == 0;
}

/* (Over TCP a close makes a difference that takes time; a simulation answers as AF_UNIX then.) */
static bool stays(unsigned slot) {
    int listens = 0;
    getsockopt(slots[slot], SOL_SOCKET, SO_ACCEPTCONN, &listens, &(socklen_t){sizeof listens});
    return program.internet && (is_connected(slot) || listens);
}

static int take(int made, unsigned slot) {
    for (unsigned i = 0; made >= 0 && stays(slot) && i < SLOTS; i++)
        slot = (slot + 1) % SLOTS;
    if (made >= 0) {
        close(slots[slot]);
        slots[slot] = made;
        return 0;
    }
    return made;
}

static void make(unsigned slot) {
    int family = program.internet ? AF_INET : AF_UNIX;
    int made = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
    if (made >= 0 && program.internet)
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    note_result("socket", slot, take(made, slot));
}

static void bind_one(unsigned slot) {
    if (is_connected(slot))
        return; /* of AF_UNIX it is given a name then */
    socklen_t size;
    address_t address = name_of(draw(NAMES), &size);
    note_result("bind", slot, bind(slots[slot], &address.any, size));
}

static void listen_one(unsigned slot) {
    note_result("listen", slot, listen(slots[slot], program.internet ? 5 : (int)draw(3)));
}

static void connect_one(unsigned slot) {
    socklen_t size;
    address_t address = name_of(draw(NAMES), &size), own;
    memset(&own, 0, sizeof own);
    getsockname(slots[slot], &own.any, &(socklen_t){sizeof own});
    if (program.internet && own.v4.sin_port == address.v4.sin_port)
        return; /* TCP can connect a socket to itself */
    int code = connect(slots[slot], &address.any, size);
    if (program.internet && code < 0 && errno == EINPROGRESS) { /* or at once: either is right */
        struct pollfd entry = {slots[slot], POLLOUT, 0};
        poll(&entry, 1, 1000);
        int error = 0;
        socklen_t room = sizeof error;
        getsockopt(slots[slot], SOL_SOCKET, SO_ERROR, &error, &room);
        code = error == 0 ? 0 : -1;
        connect(slots[slot], &address.any, size); /* which is told that it is over */
        errno = error;
    }
    note_result("connect", slot, code);
}

static void accept_one(unsigned slot) {
    address_t address;
    socklen_t size = sizeof address;
    memset(&address, 0, sizeof address);
    unsigned to = draw(SLOTS);
    int code = take(accept4(slots[slot], &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC), to);
    note_result("accept4", slot, code);
    if (code == 0)
        note_name(&address, size);
}

static void send_one(unsigned slot) {
    static const char bytes[] = "some bytes that are sent from one end to the other";
    size_t size = draw(sizeof bytes);
    if (draw(2) == 0)
        note_result("send", slot, send(slots[slot], bytes, size, MSG_NOSIGNAL));
    else
        note_result(
            "sendmsg", slot,
            sendmsg(slots[slot],
                    &(struct msghdr){.msg_iov =
                                         (struct iovec[]){{"two ", 4}, {(void *)"parts", size % 6}},
                                     .msg_iovlen = 2},
                    MSG_NOSIGNAL));
}

static void receive_one(unsigned slot) {
    char bytes[64];
    unsigned size = 1 + draw(sizeof bytes - 1), way = draw(5);
    ssize_t got;
    switch (way) {
    case 0:
        got = recv(slots[slot], bytes, size, MSG_PEEK);
        break;
    case 1:
        got = read(slots[slot], bytes, size);
        break;
    case 2:
        got = recv(slots[slot], bytes, size, MSG_DONTWAIT);
        break;
    case 3:
        got = read(slots[slot], bytes, 0);
        break;
    default:
        got = readv(slots[slot], (struct iovec[]){{bytes, size / 2}, {bytes + size / 2, size / 2}},
                    2);
    }
    note_result("receive", slot, got);
    if (got > 0)
        note("  '%.*s'\n", (int)got, bytes);
}

static void name_one(unsigned slot) {
    address_t address;
    socklen_t size = sizeof address;
    memset(&address, 0, sizeof address);
    bool peer = draw(2) == 0;
    int code = peer ? getpeername(slots[slot], &address.any, &size)
                    : getsockname(slots[slot], &address.any, &size);
    note_result(peer ? "getpeername" : "getsockname", slot, code);
    if (code == 0)
        note_name(&address, size);
}

static void ask_one(unsigned slot) {
    static const int options[] = {SO_TYPE,  SO_DOMAIN,    SO_PROTOCOL, SO_ACCEPTCONN,
                                  SO_ERROR, SO_KEEPALIVE, SO_REUSEPORT};
    int option = options[draw(sizeof options / sizeof *options)], value = 0;
    socklen_t size = sizeof value;
    int code = getsockopt(slots[slot], SOL_SOCKET, option, &value, &size);
    note_result("getsockopt", slot, code);
    if (code == 0)
        note("  option %d: %d\n", option, value);
}

static void poll_one(unsigned slot) {
    struct pollfd entry = {slots[slot], POLLIN | POLLOUT | POLLRDHUP, 0};
    int code = poll(&entry, 1, 0);
    note_result("poll", slot, code);
    note("  events %x\n", (unsigned)entry.revents);
}

static void look_at_one(unsigned slot) {
    int mode = fcntl(slots[slot], F_GETFL), unread = -1;
    note_result("fcntl", slot, mode < 0 ? mode : 0);
    if (mode >= 0)
        note("  mode %x\n", (unsigned)mode & (O_ACCMODE | O_NONBLOCK));
    note_result("F_GETFD", slot, fcntl(slots[slot], F_GETFD));
    int code = ioctl(slots[slot], FIONREAD, &unread);
    note_result("FIONREAD", slot, code);
    if (code == 0)
        note("  unread %d\n", unread);
}

static void pair_one(unsigned slot) {
    int both[2] = {-1, -1};
    int code = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both);
    note_result("socketpair", slot, code);
    unsigned other = (slot + 1) % SLOTS;
    take(both[0], slot);
    take(both[1], other);
}

static void duplicate_one(unsigned slot) {
    int made = draw(2) == 0 ? dup(slots[slot]) : fcntl(slots[slot], F_DUPFD_CLOEXEC, 0);
    note_result("dup", slot, made < 0 ? made : 0);
    if (made >= 0)
        take(made, draw(SLOTS));
}

static void shut_one(unsigned slot) {
    struct pollfd other = {slots[slot], POLLRDHUP, 0};
    if (program.internet && poll(&other, 1, 0) == 1)
        return; /* TCP forgets a connection that both ends have shut down */
    int how = program.internet ? SHUT_WR : (int)draw(3);
    if (!is_connected(slot))
        return; /* of AF_UNIX it is kept for later */
    note_result(how == SHUT_RD   ? "SHUT_RD"
                : how == SHUT_WR ? "SHUT_WR"
                                 : "SHUT_RDWR",
                slot, shutdown(slots[slot], how));
}

static void close_one(unsigned slot) {
    if (stays(slot))
        return;
    note_result("close", slot, close(slots[slot]));
    slots[slot] = -1;
}

static bool have_room(void) {
    unsigned room = 0;
    for (unsigned i = 3; i < SLOTS; i++)
        room += !stays(i);
    return !program.internet || room >= 2;
}

BODY(run_program) {
    static void (*const calls[])(unsigned slot) = {
        make,     bind_one,    listen_one,  connect_one,   connect_one, accept_one, accept_one,
        send_one, send_one,    receive_one, receive_one,   name_one,    ask_one,    poll_one,
        poll_one, look_at_one, pair_one,    duplicate_one, shut_one,    close_one};
    state = program.seed * 7919 + 1;
    for (unsigned i = 0; i < SLOTS; i++)
        slots[i] = -1;
    /* So that most programs come to connections. */
    make(0);
    make(1);
    bind_one(0);
    listen_one(0);
    for (unsigned i = 0; i < CALLS && have_room(); i++)
        calls[draw(sizeof calls / sizeof *calls)](draw(4) != 0 ? draw(3) : draw(SLOTS));
    for (unsigned i = 0; i < SLOTS; i++)
        close(slots[i]);
    return NULL;
}

/* Where the first lines differ. */
static bool are_alike(void) {
    if (noted[0].size == noted[1].size && memcmp(noted[0].text, noted[1].text, noted[0].size) == 0)
        return true;
    size_t line = 0, at = 0, first = 0;
    while (at < noted[0].size && noted[0].text[at] == noted[1].text[at])
        if (noted[0].text[at++] == '\n')
            line = at;
    first = getenv("ALL") != NULL ? 0 : line > 900 ? line - 900 : 0;
    fprintf(stderr, "program %llu of %s, after:\n%.*s", (unsigned long long)program.seed,
            program.internet ? "TCP" : "AF_UNIX", (int)(line - first), noted[0].text + first);
    for (int i = 0; i < 2; i++)
        fprintf(stderr, "%s: %.*s\n", i == 0 ? "the machine" : "the simulation", 80,
                noted[i].text + line);
    return false;
}

/* One that is free on the machine, and that neither system chooses by itself. */
static uint16_t free_port(void) {
    enum { FIRST = 20000, COUNT = 10000 };
    static unsigned last;
    for (;;) {
        uint16_t port = (uint16_t)(FIRST + ((unsigned)getpid() * 37 + ++last) % COUNT);
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY)};
        int probe = socket(AF_INET, SOCK_STREAM, 0);
        bool is_free = bind(probe, (struct sockaddr *)&address, sizeof address) == 0;
        close(probe);
        if (is_free)
            return port;
    }
}

static void compare(bool internet, unsigned programs) {
    for (unsigned seed = 1; seed <= programs; seed++) {
        program = (program_t){.internet = internet, .seed = seed};
        memset(noted, 0, sizeof noted);
        for (int i = 0; i < NAMES && internet; i++)
            ports[i] = free_port();
        now = &noted[0];
        run_program(NULL);
        now = &noted[1];
        CHECK_EQUAL(haft_io_simulate_with(&with_network, run_program, NULL), 0);
        CHECK(are_alike());
        if (check_failures > 0)
            return;
    }
}

static void local_sockets_are_as_the_machines(void) {
    compare(false, 1000);
}

/* ---- What goes wrong at both ends, in which order ---- */

static void note_receive(const char *what, int socket, size_t size, int flags) {
    char bytes[64];
    errno = 0;
    ssize_t got = recv(socket, bytes, size, flags);
    note("%s: %zd %s\n", what, got, got < 0 ? strerror(errno) : "");
}
static void note_send(const char *what, int socket, size_t size) {
    static const char bytes[300000];
    errno = 0;
    ssize_t sent = send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    note("%s: %zd %s\n", what, sent, sent < 0 ? strerror(errno) : "");
}
static void note_several(const char *what, int socket, unsigned count, int flags) {
    char bytes[4][64];
    struct iovec parts[4];
    struct mmsghdr messages[4];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){bytes[i], 5};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
#ifdef EMULATED /* whose recvmmsg(2) gives an error later than Linux does */
    (void)what, (void)socket, (void)count, (void)flags;
    return;
#endif
    errno = 0;
    int got = recvmmsg(socket, messages, count, flags, NULL);
    note("%s: %d %s", what, got, got < 0 ? strerror(errno) : "");
    for (int i = 0; i < got; i++)
        note(" %u", messages[i].msg_len);
    note("\n");
}

/* The second end is closed with bytes in it, after it has sent some. */
static void make_lost(int ends[2]) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(write(ends[0], "unread", 6) + write(ends[1], "some bytes", 10), 16);
    CHECK_EQUAL(close(ends[1]), 0);
}
static void lose_connections(void) {
    static const int ways[] = {0, MSG_WAITALL, MSG_DONTWAIT, MSG_WAITALL | MSG_DONTWAIT};
    int ends[2];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        make_lost(ends);
        note_receive("part", ends[0], 4, ways[i]);
        note_receive("more than there is", ends[0], 20, ways[i]);
        for (int j = 0; j < 3; j++)
            note_receive("then", ends[0], 20, ways[i]);
        note_send("send", ends[0], 3);
        close(ends[0]);
        make_lost(ends);
        note_send("send first", ends[0], 3);
        note_receive("then", ends[0], 20, ways[i]);
        note_receive("then", ends[0], 20, ways[i]);
        close(ends[0]);
        for (unsigned count = 1; count < 5; count++) {
            make_lost(ends);
            for (int j = 0; j < 4; j++)
                note_several("several", ends[0], count, ways[i] & ~MSG_WAITALL);
            close(ends[0]);
        }
    }
}

static void make_datagrams(int ends[2]) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    CHECK_EQUAL(write(ends[0], "one", 3) + write(ends[1], "two", 3), 6);
}
static void shut_datagrams(void) {
    static const int ways[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
    int ends[2];
    for (size_t i = 0; i < 3; i++)
        for (int other = 0; other < 3; other++) {
            make_datagrams(ends);
            CHECK_EQUAL(shutdown(ends[0], ways[i]), 0);
            if (other == 1)
                CHECK_EQUAL(shutdown(ends[1], ways[i]), 0);
            if (other == 2)
                CHECK_EQUAL(close(ends[1]), 0);
            note("way %zu, other %d\n", i, other);
            if (other != 2) /* kernels differ */
                note_send("large", ends[0], 300000);
            note_send("small", ends[0], 3);
            if (other != 2)
                note_send("to it", ends[1], 3);
            for (int j = 0; j < 4; j++)
                note_receive("receive", ends[0], 20, MSG_DONTWAIT);
            note_several("several", ends[0], 3, MSG_DONTWAIT);
            if (ways[i] != SHUT_WR) /* otherwise it waits */
                note_receive("wait", ends[0], 20, 0);
            if (other == 1 && ways[i] != SHUT_WR)
                note_receive("wait there", ends[1], 20, 0), note_receive("again", ends[1], 20, 0);
            note_send("again", ends[0], 3);
            close(ends[0]);
            if (other != 2)
                close(ends[1]);
        }
}

static int pass_one(int descriptor, int flags) {
    int ends[2], passed = -1;
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {.msg_iov = &(struct iovec){"x", 1},
                             .msg_iovlen = 1,
                             .msg_control = room,
                             .msg_controllen = sizeof room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    CHECK_EQUAL(sendmsg(ends[0], &message, 0), 1);
    char byte;
    message.msg_iov = &(struct iovec){&byte, 1};
    CHECK_EQUAL(recvmsg(ends[1], &message, flags), 1);
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    CHECK_EQUAL(close(ends[0]) + close(ends[1]), 0);
    return passed;
}
static void keep_flags(void) {
    int made[16], count = 0, ends[2], yes = 1;
    made[count++] = socket(AF_UNIX, SOCK_STREAM, 0);
    made[count++] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, made + count), 0);
    count += 2;
    made[count++] = dup(made[1]);
    made[count++] = fcntl(made[0], F_DUPFD_CLOEXEC, 0);
    made[count++] = fcntl(made[1], F_DUPFD, 0);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    made[count++] = ends[0];
    made[count++] = ends[1];
    made[count++] = pass_one(ends[0], 0);
    made[count++] = pass_one(ends[0], MSG_CMSG_CLOEXEC);
    made[count++] = pass_one(STDERR_FILENO, 0);
    made[count++] = pass_one(STDERR_FILENO, MSG_CMSG_CLOEXEC);
    for (int i = 0; i < count; i++) {
        note("%d: %d", i, fcntl(made[i], F_GETFD));
        CHECK_EQUAL(fcntl(made[i], F_SETFD, i % 2), 0);
        note(" %d", fcntl(made[i], F_GETFD));
        CHECK_EQUAL(ioctl(made[i], FIOCLEX, &yes), 0);
        note(" %d", fcntl(made[i], F_GETFD));
        CHECK_EQUAL(ioctl(made[i], FIONCLEX, &yes), 0);
        note(" %d\n", fcntl(made[i], F_GETFD));
    }
    for (int i = 0; i < count; i++)
        close(made[i]);
}

BODY(run_scenes) {
    lose_connections();
    shut_datagrams();
    keep_flags();
    return NULL;
}
static void ends_and_errors_come_in_the_machines_order(void) {
    memset(noted, 0, sizeof noted);
    now = &noted[0];
    run_scenes(NULL);
    now = &noted[1];
    CHECK_EQUAL(haft_io_simulate_with(&with_network, run_scenes, NULL), 0);
    CHECK(are_alike());
}

static void connections_of_tcp_are_as_the_machines(void) {
    compare(true, 100);
}

/* ---- What waits ---- */

#define ADDRESS(port)                                                                              \
    (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET,                                \
                                             .sin_port = htons(port),                              \
                                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},           \
        sizeof(struct sockaddr_in)

static int listening(uint16_t port, int backlog) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0);
    CHECK_EQUAL(bind(listener, ADDRESS(port)), 0);
    CHECK_EQUAL(listen(listener, backlog), 0);
    return listener;
}
static int connected(uint16_t port) {
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(client, ADDRESS(port)), 0);
    return client;
}

#define CHECK_FAILS(call, error)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK_EQUAL(call, -1);                                                                     \
        CHECK_EQUAL(errno, error);                                                                 \
    } while (0)

enum { MUCH = 100000 };
static char much[MUCH];

static void *serve(void *argument) {
    int listener = (int)(intptr_t)argument, connection;
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        char bytes[300];
        for (ssize_t got; (got = read(connection, bytes, sizeof bytes)) > 0;)
            CHECK_EQUAL(write(connection, bytes, (size_t)got), got);
        CHECK_EQUAL(close(connection), 0);
    }
    CHECK_EQUAL(errno, EINVAL); /* It was shut down. */
    return NULL;
}
static void *send_much(void *argument) {
    int client = (int)(intptr_t)argument;
    CHECK_EQUAL(send(client, much, MUCH, 0), MUCH);
    CHECK_EQUAL(shutdown(client, SHUT_WR), 0);
    return NULL;
}
BODY(echo_much) {
    static char back[MUCH];
    int listener = listening(80, 3);
    haft_io_spawn(serve, (void *)(intptr_t)listener);
    for (int i = 0; i < 3; i++) {
        int client = connected(80);
        haft_io_spawn(send_much, (void *)(intptr_t)client);
        CHECK_EQUAL(recv(client, back, MUCH, MSG_WAITALL), MUCH);
        CHECK_EQUAL(recv(client, back, 1, 0), 0);
        CHECK_EQUAL(close(client), 0);
    }
    CHECK_EQUAL(shutdown(listener, SHUT_RD), 0);
    int refused = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_FAILS(connect(refused, ADDRESS(80)), ECONNREFUSED);
    CHECK_EQUAL(close(refused), 0);
    haft_io_sleep(1);
    CHECK_EQUAL(close(listener), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void tasks_serve_each_other(void) {
    for (uint64_t seed = 1; seed <= 20; seed++)
        CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = seed,
                                                                          .network = true,
                                                                          .short_counts = true,
                                                                          .switches_one_in = 3},
                                          echo_much, NULL),
                    0);
}

BODY(wait_with_limits) {
    int listener = listening(80, 0), client = connected(80), byte;
    struct timeval hour = {3600, 0};
    int64_t begun = haft_io_now();
    CHECK_EQUAL(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour), 0);
    CHECK_FAILS(read(client, &byte, 1), EAGAIN);
    CHECK_EQUAL((haft_io_now() - begun) / HAFT_IO_SECOND, 3600);
    /* The listener has no room. */
    int late = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(setsockopt(late, SOL_SOCKET, SO_SNDTIMEO, &hour, sizeof hour), 0);
    CHECK_FAILS(connect(late, ADDRESS(80)), EINPROGRESS);
    CHECK_EQUAL((haft_io_now() - begun) / HAFT_IO_SECOND, 7200);
    struct pollfd entry = {late, POLLOUT, 0};
    CHECK_EQUAL(poll(&entry, 1, 1000), 0);
    int accepted = accept(listener, NULL, NULL);
    CHECK_EQUAL(poll(&entry, 1, -1), 1);
    CHECK_EQUAL(entry.revents, POLLOUT);
    int error = -1;
    socklen_t size = sizeof error;
    CHECK_EQUAL(getsockopt(late, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    CHECK_EQUAL(error, 0);
    CHECK_FAILS(connect(late, ADDRESS(80)), EISCONN);
    /* One that is under way when the listener goes. */
    int lost = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_FAILS(connect(lost, ADDRESS(80)), EINPROGRESS);
    CHECK_EQUAL(close(listener), 0);
    entry.fd = lost;
    CHECK_EQUAL(poll(&entry, 1, -1), 1);
    CHECK((entry.revents & POLLERR) != 0);
    CHECK_EQUAL(getsockopt(lost, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    CHECK_EQUAL(error, ECONNREFUSED);
    CHECK_EQUAL(getsockopt(lost, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    CHECK_EQUAL(error, 0);
    CHECK_FAILS(read(late, &byte, 1), ECONNRESET);
    CHECK_EQUAL(read(late, &byte, 1), 0);
    /* One that waits is closed. */
    listener = listening(81, 0);
    int first = connected(81), second = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_FAILS(connect(second, ADDRESS(81)), EINPROGRESS);
    int again = dup(second);
    CHECK_EQUAL(close(second), 0);
    CHECK_FAILS(connect(again, ADDRESS(81)), EALREADY);
    CHECK_EQUAL(close(again), 0);
    int numbers[] = {first, listener, lost, late, accepted, client};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CHECK_EQUAL(close(numbers[i]), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void limits_of_time_are_virtual(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, wait_with_limits, NULL), 0);
}

static void *accept_for_ever(void *argument) {
    CHECK_FAILS(accept((int)(intptr_t)argument, NULL, NULL), ECANCELED);
    return NULL;
}
static void *cancel_accept(void *argument) {
    haft_io_spawn(accept_for_ever, argument);
    haft_io_sleep(HAFT_IO_SECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void *read_until_closed(void *argument) {
    CHECK_FAILS(read((int)(intptr_t)argument, &(char){0}, 1), EBADF);
    return NULL;
}
BODY(end_waits) {
    int listener = listening(80, 0), client = connected(80);
    CHECK_EQUAL(haft_io_scope(cancel_accept, (void *)(intptr_t)listening(81, 0), NULL), -ECANCELED);
    haft_io_spawn(read_until_closed, (void *)(intptr_t)client);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(close(client), 0);
    CHECK_EQUAL(close(listener), 0);
    return NULL;
}
static void waits_end_by_cancels_and_closes(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, end_waits, NULL), 0);
}

/* ---- Sockets that are about to connect ---- */

BODY(use_one_that_connects) {
    int listener = listening(80, 0), first = connected(80);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_FAILS(connect(client, ADDRESS(80)), EINPROGRESS);
    CHECK_FAILS(send(client, "x", 1, MSG_NOSIGNAL), EAGAIN);
    CHECK_FAILS(recv(client, &(char){0}, 1, 0), EAGAIN);
    CHECK_FAILS(bind(client, ADDRESS(81)), EINVAL);
    CHECK_FAILS(listen(client, 1), EINVAL);
    /* It stops, and may begin again. */
    CHECK_EQUAL(shutdown(client, SHUT_RDWR), 0);
    struct pollfd entry = {client, POLLOUT, 0};
    CHECK_EQUAL(poll(&entry, 1, 0), 1);
    CHECK((entry.revents & POLLERR) != 0);
    CHECK_FAILS(connect(client, ADDRESS(80)), EINPROGRESS);
    CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0);
    CHECK_EQUAL(poll(&entry, 1, -1), 1);
    CHECK_EQUAL(entry.revents, POLLOUT);
    CHECK_EQUAL(send(client, "x", 1, MSG_NOSIGNAL), 1);
    CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0);
    int numbers[] = {listener, first, client};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CHECK_EQUAL(close(numbers[i]), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void one_that_connects_is_neither_bound_nor_used(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, use_one_that_connects, NULL), 0);
}

static void *connect_by_effect(void *argument) {
    CHECK_EQUAL(haft_io_connect((int)(intptr_t)argument, ADDRESS(80)), 0);
    return NULL;
}
static void *connect_by_call(void *argument) {
    CHECK_EQUAL(connect((int)(intptr_t)argument, ADDRESS(80)), 0);
    return NULL;
}
static void *send_by_call(void *argument) {
    CHECK_EQUAL(send((int)(intptr_t)argument, "x", 1, 0), 1);
    return NULL;
}
BODY(connect_in_both_ways) {
    int listener = listening(80, 0), first = connected(80),
        client = socket(AF_INET, SOCK_STREAM, 0);
    haft_io_spawn(connect_by_effect, (void *)(intptr_t)client);
    haft_io_sleep(1);
    haft_io_spawn(connect_by_call, (void *)(intptr_t)client);
    haft_io_spawn(send_by_call, (void *)(intptr_t)client);
    haft_io_sleep(1);
    CHECK_FAILS(listen(client, 1), EINVAL);
    CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0);
    CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0);
    int numbers[] = {listener, first, client};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CHECK_EQUAL(close(numbers[i]), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void a_connect_by_either_way_sees_the_other(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, connect_in_both_ways, NULL), 0);
}

/* The room that was given to the client is its own, until it has taken it or has failed. */
BODY(listen_again) {
    int listener = listening(80, 0), first = connected(80),
        client = socket(AF_INET, SOCK_STREAM, 0);
    haft_io_spawn(connect_by_effect, (void *)(intptr_t)client);
    haft_io_sleep(1);
    CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0); /* The client has room, but no turn yet. */
    CHECK_EQUAL(shutdown(listener, SHUT_RD), 0);
    CHECK_EQUAL(listen(listener, 0), 0);
    for (int i = 0; i < 3; i++) {
        haft_io_sleep(1);
        struct pollfd entry = {listener, POLLIN, 0};
        CHECK_EQUAL(poll(&entry, 1, 0), 1);
        CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0);
        CHECK_EQUAL(close(connected(80)), 0);
    }
    CHECK_EQUAL(close(first), 0);
    return NULL;
}
static void a_listener_may_listen_again(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, listen_again, NULL), 0);
}

/* ---- Waits that never end ---- */

BODY(connect_without_room) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "service"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(listen(listener, 0), 0);
    for (int i = 0; i < 2; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM, 0);
        int code = connect(client, (struct sockaddr *)&address, sizeof address);
        CHECK(i == 0 ? code == 0 : code == -1 && errno == ECANCELED);
    }
    return NULL;
}
BODY(peek_at_more_than_comes) {
    int listener = listening(80, 1), client = connected(80), end = accept(listener, NULL, NULL);
    char bytes[8];
    CHECK_EQUAL(write(client, "abc", 3), 3);
    CHECK_FAILS(recv(end, bytes, sizeof bytes, MSG_PEEK | MSG_WAITALL), ECANCELED);
    return NULL;
}
static void what_waits_for_ever_is_reported(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, connect_without_room, NULL), -EDEADLK);
    CHECK_EQUAL(haft_io_simulate_with(&with_network, peek_at_more_than_comes, NULL), -EDEADLK);
}

/* ---- Names, options, datagrams ---- */

BODY(use_names) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    CHECK_EQUAL(getaddrinfo("service.example", "80", &hints, &found), 0);
    CHECK_EQUAL(found->ai_family, AF_INET);
    int listener = listening(80, 5), client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(client, found->ai_addr, found->ai_addrlen), 0);
    freeaddrinfo(found);
    hints.ai_family = AF_INET6;
    CHECK_EQUAL(getaddrinfo("service.example", "80", &hints, &found), 0);
    CHECK_EQUAL(found->ai_family, AF_INET6);
    freeaddrinfo(found);
    hints.ai_flags = AI_NUMERICHOST; /* Is it a number? */
    CHECK_EQUAL(getaddrinfo("service.example", "80", &hints, &found), EAI_NONAME);
    CHECK_EQUAL(getaddrinfo("::1", "80", &hints, &found), 0);
    freeaddrinfo(found);
    const struct hostent *host = gethostbyname("another.example");
    CHECK(host != NULL && host->h_addrtype == AF_INET);
    struct sockaddr_in6 address;
    socklen_t size = sizeof address;
    CHECK_EQUAL(getsockname(client, (struct sockaddr *)&address, &size), 0);
    CHECK_EQUAL(size, sizeof(struct sockaddr_in));
    size = 2; /* as much as there is room for, and the whole size */
    address.sin6_port = 7;
    CHECK_EQUAL(getpeername(client, (struct sockaddr *)&address, &size), 0);
    CHECK_EQUAL(size, sizeof(struct sockaddr_in));
    CHECK_EQUAL(address.sin6_family, AF_INET);
    CHECK_EQUAL(address.sin6_port, 7);
    CHECK_FAILS(getpeername(listener, (struct sockaddr *)&address, &size), ENOTCONN);
    CHECK_FAILS(getsockname(client, NULL, &size), EFAULT);
    /* Two of IPv6 at one place. */
    int yes = 1, six[3];
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(90)};
    for (int i = 0; i < 3; i++) {
        six[i] = socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
        CHECK_EQUAL(setsockopt(six[i], SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes), 0);
        yes = i < 1;
    }
    CHECK_EQUAL(bind(six[0], (struct sockaddr *)&any, sizeof any), 0);
    CHECK_EQUAL(bind(six[1], (struct sockaddr *)&any, sizeof any), 0);
    CHECK_FAILS(bind(six[2], (struct sockaddr *)&any, sizeof any), EADDRINUSE);
    CHECK_EQUAL(listen(six[0], 1), 0);
    CHECK_EQUAL(close(connected(90)), 0);
    CHECK_EQUAL(listen(six[1], 1), 0);
    CHECK_EQUAL(close(connected(90)), 0);
    struct pollfd both[] = {{six[0], POLLIN, 0}, {six[1], POLLIN, 0}};
    CHECK_EQUAL(poll(both, 2, 0), 2);
    return NULL;
}
static void every_name_is_the_one_hosts(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, use_names, NULL), 0);
}

BODY(use_options) {
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), value = 1;
    CHECK_EQUAL(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value), 0);
    CHECK_EQUAL(setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value), 0);
    value = 0;
    socklen_t size = sizeof value;
    CHECK_EQUAL(getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
    CHECK_EQUAL(value, 1);
    value = 5;
    CHECK_EQUAL(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value), 0);
    CHECK_EQUAL(getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
    CHECK_EQUAL(value, 5);
    CHECK_EQUAL(getsockopt(client, IPPROTO_IP, IP_TTL, &value, &size), 0);
    CHECK_EQUAL(value, 64);
    CHECK_FAILS(setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &value, 1), EINVAL);
    CHECK_FAILS(setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, NULL, 4), EFAULT);
    struct timeval wrong = {0, 1000000};
    CHECK_FAILS(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof wrong), EDOM);
    CHECK_FAILS(getsockopt(client, SOL_SOCKET, SO_TYPE, NULL, &size), EFAULT);
    CHECK_FAILS(setsockopt(client + 1, SOL_SOCKET, SO_TYPE, &value, sizeof value), EBADF);
    /* Modes. */
    CHECK_EQUAL(fcntl(client, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR | O_NONBLOCK);
    value = 0;
    CHECK_EQUAL(ioctl(client, FIONBIO, &value), 0);
    CHECK_EQUAL(fcntl(client, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQUAL(fcntl(client, F_SETFL, O_NONBLOCK), 0);
    CHECK_EQUAL(fcntl(client, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    CHECK_FAILS(fcntl(client, -1), EINVAL);
    CHECK_FAILS(ioctl(client, TIOCGWINSZ, &value), ENOTTY);
    CHECK_FAILS(shutdown(client, 7), EINVAL);
    CHECK_FAILS(listen(client + 1, 1), EBADF);
    CHECK_EQUAL(close(client), 0);
    CHECK_FAILS(fcntl(client, F_GETFD), EBADF);
    return NULL;
}
static void options_are_kept(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, use_options, NULL), 0);
}

BODY(give_nothing) {
    void *volatile nothing = NULL; /* which compilers would warn of */
    volatile int negative = -1;
    int listener = listening(80, 1), client = connected(80);
    struct sockaddr_in address;
    socklen_t size = UINT32_MAX;
    CHECK_FAILS(socketpair(AF_UNIX, SOCK_STREAM, 0, nothing), EFAULT);
    CHECK_FAILS(accept(listener, (struct sockaddr *)&address, NULL), EFAULT);
    CHECK_EQUAL(read(client, &(char){0}, 1), 0); /* The connection was lost. */
    CHECK_FAILS(getsockopt(client, SOL_SOCKET, SO_TYPE, &address, &size), EINVAL);
    CHECK_FAILS(getrandom(nothing, 1, 0), EFAULT);
    CHECK_FAILS(getrandom(&address, 1, 1U << 31), EINVAL);
    CHECK_FAILS(readv(client, nothing, 1), EFAULT);
    CHECK_FAILS(recvmmsg(client, nothing, 1, MSG_DONTWAIT, NULL), EFAULT);
    CHECK_FAILS(readv(client, nothing, negative), EINVAL);
    return NULL;
}
static void what_is_not_given_is_refused(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, give_nothing, NULL), 0);
}

BODY(ask_for_protocols) {
    CHECK_FAILS(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
    CHECK_FAILS(socket(AF_INET6, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
    CHECK_FAILS(socket(AF_UNIX, SOCK_STREAM, 7), EPROTONOSUPPORT);
    static const int right[][3] = {{AF_INET, SOCK_STREAM, IPPROTO_TCP},
                                   {AF_INET6, SOCK_DGRAM, IPPROTO_UDP},
                                   {AF_UNIX, SOCK_STREAM, PF_UNIX}};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        CHECK_EQUAL(close(socket(right[i][0], right[i][1], right[i][2])), 0);
    return NULL;
}
static void a_socket_has_a_protocol_of_its_type(void) {
    CHECK_RUNS(ask_for_protocols);
    CHECK_EQUAL(haft_io_simulate_with(&with_network, ask_for_protocols, NULL), 0);
}

BODY(use_datagrams) {
    int one = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    char text[8] = "";
    CHECK_EQUAL(bind(one, ADDRESS(53)), 0);
    CHECK_FAILS(bind(one, ADDRESS(54)), EINVAL);
    CHECK_FAILS(bind(other, ADDRESS(53)), EADDRINUSE);
    CHECK_FAILS(listen(one, 1), EOPNOTSUPP);
    CHECK_EQUAL(sendto(other, "ask", 3, 0, ADDRESS(53)), 3);
    int unread = 0;
    CHECK_EQUAL(ioctl(one, FIONREAD, &unread), 0);
    CHECK_EQUAL(unread, 3);
    CHECK_EQUAL(recvfrom(one, text, sizeof text, 0, (struct sockaddr *)&from, &size), 3);
    CHECK_EQUAL(connect(one, (struct sockaddr *)&from, size), 0);
    CHECK_EQUAL(write(one, "tell", 4), 4);
    CHECK_EQUAL(write(one, "more", 4), 4);
    struct mmsghdr messages[3];
    struct iovec parts[3];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 3; i++) {
        parts[i] = (struct iovec){text, sizeof text};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    CHECK_EQUAL(recvmmsg(other, messages, 3, MSG_WAITFORONE, NULL), 2);
    CHECK_EQUAL(messages[1].msg_len, 4);
    CHECK_FAILS(recvmmsg(other, messages, 3, MSG_DONTWAIT, NULL), EAGAIN);
    CHECK_EQUAL(sendmmsg(one, messages, 2, 0), 2);
    CHECK_EQUAL(close(other), 0);
    CHECK_EQUAL(write(one, "lost", 4), 4);
    CHECK_FAILS(read(one, text, 1), ECONNREFUSED);
    CHECK_EQUAL(close(one), 0);
    return NULL;
}
static void datagrams_come_with_their_addresses(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, use_datagrams, NULL), 0);
}

static void *receive_until_shut(void *argument) {
    CHECK_EQUAL(recv((int)(intptr_t)argument, &(char){0}, 1, 0), 0);
    return NULL;
}
BODY(end_a_receive) {
    uint16_t port = free_port();
    int receiver = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQUAL(bind(receiver, ADDRESS(port)), 0);
    haft_io_spawn(receive_until_shut, (void *)(intptr_t)receiver);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_FAILS(shutdown(receiver, SHUT_RDWR), ENOTCONN); /* as Linux has it */
    struct pollfd entry = {receiver, POLLIN | POLLRDHUP, 0};
    CHECK_EQUAL(poll(&entry, 1, -1), 1);
    CHECK_EQUAL(entry.revents, POLLIN | POLLRDHUP | POLLHUP);
    CHECK_FAILS(sendto(receiver, "x", 1, MSG_NOSIGNAL, ADDRESS(port)), EPIPE);
    return NULL;
}
static void a_shutdown_ends_the_wait_for_a_datagram(void) {
    CHECK_RUNS(end_a_receive);
    CHECK_EQUAL(haft_io_simulate_with(&with_network, end_a_receive, NULL), 0);
}

/* ---- Beside the simulation ---- */

BODY(look_at_number) {
    int *number = argument;
    return (void *)(intptr_t)fcntl(*number, F_GETFD);
}
BODY(use_both_systems) {
    int simulated = socket(AF_INET, SOCK_STREAM, 0), ends[2];
    CHECK(simulated >= 1 << 20);
    int file = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(file >= 0 && file < 1 << 20);
    CHECK_EQUAL(write(file, "x", 1), 1);
    CHECK_EQUAL(pipe(ends), 0); /* for a child, for example */
    CHECK(ends[0] < 1 << 20);
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    CHECK_EQUAL(read(ends[0], &(char){0}, 1), 1);
    /* The thread has no task then, and asks the machine. */
    CHECK_EQUAL((intptr_t)haft_io_block_thread(look_at_number, &simulated), -1);
    CHECK_EQUAL((intptr_t)haft_io_block_thread(look_at_number, &file), FD_CLOEXEC);
    CHECK_FAILS(dup2(simulated, file), EBADF);
    int raw = socket(AF_NETLINK, SOCK_DGRAM, 0); /* the kernel's own */
    CHECK(raw < 1 << 20);
    int numbers[] = {file, ends[0], ends[1], raw, simulated};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        close(numbers[i]);
    return NULL;
}
static void *write_later(void *argument) {
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(write((int)(intptr_t)argument, "x", 1), 1);
    return NULL;
}
BODY(poll_both_systems) {
    int listener = listening(80, 1), ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_spawn(write_later, (void *)(intptr_t)ends[1]);
    struct pollfd entries[] = {{listener, POLLIN, 0}, {ends[0], POLLIN, 0}, {-1, POLLIN, 0}};
    int64_t begun = haft_io_now();
    CHECK_EQUAL(poll(entries, 3, 500), 0);
    CHECK_EQUAL(poll(entries, 3, -1), 1);
    CHECK_EQUAL(entries[1].revents, POLLIN);
    CHECK_EQUAL((haft_io_now() - begun) / HAFT_IO_MILLISECOND, 1000);
    CHECK_EQUAL(read(ends[0], &(char){0}, 1), 1);
    int client = connected(80);
    CHECK_EQUAL(poll(entries, 3, -1), 1);
    CHECK_EQUAL(entries[0].revents, POLLIN);
    int numbers[] = {listener, client, ends[0], ends[1]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CHECK_EQUAL(close(numbers[i]), 0);
    return NULL;
}
static void a_poll_of_both_systems_sees_both(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, poll_both_systems, NULL), 0);
}

BODY(make_real_socket) {
    int made = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(made >= 0 && made < 1 << 20);
    CHECK_EQUAL(close(made), 0);
    return NULL;
}
static void the_machine_is_there_beside_it(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, use_both_systems, NULL), 0);
    CHECK_EQUAL(haft_io_simulate(make_real_socket, NULL), 0);
    CHECK_FAILS(fcntl(1 << 28, F_GETFD), EBADF);
}

static int kept;
BODY(keep_a_number) {
    kept = socket(AF_INET, SOCK_STREAM, 0);
    return NULL;
}
BODY(use_that_number) {
    int own = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_FAILS(fcntl(kept, F_GETFD), EBADF);
    CHECK_FAILS(close(kept), EBADF);
    CHECK_EQUAL(close(own), 0);
    return NULL;
}
static void a_number_of_another_simulation_is_none(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, keep_a_number, NULL), 0);
    for (uint64_t seed = 2; seed <= 10; seed++)
        CHECK_EQUAL(
            haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = seed, .network = true},
                                  use_that_number, NULL),
            0);
}

BODY(pass_along) {
    int pair[2], listener = listening(80, 1), client = connected(80);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &(struct iovec){"x", 1},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    memset(&control, 0, sizeof control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &client, sizeof client);
    control.header.cmsg_len = CMSG_LEN(1000 * sizeof(int)); /* more than there is */
    CHECK_FAILS(sendmsg(pair[0], &message, 0), EINVAL);
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    CHECK_EQUAL(sendmsg(pair[0], &message, 0), 1);
    CHECK_EQUAL(close(client), 0);
    char byte;
    message.msg_iov->iov_base = &byte;
    CHECK_EQUAL(recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC), 1);
    memcpy(&client, CMSG_DATA(&control.header), sizeof client);
    CHECK_EQUAL(write(client, "hello", 5), 5);
    char text[8] = "";
    CHECK_EQUAL(read(accept(listener, NULL, NULL), text, sizeof text), 5);
    CHECK(strcmp(text, "hello") == 0);
    return NULL;
}
static void sockets_are_passed_along(void) {
    CHECK_EQUAL(haft_io_simulate_with(&with_network, pass_along, NULL), 0);
}

/* Faults come to each call as they would to libhaft-io's own. */
static int failed, reset, made;
BODY(meet_faults) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0) {
        CHECK_EQUAL(errno, EMFILE);
        failed++;
        return NULL;
    }
    CHECK_EQUAL(bind(listener, ADDRESS(80)), 0);
    CHECK_EQUAL(listen(listener, 5), 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    if (client < 0 || connect(client, ADDRESS(80)) != 0) {
        CHECK(errno == EMFILE || errno == ECONNREFUSED || errno == ETIMEDOUT);
        failed++;
        return NULL;
    }
    int accepted = accept(listener, NULL, NULL);
    if (accepted < 0) {
        CHECK_EQUAL(errno, EMFILE);
        failed++;
    } else if (write(client, "x", 1) != 1 || read(accepted, &(char){0}, 1) != 1) {
        CHECK_EQUAL(errno, ECONNRESET);
        reset++;
    } else {
        made++;
    }
    return NULL;
}
static void faults_come_as_the_seed_decides(void) {
    int before[3] = {0};
    for (int round = 0; round < 2; round++) {
        failed = reset = made = 0;
        for (uint64_t seed = 1; seed <= 100; seed++)
            CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = seed,
                                                                              .network = true,
                                                                              .faults_one_in = 8},
                                              meet_faults, NULL),
                        0);
        CHECK(failed > 10 && reset > 5 && made > 10);
        CHECK(round == 0 || (before[0] == failed && before[1] == reset && before[2] == made));
        memcpy(before, (int[]){failed, reset, made}, sizeof before);
    }
}

int main(void) {
    RUN(ends_and_errors_come_in_the_machines_order);
    RUN(connections_of_tcp_are_as_the_machines);
    RUN(local_sockets_are_as_the_machines);
    RUN(tasks_serve_each_other);
    RUN(limits_of_time_are_virtual);
    RUN(waits_end_by_cancels_and_closes);
    RUN(one_that_connects_is_neither_bound_nor_used);
    RUN(a_connect_by_either_way_sees_the_other);
    RUN(a_listener_may_listen_again);
    RUN(what_waits_for_ever_is_reported);
    RUN(every_name_is_the_one_hosts);
    RUN(options_are_kept);
    RUN(what_is_not_given_is_refused);
    RUN(a_socket_has_a_protocol_of_its_type);
    RUN(datagrams_come_with_their_addresses);
    RUN(a_shutdown_ends_the_wait_for_a_datagram);
    RUN(the_machine_is_there_beside_it);
    RUN(a_poll_of_both_systems_sees_both);
    RUN(a_number_of_another_simulation_is_none);
    RUN(sockets_are_passed_along);
    RUN(faults_come_as_the_seed_decides);
    return check_end();
}
