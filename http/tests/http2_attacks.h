/* SPDX-License-Identifier: MIT */
/*
 * Mistakes that a peer of HTTP/2 can make, and what has to follow: one table for servers and
 * for clients (RFC 9113). A test opens a connection, sends the preface, or reads the client's
 * request, and then has http2_attack send the frames and http2_judge look at what came back.
 *
 * Stream 1 is the first request. A server is told of it by the attack; where `is_open` is set, its
 * head comes before the frames. A client has begun it, and waits for the answer. The payload HEAD
 * is the head of a message: of a request for a server, of an answer for a client.
 */
#ifndef HTTP2_ATTACKS_H
#define HTTP2_ATTACKS_H

#include <haft/io.h>
#include <haft/io_sync.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HTTP2_SERVER = 1, HTTP2_CLIENT = 2, HTTP2_BOTH = 3 };

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    UNKNOWN = 0x20
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 0x20 };
enum {
    PROTOCOL_ERROR = 1,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    SETTINGS_TIMEOUT,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR,
    CONNECT_ERROR,
    ENHANCE_YOUR_CALM
};
enum { EACH_ANOTHER = -1 }; /* 1, 3, 5, ... */

typedef struct {
    int type, flags;
    int32_t stream;
    const char *bytes; /* NULL: `size` zeros, or the head */
    int size;          /* HEAD */
} http2_frame_t;
enum { HEAD = -1 };
#define BYTES(text) (text), sizeof(text) - 1
#define ZEROS(count) NULL, (count)
#define THE_HEAD NULL, HEAD

typedef enum {
    GOES_ON,    /* as if nothing had come */
    IS_RESET,   /* stream 1, with the code; or the connection ends with it */
    ENDS,       /* the connection, by a GOAWAY with the code, and then of TCP */
    ENDS_CALMLY /* likewise, or with ENHANCE_YOUR_CALM: in any case before the last of the flood */
} http2_outcome_t;

typedef struct {
    const char *what;
    int victims;
    bool is_open;
    http2_outcome_t outcome;
    uint32_t code;
    int times; /* that all frames behind the first are sent; 0: once */
    http2_frame_t frames[4];
} http2_attack_t;

enum { HTTP2_FLOOD = 20000 };

/* Its SETTINGS, byte by byte: a number and a value. */
#define SETTING(number, a, b, c, d) "\0" number a b c d

static const http2_attack_t http2_attacks[] = {
    /* ---- What is to be ignored, or allowed ---- */
    {"an unknown frame", HTTP2_BOTH, true, GOES_ON, 0, 0, {{UNKNOWN, 0xff, 1, BYTES("unknown")}}},
    {"an unknown setting",
     HTTP2_BOTH,
     true,
     GOES_ON,
     0,
     0,
     {{SETTINGS, 0, 0, BYTES(SETTING("\x77", "\1", "\2", "\3", "\4"))}}},
    {"an acknowledgement of no PING",
     HTTP2_BOTH,
     true,
     GOES_ON,
     0,
     0,
     {{PING, ACK, 0, BYTES("12345678")}}},
    {"a priority", HTTP2_BOTH, true, GOES_ON, 0, 0, {{PRIORITY, 0, 1, BYTES("\0\0\0\3\1")}}},
    {"a window of the greatest size",
     HTTP2_BOTH,
     true,
     GOES_ON,
     0,
     0,
     {{WINDOW_UPDATE, 0, 0, BYTES("\x7f\xff\0\0")}}},

    /* ---- Windows (RFC 9113, section 6.9) ---- */
    {"the connection's window overflows",
     HTTP2_BOTH,
     true,
     ENDS,
     FLOW_CONTROL_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 0, BYTES("\x7f\xff\xff\xff")}}},
    {"a stream's window overflows",
     HTTP2_BOTH,
     true,
     IS_RESET,
     FLOW_CONTROL_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 1, BYTES("\x7f\xff\xff\xff")}}},
    {"the first windows overflow",
     HTTP2_BOTH,
     true,
     ENDS,
     FLOW_CONTROL_ERROR,
     0,
     {{SETTINGS, 0, 0, BYTES(SETTING("\4", "\x80", "\0", "\0", "\0"))}}},
    {"the first windows let a stream's overflow",
     HTTP2_BOTH,
     true,
     IS_RESET,
     FLOW_CONTROL_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 1, BYTES("\0\1\0\0")},
      {SETTINGS, 0, 0, BYTES(SETTING("\4", "\x7f", "\xff", "\xff", "\xff"))}}},
    {"the connection's window grows by nothing",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 0, ZEROS(4)}}},
    {"a stream's window grows by nothing",
     HTTP2_BOTH,
     true,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 1, ZEROS(4)}}},
    {"the window of a stream that nobody has begun",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 11, BYTES("\0\0\0\1")}}},
    {"more than a window",
     HTTP2_SERVER,
     true,
     IS_RESET,
     FLOW_CONTROL_ERROR,
     20,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {DATA, 0, 1, ZEROS(16384)}}},
    {"more than a window",
     HTTP2_CLIENT,
     true,
     IS_RESET,
     FLOW_CONTROL_ERROR,
     20,
     {{HEADERS, END_HEADERS, 1, THE_HEAD}, {DATA, 0, 1, ZEROS(16384)}}},

    /* ---- Streams (5.1) ---- */
    {"a push",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{PUSH_PROMISE, END_HEADERS, 1, BYTES("\0\0\0\2\x82\x86\x84\x41\x04here")}}},
    {"a head of the other side's parity",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS | END_STREAM, 2, THE_HEAD}}},
    {"an answer that nobody has asked for",
     HTTP2_CLIENT,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS | END_STREAM, 11, THE_HEAD}}},
    {"a head on stream 0",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 0, THE_HEAD}}},
    {"a body on stream 0", HTTP2_BOTH, true, ENDS, PROTOCOL_ERROR, 0, {{DATA, 0, 0, BYTES("x")}}},
    {"a body of a stream that nobody has begun",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{DATA, 0, 11, BYTES("x")}}},
    {"a reset of a stream that nobody has begun",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{RST_STREAM, 0, 11, ZEROS(4)}}},
    {"a reset of stream 0",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{RST_STREAM, 0, 0, ZEROS(4)}}},
    {"a priority of stream 0",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{PRIORITY, 0, 0, BYTES("\0\0\0\3\1")}}},
    {"settings of a stream",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{SETTINGS, 0, 1, ZEROS(0)}}},
    {"a PING of a stream", HTTP2_BOTH, true, ENDS, PROTOCOL_ERROR, 0, {{PING, 0, 1, ZEROS(8)}}},
    {"a GOAWAY of a stream", HTTP2_BOTH, true, ENDS, PROTOCOL_ERROR, 0, {{GOAWAY, 0, 1, ZEROS(8)}}},
    {"a body before its head",
     HTTP2_CLIENT,
     true,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{DATA, 0, 1, BYTES("x")}}},
    {"a body behind the end",
     HTTP2_SERVER,
     true,
     ENDS,
     STREAM_CLOSED,
     0,
     {{DATA, END_STREAM, 1, BYTES("x")}, {DATA, 0, 1, BYTES("y")}}},
    {"a body behind the end",
     HTTP2_CLIENT,
     false,
     ENDS,
     STREAM_CLOSED,
     0,
     {{HEADERS, END_HEADERS | END_STREAM, 1, THE_HEAD}, {DATA, 0, 1, BYTES("y")}}},

    /* ---- Sizes (4.2) ---- */
    {"a frame that is too large",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{DATA, 0, 1, ZEROS(16385)}}},
    {"settings of five bytes",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{SETTINGS, 0, 0, ZEROS(5)}}},
    {"an acknowledgement with settings",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{SETTINGS, ACK, 0, ZEROS(6)}}},
    {"a PING of seven bytes",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{PING, 0, 0, ZEROS(7)}}},
    {"a window of three bytes",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{WINDOW_UPDATE, 0, 0, ZEROS(3)}}},
    {"a reset of three bytes",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{RST_STREAM, 0, 1, ZEROS(3)}}},
    {"a GOAWAY of seven bytes",
     HTTP2_BOTH,
     true,
     ENDS,
     FRAME_SIZE_ERROR,
     0,
     {{GOAWAY, 0, 0, ZEROS(7)}}},
    {"padding that is all of the body, and more",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{DATA, PADDED, 1, BYTES("\5xyz")}}},

    /* ---- Settings (6.5.2) ---- */
    {"a setting of push that is no truth value",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{SETTINGS, 0, 0, BYTES(SETTING("\2", "\0", "\0", "\0", "\2"))}}},
    {"a server that allows push",
     HTTP2_CLIENT,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{SETTINGS, 0, 0, BYTES(SETTING("\2", "\0", "\0", "\0", "\1"))}}},
    {"frames of too little",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{SETTINGS, 0, 0, BYTES(SETTING("\5", "\0", "\0", "\x3f", "\xff"))}}},
    {"frames of too much",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{SETTINGS, 0, 0, BYTES(SETTING("\5", "\1", "\0", "\0", "\0"))}}},

    /* ---- Heads (RFC 7541; RFC 9113, sections 4.3 and 8) ---- */
    {"an index of no field",
     HTTP2_BOTH,
     false,
     ENDS,
     COMPRESSION_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, BYTES("\xff\x80\x01")}}},
    {"index 0",
     HTTP2_BOTH,
     false,
     ENDS,
     COMPRESSION_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, BYTES("\x80")}}},
    {"an index without end",
     HTTP2_BOTH,
     false,
     ENDS,
     COMPRESSION_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}}},
    {"a field that is cut off",
     HTTP2_BOTH,
     false,
     ENDS,
     COMPRESSION_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x40\x0a"
             "abc")}}},
    {"a table that is too large",
     HTTP2_BOTH,
     false,
     ENDS,
     COMPRESSION_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, BYTES("\x3f\xff\xff\xff\x07")}}},
    {"Huffman's padding of zeros",
     HTTP2_BOTH,
     false,
     ENDS,
     COMPRESSION_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x40\x01"
             "a\x81\x18")}}},
    {"an empty head",
     HTTP2_BOTH,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, ZEROS(0)}}},
    {"another frame amid a head",
     HTTP2_BOTH,
     false,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, 0, 1, THE_HEAD}, {PING, 0, 0, ZEROS(8)}}},
    {"another stream's frame amid a head",
     HTTP2_BOTH,
     false,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, 0, 1, THE_HEAD}, {CONTINUATION, END_HEADERS, 3, ZEROS(0)}}},
    {"a continuation of nothing",
     HTTP2_BOTH,
     true,
     ENDS,
     PROTOCOL_ERROR,
     0,
     {{CONTINUATION, END_HEADERS, 1, ZEROS(0)}}},
    {"a stream that depends on itself", /* RFC 7540, section 5.3.1; RFC 9113 has no priorities */
     HTTP2_SERVER,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS | END_STREAM | WITH_PRIORITY, 1, THE_HEAD}}},
    {"a status in a second head",
     HTTP2_BOTH,
     true,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{DATA, 0, 1, ZEROS(0)}, {HEADERS, END_HEADERS | END_STREAM, 1, THE_HEAD}}},
    {"trailers that are no end",
     HTTP2_BOTH,
     true,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{DATA, 0, 1, ZEROS(0)},
      {HEADERS, END_HEADERS, 1,
       BYTES("\x40\x01"
             "a\x01"
             "b")}}},
    {"an answer of protocols (101)",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x48\x03"
             "101")}}},
    {"an answer of two statuses",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, BYTES("\x88\x88")}}},
    {"an answer with a path",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1, BYTES("\x88\x84")}}},
    {"a field of a connection",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x88\x00\x0a"
             "connection\x05"
             "close")}}},
    {"a field in capitals",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x88\x00\x01"
             "A\x01"
             "b")}}},
    {"a body longer than its length",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x88\x5c\x01"
             "1")},
      {DATA, END_STREAM, 1, BYTES("xy")}}},
    {"a body shorter than its length",
     HTTP2_CLIENT,
     false,
     IS_RESET,
     PROTOCOL_ERROR,
     0,
     {{HEADERS, END_HEADERS, 1,
       BYTES("\x88\x5c\x01"
             "3")},
      {DATA, END_STREAM, 1, BYTES("xy")}}},

    /* ---- Floods (10.5) ---- */
    {"a flood of settings",
     HTTP2_BOTH,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {SETTINGS, 0, 0, ZEROS(0)}}},
    {"a flood of PING",
     HTTP2_BOTH,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {PING, 0, 0, ZEROS(8)}}},
    {"a flood of acknowledgements of PING",
     HTTP2_BOTH,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {PING, ACK, 0, ZEROS(8)}}},
    {"a flood of priorities",
     HTTP2_BOTH,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {PRIORITY, 0, EACH_ANOTHER, BYTES("\0\0\0\0\1")}}},
    {"a flood of unknown frames",
     HTTP2_BOTH,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {UNKNOWN, 0, EACH_ANOTHER, ZEROS(0)}}},
    {"a flood of windows",
     HTTP2_BOTH,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {WINDOW_UPDATE, 0, 0, BYTES("\0\0\0\1")}}},
    {"a flood of empty bodies",
     HTTP2_SERVER,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {DATA, 0, 1, ZEROS(0)}}},
    {"a flood of empty bodies",
     HTTP2_CLIENT,
     false,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{HEADERS, END_HEADERS, 1, THE_HEAD}, {DATA, 0, 1, ZEROS(0)}}},
    {"a flood of bodies that are padding",
     HTTP2_SERVER,
     true,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {DATA, PADDED, 1, BYTES("\0")}}},
    {"a flood of bodies that are padding",
     HTTP2_CLIENT,
     false,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{HEADERS, END_HEADERS, 1, THE_HEAD}, {DATA, PADDED, 1, BYTES("\0")}}},
    {"a head in parts without end",
     HTTP2_BOTH,
     false,
     ENDS_CALMLY,
     PROTOCOL_ERROR,
     HTTP2_FLOOD,
     {{HEADERS, 0, 1, THE_HEAD}, {CONTINUATION, 0, 1, ZEROS(0)}}},
    {"rapid resets (CVE-2023-44487)",
     HTTP2_SERVER,
     false,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)},
      {HEADERS, END_HEADERS | END_STREAM, EACH_ANOTHER, THE_HEAD},
      {RST_STREAM, 0, EACH_ANOTHER, BYTES("\0\0\0\10")}}},
    {"errors that are answered with resets",
     HTTP2_SERVER,
     false,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)},
      {HEADERS, END_HEADERS, EACH_ANOTHER, THE_HEAD},
      {WINDOW_UPDATE, 0, EACH_ANOTHER, BYTES("\x7f\xff\xff\xff")}}},
    {"heads that are refused",
     HTTP2_SERVER,
     false,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)}, {HEADERS, END_HEADERS, EACH_ANOTHER, ZEROS(0)}}},
    {"answers of 1xx without end",
     HTTP2_CLIENT,
     false,
     ENDS_CALMLY,
     0,
     HTTP2_FLOOD,
     {{UNKNOWN, 0, 0, ZEROS(0)},
      {HEADERS, END_HEADERS, 1,
       BYTES("\x48\x03"
             "103")}}},
};
enum { HTTP2_ATTACKS = sizeof http2_attacks / sizeof *http2_attacks };

/* ---- The attack ---- */

static const char http2_request_head[] = "\x82\x86\x84\x41\x04here"; /* GET http://here/ */
static const char http2_answer_head[] = "\x88";                      /* 200 */

/* Appends a frame: where it ends. */
static inline char *http2_put(char *to, const http2_frame_t *frame, int victim, int turn) {
    const char *bytes = frame->bytes;
    size_t size = (size_t)frame->size;
    bool depends = frame->type == HEADERS && (frame->flags & WITH_PRIORITY) != 0;
    if (frame->size == HEAD) {
        bytes = victim == HTTP2_SERVER ? http2_request_head : http2_answer_head;
        size = (victim == HTTP2_SERVER ? sizeof http2_request_head : sizeof http2_answer_head) - 1;
    }
    size_t all = size + (depends ? 5 : 0);
    uint32_t stream = (uint32_t)(frame->stream == EACH_ANOTHER ? 2 * turn + 1 : frame->stream);
    const unsigned char head[] = {
        (unsigned char)(all >> 16),    (unsigned char)(all >> 8),    (unsigned char)all,
        (unsigned char)frame->type,    (unsigned char)frame->flags,  (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    memcpy(to, head, sizeof head);
    to += sizeof head;
    if (depends) {
        memcpy(to, "\0\0\0\1\1", 5);
        to += 5;
    }
    if (bytes != NULL)
        memcpy(to, bytes, size);
    else
        memset(to, 0, size);
    return to + size;
}

/* The answer of the victim since then. */
typedef struct {
    int descriptor;
    haft_io_event_t settled; /* something of what follows may have changed */
    bool is_told_to_go, is_reset, has_pong, has_ended;
    uint32_t reason, error;
    bool is_cut; /* not all of the attack could be sent */
} http2_heard_t;

static const char http2_last_ping[] = "attacked";

static inline uint32_t http2_number(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline void http2_note(http2_heard_t *heard, const unsigned char *frame, size_t size) {
    int type = frame[3];
    const unsigned char *bytes = frame + 9;
    if (type == GOAWAY && size >= 8) {
        heard->is_told_to_go = true;
        heard->reason = http2_number(bytes + 4);
    } else if (type == RST_STREAM && size == 4 && http2_number(frame + 5) == 1) {
        heard->is_reset = true;
        heard->error = http2_number(bytes);
        haft_io_event_set(&heard->settled);
    } else if (type == PING && (frame[4] & ACK) != 0 && memcmp(bytes, http2_last_ping, 8) == 0) {
        heard->has_pong = true;
        haft_io_event_set(&heard->settled);
    }
}

/* A task: reads frames until the end. The first bytes that it reads are those of a frame. */
static inline void *http2_hear(void *argument) {
    http2_heard_t *heard = argument;
    unsigned char bytes[40000];
    size_t there = 0;
    for (ssize_t got;
         (got = haft_io_read(heard->descriptor, bytes + there, sizeof bytes - there)) > 0;) {
        size_t at = 0;
        there += (size_t)got;
        while (there - at >= 9) {
            size_t size = (size_t)bytes[at] << 16 | (size_t)bytes[at + 1] << 8 | bytes[at + 2];
            if (there - at < 9 + size)
                break;
            http2_note(heard, bytes + at, size);
            at += 9 + size;
        }
        memmove(bytes, bytes + at, there - at);
        there -= at;
    }
    heard->has_ended = true;
    haft_io_event_set(&heard->settled);
    return NULL;
}

static inline bool http2_say(http2_heard_t *heard, const char *bytes, size_t size) {
    if (haft_io_write_all(heard->descriptor, bytes, size) == 0)
        return true;
    heard->is_cut = true;
    return false;
}

/* Whether all has come that has to; the answer to a PING may overtake a reset. */
static inline bool http2_is_settled(const http2_attack_t *attack, const http2_heard_t *heard) {
    bool goes_on = attack->outcome == GOES_ON || (attack->outcome == IS_RESET && heard->is_reset);
    return heard->has_ended || (heard->has_pong && goes_on);
}

/* Frames that are still on their way after the answer to the PING come soon. */
static inline void http2_settle(const http2_attack_t *attack, http2_heard_t *heard) {
    int code = 0;
    while (code == 0 && !http2_is_settled(attack, heard)) {
        int64_t limit = heard->has_pong ? haft_io_now() + 20 * HAFT_IO_SECOND : HAFT_IO_FOREVER;
        haft_io_event_clear(&heard->settled);
        if (!http2_is_settled(attack, heard))
            code = haft_io_event_wait_until(&heard->settled, limit);
    }
}

/*
 * Sends the attack, over a connection on which the peers have begun (a client's preface, SETTINGS
 * of both, and of a client its request), and a PING behind it; returns when that is answered, or
 * the connection has ended. The bytes before must have been read to the end of a frame.
 */
static inline void http2_attack(int descriptor, const http2_attack_t *attack, int victim,
                                http2_heard_t *heard) {
    static const http2_frame_t open = {HEADERS, END_HEADERS, 1, THE_HEAD},
                               ping = {PING, 0, 0, BYTES(http2_last_ping)};
    char *frames = malloc(60000), *end = frames;
    *heard = (http2_heard_t){.descriptor = descriptor};
    haft_io_task_t *hearing = haft_io_async(http2_hear, heard);
    if (attack->is_open && victim == HTTP2_SERVER)
        end = http2_put(end, &open, victim, 0);
    end = http2_put(end, &attack->frames[0], victim, 0);
    bool goes_on = http2_say(heard, frames, (size_t)(end - frames));
    int times = attack->times != 0 ? attack->times : 1;
    for (int turn = 0; turn < times && goes_on && !heard->has_ended; turn++) {
        end = frames;
        for (int i = 1; i < 4 && (attack->frames[i].type != DATA || attack->frames[i].stream != 0);
             i++)
            end = http2_put(end, &attack->frames[i], victim, turn);
        goes_on = end == frames || http2_say(heard, frames, (size_t)(end - frames));
    }
    end = http2_put(frames, &ping, victim, 0);
    if (goes_on)
        http2_say(heard, frames, (size_t)(end - frames));
    http2_settle(attack, heard);
    haft_io_shutdown(descriptor, SHUT_RDWR);
    bool has_ended = heard->has_ended;
    haft_io_join(hearing, NULL);
    heard->has_ended = has_ended;
    free(frames);
}

/* Whether what came back is what has to follow; otherwise it is printed. A flood may end before its
   GOAWAY could be read. */
static inline bool http2_judge(const http2_attack_t *attack, int victim,
                               const http2_heard_t *heard) {
    bool has_code = heard->is_told_to_go && heard->reason == attack->code, is_right = false;
    switch (attack->outcome) {
    case GOES_ON:
        is_right = heard->has_pong && !heard->is_told_to_go && !heard->is_reset;
        break;
    case IS_RESET:
        is_right = (heard->is_reset && heard->error == attack->code && heard->has_pong) ||
                   (heard->has_ended && has_code);
        break;
    case ENDS:
        is_right = heard->has_ended && has_code;
        break;
    case ENDS_CALMLY:
        is_right = heard->has_ended && !heard->has_pong &&
                   (has_code || !heard->is_told_to_go || heard->reason == ENHANCE_YOUR_CALM);
        break;
    }
    if (!is_right)
        fprintf(stderr, "%s, to a %s:%s%s%s%s reset %u, goaway %u (seed %llu)\n", attack->what,
                victim == HTTP2_SERVER ? "server" : "client", heard->has_pong ? " goes on" : "",
                heard->has_ended ? " ends" : "", heard->is_reset ? " resets" : "",
                heard->is_told_to_go ? " tells to go" : "", heard->error, heard->reason,
                (unsigned long long)haft_io_seed());
    return is_right;
}

#endif
