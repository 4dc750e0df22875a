/* SPDX-License-Identifier: MIT */
/*
 * The head of a request, or of an answer. It is copied line by line into the message's block until
 * the empty line that ends it, so the parser sees it whole. The parser takes more than RFC 9112
 * does; the rest is refused here: lines that end without CR, folded lines, spaces, empty names,
 * targets, Host, and lengths that contradict each other. A client that can make two servers read
 * one message in two ways can smuggle requests past the first.
 */
#include "message.h"

#include <stdlib.h>

/* ---- Callbacks of the parser ---- */

static hafti_http_message_t *message_of(llhttp_t *parser) {
    return parser->data;
}

static int on_url(llhttp_t *parser, const char *at, size_t size) {
    hafti_http_message_t *message = message_of(parser);
    if (message->target_size == 0)
        message->target = (size_t)(at - message->block);
    message->target_size = (size_t)(at - message->block) + size - message->target;
    return 0;
}

static int keep_trailer(llhttp_t *parser, const char *at, size_t size) {
    hafti_http_message_t *message = message_of(parser);
    if (message->trailers == NULL)
        message->trailers = hafti_http_allocate(message, message->limits->head);
    if (message->trailers == NULL || size >= message->limits->head - message->trailers_size)
        return -1;
    memcpy(message->trailers + message->trailers_size, at, size);
    message->trailers_size += size;
    return 0;
}

static int end_trailer(llhttp_t *parser) {
    return keep_trailer(parser, "", 1);
}

static int on_field(llhttp_t *parser, const char *at, size_t size) {
    hafti_http_message_t *message = message_of(parser);
    if (message->field_count == message->limits->fields) {
        message->too_many_fields = true;
        return -1;
    }
    message->fields[message->field_count++] =
        (hafti_http_field_t){.name = (uint16_t)(at - message->block), .name_size = (uint16_t)size};
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t size) {
    hafti_http_message_t *message = message_of(parser);
    hafti_http_field_t *field = &message->fields[message->field_count - 1];
    while (size != 0 && (at[size - 1] == ' ' || at[size - 1] == '\t'))
        size--;
    field->value = (uint16_t)(at - message->block);
    field->value_size = (uint16_t)size;
    return 0;
}

static int pause_parser(llhttp_t *parser) {
    (void)parser;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *parser, const char *at, size_t size) {
    hafti_http_message_t *message = message_of(parser);
    memcpy(message->into + message->into_size, at, size);
    message->into_size += size;
    return 0;
}

static int on_chunk(llhttp_t *parser) {
    message_of(parser)->in_trailers = parser->content_length == 0;
    message_of(parser)->last = '\n';
    return message_of(parser)->in_trailers ? HPE_PAUSED : 0;
}

static int on_end(llhttp_t *parser) {
    message_of(parser)->is_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t of_head = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = pause_parser,
};
static const llhttp_settings_t of_body = {
    .on_header_field = keep_trailer,
    .on_header_field_complete = end_trailer,
    .on_header_value = keep_trailer,
    .on_header_value_complete = end_trailer,
    .on_chunk_header = on_chunk,
    .on_body = on_body,
    .on_message_complete = on_end,
};

/* A look ahead, by a parser of its own, that keeps nothing. */
static bool last_chunk_has_come(const hafti_http_message_t *message) {
    static const llhttp_settings_t of_look = {.on_message_complete = pause_parser};
    llhttp_t parser = message->parser;
    parser.settings = (void *)(uintptr_t)&of_look;
    const hafti_http_stream_t *stream = message->stream;
    return llhttp_execute(&parser, stream->at, (size_t)(stream->end - stream->at)) == HPE_PAUSED;
}

bool hafti_http_message_has_come(const hafti_http_message_t *message) {
    const hafti_http_stream_t *stream = message->stream;
    if (message->is_complete)
        return true;
    return message->body == HAFTI_HTTP_CHUNKED
               ? message->error == 0 && last_chunk_has_come(message)
               : message->body == HAFTI_HTTP_SIZED &&
                     message->left <= (size_t)(stream->end - stream->at);
}

llhttp_errno_t hafti_http_message_parse(hafti_http_message_t *message, const char *bytes,
                                        size_t size) {
    llhttp_errno_t code = llhttp_execute(&message->parser, bytes, size);
    if (code == HPE_PAUSED)
        llhttp_resume(&message->parser);
    return code;
}

/* ---- Checks ---- */

static int refuse(hafti_http_message_t *message, int status) {
    message->status = status;
    return message->error = -EBADMSG;
}

bool hafti_http_message_field(const hafti_http_message_t *message, const char *name, size_t *from,
                              hafti_http_text_t *value) {
    size_t size = strlen(name);
    while (*from < message->field_count) {
        const hafti_http_field_t *field = &message->fields[(*from)++];
        if (field->name_size == size &&
            hafti_http_equal(message->block + field->name, name, size)) {
            *value = (hafti_http_text_t){message->block + field->value, field->value_size};
            return true;
        }
    }
    return false;
}

/* The parser knows those of other protocols, too. */
int hafti_http_method_of(hafti_http_text_t name) {
    for (int method = HTTP_DELETE; method < HTTP_SOURCE; method++) {
        const char *known = llhttp_method_name((llhttp_method_t)method);
        if (method != HTTP_PRI && strlen(known) == name.size &&
            memcmp(known, name.bytes, name.size) == 0)
            return method;
    }
    return -1;
}

/* Whether the field Connection has the option. The parser's flag alone may be of Proxy-Connection,
   which is no field of HTTP (RFC 9110, section 7.6.1). */
static bool has_connection_option(const hafti_http_message_t *message, uint16_t flag,
                                  const char *option) {
    hafti_http_text_t options;
    size_t from = 0;
    if ((message->parser.flags & flag) == 0)
        return false;
    while (hafti_http_message_field(message, "Connection", &from, &options))
        if (hafti_http_lists(options, option))
            return true;
    return false;
}

bool hafti_http_message_is_kept(const hafti_http_message_t *message) {
    bool is_wanted = message->parser.http_minor != 0 ||
                     has_connection_option(message, F_CONNECTION_KEEP_ALIVE, "keep-alive");
    return is_wanted && !has_connection_option(message, F_CONNECTION_CLOSE, "close");
}

const char *hafti_http_message_header(hafti_http_message_t *message, const char *name) {
    hafti_http_text_t value, further;
    size_t from = 0;
    if (name == NULL || !hafti_http_message_field(message, name, &from, &value))
        return NULL;
    if (hafti_http_same_text(name, "Set-Cookie")) /* RFC 9110, section 5.3: it is no list */
        return hafti_http_copy(message, value.bytes, value.size);
    /* RFC 9113, section 8.2.3 */
    const char *divider = hafti_http_same_text(name, "Cookie") ? "; " : ", ";
    char *all = hafti_http_copy(message, value.bytes, value.size);
    while (all != NULL && hafti_http_message_field(message, name, &from, &further)) {
        size_t size = strlen(all);
        char *joined = hafti_http_allocate(message, size + further.size + 3);
        if (joined == NULL)
            return NULL;
        memcpy(joined, all, size);
        memcpy(joined + size, divider, 2);
        memcpy(joined + size + 2, further.bytes, further.size);
        joined[size + 2 + further.size] = '\0';
        all = joined;
    }
    return all;
}

bool hafti_http_message_header_at(hafti_http_message_t *message, size_t number, const char **name,
                                  const char **value) {
    if (number >= message->field_count)
        return false;
    const hafti_http_field_t *field = &message->fields[number];
    *name = hafti_http_copy(message, message->block + field->name, field->name_size);
    *value = hafti_http_copy(message, message->block + field->value, field->value_size);
    return *name != NULL && *value != NULL;
}

bool hafti_http_message_trailer_at(const hafti_http_message_t *message, size_t number,
                                   const char **name, const char **value) {
    for (size_t at = 0; message->is_complete && at < message->trailers_size;) {
        *name = message->trailers + at;
        *value = *name + strlen(*name) + 1;
        if (number-- == 0)
            return true;
        at = (size_t)(*value - message->trailers) + strlen(*value) + 1;
    }
    return false;
}

const char *hafti_http_message_trailer(const hafti_http_message_t *message, const char *name) {
    const char *found, *value;
    for (size_t i = 0; name != NULL && hafti_http_message_trailer_at(message, i, &found, &value);
         i++)
        if (hafti_http_same_text(found, name))
            return value;
    return NULL;
}

/* The fields that decide how a message is read. */
enum { HOST, CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT, KNOWN };

/* The number of fields of a name, and the value of the first. */
typedef struct {
    size_t count;
    hafti_http_text_t first;
} known_t;

static void find_known(const hafti_http_message_t *message, known_t known[KNOWN]) {
    static const hafti_http_text_t names[KNOWN] = {
        [HOST] = {"Host", 4},
        [CONTENT_LENGTH] = {"Content-Length", 14},
        [TRANSFER_ENCODING] = {"Transfer-Encoding", 17},
        [EXPECT] = {"Expect", 6},
    };
    memset(known, 0, KNOWN * sizeof *known);
    for (size_t i = 0; i < message->field_count; i++) {
        const hafti_http_field_t *field = &message->fields[i];
        const char *name = message->block + field->name, *value = message->block + field->value;
        for (size_t j = 0; j < KNOWN; j++)
            if (field->name_size == names[j].size &&
                hafti_http_equal(name, names[j].bytes, names[j].size) && known[j].count++ == 0)
                known[j].first = (hafti_http_text_t){value, field->value_size};
    }
}

/* RFC 9112, section 3.2: the lack of Host is an error but in HTTP/1.0, and so are two fields. */
static int check_host(hafti_http_message_t *message, const known_t *host) {
    bool is_good = host->count == 1 ? hafti_http_is_authority(host->first)
                                    : host->count == 0 && hafti_http_is_1_0(message);
    return is_good ? 0 : refuse(message, 400);
}

/* Makes this part of the head the value of the field Host. */
static void set_host(hafti_http_message_t *message, hafti_http_text_t host) {
    for (size_t i = 0; i < message->field_count; i++) {
        hafti_http_field_t *field = &message->fields[i];
        if (hafti_http_same(message->block + field->name, field->name_size, "Host")) {
            field->value = (uint16_t)(host.bytes - message->block);
            field->value_size = (uint16_t)host.size;
        }
    }
}

/* The absolute form is that of a proxy's client, and a server takes it, too (RFC 9112, section
   3.2.2): from here on the target is its path, and its host is the one that counts. Only over TLS
   is there an https URL (RFC 9110, section 7.4). */
static int check_absolute_target(hafti_http_message_t *message, hafti_http_text_t target) {
    bool is_plain = hafti_http_begins(target.bytes, "http://"),
         is_secure = hafti_http_begins(target.bytes, "https://") && message->stream->tls != NULL;
    size_t skipped = strlen(is_secure ? "https://" : "http://");
    if ((!is_plain && !is_secure) || target.size <= skipped || message->parser.http_major != 1)
        return refuse(message, 400);
    char *rest = message->block + message->target + skipped;
    size_t size = target.size - skipped, host = 0;
    while (host < size && rest[host] != '/' && rest[host] != '?')
        host++;
    hafti_http_text_t authority = {rest, host};
    if (host == 0 || *rest == ':' || !hafti_http_is_authority(authority))
        return refuse(message, 400);
    if (host == size || rest[host] != '/') { /* an empty path is "/"; a space has room for that */
        memmove(rest + host + 1, rest + host, size++ - host);
        rest[host] = '/';
    }
    set_host(message, authority);
    message->target += skipped + host;
    message->target_size = size - host;
    return 0;
}

/* The authority form is that of CONNECT: a host and a port (RFC 9112, section 3.2.3). */
static int check_authority_target(hafti_http_message_t *message, hafti_http_text_t target) {
    size_t size = target.size;
    while (size != 0 && target.bytes[size - 1] >= '0' && target.bytes[size - 1] <= '9')
        size--;
    bool has_port = size > 1 && size < target.size && target.bytes[size - 1] == ':';
    return has_port && hafti_http_is_authority(target) ? 0 : refuse(message, 400);
}

/* RFC 9112, section 3.2: the forms of the target. */
static int check_target(hafti_http_message_t *message) {
    hafti_http_text_t target = {message->block + message->target, message->target_size};
    if (!hafti_http_is_target(target))
        return refuse(message, 400);
    if (message->parser.method == HTTP_CONNECT && !message->takes_connect)
        return refuse(message, 501);
    if (message->parser.method == HTTP_CONNECT)
        return check_authority_target(message, target);
    if (target.size != 0 && *target.bytes == '/')
        return 0;
    if (message->parser.method == HTTP_OPTIONS && target.size == 1 && *target.bytes == '*')
        return 0;
    return check_absolute_target(message, target);
}

/* RFC 9112, section 6.3, no. 5: Content-Length. */
static int read_length(hafti_http_message_t *message, hafti_http_text_t text) {
    uint64_t length = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(text.bytes[i] - '0');
        if (digit > 9 || length > (UINT64_MAX - digit) / 10)
            return refuse(message, 400);
        length = length * 10 + digit;
    }
    if (text.size == 0)
        return refuse(message, 400);
    message->body = length != 0 ? HAFTI_HTTP_SIZED : HAFTI_HTTP_NO_BODY;
    message->left = length;
    return 0;
}

/* RFC 9112, section 6.1: `chunked` once, and last; other codings are not implemented. */
static int read_coding(hafti_http_message_t *message, hafti_http_text_t text) {
    if (hafti_http_is_1_0(message))
        return refuse(message, 400);
    if (hafti_http_same(text.bytes, text.size, "chunked")) {
        message->body = HAFTI_HTTP_CHUNKED;
        return 0;
    }
    size_t chunked = 0;
    for (hafti_http_text_t part; hafti_http_next_part(&text, ',', &part);) {
        if (!hafti_http_is_token(part.bytes, part.size) || chunked != 0)
            return refuse(message, 400);
        chunked += hafti_http_same(part.bytes, part.size, "chunked");
    }
    return refuse(message, chunked == 1 ? 501 : 400);
}

/* RFC 9112, section 6.3: the length of the body. A message with both a length and a coding is how
   smugglers attack. */
static int check_length(hafti_http_message_t *message, const known_t *length,
                        const known_t *coding) {
    if (length->count + coding->count > 1)
        return refuse(message, 400);
    if (coding->count == 1)
        return read_coding(message, coding->first);
    return length->count == 1 ? read_length(message, length->first) : 0;
}

/* RFC 9110, section 10.1.1: Expect. */
static int check_expectation(hafti_http_message_t *message, const known_t *expected) {
    if (expected->count == 0)
        return 0;
    if (!hafti_http_same(expected->first.bytes, expected->first.size, "100-continue"))
        return refuse(message, 417);
    message->waits_for_word = !hafti_http_is_1_0(message) && message->body != HAFTI_HTTP_NO_BODY;
    return 0;
}

static int check_request(hafti_http_message_t *message) {
    known_t known[KNOWN];
    find_known(message, known);
    int code = check_target(message);
    if (code == 0)
        code = check_host(message, &known[HOST]);
    if (code == 0)
        code = check_length(message, &known[CONTENT_LENGTH], &known[TRANSFER_ENCODING]);
    if (code == 0 && message->parser.method == HTTP_CONNECT && message->body != HAFTI_HTTP_NO_BODY)
        code = refuse(message, 400); /* its bytes are the tunnel's (RFC 9110, section 9.3.6) */
    if (code == 0)
        code = check_expectation(message, &known[EXPECT]);
    message->is_complete = message->body == HAFTI_HTTP_NO_BODY;
    return code;
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* RFC 9112, section 3: a method, a target and a version with a space between, where the parser
   takes several; and section 2.3: the version. */
static int check_request_line(hafti_http_message_t *message) {
    static const char name[] = "HTTP/";
    const char *line = message->block, *end = memchr(line, '\r', message->head);
    const char *method_end = memchr(line, ' ', (size_t)(end - line));
    const char *target = method_end != NULL ? method_end + 1 : end;
    const char *target_end = memchr(target, ' ', (size_t)(end - target));
    const char *version = target_end != NULL ? target_end + 1 : end;
    if (end - version != 8 || memcmp(version, name, 5) != 0 || !is_digit(version[5]) ||
        version[6] != '.' || !is_digit(version[7]) || target == target_end ||
        !hafti_http_is_token(line, (size_t)(method_end - line)))
        return refuse(message, 400);
    return version[5] == '1' && version[7] <= '1' ? 0 : refuse(message, 505);
}

/* RFC 9112, section 4: the status line, whose reason may be missing with its space. */
static int check_status_line(hafti_http_message_t *message) {
    const char *line = message->block, *end = memchr(line, '\r', message->head);
    bool is_good = message->head >= 14 && memcmp(line, "HTTP/1.", 7) == 0 &&
                   (line[7] == '0' || line[7] == '1') && line[8] == ' ' && is_digit(line[9]) &&
                   is_digit(line[10]) && is_digit(line[11]) &&
                   (line[12] == ' ' || line[12] == '\r') &&
                   hafti_http_is_value(line + 12, (size_t)(end - line - 12));
    return is_good ? 0 : refuse(message, 502);
}

/* RFC 9112, section 6.3: the length of an answer's body. */
static int check_answer(hafti_http_message_t *message) {
    unsigned status = message->parser.status_code;
    known_t known[KNOWN];
    if (status < 100)
        return refuse(message, 502); /* RFC 9110, section 15: it has no class */
    find_known(message, known);
    message->body = HAFTI_HTTP_UNTIL_CLOSE;
    int code = check_length(message, &known[CONTENT_LENGTH], &known[TRANSFER_ENCODING]);
    if (status < 200 || status == 204 || status == 304 || message->answers_head)
        message->body = HAFTI_HTTP_NO_BODY;
    message->is_complete = message->body == HAFTI_HTTP_NO_BODY;
    return code;
}

int hafti_http_message_check(hafti_http_message_t *message) {
    return message->parser.type == HTTP_REQUEST ? check_request(message) : check_answer(message);
}

/* Whether the parser has seen no more in the first line of a request than is there: most often, so
   that it need not be looked at again. */
static bool is_plain_request_line(const hafti_http_message_t *message) {
    static const char version[] = " HTTP/1.";
    const char *line = message->block, *target_end = line + message->target + message->target_size;
    size_t method = strlen(llhttp_method_name((llhttp_method_t)message->parser.method));
    return message->target == method + 1 && memcmp(target_end, version, 8) == 0 &&
           (target_end[8] == '0' || target_end[8] == '1') && target_end[9] == '\r';
}

static int parse(hafti_http_message_t *message) {
    bool is_request = message->parser.type == HTTP_REQUEST;
    message->fields =
        hafti_http_allocate(message, message->limits->fields * sizeof *message->fields);
    if (message->fields == NULL)
        return -ENOMEM;
    llhttp_errno_t code = hafti_http_message_parse(message, message->block, message->head);
    bool is_whole =
        code == HPE_PAUSED && message->parser.error_pos == message->block + message->head;
    message->parser.settings = (void *)(uintptr_t)&of_body;
    if (is_whole && is_request && is_plain_request_line(message))
        return check_request(message);
    int refused = is_request ? check_request_line(message) : check_status_line(message);
    if (refused != 0)
        return refused;
    if (is_whole)
        return hafti_http_message_check(message);
    if (message->too_many_fields)
        return refuse(message, 431);
    return refuse(message, code == HPE_INVALID_METHOD ? 501 : 400);
}

/* ---- Reading ---- */

void hafti_http_message_begin(hafti_http_message_t *message, hafti_http_stream_t *stream,
                              const haft_http_limits_t *limits, llhttp_type_t type) {
    memset(message, 0, sizeof *message);
    message->stream = stream;
    message->limits = limits;
    message->limit = limits->body;
    message->block = haft_io_lend();
    llhttp_init(&message->parser, type, &of_head);
    message->parser.data = message;
}

hafti_http_informed_t *hafti_http_message_informed(const hafti_http_message_t *message) {
    size_t size = 0;
    for (size_t i = 0; i < message->field_count; i++)
        size += message->fields[i].name_size + (size_t)message->fields[i].value_size + 4;
    hafti_http_informed_t *informed = malloc(sizeof *informed + size);
    if (informed == NULL)
        return NULL;
    *informed = (hafti_http_informed_t){.status = message->parser.status_code, .size = size};
    char *at = informed->lines;
    for (size_t i = 0; i < message->field_count; i++) {
        const hafti_http_field_t *field = &message->fields[i];
        at = mempcpy(at, message->block + field->name, field->name_size);
        at = mempcpy(at, ": ", 2);
        at = mempcpy(at, message->block + field->value, field->value_size);
        at = mempcpy(at, "\r\n", 2);
    }
    return informed;
}

/* Where a line begins that is not complete yet, and whether the head is. */
typedef struct {
    size_t line;
    bool is_complete;
} progress_t;

/* RFC 9112, section 5: a tab behind a value is like a space, which the parser takes everywhere. */
static void replace_tabs_at_end(char *line, char *end) {
    while (end != line && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = ' ';
}

/* RFC 9110, section 6.2: a later version of HTTP/1 is read as the latest that is known. It stands
   at the end of a request's first line, and at the begin of an answer's. */
static void lower_version(const hafti_http_message_t *message, char *line, size_t size) {
    static const char version[] = "HTTP/1.";
    size_t name = sizeof version - 1, own = name + 1; /* with a digit */
    bool is_request = message->parser.type == HTTP_REQUEST;
    if (size < own + 2)
        return;
    char *at = is_request ? line + size - 2 - own : line;
    if (memcmp(at, version, name) == 0 && at[name] > '1' && at[name] <= '9' &&
        (is_request ? at > line && at[-1] == ' ' : at[own] == ' '))
        at[name] = '1';
}

/* Ends a line that has come: 0, or an error. Empty lines before a request are skipped (RFC 9112,
   section 2.2). */
static int end_line(hafti_http_message_t *message, progress_t *progress) {
    char *line = message->block + progress->line;
    size_t size = message->head - progress->line;
    if (size < 2 || line[size - 2] != '\r')
        return refuse(message, 400); /* RFC 9112, section 2.2 */
    if (size == 2 && progress->line == 0) {
        message->head = 0;
        return 0;
    }
    if (progress->line != 0 && (*line == ' ' || *line == '\t' || *line == ':'))
        return refuse(message, 400); /* RFC 9112, sections 2.2, 5.2 and 5 */
    if (progress->line != 0)
        replace_tabs_at_end(line, line + size - 2);
    else
        lower_version(message, line, size);
    progress->is_complete = size == 2;
    progress->line = message->head;
    return 0;
}

/* Takes lines of what has been read, up to the end of the head. Only bytes that may belong to the
   head are copied. */
static int take_lines(hafti_http_message_t *message, progress_t *progress) {
    hafti_http_stream_t *stream = message->stream;
    const char *copied = message->block; /* the end of it */
    while (stream->at != stream->end && !progress->is_complete) {
        char *from = message->block + message->head;
        if (from >= copied || message->head == 0) {
            size_t there = (size_t)(stream->end - stream->at);
            size_t room = message->limits->head - message->head;
            if (room == 0)
                return refuse(message, progress->line == 0 ? 414 : 431);
            copied = mempcpy(from, stream->at, there < room ? there : room);
        }
        const char *newline = memchr(from, '\n', (size_t)(copied - from));
        size_t size = (size_t)((newline != NULL ? newline + 1 : copied) - from);
        message->head += size;
        stream->at += size;
        if (progress->line == 0 && message->head > message->limits->request_line)
            return refuse(message, 414);
        int code = newline != NULL ? end_line(message, progress) : 0;
        if (code != 0)
            return code;
    }
    return 0;
}

int hafti_http_message_read_head(hafti_http_message_t *message) {
    if (message->block == NULL)
        return -ENOMEM;
    progress_t progress = {0, false};
    int64_t deadline = 0;
    for (;;) {
        int code = take_lines(message, &progress);
        if (code != 0)
            return code;
        if (progress.is_complete)
            break;
        if (deadline == 0)
            deadline = hafti_http_deadline(haft_io_now(), message->limits->head_time);
        ssize_t size = hafti_http_stream_fill(message->stream, deadline);
        if (size == -ETIMEDOUT && message->head != 0 && message->parser.type == HTTP_REQUEST)
            return refuse(message, 408); /* an answer's reader has no limit but its task's */
        if (size <= 0)
            return size == 0 ? -EPIPE : (int)size;
    }
    message->memory = message->head;
    return parse(message);
}
