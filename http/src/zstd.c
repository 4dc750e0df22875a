/* SPDX-License-Identifier: MIT */
/* The content coding "zstd" (RFC 8878), by the library of its authors. */
#include "codings.h"

#include <zstd.h>

enum { LEVEL = 3, WINDOW = 17, MOST_WINDOW = 23 /* of what is decoded (RFC 9659) */ };

static void *begin_encoding(uint64_t size, bool is_small) {
    (void)is_small;
    ZSTD_CCtx *state = ZSTD_createCCtx();
    if (state == NULL)
        return NULL;
    ZSTD_CCtx_setParameter(state, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(state, ZSTD_c_windowLog, WINDOW);
    if (size != HAFT_HTTP_UNKNOWN_SIZE)
        ZSTD_CCtx_setPledgedSrcSize(state, size);
    return state;
}

static void move(hafti_http_pieces_t *pieces, size_t taken, size_t put) {
    pieces->in += taken;
    pieces->in_size -= taken;
    pieces->out += put;
    pieces->room -= put;
}

static int encode(void *state, hafti_http_pieces_t *pieces, hafti_http_step_t step) {
    static const ZSTD_EndDirective directives[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in = {pieces->in, pieces->in_size, 0};
    ZSTD_outBuffer out = {pieces->out, pieces->room, 0};
    size_t left = ZSTD_compressStream2(state, &out, &in, directives[step]);
    move(pieces, in.pos, out.pos);
    if (ZSTD_isError(left))
        return -ENOMEM;
    return pieces->in_size != 0 || (step != HAFTI_HTTP_MORE && left != 0);
}

static void end_encoding(void *state) {
    ZSTD_freeCCtx(state);
}

static void *begin_decoding(void) {
    ZSTD_DCtx *state = ZSTD_createDCtx();
    if (state != NULL)
        ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, MOST_WINDOW);
    return state;
}

static int decode(void *state, hafti_http_pieces_t *pieces) {
    ZSTD_inBuffer in = {pieces->in, pieces->in_size, 0};
    ZSTD_outBuffer out = {pieces->out, pieces->room, 0};
    size_t left = ZSTD_decompressStream(state, &out, &in);
    move(pieces, in.pos, out.pos);
    return ZSTD_isError(left) ? -EBADMSG : left == 0;
}

static void end_decoding(void *state) {
    ZSTD_freeDCtx(state);
}

const hafti_http_coding_t hafti_http_zstd = {
    .name = "zstd",
    .other_name = "zstd",
    .begin_encoding = begin_encoding,
    .encode = encode,
    .end_encoding = end_encoding,
    .begin_decoding = begin_decoding,
    .decode = decode,
    .end_decoding = end_decoding,
};
