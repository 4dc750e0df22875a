/* SPDX-License-Identifier: MIT */
/* The handshake of a WebSocket (RFC 6455, section 4.2): the clients that may connect, and the
   answer. */
#include "websocket.h"

#include <stdio.h>

/* ---- Which clients may connect ---- */

enum { KEY = HAFTI_HTTP_WEBSOCKET_KEY };

static bool is_key(const char *key) {
    return key != NULL && strlen(key) == KEY && strspn(key, hafti_http_letters) == KEY - 2 &&
           strcmp(key + KEY - 2, "==") == 0;
}

static bool is_origin_allowed(haft_http_request_t *request, const char *origins) {
    const char *origin = haft_http_request_header(request, "Origin");
    if (origin == NULL || (origins != NULL && strcmp(origins, "*") == 0))
        return true;
    if (origins == NULL) {
        const char *host = strstr(origin, "://");
        const char *own = haft_http_request_header(request, "Host");
        return host != NULL && own != NULL && hafti_http_same_text(host + 3, own);
    }
    return hafti_http_lists((hafti_http_text_t){origins, strlen(origins)}, origin);
}

/* 0; or the status that the request gets instead. */
static int refusal_of(haft_http_request_t *request, const haft_http_websocket_options_t *options) {
    const hafti_http_message_t *message = &request->message;
    const char *version = haft_http_request_header(request, "Sec-WebSocket-Version");
    if (!hafti_http_asks_to_upgrade(request, "websocket") || version == NULL ||
        strcmp(version, "13") != 0)
        return 426;
    if (message->parser.method != HTTP_GET ||
        !is_key(haft_http_request_header(request, "Sec-WebSocket-Key")))
        return 400;
    return is_origin_allowed(request, options->origins) ? 0 : 403;
}

/* The first of these that the client lists, too; NULL: none, or no memory. */
static const char *choose_protocol(haft_http_request_t *request, const char *protocols) {
    const char *offered = haft_http_request_header(request, "Sec-WebSocket-Protocol");
    hafti_http_text_t ours = {protocols, protocols != NULL ? strlen(protocols) : 0}, our, their;
    while (offered != NULL && hafti_http_next_part(&ours, ',', &our)) {
        hafti_http_text_t theirs = {offered, strlen(offered)};
        while (hafti_http_next_part(&theirs, ',', &their))
            if (our.size != 0 && our.size == their.size &&
                memcmp(our.bytes, their.bytes, our.size) == 0)
                return hafti_http_copy(&request->message, our.bytes, our.size);
    }
    return NULL;
}

static int answer_refused(haft_http_request_t *request, int status) {
    if (status == 426) {
        haft_http_answer_set_header(request, "Upgrade", "websocket");
        haft_http_answer_set_header(request, "Sec-WebSocket-Version", "13");
    }
    return hafti_http_answer_status(request, status);
}

/* Accepts compression as the client has offered it, or none. */
static int agree_on_deflation(haft_http_request_t *request,
                              const haft_http_websocket_options_t *options,
                              hafti_http_deflation_t *deflation) {
    char answer[HAFTI_HTTP_DEFLATION];
    const char *offers = haft_http_request_header(request, "Sec-WebSocket-Extensions");
    if (offers == NULL || options->uncompressed)
        return 0;
    hafti_http_deflation_accept(deflation, offers, options->keeps_context, answer);
    return *answer != '\0'
               ? haft_http_answer_set_header(request, "Sec-WebSocket-Extensions", answer)
               : 0;
}

static int answer_accepted(haft_http_request_t *request, const char *protocol) {
    char accepted[HAFTI_HTTP_WEBSOCKET_ANSWER + 1];
    hafti_http_answer_key(haft_http_request_header(request, "Sec-WebSocket-Key"), accepted);
    int code = haft_http_answer_set_header(request, "Sec-WebSocket-Accept", accepted);
    if (code == 0 && protocol != NULL)
        code = haft_http_answer_set_header(request, "Sec-WebSocket-Protocol", protocol);
    code = code == 0 ? haft_http_request_upgrade(request, "websocket") : code;
    haft_io_give_back(request->answer.block); /* frames have one while they are written */
    request->answer.block = NULL;
    request->answer.size = 0;
    return code;
}

haft_http_websocket_t *haft_http_websocket_accept_with(const haft_http_websocket_options_t *given,
                                                       haft_http_request_t *request) {
    haft_http_websocket_options_t options =
        given != NULL ? *given : (haft_http_websocket_options_t){0};
    int status = hafti_http_has_websocket ? refusal_of(request, &options) : 501;
    if (status != 0) {
        answer_refused(request, status);
        return NULL;
    }
    hafti_http_websocket_begin_t begin = {.request = request,
                                          .stream = request->message.stream,
                                          .limits = request->message.limits,
                                          .options = &options,
                                          .protocol = choose_protocol(request, options.protocols)};
    int code = agree_on_deflation(request, &options, &begin.deflation);
    haft_http_websocket_t *socket = code == 0 ? hafti_http_websocket_new(&begin) : NULL;
    code = socket != NULL ? answer_accepted(request, begin.protocol) : -ENOMEM;
    if (code == 0)
        return socket;
    hafti_http_answer_status(request, 500); /* unless the answer has begun */
    return NULL;
}
