/* SPDX-License-Identifier: MIT */
/*
 * Answers. What is written is gathered in a block, and sent when that is full, by haft_http_flush,
 * or by the connection, together with the wait for its next request. What a user gives for the head
 * is checked, so that no value begins another line, or another answer.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>

enum { MOST_AT_ONCE = 1024 * 1024 }; /* bytes of a file */

/* ---- Gathering ---- */

static int fail(haft_http_request_t *request, int code) {
    request->answer.failed = true;
    request->keeps = false;
    return code;
}

int hafti_http_answer_send(haft_http_request_t *request, const void *bytes, size_t size) {
    if (request->answer.failed)
        return -EPIPE;
    request->answer.is_sent = true;
    int code = hafti_http_stream_write_within(request->message.stream, request->message.limits,
                                              bytes, size);
    return code == 0 ? 0 : fail(request, code);
}

static int send_gathered(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    size_t size = answer->size;
    bool has_head = answer->progress != HAFTI_HTTP_NOT_BEGUN && !answer->is_sent;
    answer->size = 0;
    return size != 0 || has_head ? hafti_http_answer_send(request, answer->block, size) : 0;
}

/* Where the block has room for `size` bytes, or else NULL. A block has HAFT_IO_LENT_SIZE; for more,
   what it has is sent. */
static char *room_for(haft_http_request_t *request, size_t size, int *code) {
    hafti_http_answer_t *answer = &request->answer;
    *code = answer->failed ? -EPIPE : 0;
    if (*code == 0 && answer->block == NULL && (answer->block = haft_io_lend()) == NULL)
        *code = fail(request, -ENOMEM);
    if (*code == 0 && size > HAFT_IO_LENT_SIZE - answer->size)
        *code = send_gathered(request);
    return *code == 0 ? answer->block + answer->size : NULL;
}

int hafti_http_answer_gather(haft_http_request_t *request, const void *bytes, size_t size) {
    int code;
    if (size == 0)
        return 0;
    char *to = room_for(request, size, &code);
    if (to == NULL)
        return code;
    if (size > HAFT_IO_LENT_SIZE)
        return hafti_http_answer_send(request, bytes, size);
    memcpy(to, bytes, size);
    request->answer.size += size;
    return 0;
}

static int gather_text(haft_http_request_t *request, const char *text) {
    return hafti_http_answer_gather(request, text, strlen(text));
}

/* ---- The head ---- */

const char *hafti_http_reason_of(int status) {
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

/* Each thread makes it once a second; nothing waits here, so the task does not leave the thread. */
__attribute__((noinline)) void hafti_http_put_now(char *into) {
    static _Thread_local time_t made_at;
    static _Thread_local char date[HAFTI_HTTP_DATE + 1];
    time_t now = hafti_http_now();
    if (now != made_at) {
        hafti_http_put_date(now, date);
        made_at = now;
    }
    memcpy(into, date, HAFTI_HTTP_DATE);
}

static char *put(char *to, const char *text, size_t size) {
    memcpy(to, text, size);
    return to + size;
}

static char *put_text(char *to, const char *text) {
    return put(to, text, strlen(text));
}

/* For a base that is known where it is compiled: to divide by another takes the processor long. */
static inline __attribute__((always_inline)) char *put_digits(char *to, uint64_t number,
                                                              unsigned base) {
    char digits[20], *first = digits + sizeof digits;
    do
        *--first = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    while (first != digits + sizeof digits)
        *to++ = *first++;
    return to;
}

char *hafti_http_put_number(char *to, uint64_t number) {
    return put_digits(to, number, 10);
}

/* Of three digits. */
static char *put_status(char *to, unsigned status) {
    *to++ = (char)('0' + status / 100);
    *to++ = (char)('0' + status / 10 % 10);
    *to++ = (char)('0' + status % 10);
    return to;
}

/* What the connection does next. Of HTTP/1.1 it is kept unless one says otherwise, of 1.0
   closed. */
static char *put_connection(char *to, const haft_http_request_t *request) {
    if (!request->keeps)
        return put_text(to, "Connection: close\r\n");
    return hafti_http_is_1_0(&request->message) ? put_text(to, "Connection: keep-alive\r\n") : to;
}

/* What handlers have set, and the empty line; after `code` of what comes before. */
static int gather_end_of_head(haft_http_request_t *request, int code) {
    const hafti_http_answer_t *answer = &request->answer;
    if (code == 0)
        code = hafti_http_answer_gather(request, answer->fields, answer->fields_size);
    return code == 0 ? gather_text(request, "\r\n") : code;
}

static int gather_head(haft_http_request_t *request, const char *type, uint64_t size) {
    enum {
        MOST = 320
    }; /* bytes of what is neither the type nor a field that the handler has set */
    hafti_http_answer_t *answer = &request->answer;
    int code;
    char *begin = room_for(request, MOST, &code);
    if (begin == NULL)
        return code;
    char *to = put_text(begin, "HTTP/1.1 ");
    to = put_status(to, (unsigned)answer->status);
    *to++ = ' ';
    to = put_text(to, hafti_http_reason_of(answer->status));
    to = put_text(to, "\r\nDate: ");
    hafti_http_put_now(to);
    to = put_text(to + HAFTI_HTTP_DATE, "\r\n");
    if (answer->chunked) {
        to = put_text(to, "Transfer-Encoding: chunked\r\n");
    } else if (size != HAFT_HTTP_UNKNOWN_SIZE && answer->status != 204 && answer->status != 304) {
        to = put_text(to, "Content-Length: ");
        to = hafti_http_put_number(to, size);
        to = put_text(to, "\r\n");
    }
    to = put_connection(to, request);
    if (type != NULL)
        to = put_text(to, "Content-Type: ");
    answer->size += (size_t)(to - begin);
    if (type != NULL) {
        hafti_http_text_t value = hafti_http_trim((hafti_http_text_t){type, strlen(type)});
        code = hafti_http_answer_gather(request, value.bytes, value.size);
        code = code == 0 ? gather_text(request, "\r\n") : code;
    }
    return gather_end_of_head(request, code);
}

/* ---- Fields ---- */

static bool is_ours(const char *name) {
    static const char *const ours[] = {
        "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",
        "Date",           "Trailer",           "TE",         NULL};
    return hafti_http_is_one_of(name, ours);
}

/* Makes room for `size` more bytes at the end of lines. */
static char *grow(haft_http_request_t *request, char **lines, size_t used, size_t *room,
                  size_t size) {
    if (size > *room - used) {
        size_t wanted = 2 * *room > used + size ? 2 * *room : used + size + 128;
        char *grown = hafti_http_allocate(&request->message, wanted);
        if (grown == NULL)
            return NULL;
        if (used != 0)
            memcpy(grown, *lines, used);
        *lines = grown;
        *room = wanted;
    }
    return *lines + used;
}

static int add_line(haft_http_request_t *request, char **lines, size_t *used, size_t *room,
                    const char *name, const char *value) {
    if (!hafti_http_is_given_token(name) || !hafti_http_is_given_value(value) || is_ours(name))
        return -EINVAL;
    hafti_http_text_t trimmed = hafti_http_trim((hafti_http_text_t){value, strlen(value)});
    size_t name_size = strlen(name), size = name_size + trimmed.size + 4;
    char *to = grow(request, lines, *used, room, size);
    if (to == NULL)
        return -ENOMEM;
    to = put(put(put(to, name, name_size), ": ", 2), trimmed.bytes, trimmed.size);
    put(to, "\r\n", 2);
    *used += size;
    return 0;
}

int haft_http_set_header(haft_http_request_t *request, const char *name, const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->progress != HAFTI_HTTP_NOT_BEGUN)
        return -EALREADY;
    return add_line(request, &answer->fields, &answer->fields_size, &answer->fields_room, name,
                    value);
}

/* The lasting fields stand before the others. */
int haft_http_set_lasting_header(haft_http_request_t *request, const char *name,
                                 const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    size_t others = answer->fields_size - answer->lasting_size, before = answer->fields_size;
    char *kept = others != 0 ? hafti_http_copy(&request->message,
                                               answer->fields + answer->lasting_size, others)
                             : NULL;
    if (others != 0 && kept == NULL)
        return -ENOMEM;
    int code = haft_http_set_header(request, name, value);
    if (code != 0)
        return code;
    size_t added = answer->fields_size - before;
    char *at = answer->fields + answer->lasting_size;
    memmove(at, answer->fields + before, added);
    if (others != 0)
        memcpy(at + added, kept, others);
    answer->lasting_size += added;
    return 0;
}

int haft_http_set_trailer(haft_http_request_t *request, const char *name, const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    if (!answer->chunked || answer->progress != HAFTI_HTTP_BEGUN)
        return -ENOTSUP;
    return add_line(request, &answer->trailers, &answer->trailers_size, &answer->trailers_room,
                    name, value);
}

/* 6265, 4.1.1. */
static bool is_cookie_value(const char *value) {
    for (; *value != '\0'; value++)
        if (*value <= ' ' || *value > '~' || strchr("\",;\\", *value) != NULL)
            return false;
    return true;
}

static bool is_attribute(const char *value) {
    return value == NULL || strchr(value, ';') == NULL;
}

int haft_http_set_cookie(haft_http_request_t *request, const char *name, const char *value,
                         const haft_http_cookie_options_t *options) {
    static const haft_http_cookie_options_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    if (!hafti_http_is_given_token(name) || value == NULL || !is_cookie_value(value) ||
        !is_attribute(options->path) || !is_attribute(options->domain) ||
        !is_attribute(options->same_site))
        return -EINVAL;
    char age[40] = "";
    if (options->max_age != 0)
        snprintf(age, sizeof age, "; Max-Age=%lld",
                 options->max_age > 0 ? (long long)options->max_age : 0LL);
    static const char format[] = "%s=%s%s%s%s%s%s%s%s; SameSite=%s";
    char *line = NULL;
    int size = 0;
    for (int pass = 0; pass < 2; pass++) {
        size = snprintf(
                   line, (size_t)size, format, name, value, options->path != NULL ? "; Path=" : "",
                   options->path != NULL ? options->path : "",
                   options->domain != NULL ? "; Domain=" : "",
                   options->domain != NULL ? options->domain : "", age,
                   options->for_scripts ? "" : "; HttpOnly", options->for_http ? "" : "; Secure",
                   options->same_site != NULL ? options->same_site : "Lax") +
               1;
        if (pass == 0 && (line = hafti_http_allocate(&request->message, (size_t)size)) == NULL)
            return -ENOMEM;
    }
    return haft_http_set_header(request, "Set-Cookie", line);
}

/* ---- Answers ---- */

bool hafti_http_answer_field(const hafti_http_answer_t *answer, size_t *at, const char *name,
                             hafti_http_text_t *value) {
    hafti_http_text_t lines = {answer->fields, answer->fields_size}, found;
    while (hafti_http_next_line(lines, at, &found, value))
        if (hafti_http_same(found.bytes, found.size, name))
            return true;
    return false;
}

void hafti_http_answer_discard(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    hafti_http_encoder_free(answer->encoder);
    *answer = (hafti_http_answer_t){.block = answer->block,
                                    .fields = answer->fields,
                                    .fields_size = answer->lasting_size,
                                    .fields_room = answer->fields_room,
                                    .lasting_size = answer->lasting_size};
}

int haft_http_discard_answer(haft_http_request_t *request) {
    const hafti_http_answer_t *answer = &request->answer;
    if (answer->is_sent || answer->failed || answer->is_stream)
        return -EALREADY;
    hafti_http_answer_discard(request);
    return 0;
}

void hafti_http_answer_end(haft_http_request_t *request) {
    hafti_http_encoder_free(request->answer.encoder);
    haft_io_give_back(request->answer.block);
}

/* A Content-Type that the handler has set counts; `type` becomes NULL, since the fields have it. Its
   value, or NULL: no memory. */
static const char *type_in_fields(haft_http_request_t *request, const char **type) {
    hafti_http_text_t value;
    size_t at = 0;
    if (request->answer.fields_size == 0 ||
        !hafti_http_answer_field(&request->answer, &at, "Content-Type", &value))
        return *type;
    *type = NULL;
    return hafti_http_copy(&request->message, value.bytes, value.size);
}

int haft_http_begin(haft_http_request_t *request, int status, const char *type, uint64_t size) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->progress != HAFTI_HTTP_NOT_BEGUN)
        return -EALREADY;
    if (status < 200 || status > 599 || (type != NULL && !hafti_http_is_given_value(type)))
        return -EINVAL;
    bool is_1_0 = hafti_http_is_1_0(&request->message);
    uint64_t sent = status == 205 ? 0 : size; /* 9110, 15.3.6 */
    const char *known_type = type_in_fields(request, &type);
    int code = hafti_http_choose_encoding(request, status, known_type, &sent);
    if (code != 0)
        return code;
    answer->progress = HAFTI_HTTP_BEGUN;
    answer->status = status;
    answer->without_body = request->is_head || status == 204 || status == 205 || status == 304;
    answer->left = size;
    answer->chunked = sent == HAFT_HTTP_UNKNOWN_SIZE && !is_1_0 && status != 204 && status != 304;
    if ((size == HAFT_HTTP_UNKNOWN_SIZE && is_1_0 && !answer->without_body) ||
        request->message.waits_for_word || request->message.error != 0 ||
        atomic_load(&request->server->stopping))
        request->keeps = false;
    return request->framing->head(request, type, sent);
}

int hafti_http_answer_put(haft_http_request_t *request, const void *bytes, size_t size) {
    return request->answer.chunked ? request->framing->piece(request, bytes, size)
                                   : hafti_http_answer_gather(request, bytes, size);
}

int haft_http_write(haft_http_request_t *request, const void *bytes, size_t size) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->progress != HAFTI_HTTP_BEGUN)
        return -EINVAL;
    if (bytes == NULL && size != 0)
        return -EFAULT;
    if (answer->left != HAFT_HTTP_UNKNOWN_SIZE) {
        if (size > answer->left)
            return -EMSGSIZE;
        answer->left -= size;
    }
    if (size != 0 && answer->encoder != NULL)
        return hafti_http_encode(request, bytes, size, HAFTI_HTTP_MORE);
    answer->written += size;
    return size != 0 && !answer->without_body ? hafti_http_answer_put(request, bytes, size) : 0;
}

/* What the kernel has in memory; -EAGAIN: it would have to read the disk. Here, so that errno is
   this thread's. */
__attribute__((noinline)) static ssize_t read_cached(int file, void *into, size_t size,
                                                     int64_t offset) {
    struct iovec part = {into, size};
    ssize_t got = preadv2(file, &part, 1, offset, RWF_NOWAIT);
    return got >= 0 ? got : -EAGAIN;
}

/* The file's fault, and not the client's. */
static int fail_to_read(haft_http_request_t *request, int code) {
    haft_http_note_failure(request,
                           code == 0 ? "the file has become shorter" : haft_io_error_text(code));
    return fail(request, code == 0 ? -EIO : code);
}

static int gather_file(haft_http_request_t *request, int file, int64_t offset, size_t size) {
    hafti_http_answer_t *answer = &request->answer;
    while (size != 0) {
        char *into = answer->block + answer->size;
        ssize_t got = read_cached(file, into, size, offset);
        if (got < 0)
            got = haft_io_pread(file, into, size, offset);
        if (got <= 0)
            return fail_to_read(request, (int)got);
        answer->size += (size_t)got;
        offset += got;
        size -= (size_t)got;
    }
    return 0;
}

static int send_file(haft_http_request_t *request, int file, int64_t offset, uint64_t size) {
    int code = send_gathered(request);
    while (code == 0 && size != 0) {
        size_t part = size < MOST_AT_ONCE ? (size_t)size : MOST_AT_ONCE;
        ssize_t sent = hafti_http_stream_send_file(request->message.stream, request->message.limits,
                                                   file, &offset, part);
        if (sent == 0)
            return fail_to_read(request, 0);
        if (sent < 0)
            return fail(request, (int)sent);
        size -= (uint64_t)sent;
    }
    return code;
}

/* A file that has become shorter is an error, and no end of the answer. */
int hafti_http_write_file(haft_http_request_t *request, int file, int64_t offset, uint64_t size) {
    hafti_http_answer_t *answer = &request->answer;
    int code = 0;
    answer->left -= size;
    answer->written += size;
    if (answer->without_body || size == 0)
        return 0;
    if (size > HAFT_IO_LENT_SIZE - answer->size)
        return send_file(request, file, offset, size);
    return room_for(request, (size_t)size, &code) != NULL
               ? gather_file(request, file, offset, (size_t)size)
               : code;
}

int haft_http_flush(haft_http_request_t *request) {
    int code =
        request->answer.encoder != NULL ? hafti_http_encode(request, "", 0, HAFTI_HTTP_FLUSH) : 0;
    return code == 0 ? send_gathered(request) : code;
}

int haft_http_status(const haft_http_request_t *request) {
    return request->answer.status;
}

/* Whether nobody is going to read that. Of chunks that have not all come, the answer cannot wait for
   the rest, which may be any number. */
static bool is_too_long_to_skip(const hafti_http_message_t *message) {
    return message->body == HAFTI_HTTP_SIZED
               ? message->left > HAFTI_HTTP_SKIPPED
               : message->body == HAFTI_HTTP_CHUNKED && !hafti_http_message_has_come(message);
}

int haft_http_answer(haft_http_request_t *request, int status, const char *type, const void *body,
                     size_t size) {
    if (request->answer.progress == HAFTI_HTTP_NOT_BEGUN && is_too_long_to_skip(&request->message))
        request->keeps = false;
    int code = body != NULL || size == 0 ? haft_http_begin(request, status, type, size) : -EFAULT;
    return code == 0 ? haft_http_write(request, body, size) : code;
}

static const char plain_text[] = "text/plain; charset=utf-8";

int haft_http_answer_text(haft_http_request_t *request, int status, const char *text) {
    return text != NULL ? haft_http_answer(request, status, plain_text, text, strlen(text))
                        : -EFAULT;
}

int haft_http_answer_format(haft_http_request_t *request, int status, const char *format, ...) {
    char text[512], *all = text;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0)
        return -EINVAL;
    if ((size_t)size >= sizeof text) {
        if ((all = hafti_http_allocate(&request->message, (size_t)size + 1)) == NULL)
            return -ENOMEM;
        va_start(arguments, format);
        vsnprintf(all, (size_t)size + 1, format, arguments);
        va_end(arguments);
    }
    return haft_http_answer(request, status, plain_text, all, (size_t)size);
}

int hafti_http_answer_stream(haft_http_request_t *request, int status, const char *line,
                             const char *protocol) {
    hafti_http_answer_t *answer = &request->answer;
    answer->progress = HAFTI_HTTP_BEGUN;
    answer->status = status;
    answer->left = HAFT_HTTP_UNKNOWN_SIZE;
    int code = request->framing->become_stream(request, line, protocol);
    return code == 0 ? send_gathered(request) : code;
}

int hafti_http_answer_status(haft_http_request_t *request, int status) {
    return haft_http_answer_format(request, status, "%d %s\n", status,
                                   hafti_http_reason_of(status));
}

/* Its text is the client's, unless a handler has failed. */
static const char *text_of(const haft_http_request_t *request, int status, int code) {
    return code == HAFT_HTTP_REFUSED && request->refusal != NULL ? request->refusal
                                                                 : hafti_http_reason_of(status);
}

int haft_http_refuse(haft_http_request_t *request, int status, const char *text) {
    if (status < 400 || status > 599)
        return -EINVAL;
    request->refused = status;
    request->refusal = text != NULL ? hafti_http_copy(&request->message, text, strlen(text)) : NULL;
    return HAFT_HTTP_REFUSED;
}

/* What the application's function has failed to answer, the library does. */
static bool answer_by_application(haft_http_request_t *request, const haft_http_error_t *error) {
    const haft_http_server_t *server = request->server;
    if (server->on_error == NULL)
        return false;
    int code = server->on_error(request, error, server->on_error_argument);
    if (request->thrown != NULL)
        request->thrown->free(haft_http_take_thrown(request));
    const hafti_http_answer_t *answer = &request->answer;
    bool is_whole =
        code == 0 && answer->progress != HAFTI_HTTP_NOT_BEGUN &&
        (answer->left == HAFT_HTTP_UNKNOWN_SIZE || answer->left == 0 || answer->without_body);
    return is_whole || haft_http_discard_answer(request) != 0;
}

int hafti_http_answer_error(haft_http_request_t *request, int status, int code) {
    haft_http_error_t error = {.status = status,
                               .code = code,
                               .text = text_of(request, status, code),
                               .failure = request->failure};
    if (answer_by_application(request, &error))
        return 0;
    return code == HAFT_HTTP_REFUSED && request->refusal != NULL
               ? haft_http_answer_text(request, status, error.text)
               : hafti_http_answer_status(request, status);
}

int haft_http_body_error(const haft_http_request_t *request) {
    return request->message.status != 0 ? request->message.error : 0;
}

int haft_http_carry(haft_http_request_t *request, haft_http_thrown_t *thrown) {
    if (request->thrown != NULL)
        request->thrown->free(request->thrown);
    request->thrown = thrown;
    return HAFT_IO_BY_EXCEPTION;
}

haft_http_thrown_t *haft_http_take_thrown(haft_http_request_t *request) {
    haft_http_thrown_t *thrown = request->thrown;
    request->thrown = NULL;
    return thrown;
}

static int end_encoding(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->encoder == NULL)
        return 0;
    int code = hafti_http_encode(request, "", 0, HAFTI_HTTP_FINISH);
    hafti_http_encoder_free(answer->encoder);
    answer->encoder = NULL;
    return code != 0 ? fail(request, code) : 0;
}

int hafti_http_answer_complete(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    answer->progress = HAFTI_HTTP_ENDED;
    if (answer->failed)
        return -EPIPE;
    int code = end_encoding(request);
    if (code == 0 && (code = request->framing->end(request)) != 0)
        fail(request, code);
    return code;
}

void haft_http_note_failure(haft_http_request_t *request, const char *text) {
    if (!request->answer.failed && text != NULL)
        request->failure = hafti_http_copy(&request->message, text, strlen(text));
}

/* Once, before the first read of a body whose sender waits for it; not where it has begun to
   send already, or may have seen the begin of the answer. One that is too large is not asked for. */
int hafti_http_send_continue(haft_http_request_t *request) {
    hafti_http_message_t *message = &request->message;
    bool is_too_large = message->body == HAFTI_HTTP_SIZED && message->left > message->limit;
    if (!message->waits_for_word || is_too_large)
        return 0;
    message->waits_for_word = false;
    if (request->answer.is_sent || message->stream->at != message->stream->end)
        return 0;
    int code = request->framing->say_continue(request);
    request->answer.is_sent = false;
    return code;
}

/* ---- HTTP/1 ---- */

static int gather_chunk(haft_http_request_t *request, const void *bytes, size_t size) {
    char line[20];
    char *end = put_text(put_digits(line, size, 16), "\r\n");
    int code = hafti_http_answer_gather(request, line, (size_t)(end - line));
    code = code == 0 ? hafti_http_answer_gather(request, bytes, size) : code;
    return code == 0 ? hafti_http_answer_gather(request, "\r\n", 2) : code;
}

static int gather_end(haft_http_request_t *request) {
    const hafti_http_answer_t *answer = &request->answer;
    if (!answer->chunked || answer->without_body)
        return 0;
    int code = gather_text(request, "0\r\n");
    if (code == 0)
        code = hafti_http_answer_gather(request, answer->trailers, answer->trailers_size);
    return code == 0 ? gather_text(request, "\r\n") : code;
}

static int gather_switch(haft_http_request_t *request, const char *line, const char *protocol) {
    int code = gather_text(request, line);
    code = code == 0 ? gather_text(request, protocol) : code;
    code = code == 0 ? gather_text(request, "\r\n") : code;
    return gather_end_of_head(request, code);
}

static int send_continue(haft_http_request_t *request) {
    static const char word[] = "HTTP/1.1 100 Continue\r\n\r\n";
    return hafti_http_answer_send(request, word, sizeof word - 1);
}

const hafti_http_framing_t hafti_http1_framing = {
    .head = gather_head,
    .piece = gather_chunk,
    .end = gather_end,
    .become_stream = gather_switch,
    .say_continue = send_continue,
};
