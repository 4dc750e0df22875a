/* SPDX-License-Identifier: MIT */
/* The content coding "gzip" (RFC 1952), and the raw deflate inside it, by zlib. */
#include "codings.h"

#include <stdlib.h>
#include <zlib.h>

enum { AS_GZIP = 16, LEVEL = 6 };

static z_stream *end_early(z_stream *state, int code) {
    if (code == Z_OK)
        return state;
    free(state);
    return NULL;
}

/* A window that is larger than the body would only cost memory: 2^(window + 2) bytes, and for the
   table 2^(memory + 9). */
static void *begin(uint64_t size, bool is_small, bool is_raw) {
    int window = 9;
    while (window < 15 && size > (uint64_t)1 << window)
        window++;
    if (is_small)
        window = 12;
    z_stream *state = calloc(1, sizeof *state);
    return state == NULL ? NULL
                         : end_early(state, deflateInit2(state, LEVEL, Z_DEFLATED,
                                                         is_raw ? -window : window + AS_GZIP,
                                                         is_small ? 5 : 8, Z_DEFAULT_STRATEGY));
}

static void *begin_encoding(uint64_t size, bool is_small) {
    return begin(size, is_small, false);
}

static void *begin_raw_encoding(uint64_t size, bool is_small) {
    return begin(size, is_small, true);
}

static void set_pieces(z_stream *state, const hafti_http_pieces_t *pieces) {
    uInt most = UINT32_MAX / 2;
    state->next_in = (Bytef *)(uintptr_t)pieces->in;
    state->avail_in = pieces->in_size < most ? (uInt)pieces->in_size : most;
    state->next_out = (Bytef *)pieces->out;
    state->avail_out = pieces->room < most ? (uInt)pieces->room : most;
}

static void get(const z_stream *state, hafti_http_pieces_t *pieces) {
    pieces->in_size -= (size_t)((const char *)state->next_in - pieces->in);
    pieces->in = (const char *)state->next_in;
    pieces->room -= (size_t)((char *)state->next_out - pieces->out);
    pieces->out = (char *)state->next_out;
}

static int encode(void *given, hafti_http_pieces_t *pieces, hafti_http_step_t step) {
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    z_stream *state = given;
    set_pieces(state, pieces);
    bool is_all = state->avail_in == pieces->in_size;
    deflate(state, is_all ? flushes[step] : Z_NO_FLUSH);
    get(state, pieces);
    return pieces->in_size != 0 || pieces->room == 0;
}

static void end_encoding(void *state) {
    deflateEnd(state);
    free(state);
}

static void *begin_inflating(int window) {
    z_stream *state = calloc(1, sizeof *state);
    return state == NULL ? NULL : end_early(state, inflateInit2(state, window));
}

static void *begin_decoding(void) {
    return begin_inflating(15 + AS_GZIP);
}

static void *begin_raw_decoding(void) {
    return begin_inflating(-15);
}

static int decode(void *given, hafti_http_pieces_t *pieces) {
    z_stream *state = given;
    set_pieces(state, pieces);
    int code = inflate(state, Z_NO_FLUSH);
    get(state, pieces);
    if (code == Z_STREAM_END)
        inflateReset(state);
    return code == Z_STREAM_END                  ? 1
           : code == Z_OK || code == Z_BUF_ERROR ? 0
           : code == Z_MEM_ERROR                 ? -ENOMEM
                                                 : -EBADMSG;
}

/* A stream that has no end, such as WebSocket's messages, is decoded block by block: after each
   call zlib's data_type shows whether the next bit begins another. */
static int decode_blocks(void *given, hafti_http_pieces_t *pieces) {
    enum { BEHIND_A_BLOCK = 128 };
    const z_stream *state = given;
    int code = decode(given, pieces);
    return code == 0 && state->data_type == BEHIND_A_BLOCK ? 1 : code;
}

static void end_decoding(void *state) {
    inflateEnd(state);
    free(state);
}

const hafti_http_coding_t hafti_http_gzip = {
    .name = "gzip",
    .other_name = "x-gzip",
    .is_small = true,
    .begin_encoding = begin_encoding,
    .encode = encode,
    .end_encoding = end_encoding,
    .begin_decoding = begin_decoding,
    .decode = decode,
    .end_decoding = end_decoding,
};

const hafti_http_coding_t hafti_http_raw_deflate = {
    .name = "deflate",
    .begin_encoding = begin_raw_encoding,
    .encode = encode,
    .end_encoding = end_encoding,
    .begin_decoding = begin_raw_decoding,
    .decode = decode_blocks,
    .end_decoding = end_decoding,
};
