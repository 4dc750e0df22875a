/* SPDX-License-Identifier: MIT */
/* Bodies in codings: what the server compresses, and for which clients; what the client decodes.
   Forms with files. Over the simulated network with several seeds, and over sockets. */
#include "check_http.h"

static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port;

enum { MUCH = 300000 };
static char much[MUCH + 1];

/* ---- What is compressed ---- */

static int say(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *how = haft_http_request_path(request, "how");
    const char *type = "text/plain; charset=utf-8";
    size_t size = 5000;
    if (strcmp(how, "small") == 0)
        size = 1399;
    else if (strcmp(how, "image") == 0)
        type = "image/png";
    else if (strcmp(how, "json") == 0)
        type = "application/problem+JSON; charset=utf-8";
    else if (strcmp(how, "untyped") == 0)
        type = NULL;
    else if (strcmp(how, "encoded") == 0)
        haft_http_answer_set_header(request, "Content-Encoding", "x-mine");
    else if (strcmp(how, "kept") == 0)
        haft_http_answer_set_header(request, "Cache-Control", "max-age=1, No-Transform");
    else if (strcmp(how, "secret") == 0)
        haft_http_answer_do_not_compress(request);
    haft_http_answer_set_header(request, "ETag", strcmp(how, "weak") == 0 ? "W/\"v1\"" : "\"v1\"");
    haft_http_answer_set_header(request, "X-After", "1");
    return haft_http_answer(request, strcmp(how, "error") == 0 ? 404 : 200, type, much, size);
}

/* Piece by piece. */
static int stream(haft_http_request_t *request, void *unused) {
    (void)unused;
    bool flushes = haft_http_request_query(request, "flush") != NULL;
    int code = haft_http_answer_begin(request, 200, "text/css", HAFT_HTTP_UNKNOWN_SIZE);
    for (size_t at = 0; at < MUCH && code == 0; at += 7000) {
        code = haft_http_answer_write(request, much + at, at + 7000 < MUCH ? 7000 : MUCH - at);
        if (code == 0 && flushes)
            code = haft_http_answer_flush(request);
    }
    return code;
}

static int say_too_little(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_answer_begin(request, 200, "text/css", 5000);
    return code == 0 ? haft_http_answer_write(request, much, 4999) : code;
}

static int say_too_much(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_answer_begin(request, 200, "text/css", 5000);
    CHECK(code == 0 && haft_http_answer_write(request, much, 5001) == -EMSGSIZE);
    return haft_http_answer_write(request, much, 5000);
}

static int choose_type(haft_http_request_t *request, void *unused) {
    (void)unused;
    static const char *const types[] = {"text/html", "application/json", "image/png"};
    int chosen = haft_http_request_accepts(request, types, 3);
    return haft_http_answer_text(request, 200, chosen >= 0 ? types[chosen] : "none");
}

#define COMPRESSED "Vary: Accept-Encoding\r\nContent-Encoding: "
#define GET(path, accepted) "GET " path WITH("Accept-Encoding: " accepted)

static const talk_t talks[] = {
    {GET("/say/text", "gzip"), {"chunked\r\n", "X-After: 1", COMPRESSED "gzip", "W/\"v1\""}, 1},
    {GET("/say/text", "br"), {"chunked\r\n", COMPRESSED "br"}, 1},
    {GET("/say/text", "zstd"), {"chunked\r\n", COMPRESSED "zstd"}, 1},
    {GET("/say/text", "deflate, gzip;q=0.5, br;q=0.7, zstd;q=0.2"), {COMPRESSED "br"}, 1},
    {GET("/say/text", "gzip, br, zstd"), {COMPRESSED "zstd"}, 1},
    {GET("/say/text", "*"), {COMPRESSED "zstd"}, 1},
    {GET("/say/text", "*;q=0.5, zstd;q=0"), {COMPRESSED "br"}, 1},
    {GET("/say/text", "GZip ; Q=1.000"), {COMPRESSED "gzip"}, 1},
    {GET("/say/json", "gzip"), {COMPRESSED "gzip"}, 1},
    {GET("/say/error", "gzip"), {"404 Not Found", COMPRESSED "gzip"}, 1},
    {GET("/say/weak", "gzip"), {"ETag: W/\"v1\"\r\n", COMPRESSED "gzip"}, 1},
    {"GET /say/text" WITH("Accept-Encoding: x") "GET /say/text" END,
     {"Content-Length: 5000", "ETag: \"v1\"\r\nX-After: 1\r\nVary: Accept-Encoding\r\n\r\n",
      "Content-Length: 5000", "Vary: Accept-Encoding\r\n\r\n"},
     2},
    {"HEAD /say/text" WITH("Accept-Encoding: gzip") "GET /say/small" END,
     {"chunked\r\n", COMPRESSED "gzip", "W/\"v1\"\r\n\r\nHTTP/1.1 200", "Content-Length: 1399"},
     2},
    {GET("/stream", "gzip"), {COMPRESSED "gzip"}, 1},
};

/* The body is sent as it is. */
static const talk_t plain_talks[] = {
    {GET("/say/text", ""), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "identity"), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "gzip;q=0"), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "gzip;q=0.000, *;q=0"), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "gzip;q=2, br;q=, zstd;q=1.5"), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "gzip;q=.5, br;q=0.1234, zstd;q=-1"), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "identity, gzip;q=0.9"), {"Content-Length: 5000"}, 1},
    {GET("/say/text", "gzipped, xgzip"), {"Content-Length: 5000"}, 1},
    {GET("/say/small", "gzip"), {"Content-Length: 1399"}, 1},
    {GET("/say/image", "gzip"), {"Content-Length: 5000"}, 1},
    {GET("/say/untyped", "gzip"), {"Content-Length: 5000"}, 1},
    {GET("/say/kept", "gzip"), {"Content-Length: 5000"}, 1},
    {GET("/say/secret", "gzip"), {"Content-Length: 5000"}, 1},
    {"GET /say/text HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n", {"Content-Length: 5000"}, 1},
};

static const talk_t type_talks[] = {
    {"GET /type" END, {"text/html"}, 1},
    {"GET /type" WITH("Accept: application/json"), {"\r\n\r\napplication/json"}, 1},
    {"GET /type" WITH("Accept: text/*;q=0.5, */*;q=0.4"), {"\r\n\r\ntext/html"}, 1},
    {"GET /type" WITH("Accept: text/*;q=0.5, */*;q=0.6"), {"\r\n\r\napplication/json"}, 1},
    {"GET /type" WITH("Accept: */*, text/html;q=0, application/*;q=0.1"), {"\r\nimage/png"}, 1},
    {"GET /type" WITH("Accept: text/plain"), {"\r\n\r\nnone"}, 1},
};

static void talk_all(void) {
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++)
        run_talk(port, &talks[i], NULL);
    for (size_t i = 0; i < sizeof plain_talks / sizeof *plain_talks; i++)
        run_talk(port, &plain_talks[i], "Content-Encoding");
    for (size_t i = 0; i < sizeof type_talks / sizeof *type_talks; i++)
        run_talk(port, &type_talks[i], NULL);
    static const talk_t encoded = {GET("/say/encoded", "gzip"), {"x-mine\r\n", "\r\n\r\n"}, 1};
    run_talk(port, &encoded, "Vary");
}

/* ---- What is decoded ---- */

#define GZIP                                                                                       \
    "\037\213\010\000\000\000\000\000\002\003\313\110\315\311\311\327\121\310\100\242\270\000\347" \
    "\102\156\122\024\000\000\000"
#define ZSTD                                                                                       \
    "\050\265\057\375\004\130\165\000\000\100\150\145\154\154\157\054\040\012\001\000\342\212\021" \
    "\041\151\235\207"
#define BROTLI "\142\002\000\200\244\002\010\113\016\242\110\064\225\170\116\357\004"
#define HELLO "hello, hello, hello\n"
#define SIZED(bytes, shorter) bytes, sizeof bytes - 1 - (shorter)

typedef struct {
    const char *coding, *bytes;
    size_t size;
    int code;
    const char *body;
} coded_t;

static const coded_t coded[] = {
    {"gzip", SIZED(GZIP, 0), 200, HELLO},
    {"X-GZIP", SIZED(GZIP GZIP, 0), 200, HELLO HELLO},
    {"gzip", SIZED(GZIP, 1), -EBADMSG, NULL},
    {"gzip", SIZED(GZIP, 10), -EBADMSG, NULL},
    {"gzip", SIZED(GZIP "x", 0), -EBADMSG, NULL},
    {"gzip", SIZED(GZIP GZIP, 3), -EBADMSG, NULL},
    {"gzip", SIZED("hello", 0), -EBADMSG, NULL},
    {"gzip", SIZED("", 0), 200, ""},
    {"zstd", SIZED(ZSTD, 0), 200, HELLO},
    {"zstd", SIZED(ZSTD ZSTD, 0), 200, HELLO HELLO},
    {"zstd", SIZED(ZSTD, 1), -EBADMSG, NULL},
    {"zstd", SIZED(ZSTD "hello", 0), -EBADMSG, NULL},
    {"br", SIZED(BROTLI, 0), 200, HELLO},
    {"br", SIZED(BROTLI, 1), -EBADMSG, NULL},
    {"br", SIZED(BROTLI "x", 0), -EBADMSG, NULL},
    {"x-other", SIZED("hello", 0), 200, "hello"},
    {"gzip, gzip", SIZED("hello", 0), 200, "hello"},
};

static int say_coded(haft_http_request_t *request, void *unused) {
    (void)unused;
    const coded_t *what = &coded[atoi(haft_http_request_path(request, "number"))];
    haft_http_answer_set_header(request, "Content-Encoding", what->coding);
    return haft_http_answer(request, 200, "text/plain", what->bytes, what->size);
}

static int zeros(haft_http_request_t *request, void *unused) {
    (void)unused;
    static const char piece[8000];
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    for (int i = 0; i < 500 && code == 0; i++)
        code = haft_http_answer_write(request, piece, sizeof piece);
    return code == -EPIPE || code == -ECONNRESET ? 0 : code; /* the client has had enough */
}

static haft_http_reply_t *ask(haft_http_client_t *by, const char *path, const char *accepted) {
    char url[200];
    haft_http_reply_t *reply;
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    haft_http_header_t fields[] = {{"Accept-Encoding", accepted}};
    haft_http_question_t question = {
        .url = url, .headers = fields, .header_count = accepted != NULL};
    int code = haft_http_client_ask(by, &question, &reply);
    if (code != 0) {
        fprintf(stderr, "%s: %d\n", path, code);
        abort();
    }
    return reply;
}

/* Asks for the body in one coding, and passes it on as it is. */
static int relay(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *coding = haft_http_request_path(request, "coding");
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply =
        ask(client, haft_http_request_query(request, "of"), coding);
    CHECK(strcmp(haft_http_reply_header(reply, "Content-Encoding"), coding) == 0);
    char *body;
    ssize_t size = haft_http_reply_body(reply, &body);
    CHECK(size > 0 && size < 30000);
    haft_http_answer_set_header(request, "Content-Encoding", coding);
    return haft_http_answer(request, 200, "text/plain", body, (size_t)size);
}

static void check_body(const char *path, const char *expected, size_t expected_size) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = ask(client, path, NULL);
    char *body;
    ssize_t size = haft_http_reply_body(reply, &body);
    if (size != (ssize_t)expected_size || memcmp(body, expected, expected_size) != 0) {
        fprintf(stderr, "%s: got %zd bytes\n", path, size);
        abort();
    }
    CHECK(haft_http_reply_header(reply, "Content-Encoding") == NULL);
    CHECK(haft_http_reply_header(reply, "Content-Length") == NULL);
    const char *name, *value;
    for (size_t i = 0; haft_http_reply_header_at(reply, i, &name, &value); i++)
        CHECK(strncmp(name, "Content-", 8) != 0 || strcmp(name, "Content-Type") == 0);
}

static void decode_all(void) {
    check_body("/say/text", much, 5000);
    check_body("/stream", much, MUCH);
    check_body("/stream?flush", much, MUCH);
    check_body("/exactly", much, 5000);
    check_body("/relay/gzip?of=/say/text", much, 5000);
    check_body("/relay/br?of=/say/text", much, 5000);
    check_body("/relay/zstd?of=/say/text", much, 5000);
    check_body("/relay/gzip?of=/stream", much, MUCH);
    check_body("/relay/br?of=/stream?flush", much, MUCH);
    check_body("/relay/zstd?of=/stream?flush", much, MUCH);
    for (size_t i = 0; i < sizeof coded / sizeof *coded; i++) {
        char path[30], *body;
        snprintf(path, sizeof path, "/coded/%zu", i);
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = ask(client, path, NULL);
        ssize_t size = haft_http_reply_body(reply, &body);
        int code = size < 0 ? (int)size : haft_http_reply_status(reply);
        if (code != coded[i].code || (code == 200 && strcmp(body, coded[i].body) != 0)) {
            fprintf(stderr, "%s: %d\n", path, code);
            abort();
        }
    }
    static const talk_t replaced = {GET("/short", "gzip"), {"500 Internal"}, 1};
    run_talk(port, &replaced, "X-Evil");
}

static void limit_what_is_decoded(void) {
    haft_http_client_options_t options[] = {
        {.decompressed = 100000}, {.body = 100000}, {.body = 100000, .decompressed = 4000000}};
    for (int i = 0; i < 3; i++) {
        haft_http_client_t *limited = haft_http_client_new_with(&options[i]);
        haft_http_reply_t *reply = ask(limited, "/zeros", NULL);
        char *body;
        CHECK(haft_http_reply_body(reply, &body) == -EFBIG);
        CHECK(haft_http_reply_body(reply, &body) == -EFBIG);
        haft_http_reply_free(reply);
        haft_http_client_free(limited);
    }
    haft_http_client_t *plain = haft_http_client_new_with(
        &(haft_http_client_options_t){.uncompressed = true, .decompressed = 1});
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = ask(plain, "/say/text", NULL);
    CHECK(strcmp(haft_http_reply_header(reply, "Content-Length"), "5000") == 0);
    haft_http_client_free(plain);
}

/* ---- What is written is not held back ---- */

static haft_io_event_t heard;

static int send_events(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_events_begin(request);
    if (code == 0)
        code = haft_http_events_send(request, &(haft_http_event_t){.data = "one"});
    haft_io_event_wait(&heard);
    return code == 0 ? haft_http_events_send(request, &(haft_http_event_t){.data = "two"}) : code;
}

static void hear_events(void) {
    char text[100];
    haft_io_event_clear(&heard);
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = ask(client, "/events", NULL);
    CHECK(haft_http_reply_header(reply, "Content-Encoding") == NULL);
    size_t size = 0;
    while (size < 11)
        size += (size_t)haft_http_reply_read(reply, text + size, sizeof text - size);
    CHECK(size == 11 && memcmp(text, "data: one\n\n", 11) == 0);
    haft_io_event_set(&heard);
    char *rest;
    CHECK(haft_http_reply_body(reply, &rest) == 11 && strcmp(rest, "data: two\n\n") == 0);
    static const talk_t gzipped = {GET("/events", "zstd, gzip;q=0.1"), {COMPRESSED "gzip"}, 1};
    run_talk(port, &gzipped, "data:");
}

/* ---- Forms with files ---- */

static void list(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void list(char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t size = strlen(text);
    vsnprintf(text + size, 2000 - size, format, arguments);
    va_end(arguments);
}

static const char *or_none(const char *text) {
    return text != NULL ? text : "-";
}

/* Says what the parts are; with ?skip, without a look at their bytes. */
static int take_form(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_multipart_limits_t limits = {.parts = 3, .head = 200, .part = 100};
    haft_http_multipart_t *form;
    haft_http_part_t part;
    bool is_limited = haft_http_request_query(request, "limits") != NULL;
    char *text, all[2000] = "";
    int code = haft_http_multipart_begin_with(is_limited ? &limits : NULL, request, &form);
    if (code == -ENOTSUP)
        return haft_http_answer_text(request, 415, "no form");
    while (code == 0 && (code = haft_http_multipart_next(form, &part)) == 1) {
        list(all, "%s,%s,%s,%s=", part.name, or_none(part.file_name), or_none(part.type),
             or_none(haft_http_multipart_header(form, "x-more")));
        ssize_t size = haft_http_request_query(request, "skip") != NULL
                           ? 0
                           : haft_http_multipart_text(form, &text);
        if (size > 0)
            list(all, "%s", text);
        list(all, ";");
        code = size < 0 ? (int)size : 0;
    }
    return code == 0 ? haft_http_answer_text(request, 200, all) : code;
}

/* The sum of what is stored, and that nobody sees its name. */
static int store_form(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_multipart_t *form;
    haft_http_part_t part;
    static char back[MUCH];
    int code = haft_http_multipart_begin(request, &form);
    CHECK(code == 0 && haft_http_multipart_next(form, &part) == 1);
    CHECK(strcmp(part.file_name, "../../etc/passwd") == 0);
    CHECK(haft_http_multipart_store(form, "/nowhere/at/all") == -ENOENT);
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_http_multipart_store(form, "/tmp");
    CHECK(file >= 0 && haft_io_pread(file, back, sizeof back, 0) == sizeof back);
    CHECK(memcmp(back, much, MUCH) == 0 && haft_io_pread(file, back, 1, MUCH) == 0);
    CHECK(haft_http_multipart_next(form, &part) == 0);
    CHECK(haft_http_multipart_next(form, &part) == 0);
    return haft_http_answer_text(request, 200, "stored");
}

#define FORM "multipart/form-data; boundary=XX"
#define PART(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define LONG_BOUNDARY "0123456789012345678901234567890123456789012345678901234567890123456789"

typedef struct {
    const char *query, *type, *body;
    int status;
    const char *says;
} form_t;

static const form_t forms[] = {
    {"", FORM, PART("a") "1\r\n" PART("b") "\r\n--XX--\r\n", 200, "a,-,-,-=1;b,-,-,-=;"},
    {"", FORM, "--XX--", 200, ""},
    {"", "Multipart/Form-Data ; charset=x; BOUNDARY=\"X X\"",
     "--X X\r\ncontent-disposition:form-data;name=a\r\n\r\nb\r\n--X X--", 200, "a,-,-,-=b;"},
    {"", "multipart/form-data; boundary=" LONG_BOUNDARY,
     "--" LONG_BOUNDARY "\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--" LONG_BOUNDARY
     "--\r\n",
     200, "a,-,-,-=;"},
    {"", FORM,
     "--XX\r\nContent-Type: image/png \r\nX-More: 1\r\nContent-Disposition: form-data; "
     "filename=\"C:\\a\\\"b\\\\c\"; name=f; "
     "filename*=utf-8''x\r\n\r\n\r\n--X\r\n--X\r\n-\n--XX\r\n--XX--",
     200, "f,C:\\a\"b\\c,image/png,1=\r\n--X\r\n--X\r\n-\n--XX;"},
    {"", FORM, PART("a") "--XX\r\n--XX--", 200, "a,-,-,-=--XX;"},
    {"?skip", FORM, PART("a") "1\r\n" PART("b") "2\r\n--XX--\r\n", 200, "a,-,-,-=;b,-,-,-=;"},
    {"", "text/plain", "--XX--", 415, "no form"},
    {"", "multipart/mixed; boundary=XX", "--XX--", 415, "no form"},
    /* RFC 2046, 5.1.1 */
    {"", "multipart/form-data", "--XX--", 400, NULL},
    {"", "multipart/form-data; boundary=", "----", 400, NULL},
    {"", "multipart/form-data; boundary=\"\"", "----", 400, NULL},
    {"", "multipart/form-data; boundary=\"X \"", "--X --", 400, NULL},
    {"", "multipart/form-data; boundary=\"X", "--X--", 400, NULL},
    {"", "multipart/form-data; boundary=\"X\"Y", "--X--", 400, NULL},
    {"", "multipart/form-data; boundary=X;", "--X--", 400, NULL},
    {"", "multipart/form-data; boundary=X; boundary=Y", "--X--", 400, NULL},
    {"", "multipart/form-data; boundary=\"X;\"", "--X;--", 400, NULL},
    {"", "multipart/form-data; boundary=" LONG_BOUNDARY "0", "--" LONG_BOUNDARY "0--", 400, NULL},
    {"", FORM, "", 400, NULL},
    {"", FORM, "preamble\r\n--XX--", 400, NULL},
    {"", FORM, "\r\n--XX--", 400, NULL},
    {"", FORM, "--XX--epilogue", 400, NULL},
    {"", FORM, "--XX--\r\n\r\n", 400, NULL},
    {"", FORM, "--XX--\n", 400, NULL},
    {"", FORM, "--XX", 400, NULL},
    {"", FORM, "--XX-", 400, NULL},
    {"", FORM, "--XX \r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\nContent-Disposition: form-data; name=a\n\n\n--XX--", 400, NULL},
    {"", FORM, PART("a") "1\r\n--XXY\r\n\r\n--XX--", 400, NULL},
    {"", FORM, PART("a"), 400, NULL},
    {"", FORM, PART("a") "1", 400, NULL},
    {"", FORM, PART("a") "1\r\n--XX", 400, NULL},
    {"", FORM, PART("a") "1\n--XX--", 400, NULL},
    {"?skip", FORM, PART("a") "1", 400, NULL},
    /* the head of a part */
    {"", FORM, "--XX\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name=a\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name=a\r\n--XX: b\r\n\r\n1\r\n--XX--", 400,
     NULL},
    {"", FORM, "--XX\r\nContent-Type: a/b\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: file; name=a\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; filename=a\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\n1\r\n--XX--", 400,
     NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name=\"a\" b\r\n\r\n1\r\n--XX--", 400,
     NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data;\r\n name=a\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition : form-data; name=a\r\n\r\n1\r\n--XX--", 400, NULL},
    {"", FORM, "--XX\r\nContent-Disposition: form-data; name=\"a\rb\"\r\n\r\n1\r\n--XX--", 400,
     NULL},
    {"", FORM, PART("a\nb") "1\r\n--XX--", 400, NULL},
    {"", FORM, PART("a\001b") "1\r\n--XX--", 400, NULL},
    {"", FORM,
     "--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
     "name=b\r\n\r\n1\r\n--XX--",
     400, NULL},
    {"", FORM,
     "--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: "
     "base64\r\n\r\n1\r\n--XX--",
     400, NULL},
    /* limits */
    {"?limits", FORM, PART("a") "\r\n" PART("b") "\r\n" PART("c") "\r\n--XX--", 200,
     "a,-,-,-=;b,-,-,-=;c,-,-,-=;"},
    {"?limits", FORM, PART("a") "\r\n" PART("b") "\r\n" PART("c") "\r\n" PART("d") "\r\n--XX--",
     413, NULL},
    {"?limits", FORM, PART("a") LONG_BOUNDARY "012345678901234567890123456789\r\n--XX--", 200,
     "a,-,-,-=" LONG_BOUNDARY "012345678901234567890123456789;"},
    {"?limits", FORM, PART("a") LONG_BOUNDARY "0123456789012345678901234567890\r\n--XX--", 413,
     NULL},
    {"?limits", FORM, PART(LONG_BOUNDARY LONG_BOUNDARY) "\r\n--XX--", 200,
     LONG_BOUNDARY LONG_BOUNDARY ",-,-,-=;"},
    {"?limits", FORM, PART(LONG_BOUNDARY LONG_BOUNDARY LONG_BOUNDARY) "\r\n--XX--", 413, NULL},
};

static void post(const char *path, const char *type, const char *body, size_t size, int status,
                 const char *says) {
    char url[200], *text;
    haft_http_reply_t *reply;
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    haft_http_question_t question = {.url = url, .type = type, .body = body, .size = size};
    CHECK(haft_http_client_ask(client, &question, &reply) == 0);
    CHECK(haft_http_reply_body(reply, &text) >= 0);
    if (haft_http_reply_status(reply) != status || (says != NULL && strcmp(text, says) != 0)) {
        fprintf(stderr, "%s\n%.300s\n%d: %s\n", type, body, haft_http_reply_status(reply), text);
        abort();
    }
    haft_http_reply_free(reply);
}

static void post_forms(void) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char path[40];
        snprintf(path, sizeof path, "/form%s", forms[i].query);
        post(path, forms[i].type, forms[i].body, strlen(forms[i].body), forms[i].status,
             forms[i].says);
    }
    static const char head[] = "--XX\r\nContent-Disposition: form-data; name=f; "
                               "filename=\"../../etc/passwd\"\r\n\r\n";
    static char body[MUCH + 200];
    size_t size = sizeof head - 1;
    memcpy(body, head, size);
    memcpy(body + size, much, MUCH);
    memcpy(body + size + MUCH, "\r\n--XX--", 8);
    post("/store", FORM, body, size + MUCH + 8, 200, "stored");
}

/* ---- */

static bool knows_all_codings(void) {
    for (const char *const *coding = (const char *const[]){"gzip", "br", "zstd", NULL};
         *coding != NULL; coding++) {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *one = ask(client, "/say/text", *coding);
        if (haft_http_reply_header(one, "Content-Encoding") == NULL)
            return false;
    }
    return true;
}

static bool is_left_out;

static void *use_codings(void *unused) {
    port = start_server(server);
    client = haft_http_client_new();
    is_left_out = !knows_all_codings();
    if (!is_left_out) {
        talk_all();
        decode_all();
        limit_what_is_decoded();
        hear_events();
    }
    post_forms();
    haft_http_client_free(client);
    haft_http_server_stop(server);
    return unused;
}

static void drop_line(void *unused, const char *line) {
    (void)unused;
    CHECK(strstr(line, "/short") != NULL || strstr(line, "told to stop") != NULL);
}

static void make_server(void) {
    unsigned random = 1;
    for (size_t i = 0; i < MUCH; i++) {
        random = random * 1103515245 + 12345;
        much[i] = i % 50 < 45 && i > 50 ? much[i - 50] : "abcdefghijklmnop"[random >> 16 & 15];
    }
    server = haft_http_server_new();
    haft_http_server_set_log(server, drop_line, NULL);
    haft_http_server_get(server, "/say/{how}", say, NULL);
    haft_http_server_get(server, "/stream", stream, NULL);
    haft_http_server_get(server, "/short", say_too_little, NULL);
    haft_http_server_get(server, "/exactly", say_too_much, NULL);
    haft_http_server_get(server, "/type", choose_type, NULL);
    haft_http_server_get(server, "/coded/{number}", say_coded, NULL);
    haft_http_server_get(server, "/relay/{coding}", relay, NULL);
    haft_http_server_get(server, "/zeros", zeros, NULL);
    haft_http_server_get(server, "/events", send_events, NULL);
    haft_http_server_post(server, "/form", take_form, NULL);
    haft_http_server_post(server, "/store", store_form, NULL);
}

int main(void) {
    make_server();
    simulate_seeds(use_codings);
    CHECK(haft_io_run(use_codings, NULL) == 0);
    bool has_codings = !is_left_out;
    haft_http_server_set_compression(server, &(haft_http_compression_t){.off = true});
    CHECK(haft_io_run(use_codings, NULL) == 0 && is_left_out);
    haft_http_server_free(server);
    return has_codings ? 0 : 77;
}
