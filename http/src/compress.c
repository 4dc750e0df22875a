/* SPDX-License-Identifier: MIT */
/*
 * Compression of what handlers write. It is decided when the head is made, stands above the version
 * of HTTP (gathering.c gets what is sent), and holds its state only while an answer is written.
 */
#include "internal.h"

#include <stdlib.h>

enum { LEAST_SIZE = 1400 /* smaller answers fit in a packet as they are */, PIECE = 8192 };

struct hafti_http_encoder {
    const hafti_http_coding_t *coding;
    void *state;
    bool holds; /* bytes that were not sent yet */
    char out[PIECE];
};

void haft_http_server_set_compression(haft_http_server_t *server,
                                      const haft_http_compression_t *options) {
    server->compression = options != NULL ? *options : (haft_http_compression_t){0};
}

void haft_http_answer_do_not_compress(haft_http_request_t *request) {
    request->answer.is_plain = true;
}

/* ---- Which coding ---- */

static bool ends_in(const char *text, size_t size, const char *end) {
    size_t length = strlen(end);
    return size > length && hafti_http_equal(text + size - length, end, length);
}

/* Types that are texts, or as redundant. */
static bool is_text(const char *type) {
    static const char *const types[] = {"application/json",
                                        "application/javascript",
                                        "application/x-ndjson",
                                        "application/xml",
                                        "application/wasm",
                                        "application/yaml",
                                        "application/manifest+json",
                                        "image/bmp",
                                        "font/ttf",
                                        "font/otf"};
    hafti_http_text_t list = {type, strlen(type)}, name;
    hafti_http_next_part(&list, ';', &name);
    if (name.size > 5 && hafti_http_equal(name.bytes, "text/", 5))
        return true;
    if (ends_in(name.bytes, name.size, "+json") || ends_in(name.bytes, name.size, "+xml"))
        return true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (hafti_http_same(name.bytes, name.size, types[i]))
            return true;
    return false;
}

/* Whether the handler forbids it: by an encoding of its own, or by its cache directives. */
static bool is_forbidden(const hafti_http_answer_t *answer) {
    hafti_http_text_t value;
    size_t at = 0;
    if (hafti_http_answer_field(answer, &at, "Content-Encoding", &value))
        return true;
    at = 0;
    if (hafti_http_answer_field(answer, &at, "Content-Range", &value))
        return true;
    for (at = 0; hafti_http_answer_field(answer, &at, "Cache-Control", &value);)
        if (hafti_http_lists(value, "no-transform"))
            return true;
    return false;
}

static bool may_compress(haft_http_request_t *request, int status, const char *type,
                         uint64_t size) {
    const haft_http_compression_t *options = &request->server->compression;
    size_t least = options->least_size != 0 ? options->least_size : LEAST_SIZE;
    if (options->off || request->answer.is_plain || type == NULL || size < least)
        return false;
    if (status == 204 || status == 206 || status == 304 || hafti_http_is_1_0(&request->message))
        return false; /* for HTTP/1.0, a size that is not known would end the connection */
    bool is_worth = options->is_worth != NULL ? options->is_worth(type) : is_text(type);
    return is_worth && !is_forbidden(&request->answer);
}

/* The coding that the client wants most; NULL: it wants the body as it is. */
static const hafti_http_coding_t *choose(haft_http_request_t *request, bool is_small) {
    const char *accepted = hafti_http_message_header(&request->message, "Accept-Encoding");
    const hafti_http_coding_t *best = NULL;
    if (accepted == NULL)
        return NULL;
    int most = 0, plain = hafti_http_weight_in(accepted, "identity");
    for (const hafti_http_coding_t *const *coding = hafti_http_codings; *coding != NULL; coding++) {
        int weight = hafti_http_weight_in(accepted, (*coding)->name);
        if (weight > most && (!is_small || (*coding)->is_small)) {
            most = weight;
            best = *coding;
        }
    }
    return plain > most ? NULL : best;
}

/* ---- The head ---- */

/* The same version has other bytes in each coding (RFC 9110, section 8.8.3.3). */
static int weaken_tag(haft_http_request_t *request) {
    hafti_http_answer_t *answer = &request->answer;
    hafti_http_text_t value;
    size_t begin = 0, end = 0;
    bool is_there = hafti_http_answer_field(answer, &end, "ETag", &value);
    if (!is_there || value.size == 0 || *value.bytes != '"')
        return 0;
    char *weak = hafti_http_allocate(&request->message, value.size + 3);
    if (weak == NULL)
        return -ENOMEM;
    memcpy(weak, "W/", 2);
    memcpy(weak + 2, value.bytes, value.size);
    weak[value.size + 2] = '\0';
    begin = (size_t)(value.bytes - answer->fields) - strlen("ETag: ");
    memmove(answer->fields + begin, answer->fields + end, answer->fields_size - end);
    answer->fields_size -= end - begin;
    return haft_http_answer_set_header(request, "ETag", weak);
}

static hafti_http_encoder_t *encoder_of(const hafti_http_coding_t *coding, uint64_t size,
                                        bool is_small) {
    hafti_http_encoder_t *encoder = malloc(sizeof *encoder);
    if (encoder == NULL)
        return NULL;
    encoder->coding = coding;
    encoder->holds = false;
    encoder->state = coding->begin_encoding(size, is_small);
    if (encoder->state != NULL)
        return encoder;
    free(encoder);
    return NULL;
}

int hafti_http_choose_encoding(haft_http_request_t *request, int status, const char *type,
                               uint64_t *size) {
    if (!may_compress(request, status, type, *size))
        return 0;
    bool is_small = hafti_http_begins(type, "text/event-stream");
    const hafti_http_coding_t *coding = choose(request, is_small);
    int code = haft_http_answer_set_header(request, "Vary", "Accept-Encoding");
    if (code != 0 || coding == NULL)
        return code;
    code = haft_http_answer_set_header(request, "Content-Encoding", coding->name);
    code = code == 0 ? weaken_tag(request) : code;
    if (code == 0 && !request->is_head) {
        request->answer.encoder = encoder_of(coding, *size, is_small);
        code = request->answer.encoder != NULL ? 0 : -ENOMEM;
    }
    *size = HAFT_HTTP_UNKNOWN_SIZE;
    return code;
}

/* ---- The body ---- */

int hafti_http_encode(haft_http_request_t *request, const void *bytes, size_t size,
                      hafti_http_step_t step) {
    hafti_http_encoder_t *encoder = request->answer.encoder;
    hafti_http_pieces_t pieces = {.in = bytes, .in_size = size};
    int code = 1;
    if (step == HAFTI_HTTP_FLUSH && !encoder->holds)
        return 0;
    while (code == 1) {
        pieces.out = encoder->out;
        pieces.room = PIECE;
        code = encoder->coding->encode(encoder->state, &pieces, step);
        size_t made = (size_t)(pieces.out - encoder->out);
        request->answer.written += made;
        int sent = code >= 0 && made != 0 ? hafti_http_answer_put(request, encoder->out, made) : 0;
        code = sent != 0 ? sent : code;
    }
    encoder->holds = step == HAFTI_HTTP_MORE;
    return code;
}

void hafti_http_encoder_free(hafti_http_encoder_t *encoder) {
    if (encoder == NULL)
        return;
    encoder->coding->end_encoding(encoder->state);
    free(encoder);
}
