/* SPDX-License-Identifier: MIT */
/* A chat over WebSocket: open http://localhost:8080/ in several windows. Its argument is another
   port. All handlers run on one thread, so the list of guests needs no lock. */
#include <haft/http.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char page[] =
    "<!doctype html><title>Chat</title><form><input name=text autofocus></form><ul></ul><script>\n"
    "const list = document.querySelector('ul'), form = document.querySelector('form');\n"
    "const socket = new WebSocket(location.origin.replace('http', 'ws') + '/chat');\n"
    "socket.onmessage = event =>\n"
    "  list.append(Object.assign(document.createElement('li'), {textContent: event.data}));\n"
    "form.onsubmit = event => {\n"
    "  event.preventDefault();\n"
    "  socket.send(form.text.value);\n"
    "  form.reset();\n"
    "};\n"
    "</script>\n";

static int show_page(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

typedef struct {
    size_t size;
    char bytes[500];
} text_t;

typedef struct guest {
    struct guest *next, **back;
    haft_http_websocket_t *socket;
    haft_io_channel_t *heard;
} guest_t;

static guest_t *guests;

static void leave(const guest_t *guest) {
    *guest->back = guest->next;
    if (guest->next != NULL)
        guest->next->back = guest->back;
    haft_io_channel_free(guest->heard);
}

/* A task of its own, so that a guest whose connection is slow holds up nobody. */
static void *tell(void *argument) {
    guest_t *guest = argument;
    text_t text;
    while (haft_io_channel_receive(guest->heard, &text) == 0 &&
           haft_http_websocket_send(guest->socket, HAFT_HTTP_WEBSOCKET_TEXT, text.bytes,
                                    text.size) == 0)
        continue;
    return NULL;
}

static void *listen_to(void *argument) {
    guest_t *guest = argument;
    haft_http_websocket_message_t message;
    if (haft_io_spawn(tell, guest) != 0)
        return NULL;
    while (haft_http_websocket_receive(guest->socket, &message) == 0) {
        text_t text = {.size = message.size};
        if (message.kind != HAFT_HTTP_WEBSOCKET_TEXT || message.size > sizeof text.bytes)
            continue;
        memcpy(text.bytes, message.bytes, message.size);
        for (guest_t *other = guests; other != NULL; other = other->next)
            haft_io_channel_try_send(other->heard, &text); /* one that is 16 behind misses it */
    }
    haft_io_channel_close(guest->heard);
    return NULL;
}

static int chat(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    if (socket == NULL)
        return 0;
    haft_io_channel_t *heard = haft_io_channel_new(sizeof(text_t), 16);
    if (heard == NULL)
        return -ENOMEM;
    __attribute__((cleanup(leave))) guest_t self = {guests, &guests, socket, heard};
    if (guests != NULL)
        guests->back = &self.next;
    guests = &self;
    return haft_io_scope_with(NULL, listen_to, &self, NULL);
}

int main(int count, char **arguments) {
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/", show_page, NULL);
    haft_http_server_get(server, "/chat", chat, NULL);
    haft_http_run_options_t how = {.port = count > 1 ? (uint16_t)atoi(arguments[1]) : 8080};
    int code = haft_http_server_run_with(&how, server);
    haft_http_server_free(server);
    return code != 0;
}
