/* SPDX-License-Identifier: MIT */
/* The content coding "br" (RFC 7932), by the library of its authors. */
#include "codings.h"

#include <brotli/decode.h>
#include <brotli/encode.h>

enum { QUALITY = 4, LEAST_WINDOW = 10, MOST_WINDOW = 18 };

static void *begin_encoding(uint64_t size, bool is_small) {
    (void)is_small;
    uint32_t window = LEAST_WINDOW;
    while (window < MOST_WINDOW && size > (uint64_t)1 << window)
        window++;
    BrotliEncoderState *state = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    if (state == NULL)
        return NULL;
    BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, QUALITY);
    BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN, window);
    if (size < UINT32_MAX)
        BrotliEncoderSetParameter(state, BROTLI_PARAM_SIZE_HINT, (uint32_t)size);
    return state;
}

static int encode(void *state, hafti_http_pieces_t *pieces, hafti_http_step_t step) {
    static const BrotliEncoderOperation operations[] = {
        BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};
    const uint8_t *in = (const uint8_t *)pieces->in;
    uint8_t *out = (uint8_t *)pieces->out;
    bool is_good = BrotliEncoderCompressStream(state, operations[step], &pieces->in_size, &in,
                                               &pieces->room, &out, NULL);
    pieces->in = (const char *)in;
    pieces->out = (char *)out;
    return !is_good ? -ENOMEM : pieces->in_size != 0 || BrotliEncoderHasMoreOutput(state);
}

static void end_encoding(void *state) {
    BrotliEncoderDestroyInstance(state);
}

static void *begin_decoding(void) {
    return BrotliDecoderCreateInstance(NULL, NULL, NULL);
}

static int decode(void *state, hafti_http_pieces_t *pieces) {
    const uint8_t *in = (const uint8_t *)pieces->in;
    uint8_t *out = (uint8_t *)pieces->out;
    if (BrotliDecoderIsFinished(state))
        return -EBADMSG;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state, &pieces->in_size, &in, &pieces->room, &out, NULL);
    pieces->in = (const char *)in;
    pieces->out = (char *)out;
    return result == BROTLI_DECODER_RESULT_ERROR ? -EBADMSG
                                                 : result == BROTLI_DECODER_RESULT_SUCCESS;
}

static void end_decoding(void *state) {
    BrotliDecoderDestroyInstance(state);
}

const hafti_http_coding_t hafti_http_brotli = {
    .name = "br",
    .other_name = "br",
    .begin_encoding = begin_encoding,
    .encode = encode,
    .end_encoding = end_encoding,
    .begin_decoding = begin_decoding,
    .decode = decode,
    .end_decoding = end_decoding,
};
