/* SPDX-License-Identifier: MIT */
/* WebSocket: messages, frames, closes, limits of time and size, and clients that may not connect; compressed
   messages; the client. The clients of the server's tests send their frames byte by byte, so that
   they can break every rule; so does the server of the client's. */
#include "check_http.h"

#include <pthread.h>

enum { MIB = 1024 * 1024, NO_CODE = 1005, LOST = 1006 };

static haft_http_server_t *server;
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
static int last_code; /* with which the last WebSocket was closed */
static char last_reason[124];
static int last_result; /* of its handler's last receive */
static int open_sockets;

/* ---- Handlers ---- */

static void count_out(const int *unused) {
    (void)unused;
    __atomic_fetch_sub(&open_sockets, 1, __ATOMIC_SEQ_CST);
}

typedef int take_message_t(haft_http_websocket_t *socket,
                           const haft_http_websocket_message_t *message);

/* Its notes are checked when no socket is open any more. */
static int take_all(haft_http_request_t *request, const haft_http_websocket_options_t *options,
                    take_message_t *take) {
    haft_http_websocket_t *socket = haft_http_websocket_accept_with(options, request);
    haft_http_websocket_message_t message;
    if (socket == NULL)
        return 0;
    __attribute__((cleanup(count_out))) int counted =
        __atomic_add_fetch(&open_sockets, 1, __ATOMIC_SEQ_CST);
    CHECK(counted > 0 && haft_http_websocket_close_code(socket) == 0);
    int code = 0;
    while (code == 0 && (code = haft_http_websocket_receive(socket, &message)) == 0) {
        CHECK(message.bytes[message.size] == '\0');
        code = take(socket, &message);
    }
    pthread_mutex_lock(&noting);
    last_code = haft_http_websocket_close_code(socket);
    snprintf(last_reason, sizeof last_reason, "%s", haft_http_websocket_close_reason(socket));
    last_result = code;
    pthread_mutex_unlock(&noting);
    return code;
}

static int send_back(haft_http_websocket_t *socket, const haft_http_websocket_message_t *message) {
    return haft_http_websocket_send(socket, message->kind, message->bytes, message->size);
}

static int echo(haft_http_request_t *request, void *options) {
    return take_all(request, options, send_back);
}

enum { MANY = 50 };
static int received;
static bool dawdles; /* meanwhile nothing more is received */

static int drop(haft_http_websocket_t *socket, const haft_http_websocket_message_t *message) {
    (void)socket, (void)message;
    __atomic_fetch_add(&received, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&dawdles, __ATOMIC_SEQ_CST))
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return 0;
}

static int dawdle(haft_http_request_t *request, void *options) {
    return take_all(request, options, drop);
}

static int close_first(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    CHECK(socket != NULL && haft_http_websocket_protocol(socket) == NULL);
    CHECK(haft_http_websocket_close(socket, 1005, NULL) == -EINVAL);
    CHECK(haft_http_websocket_close(socket, 999, NULL) == -EINVAL);
    CHECK(haft_http_websocket_close(socket, 4000, "\xff") == -EINVAL);
    CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_TEXT, "\xc0\x80", 2) == -EINVAL);
    CHECK(haft_http_websocket_close(socket, 4000, "enough") == 0);
    CHECK(haft_http_websocket_close(socket, 4000, NULL) == -EPIPE);
    CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_TEXT, "a", 1) == -EPIPE);
    last_code = haft_http_websocket_close_code(socket);
    return 0;
}

static int return_at_once(haft_http_request_t *request, void *code) {
    CHECK(haft_http_websocket_accept(request) != NULL);
    return *(int *)code;
}

/* Has a deadline of its own, and goes on afterwards. */
static int be_impatient(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    haft_http_websocket_message_t message;
    {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_MILLISECOND);
        CHECK(haft_http_websocket_receive(socket, &message) == -ETIMEDOUT);
    }
    CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_TEXT, "late", 4) == 0);
    return haft_http_websocket_receive(socket, &message);
}

/* Sends from two other tasks while it receives. */
enum { OF_EACH = 20, SIZE_OF_EACH = 20000 };
static void *send_many(void *socket) {
    static char bytes[SIZE_OF_EACH];
    for (int i = 0; i < OF_EACH; i++)
        CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_BINARY, bytes, sizeof bytes) ==
              0);
    return NULL;
}

static void *send_and_receive(void *socket) {
    haft_http_websocket_message_t message;
    CHECK(haft_io_spawn(send_many, socket) == 0 && haft_io_spawn(send_many, socket) == 0);
    while (haft_http_websocket_receive(socket, &message) == 0)
        continue;
    return NULL;
}

static int send_from_tasks(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    return haft_io_scope_with(NULL, send_and_receive, socket, NULL);
}

static void *close_it(void *socket) {
    CHECK(haft_http_websocket_close(socket, 4001, NULL) == 0);
    return NULL;
}

static void *be_closed(void *socket) {
    haft_http_websocket_message_t message;
    CHECK(haft_io_spawn(close_it, socket) == 0);
    while (haft_http_websocket_receive(socket, &message) == 0) /* unless the other one drops it */
        CHECK(message.size == 4);
    last_code = haft_http_websocket_close_code(socket);
    return NULL;
}

static int close_from_task(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    return haft_io_scope_with(NULL, be_closed, socket, NULL);
}

/* ---- A client ---- */

#define HANDSHAKE                                                                                  \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

static void read_all(int from, void *into, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t piece = haft_io_read(from, (char *)into + got, size - got);
        CHECK(piece > 0);
        got += (size_t)piece;
    }
}

static char answer_head[1000]; /* of the last answer */

static int connect_with(uint16_t port, const char *path, const char *fields) {
    size_t size = 0;
    int to = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(to >= 0);
    snprintf(answer_head, sizeof answer_head, "GET %s" WITH(HANDSHAKE "%s"), path, fields);
    CHECK(haft_io_write_all(to, answer_head, strlen(answer_head)) == 0);
    do
        read_all(to, answer_head + size, 1);
    while (++size < 4 || memcmp(answer_head + size - 4, "\r\n\r\n", 4) != 0);
    answer_head[size] = '\0';
    CHECK(strstr(answer_head, "HTTP/1.1 101 ") == answer_head);
    CHECK(strstr(answer_head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != NULL);
    return to;
}

static int connect_to(uint16_t port, const char *path) {
    return connect_with(port, path, "");
}

static void free_frame(unsigned char *const *frame) {
    free(*frame);
}

/* A masked frame whose first byte this is. */
static void say(int to, int first, const char *bytes, size_t size) {
    static const unsigned char mask[4] = {1, 2, 0x80, 0xff};
    __attribute__((cleanup(free_frame))) unsigned char *frame = malloc(size + 14);
    size_t at = 2, lengths = size < 126 ? 0 : size < 65536 ? 2 : 8;
    frame[0] = (unsigned char)first;
    frame[1] = (unsigned char)(0x80 | (lengths == 0 ? size : lengths == 2 ? 126 : 127));
    for (size_t i = lengths; i-- > 0;)
        frame[at++] = (unsigned char)(size >> 8 * i);
    memcpy(frame + at, mask, 4);
    at += 4;
    for (size_t i = 0; i < size; i++)
        frame[at + i] = (unsigned char)bytes[i] ^ mask[i % 4];
    haft_io_write_all(to, frame, at + size); /* the server may have closed it */
}

/* A frame: its first byte, and what is in it, with a '\0' behind. */
static int hear(int from, char *into, size_t *size) {
    unsigned char head[10];
    read_all(from, head, 2);
    CHECK(head[1] < 128);
    *size = head[1];
    size_t lengths = *size < 126 ? 0 : *size == 126 ? 2 : 8;
    read_all(from, head + 2, lengths);
    for (size_t i = 0; i < lengths; i++)
        *size = (i == 0 ? 0 : *size << 8) | head[2 + i];
    CHECK(*size <= MIB);
    read_all(from, into, *size);
    into[*size] = '\0';
    return head[0];
}

static void expect(int from, int first, const char *bytes, size_t size) {
    static char heard[MIB + 1];
    size_t got;
    CHECK(hear(from, heard, &got) == first);
    CHECK(got == size && memcmp(heard, bytes, size) == 0);
}

/* The server closes, and then ends the connection. */
static void expect_close(int from, int code) {
    char bytes[2] = {(char)(code >> 8), (char)code}, byte;
    expect(from, 0x88, bytes, code == NO_CODE ? 0 : 2);
    while (haft_io_read(from, &byte, 1) > 0)
        continue;
    haft_io_close(from);
}

static void wait_for_end(void) {
    while (__atomic_load_n(&open_sockets, __ATOMIC_SEQ_CST) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
}

static int served; /* what the server has returned */
static void *serve(void *unused) {
    served = haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0));
    return unused;
}

static uint16_t start(void) {
    CHECK(haft_io_spawn(serve, NULL) == 0);
    while (haft_http_server_port(server) == 0)
        haft_io_yield();
    return haft_http_server_port(server);
}

/* ---- Cases ---- */

static void *echo_sizes(void *unused) {
    static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, MIB};
    char *bytes = calloc(MIB + 1, 1);
    int socket = connect_to(start(), "/echo");
    for (size_t i = 0; i < MIB; i++)
        bytes[i] = (char)(i * 7 % 251);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        say(socket, 0x82, bytes, sizes[i]);
        expect(socket, 0x82, bytes, sizes[i]);
    }
    say(socket, 0x81, "J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x98\x80", 14);
    expect(socket, 0x81, "J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x98\x80", 14);
    say(socket, 0x82, bytes, MIB + 1);
    expect_close(socket, 1009);
    wait_for_end();
    CHECK(last_code == 1009 && last_result == -EPIPE);
    free(bytes);
    haft_http_server_stop(server);
    return unused;
}

/* Pings come between fragments, and a character may be divided. */
static void *join_fragments(void *unused) {
    int socket = connect_to(start(), "/echo");
    say(socket, 0x01, "a\xc3", 2);
    say(socket, 0x89, "there?", 6);
    expect(socket, 0x8a, "there?", 6);
    say(socket, 0x00, "", 0);
    say(socket, 0x8a, "nobody has asked", 16);
    say(socket, 0x80, "\xb6z", 2);
    expect(socket, 0x81, "a\xc3\xb6z", 4);
    say(socket, 0x89, "", 0);
    expect(socket, 0x8a, "", 0);
    say(socket, 0x88,
        "\x0f\xa0"
        "bye",
        5);
    expect_close(socket, 4000);
    wait_for_end();
    CHECK(last_code == 4000 && strcmp(last_reason, "bye") == 0);
    haft_http_server_stop(server);
    return unused;
}

typedef struct {
    const char *bytes;
    size_t size;
    int code; /* with which the server closes */
} wrong_t;
#define BYTES(text) text, sizeof text - 1
#define MASK "\0\0\0\0"

static const wrong_t wrong[] = {
    {BYTES("\xc1\x81" MASK "a"), 1002}, /* reserved bits */
    {BYTES("\xa1\x81" MASK "a"), 1002},
    {BYTES("\x91\x81" MASK "a"), 1002},
    {BYTES("\x83\x80" MASK), 1002}, /* opcodes that are none */
    {BYTES("\x87\x80" MASK), 1002},
    {BYTES("\x8b\x80" MASK), 1002},
    {BYTES("\x8f\x80" MASK), 1002},
    {BYTES("\x81\x01"
           "a"),
     1002}, /* not masked */
    {BYTES("\x81\x00"), 1002},
    {BYTES("\x89\x00"), 1002},
    {BYTES("\x80\x81" MASK "a"), 1002}, /* goes on with nothing */
    {BYTES("\x01\x81" MASK "a"
           "\x81\x81" MASK "b"),
     1002},                                 /* begins in another message */
    {BYTES("\x09\x80" MASK), 1002},         /* a fragment of a ping */
    {BYTES("\x89\xfe\x00\x7e" MASK), 1002}, /* a long ping */
    {BYTES("\x81\xfe\x00\x7d" MASK), 1002}, /* a length that has a shorter form */
    {BYTES("\x81\xff\0\0\0\0\0\0\xff\xff" MASK), 1002},
    {BYTES("\x81\xff\x80\0\0\0\0\0\0\0" MASK), 1002},
    {BYTES("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" MASK "a"), 1009},
    {BYTES("\x81\x82" MASK "\xc0\x80"), 1007}, /* no UTF-8 */
    {BYTES("\x81\x83" MASK "\xed\xa0\x80"), 1007},
    {BYTES("\x81\x84" MASK "\xf4\x90\x80\x80"), 1007},
    {BYTES("\x81\x81" MASK "\xc3"), 1007},
    {BYTES("\x01\x81" MASK "\xe2"
           "\x80\x81" MASK "\x82"),
     1007},
    {BYTES("\x88\x81" MASK "\x03"), 1002},     /* half a code */
    {BYTES("\x88\x82" MASK "\x03\xe7"), 1002}, /* 999, 1004, 1005, 1006, 1015, 2000, 5000 */
    {BYTES("\x88\x82" MASK "\x03\xec"), 1002},
    {BYTES("\x88\x82" MASK "\x03\xed"), 1002},
    {BYTES("\x88\x82" MASK "\x03\xee"), 1002},
    {BYTES("\x88\x82" MASK "\x03\xf7"), 1002},
    {BYTES("\x88\x82" MASK "\x07\xd0"), 1002},
    {BYTES("\x88\x82" MASK "\x13\x88"), 1002},
    {BYTES("\x88\x83" MASK "\x03\xe8\xff"), 1007}, /* a reason that is no UTF-8 */
    {BYTES("\x88\x80" MASK), NO_CODE},             /* these are closes */
    {BYTES("\x88\x82" MASK "\x03\xe8"), 1000},
    {BYTES("\x88\x82" MASK "\x0b\xb8"), 3000},
    {BYTES("\x88\x82" MASK "\x13\x87"), 4999},
};

static void *break_rules(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int socket = connect_to(port, "/echo");
        CHECK(haft_io_write_all(socket, wrong[i].bytes, wrong[i].size) == 0);
        haft_io_shutdown(socket, SHUT_WR);
        expect_close(socket, wrong[i].code);
        wait_for_end();
        CHECK(last_code == wrong[i].code && last_result == -EPIPE);
    }
    haft_http_server_stop(server);
    return unused;
}

/* A message that comes byte by byte is the same. */
static void *trickle(void *unused) {
    int socket = connect_to(start(), "/echo");
    static const char frame[] = "\x81\xfe\x00\x7e" MASK;
    static const char text[126] = {0};
    for (size_t i = 0; i < sizeof frame - 1; i++) {
        CHECK(haft_io_write_all(socket, &frame[i], 1) == 0);
        haft_io_yield();
    }
    for (size_t i = 0; i < sizeof text; i++)
        CHECK(haft_io_write_all(socket, &text[i], 1) == 0);
    expect(socket, 0x81, text, sizeof text);
    haft_io_close(socket);
    wait_for_end();
    CHECK(last_code == LOST && last_result == -EPIPE);
    haft_http_server_stop(server);
    return unused;
}

static void *close_from_server(void *unused) {
    uint16_t port = start();
    int socket = connect_to(port, "/close");
    expect(socket, 0x88,
           "\x0f\xa0"
           "enough",
           8);
    say(socket, 0x81, "too late", 8);
    say(socket, 0x88, "\x0f\xa0", 2);
    char byte;
    CHECK(haft_io_read(socket, &byte, 1) == 0);
    haft_io_close(socket);
    CHECK(last_code == 4000);
    static const struct {
        const char *path;
        int code;
    } ends[] = {{"/return", 1000}, {"/error", 1011}};
    for (int i = 0; i < 2; i++) {
        socket = connect_to(port, ends[i].path);
        haft_io_shutdown(socket, SHUT_WR);
        expect_close(socket, ends[i].code);
    }
    socket = connect_to(port, "/closed");
    expect(socket, 0x88, "\x0f\xa1", 2);
    say(socket, 0x81, "last", 4);
    say(socket, 0x88, "", 0);
    CHECK(haft_io_read(socket, &byte, 1) == 0);
    CHECK(last_code == 4001);
    haft_io_close(socket);
    socket = connect_to(port, "/impatient");
    expect(socket, 0x81, "late", 4);
    say(socket, 0x88, "", 0);
    expect_close(socket, NO_CODE);
    haft_http_server_stop(server);
    return unused;
}

static void *hear_from_tasks(void *unused) {
    static const char bytes[SIZE_OF_EACH] = {0};
    int socket = connect_to(start(), "/tasks");
    for (int i = 0; i < 2 * OF_EACH; i++) {
        if (i % 4 == 0)
            say(socket, 0x81, "meanwhile", 9);
        expect(socket, 0x82, bytes, sizeof bytes);
    }
    say(socket, 0x88, "\x03\xe8", 2);
    expect_close(socket, 1000);
    haft_http_server_stop(server);
    return unused;
}

/* A server that stops sends a close frame, and waits for the client's. */
static void *stop_server(void *unused) {
    uint16_t port = start();
    int first = connect_to(port, "/echo"), second = connect_to(port, "/echo");
    say(first, 0x81, "a", 1);
    expect(first, 0x81, "a", 1);
    haft_http_server_stop(server);
    expect(first, 0x88, "\x03\xe9", 2);
    say(first, 0x88, "\x03\xe9", 2);
    expect(second, 0x88, "\x03\xe9", 2);
    haft_io_close(second); /* without an answer */
    char byte;
    CHECK(haft_io_read(first, &byte, 1) == 0);
    haft_io_close(first);
    wait_for_end();
    CHECK(last_code == 1001);
    return unused;
}

static void *say_many(void *socket) {
    static const char bytes[1000] = {0};
    for (int i = 0; i < MANY; i++)
        say(*(int *)socket, 0x82, bytes, sizeof bytes);
    return NULL;
}

/* A client that has sent more than the server has read when that is told to stop. */
static void *stop_in_the_middle(void *unused) {
    int socket = connect_to(start(), "/dawdle");
    __atomic_store_n(&received, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&dawdles, true, __ATOMIC_SEQ_CST);
    haft_io_task_t *saying = haft_io_async(say_many, &socket);
    while (__atomic_load_n(&received, __ATOMIC_SEQ_CST) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    __atomic_store_n(&dawdles, false, __ATOMIC_SEQ_CST);
    expect(socket, 0x88, "\x03\xe9", 2);
    CHECK(haft_io_join(saying, NULL) == 0);
    say(socket, 0x88, "\x03\xe9", 2);
    wait_for_end();
    CHECK(last_code == 1001 && last_result == -EPIPE);
    haft_io_close(socket);
    return unused;
}

/* Empty messages, as fast as it can, until the connection is lost. It reads nothing. */
static void *flood(void *socket) {
    enum { FRAME = 6, FRAMES = 10000 };
    static char frames[FRAMES * FRAME];
    for (size_t i = 0; i < sizeof frames; i += FRAME) {
        frames[i] = (char)0x82;
        frames[i + 1] = (char)0x80;
    }
    while (haft_io_write_all(*(int *)socket, frames, sizeof frames) == 0)
        continue;
    return NULL;
}

/* A client that never pauses, and does not answer the close. */
static void *stop_in_a_flood(void *unused) {
    pthread_t flooding;
    int socket = connect_to(start(), "/dawdle");
    __atomic_store_n(&received, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&dawdles, false, __ATOMIC_SEQ_CST);
    CHECK(pthread_create(&flooding, NULL, flood, &socket) == 0);
    while (__atomic_load_n(&received, __ATOMIC_SEQ_CST) < 100000)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    wait_for_end();
    haft_io_shutdown(socket, SHUT_RDWR); /* the join blocks the server's thread */
    pthread_join(flooding, NULL);
    CHECK(last_code == 1001 && last_result == -EPIPE);
    haft_io_close(socket);
    return unused;
}

/* With virtual time: a ping after each silence; without a pong the connection is lost. */
static void *be_silent(void *unused) {
    int socket = connect_to(start(), "/echo");
    int64_t begun = haft_io_now();
    for (int i = 0; i < 3; i++) {
        expect(socket, 0x89, "", 0);
        say(socket, 0x8a, "", 0);
    }
    CHECK(haft_io_now() - begun >= 90 * HAFT_IO_SECOND);
    expect(socket, 0x89, "", 0);
    char byte;
    CHECK(haft_io_read(socket, &byte, 1) <= 0);
    wait_for_end();
    CHECK(haft_io_now() - begun >= 130 * HAFT_IO_SECOND && last_code == LOST);
    haft_io_close(socket);
    haft_http_server_stop(server);
    return unused;
}

/* With virtual time: a message that takes too long; a close that is not answered. */
static void *be_slow(void *unused) {
    uint16_t port = start();
    int socket = connect_to(port, "/echo");
    say(socket, 0x01, "begin", 5);
    for (int i = 0; i < 4; i++) {
        haft_io_sleep(4 * HAFT_IO_SECOND);
        say(socket, 0x00, "on", 2);
    }
    expect_close(socket, 1008);
    /* Bytes that came in time before give no extra time. */
    static char much[800000];
    socket = connect_to(port, "/echo");
    say(socket, 0x02, much, sizeof much);
    int64_t begun = haft_io_now();
    expect_close(socket, 1008);
    CHECK(haft_io_now() - begun < 12 * HAFT_IO_SECOND);
    socket = connect_to(port, "/close");
    begun = haft_io_now();
    expect(socket, 0x88,
           "\x0f\xa0"
           "enough",
           8);
    char byte;
    CHECK(haft_io_read(socket, &byte, 1) <= 0);
    CHECK(haft_io_now() - begun >= 5 * HAFT_IO_SECOND);
    haft_io_close(socket);
    haft_http_server_stop(server);
    return unused;
}

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"

static const talk_t handshakes[] = {
    {"GET /echo" END, {"426", "Upgrade: websocket", "Sec-WebSocket-Version: 13"}, 1},
    {"GET /echo" WITH(KEY UPGRADE "Sec-WebSocket-Version: 8"), {"426"}, 1},
    {"GET /echo" WITH(VERSION UPGRADE "A: b"), {"400"}, 1},
    {"GET /echo" WITH(VERSION UPGRADE "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ"), {"400"}, 1},
    {"GET /echo" WITH(VERSION UPGRADE "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ===="), {"400"}, 1},
    {"POST /echo" WITH(HANDSHAKE), {"400"}, 1},
    {"GET /echo" WITH(HANDSHAKE "\r\nOrigin: http://other"), {"403"}, 1},
    {"GET /echo" WITH(HANDSHAKE "\r\nOrigin: null"), {"403"}, 1},
    {"GET /echo" WITH(HANDSHAKE "\r\nOrigin: https://here"), {"101"}, 1},
    {"GET /some" WITH(HANDSHAKE "\r\nOrigin: https://here"), {"403"}, 1},
    {"GET /some" WITH(HANDSHAKE "\r\nOrigin: https://a.org"), {"101"}, 1},
    {"GET /any" WITH(HANDSHAKE "\r\nOrigin: http://other"), {"101"}, 1},
    {"GET /any" WITH(HANDSHAKE "\r\nSec-WebSocket-Protocol: x, two, one"),
     {"101", "Sec-WebSocket-Protocol: one\r\n"},
     1},
    {"GET /any" WITH(HANDSHAKE "\r\nSec-WebSocket-Protocol: One"), {"101"}, 1},
};

static void *shake_hands(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof handshakes / sizeof *handshakes; i++)
        run_talk(port, &handshakes[i], "Protocol: One");
    haft_http_server_stop(server);
    return unused;
}

/* ---- Cancels ---- */

static void *talk_awhile(void *unused) {
    HAFT_IO_SCOPED_DESCRIPTOR int socket =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    static const char head[] = "GET /echo" WITH(HANDSHAKE);
    char bytes[1000] = {0};
    haft_io_write_all(socket, head, sizeof head - 1);
    haft_io_read(socket, bytes, sizeof bytes);
    for (int i = 0; i < 10; i++) {
        say(socket, 0x02, bytes, 500);
        say(socket, 0x89, "", 0);
        say(socket, 0x80, bytes, 1000);
        haft_io_read(socket, bytes, sizeof bytes); /* less than what comes: the server will wait */
    }
    say(socket, 0x88, "\x03\xe8", 2);
    while (haft_io_read(socket, bytes, sizeof bytes) > 0)
        continue;
    return unused;
}

/* The server and its client are cancelled after so many turns; in real time, of 20 us. */
static void *cancel_after(void *turns) {
    haft_io_spawn(serve, NULL);
    while (haft_http_server_port(server) == 0)
        haft_io_yield();
    haft_io_spawn(talk_awhile, NULL);
    if (haft_io_seed() == 0)
        haft_io_sleep(*(int *)turns * (20 * HAFT_IO_MICROSECOND));
    for (int i = 0; i < *(int *)turns; i++)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

static void *cancel_everywhere(void *unused) {
    for (int turns = 0; turns < 150; turns++) {
        CHECK(haft_io_scope_with(NULL, cancel_after, &turns, NULL) == -ECANCELED);
        CHECK(open_sockets == 0);
    }
    return unused;
}

/* ---- Compressed messages (RFC 7692) ---- */

#define EXTENSION "permessage-deflate"
#define BOTH_DROP "; server_no_context_takeover; client_no_context_takeover"

static const struct {
    const char *path, *offers, *answer; /* NULL: none */
} offers[] = {
    {"/echo", EXTENSION, EXTENSION BOTH_DROP},
    {"/kept", EXTENSION, EXTENSION},
    {"/kept", "Permessage-Deflate; client_max_window_bits", EXTENSION},
    {"/kept", EXTENSION "; client_max_window_bits=10 ;server_no_context_takeover",
     EXTENSION "; server_no_context_takeover"},
    {"/kept", EXTENSION "; client_no_context_takeover", EXTENSION "; client_no_context_takeover"},
    {"/kept", EXTENSION "; server_max_window_bits=\"9\"", EXTENSION "; server_max_window_bits=9"},
    {"/kept", EXTENSION "; server_max_window_bits=8", NULL},
    {"/kept", EXTENSION "; server_max_window_bits=8, x, " EXTENSION, EXTENSION},
    {"/kept", EXTENSION "; server_max_window_bits=16", NULL},
    {"/kept", EXTENSION "; server_max_window_bits=7", NULL},
    {"/kept", EXTENSION "; server_max_window_bits=09", NULL},
    {"/kept", EXTENSION "; server_max_window_bits=010", NULL},
    {"/kept", EXTENSION "; server_max_window_bits=1x", NULL},
    {"/kept", EXTENSION "; server_max_window_bits", NULL},
    {"/kept", EXTENSION "; server_max_window_bits=9; server_max_window_bits=9", NULL},
    {"/kept", EXTENSION "; client_max_window_bits=7", NULL},
    {"/kept", EXTENSION "; server_no_context_takeover=1", NULL},
    {"/kept", EXTENSION "; server_no_context_takeover; server_no_context_takeover", NULL},
    {"/kept", EXTENSION "; more", NULL},
    {"/kept", EXTENSION ";", NULL},
    {"/kept", "permessage-bzip2", NULL},
    {"/plain", EXTENSION, NULL},
};

static void *negotiate(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        char field[200], answer[200];
        snprintf(field, sizeof field, "\r\nSec-WebSocket-Extensions: %s", offers[i].offers);
        snprintf(answer, sizeof answer, "Sec-WebSocket-Extensions: %s\r\n", offers[i].answer);
        int socket = connect_with(port, offers[i].path, field);
        if ((offers[i].answer != NULL && strstr(answer_head, answer) == NULL) ||
            (offers[i].answer == NULL && strstr(answer_head, "Extensions") != NULL)) {
            fprintf(stderr, "%s\n%s\n", offers[i].offers, answer_head);
            abort();
        }
        say(socket, 0x88, "", 0);
        expect_close(socket, NO_CODE);
    }
    haft_http_server_stop(server);
    return unused;
}

/* 7.2.3: "Hello", and again, with a reference to the first. */
#define HELLO "\xf2\x48\xcd\xc9\xc9\x07\x00"
#define AGAIN "\xf2\x00\x11\x00\x00"

static void expect_hello(int socket) {
    expect(socket, 0x81, "Hello", 5); /* which is too short to be compressed */
}

static void *inflate(void *unused) {
    int socket = connect_with(start(), "/kept", "\r\nSec-WebSocket-Extensions: " EXTENSION);
    say(socket, 0xc1, BYTES(HELLO));
    expect_hello(socket);
    say(socket, 0xc1, BYTES(AGAIN));
    expect_hello(socket);
    say(socket, 0x81, "Hello", 5);
    expect_hello(socket);
    say(socket, 0x41, "\xf2\x48\xcd", 3); /* fragments */
    say(socket, 0x89, "", 0);
    expect(socket, 0x8a, "", 0);
    say(socket, 0x80, "\xc9\xc9\x07\x00", 4);
    expect_hello(socket);
    say(socket, 0xc1, BYTES("\x00\x05\x00\xfa\xffHello\x00")); /* not compressed (7.2.3.3) */
    expect_hello(socket);
    say(socket, 0xc1, BYTES("\xf3\x48\xcd\xc9\xc9\x07\x00\x00")); /* a last block (7.2.3.4) */
    expect_hello(socket);
    say(socket, 0xc1, BYTES("\x02\x00")); /* an empty message (7.2.3.6) */
    expect(socket, 0x81, "", 0);
    say(socket, 0xc1, "", 0);
    expect(socket, 0x81, "", 0);
    say(socket, 0xc1, BYTES(HELLO));
    expect_hello(socket);
    say(socket, 0x88, "", 0);
    expect_close(socket, NO_CODE);
    haft_http_server_stop(server);
    return unused;
}

static const wrong_t wrong_compressed[] = {
    {BYTES("\xc1\x81" MASK "\xff"), 1007}, /* a kind of block that is none */
    {BYTES("\xc1\x85" MASK AGAIN), 1007},  /* refers to nothing */
    {BYTES("\xc1\x84" MASK "\x8a\x03\x00\x00"), 1007},
    /* Cut off: in a block, before its end, in one that is not compressed, behind a last one. */
    {BYTES("\xc1\x84" MASK "\xf2\x48\xcd\xc9"), 1007},
    {BYTES("\xc1\x86" MASK "\xf2\x48\xcd\xc9\xc9\x07"), 1007},
    {BYTES("\xc1\x88" MASK "\x00\x07\x00\xf8\xffHel"), 1007},
    {BYTES("\xc1\x87" MASK "\xf3\x48\xcd\xc9\xc9\x07\x00"), 1007},
    {BYTES("\x01\x81" MASK "a\xc0\x81" MASK "b"), 1002}, /* on a fragment that is not the first */
    {BYTES("\xc9\x80" MASK), 1002},
    {BYTES("\xc8\x80" MASK), 1002},
    {BYTES("\xd1\x81" MASK "a"), 1002},
    {BYTES("\xa1\x81" MASK "a"), 1002},
};

static void *break_compression(void *unused) {
    uint16_t port = start();
    static const char fields[] = "\r\nSec-WebSocket-Extensions: " EXTENSION;
    for (size_t i = 0; i < sizeof wrong_compressed / sizeof *wrong_compressed; i++) {
        int socket = connect_with(port, "/echo", fields);
        CHECK(haft_io_write_all(socket, wrong_compressed[i].bytes, wrong_compressed[i].size) == 0);
        haft_io_shutdown(socket, SHUT_WR);
        expect_close(socket, wrong_compressed[i].code);
        wait_for_end();
        CHECK(last_code == wrong_compressed[i].code);
    }
    haft_http_server_stop(server);
    return unused;
}

/* ---- The client ---- */

static haft_http_websocket_t *connect_by(haft_http_client_t *client, uint16_t port,
                                         const char *path,
                                         const haft_http_websocket_options_t *options) {
    char url[100], failure[200] = "";
    haft_http_websocket_t *socket;
    snprintf(url, sizeof url, "ws://127.0.0.1:%d%s", port, path);
    haft_http_question_t question = {
        .url = url, .failure = failure, .failure_size = sizeof failure};
    int code = haft_http_websocket_connect_with(options, client, &question, &socket);
    if (code != 0)
        fprintf(stderr, "%s: %d, %s\n", path, code, failure);
    CHECK(code == 0);
    return socket;
}

static void echo_by_client(haft_http_websocket_t *socket) {
    static const size_t sizes[] = {0, 1, 125, 126, 199, 200, 16400, 65536};
    static char bytes[65536];
    haft_http_websocket_message_t message;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i * i % 26);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        haft_http_websocket_kind_t kind =
            i % 2 == 0 ? HAFT_HTTP_WEBSOCKET_TEXT : HAFT_HTTP_WEBSOCKET_BINARY;
        size_t size = sizes[i];
        CHECK(haft_http_websocket_send(socket, kind, bytes, size) == 0);
        CHECK(haft_http_websocket_receive(socket, &message) == 0);
        CHECK(message.kind == kind && message.size == size && message.bytes[size] == '\0');
        CHECK(memcmp(message.bytes, bytes, size) == 0);
    }
}

static void *ask_by_client(void *unused) {
    static const haft_http_websocket_options_t how[] = {
        {.protocols = "two, one"}, {.keeps_context = true}, {.uncompressed = true}};
    uint16_t port = start();
    haft_http_client_t *client = haft_http_client_new();
    for (int i = 0; i < 3; i++) {
        static const char *const paths[] = {"/echo", "/kept", "/plain", "/any"};
        for (int path = 0; path < 4; path++) {
            HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *socket =
                connect_by(client, port, paths[path], &how[i]);
            const char *protocol = haft_http_websocket_protocol(socket);
            CHECK(i == 0 && path == 3 ? strcmp(protocol, "one") == 0 : protocol == NULL);
            echo_by_client(socket);
            CHECK(haft_http_websocket_close(socket, 4000, "enough") == 0);
            CHECK(haft_http_websocket_close_code(socket) == 4000);
            wait_for_end();
            CHECK(last_code == 4000 && strcmp(last_reason, "enough") == 0);
        }
    }
    haft_http_websocket_message_t message;
    HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *closed =
        connect_by(client, port, "/close", NULL);
    CHECK(haft_http_websocket_receive(closed, &message) == -EPIPE);
    CHECK(haft_http_websocket_close_code(closed) == 4000);
    CHECK(strcmp(haft_http_websocket_close_reason(closed), "enough") == 0);
    CHECK(haft_http_websocket_send(closed, HAFT_HTTP_WEBSOCKET_TEXT, "a", 1) == -EPIPE);
    HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *left =
        connect_by(client, port, "/echo", NULL);
    CHECK(haft_http_websocket_send(left, HAFT_HTTP_WEBSOCKET_TEXT, "a", 1) == 0);
    CHECK(haft_http_websocket_receive(left, &message) == 0);
    haft_http_websocket_free(left);
    left = NULL;
    wait_for_end();
    CHECK(last_code == LOST);
    haft_http_server_stop(server);
    haft_http_client_free(client);
    return unused;
}

/* Two kilobytes become 2 MiB, where 1 MiB is the limit. */
static void *send_bomb(void *unused) {
    haft_http_client_t *client = haft_http_client_new();
    HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *socket =
        connect_by(client, start(), "/echo", NULL);
    haft_http_websocket_message_t message;
    char *zeros = calloc(2 * MIB, 1);
    CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_BINARY, zeros, 2 * MIB) == 0);
    CHECK(haft_http_websocket_receive(socket, &message) == -EPIPE);
    CHECK(haft_http_websocket_close_code(socket) == 1009);
    free(zeros);
    haft_http_server_stop(server);
    haft_http_client_free(client);
    return unused;
}

/* With virtual time: both sides are silent, and ping each other. */
static void *be_silent_by_client(void *unused) {
    haft_http_client_t *client = haft_http_client_new();
    HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *socket =
        connect_by(client, start(), "/echo", NULL);
    haft_http_websocket_message_t message;
    {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        haft_io_deadline_set(&limit, haft_io_now() + 300 * HAFT_IO_SECOND);
        CHECK(haft_http_websocket_receive(socket, &message) == -ETIMEDOUT);
    }
    CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_TEXT, "a", 1) == 0);
    CHECK(haft_http_websocket_receive(socket, &message) == 0);
    CHECK(haft_http_websocket_close(socket, 1000, NULL) == 0);
    haft_http_server_stop(server);
    haft_http_client_free(client);
    return unused;
}

/* Answers of a server. The key is not known in advance: "%s" is the right answer to it. */
#define SWITCH "HTTP/1.1 101 Switching Protocols\r\n"
#define ACCEPT "Sec-WebSocket-Accept: %s\r\n"
static const struct {
    const char *says;
    int code;
} shakes[] = {
    {SWITCH UPGRADE ACCEPT "\r\n", 0},
    {SWITCH "Upgrade: WebSocket\r\nConnection: keep-alive, UPGRADE\r\n" ACCEPT "\r\n", 0},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Protocol: b\r\n\r\n", 0},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Protocol: c\r\n\r\n", -EBADMSG},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Protocol: B\r\n\r\n", -EBADMSG},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Extensions: x\r\n\r\n", -EBADMSG},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Extensions: " EXTENSION "; x\r\n\r\n", -EBADMSG},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Extensions: " EXTENSION ", " EXTENSION "\r\n\r\n",
     -EBADMSG},
    {SWITCH UPGRADE ACCEPT "Sec-WebSocket-Extensions: " EXTENSION
                           "; client_max_window_bits=10\r\n\r\n",
     -EBADMSG},
    {SWITCH UPGRADE "\r\n", -EBADMSG},
    {SWITCH UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", -EBADMSG},
    {SWITCH "Upgrade: websocket\r\n" ACCEPT "\r\n", -EBADMSG},
    {SWITCH "Connection: upgrade\r\n" ACCEPT "\r\n", -EBADMSG},
    {"HTTP/1.1 200 OK\r\n" UPGRADE ACCEPT "\r\n", -ECONNREFUSED},
    {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", -ECONNREFUSED},
    {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", -ECONNREFUSED},
    {"hello\r\n\r\n", -EBADMSG},
};

static int listener;

/* The answer to a key, from the library's server. */
static void answer_to(uint16_t port, const char *key, char *into) {
    char heard[1000];
    snprintf(heard, sizeof heard,
             "GET /echo HTTP/1.1\r\nHost: here\r\n" UPGRADE VERSION "%s\r\n\r\n", key);
    say_and_hear(port, heard, strlen(heard), false, heard, sizeof heard);
    const char *answer = strstr(heard, "Sec-WebSocket-Accept: ");
    CHECK(answer != NULL && sscanf(answer + 22, "%28s", into) == 1);
}

static void *answer_handshake(void *says) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    char memory[1000], answer[29], text[1000], *line;
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    for (ssize_t size; (size = haft_io_reader_line(&lines, &line)) > 2;)
        if (strncmp(line, "Sec-WebSocket-Key:", 18) == 0) {
            line[size - 2] = '\0';
            answer_to(haft_http_server_port(server), line, answer);
        }
    const char *rest = strstr(says, "%s");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(rest != NULL ? rest - (char *)says : 1000),
             (char *)says, rest != NULL ? answer : "", rest != NULL ? rest + 2 : "");
    haft_io_write_all(connection, text, strlen(text));
    /* Frames: a text; then one that is masked, which no server's is. */
    haft_io_write_all(connection, "\x81\x02hi\x81\x81" MASK "a", 11);
    while (rest != NULL && haft_io_read(connection, memory, sizeof memory) > 0)
        continue;
    return NULL;
}

static void *shake_hands_by_client(void *unused) {
    haft_http_client_t *client = haft_http_client_new();
    start();
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    for (size_t i = 0; i < sizeof shakes / sizeof *shakes; i++) {
        char url[100], failure[200] = "";
        haft_http_websocket_options_t options = {.protocols = "a, b"};
        HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *socket;
        haft_http_websocket_message_t message;
        snprintf(url, sizeof url, "ws://127.0.0.1:%d/x", haft_io_port(listener));
        haft_http_question_t question = {
            .url = url, .failure = failure, .failure_size = sizeof failure};
        haft_io_task_t *speaker =
            haft_io_async(answer_handshake, (void *)(uintptr_t)shakes[i].says);
        int code = haft_http_websocket_connect_with(&options, client, &question, &socket);
        if (code != shakes[i].code) {
            fprintf(stderr, "%s: %d, %s\n", shakes[i].says, code, failure);
            abort();
        }
        CHECK((code == 0) == (*failure == '\0') && (code == 0) == (socket != NULL));
        if (code == 0) {
            CHECK(haft_http_websocket_receive(socket, &message) == 0 && message.size == 2);
            CHECK(haft_http_websocket_receive(socket, &message) == -EPIPE);
            CHECK(haft_http_websocket_close_code(socket) == 1002);
            haft_http_websocket_free(socket);
            socket = NULL;
        }
        haft_io_join(speaker, NULL);
    }
    haft_io_close(listener);
    haft_http_question_t posting = {.url = "ws://here/", .method = "POST"},
                         elsewhere = {.url = "ftp://here/"};
    haft_http_websocket_t *none;
    CHECK(haft_http_websocket_connect(client, &posting, &none) == -EINVAL);
    CHECK(haft_http_websocket_connect(client, &elsewhere, &none) == -EPROTONOSUPPORT);
    haft_http_client_free(client);
    haft_http_server_stop(server);
    return unused;
}

/* ---- All of it ---- */

/* ---- Faults at any operation ---- */

/* Whether all messages came back. One that comes is the one that was sent. */
static bool echo_three(haft_http_client_t *client, int number) {
    static const size_t sizes[] = {20, 3000, 60000};
    static char bytes[60000];
    char url[100];
    haft_http_websocket_options_t how = {.keeps_context = number % 2 != 0};
    HAFT_HTTP_SCOPED_WEBSOCKET haft_http_websocket_t *socket = NULL;
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/kept", haft_http_server_port(server));
    int code = haft_http_websocket_connect_with(&how, client, &(haft_http_question_t){.url = url},
                                                &socket);
    for (size_t i = 0; i < 3 && code == 0; i++) {
        haft_http_websocket_message_t message;
        for (size_t at = 0; at < sizes[i]; at++)
            bytes[at] = (char)('a' + (at * at + (size_t)number) % 26);
        code = haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_TEXT, bytes, sizes[i]);
        if (code == 0 && (code = haft_http_websocket_receive(socket, &message)) == 0)
            CHECK(message.size == sizes[i] && memcmp(message.bytes, bytes, sizes[i]) == 0);
    }
    return code == 0 && haft_http_websocket_close(socket, 1000, NULL) == 0;
}

static void *echo_under_faults(void *unused) {
    haft_http_client_t *client = haft_http_client_new();
    haft_io_task_t *serving = haft_io_async(serve, NULL);
    while (haft_http_server_port(server) == 0) {
        haft_io_sleep(HAFT_IO_MILLISECOND);
        if (haft_http_server_port(server) == 0 &&
            haft_io_simulated_count() == 0) { /* no listener */
            CHECK(haft_io_join(serving, NULL) == 0);
            serving = haft_io_async(serve, NULL);
        }
    }
    for (int number = 0; number < 4; number++)
        while (!echo_three(client, number))
            haft_io_sleep(HAFT_IO_SECOND);
    haft_http_client_free(client);
    haft_http_server_stop(server);
    CHECK(haft_io_join(serving, NULL) == 0);
    CHECK(haft_io_simulated_count() == 0 && open_sockets == 0);
    return unused;
}

static void meet_faults(void) {
    simulate_faults(echo_under_faults);
}

static void add_routes(void) {
    static haft_http_websocket_options_t some = {.origins = "http://b.org:81, https://a.org"},
                                         any = {.origins = "*", .protocols = "one, two"},
                                         kept = {.keeps_context = true},
                                         plain = {.uncompressed = true},
                                         brief = {.close_time = 50 * HAFT_IO_MILLISECOND};
    static int returned = 0, error = -EIO;
    haft_http_server_set_log(server, NULL, NULL);
    haft_http_server_get(server, "/echo", echo, NULL);
    haft_http_server_post(server, "/echo", echo, NULL);
    haft_http_server_get(server, "/some", echo, &some);
    haft_http_server_get(server, "/any", echo, &any);
    haft_http_server_get(server, "/kept", echo, &kept);
    haft_http_server_get(server, "/plain", echo, &plain);
    haft_http_server_get(server, "/close", close_first, NULL);
    haft_http_server_get(server, "/return", return_at_once, &returned);
    haft_http_server_get(server, "/error", return_at_once, &error);
    haft_http_server_get(server, "/closed", close_from_task, NULL);
    haft_http_server_get(server, "/dawdle", dawdle, &brief);
    haft_http_server_get(server, "/impatient", be_impatient, NULL);
    haft_http_server_get(server, "/tasks", send_from_tasks, NULL);
}

int main(void) {
    void *(*const cases[])(void *) = {be_silent,
                                      be_slow,
                                      be_silent_by_client,
                                      echo_sizes,
                                      join_fragments,
                                      break_rules,
                                      trickle,
                                      close_from_server,
                                      hear_from_tasks,
                                      stop_server,
                                      stop_in_the_middle,
                                      shake_hands,
                                      cancel_everywhere,
                                      negotiate,
                                      inflate,
                                      break_compression,
                                      send_bomb,
                                      ask_by_client,
                                      shake_hands_by_client};
    enum { CASES = sizeof cases / sizeof *cases, VIRTUAL = 3 };
    server = haft_http_server_new();
    add_routes();
    for (size_t i = 0; i < CASES; i++)
        simulate_seeds(cases[i]);
    for (size_t i = VIRTUAL; i < CASES; i++)
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, cases[i], NULL) ==
                  0);
    CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, stop_in_a_flood, NULL) == 0);
    CHECK(served == 0);
    meet_faults();
    haft_http_server_free(server);
    return 0;
}
