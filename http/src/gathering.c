/* SPDX-License-Identifier: MIT */
/* Writes of an answer are gathered in a block, which is sent when it is full, by
   haft_http_answer_flush, or by the connection, together with the wait for its next request. */
#include "internal.h"

int hafti_http_answer_fail(haft_http_request_t *request, int code) {
    request->answer.failed = true;
    request->keeps = false;
    return code;
}

int hafti_http_answer_send(haft_http_request_t *request, const void *bytes, size_t size) {
    if (request->answer.failed)
        return -EPIPE;
    request->answer.is_sent = true;
    int code = hafti_http_stream_write_within(request->message.stream, request->message.limits,
                                              bytes, size);
    return code == 0 ? 0 : hafti_http_answer_fail(request, code);
}

int hafti_http_answer_send_gathered(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    size_t size = answer->size;
    bool has_head = answer->progress != HAFTI_HTTP_NOT_BEGUN && !answer->is_sent;
    answer->size = 0;
    return size != 0 || has_head ? hafti_http_answer_send(request, answer->block, size) : 0;
}

/* The place in the block with room for `size` bytes, or NULL. If a full block has no room, it is
   sent first. */
char *hafti_http_answer_room(haft_http_request_t *request, size_t size, int *code) {
    hafti_http_answer_t *answer = &request->answer;
    *code = answer->failed ? -EPIPE : 0;
    if (*code == 0 && answer->block == NULL && (answer->block = haft_io_lend()) == NULL)
        *code = hafti_http_answer_fail(request, -ENOMEM);
    if (*code == 0 && size > HAFT_IO_LENT_SIZE - answer->size)
        *code = hafti_http_answer_send_gathered(request);
    return *code == 0 ? answer->block + answer->size : NULL;
}

int hafti_http_answer_gather(haft_http_request_t *request, const void *bytes, size_t size) {
    int code;
    if (size == 0)
        return 0;
    char *to = hafti_http_answer_room(request, size, &code);
    if (to == NULL)
        return code;
    if (size > HAFT_IO_LENT_SIZE)
        return hafti_http_answer_send(request, bytes, size);
    memcpy(to, bytes, size);
    request->answer.size += size;
    return 0;
}

int hafti_http_answer_put(haft_http_request_t *request, const void *bytes, size_t size) {
    HAFTI_HTTP_UNKEPT(request->kept != NULL);
    return request->answer.chunked ? request->framing->piece(request, bytes, size)
                                   : hafti_http_answer_gather(request, bytes, size);
}
