/* SPDX-License-Identifier: MIT */
/* Server-sent events: what one browser sends, all get. Open http://localhost:8080/ in several
   windows. Its argument is another port. All handlers run on one thread, so the list of listeners
   needs no lock. */
#include <haft/http.h>

#include <stdlib.h>
#include <string.h>

static const char page[] =
    "<!doctype html><title>Events</title><form><input name=text "
    "autofocus></form><ul></ul><script>\n"
    "const list = document.querySelector('ul'), form = document.querySelector('form');\n"
    "new EventSource('/events').onmessage = event =>\n"
    "  list.append(Object.assign(document.createElement('li'), {textContent: event.data}));\n"
    "form.onsubmit = event => {\n"
    "  event.preventDefault();\n"
    "  fetch('/say', {method: 'POST', body: new URLSearchParams(new FormData(form))});\n"
    "  form.reset();\n"
    "};\n"
    "</script>\n";

static int show_page(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

typedef struct {
    char bytes[200];
} text_t;

typedef struct listener {
    struct listener *next, **back;
    haft_io_channel_t *heard;
} listener_t;

static listener_t *listeners;

static void leave(const listener_t *listener) {
    *listener->back = listener->next;
    if (listener->next != NULL)
        listener->next->back = listener->back;
    haft_io_channel_free(listener->heard);
}

static int send_events(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_channel_t *heard = haft_io_channel_new(sizeof(text_t), 16);
    if (heard == NULL)
        return -ENOMEM;
    __attribute__((cleanup(leave))) listener_t self = {listeners, &listeners, heard};
    if (listeners != NULL)
        listeners->back = &self.next;
    listeners = &self;

    text_t text;
    int code = haft_http_events_begin(request);
    while (code == 0 && haft_http_events_receive(request, heard, &text) == 0)
        code = haft_http_events_send(request, &(haft_http_event_t){.data = text.bytes});
    return code;
}

/* A listener that is 16 texts behind misses this one. */
static int say(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *said = haft_http_request_form(request, "text");
    text_t text;
    if (said == NULL || strlen(said) >= sizeof text.bytes)
        return haft_http_answer_text(request, 400, "text=..., of up to 199 bytes, please\n");
    strcpy(text.bytes, said);
    for (listener_t *listener = listeners; listener != NULL; listener = listener->next)
        haft_io_channel_try_send(listener->heard, &text);
    return haft_http_answer(request, 204, NULL, "", 0);
}

int main(int count, char **arguments) {
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/", show_page, NULL);
    haft_http_server_get(server, "/events", send_events, NULL);
    haft_http_server_post(server, "/say", say, NULL);
    haft_http_run_options_t how = {.port = count > 1 ? (uint16_t)atoi(arguments[1]) : 8080};
    int code = haft_http_server_run_with(&how, server);
    haft_http_server_free(server);
    return code != 0;
}
