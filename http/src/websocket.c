/* SPDX-License-Identifier: MIT */
/*
 * An open WebSocket (RFC 6455), of either side. wslay reads the heads of frames, and unmasks; it
 * never waits: this file waits for the bytes. The meaning of frames is checked here, too, so that a
 * message lies in one buffer, which grows with what has come and not with what a head promises.
 *
 * The server's side is a protocol of its request, and ends with that. The client's owns the reply
 * to its handshake. Only the client masks what it sends.
 *
 * `reading` is locked by the task that receives, or that closes where none receives; `writing` for
 * each frame, since other tasks send, and the one that receives sends pongs and pings. A write that
 * was cut off in the middle of a frame leaves nothing that could follow, so the connection is shut.
 *
 * The functions that read return 0, an error, or the code (1002, ...) with which this side now has
 * to close the connection.
 */
#include "websocket.h"

#include <wslay/wslay.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

const bool hafti_http_has_websocket = true;

enum { MOST_OF_CONTROL = 125, FIRST_ROOM = 512, MOST_ROOM_KEPT = 16384 };

enum { COMPRESSED = 4 /* RSV1 of wslay's */, LEAST_COMPRESSED = 200, MOST_OF_HEAD = 14 };

struct haft_http_websocket {
    hafti_http_protocol_t self;
    haft_http_request_t *request; /* NULL: it is a client's */
    haft_http_reply_t *reply;
    hafti_http_stream_t *stream;
    const haft_http_limits_t *limits;
    haft_http_websocket_options_t options; /* without zeros */
    const char *subprotocol;
    wslay_frame_context_ptr frames;
    hafti_http_deflation_t deflation;

    /* The receiving side, for the task that has locked `reading`. */
    haft_io_mutex_t reading;
    struct wslay_frame_iocb piece; /* of a frame */
    uint64_t frame_left;           /* bytes of the frame behind the piece */
    bool in_frame, in_message, is_whole, is_compressed;
    int kind;      /* of the message */
    char *message; /* has `room` bytes, one of which is for a '\0' */
    size_t size, room;
    hafti_http_patience_t patience; /* with the sender of the message */
    char control[MOST_OF_CONTROL + 1];
    size_t control_size;
    int64_t heard;   /* when the last byte of the client came */
    int64_t pinged;  /* and was sent a ping since; 0: was not */
    int64_t closing; /* until then its end is waited for; 0: it is open */

    /* The sending side, for the task that has locked `writing`. */
    haft_io_mutex_t writing;
    bool is_writing; /* a frame, of which a part may have been written */
    bool has_failed; /* a write; there are no more */
    char *block;     /* lent, for the begin of a frame, or what is masked */
    size_t block_size;
    char *compressed; /* the message that is sent */

    atomic_bool has_closed; /* a close frame was sent */
    bool is_over, is_lost;  /* nothing more is received */
    const char *reason;     /* of the client; NULL: none */
    atomic_int close_code;
};

/* ---- UTF-8 (RFC 3629, section 4) ---- */

/* How many bytes the first character has; 0: it is none. */
static size_t character_of(const unsigned char *bytes, size_t size) {
    unsigned char first = bytes[0];
    size_t count = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (first > 0xf4 || count > size)
        return 0;
    for (size_t i = 1; i < count; i++, least = 0x80, most = 0xbf)
        if (bytes[i] < least || bytes[i] > most)
            return 0;
    return count;
}

static bool is_utf8(const char *text, size_t size) {
    const unsigned char *bytes = (const unsigned char *)text;
    while (size != 0) {
        size_t count = character_of(bytes, size);
        if (count == 0)
            return false;
        bytes += count;
        size -= count;
    }
    return true;
}

/* ---- Sending ---- */

static void break_off(haft_http_websocket_t *socket) {
    socket->has_failed = true;
    socket->stream->operations->shutdown(socket->stream, SHUT_RDWR);
}

static void end_writing(haft_http_websocket_t *const *given) {
    haft_http_websocket_t *socket = *given;
    haft_io_give_back(socket->block);
    free(socket->compressed);
    socket->block = socket->compressed = NULL;
    if (socket->is_writing)
        break_off(socket); /* so the task that receives ends, too */
    haft_io_mutex_unlock(&socket->writing);
}

static int send_bytes(haft_http_websocket_t *socket, const char *bytes, size_t size) {
    return size != 0 ? hafti_http_stream_write_within(socket->stream, socket->limits, bytes, size)
                     : 0;
}

/* Puts the head of a frame (RFC 6455, section 5.2). */
static void put_head(haft_http_websocket_t *socket, int first, uint64_t size) {
    unsigned char *to = (unsigned char *)socket->block;
    int mask = socket->request == NULL ? 0x80 : 0;
    int bytes = size <= MOST_OF_CONTROL ? 0 : size <= UINT16_MAX ? 2 : 8;
    *to++ = (unsigned char)first;
    *to++ = (unsigned char)(mask | (bytes == 0 ? (int)size : bytes == 2 ? 126 : 127));
    while (bytes-- != 0)
        *to++ = (unsigned char)(size >> 8 * bytes);
    socket->block_size = (size_t)((char *)to - socket->block);
}

/* Sends a frame of the server: bytes that do not fit behind the head are sent from where they
   are. */
static int send_plain(haft_http_websocket_t *socket, const char *bytes, size_t size) {
    size_t room = HAFT_IO_LENT_SIZE - socket->block_size, fits = size < room ? size : room;
    if (fits != 0)
        memcpy(socket->block + socket->block_size, bytes, fits);
    int code = send_bytes(socket, socket->block, socket->block_size + fits);
    return code == 0 ? send_bytes(socket, bytes + fits, size - fits) : code;
}

static int send_masked(haft_http_websocket_t *socket, const char *bytes, size_t size) {
    unsigned char mask[4]; /* unpredictable (RFC 6455, section 5.3) */
    int code = hafti_http_make_random(mask, sizeof mask);
    memcpy(socket->block + socket->block_size, mask, sizeof mask);
    socket->block_size += sizeof mask;
    for (size_t at = 0; code == 0 && (at < size || socket->block_size != 0);) {
        while (at < size && socket->block_size < HAFT_IO_LENT_SIZE) {
            socket->block[socket->block_size++] = (char)(bytes[at] ^ mask[at % 4]);
            at++;
        }
        code = send_bytes(socket, socket->block, socket->block_size);
        socket->block_size = 0;
    }
    return code;
}

static int write_frame(haft_http_websocket_t *socket, int first, const char *bytes, size_t size) {
    put_head(socket, first, size);
    socket->is_writing = true;
    int code = socket->request != NULL ? send_plain(socket, bytes, size)
                                       : send_masked(socket, bytes, size);
    socket->is_writing = code != 0;
    return code;
}

/* Messages are compressed in the order in which they are sent, since each may refer to those
   before. */
static int write_message(haft_http_websocket_t *socket, int opcode, const char *bytes,
                         size_t size) {
    enum { WHOLE = 0x80 };
    socket->block = haft_io_lend();
    if (socket->block == NULL)
        return -ENOMEM;
    if (!socket->deflation.is_on || size < LEAST_COMPRESSED || wslay_is_ctrl_frame(opcode))
        return write_frame(socket, WHOLE | opcode, bytes, size);
    size_t less;
    int code = hafti_http_deflate(&socket->deflation, bytes, size, &socket->compressed, &less);
    return code == 0
               ? write_frame(socket, WHOLE | COMPRESSED << 4 | opcode, socket->compressed, less)
               : code;
}

static int send_frame(haft_http_websocket_t *given, int opcode, const char *bytes, size_t size) {
    int code = haft_io_mutex_lock(&given->writing);
    if (code != 0)
        return code;
    __attribute__((cleanup(end_writing))) haft_http_websocket_t *socket = given;
    if (atomic_load(&socket->has_closed) || socket->has_failed)
        return -EPIPE;
    if (opcode == WSLAY_CONNECTION_CLOSE)
        atomic_store(&socket->has_closed, true);
    return write_message(socket, opcode, bytes, size);
}

int haft_http_websocket_send(haft_http_websocket_t *socket, haft_http_websocket_kind_t kind,
                             const void *bytes, size_t size) {
    bool is_text = kind == HAFT_HTTP_WEBSOCKET_TEXT;
    if (bytes == NULL && size != 0)
        return -EFAULT;
    if (!is_text && kind != HAFT_HTTP_WEBSOCKET_BINARY)
        return haft_io_refuse(-EINVAL, __func__,
                              "%d is no kind of a message: write HAFT_HTTP_WEBSOCKET_TEXT or "
                              "HAFT_HTTP_WEBSOCKET_BINARY",
                              (int)kind);
    if (is_text && !is_utf8(bytes, size))
        return -EINVAL;
    return send_frame(socket, (int)kind, bytes, size);
}

/* Sends a close frame, with the code, unless that stands for none. */
static int send_close(haft_http_websocket_t *socket, int code, const char *reason) {
    char bytes[MOST_OF_CONTROL] = {(char)(code >> 8), (char)code};
    size_t size = strlen(reason);
    memcpy(bytes + 2, reason, size);
    return send_frame(socket, WSLAY_CONNECTION_CLOSE, bytes, code == 1005 ? 0 : 2 + size);
}

/* ---- Waiting for bytes ---- */

/* Notes the reason of the end; the first one counts. */
static void note_code(haft_http_websocket_t *socket, int code) {
    int none = 0;
    atomic_compare_exchange_strong(&socket->close_code, &none, code);
}

/* Loses the connection, which ends the tasks that send to the client, too. */
static int lose(haft_http_websocket_t *socket) {
    note_code(socket, 1006);
    socket->is_over = socket->is_lost = true;
    socket->stream->operations->shutdown(socket->stream, SHUT_RDWR);
    return -EPIPE;
}

/* The deadline of a message of which a part has come. */
static int64_t message_deadline(haft_http_websocket_t *socket) {
    const haft_http_limits_t *limits = socket->limits;
    if (!socket->in_message)
        return HAFT_IO_FOREVER;
    int64_t now = haft_io_now();
    return hafti_http_deadline(now,
                               hafti_http_patience_left(&socket->patience, limits->body_time,
                                                        limits->least_rate, socket->size, now));
}

static int64_t silence_deadline(const haft_http_websocket_t *socket) {
    const haft_http_websocket_options_t *options = &socket->options;
    return socket->pinged != 0 ? hafti_http_deadline(socket->pinged, options->pong_time)
                               : hafti_http_deadline(socket->heard, options->ping_time);
}

/* Sends a ping to a client that has been silent. */
static int ping(haft_http_websocket_t *socket) {
    if (socket->pinged != 0 || atomic_load(&socket->has_closed))
        return lose(socket);
    socket->pinged = haft_io_now();
    return send_frame(socket, WSLAY_PING, "", 0);
}

/* Waits until there may be bytes, or something else has to be done. */
static int wait_awhile(haft_http_websocket_t *socket) {
    haft_io_select_case_t choices[2] = {
        {.descriptor = socket->stream->descriptor, .events = POLLIN}};
    size_t count = 1;
    if (socket->request != NULL) /* its server may be told to stop */
        choices[count++].event = &socket->request->server->stop;
    int64_t message = message_deadline(socket), silence = silence_deadline(socket);
    int64_t until = message < silence ? message : silence;
    int chosen = haft_io_select_until(choices, count, until);
    if (chosen >= 0)
        return chosen == 1 ? 1001 : 0;
    if (chosen != -ETIMEDOUT || haft_io_now() < until)
        return chosen; /* such as a deadline of the task's own */
    return message <= silence ? 1008 : ping(socket);
}

static bool is_late(const haft_http_websocket_t *socket) {
    return socket->closing != 0 && haft_io_now() >= socket->closing;
}

/* A client that never pauses lets no wait for it end. So this looks whether the server stops, and
   whether the client's time for its part of the close is over. */
static int check_end(haft_http_websocket_t *socket) {
    bool is_stopping = socket->request != NULL && atomic_load(&socket->request->server->stopping);
    return is_late(socket) ? lose(socket) : is_stopping && socket->closing == 0 ? 1001 : 0;
}

/* Reads bytes that have come. While the WebSocket is open, the attempt does not wait: its deadline
   has passed. It comes before any look at the descriptor, because a stream may have read ahead. */
static int fill(haft_http_websocket_t *socket) {
    hafti_http_stream_t *stream = socket->stream;
    int end = check_end(socket);
    if (end != 0)
        return end;
    for (;;) {
        ssize_t got = hafti_http_stream_fill(stream, socket->closing);
        if (got > 0) {
            socket->heard = haft_io_now();
            socket->pinged = 0;
            return 0;
        }
        if (got == -ENOMEM || got == -ECANCELED)
            return (int)got;
        if (got != -ETIMEDOUT || socket->closing != 0)
            return lose(socket);
        int code = wait_awhile(socket);
        if (code != 0)
            return code;
    }
}

/* ---- Frames ---- */

/* Callback of wslay that takes bytes. */
static ssize_t take(uint8_t *into, size_t size, int flags, void *argument) {
    (void)flags;
    haft_http_websocket_t *socket = argument;
    hafti_http_stream_t *stream = socket->stream;
    size_t there = (size_t)(stream->end - stream->at);
    size = size < there ? size : there;
    if (size == 0)
        return -1;
    memcpy(into, stream->at, size);
    stream->at += size;
    return (ssize_t)size;
}

static int read_piece(haft_http_websocket_t *socket) {
    const hafti_http_stream_t *stream = socket->stream;
    for (;;) {
        ssize_t got = wslay_frame_recv(socket->frames, &socket->piece);
        if (got >= 0)
            return 0;
        if (got != WSLAY_ERR_WANT_READ)
            return 1002;
        int code = stream->at == stream->end ? fill(socket) : 0;
        if (code != 0)
            return code;
    }
}

static bool is_control(const haft_http_websocket_t *socket) {
    return wslay_is_ctrl_frame(socket->piece.opcode) != 0;
}

static int begin_frame(haft_http_websocket_t *socket) {
    const struct wslay_frame_iocb *frame = &socket->piece;
    int opcode = frame->opcode;
    socket->in_frame = true;
    socket->frame_left = frame->payload_length;
    bool is_first = opcode == WSLAY_TEXT_FRAME || opcode == WSLAY_BINARY_FRAME;
    int known = is_first && socket->deflation.is_on ? COMPRESSED : 0;
    bool is_from_client = socket->request != NULL;
    if ((frame->rsv & ~known) != 0 || frame->mask != is_from_client || opcode > WSLAY_PONG ||
        (opcode > WSLAY_BINARY_FRAME && opcode < WSLAY_CONNECTION_CLOSE))
        return 1002;
    socket->control_size = 0;
    if (is_control(socket))
        return 0;
    if ((opcode == WSLAY_CONTINUATION_FRAME) != socket->in_message)
        return 1002;
    if (!socket->in_message) {
        socket->in_message = true;
        socket->kind = opcode;
        socket->is_compressed = frame->rsv != 0;
        socket->patience = (hafti_http_patience_t){.looked_at = haft_io_now()};
    }
    bool is_dropped = socket->closing != 0;
    return !is_dropped && frame->payload_length > socket->options.message_size - socket->size ? 1009
                                                                                              : 0;
}

static bool make_room(haft_http_websocket_t *socket, size_t needed) {
    size_t room = socket->room != 0 ? socket->room : FIRST_ROOM;
    while (room < needed)
        room = room < SIZE_MAX / 2 ? 2 * room : needed;
    if (room == socket->room)
        return true;
    char *message = realloc(socket->message, room);
    if (message == NULL)
        return false;
    socket->message = message;
    socket->room = room;
    return true;
}

static int take_piece(haft_http_websocket_t *socket) {
    const char *bytes = (const char *)socket->piece.data;
    size_t size = socket->piece.data_length;
    socket->frame_left -= size;
    if (is_control(socket)) {
        memcpy(socket->control + socket->control_size, bytes, size);
        socket->control_size += size;
    } else if (socket->closing == 0) {
        if (!make_room(socket, socket->size + size + 1))
            return 1011;
        memcpy(socket->message + socket->size, bytes, size);
        socket->size += size;
        socket->message[socket->size] = '\0';
    }
    return 0;
}

/* Whether an endpoint may send the code (RFC 6455, section 7.4, and the registry). */
static bool is_code(int code) {
    return (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) ||
           (code >= 3000 && code <= 4999);
}

/* Takes a close frame: the client closes the connection, or answers the close of this side. */
static int take_close(haft_http_websocket_t *socket) {
    int code = 1005;
    if (socket->control_size == 1)
        return 1002;
    socket->control[socket->control_size] = '\0';
    if (socket->control_size >= 2) {
        code = (unsigned char)socket->control[0] << 8 | (unsigned char)socket->control[1];
        if (!is_code(code))
            return 1002;
        if (!is_utf8(socket->control + 2, socket->control_size - 2))
            return 1007;
    }
    note_code(socket, code);
    send_close(socket, code, "");
    socket->is_over = true;
    socket->reason = socket->control_size > 2 ? socket->control + 2 : NULL;
    return -EPIPE;
}

/* Replaces the message that has come by its decompressed form. */
static int inflate_message(haft_http_websocket_t *socket) {
    char *message;
    size_t size;
    int code = hafti_http_inflate(&socket->deflation, socket->message, socket->size,
                                  socket->options.message_size, &message, &size);
    if (code != 0)
        return code;
    free(socket->message);
    socket->message = message;
    socket->room = socket->size = size;
    return 0;
}

static int end_message(haft_http_websocket_t *socket) {
    socket->in_message = false;
    socket->is_whole = true;
    if (socket->closing != 0)
        return 0; /* it is dropped */
    int code = socket->is_compressed ? inflate_message(socket) : 0;
    bool is_text = socket->kind == HAFT_HTTP_WEBSOCKET_TEXT;
    return code == 0 && is_text && !is_utf8(socket->message, socket->size) ? 1007 : code;
}

static int end_frame(haft_http_websocket_t *socket) {
    socket->in_frame = false;
    switch (socket->piece.opcode) {
    case WSLAY_CONNECTION_CLOSE:
        return take_close(socket);
    case WSLAY_PING: {
        int code = send_frame(socket, WSLAY_PONG, socket->control, socket->control_size);
        return code == -EPIPE ? 0 : code; /* this side has closed; the client's answer comes */
    }
    case WSLAY_PONG:
        return 0;
    default:
        return socket->piece.fin ? end_message(socket) : 0;
    }
}

static int read_on(haft_http_websocket_t *socket) {
    int code = read_piece(socket);
    if (code == 0 && !socket->in_frame)
        code = begin_frame(socket);
    if (code == 0)
        code = take_piece(socket);
    return code == 0 && socket->frame_left == 0 ? end_frame(socket) : code;
}

/* ---- Closing ---- */

static void begin_to_close(haft_http_websocket_t *socket, int code, const char *reason) {
    note_code(socket, code);
    socket->closing = hafti_http_deadline(haft_io_now(), socket->options.close_time);
    if (!atomic_load(&socket->has_closed) && send_close(socket, code, reason) != 0)
        lose(socket);
}

/* Closes after a mistake of the client. Further bytes are no frames, but are read: otherwise the
   kernel would reset the connection, and the client might not see the reason. */
static int fail_with(haft_http_websocket_t *socket, int code) {
    hafti_http_stream_t *stream = socket->stream;
    begin_to_close(socket, code, "");
    if (!socket->is_over && stream->operations->shutdown(stream, SHUT_WR) == 0)
        while (!is_late(socket) && hafti_http_stream_fill(stream, socket->closing) > 0)
            continue;
    socket->is_over = true;
    stream->at = stream->end;
    return code == 1011 ? -ENOMEM : -EPIPE;
}

/* The closing handshake (RFC 6455, section 7.1.2): both ends have sent Close. Returns an error,
   -EPIPE if all is well or the connection is lost. */
static int close_with(haft_http_websocket_t *socket, int code, const char *reason) {
    begin_to_close(socket, code, reason);
    int result = 0;
    while (result == 0)
        result = socket->is_over ? -EPIPE : read_on(socket);
    return result > 0 ? fail_with(socket, result) : result;
}

static void stop_reading(haft_http_websocket_t *const *socket) {
    haft_io_mutex_unlock(&(*socket)->reading);
}

int haft_http_websocket_close(haft_http_websocket_t *given, int code, const char *reason) {
    const char *why = reason != NULL ? reason : "";
    size_t size = strlen(why);
    if (!is_code(code))
        return haft_io_refuse(
            -EINVAL, __func__,
            "%d is no code for a close: write 1000, or one of 3000 to 4999 of your "
            "own",
            code);
    if (size > MOST_OF_CONTROL - 2 || !is_utf8(why, size))
        return -EINVAL;
    if (!haft_io_mutex_try_lock(&given->reading)) {
        note_code(given, code);
        return send_close(given, code, why);
    }
    __attribute__((cleanup(stop_reading))) haft_http_websocket_t *socket = given;
    if (socket->is_over || atomic_load(&socket->has_closed))
        return -EPIPE;
    int result = close_with(socket, code, why);
    return result == -EPIPE ? 0 : result;
}

/* ---- Receiving ---- */

/* Begins a message. The memory of a large one is not kept while its client is idle. */
static void begin_message(haft_http_websocket_t *socket) {
    if (!socket->is_whole)
        return;
    socket->is_whole = false;
    socket->size = 0;
    if (socket->room > MOST_ROOM_KEPT) {
        free(socket->message);
        socket->message = NULL;
        socket->room = 0;
    }
}

int haft_http_websocket_receive(haft_http_websocket_t *given,
                                haft_http_websocket_message_t *message) {
    int code = haft_io_mutex_lock(&given->reading);
    if (code != 0)
        return code;
    __attribute__((cleanup(stop_reading))) haft_http_websocket_t *socket = given;
    begin_message(socket);
    while (code == 0 && !socket->is_whole)
        code = socket->is_over ? -EPIPE : read_on(socket);
    if (code > 0)
        return code == 1001 ? close_with(socket, code, "") : fail_with(socket, code);
    if (code == 0)
        *message = (haft_http_websocket_message_t){(haft_http_websocket_kind_t)socket->kind,
                                                   socket->message, socket->size};
    return code;
}

/* ---- Begin and end ---- */

static void set_default(int64_t *time, int64_t seconds) {
    if (*time <= 0)
        *time = seconds * HAFT_IO_SECOND;
}

/* Ends the server's side, when its handler has returned. */
static int finish_socket(hafti_http_protocol_t *self, int code) {
    haft_http_websocket_t *socket = (haft_http_websocket_t *)self;
    haft_http_request_t *request = socket->request;
    bool is_stopping = atomic_load(&request->server->stopping);
    if (!socket->is_over && !socket->has_failed)
        close_with(socket, code != 0 ? 1011 : is_stopping ? 1001 : 1000, "");
    if (socket->is_lost || socket->has_failed)
        request->answer.failed = true; /* the client may have missed data; no handler failed */
    return code == -EPIPE ? 0 : code;
}

static void free_socket(hafti_http_protocol_t *self) {
    haft_http_websocket_t *socket = (haft_http_websocket_t *)self;
    wslay_frame_context_free(socket->frames);
    hafti_http_deflation_end(&socket->deflation);
    haft_http_reply_free(socket->reply);
    free(socket->message);
    free(socket);
}

void haft_http_websocket_free(haft_http_websocket_t *socket) {
    if (socket != NULL)
        free_socket(&socket->self);
}

haft_http_websocket_t *hafti_http_websocket_new(const hafti_http_websocket_begin_t *begin) {
    static const struct wslay_frame_callbacks callbacks = {NULL, take, NULL};
    haft_http_websocket_t *socket = calloc(1, sizeof *socket);
    if (socket == NULL || wslay_frame_context_init(&socket->frames, &callbacks, socket) != 0) {
        free(socket);
        return NULL;
    }
    socket->self = (hafti_http_protocol_t){finish_socket, free_socket};
    socket->request = begin->request;
    socket->reply = begin->reply;
    socket->stream = begin->stream;
    socket->limits = begin->limits;
    socket->options = *begin->options;
    socket->subprotocol = begin->protocol;
    socket->deflation = begin->deflation;
    socket->heard = haft_io_now();
    if (socket->options.message_size == 0)
        socket->options.message_size = 1024 * 1024;
    set_default(&socket->options.ping_time, 30);
    set_default(&socket->options.pong_time, 10);
    set_default(&socket->options.close_time, 5);
    if (begin->request != NULL)
        begin->request->protocol = &socket->self;
    return socket;
}

const char *haft_http_websocket_protocol(const haft_http_websocket_t *socket) {
    return socket->subprotocol;
}

int haft_http_websocket_close_code(const haft_http_websocket_t *socket) {
    return atomic_load(&socket->close_code);
}

const char *haft_http_websocket_close_reason(const haft_http_websocket_t *socket) {
    return socket->reason != NULL ? socket->reason : "";
}
