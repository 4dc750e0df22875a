/* SPDX-License-Identifier: MIT */
/* The access log: the outcome of each request, as lines in one of the usual forms, or by a hook. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* A line, which is cut off where there is no more room. */
typedef struct {
    char bytes[4096];
    size_t size;
    bool is_json;
} line_t;

static void put(line_t *line, const char *bytes, size_t size) {
    size_t room = sizeof line->bytes - 2 - line->size;
    size = size < room ? size : room;
    memcpy(line->bytes + line->size, bytes, size);
    line->size += size;
}

__attribute__((format(printf, 2, 3))) static void print(line_t *line, const char *format, ...) {
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(line, text, strlen(text));
}

/* Puts at most `most` bytes of a text that stands between quotes, so that none of them ends the
   quotes or the line. */
static void put_escaped(line_t *line, const char *text, size_t most) {
    for (; *text != '\0' && most-- != 0; text++) {
        unsigned char byte = (unsigned char)*text;
        char escaped[HAFTI_HTTP_JSON_BYTE];
        if (line->is_json)
            put(line, escaped, hafti_http_put_json(escaped, *text, false));
        else if (byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\')
            put(line, text, 1);
        else
            print(line, "\\x%02x", byte);
    }
}

/* A field of the request between quotes. */
static void put_field(line_t *line, haft_http_request_t *request, const char *name,
                      const char *none) {
    const char *value = haft_http_request_header(request, name);
    put(line, "\"", 1);
    put_escaped(line, value != NULL ? value : none, 500);
    put(line, "\"", 1);
}

static void put_common(line_t *line, haft_http_request_t *request,
                       const haft_http_access_t *access) {
    const char *peer = haft_http_request_client_address(request);
    char date[HAFTI_HTTP_DATE + 1]; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
    hafti_http_put_date((time_t)(access->begun / HAFT_IO_SECOND), date);
    print(line, "%s - - [%.2s/%.3s/%.4s:%.8s +0000] \"", *peer != '\0' ? peer : "-", date + 5,
          date + 8, date + 12, date + 17);
    if (access->is_refused) {
        put(line, "-", 1);
    } else {
        print(line, "%s ", request->method);
        put_escaped(line, haft_http_request_target(request), 2000);
        print(line, " %s", haft_http_request_version(request));
    }
    print(line, "\" %03d %llu", access->status, (unsigned long long)access->size);
}

static void put_combined(line_t *line, haft_http_request_t *request,
                         const haft_http_access_t *access) {
    put_common(line, request, access);
    put(line, " ", 1);
    put_field(line, request, "Referer", "-");
    put(line, " ", 1);
    put_field(line, request, "User-Agent", "-");
}

static void put_json(line_t *line, haft_http_request_t *request, const haft_http_access_t *access) {
    struct tm parts;
    time_t begun = (time_t)(access->begun / HAFT_IO_SECOND);
    line->is_json = true;
    gmtime_r(&begun, &parts);
    print(line, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\",\"client\":\"%s\"",
          parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
          parts.tm_sec, (int)(access->begun % HAFT_IO_SECOND / HAFT_IO_MICROSECOND),
          haft_http_request_client_address(request));
    if (!access->is_refused) {
        print(line, ",\"method\":\"%s\",\"target\":\"", request->method);
        put_escaped(line, haft_http_request_target(request), 300);
        print(line, "\",\"version\":\"%s\"", haft_http_request_version(request));
    }
    print(line, ",\"status\":%d,\"size\":%llu,\"seconds\":%lld.%06lld,\"referer\":", access->status,
          (unsigned long long)access->size, (long long)(access->duration / HAFT_IO_SECOND),
          (long long)(access->duration % HAFT_IO_SECOND / HAFT_IO_MICROSECOND));
    put_field(line, request, "Referer", "");
    put(line, ",\"user_agent\":", 14);
    put_field(line, request, "User-Agent", "");
    const haft_http_trace_t *trace = haft_http_trace_get();
    if (trace != NULL)
        print(line, ",\"trace\":\"%s\"", trace->id);
    put(line, "}", 1);
}

/* Writes the line in one piece; bytes that the standard output does not take are lost. */
static void write_out(line_t *line) {
    line->bytes[line->size++] = '\n';
    if (write(STDOUT_FILENO, line->bytes, line->size) < 0)
        return;
}

static void log_line(void *argument, haft_http_request_t *request,
                     const haft_http_access_t *access) {
    static void (*const forms[])(line_t *, haft_http_request_t *, const haft_http_access_t *) = {
        [HAFT_HTTP_LOG_COMMON] = put_common,
        [HAFT_HTTP_LOG_COMBINED] = put_combined,
        [HAFT_HTTP_LOG_JSON] = put_json,
    };
    const hafti_http_access_log_t *log = argument;
    line_t line;
    line.size = 0;
    line.is_json = false;
    forms[log->format](&line, request, access);
    line.bytes[line.size] = '\0';
    if (log->function != NULL)
        log->function(log->argument, line.bytes);
    else
        write_out(&line);
}

void haft_http_server_set_access_hook(haft_http_server_t *server, haft_http_access_hook_t *hook,
                                      void *argument) {
    server->access_hook = hook;
    server->access_argument = argument;
    server->notes_requests = hook != NULL || server->counts;
}

void haft_http_server_set_access_log(haft_http_server_t *server, haft_http_log_format_t format,
                                     haft_http_log_t *log, void *argument) {
    server->access_log = (hafti_http_access_log_t){format, log, argument};
    haft_http_server_set_access_hook(server, log_line, &server->access_log);
}

void hafti_http_begin_to_note(haft_http_request_t *request) {
    struct timespec now = haft_io_date();
    request->begun = now.tv_sec * HAFT_IO_SECOND + now.tv_nsec;
    request->begun_at = haft_io_now();
}

void hafti_http_note_request(haft_http_request_t *request) {
    haft_http_server_t *server = request->server;
    const hafti_http_answer_t *answer = &request->answer;
    haft_http_access_t access = {.status = answer->status,
                                 .size = answer->without_body ? 0 : answer->written,
                                 .begun = request->begun,
                                 .duration = haft_io_now() - request->begun_at,
                                 .is_refused = *request->method == '?'};
    if (server->counts)
        hafti_http_count_request(&server->counters, request, &access);
    if (server->counts && haft_http_request_route(request) != NULL)
        hafti_http_count_request(request->match.entry->counts, request, &access);
    if (server->access_hook != NULL)
        server->access_hook(server->access_argument, request, &access);
}
