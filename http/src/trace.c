/* SPDX-License-Identifier: MIT */
/* The trace of a task (W3C Trace Context, level 1): read of a request's fields, and written for
   a question's. */
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>

enum { ID = 32, SPAN = 16, PARENT = HAFTI_HTTP_TRACE_PARENT - 1, MEMBERS = 32 };
enum { SAMPLED = 1 };

/* The key of the trace among the task's values. */
static const char key;

/* ---- Identifiers ---- */

/* Draws an identifier. A function of its own, so that errno is this thread's. Where the system has
   no random bytes yet, the time has to do. */
__attribute__((noinline)) uint64_t hafti_http_identifier(void) {
    uint64_t word;
    if (haft_io_random(&word, sizeof word) != 0)
        word = (uint64_t)haft_io_now() * 0x9e3779b97f4a7c15u;
    return word != 0 ? word : 1; /* zero is no id */
}

static void make_span(char span[SPAN + 1]) {
    snprintf(span, SPAN + 1, "%016llx", (unsigned long long)hafti_http_identifier());
}

static bool is_hexadecimal(const char *text, size_t size) {
    return strspn(text, "0123456789abcdef") >= size;
}

static bool is_id(const char *text, size_t size) {
    return is_hexadecimal(text, size) && strspn(text, "0") < size;
}

/* ---- The fields ---- */

/* Trace Context, section 3.2: "00-ID-SPAN-FLAGS"; a later version may have more behind that. */
static bool read_parent(const char *text, haft_http_trace_t *trace) {
    size_t size = text != NULL ? strlen(text) : 0;
    if (size < PARENT || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
        !is_hexadecimal(text, 2) || memcmp(text, "ff", 2) == 0 || !is_id(text + 3, ID) ||
        !is_id(text + 36, SPAN) || !is_hexadecimal(text + 53, 2))
        return false;
    if (size > PARENT && (memcmp(text, "00", 2) == 0 || text[PARENT] != '-'))
        return false;
    memcpy(trace->id, text + 3, ID);
    memcpy(trace->parent, text + 36, SPAN);
    trace->is_sampled = (hafti_http_digit_of(text[54]) & SAMPLED) != 0;
    return true;
}

static bool is_of_key(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("_-*/@", byte) != NULL);
}

/* Trace Context, section 3.3: a key and a value. */
static bool is_member(hafti_http_text_t member) {
    const char *equals = memchr(member.bytes, '=', member.size);
    size_t size = equals != NULL ? (size_t)(equals - member.bytes) : 0;
    if (size == 0 || size > 256 || member.size - size - 1 > 256)
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_of_key(member.bytes[i]))
            return false;
    for (size_t i = size + 1; i < member.size; i++)
        if (member.bytes[i] < ' ' || member.bytes[i] > '~' || member.bytes[i] == '=')
            return false;
    return true;
}

/* Whole members, from the first one on; all are dropped if one is none. */
static void read_state(const char *text, haft_http_trace_t *trace) {
    hafti_http_text_t list = {text, text != NULL ? strlen(text) : 0}, member;
    size_t size = 0, count = 0;
    bool has_room = true;
    while (hafti_http_next_part(&list, ',', &member)) {
        if (member.size == 0)
            continue;
        if (!is_member(member) || ++count > MEMBERS) {
            size = 0;
            break;
        }
        has_room = has_room && size + member.size + 1 < sizeof trace->state;
        if (has_room)
            size += (size_t)snprintf(trace->state + size, sizeof trace->state - size, "%s%.*s",
                                     size != 0 ? "," : "", (int)member.size, member.bytes);
    }
    trace->state[size] = '\0';
}

/* ---- The trace of a task ---- */

const haft_http_trace_t *haft_http_trace_get(void) {
    return haft_io_local_get(&key);
}

int haft_http_trace_begin(const char *parent, const char *state) {
    haft_http_trace_t *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return -ENOMEM;
    make_span(trace->span);
    if (read_parent(parent, trace)) {
        read_state(state, trace);
    } else {
        make_span(trace->id);
        make_span(trace->id + SPAN);
        trace->is_sampled = true;
    }
    int code = haft_io_local_give(&key, trace, free);
    if (code != 0)
        free(trace);
    return code;
}

void haft_http_trace_end(void) {
    haft_io_local_set(&key, NULL);
}

/* Two fields "traceparent" name no trace: they are joined by a comma, which no version has. */
void hafti_http_trace_request(haft_http_request_t *request) {
    request->is_traced =
        haft_http_trace_begin(haft_http_request_header(request, "traceparent"),
                              haft_http_request_header(request, "tracestate")) == 0;
}

void hafti_http_identify_span(void) {
    const haft_http_trace_t *trace = haft_http_trace_get();
    if (trace != NULL)
        haft_io_trace_identify(trace->id, trace->span, trace->parent);
}

void hafti_http_put_trace_parent(const haft_http_trace_t *trace,
                                 char into[HAFTI_HTTP_TRACE_PARENT]) {
    char span[SPAN + 1];
    make_span(span);
    snprintf(into, HAFTI_HTTP_TRACE_PARENT, "00-%s-%s-%02x", trace->id, span,
             trace->is_sampled ? SAMPLED : 0);
}

void haft_http_server_trace_requests(haft_http_server_t *server) {
    server->traces = true;
}
