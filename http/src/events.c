/* SPDX-License-Identifier: MIT */
/* Handlers that wait for long: they notice the end of their client and of the server. Server-sent
   events (HTML standard, section 9.2). */
#include "internal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Events ---- */

int haft_http_events_begin(haft_http_request_t *request) {
    int code = haft_http_answer_set_header(request, "Cache-Control", "no-store");
    if (code == 0)
        code = haft_http_answer_begin(request, 200, "text/event-stream", HAFT_HTTP_UNKNOWN_SIZE);
    if (code != 0)
        return code;
    request->answer.has_events = true;
    request->answer.last_event = haft_io_now();
    return haft_http_answer_flush(request);
}

const char *haft_http_events_last_id(haft_http_request_t *request) {
    return haft_http_request_header(request, "Last-Event-ID");
}

/* Up to the end of a line, which is CR, LF, or both; and the begin of the next, NULL where there
   is none. */
static size_t line_of(const char *text, const char **next) {
    size_t size = strcspn(text, "\r\n");
    const char *end = text + size;
    *next = *end == '\0' ? NULL : strncmp(end, "\r\n", 2) == 0 ? end + 2 : end + 1;
    return size;
}

static bool is_line(const char *text) {
    return text == NULL || text[strcspn(text, "\r\n")] == '\0';
}

/* The text that an event becomes. NULL: its size is only counted. */
typedef struct {
    char *text;
    size_t size;
} event_text_t;

static void add(event_text_t *to, const char *bytes, size_t size) {
    if (to->text != NULL)
        memcpy(to->text + to->size, bytes, size);
    to->size += size;
}

static void add_line(event_text_t *to, const char *name, const char *value, size_t size) {
    add(to, name, strlen(name));
    add(to, value, size);
    add(to, "\n", 1);
}

static void add_event(event_text_t *to, const haft_http_event_t *event) {
    char retry[30];
    if (event->type != NULL)
        add_line(to, "event: ", event->type, strlen(event->type));
    if (event->id != NULL)
        add_line(to, "id: ", event->id, strlen(event->id));
    snprintf(retry, sizeof retry, "%lld", (long long)(event->retry / HAFT_IO_MILLISECOND));
    if (event->retry > 0)
        add_line(to, "retry: ", retry, strlen(retry));
    for (const char *line = event->data, *next; line != NULL; line = next) {
        size_t size = line_of(line, &next);
        add_line(to, "data: ", line, size);
    }
    add(to, "\n", 1);
}

static void free_text(event_text_t *text) {
    free(text->text);
}

static int send_now(haft_http_request_t *request, const char *text, size_t size) {
    int code = haft_http_answer_write(request, text, size);
    request->answer.last_event = haft_io_now();
    return code == 0 ? haft_http_answer_flush(request) : code;
}

int haft_http_events_send(haft_http_request_t *request, const haft_http_event_t *event) {
    if (event == NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "the event is NULL: write one, with a text in .data");
    if (!is_line(event->type) || !is_line(event->id))
        return -EINVAL;
    __attribute__((cleanup(free_text))) event_text_t text = {NULL, 0};
    add_event(&text, event);
    text.text = malloc(text.size);
    if (text.text == NULL)
        return -ENOMEM;
    text.size = 0;
    add_event(&text, event);
    return send_now(request, text.text, text.size);
}

/* ---- Waits ---- */

/* Notes that the client has not got all, which is no failure of the handler. */
static int note_gone(haft_http_request_t *request) {
    request->answer.failed = true;
    request->keeps = false;
    return -ECONNRESET;
}

/* The end of the client, as a case of haft_io_select. */
static haft_io_select_case_t until_gone(const haft_http_request_t *request) {
    haft_io_event_t *gone = request->message.stream->gone;
    if (gone != NULL)
        return (haft_io_select_case_t){.event = gone};
    return (haft_io_select_case_t){.descriptor = haft_http_request_descriptor(request),
                                   .events = POLLRDHUP};
}

int haft_http_request_select_until(haft_http_request_t *request, haft_io_select_case_t *choices,
                                   size_t count, int64_t deadline) {
    const hafti_http_answer_t *answer = &request->answer;
    int64_t pause = request->message.limits->events_time;
    haft_io_select_case_t all[count + 2];
    if (count != 0)
        memcpy(all, choices, count * sizeof *all);
    all[count] = (haft_io_select_case_t){.event = &request->server->stop};
    all[count + 1] = until_gone(request);
    if (answer->failed)
        return -ECONNRESET;
    if (request->is_head)
        return -ESHUTDOWN;
    for (;;) {
        int64_t next =
            answer->has_events ? hafti_http_deadline(answer->last_event, pause) : HAFT_IO_FOREVER;
        int64_t until = next < deadline ? next : deadline;
        int chosen = haft_io_select_until(all, count + 2, until);
        if (chosen == (int)count)
            return -ESHUTDOWN;
        if (chosen == (int)count + 1)
            return note_gone(request);
        if (chosen >= 0)
            choices[chosen].code = all[chosen].code;
        if (chosen != -ETIMEDOUT || until == deadline || haft_io_now() < until)
            return chosen;
        int code = send_now(request, ":\n\n", 3);
        if (code != 0)
            return code;
    }
}

int haft_http_events_receive(haft_http_request_t *request, haft_io_channel_t *channel,
                             void *value) {
    haft_io_select_case_t choice = {.channel = channel, .receive = value};
    int code = haft_http_request_select_until(request, &choice, 1, HAFT_IO_FOREVER);
    return code < 0 ? code : choice.code;
}

/* ---- Cancelling with the client ---- */

typedef struct {
    haft_http_request_t *request;
    haft_http_next_t *next;
    haft_io_scope_t *scope;
    int code;
    bool has_returned, is_gone;
} watched_t;

static void *watch_client(void *argument) {
    watched_t *watched = argument;
    haft_io_select_case_t gone = until_gone(watched->request);
    if (haft_io_select(&gone, 1) == 0) {
        watched->is_gone = true;
        haft_io_scope_cancel(watched->scope);
    }
    return NULL;
}

static void *call_watched(void *argument) {
    watched_t *watched = argument;
    watched->scope = haft_io_this_scope();
    haft_io_task_options_t options = {.scope = watched->scope};
    int code = haft_io_spawn_with(&options, watch_client, watched);
    watched->code = code == 0 ? watched->next->call(watched->next, watched->request) : code;
    watched->has_returned = true;
    haft_io_scope_cancel(watched->scope); /* nobody watches any more */
    return NULL;
}

int haft_http_request_cancel_with_client(haft_http_request_t *request, haft_http_next_t *next,
                                         void *unused) {
    (void)unused;
    haft_io_failures_t failures = {0};
    watched_t watched = {.request = request, .next = next};
    haft_io_scope_options_t options = {.name = "HTTP handler",
                                       .failures = &failures,
                                       .scope_of_spawns = hafti_http_scope_of_spawns};
    int code = haft_io_scope_with(&options, call_watched, &watched, NULL);
    bool has_answered = watched.has_returned && watched.code != -ECANCELED;
    if (watched.is_gone && !has_answered && code == -ECANCELED)
        return note_gone(request);
    if (watched.has_returned && (code == 0 || code == -ECANCELED))
        return watched.code;
    if (failures.count != 0 && failures.failures[0].message != NULL)
        haft_http_request_note_failure(request, failures.failures[0].message);
    return code;
}
