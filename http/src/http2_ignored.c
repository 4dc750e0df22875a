/* SPDX-License-Identifier: MIT */
/*
 * Frames of a peer that nghttp2 ignores silently, and which are judged here. Priorities of RFC 7540
 * are refused (RFC 9218, section 2.1). So nghttp2 forgets a stream as soon as it is closed: the
 * memory of a few serves all that come one after the other. Then it ignores frames of priority, and
 * frames for streams that are closed. The numbers of the last of these are kept here, and the heads
 * of frames are found in the bytes that come.
 */
#include "http2_frames.h"

enum { CUT_SHORT, ENDED }; /* ENDED: by the peer, which has sent its end or a reset */

void hafti_http2_ignored_begin(hafti_http2_ignored_t *ignored, bool of_client) {
    *ignored = (hafti_http2_ignored_t){.left = of_client ? NGHTTP2_CLIENT_MAGIC_LEN : 0};
}

/* ---- Streams that are closed ---- */

static uint32_t entry_of(int32_t id, unsigned how) {
    return (uint32_t)id << 1 | how;
}

void hafti_http2_note_closed(hafti_http2_ignored_t *ignored, int32_t id, bool has_ended) {
    size_t place = ignored->closed_count++ % HAFTI_HTTP2_CLOSED;
    ignored->closed[place] = entry_of(id, has_ended ? ENDED : CUT_SHORT);
}

static bool was_closed(const hafti_http2_ignored_t *ignored, int32_t id, unsigned how) {
    for (size_t i = 0; i < HAFTI_HTTP2_CLOSED; i++)
        if (ignored->closed[i] == entry_of(id, how))
            return true;
    return false;
}

/* A head that the peer has sent before it knew of a reset is no error. */
uint32_t hafti_http2_judge_head(const hafti_http2_ignored_t *ignored, int32_t id) {
    if (was_closed(ignored, id, ENDED))
        return NGHTTP2_STREAM_CLOSED;
    return was_closed(ignored, id, CUT_SHORT) ? NGHTTP2_NO_ERROR : NGHTTP2_PROTOCOL_ERROR;
}

/* ---- Heads of frames ---- */

static int32_t id_at(const unsigned char *at) {
    return (int32_t)((at[0] & 0x7fu) << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3]);
}

static size_t length_of(const unsigned char *head) {
    return (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
}

uint8_t hafti_http2_type_of(const hafti_http2_ignored_t *ignored) {
    return ignored->head[3];
}

int32_t hafti_http2_id_of(const hafti_http2_ignored_t *ignored) {
    return id_at(ignored->head + 5);
}

/* The head of a PRIORITY frame includes the stream that it depends on. */
static size_t size_of_head(const unsigned char *head) {
    enum { DEPENDENCY = 4 };
    bool is_longer = head[3] == NGHTTP2_PRIORITY && length_of(head) >= DEPENDENCY;
    return HAFTI_HTTP2_FRAME_HEAD + (is_longer ? DEPENDENCY : 0);
}

/* Takes bytes of the head up to a size. */
static const char *take_head(hafti_http2_ignored_t *ignored, const char *at, const char *end,
                             size_t size) {
    while (at != end && ignored->head_size < size)
        ignored->head[ignored->head_size++] = (unsigned char)*at++;
    return ignored->head_size < size ? NULL : at;
}

static const char *next_head(hafti_http2_ignored_t *ignored, const char *at, const char *end) {
    size_t there = (size_t)(end - at), skipped = ignored->left < there ? ignored->left : there;
    ignored->left -= skipped;
    at = take_head(ignored, at + skipped, end, HAFTI_HTTP2_FRAME_HEAD);
    size_t size = at != NULL ? size_of_head(ignored->head) : 0;
    if (at == NULL || (at = take_head(ignored, at, end, size)) == NULL)
        return NULL;
    ignored->left = length_of(ignored->head) + HAFTI_HTTP2_FRAME_HEAD - size;
    ignored->head_size = 0;
    return at;
}

static bool may_be_ignored(unsigned type) {
    return type == NGHTTP2_DATA || type == NGHTTP2_PRIORITY || type > NGHTTP2_CONTINUATION;
}

/* Returns the place behind the complete frames that nghttp2 does not ignore; most often these are
   all that there are. */
static const char *pass_whole(const char *at, const char *end) {
    for (;;) {
        const unsigned char *head = (const unsigned char *)at;
        size_t there = (size_t)(end - at);
        if (there < HAFTI_HTTP2_FRAME_HEAD || may_be_ignored(head[3]) ||
            there - HAFTI_HTTP2_FRAME_HEAD < length_of(head))
            return at;
        at += HAFTI_HTTP2_FRAME_HEAD + length_of(head);
    }
}

const char *hafti_http2_next_ignored(hafti_http2_ignored_t *ignored, const char *at,
                                     const char *end) {
    do {
        if (ignored->left == 0 && ignored->head_size == 0)
            at = pass_whole(at, end);
        at = next_head(ignored, at, end);
    } while (at != NULL && !may_be_ignored(hafti_http2_type_of(ignored)));
    return at;
}

/* RFC 9113, sections 5.1 and 6.3, and RFC 7540, section 5.3.1: frames on closed streams, and
   priorities. */
uint32_t hafti_http2_judge_ignored(const hafti_http2_ignored_t *ignored) {
    const unsigned char *head = ignored->head;
    int32_t id = hafti_http2_id_of(ignored);
    if (head[3] == NGHTTP2_DATA)
        return was_closed(ignored, id, ENDED) ? NGHTTP2_STREAM_CLOSED : NGHTTP2_NO_ERROR;
    bool depends_on_itself =
        size_of_head(head) > HAFTI_HTTP2_FRAME_HEAD && id_at(head + HAFTI_HTTP2_FRAME_HEAD) == id;
    bool is_wrong = head[3] == NGHTTP2_PRIORITY && (id == 0 || depends_on_itself);
    return is_wrong ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_NO_ERROR;
}
