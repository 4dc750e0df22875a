/* SPDX-License-Identifier: MIT */
/* Answers in HTTP/1: the head as lines, and bodies of unknown size as chunks. */
#include "internal.h"

#include <time.h>

/* ---- The head ---- */

static int gather_text(haft_http_request_t *request, const char *text) {
    return hafti_http_answer_gather(request, text, strlen(text));
}

const char *hafti_http_reason_of(int status) {
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {100, "Continue"},
        {102, "Processing"},
        {103, "Early Hints"},
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
        {508, "Loop Detected"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

/* Puts the present date, which each thread makes once a second; nothing waits here, so the task
   does not leave the thread. */
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

/* Inlined, so that the base is a constant: a division by a variable takes the processor long. */
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

/* Appends a status, which has three digits. */
static char *put_status(char *to, unsigned status) {
    *to++ = (char)('0' + status / 100);
    *to++ = (char)('0' + status / 10 % 10);
    *to++ = (char)('0' + status % 10);
    return to;
}

/* The field Connection, if needed: HTTP/1.1 keeps the connection by default, 1.0 closes it. */
static char *put_connection(char *to, const haft_http_request_t *request) {
    if (!request->keeps)
        return put_text(to, "Connection: close\r\n");
    return hafti_http_is_1_0(&request->message) ? put_text(to, "Connection: keep-alive\r\n") : to;
}

/* Gathers the fields that handlers have set, and the empty line; `code` is the result before. */
static int gather_end_of_head(haft_http_request_t *request, int code) {
    const hafti_http_answer_t *answer = &request->answer;
    if (code == 0)
        code = hafti_http_answer_gather(request, answer->fields, answer->fields_size);
    return code == 0 ? gather_text(request, "\r\n") : code;
}

static int gather_head(haft_http_request_t *request, const char *type, uint64_t size) {
    enum { MOST = 320 }; /* bytes besides the type and the handler's fields */
    hafti_http_answer_t *answer = &request->answer;
    int code;
    char *begin = hafti_http_answer_room(request, MOST, &code);
    if (begin == NULL)
        return code;
    char *to = put_text(begin, "HTTP/1.1 ");
    to = put_status(to, (unsigned)answer->status);
    *to++ = ' ';
    to = put_text(to, hafti_http_reason_of(answer->status));
    to = put_text(to, "\r\n");
    if (!answer->has_date) {
        to = put_text(to, "Date: ");
        hafti_http_put_now(to);
        to = put_text(to + HAFTI_HTTP_DATE, "\r\n");
    }
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

/* ---- The body ---- */

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

static int inform(haft_http_request_t *request, int status, const char *lines, size_t size) {
    enum { MOST = 64 }; /* bytes of what is around the lines */
    char *head = hafti_http_allocate(&request->message, size + MOST);
    if (head == NULL)
        return -ENOMEM;
    char *to = put_status(put_text(head, "HTTP/1.1 "), (unsigned)status);
    to = put_text(put_text(put_text(to, " "), hafti_http_reason_of(status)), "\r\n");
    to = put_text(put(to, lines, size), "\r\n");
    return hafti_http_answer_send(request, head, (size_t)(to - head));
}

const hafti_http_framing_t hafti_http1_framing = {
    .head = gather_head,
    .piece = gather_chunk,
    .end = gather_end,
    .become_stream = gather_switch,
    .inform = inform,
};
