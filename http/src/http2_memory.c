/* SPDX-License-Identifier: MIT */
/*
 * The memory of a connection's nghttp2. Each request takes and frees a dozen pieces, so a connection
 * keeps what was freed for its next request, up to KEPT bytes: lists of pieces of a size. It is used
 * under the connection's mutex.
 */
#include "http2_frames.h"

#include <stdlib.h>

/* Pieces of 64 bytes, of 128, and so on; larger ones are malloc(3)'s. */
enum { SMALLEST = 64, KEPT = 16384 };

typedef union header {
    struct {
        size_t size; /* of what follows */
        union header *next;
    } piece;
    max_align_t alignment;
} header_t;

static size_t list_of(size_t size) {
    size_t list = 0;
    while (list < HAFTI_HTTP2_LISTS && size > (size_t)SMALLEST << list)
        list++;
    return list;
}

static void *take(size_t size, void *argument) {
    hafti_http2_memory_t *memory = argument;
    size_t list = list_of(size);
    header_t *header = list < HAFTI_HTTP2_LISTS ? memory->lists[list] : NULL;
    if (header != NULL) {
        memory->lists[list] = header->piece.next;
        memory->kept -= header->piece.size;
        return header + 1;
    }
    size = list < HAFTI_HTTP2_LISTS ? (size_t)SMALLEST << list : size;
    header = malloc(sizeof *header + size);
    if (header == NULL)
        return NULL;
    header->piece.size = size;
    return header + 1;
}

static void give(void *bytes, void *argument) {
    hafti_http2_memory_t *memory = argument;
    header_t *header = bytes != NULL ? (header_t *)bytes - 1 : NULL;
    size_t list = header != NULL ? list_of(header->piece.size) : HAFTI_HTTP2_LISTS;
    if (list == HAFTI_HTTP2_LISTS || memory->kept + header->piece.size > KEPT) {
        free(header);
        return;
    }
    header->piece.next = memory->lists[list];
    memory->lists[list] = header;
    memory->kept += header->piece.size;
}

static void *take_zeroed(size_t count, size_t size, void *memory) {
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *bytes = take(count * size, memory);
    return bytes != NULL ? memset(bytes, 0, count * size) : NULL;
}

static void *take_again(void *bytes, size_t size, void *memory) {
    size_t before = bytes != NULL ? ((header_t *)bytes - 1)->piece.size : 0;
    if (bytes != NULL && size <= before)
        return bytes;
    void *larger = take(size, memory);
    if (larger == NULL)
        return NULL;
    if (bytes != NULL)
        memcpy(larger, bytes, before);
    give(bytes, memory);
    return larger;
}

void hafti_http2_memory_begin(hafti_http2_memory_t *memory) {
    memory->functions = (nghttp2_mem){memory, take, give, take_zeroed, take_again};
}

void hafti_http2_memory_end(hafti_http2_memory_t *memory) {
    for (size_t list = 0; list < HAFTI_HTTP2_LISTS; list++)
        for (header_t *header = memory->lists[list], *next; header != NULL; header = next) {
            next = header->piece.next;
            free(header);
        }
}
