/* SPDX-License-Identifier: MIT */
/* Memory that lives as long as a message: the rest of its block behind the head, and then pieces of
   malloc(3). */
#include "message.h"

#include <stdalign.h>
#include <stdlib.h>

typedef struct hafti_http_chunk {
    alignas(max_align_t) struct hafti_http_chunk *next;
} chunk_t;

static void *allocate_more(hafti_http_message_t *message, size_t size) {
    /* malloc(3) gives no more, and under a sanitizer ends the program that asks for it. */
    chunk_t *chunk = size <= PTRDIFF_MAX - sizeof *chunk ? malloc(sizeof *chunk + size) : NULL;
    if (chunk == NULL)
        return NULL;
    chunk->next = message->more;
    message->more = chunk;
    return chunk + 1;
}

static void *allocate_aligned(hafti_http_message_t *message, size_t size, size_t alignment) {
    size_t start = (message->memory + alignment - 1) & ~(alignment - 1);
    if (start > HAFT_IO_LENT_SIZE || size > HAFT_IO_LENT_SIZE - start)
        return allocate_more(message, size);
    message->memory = start + size;
    return message->block + start;
}

void *hafti_http_allocate(hafti_http_message_t *message, size_t size) {
    return allocate_aligned(message, size, alignof(max_align_t));
}

char *hafti_http_copy(hafti_http_message_t *message, const char *bytes, size_t size) {
    char *copy = allocate_aligned(message, size + 1, 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

void hafti_http_bytes_add(hafti_http_bytes_t *bytes, const void *more, size_t size) {
    enum { LEAST = 512 };
    size_t wanted = bytes->size + size, room = bytes->room != 0 ? bytes->room : LEAST;
    while (room < wanted && room < bytes->most)
        room *= 2;
    if (room > bytes->most)
        room = bytes->most;
    char *grown = room != bytes->room ? realloc(bytes->bytes, room) : bytes->bytes;
    if (grown != NULL) {
        bytes->bytes = grown;
        bytes->room = room;
    }
    size_t now = bytes->room - bytes->size < size ? bytes->room - bytes->size : size;
    bytes->is_cut |= now < size;
    if (now != 0)
        memcpy(bytes->bytes + bytes->size, more, now);
    bytes->size += now;
}

void hafti_http_free_memory(hafti_http_message_t *message) {
    haft_io_give_back(message->block);
    while (message->more != NULL) {
        chunk_t *chunk = message->more;
        message->more = chunk->next;
        free(chunk);
    }
    message->block = NULL;
}
