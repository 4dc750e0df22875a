/* SPDX-License-Identifier: MIT */
/* Bodies that are decoded while they are read. Their decoded size is limited: a few kilobytes may
   stand for gigabytes. */
#include "codings.h"
#include "message.h"

#include <stdlib.h>

struct hafti_http_decoder {
    const hafti_http_coding_t *coding;
    void *state;
    uint64_t limit, made;
    bool is_whole; /* so the body may end here */
    bool is_full;  /* the last call has used up its room, so the state may have more */
    size_t at, end;
    char in[8192];
};

/* The body's only coding; NULL: it has none, or others. */
static const hafti_http_coding_t *coding_of(const hafti_http_message_t *message) {
    hafti_http_text_t value, other;
    size_t from = 0;
    if (!hafti_http_message_field(message, "Content-Encoding", &from, &value) ||
        hafti_http_message_field(message, "Content-Encoding", &from, &other))
        return NULL;
    for (const hafti_http_coding_t *const *coding = hafti_http_codings; *coding != NULL; coding++)
        if (hafti_http_same(value.bytes, value.size, (*coding)->name) ||
            hafti_http_same(value.bytes, value.size, (*coding)->other_name))
            return *coding;
    return NULL;
}

int hafti_http_decoder_begin(hafti_http_message_t *message, uint64_t limit) {
    const hafti_http_coding_t *coding = coding_of(message);
    if (coding == NULL)
        return 0;
    hafti_http_decoder_t *decoder = malloc(sizeof *decoder);
    void *state = coding->begin_decoding();
    if (decoder == NULL || state == NULL) {
        if (state != NULL)
            coding->end_decoding(state);
        free(decoder);
        return -ENOMEM;
    }
    decoder->coding = coding;
    decoder->state = state;
    decoder->limit = limit;
    decoder->made = 0;
    decoder->is_whole = true; /* a body of no bytes is one of no bytes */
    decoder->is_full = false;
    decoder->at = decoder->end = 0;
    message->decoder = decoder;
    return 0;
}

void hafti_http_decoder_limit(hafti_http_message_t *message, uint64_t more) {
    hafti_http_decoder_t *decoder = message->decoder;
    if (more < decoder->limit - decoder->made)
        decoder->limit = decoder->made + more;
}

void hafti_http_decoder_free(hafti_http_decoder_t *decoder) {
    if (decoder == NULL)
        return;
    decoder->coding->end_decoding(decoder->state);
    free(decoder);
}

static ssize_t fill(hafti_http_message_t *message) {
    hafti_http_decoder_t *decoder = message->decoder;
    ssize_t got = hafti_http_message_read_plain(message, decoder->in, sizeof decoder->in);
    decoder->at = 0;
    decoder->end = got > 0 ? (size_t)got : 0;
    if (got == 0 && !decoder->is_whole)
        got = hafti_http_message_fail(message, -EBADMSG);
    return got;
}

ssize_t hafti_http_message_decode(hafti_http_message_t *message, void *buffer, size_t size) {
    hafti_http_decoder_t *decoder = message->decoder;
    size_t made = 0;
    if (message->error != 0)
        return message->error;
    while (made == 0 && size != 0) {
        ssize_t there = decoder->at == decoder->end && !decoder->is_full ? fill(message) : 1;
        if (there <= 0)
            return there;
        hafti_http_pieces_t pieces = {decoder->in + decoder->at, decoder->end - decoder->at, buffer,
                                      size};
        int code = decoder->coding->decode(decoder->state, &pieces);
        decoder->at = decoder->end - pieces.in_size;
        decoder->is_full = pieces.room == 0 && code == 0;
        decoder->is_whole = code == 1;
        made = size - pieces.room;
        decoder->made += made;
        if (decoder->made > decoder->limit)
            code = -EFBIG;
        if (code < 0)
            return hafti_http_message_fail(message, code);
    }
    return (ssize_t)made;
}
