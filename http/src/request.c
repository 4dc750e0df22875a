/* SPDX-License-Identifier: MIT */
/* Functions by which a handler reads its request. */
#include "internal.h"

const char *haft_http_request_method(const haft_http_request_t *request) {
    return request->method;
}

const char *haft_http_request_target(const haft_http_request_t *request) {
    return request->message.block + request->message.target;
}

const char *haft_http_request_version(const haft_http_request_t *request) {
    const hafti_http_message_t *message = &request->message;
    if (message->parser.http_major == 2)
        return "HTTP/2.0";
    return hafti_http_is_1_0(message) ? "HTTP/1.0" : "HTTP/1.1";
}

/* Decodes a text; NULL also where that cannot be done. */
static const char *decoded(hafti_http_message_t *message, hafti_http_text_t text) {
    char *copy = hafti_http_copy(message, text.bytes, text.size);
    ssize_t size = copy != NULL ? hafti_http_decode(text.bytes, text.size, true, copy) : -ENOMEM;
    if (size < 0)
        return NULL;
    copy[size] = '\0';
    return copy;
}

static bool is_name(hafti_http_message_t *message, hafti_http_text_t text, const char *name) {
    if (memchr(text.bytes, '%', text.size) == NULL && memchr(text.bytes, '+', text.size) == NULL)
        return strlen(name) == text.size && memcmp(name, text.bytes, text.size) == 0;
    const char *found = decoded(message, text);
    return found != NULL && strcmp(found, name) == 0;
}

/* The first parameter of this name of a=b&c=d, decoded. */
static const char *parameter(hafti_http_message_t *message, const char *bytes, size_t size,
                             const char *name) {
    hafti_http_text_t list = {bytes, size}, pair;
    while (name != NULL && hafti_http_next_part(&list, '&', &pair)) {
        const char *equals = memchr(pair.bytes, '=', pair.size);
        size_t name_size = equals != NULL ? (size_t)(equals - pair.bytes) : pair.size;
        if (!is_name(message, (hafti_http_text_t){pair.bytes, name_size}, name))
            continue;
        size_t skipped = equals != NULL ? name_size + 1 : name_size;
        return decoded(message, (hafti_http_text_t){pair.bytes + skipped, pair.size - skipped});
    }
    return NULL;
}

const char *haft_http_request_query(haft_http_request_t *request, const char *name) {
    const char *target = haft_http_request_target(request);
    const char *mark = memchr(target, '?', request->message.target_size);
    if (mark == NULL)
        return NULL;
    size_t skipped = (size_t)(mark + 1 - target);
    return parameter(&request->message, mark + 1, request->message.target_size - skipped, name);
}

const char *haft_http_request_header(haft_http_request_t *request, const char *name) {
    return hafti_http_message_header(&request->message, name);
}

/* A browser may divide its cookies over several fields of HTTP/2, which are one (RFC 9113, section
   8.2.3). It stands where the first of them does. */
bool haft_http_request_header_at(haft_http_request_t *request, size_t number, const char **name,
                                 const char **value) {
    hafti_http_message_t *message = &request->message;
    bool has_cookies = false;
    for (size_t i = 0; i < message->field_count; i++) {
        const hafti_http_field_t *field = &message->fields[i];
        bool is_cookie = hafti_http_same(message->block + field->name, field->name_size, "Cookie");
        bool is_joined = is_cookie && has_cookies;
        has_cookies |= is_cookie;
        if (is_joined || number-- != 0)
            continue;
        if (!hafti_http_message_header_at(message, i, name, value))
            return false;
        if (is_cookie)
            *value = hafti_http_message_header(message, "Cookie");
        return *value != NULL;
    }
    return false;
}

bool haft_http_request_has_body(const haft_http_request_t *request) {
    return request->message.body != HAFTI_HTTP_NO_BODY;
}

/* RFC 6265, section 4.2.1: the field Cookie. A browser that has several of a name sends the most
   specific one first. */
const char *haft_http_request_cookie(haft_http_request_t *request, const char *name) {
    hafti_http_text_t list, pair;
    size_t from = 0, size = name != NULL ? strlen(name) : 0;
    while (size != 0 && hafti_http_message_field(&request->message, "Cookie", &from, &list))
        while (hafti_http_next_part(&list, ';', &pair))
            if (pair.size > size && pair.bytes[size] == '=' && memcmp(pair.bytes, name, size) == 0)
                return hafti_http_copy(&request->message, pair.bytes + size + 1,
                                       pair.size - size - 1);
    return NULL;
}

void *haft_http_request_allocate(haft_http_request_t *request, size_t size) {
    return hafti_http_allocate(&request->message, size);
}

int haft_http_request_descriptor(const haft_http_request_t *request) {
    return request->message.stream->descriptor;
}

void haft_http_request_limit_body(haft_http_request_t *request, uint64_t size) {
    request->message.limit = size;
}

ssize_t haft_http_request_read(haft_http_request_t *request, void *buffer, size_t size) {
    int code = hafti_http_send_continue(request);
    return code == 0 ? hafti_http_message_read(&request->message, buffer, size) : code;
}

ssize_t haft_http_request_body(haft_http_request_t *request, char **body) {
    int code = hafti_http_send_continue(request);
    return code == 0 ? hafti_http_message_read_all(&request->message, body) : code;
}

static bool is_form(haft_http_request_t *request) {
    hafti_http_text_t type, word;
    size_t from = 0;
    return hafti_http_message_field(&request->message, "Content-Type", &from, &type) &&
           hafti_http_next_part(&type, ';', &word) &&
           hafti_http_same(word.bytes, word.size, "application/x-www-form-urlencoded");
}

const char *haft_http_request_form(haft_http_request_t *request, const char *name) {
    if (request->form == NULL && is_form(request)) {
        ssize_t size = haft_http_request_body(request, &request->form);
        request->form_size = size > 0 ? (size_t)size : 0;
    }
    if (request->form == NULL)
        return NULL;
    return parameter(&request->message, request->form, request->form_size, name);
}

const char *haft_http_request_trailer(haft_http_request_t *request, const char *name) {
    return hafti_http_message_trailer(&request->message, name);
}

bool haft_http_request_trailer_at(haft_http_request_t *request, size_t number, const char **name,
                                  const char **value) {
    return hafti_http_message_trailer_at(&request->message, number, name, value);
}

int haft_http_request_accepts(haft_http_request_t *request, const char *const *types,
                              size_t count) {
    const char *accepted = haft_http_request_header(request, "Accept");
    int best = -1, most = 0;
    for (size_t i = 0; i < count; i++) {
        int weight = accepted != NULL ? hafti_http_weight_in(accepted, types[i]) : HAFTI_HTTP_WHOLE;
        if (weight > most) {
            most = weight;
            best = (int)i;
        }
    }
    return best;
}
