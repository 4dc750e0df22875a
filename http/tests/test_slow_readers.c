/* SPDX-License-Identifier: MIT */
/* No client keeps an answer for long by reading slowly, or not at all, and none is given up that
   reads at the least rate: over HTTP/1.1, HTTP/2 and a WebSocket. */
#include "slow_readers.h"

#include "check_http.h"

#include <haft/http_websocket.h>

#ifdef CHECK_HTTP2
#    include "check_http2.h"
#endif

static haft_http_server_t *server;

static int send_huge_message(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    CHECK(socket != NULL);
    return note_huge_end(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_BINARY, huge, HUGE));
}

static void make_server(void) {
    server = haft_http_server_new();
    haft_http_server_set_log(server, no_huge_line, NULL);
    haft_http_server_get(server, "/whole", answer_huge, NULL);
    haft_http_server_get(server, "/pieces", answer_huge_pieces, NULL);
    haft_http_server_get(server, "/message", send_huge_message, NULL);
}

/* ---- Bytes as they come ---- */

static size_t read_bytes(void *client, size_t size) {
    static char heard[HUGE];
    ssize_t got = haft_io_read(*(const int *)client, heard, size < HUGE ? size : HUGE);
    return got > 0 ? (size_t)got : 0;
}

static const struct {
    const char *name, *says;
} ways[] = {
    {"HTTP/1.1", "GET /whole" END},
    {"HTTP/1.1 in pieces", "GET /pieces" END},
    {"WebSocket", "GET /message" WITH("Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                      "Sec-WebSocket-Version: 13")},
};

static void *read_by_bytes(void *unused) {
    start_server(server);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (size_t i = 0; i < SLOW_READERS; i++) {
            HAFT_IO_SCOPED_DESCRIPTOR int connection =
                haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
            haft_io_write_all(connection, ways[way].says, strlen(ways[way].says));
            read_slowly(&slow_readers[i], ways[way].name, read_bytes, &connection);
        }
    haft_http_server_stop(server);
    return unused;
}

/* ---- Frames ---- */

#ifdef CHECK_HTTP2

enum { WIDE = 1 << 30 };

typedef struct {
    client_t client;
    int32_t id;
} asking_t;

static void ask_huge(asking_t *asking, const char *path, uint32_t window) {
    const nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
    int descriptor = haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    CHECK(descriptor >= 0);
    begin_client_with(&asking->client, descriptor, &settings, 1, true);
    nghttp2_submit_window_update(asking->client.session, NGHTTP2_FLAG_NONE, 0, WIDE);
    asking->id = ask(&asking->client, "GET", path);
    say(&asking->client);
}

/* Opens the stream's window by so many bytes, and takes what then comes. */
static size_t read_by_window(void *argument, size_t size) {
    asking_t *asking = argument;
    const answer_t *answer = answer_of(&asking->client, asking->id);
    size_t before = answer->size, wanted = before + size;
    nghttp2_submit_window_update(asking->client.session, NGHTTP2_FLAG_NONE, asking->id,
                                 (int32_t)size);
    say(&asking->client);
    while (answer->size < wanted && !answer->is_closed && hear(&asking->client, 1))
        continue;
    return answer->size - before;
}

/* Takes frames as they come, with windows that are wide open. */
static size_t read_frames(void *argument, size_t size) {
    asking_t *asking = argument;
    uint8_t bytes[65536];
    ssize_t got =
        haft_io_read(asking->client.descriptor, bytes, size < sizeof bytes ? size : sizeof bytes);
    return got > 0 ? (size_t)got : 0;
}

static void *read_by_frames(void *unused) {
    static const char *const paths[] = {"/whole", "/pieces"};
    static asking_t asking;
    start_server(server);
    for (int way = 0; way < 4; way++)
        for (size_t i = 0; i < SLOW_READERS; i++) {
            bool by_window = way < 2;
            ask_huge(&asking, paths[way % 2], by_window ? 0 : WIDE);
            read_slowly(&slow_readers[i],
                        by_window ? "HTTP/2, by its window" : "HTTP/2, by its connection",
                        by_window ? read_by_window : read_frames, &asking);
            close_client(&asking.client);
        }
    haft_http_server_stop(server);
    return unused;
}

#endif

int main(void) {
    make_server();
    for (int seed = 1; seed <= 2; seed++) {
        const haft_io_simulation_options_t how = {.network = true, .seed = (uint64_t)seed};
        CHECK(haft_io_simulate_with(&how, read_by_bytes, NULL) == 0);
#ifdef CHECK_HTTP2
        CHECK(haft_io_simulate_with(&how, read_by_frames, NULL) == 0);
#endif
    }
    haft_http_server_free(server);
    return 0;
}
