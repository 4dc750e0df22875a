/* SPDX-License-Identifier: MIT */
/* Bytes of the network as text: tokens and values, lists, %-decoding. */
#include "text.h"

#include <arpa/inet.h>

enum { CASE = 'a' ^ 'A' };
/* The kinds of text that a byte may be a part of. */
enum { TOKEN = 1, TARGET = 2, NAME_OF_HOST = 4, VALUE = 8 };

/* A row has 16 bytes; those of ASCII begin with the third. */
/* clang-format off */
static const unsigned char parts_of[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    8, 15, 8, 9, 15, 11, 15, 15, 14, 14, 15, 15, 14, 15, 15, 10,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 10, 14, 8, 14, 8, 10,
    10, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 10, 8, 10, 11, 15,
    11, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 10, 11, 10, 15, 0,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
};
/* clang-format on */

bool hafti_http_equal(const char *one, const char *other, size_t size) {
    for (size_t i = 0; i < size; i++) {
        int different = one[i] ^ other[i], letter = one[i] | CASE;
        if (different != 0 && (different != CASE || letter < 'a' || letter > 'z'))
            return false;
    }
    return true;
}

bool hafti_http_is_one_of(const char *text, const char *const *words) {
    size_t size = strlen(text) + 1;
    for (; *words != NULL; words++) /* mostly the first letter differs */
        if (((**words ^ *text) | CASE) == CASE && hafti_http_equal(text, *words, size))
            return true;
    return false;
}

static unsigned parts_at(const char *byte) {
    return parts_of[(unsigned char)*byte];
}

static bool are_all(const char *bytes, size_t size, unsigned part) {
    unsigned common = part;
    for (; size >= 4; bytes += 4, size -= 4)
        common &= parts_at(bytes) & parts_at(bytes + 1) & parts_at(bytes + 2) & parts_at(bytes + 3);
    for (; size != 0; bytes++, size--)
        common &= parts_at(bytes);
    return common != 0;
}

bool hafti_http_is_token(const char *text, size_t size) {
    return size != 0 && are_all(text, size, TOKEN);
}

bool hafti_http_is_value(const char *text, size_t size) {
    return are_all(text, size, VALUE);
}

bool hafti_http_is_given_token(const char *text) {
    return text != NULL && hafti_http_is_token(text, strlen(text));
}

bool hafti_http_is_given_value(const char *text) {
    return text != NULL && hafti_http_is_value(text, strlen(text));
}

bool hafti_http_is_target(hafti_http_text_t text) {
    return are_all(text.bytes, text.size, TARGET);
}

/* RFC 3986, section 3.2.2: % begins a byte of two digits. */
static __attribute__((cold, noinline)) bool is_encoded_name(hafti_http_text_t text) {
    for (size_t i = 0; i < text.size; i++) {
        bool is_byte = text.bytes[i] == '%' && text.size - i > 2 &&
                       hafti_http_digit_of(text.bytes[i + 1]) >= 0 &&
                       hafti_http_digit_of(text.bytes[i + 2]) >= 0;
        if (!is_byte && !are_all(text.bytes + i, 1, NAME_OF_HOST))
            return false;
    }
    return true;
}

static bool is_name_of_host(hafti_http_text_t text) {
    return are_all(text.bytes, text.size, NAME_OF_HOST) || is_encoded_name(text);
}

/* "[2001:db8::1]", or "[fe80::1%eth0]" with a zone (RFC 4007, section 11). The form for future
   addresses (RFC 3986, section 3.2.2) is not in use. */
static bool is_address_in_brackets(hafti_http_text_t text) {
    char address[INET6_ADDRSTRLEN];
    struct in6_addr read;
    if (text.size < 3 || *text.bytes != '[' || text.bytes[text.size - 1] != ']')
        return false;
    const char *begin = text.bytes + 1, *end = text.bytes + text.size - 1;
    const char *zone = memchr(begin, '%', (size_t)(end - begin));
    size_t size = (size_t)((zone != NULL ? zone : end) - begin);
    if (size >= sizeof address ||
        (zone != NULL && !hafti_http_is_token(zone, (size_t)(end - zone))))
        return false;
    memcpy(address, begin, size);
    address[size] = '\0';
    return inet_pton(AF_INET6, address, &read) == 1 && (zone == NULL || end - zone > 1);
}

bool hafti_http_is_authority(hafti_http_text_t text) {
    size_t size = text.size;
    while (size != 0 && text.bytes[size - 1] >= '0' && text.bytes[size - 1] <= '9')
        size--;
    if (size != 0 && text.bytes[size - 1] == ':')
        text.size = size - 1;
    return is_name_of_host(text) || is_address_in_brackets(text);
}

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t';
}

hafti_http_text_t hafti_http_trim_spaces(hafti_http_text_t text) {
    while (text.size != 0 && is_space(*text.bytes))
        text.bytes++, text.size--;
    while (text.size != 0 && is_space(text.bytes[text.size - 1]))
        text.size--;
    return text;
}

bool hafti_http_next_part(hafti_http_text_t *list, char divider, hafti_http_text_t *part) {
    if (list->bytes == NULL)
        return false;
    const char *end = memchr(list->bytes, divider, list->size);
    *part =
        (hafti_http_text_t){list->bytes, end != NULL ? (size_t)(end - list->bytes) : list->size};
    if (end != NULL)
        *list = (hafti_http_text_t){end + 1, list->size - part->size - 1};
    else
        list->bytes = NULL;
    *part = hafti_http_trim(*part);
    return true;
}

bool hafti_http_lists(hafti_http_text_t list, const char *word) {
    hafti_http_text_t part;
    while (hafti_http_next_part(&list, ',', &part))
        if (hafti_http_same(part.bytes, part.size, word))
            return true;
    return false;
}

bool hafti_http_next_line(hafti_http_text_t lines, size_t *at, hafti_http_text_t *name,
                          hafti_http_text_t *value) {
    if (*at == lines.size)
        return false;
    const char *line = lines.bytes + *at, *colon = memchr(line, ':', lines.size - *at);
    const char *end = memchr(colon, '\r', (size_t)(lines.bytes + lines.size - colon));
    *name = (hafti_http_text_t){line, (size_t)(colon - line)};
    *value = (hafti_http_text_t){colon + 2, (size_t)(end - colon - 2)};
    *at = (size_t)(end + 2 - lines.bytes);
    return true;
}

int hafti_http_digit_of(char byte) {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 32;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

ssize_t hafti_http_decode(const char *bytes, size_t size, bool plus, char *into) {
    char *to = into;
    for (size_t i = 0; i < size; i++) {
        char byte = bytes[i];
        if (byte == '%') {
            int high = size - i > 2 ? hafti_http_digit_of(bytes[i + 1]) : -1;
            int low = size - i > 2 ? hafti_http_digit_of(bytes[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0)
                return -EINVAL;
            byte = (char)(high * 16 + low);
            i += 2;
        } else if (byte == '+' && plus) {
            byte = ' ';
        }
        *to++ = byte;
    }
    return to - into;
}

size_t hafti_http_put_json(char *into, char byte, bool is_utf8) {
    static const char digits[] = "0123456789abcdef";
    unsigned char value = (unsigned char)byte;
    if (byte == '"' || byte == '\\') {
        memcpy(into, (const char[]){'\\', byte}, 2);
        return 2;
    }
    if (value >= ' ' && (value <= '~' || is_utf8)) {
        *into = byte;
        return 1;
    }
    memcpy(into, (const char[]){'\\', 'u', '0', '0', digits[value >> 4], digits[value & 15]},
           HAFTI_HTTP_JSON_BYTE);
    return HAFTI_HTTP_JSON_BYTE;
}
