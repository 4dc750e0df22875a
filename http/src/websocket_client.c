/* SPDX-License-Identifier: MIT */
/* The client's side of a WebSocket's handshake (RFC 6455, section 4.1). */
#include "client.h"
#include "websocket.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    char key[HAFTI_HTTP_WEBSOCKET_KEY + 1];
    char *url, *lines;
} handshake_t;

static void free_handshake(const handshake_t *handshake) {
    free(handshake->url);
    free(handshake->lines);
}

/* RFC 6455, section 3: ws: and wss: are http: and https: here. */
static char *url_of(const char *text) {
    char *url = NULL;
    bool is_ws = hafti_http_begins(text, "ws:") || hafti_http_begins(text, "wss:");
    return asprintf(&url, "%s%s", is_ws ? "http" : "", is_ws ? text + 2 : text) >= 0 ? url : NULL;
}

static int make_key(char key[HAFTI_HTTP_WEBSOCKET_KEY + 1]) {
    unsigned char bytes[16];
    int code = hafti_http_make_random(bytes, sizeof bytes);
    if (code == 0)
        hafti_http_put_base64(bytes, sizeof bytes, key);
    return code;
}

static int make_lines(handshake_t *handshake, const haft_http_websocket_options_t *options) {
    const char *extension =
        options->uncompressed ? "" : hafti_http_deflation_offer(options->keeps_context);
    bool has_protocols = options->protocols != NULL, has_extension = *extension != '\0';
    int size = asprintf(&handshake->lines,
                        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
                        "13\r\nSec-WebSocket-Key: %s\r\n%s%s%s%s%s%s",
                        handshake->key, has_protocols ? "Sec-WebSocket-Protocol: " : "",
                        has_protocols ? options->protocols : "", has_protocols ? "\r\n" : "",
                        has_extension ? "Sec-WebSocket-Extensions: " : "", extension,
                        has_extension ? "\r\n" : "");
    if (size < 0)
        handshake->lines = NULL;
    return size < 0 ? -ENOMEM : 0;
}

static bool has_field(haft_http_reply_t *reply, const char *name, const char *word) {
    const char *text = haft_http_reply_header(reply, name);
    return text != NULL && hafti_http_lists((hafti_http_text_t){text, strlen(text)}, word);
}

static bool was_offered(const char *protocols, const char *chosen) {
    hafti_http_text_t list = {protocols, protocols != NULL ? strlen(protocols) : 0}, offered;
    while (hafti_http_next_part(&list, ',', &offered))
        if (strlen(chosen) == offered.size && memcmp(offered.bytes, chosen, offered.size) == 0)
            return true;
    return false;
}

/* Whether the server has agreed to what was asked for, and to nothing else. */
static bool has_agreed(haft_http_reply_t *reply, const handshake_t *handshake,
                       const haft_http_websocket_options_t *options,
                       hafti_http_websocket_begin_t *begin) {
    char expected[HAFTI_HTTP_WEBSOCKET_ANSWER + 1];
    const char *accepted = haft_http_reply_header(reply, "Sec-WebSocket-Accept");
    const char *extensions = haft_http_reply_header(reply, "Sec-WebSocket-Extensions");
    hafti_http_answer_key(handshake->key, expected);
    begin->protocol = haft_http_reply_header(reply, "Sec-WebSocket-Protocol");
    if (!has_field(reply, "Upgrade", "websocket") || !has_field(reply, "Connection", "upgrade") ||
        accepted == NULL || strcmp(accepted, expected) != 0)
        return false;
    if (begin->protocol != NULL && !was_offered(options->protocols, begin->protocol))
        return false;
    return extensions == NULL ||
           (!options->uncompressed &&
            hafti_http_deflation_agree(&begin->deflation, extensions, options->keeps_context));
}

static void tell_refusal(const haft_http_question_t *question, const char *what, int status) {
    if (question->failure != NULL)
        snprintf(question->failure, question->failure_size, "the server has answered with %s %d",
                 what, status);
}

static int begin_socket(haft_http_reply_t **reply, const haft_http_question_t *question,
                        const handshake_t *handshake, const haft_http_websocket_options_t *options,
                        haft_http_websocket_t **socket) {
    hafti_http_websocket_begin_t begin = {.reply = *reply, .options = options};
    hafti_http_reply_stream(*reply, &begin.stream, &begin.limits);
    int status = haft_http_reply_status(*reply);
    if (status != 101) {
        tell_refusal(question, "status", status);
        return -ECONNREFUSED;
    }
    if (!has_agreed(*reply, handshake, options, &begin)) {
        tell_refusal(question, "no handshake of a WebSocket, but status", status);
        return -EBADMSG;
    }
    *socket = hafti_http_websocket_new(&begin);
    if (*socket == NULL)
        return -ENOMEM;
    *reply = NULL;
    return 0;
}

int haft_http_websocket_connect_with(const haft_http_websocket_options_t *given,
                                     haft_http_client_t *client,
                                     const haft_http_question_t *question,
                                     haft_http_websocket_t **socket) {
    static const haft_http_websocket_options_t defaults = {0};
    const haft_http_websocket_options_t *options = given != NULL ? given : &defaults;
    *socket = NULL;
    if (!hafti_http_has_websocket)
        return -EOPNOTSUPP;
    if (question->url == NULL || question->method != NULL || question->body != NULL ||
        question->produce != NULL)
        return haft_io_refuse(
            -EINVAL, "haft_http_websocket_connect",
            "a question for a WebSocket has %s: write .url, and what else you need "
            "of .headers",
            question->url == NULL ? "no URL" : "a method, or a body");
    if (options->protocols != NULL &&
        !hafti_http_is_value(options->protocols, strlen(options->protocols)))
        return haft_io_refuse(-EINVAL, "haft_http_websocket_connect",
                              "'%s' is no list of protocols: write their names with commas between "
                              "them",
                              options->protocols);
    __attribute__((cleanup(free_handshake))) handshake_t handshake = {.url = url_of(question->url)};
    int code = handshake.url != NULL ? make_key(handshake.key) : -ENOMEM;
    code = code == 0 ? make_lines(&handshake, options) : code;
    if (code != 0)
        return code;
    haft_http_question_t asked = *question;
    asked.url = handshake.url;
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    code =
        hafti_http_ask_with(client, &asked, &(hafti_http_way_t){.lines = handshake.lines}, &reply);
    return code == 0 ? begin_socket(&reply, question, &handshake, options, socket) : code;
}
