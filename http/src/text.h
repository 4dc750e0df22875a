/* SPDX-License-Identifier: MIT */
/* Bytes of the network as text: tokens and values, lists, weights, dates, types of files. */
#ifndef HAFTI_HTTP_TEXT_H
#define HAFTI_HTTP_TEXT_H

#include <haft/io_binding.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

typedef struct {
    const char *bytes;
    size_t size;
} hafti_http_text_t;

/* ---- text.c ---- */

bool hafti_http_is_token(const char *text, size_t size);
bool hafti_http_is_value(const char *text, size_t size); /* of a field */
/* The same for a program's argument, which may be NULL. */
bool hafti_http_is_given_token(const char *text);
bool hafti_http_is_given_value(const char *text);
bool hafti_http_is_target(hafti_http_text_t text);
/* A host, which may be empty, with or without a port (RFC 3986, sections 3.2.2 and 3.2.3). */
bool hafti_http_is_authority(hafti_http_text_t text);
/* Whether these bytes are the same but for the case of letters of ASCII. (strcasecmp(3) compares by
   the program's locale: in a Turkish one "I" is not "i".) No byte behind the first difference is
   read. */
bool hafti_http_equal(const char *one, const char *other, size_t size);
/* Whether two texts are equal, ignoring case, likewise. */
static inline bool hafti_http_same(const char *text, size_t size, const char *word) {
    return strlen(word) == size && hafti_http_equal(text, word, size);
}
static inline bool hafti_http_same_text(const char *text, const char *word) {
    return hafti_http_same(text, strlen(text), word);
}
/* Whether it is one of the words, of which NULL is the last; likewise. */
bool hafti_http_is_one_of(const char *text, const char *const *words);
/* Whether the text begins with the word, ignoring case. */
static inline bool hafti_http_begins(const char *text, const char *word) {
    return hafti_http_equal(text, word, strlen(word));
}
/* The text without the spaces and tabs at both ends, which no value of a field has (RFC 9110,
   section 5.5). */
hafti_http_text_t hafti_http_trim_spaces(hafti_http_text_t text);
static inline hafti_http_text_t hafti_http_trim(hafti_http_text_t text) {
    bool has_none = text.size != 0 && text.bytes[0] > ' ' && text.bytes[text.size - 1] > ' ';
    return has_none ? text : hafti_http_trim_spaces(text);
}
/* The next part of a list that a comma, or another byte, divides, without spaces around it;
   false at the end. */
bool hafti_http_next_part(hafti_http_text_t *list, char divider, hafti_http_text_t *part);
/* Whether the word is a part that commas divide, ignoring case. */
bool hafti_http_lists(hafti_http_text_t list, const char *word);
/* A byte as a part of a JSON string (RFC 8259, section 7): writes at most HAFTI_HTTP_JSON_BYTE
   characters, and returns how many. `is_utf8`: bytes beyond ASCII stay as they are. */
enum { HAFTI_HTTP_JSON_BYTE = 6 };
size_t hafti_http_put_json(char *into, char byte, bool is_utf8);
/* The next line "Name: value\r\n" of an answer's fields or trailers, from `*at` on; false: there is
   none. */
bool hafti_http_next_line(hafti_http_text_t lines, size_t *at, hafti_http_text_t *name,
                          hafti_http_text_t *value);
/* The value of a hexadecimal digit; -1: it is none. */
int hafti_http_digit_of(char byte);
/* Decodes %XX, and with `plus` '+' as a space, to `into`, which has room for `size` bytes: how
   many there are, or -EINVAL: a % is not followed by two digits, or it means '\0'. */
ssize_t hafti_http_decode(const char *bytes, size_t size, bool plus, char *into);

/* ---- accept.c ---- */

enum { HAFTI_HTTP_WHOLE = 1000 }; /* the weight of what is wanted most */
/* The weight that a list of what a client accepts gives to the name, in thousandths; -1: none. */
int hafti_http_weight_in(const char *accepted, const char *name);

/* ---- date.c, types.c ---- */

enum { HAFTI_HTTP_DATE = 29 }; /* bytes */
/* The date, in a simulation that of the simulation; up to some milliseconds ago. */
time_t hafti_http_now(void);
void hafti_http_put_date(time_t time, char into[HAFTI_HTTP_DATE + 1]);
bool hafti_http_parse_date(const char *text, time_t *time);
/* The media type for a file of this name. */
const char *hafti_http_type_of(const char *name);

#endif
