/* SPDX-License-Identifier: MIT */
/*
 * A fuzzer of server and client, over simulated sockets. The first byte of an input sets how it is
 * sent and to which side; the rest is what a client sends to the server, or a server to the client.
 *
 * These must hold: the server goes on, and answers the next client; it sends a sequence of whole
 * messages, whatever stood in the request; and how the bytes are divided on their way changes
 * nothing that is understood. (Of HTTP/2, only that the server goes on.)
 *
 * By hand: `fuzz_http FOLDER` goes on until it is stopped, and keeps its inputs there. With
 * HAFT_FUZZ_SEEDS=FOLDER it writes the table of test_refusals.c there instead.
 */
#define main test_refusals_main
#include "../test_refusals.c"
#undef main

enum { TO_CLIENT = 1, STAYS = 2, HEAD_REQUEST = 4, ROOM = 300000 };

typedef struct {
    const char *bytes;
    size_t size;
    int mode;
    int listener; /* of the server that the client asks */
    char *heard;  /* what is to be the same however the bytes are divided */
    size_t heard_size;
} input_t;

static void give_up(const char *what, const char *bytes, size_t size) {
    fprintf(stderr, "%s:\n%.*s\n", what, (int)(size < 2000 ? size : 2000), bytes);
    abort();
}

/* ---- Whether bytes are whole messages ---- */

typedef struct {
    const char *at, *end;
} rest_t;

/* The line, without its end. */
static bool take_line(rest_t *rest, const char **line, size_t *size) {
    const char *end = memmem(rest->at, (size_t)(rest->end - rest->at), "\r\n", 2);
    if (end == NULL)
        return false;
    *line = rest->at;
    *size = (size_t)(end - rest->at);
    rest->at = end + 2;
    return memchr(*line, '\r', *size) == NULL && memchr(*line, '\n', *size) == NULL &&
           memchr(*line, '\0', *size) == NULL;
}

static bool take(rest_t *rest, size_t size) {
    if ((size_t)(rest->end - rest->at) < size)
        return false;
    rest->at += size;
    return true;
}

static bool take_chunks(rest_t *rest) {
    const char *line;
    size_t size, chunk;
    do {
        if (!take_line(rest, &line, &size) || size == 0)
            return false;
        if (strspn(line, "0123456789abcdefABCDEF") != size)
            return false;
        chunk = strtoul(line, NULL, 16);
        if (chunk > 0 && (!take(rest, chunk) || !take_line(rest, &line, &size) || size != 0))
            return false;
    } while (chunk > 0);
    while (take_line(rest, &line, &size))
        if (size == 0)
            return true;
    return false;
}

static const size_t IN_CHUNKS = SIZE_MAX, TO_THE_END = SIZE_MAX - 1;

/* Date is not to be compared. */
static bool take_head(rest_t *rest, int *status, size_t *body, input_t *input) {
    const char *line;
    size_t size;
    if (!take_line(rest, &line, &size) || size < 13 || memcmp(line, "HTTP/1.1 ", 9) != 0)
        return false;
    *status = atoi(line + 9);
    *body = TO_THE_END;
    bool is_head = false;
    do {
        if (size < 6 || memcmp(line, "Date: ", 6) != 0) {
            memcpy(input->heard + input->heard_size, line, size);
            input->heard_size += size;
        }
        if (!take_line(rest, &line, &size))
            return false;
        if (size > 16 && memcmp(line, "Content-Length: ", 16) == 0)
            *body = strtoul(line + 16, NULL, 10);
        if (size == 14 && memcmp(line, "X-Method: HEAD", 14) == 0)
            is_head = true;
        if (size == 26 && memcmp(line, "Transfer-Encoding: chunked", 26) == 0)
            *body = IN_CHUNKS;
    } while (size > 0);
    /* An error that ends the connection may be for HEAD, too. */
    bool may_be_head = *status >= 400 && rest->at == rest->end;
    if (is_head || may_be_head || *status < 200 || *status == 204 || *status == 304)
        *body = 0;
    return true;
}

static bool take_message(rest_t *rest, int *status, input_t *input) {
    size_t body;
    if (!take_head(rest, status, &body, input))
        return false;
    const char *begin = rest->at;
    if (body == TO_THE_END) /* HTTP/1.0 */
        body = (size_t)(rest->end - rest->at);
    if (!(body == IN_CHUNKS ? take_chunks(rest) : take(rest, body)))
        return false;
    memcpy(input->heard + input->heard_size, begin, (size_t)(rest->at - begin));
    input->heard_size += (size_t)(rest->at - begin);
    return true;
}

/* ---- The server ---- */

static int answer_all(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    const char *query = haft_http_request_query(request, "q"),
               *cookie = haft_http_request_cookie(request, "c"),
               *field = haft_http_request_header(request, "x-field"),
               *form = haft_http_request_form(request, "f");
    ssize_t size = haft_http_request_body(request, &body);
    if (size < 0)
        return (int)size;
    const char *trailer = haft_http_request_trailer(request, "x-trailer");
    if (field != NULL)
        CHECK(haft_http_answer_set_header(request, "X-Field", field) == 0);
    if (cookie != NULL) {
        int code = haft_http_answer_set_cookie(request, "c", cookie);
        CHECK(code == 0 || code == -EINVAL);
    }
    const char *path = haft_http_request_path(request, "rest");
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    const char *const said[] = {path, query, form, trailer, haft_http_request_target(request)};
    for (size_t i = 0; code == 0 && i < sizeof said / sizeof *said; i++)
        if (said[i] != NULL)
            code = haft_http_answer_write(request, said[i], strlen(said[i]));
    return code != 0 ? code : haft_http_answer_write(request, body, (size_t)size);
}

static int echo_socket(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    haft_http_websocket_message_t message;
    int code = 0;
    while (socket != NULL && code == 0 &&
           (code = haft_http_websocket_receive(socket, &message)) == 0)
        code = haft_http_websocket_send(socket, message.kind, message.bytes, message.size);
    return code;
}

/* By which it is seen whether an answer has a body. */
static int name_method(haft_http_request_t *request, haft_http_next_t *next, void *unused) {
    (void)unused;
    haft_http_answer_set_header(request, "X-Method", haft_http_request_method(request));
    return next->call(next, request);
}

static void *ask_server(void *argument) {
    static char heard[ROOM];
    input_t *input = argument;
    start_server(server);
    size_t size = say_and_hear(haft_http_server_port(server), input->bytes, input->size,
                               (input->mode & STAYS) != 0, heard, sizeof heard);
    static const char next[] = "GET /behind HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
    static char well[1000];
    say_and_hear(haft_http_server_port(server), next, sizeof next - 1, true, well, sizeof well);
    if (strncmp(well, "HTTP/1.1 200 ", 13) != 0)
        give_up("the next client gets", well, strlen(well));
    haft_http_server_stop(server);

    static const char preface[] = "PRI * HTTP/2.0\r\n\r\n";
    if (memmem(input->bytes, input->size, preface, sizeof preface - 1) != NULL)
        return NULL; /* frames */
    rest_t rest = {heard, heard + size};
    int status = 0;
    while (rest.at < rest.end && status != 101) {
        const char *begin = rest.at;
        if (!take_message(&rest, &status, input))
            give_up("no message", begin, (size_t)(rest.end - begin));
    }
    return NULL;
}

/* ---- The client ---- */

static void *say_as_server(void *argument) {
    input_t *input = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int listener = input->listener;
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    char request[1000];
    haft_io_read(connection, request, sizeof request);
    haft_io_write_all(connection, input->bytes, input->size);
    haft_io_shutdown(connection, SHUT_WR);
    while (haft_io_read(connection, request, sizeof request) > 0)
        continue;
    return NULL;
}

static void hear_answer(input_t *input, haft_http_client_t *client, const char *url) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    const char *method = (input->mode & HEAD_REQUEST) != 0 ? "HEAD" : "GET";
    int code =
        haft_http_client_ask(client, &(haft_http_question_t){.url = url, .method = method}, &reply);
    char *body = NULL;
    ssize_t size = 0;
    int status = 0;
    if (code == 0) {
        status = haft_http_reply_status(reply);
        size = haft_http_reply_body(reply, &body);
        if (size < 0)
            code = (int)size;
    }
    if (code == 0) { /* of an error it may depend on the division how soon it is seen */
        input->heard_size = (size_t)snprintf(input->heard, 100, "%d ", status);
        memcpy(input->heard + input->heard_size, body, (size_t)size);
        input->heard_size += (size_t)size;
    }
}

static void *ask_as_client(void *argument) {
    input_t *input = argument;
    input->listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", haft_io_port(input->listener));
    haft_io_spawn(say_as_server, input);
    haft_http_client_t *client =
        haft_http_client_new_with(&(haft_http_client_options_t){.redirects = -1});
    hear_answer(input, client, url);
    haft_http_client_free(client);
    return NULL;
}

/* ---- Runs ---- */

static void run(input_t *input, bool divided) {
    haft_io_simulation_options_t how = {
        .seed = 1, .network = true, .short_counts = divided, .switches_one_in = divided ? 3 : 0};
    CHECK(haft_io_simulate_with(&how, (input->mode & TO_CLIENT) != 0 ? ask_as_client : ask_server,
                                input) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    static char heard[2][ROOM * 2];
    if (size == 0)
        return 0;
    input_t whole = {.bytes = (const char *)data + 1,
                     .size = size - 1,
                     .mode = data[0],
                     .heard = heard[0]},
            divided = whole;
    divided.heard = heard[1];
    run(&whole, false);
    run(&divided, true);
    if (whole.heard_size != divided.heard_size ||
        memcmp(whole.heard, divided.heard, whole.heard_size) != 0) {
        fprintf(stderr, "whole: %.*s\n", (int)whole.heard_size, whole.heard);
        give_up("divided", divided.heard, divided.heard_size);
    }
    return 0;
}

static void write_seeds(const char *folder) {
    static char bytes[40001];
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/refusal_%zu", folder, i);
        FILE *file = fopen(path, "wb");
        CHECK(file != NULL);
        bytes[0] = i % 2 == 0 ? STAYS : 0;
        fwrite(bytes, 1, 1 + put_bytes(&refusals[i], bytes + 1), file);
        fclose(file);
    }
}

int LLVMFuzzerInitialize(const int *count, char ***arguments);
int LLVMFuzzerInitialize(const int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    const char *seeds = getenv("HAFT_FUZZ_SEEDS");
    if (seeds != NULL) {
        write_seeds(seeds);
        exit(0);
    }
    server = haft_http_server_new();
    haft_http_server_set_log(server, NULL, NULL);
    for (int i = 0; i < 2; i++)
        CHECK(haft_http_server_route(server, i == 0 ? "GET" : "POST", "/{rest...}", answer_all,
                                     NULL) == 0);
    CHECK(haft_http_server_get(server, "/ws", echo_socket, NULL) == 0);
    CHECK(haft_http_server_get(server, "/behind", answer, NULL) == 0);
    CHECK(haft_http_server_use(server, name_method, NULL) == 0);
    return 0;
}
