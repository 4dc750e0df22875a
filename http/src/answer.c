/* SPDX-License-Identifier: MIT */
/* Answers: their begin, their body, which may be a file, and their end; and those that the library
   gives by itself. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/uio.h>

enum { MOST_AT_ONCE = 1024 * 1024 }; /* bytes of a file */

void hafti_http_answer_discard(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    hafti_http_encoder_free(answer->encoder);
    *answer = (hafti_http_answer_t){.block = answer->block,
                                    .fields = answer->fields,
                                    .fields_size = answer->lasting_size,
                                    .fields_room = answer->fields_room,
                                    .lasting_size = answer->lasting_size};
}

int haft_http_answer_discard(haft_http_request_t *request) {
    const hafti_http_answer_t *answer = &request->answer;
    if (answer->is_sent || answer->failed || answer->is_stream)
        return -EALREADY;
    hafti_http_answer_discard(request);
    return 0;
}

void hafti_http_answer_end(haft_http_request_t *request) {
    hafti_http_encoder_free(request->answer.encoder);
    haft_io_give_back(request->answer.block);
}

/* A Content-Type that the handler has set counts; `type` becomes NULL, since the fields have it.
   Its value, or NULL: no memory. */
static const char *type_in_fields(haft_http_request_t *request, const char **type) {
    hafti_http_text_t value;
    size_t at = 0;
    if (request->answer.fields_size == 0 ||
        !hafti_http_answer_field(&request->answer, &at, "Content-Type", &value))
        return *type;
    *type = NULL;
    return hafti_http_copy(&request->message, value.bytes, value.size);
}

int haft_http_answer_begin(haft_http_request_t *request, int status, const char *type,
                           uint64_t size) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->progress != HAFTI_HTTP_NOT_BEGUN)
        return -EALREADY;
    if (status < 200 || status > 599)
        return haft_io_refuse(-EINVAL, "haft_http_answer",
                              "%d is no status of an answer: write 200 to 599", status);
    if (type != NULL && !hafti_http_is_given_value(type))
        return -EINVAL;
    bool is_1_0 = hafti_http_is_1_0(&request->message);
    uint64_t sent = status == 205 ? 0 : size; /* RFC 9110, section 15.3.6 */
    const char *known_type = type_in_fields(request, &type);
    int code = hafti_http_choose_encoding(request, status, known_type, &sent);
    if (code != 0)
        return code;
    answer->progress = HAFTI_HTTP_BEGUN;
    answer->status = status;
    answer->without_body = request->is_head || status == 204 || status == 205 || status == 304;
    answer->left = size;
    answer->chunked = sent == HAFT_HTTP_UNKNOWN_SIZE && !is_1_0 && status != 204 && status != 304;
    if ((size == HAFT_HTTP_UNKNOWN_SIZE && is_1_0 && !answer->without_body) ||
        request->message.waits_for_word || request->message.error != 0 ||
        atomic_load(&request->server->stopping))
        request->keeps = false;
    if (request->kept != NULL) { /* an answer before it was discarded */
        request->copy->size = 0;
        request->copy->is_cut = false;
    }
    HAFTI_HTTP_UNKEPT(request->kept != NULL);
    return request->framing->head(request, type, sent);
}

int haft_http_answer_write(haft_http_request_t *request, const void *bytes, size_t size) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->progress != HAFTI_HTTP_BEGUN)
        return haft_io_refuse(-EINVAL, __func__, "the answer %s",
                              answer->progress == HAFTI_HTTP_NOT_BEGUN
                                  ? "has not begun: call haft_http_answer_begin first"
                                  : "has ended: write all of it before");
    if (bytes == NULL && size != 0)
        return -EFAULT;
    if (answer->left != HAFT_HTTP_UNKNOWN_SIZE) {
        if (size > answer->left)
            return -EMSGSIZE;
        answer->left -= size;
    }
    if (request->kept != NULL)
        hafti_http_bytes_add(request->copy, bytes, size);
    if (size != 0 && answer->encoder != NULL)
        return hafti_http_encode(request, bytes, size, HAFTI_HTTP_MORE);
    answer->written += size;
    return size != 0 && !answer->without_body ? hafti_http_answer_put(request, bytes, size) : 0;
}

/* Reads only bytes that the kernel has in memory; -EAGAIN: it would have to read the disk. A
   function of its own, so that errno is this thread's. */
__attribute__((noinline)) static ssize_t read_cached(int file, void *into, size_t size,
                                                     int64_t offset) {
    struct iovec part = {into, size};
    ssize_t got = preadv2(file, &part, 1, offset, RWF_NOWAIT);
    return got >= 0 ? got : -EAGAIN;
}

/* Fails because of the file, and not of the client. */
static int fail_to_read(haft_http_request_t *request, int code) {
    haft_http_request_note_failure(request, code == 0 ? "the file has become shorter"
                                                      : haft_io_error_text(code));
    return hafti_http_answer_fail(request, code == 0 ? -EIO : code);
}

static int gather_file(haft_http_request_t *request, int file, int64_t offset, size_t size) {
    hafti_http_answer_t *answer = &request->answer;
    while (size != 0) {
        char *into = answer->block + answer->size;
        ssize_t got = read_cached(file, into, size, offset);
        if (got < 0)
            got = haft_io_pread(file, into, size, offset);
        if (got <= 0)
            return fail_to_read(request, (int)got);
        answer->size += (size_t)got;
        offset += got;
        size -= (size_t)got;
    }
    return 0;
}

static int send_file(haft_http_request_t *request, int file, int64_t offset, uint64_t size) {
    int code = hafti_http_answer_send_gathered(request);
    while (code == 0 && size != 0) {
        size_t part = size < MOST_AT_ONCE ? (size_t)size : MOST_AT_ONCE;
        ssize_t sent = hafti_http_stream_send_file(request->message.stream, request->message.limits,
                                                   file, &offset, part);
        if (sent == 0)
            return fail_to_read(request, 0);
        if (sent < 0)
            return hafti_http_answer_fail(request, (int)sent);
        size -= (uint64_t)sent;
    }
    return code;
}

/* A file that has become shorter is an error, and no end of the answer. */
int hafti_http_write_file(haft_http_request_t *request, int file, int64_t offset, uint64_t size) {
    hafti_http_answer_t *answer = &request->answer;
    int code = 0;
    answer->left -= size;
    answer->written += size;
    if (answer->without_body || size == 0)
        return 0;
    if (size > HAFT_IO_LENT_SIZE - answer->size)
        return send_file(request, file, offset, size);
    return hafti_http_answer_room(request, (size_t)size, &code) != NULL
               ? gather_file(request, file, offset, (size_t)size)
               : code;
}

int haft_http_answer_flush(haft_http_request_t *request) {
    int code =
        request->answer.encoder != NULL ? hafti_http_encode(request, "", 0, HAFTI_HTTP_FLUSH) : 0;
    return code == 0 ? hafti_http_answer_send_gathered(request) : code;
}

int haft_http_answer_status(const haft_http_request_t *request) {
    return request->answer.status;
}

/* Whether the rest of the body is not going to be read. The answer cannot wait for chunks that have
   not all come: they may be any number. */
static bool is_too_long_to_skip(const hafti_http_message_t *message) {
    return message->body == HAFTI_HTTP_SIZED
               ? message->left > HAFTI_HTTP_SKIPPED
               : message->body == HAFTI_HTTP_CHUNKED && !hafti_http_message_has_come(message);
}

int haft_http_answer(haft_http_request_t *request, int status, const char *type, const void *body,
                     size_t size) {
    if (request->answer.progress == HAFTI_HTTP_NOT_BEGUN && is_too_long_to_skip(&request->message))
        request->keeps = false;
    int code =
        body != NULL || size == 0 ? haft_http_answer_begin(request, status, type, size) : -EFAULT;
    return code == 0 ? haft_http_answer_write(request, body, size) : code;
}

static const char plain_text[] = "text/plain; charset=utf-8";

int haft_http_answer_text(haft_http_request_t *request, int status, const char *text) {
    return text != NULL ? haft_http_answer(request, status, plain_text, text, strlen(text))
                        : -EFAULT;
}

int haft_http_answer_format(haft_http_request_t *request, int status, const char *format, ...) {
    char text[512], *all = text;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0)
        return -EINVAL;
    if ((size_t)size >= sizeof text) {
        if ((all = hafti_http_allocate(&request->message, (size_t)size + 1)) == NULL)
            return -ENOMEM;
        va_start(arguments, format);
        vsnprintf(all, (size_t)size + 1, format, arguments);
        va_end(arguments);
    }
    return haft_http_answer(request, status, plain_text, all, (size_t)size);
}

int hafti_http_answer_stream(haft_http_request_t *request, int status, const char *line,
                             const char *protocol) {
    hafti_http_answer_t *answer = &request->answer;
    answer->progress = HAFTI_HTTP_BEGUN;
    answer->status = status;
    answer->left = HAFT_HTTP_UNKNOWN_SIZE;
    int code = request->framing->become_stream(request, line, protocol);
    return code == 0 ? hafti_http_answer_send_gathered(request) : code;
}

int hafti_http_answer_status(haft_http_request_t *request, int status) {
    return haft_http_answer_format(request, status, "%d %s\n", status,
                                   hafti_http_reason_of(status));
}

int haft_http_request_body_error(const haft_http_request_t *request) {
    return request->message.status != 0 ? request->message.error : 0;
}

int haft_http_request_carry(haft_http_request_t *request, haft_http_thrown_t *thrown) {
    if (request->thrown != NULL)
        request->thrown->free(request->thrown);
    request->thrown = thrown;
    return HAFT_IO_BY_EXCEPTION;
}

haft_http_thrown_t *haft_http_request_take_thrown(haft_http_request_t *request) {
    haft_http_thrown_t *thrown = request->thrown;
    request->thrown = NULL;
    return thrown;
}

void haft_http_request_unwound(haft_http_request_t *request) {
    if (!request->is_unwound) /* otherwise the answer is that of middleware in between */
        request->is_unwound = haft_http_answer_discard(request) == 0;
}

void hafti_http_forget_thrown(haft_http_request_t *request) {
    haft_http_thrown_t *thrown = haft_http_request_take_thrown(request);
    if (thrown != NULL)
        thrown->free(thrown);
}

static int end_encoding(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->encoder == NULL)
        return 0;
    int code = hafti_http_encode(request, "", 0, HAFTI_HTTP_FINISH);
    hafti_http_encoder_free(answer->encoder);
    answer->encoder = NULL;
    return code != 0 ? hafti_http_answer_fail(request, code) : 0;
}

int hafti_http_answer_complete(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    answer->progress = HAFTI_HTTP_ENDED;
    if (answer->failed)
        return -EPIPE;
    int code = end_encoding(request);
    if (code == 0 && (code = request->framing->end(request)) != 0)
        hafti_http_answer_fail(request, code);
    return code;
}

void haft_http_request_note_failure(haft_http_request_t *request, const char *text) {
    if (!request->answer.failed && text != NULL)
        request->failure = hafti_http_copy(&request->message, text, strlen(text));
}

static int inform(haft_http_request_t *request, int status, const char *lines, size_t size) {
    HAFTI_HTTP_UNKEPT(request->kept != NULL);
    int code = request->framing->inform(request, status, lines, size);
    request->answer.is_sent = false;
    return code;
}

int hafti_http_answer_inform(haft_http_request_t *request, int status, const char *lines,
                             size_t size) {
    bool may_come = request->answer.progress == HAFTI_HTTP_NOT_BEGUN && !request->answer.failed &&
                    !hafti_http_is_1_0(&request->message);
    return may_come ? inform(request, status, lines, size) : 0;
}

/* Sends 100 (Continue) once, before the first read of a body whose sender waits for it; but not to
   a sender that has begun already or may have seen the begin of the answer, nor for a body that is
   too large. */
int hafti_http_send_continue(haft_http_request_t *request) {
    hafti_http_message_t *message = &request->message;
    bool is_too_large = message->body == HAFTI_HTTP_SIZED && message->left > message->limit;
    if (!message->waits_for_word || is_too_large)
        return 0;
    message->waits_for_word = false;
    if (request->answer.is_sent || message->stream->at != message->stream->end)
        return 0;
    return inform(request, 100, "", 0);
}
