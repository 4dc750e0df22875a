/* SPDX-License-Identifier: MIT */
/* The handshake of a WebSocket (RFC 6455, 4.2): who may connect, and what is answered. */
#include "websocket.h"

#include <endian.h>
#include <stdio.h>

/* ---- The key's answer: base64 of a SHA-1 ---- */

enum { DIGEST = 20, KEY = HAFTI_HTTP_WEBSOCKET_KEY };

static uint32_t rotate(uint32_t word, int by) {
    return word << by | word >> (32 - by);
}

/* FIPS 180-4, 6.1.2. */
static void digest_block(uint32_t state[5], const unsigned char *block) {
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        if (i < 16) {
            memcpy(&words[i], block + 4 * i, 4);
            words[i] = be32toh(words[i]);
        } else {
            words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
        }
        uint32_t mixed = i < 20        ? (b & c) | (~b & d)
                         : i / 20 == 2 ? (b & c) | (b & d) | (c & d)
                                       : b ^ c ^ d;
        uint32_t next = rotate(a, 5) + mixed + e + constants[i / 20] + words[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

/* SHA-1 of less than 120 bytes. */
static void digest(const char *text, unsigned char into[DIGEST]) {
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char blocks[128] = {0};
    size_t size = strlen(text), end = size < 56 ? 64 : 128;
    memcpy(blocks, text, size);
    blocks[size] = 0x80;
    blocks[end - 2] = (unsigned char)(size * 8 >> 8);
    blocks[end - 1] = (unsigned char)(size * 8);
    for (size_t at = 0; at < end; at += 64)
        digest_block(state, blocks + at);
    for (int i = 0; i < 5; i++) {
        uint32_t word = htobe32(state[i]);
        memcpy(into + 4 * i, &word, 4);
    }
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hafti_http_put_base64(const unsigned char *bytes, size_t size, char *into) {
    for (size_t at = 0; at < size; at += 3, into += 4) {
        uint32_t bits = 0;
        for (size_t i = 0; i < 3; i++)
            bits = bits << 8 | (at + i < size ? bytes[at + i] : 0);
        for (size_t i = 0; i < 4; i++)
            into[i] = at + i > size ? '=' : letters[bits >> (18 - i * 6) & 63];
    }
    *into = '\0';
}

void hafti_http_answer_key(const char *key, char into[HAFTI_HTTP_WEBSOCKET_ANSWER + 1]) {
    char text[HAFTI_HTTP_WEBSOCKET_KEY + 40];
    unsigned char bytes[DIGEST];
    snprintf(text, sizeof text, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    digest(text, bytes);
    hafti_http_put_base64(bytes, DIGEST, into);
}

/* ---- Who may connect ---- */

static bool is_key(const char *key) {
    return key != NULL && strlen(key) == KEY && strspn(key, letters) == KEY - 2 &&
           strcmp(key + KEY - 2, "==") == 0;
}

static bool is_origin_allowed(haft_http_request_t *request, const char *origins) {
    const char *origin = haft_http_header(request, "Origin");
    if (origin == NULL || (origins != NULL && strcmp(origins, "*") == 0))
        return true;
    if (origins == NULL) {
        const char *host = strstr(origin, "://");
        const char *own = haft_http_header(request, "Host");
        return host != NULL && own != NULL && strcasecmp(host + 3, own) == 0;
    }
    return hafti_http_lists((hafti_http_text_t){origins, strlen(origins)}, origin);
}

/* 0; or the status that the request gets instead. */
static int refusal_of(haft_http_request_t *request, const haft_http_websocket_options_t *options) {
    const hafti_http_message_t *message = &request->message;
    const char *version = haft_http_header(request, "Sec-WebSocket-Version");
    if (!hafti_http_asks_to_upgrade(request, "websocket") || version == NULL ||
        strcmp(version, "13") != 0)
        return 426;
    if (message->parser.method != HTTP_GET ||
        !is_key(haft_http_header(request, "Sec-WebSocket-Key")))
        return 400;
    return is_origin_allowed(request, options->origins) ? 0 : 403;
}

/* The first of these that the client lists, too; NULL: none, or no memory. */
static const char *choose_protocol(haft_http_request_t *request, const char *protocols) {
    const char *offered = haft_http_header(request, "Sec-WebSocket-Protocol");
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
        haft_http_set_header(request, "Upgrade", "websocket");
        haft_http_set_header(request, "Sec-WebSocket-Version", "13");
    }
    return hafti_http_answer_status(request, status);
}

/* Whether messages are compressed, as the client has offered. */
static int agree_on_deflation(haft_http_request_t *request,
                              const haft_http_websocket_options_t *options,
                              hafti_http_deflation_t *deflation) {
    char answer[HAFTI_HTTP_DEFLATION];
    const char *offers = haft_http_header(request, "Sec-WebSocket-Extensions");
    if (offers == NULL || options->uncompressed)
        return 0;
    hafti_http_deflation_accept(deflation, offers, options->keeps_context, answer);
    return *answer != '\0' ? haft_http_set_header(request, "Sec-WebSocket-Extensions", answer) : 0;
}

static int answer_accepted(haft_http_request_t *request, const char *protocol) {
    char accepted[HAFTI_HTTP_WEBSOCKET_ANSWER + 1];
    hafti_http_answer_key(haft_http_header(request, "Sec-WebSocket-Key"), accepted);
    int code = haft_http_set_header(request, "Sec-WebSocket-Accept", accepted);
    if (code == 0 && protocol != NULL)
        code = haft_http_set_header(request, "Sec-WebSocket-Protocol", protocol);
    code = code == 0 ? haft_http_upgrade(request, "websocket") : code;
    haft_io_give_back(request->answer.block); /* frames have one while they are written */
    request->answer.block = NULL;
    request->answer.size = 0;
    return code;
}

haft_http_websocket_t *haft_http_websocket_accept(haft_http_request_t *request,
                                                  const haft_http_websocket_options_t *given) {
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
