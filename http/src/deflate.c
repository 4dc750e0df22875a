/* SPDX-License-Identifier: MIT */
/* Compressed messages of a WebSocket: what is agreed on, and the messages (RFC 7692). */
#include "codings.h"
#include "websocket.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef HAFT_HTTP_ZLIB

static const char extension[] = "permessage-deflate";
static const char server_drops[] = "server_no_context_takeover",
                  client_drops[] = "client_no_context_takeover",
                  server_window[] = "server_max_window_bits",
                  client_window[] = "client_max_window_bits";

/* ---- What is agreed on ---- */

typedef struct {
    bool server_drops, client_drops, has_server_window, has_client_window;
    int server_window, client_window; /* 15 where none is given */
} parameters_t;

static bool set_flag(bool *flag, bool has_value) {
    bool is_first = !*flag;
    *flag = true;
    return is_first && !has_value;
}

/* Reads a window, 8 to 15, with quotes or without. In an offer the client's window may have no
   number. */
static bool set_window(bool *flag, int *window, hafti_http_text_t value, bool may_lack) {
    bool is_first = !*flag;
    *flag = true;
    *window = 15;
    if (value.bytes == NULL)
        return is_first && may_lack;
    if (value.size > 2 && *value.bytes == '"' && value.bytes[value.size - 1] == '"')
        value = (hafti_http_text_t){value.bytes + 1, value.size - 2};
    if (value.size == 1 && (*value.bytes == '8' || *value.bytes == '9'))
        *window = *value.bytes - '0';
    else if (value.size == 2 && *value.bytes == '1' && value.bytes[1] >= '0' &&
             value.bytes[1] <= '5')
        *window = 10 + value.bytes[1] - '0';
    else
        return false;
    return is_first;
}

static bool read_parameter(parameters_t *parameters, hafti_http_text_t text, bool is_offer) {
    const char *equals = memchr(text.bytes, '=', text.size);
    hafti_http_text_t name = {text.bytes,
                              equals != NULL ? (size_t)(equals - text.bytes) : text.size},
                      value = {NULL, 0};
    if (equals != NULL)
        value = (hafti_http_text_t){equals + 1, text.size - name.size - 1};
    if (hafti_http_same(name.bytes, name.size, server_drops))
        return set_flag(&parameters->server_drops, equals != NULL);
    if (hafti_http_same(name.bytes, name.size, client_drops))
        return set_flag(&parameters->client_drops, equals != NULL);
    if (hafti_http_same(name.bytes, name.size, server_window))
        return set_window(&parameters->has_server_window, &parameters->server_window, value, false);
    return hafti_http_same(name.bytes, name.size, client_window) &&
           set_window(&parameters->has_client_window, &parameters->client_window, value, is_offer);
}

/* Whether it is this extension, with valid parameters. */
static bool read_parameters(hafti_http_text_t text, bool is_offer, parameters_t *parameters) {
    hafti_http_text_t part;
    *parameters = (parameters_t){.server_window = 15, .client_window = 15};
    hafti_http_next_part(&text, ';', &part);
    if (!hafti_http_same(part.bytes, part.size, extension))
        return false;
    while (hafti_http_next_part(&text, ';', &part))
        if (!read_parameter(parameters, part, is_offer))
            return false;
    return true;
}

/* zlib cannot compress with a window of 2^8. */
void hafti_http_deflation_accept(hafti_http_deflation_t *deflation, const char *offers,
                                 bool keeps_context, char into[HAFTI_HTTP_DEFLATION]) {
    hafti_http_text_t list = {offers, strlen(offers)}, offer;
    parameters_t parameters;
    *into = '\0';
    while (!deflation->is_on && hafti_http_next_part(&list, ',', &offer))
        deflation->is_on =
            read_parameters(offer, true, &parameters) && parameters.server_window > 8;
    if (!deflation->is_on)
        return;
    deflation->drops_ours = parameters.server_drops || !keeps_context;
    deflation->drops_theirs = parameters.client_drops || !keeps_context;
    deflation->window = parameters.server_window;
    int size =
        snprintf(into, HAFTI_HTTP_DEFLATION, "%s%s%s%s%s", extension,
                 deflation->drops_ours ? "; " : "", deflation->drops_ours ? server_drops : "",
                 deflation->drops_theirs ? "; " : "", deflation->drops_theirs ? client_drops : "");
    if (parameters.has_server_window)
        snprintf(into + size, (size_t)(HAFTI_HTTP_DEFLATION - size), "; %s=%d", server_window,
                 deflation->window);
}

const char *hafti_http_deflation_offer(bool keeps_context) {
    return keeps_context ? "permessage-deflate"
                         : "permessage-deflate; server_no_context_takeover; "
                           "client_no_context_takeover";
}

bool hafti_http_deflation_agree(hafti_http_deflation_t *deflation, const char *answer,
                                bool keeps_context) {
    hafti_http_text_t text = {answer, strlen(answer)};
    parameters_t parameters;
    if (!read_parameters(text, false, &parameters) || parameters.has_client_window)
        return false; /* a parameter that was not offered */
    *deflation = (hafti_http_deflation_t){.is_on = true,
                                          .drops_ours = parameters.client_drops || !keeps_context,
                                          .drops_theirs = parameters.server_drops,
                                          .window = 15};
    return true;
}

/* ---- Messages ---- */

typedef struct {
    char *bytes;
    size_t size, room;
} growing_t;

static bool grow(growing_t *to) {
    size_t room = to->room != 0 ? 2 * to->room : 512;
    char *bytes = realloc(to->bytes, room);
    if (bytes == NULL)
        return false;
    to->bytes = bytes;
    to->room = room;
    return true;
}

/* Room for a '\0' stays. */
static hafti_http_pieces_t pieces_of(const growing_t *to, const char *bytes, size_t size) {
    return (hafti_http_pieces_t){bytes, size, to->bytes + to->size, to->room - to->size - 1};
}

/* RFC 7692, section 7.2.1: the last four bytes of a flush are left out. */
enum { END = 4 };
static const char end[END + 1] = "\0\0\xff\xff";

static int deflate_to(void *encoder, const char *bytes, size_t size, growing_t *to) {
    hafti_http_pieces_t pieces = {.in = bytes, .in_size = size};
    for (int more = 1; more != 0;) {
        if (to->size + 1 >= to->room && !grow(to))
            return -ENOMEM;
        pieces = pieces_of(to, pieces.in, pieces.in_size);
        more = hafti_http_raw_deflate.encode(encoder, &pieces, HAFTI_HTTP_FLUSH);
        to->size = (size_t)(pieces.out - to->bytes);
        if (more < 0)
            return more;
    }
    to->size -= to->size >= END ? END : 0;
    return 0;
}

int hafti_http_deflate(hafti_http_deflation_t *deflation, const char *bytes, size_t size,
                       char **out, size_t *out_size) {
    size_t window = (size_t)1 << deflation->window;
    growing_t to = {0};
    if (deflation->encoder == NULL)
        deflation->encoder = hafti_http_raw_deflate.begin_encoding(
            deflation->drops_ours && size < window ? size : window, false);
    int code =
        deflation->encoder != NULL ? deflate_to(deflation->encoder, bytes, size, &to) : -ENOMEM;
    if ((deflation->drops_ours || code != 0) && deflation->encoder != NULL) {
        hafti_http_raw_deflate.end_encoding(deflation->encoder);
        deflation->encoder = NULL;
    }
    if (code != 0)
        free(to.bytes);
    *out = code == 0 ? to.bytes : NULL;
    *out_size = to.size;
    return code;
}

/* 0: in the middle of a block; 1: behind one; or a code of a close. */
static int inflate_to(void *decoder, const char *bytes, size_t size, size_t most, growing_t *to) {
    hafti_http_pieces_t pieces = {.in = bytes, .in_size = size};
    int code;
    do {
        if (to->size + 1 >= to->room && !grow(to))
            return 1011;
        pieces = pieces_of(to, pieces.in, pieces.in_size);
        code = hafti_http_raw_deflate.decode(decoder, &pieces);
        to->size = (size_t)(pieces.out - to->bytes);
        if (code < 0)
            return code == -ENOMEM ? 1011 : 1007;
        if (to->size > most)
            return 1009;
    } while (pieces.in_size != 0 || pieces.room == 0);
    return code;
}

/* A message lacks the end of its last block, which is an empty one (RFC 7692, section 7.2.1). One
   that was cut elsewhere makes bytes of that end, or takes it for something else. (A message
   without bytes is what peers send that flush zlib twice.) */
static int inflate_message(void *decoder, const char *bytes, size_t size, size_t most,
                           growing_t *to) {
    if (size == 0)
        return grow(to) ? 0 : 1011;
    int code = inflate_to(decoder, bytes, size, most, to);
    size_t whole = to->size;
    if (code <= 1)
        code = inflate_to(decoder, end, END, most, to);
    return code > 1 ? code : code == 1 && to->size == whole ? 0 : 1007;
}

int hafti_http_inflate(hafti_http_deflation_t *deflation, const char *bytes, size_t size,
                       size_t most, char **out, size_t *out_size) {
    growing_t to = {0};
    if (deflation->decoder == NULL)
        deflation->decoder = hafti_http_raw_deflate.begin_decoding();
    int code = deflation->decoder != NULL
                   ? inflate_message(deflation->decoder, bytes, size, most, &to)
                   : 1011;
    if (deflation->drops_theirs && deflation->decoder != NULL) {
        hafti_http_raw_deflate.end_decoding(deflation->decoder);
        deflation->decoder = NULL;
    }
    if (code == 0)
        to.bytes[to.size] = '\0';
    else
        free(to.bytes);
    *out = code == 0 ? to.bytes : NULL;
    *out_size = to.size;
    return code;
}

void hafti_http_deflation_end(hafti_http_deflation_t *deflation) {
    if (deflation->encoder != NULL)
        hafti_http_raw_deflate.end_encoding(deflation->encoder);
    if (deflation->decoder != NULL)
        hafti_http_raw_deflate.end_decoding(deflation->decoder);
}

#else

void hafti_http_deflation_accept(hafti_http_deflation_t *deflation, const char *offers,
                                 bool keeps_context, char into[HAFTI_HTTP_DEFLATION]) {
    (void)deflation, (void)offers, (void)keeps_context;
    *into = '\0';
}

const char *hafti_http_deflation_offer(bool keeps_context) {
    (void)keeps_context;
    return "";
}

bool hafti_http_deflation_agree(hafti_http_deflation_t *deflation, const char *answer,
                                bool keeps_context) {
    (void)deflation, (void)answer, (void)keeps_context;
    return false;
}

int hafti_http_deflate(hafti_http_deflation_t *deflation, const char *bytes, size_t size,
                       char **out, size_t *out_size) {
    (void)deflation, (void)bytes, (void)size, (void)out, (void)out_size;
    return -ENOMEM;
}

int hafti_http_inflate(hafti_http_deflation_t *deflation, const char *bytes, size_t size,
                       size_t most, char **out, size_t *out_size) {
    (void)deflation, (void)bytes, (void)size, (void)most, (void)out, (void)out_size;
    return 1011;
}

void hafti_http_deflation_end(hafti_http_deflation_t *deflation) {
    (void)deflation;
}

#endif
