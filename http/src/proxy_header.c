/* SPDX-License-Identifier: MIT */
/*
 * The PROXY protocol, versions 1 and 2: a proxy sends it before the bytes of a connection that it
 * passes on, to name the client. Nothing behind it is read here, since TLS may begin there.
 */
#include "internal.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum {
    SIGNATURE = 12,
    MOST_OF_LINE = 107, /* with its CRLF */
    MOST_OF_HEADER = 4096,
};

typedef struct {
    hafti_http_stream_t *stream;
    unsigned char bytes[MOST_OF_HEADER];
    size_t size;
} header_t;

/* Reads exactly so many bytes more. */
static int read_bytes(header_t *header, size_t size) {
    size_t end = header->size + size;
    while (header->size < end) {
        ssize_t got = haft_io_read(header->stream->descriptor, header->bytes + header->size,
                                   end - header->size);
        if (got <= 0)
            return got == 0 ? -EPIPE : (int)got;
        header->size += (size_t)got;
    }
    return 0;
}

/* Reads up to the end of the line, and not further; so it looks first. */
static int read_line(header_t *header) {
    for (;;) {
        unsigned char *at = header->bytes + header->size;
        ssize_t there =
            haft_io_receive(header->stream->descriptor, at, MOST_OF_LINE - header->size, MSG_PEEK);
        if (there <= 0)
            return there == 0 ? -EPIPE : (int)there;
        const unsigned char *end = memchr(at, '\n', (size_t)there);
        int code = read_bytes(header, end != NULL ? (size_t)(end + 1 - at) : (size_t)there);
        if (code != 0 || end != NULL)
            return code;
        if (header->size == MOST_OF_LINE)
            return -EBADMSG;
    }
}

static bool is_port(hafti_http_text_t text) {
    unsigned number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text.bytes[i] - '0');
    }
    bool has_zeros = text.size > 1 && *text.bytes == '0';
    return text.size != 0 && text.size <= 5 && !has_zeros && number <= UINT16_MAX;
}

/* An address as a proxy writes it, as the library does. */
static bool take_address(int family, hafti_http_text_t text, char into[HAFTI_HTTP_ADDRESS]) {
    struct in6_addr address;
    char copy[HAFTI_HTTP_ADDRESS];
    if (text.size >= sizeof copy)
        return false;
    memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    return inet_pton(family, copy, &address) == 1 &&
           inet_ntop(family, &address, into, HAFTI_HTTP_ADDRESS) != NULL;
}

/* "TCP4 source destination port port". */
static int take_line(header_t *header) {
    hafti_http_text_t line = {(const char *)header->bytes + 6, header->size - 8}, parts[5];
    if (header->size < 8 || header->bytes[header->size - 2] != '\r')
        return -EBADMSG;
    if (line.size >= 7 && memcmp(line.bytes, "UNKNOWN", 7) == 0 &&
        (line.size == 7 || line.bytes[7] == ' '))
        return 0; /* "UNKNOWN": the rest of the line is ignored */
    size_t count = 0;
    if (memchr(line.bytes, '\t', line.size) != NULL)
        return -EBADMSG;
    while (count < 5 && hafti_http_next_part(&line, ' ', &parts[count]))
        count++;
    if (count != 5 || line.bytes != NULL || parts[0].size != 4 ||
        memcmp(parts[0].bytes, "TCP", 3) != 0)
        return -EBADMSG;
    char version = parts[0].bytes[3], other[HAFTI_HTTP_ADDRESS];
    int family = version == '4' ? AF_INET : AF_INET6;
    if ((version != '4' && version != '6') || !take_address(family, parts[2], other) ||
        !is_port(parts[3]) || !is_port(parts[4]) ||
        !take_address(family, parts[1], header->stream->peer))
        return -EBADMSG;
    header->stream->knows_peer = true;
    return 0;
}

/* Reads what follows the signature: version and command, family and protocol, two bytes of size. */
static int take_binary(header_t *header) {
    enum { LOCAL = 0x20, PROXY = 0x21, NO_ADDRESS = 0x00, TCP4 = 0x11, TCP6 = 0x21, UNIX = 0x31 };
    int code = read_bytes(header, 4);
    if (code != 0)
        return code;
    int command = header->bytes[SIGNATURE], family = header->bytes[SIGNATURE + 1];
    size_t size = (size_t)header->bytes[SIGNATURE + 2] << 8 | header->bytes[SIGNATURE + 3];
    if (size > MOST_OF_HEADER - SIGNATURE - 4)
        return -EBADMSG;
    code = read_bytes(header, size);
    if (code != 0 || command == LOCAL || (command == PROXY && family == NO_ADDRESS))
        return code; /* a connection of the proxy's own, which is the peer */
    const unsigned char *address = header->bytes + SIGNATURE + 4;
    bool is_good =
        command == PROXY && ((family == TCP4 && size >= 12) || (family == TCP6 && size >= 36) ||
                             (family == UNIX && size >= 216));
    if (is_good && family != UNIX)
        inet_ntop(family == TCP4 ? AF_INET : AF_INET6, address, header->stream->peer,
                  HAFTI_HTTP_ADDRESS);
    header->stream->knows_peer = is_good;
    return is_good ? 0 : -EBADMSG;
}

static void free_header(header_t *const *header) {
    free(*header);
}

int hafti_http_read_proxy_header(hafti_http_stream_t *stream, int64_t deadline) {
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
    __attribute__((cleanup(free_header))) header_t *header = malloc(sizeof *header);
    if (header == NULL)
        return -ENOMEM;
    header->stream = stream;
    header->size = 0;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    int code = read_bytes(header, SIGNATURE);
    if (code != 0)
        return code;
    if (memcmp(header->bytes, signature, SIGNATURE) == 0)
        return take_binary(header);
    if (memcmp(header->bytes, "PROXY ", 6) != 0 || memchr(header->bytes, '\n', SIGNATURE) != NULL)
        return -EBADMSG;
    code = read_line(header);
    return code == 0 ? take_line(header) : code;
}
