/* SPDX-License-Identifier: MIT */
/*
 * Attacks on a connection of HTTP/2 that a client can make on a server, and a server on a client:
 * one table, to which both ends are held. Each attack is a sequence of parts, which are bytes on
 * the connection; the side that is attacked ends the connection with this error (RFC 9113, section
 * 5.4.1), and tells all of its tasks that wait for it.
 */
#ifndef HTTP2_ATTACKS_H
#define HTTP2_ATTACKS_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A frame with its head; how many bytes. */
static inline size_t put_frame(char *into, int type, int flags, int32_t stream, const char *bytes,
                               size_t size) {
    const unsigned char head[] = {
        (unsigned char)(size >> 16),   (unsigned char)(size >> 8),   (unsigned char)size,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    memcpy(into, head, sizeof head);
    if (size != 0)
        memcpy(into + sizeof head, bytes, size);
    return sizeof head + size;
}

enum { ATTACK_PART = 17000, ATTACK_FLOOD = 5000 };

typedef struct {
    const char *what;
    uint32_t error; /* of the GOAWAY */
    int type, flags;
    int32_t stream; /* the other side has an open stream 1 */
    const char *bytes;
    size_t size;
    int times; /* as many such frames; streams go up by 2 where `steps` */
    bool steps;
    const char *before; /* a whole frame, once; NULL: none */
    size_t before_size;
} attack_t;

#define ATTACK_FRAME(type, flags, stream, bytes) type, flags, stream, bytes, sizeof bytes - 1

/* The beginning of a head, with the field a: b. */
#define ATTACK_HEAD "\0\0\5\1\0\0\0\0\1\0\1a\1b"

static const attack_t attacks[] = {
    /* Windows: RFC 9113, sections 6.9 and 6.9.1. */
    {"window beyond its limit", NGHTTP2_FLOW_CONTROL_ERROR,
     ATTACK_FRAME(NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff"), 1, false, NULL, 0},
    {"window update of nothing", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0"), 1, false, NULL, 0},
    {"short window update", NGHTTP2_FRAME_SIZE_ERROR,
     ATTACK_FRAME(NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\1"), 1, false, NULL, 0},
    {"window of an idle stream", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_WINDOW_UPDATE, 0, 101, "\0\0\0\1"), 1, false, NULL, 0},
    /* Streams: sections 5.1 and 5.1.1. */
    {"stream of the wrong parity", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_HEADERS, 5, 2, "\x88"), 1, false, NULL, 0},
    {"push", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2\x82\x86\x84\x41\x04here"), 1, false, NULL,
     0},
    {"body of an idle stream", NGHTTP2_PROTOCOL_ERROR, ATTACK_FRAME(NGHTTP2_DATA, 0, 101, "a"), 1,
     false, NULL, 0},
    {"reset of an idle stream", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_RST_STREAM, 0, 101, "\0\0\0\10"), 1, false, NULL, 0},
    {"body of the connection", NGHTTP2_PROTOCOL_ERROR, ATTACK_FRAME(NGHTTP2_DATA, 0, 0, "a"), 1,
     false, NULL, 0},
    {"head of the connection", NGHTTP2_PROTOCOL_ERROR, ATTACK_FRAME(NGHTTP2_HEADERS, 5, 0, "\x88"),
     1, false, NULL, 0},
    {"reset of the connection", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_RST_STREAM, 0, 0, "\0\0\0\10"), 1, false, NULL, 0},
    {"short reset", NGHTTP2_FRAME_SIZE_ERROR, ATTACK_FRAME(NGHTTP2_RST_STREAM, 0, 1, "\0\0\0"), 1,
     false, NULL, 0},
    /* Heads: sections 4.3, 6.2 and 6.10. */
    {"compression of no field", NGHTTP2_COMPRESSION_ERROR,
     ATTACK_FRAME(NGHTTP2_HEADERS, 5, 1, "\x80"), 1, false, NULL, 0},
    {"compression beyond the table", NGHTTP2_COMPRESSION_ERROR,
     ATTACK_FRAME(NGHTTP2_HEADERS, 5, 1, "\xff\x80\x01"), 1, false, NULL, 0},
    {"continuation of nothing", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_CONTINUATION, 4, 1, "\x88"), 1, false, NULL, 0},
    {"another frame in a head", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_PING, 0, 0, "12345678"), 1, false, ATTACK_HEAD, sizeof ATTACK_HEAD - 1},
    {"padding longer than its frame", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_HEADERS, 0xd, 1, "\x05\x88"), 1, false, NULL, 0},
    /* Frames of the connection: sections 6.5, 6.7 and 6.8. */
    {"settings of a stream", NGHTTP2_PROTOCOL_ERROR, ATTACK_FRAME(NGHTTP2_SETTINGS, 0, 1, ""), 1,
     false, NULL, 0},
    {"settings of five bytes", NGHTTP2_FRAME_SIZE_ERROR,
     ATTACK_FRAME(NGHTTP2_SETTINGS, 0, 0, "\0\1\0\0\0"), 1, false, NULL, 0},
    {"acknowledgement with settings", NGHTTP2_FRAME_SIZE_ERROR,
     ATTACK_FRAME(NGHTTP2_SETTINGS, 1, 0, "\0\3\0\0\0\1"), 1, false, NULL, 0},
    {"setting of a push", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_SETTINGS, 0, 0, "\0\2\0\0\0\2"), 1, false, NULL, 0},
    {"setting of a window", NGHTTP2_FLOW_CONTROL_ERROR,
     ATTACK_FRAME(NGHTTP2_SETTINGS, 0, 0, "\0\4\x80\0\0\0"), 1, false, NULL, 0},
    {"setting of a frame", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_SETTINGS, 0, 0, "\0\5\0\0\0\1"), 1, false, NULL, 0},
    {"ping of seven bytes", NGHTTP2_FRAME_SIZE_ERROR, ATTACK_FRAME(NGHTTP2_PING, 0, 0, "1234567"),
     1, false, NULL, 0},
    {"ping of a stream", NGHTTP2_PROTOCOL_ERROR, ATTACK_FRAME(NGHTTP2_PING, 0, 1, "12345678"), 1,
     false, NULL, 0},
    {"farewell of a stream", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0"), 1, false, NULL, 0},
    {"short farewell", NGHTTP2_FRAME_SIZE_ERROR,
     ATTACK_FRAME(NGHTTP2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0"), 1, false, NULL, 0},
    {"priority after itself", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_PRIORITY, 0, 1, "\0\0\0\1\1"), 1, false, NULL, 0},
    {"priority of the connection", NGHTTP2_PROTOCOL_ERROR,
     ATTACK_FRAME(NGHTTP2_PRIORITY, 0, 0, "\0\0\0\1\1"), 1, false, NULL, 0},
    {"frame beyond its size", NGHTTP2_FRAME_SIZE_ERROR, NGHTTP2_PING, 0, 0, NULL, 16385, 1, false,
     NULL, 0},
    /* Floods, of frames that cost the sender less than the receiver. */
    {"flood of settings", NGHTTP2_ENHANCE_YOUR_CALM, ATTACK_FRAME(NGHTTP2_SETTINGS, 0, 0, ""),
     ATTACK_FLOOD, false, NULL, 0},
    {"flood of pings", NGHTTP2_ENHANCE_YOUR_CALM, ATTACK_FRAME(NGHTTP2_PING, 0, 0, "12345678"),
     ATTACK_FLOOD, false, NULL, 0},
    {"flood of acknowledgements", NGHTTP2_ENHANCE_YOUR_CALM,
     ATTACK_FRAME(NGHTTP2_PING, 1, 0, "12345678"), ATTACK_FLOOD, false, NULL, 0},
    {"flood of priorities", NGHTTP2_ENHANCE_YOUR_CALM,
     ATTACK_FRAME(NGHTTP2_PRIORITY, 0, 1, "\0\0\0\0\1"), ATTACK_FLOOD, true, NULL, 0},
    {"flood of unknown frames", NGHTTP2_ENHANCE_YOUR_CALM, ATTACK_FRAME(0x20, 0, 1, ""),
     ATTACK_FLOOD, true, NULL, 0},
    {"flood of windows", NGHTTP2_ENHANCE_YOUR_CALM,
     ATTACK_FRAME(NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1"), ATTACK_FLOOD, false, NULL, 0},
    {"flood of continuations", NGHTTP2_ENHANCE_YOUR_CALM,
     ATTACK_FRAME(NGHTTP2_CONTINUATION, 0, 1, ""), ATTACK_FLOOD, false, ATTACK_HEAD,
     sizeof ATTACK_HEAD - 1},
};

enum { ATTACKS = sizeof attacks / sizeof *attacks };

/* A part of the attack, of number `i`: how many bytes; 0: there is none. */
static inline size_t put_attack(const attack_t *attack, int i, char into[ATTACK_PART]) {
    static const char zeros[16385];
    size_t before = i == 0 ? attack->before_size : 0;
    if (i == attack->times)
        return 0;
    if (before != 0)
        memcpy(into, attack->before, before);
    return before + put_frame(into + before, attack->type, attack->flags,
                              attack->stream + (attack->steps ? 2 * i : 0),
                              attack->bytes != NULL ? attack->bytes : zeros, attack->size);
}

#endif
