/* SPDX-License-Identifier: MIT */
/*
 * Chooses the fields that a reverse proxy passes on (RFC 9110, section 7.6). Fields of one
 * connection are not passed on: those that the field Connection names, and those that the standards
 * name. The fields that name the proxy's client are written anew, since a client that is not
 * trusted could have made them up.
 */
#include "passing.h"

#include <stdio.h>

enum { OWN_FIELDS = 10 };

static bool is_of_connection(const char *name) {
    static const char *const names[] = {"Connection", "Proxy-Connection",  "Keep-Alive", "TE",
                                        "Trailer",    "Transfer-Encoding", "Upgrade",    NULL};
    return hafti_http_is_one_of(name, names);
}

/* Whether the field is for the next hop only; `options` are those of Connection, or NULL. */
static bool stays(const char *name, const char *options) {
    return is_of_connection(name) ||
           (options != NULL &&
            hafti_http_lists((hafti_http_text_t){options, strlen(options)}, name));
}

static bool is_written_anew(const haft_http_proxy_t *proxy, const char *name) {
    static const char *const always[] = {"Host", "Content-Length", "Expect", "Via", NULL};
    static const char *const forwarded[] = {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
                                            "X-Forwarded-Proto", NULL};
    (void)proxy;
    return hafti_http_is_one_of(name, always) || hafti_http_is_one_of(name, forwarded);
}

/* Whether the field is meant for the proxy alone (RFC 9110, section 11.7). */
static bool is_for_proxy(const char *name) {
    return hafti_http_same_text(name, "Proxy-Authorization");
}

__attribute__((format(printf, 2, 3))) static char *format(haft_http_request_t *request,
                                                          const char *text, ...) {
    va_list arguments;
    va_start(arguments, text);
    int size = vsnprintf(NULL, 0, text, arguments);
    va_end(arguments);
    char *formatted = size >= 0 ? haft_http_request_allocate(request, (size_t)size + 1) : NULL;
    if (formatted == NULL)
        return NULL;
    va_start(arguments, text);
    vsnprintf(formatted, (size_t)size + 1, text, arguments);
    va_end(arguments);
    return formatted;
}

/* False: there is no memory for the value. */
static bool add(hafti_http_passed_t *passed, const char *name, const char *value) {
    passed->fields[passed->count++] = (haft_http_header_t){name, value};
    return value != NULL;
}

/* ---- Via ---- */

static const char *name_of(const haft_http_proxy_t *proxy) {
    return proxy->options.name != NULL ? proxy->options.name : proxy->made_up;
}

/* Whether an element of Via, "1.1 name (comment)", has this name. */
static bool has_passed(const char *via, const char *name) {
    hafti_http_text_t list = {via, via != NULL ? strlen(via) : 0}, element, word;
    while (hafti_http_next_part(&list, ',', &element))
        for (int i = 0; i < 2 && hafti_http_next_part(&element, ' ', &word); i++)
            if (i == 1 && hafti_http_same(word.bytes, word.size, name))
                return true;
    return false;
}

/* "HTTP/1.1" is 1.1 there. */
static char *via_of(haft_http_request_t *request, const char *before, const char *version,
                    const haft_http_proxy_t *proxy) {
    return format(request, "%s%s%s %s", before != NULL ? before : "", before != NULL ? ", " : "",
                  version, name_of(proxy));
}

/* ---- The fields that name the proxy's client ---- */

/* The value that the request already has, if its peer is trusted. */
static const char *believed(haft_http_request_t *request, const char *name, bool is_trusted) {
    return is_trusted ? haft_http_request_header(request, name) : NULL;
}

static bool add_to_list(hafti_http_passed_t *passed, haft_http_request_t *request, const char *name,
                        const char *before, const char *element) {
    if (element == NULL)
        return false;
    return add(passed, name, before != NULL ? format(request, "%s, %s", before, element) : element);
}

/* RFC 7239, sections 4 and 6: an element of Forwarded. A host has no quotes, as the library has
   checked. */
static char *element_of(haft_http_request_t *request, const char *peer, const char *host,
                        const char *scheme) {
    bool is_six = strchr(peer, ':') != NULL;
    return format(request, "for=%s%s%s;host=\"%s\";proto=%s", is_six ? "\"[" : "",
                  *peer != '\0' ? peer : "unknown", is_six ? "]\"" : "", host, scheme);
}

static bool add_forwarded(hafti_http_passed_t *passed, haft_http_request_t *request,
                          haft_http_forward_t forwarded) {
    bool is_trusted = hafti_http_is_peer_trusted(request);
    const char *peer = haft_http_request_peer(request);
    const char *host = haft_http_request_header(request, "Host");
    const char *scheme = haft_http_request_tls(request) != NULL ? "https" : "http";
    const char *known = believed(request, "X-Forwarded-For", is_trusted);
    const char *known_host = believed(request, "X-Forwarded-Host", is_trusted);
    const char *known_scheme = believed(request, "X-Forwarded-Proto", is_trusted);
    bool is_x = forwarded == HAFT_HTTP_FORWARD_BOTH || forwarded == HAFT_HTTP_FORWARD_X;
    bool is_standard =
        forwarded == HAFT_HTTP_FORWARD_BOTH || forwarded == HAFT_HTTP_FORWARD_STANDARD;
    bool has_all = true;
    host = host != NULL ? host : "";
    if (is_x && *peer != '\0')
        has_all &= add_to_list(passed, request, "X-Forwarded-For", known, peer);
    else if (is_x && known != NULL)
        has_all &= add(passed, "X-Forwarded-For", known);
    if (is_x && (known_host != NULL || *host != '\0'))
        has_all &= add(passed, "X-Forwarded-Host", known_host != NULL ? known_host : host);
    if (is_x)
        has_all &= add(passed, "X-Forwarded-Proto", known_scheme != NULL ? known_scheme : scheme);
    if (is_standard)
        has_all &=
            add_to_list(passed, request, "Forwarded", believed(request, "Forwarded", is_trusted),
                        element_of(request, peer, host, scheme));
    return has_all;
}

/* ---- A request's fields ---- */

/* RFC 9110, section 7.6.2: Max-Forwards counts for OPTIONS and TRACE alone. */
int64_t hafti_http_forwards_left(haft_http_request_t *request) {
    int method = request->message.parser.method;
    const char *text = method == HTTP_OPTIONS || method == HTTP_TRACE
                           ? haft_http_request_header(request, "Max-Forwards")
                           : NULL;
    int64_t left = 0;
    if (text == NULL || *text == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        left = left < INT32_MAX ? left * 10 + (*text - '0') : left;
    }
    return left;
}

static bool add_own(haft_http_request_t *request, const haft_http_proxy_t *proxy, const char *via,
                    hafti_http_passed_t *passed) {
    const char *codings = haft_http_request_header(request, "TE");
    int64_t forwards = hafti_http_forwards_left(request);
    bool has_all =
        add(passed, "Via", via_of(request, via, haft_http_request_version(request) + 5, proxy)) &&
        add_forwarded(passed, request, proxy->options.forwarded);
    if (codings != NULL &&
        hafti_http_lists((hafti_http_text_t){codings, strlen(codings)}, "trailers"))
        add(passed, "TE", "trailers");
    if (forwards > 0)
        has_all &= add(passed, "Max-Forwards", format(request, "%lld", (long long)(forwards - 1)));
    return has_all;
}

int hafti_http_pass_fields(haft_http_request_t *request, const haft_http_proxy_t *proxy,
                           hafti_http_passed_t *passed) {
    const char *options = haft_http_request_header(request, "Connection");
    const char *via = haft_http_request_header(request, "Via"), *name, *value;
    size_t room = request->message.field_count + OWN_FIELDS;
    bool has_forwards = hafti_http_forwards_left(request) >= 0;
    bool is_traced = haft_http_trace_get() != NULL; /* then the client of this library sends it */
    if (has_passed(via, name_of(proxy)))
        return -ELOOP;
    passed->count = 0;
    passed->fields = haft_http_request_allocate(request, room * sizeof *passed->fields);
    if (passed->fields == NULL)
        return -ENOMEM;
    for (size_t i = 0; haft_http_request_header_at(request, i, &name, &value); i++)
        if (!stays(name, options) && !is_written_anew(proxy, name) && !is_for_proxy(name) &&
            !(has_forwards && hafti_http_same_text(name, "Max-Forwards")) &&
            !(is_traced && (hafti_http_same_text(name, "traceparent") ||
                            hafti_http_same_text(name, "tracestate"))))
            add(passed, name, value);
    return add_own(request, proxy, via, passed) ? 0 : -ENOMEM;
}

/* RFC 9110, section 6.5.1: fields about the framing or the routing of a message are no trailers. */
static bool is_trailer(const char *name, const char *value) {
    static const char *const never[] = {"Host",         "Content-Length", "Content-Encoding",
                                        "Content-Type", "Content-Range",  "Authorization",
                                        "Set-Cookie",   "Cookie",         "Via",
                                        "Max-Forwards", "Forwarded",      NULL};
    return !is_of_connection(name) && !hafti_http_is_one_of(name, never) &&
           hafti_http_is_askable(&(haft_http_header_t){name, value});
}

const haft_http_header_t *hafti_http_pass_trailers(haft_http_request_t *request, size_t *count) {
    const char *name, *value;
    size_t room = 0;
    *count = 0;
    while (haft_http_request_trailer_at(request, room, &name, &value))
        room++;
    haft_http_header_t *fields =
        room != 0 ? haft_http_request_allocate(request, room * sizeof *fields) : NULL;
    for (size_t i = 0; fields != NULL && haft_http_request_trailer_at(request, i, &name, &value);
         i++)
        if (is_trailer(name, value))
            fields[(*count)++] = (haft_http_header_t){name, value};
    return fields;
}

/* ---- An answer's ---- */

int hafti_http_return_fields(haft_http_request_t *request, const haft_http_proxy_t *proxy,
                             haft_http_reply_t *reply) {
    const char *options = haft_http_reply_header(reply, "Connection"), *name, *value;
    int code = 0;
    for (size_t i = 0; code == 0 && haft_http_reply_header_at(reply, i, &name, &value); i++)
        if (!stays(name, options) && !hafti_http_same_text(name, "Content-Length") &&
            !hafti_http_same_text(name, "Via"))
            code = hafti_http_answer_pass_header(request, name, value);
    if (code != 0)
        return code;
    const llhttp_t *parser = &reply->message.parser;
    const char *version = parser->http_major == 2 ? "2.0" : parser->http_minor == 0 ? "1.0" : "1.1";
    char *via = via_of(request, haft_http_reply_header(reply, "Via"), version, proxy);
    return via != NULL ? haft_http_answer_set_header(request, "Via", via) : -ENOMEM;
}

static hafti_http_text_t value_of(hafti_http_text_t lines, const char *name) {
    hafti_http_text_t found, value;
    for (size_t at = 0; hafti_http_next_line(lines, &at, &found, &value);)
        if (hafti_http_same(found.bytes, found.size, name))
            return value;
    return (hafti_http_text_t){"", 0};
}

void hafti_http_return_informed(haft_http_request_t *request, unsigned status,
                                hafti_http_text_t lines) {
    hafti_http_text_t name, value, connection = value_of(lines, "Connection");
    const char *options = hafti_http_copy(&request->message, connection.bytes, connection.size);
    char *kept = haft_http_request_allocate(request, lines.size + 1);
    size_t size = 0;
    for (size_t at = 0, from = 0;
         kept != NULL && options != NULL && hafti_http_next_line(lines, &at, &name, &value);
         from = at) {
        const char *copy = hafti_http_copy(&request->message, name.bytes, name.size);
        if (copy == NULL || stays(copy, options) || hafti_http_same_text(copy, "Content-Length"))
            continue;
        memcpy(kept + size, lines.bytes + from, at - from);
        size += at - from;
    }
    if (kept != NULL)
        hafti_http_answer_inform(request, (int)status, kept, size);
}

int hafti_http_return_trailers(haft_http_request_t *request, haft_http_reply_t *reply) {
    const char *name, *value;
    int code = 0;
    for (size_t i = 0; code == 0 && haft_http_reply_trailer_at(reply, i, &name, &value); i++)
        if (is_trailer(name, value))
            code = haft_http_answer_set_trailer(request, name, value);
    return code != -ENOTSUP ? code : 0; /* the client's version has none */
}

/* ---- In place of the service ---- */

/* RFC 9110, section 9.3.8: TRACE gives the request back, without its confidential fields. */
static char *message_of(haft_http_request_t *request) {
    static const char *const private[] = {"Authorization", "Cookie", "Proxy-Authorization", NULL};
    const char *name, *value;
    char *text = format(request, "TRACE %s %s\r\n", haft_http_request_target(request),
                        haft_http_request_version(request));
    for (size_t i = 0; text != NULL && haft_http_request_header_at(request, i, &name, &value); i++)
        if (!hafti_http_is_one_of(name, private))
            text = format(request, "%s%s: %s\r\n", text, name, value);
    return text != NULL ? format(request, "%s\r\n", text) : NULL;
}

int hafti_http_answer_last(haft_http_request_t *request) {
    if (request->message.parser.method == HTTP_OPTIONS)
        return haft_http_answer(request, 204, NULL, "", 0);
    const char *text = message_of(request);
    return text != NULL ? haft_http_answer(request, 200, "message/http", text, strlen(text))
                        : -ENOMEM;
}
