/* SPDX-License-Identifier: MIT */
/* A message as handlers and users read it: its body decoded, piece by piece or as a whole; and its
   end. */
#include "message.h"

#include <stdlib.h>

ssize_t hafti_http_message_read(hafti_http_message_t *message, void *buffer, size_t size) {
    return message->decoder != NULL ? hafti_http_message_decode(message, buffer, size)
                                    : hafti_http_message_read_plain(message, buffer, size);
}

/* The bytes grow by malloc(3), and are copied to the message's memory when their size is known. */
static ssize_t read_growing(hafti_http_message_t *message, char **bytes, size_t *room) {
    size_t size = 0;
    for (;;) {
        if (size == *room) {
            size_t wanted = *room != 0 ? 2 * *room : 4096;
            char *grown = realloc(*bytes, wanted);
            if (grown == NULL)
                return -ENOMEM;
            *bytes = grown;
            *room = wanted;
        }
        ssize_t got = hafti_http_message_read(message, *bytes + size, *room - size);
        if (got <= 0)
            return got < 0 ? got : (ssize_t)size;
        size += (size_t)got;
    }
}

static void free_growing(char **bytes) {
    free(*bytes);
}

static ssize_t read_all_growing(hafti_http_message_t *message, char **body) {
    __attribute__((cleanup(free_growing))) char *bytes = NULL; /* also when the task is cancelled */
    size_t room = 0;
    ssize_t size = read_growing(message, &bytes, &room);
    if (size >= 0 && (*body = hafti_http_copy(message, bytes, (size_t)size)) == NULL)
        return -ENOMEM;
    return size;
}

static ssize_t read_all_sized(hafti_http_message_t *message, char **body) {
    size_t size = (size_t)message->left, got = 0;
    ssize_t piece = 0;
    if (message->error != 0)
        return message->error;
    if (message->left + message->got > message->limit)
        return hafti_http_message_fail(message, -EMSGSIZE);
    *body = size != SIZE_MAX ? hafti_http_allocate(message, size + 1) : NULL;
    if (*body == NULL)
        return -ENOMEM;
    do {
        piece = hafti_http_message_read(message, *body + got, size + 1 - got);
        got += piece > 0 ? (size_t)piece : 0;
    } while (piece > 0);
    if (piece < 0)
        return piece;
    (*body)[got] = '\0';
    return (ssize_t)got;
}

ssize_t hafti_http_message_read_all(hafti_http_message_t *message, char **body) {
    *body = NULL;
    bool is_known = message->body == HAFTI_HTTP_SIZED || message->body == HAFTI_HTTP_NO_BODY;
    return is_known && message->decoder == NULL ? read_all_sized(message, body)
                                                : read_all_growing(message, body);
}

void hafti_http_message_end(hafti_http_message_t *message) {
    hafti_http_decoder_free(message->decoder);
    message->decoder = NULL;
    hafti_http_free_memory(message);
}
