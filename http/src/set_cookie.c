/* SPDX-License-Identifier: MIT */
/* The parser of Set-Cookie (RFC 6265, sections 5.1.1 and 5.2): it takes much that no server should
   send. */
#include "cookies.h"

#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 4096, LARGEST_ATTRIBUTE = 1024, LONGEST = 400 * 24 * 3600 /* seconds */ };

static const hafti_http_text_t none = {"", 0};

static void split(hafti_http_text_t text, hafti_http_text_t *name, hafti_http_text_t *value) {
    *value = none;
    hafti_http_next_part(&text, '=', name);
    if (text.bytes == NULL)
        return;
    hafti_http_next_part(&text, '\0', value); /* the rest, without the spaces around it */
}

/* ---- Dates ---- */

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* RFC 6265, section 5.1.1: the delimiters between the parts of a date. */
static bool is_delimiter(char byte) {
    return byte == '\t' || (byte >= ' ' && byte <= '/') || (byte >= ';' && byte <= '@') ||
           (byte >= '[' && byte <= '`') || (byte >= '{' && byte <= '~');
}

typedef struct {
    struct tm parts;
    bool has_time, has_day, has_month, has_year;
} date_t;

static bool read_time(const char *token, date_t *date) {
    int end = 0;
    if (!is_digit(*token) || sscanf(token, "%2d:%2d:%2d%n", &date->parts.tm_hour,
                                    &date->parts.tm_min, &date->parts.tm_sec, &end) != 3)
        return false;
    return !is_digit(token[end]);
}

static int month_of(const char *token) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int month = 0; month < 12; month++)
        if (hafti_http_equal(months + 3 * month, token, 3))
            return month;
    return -1;
}

/* A number of so many digits, behind which no other digit follows; -1: it is none. */
static int number_of(const char *token, size_t least, size_t most) {
    size_t digits = strspn(token, "0123456789");
    return digits >= least && digits <= most ? atoi(token) : -1;
}

/* The first of each kind counts. */
static void read_token(const char *token, date_t *date) {
    int day = number_of(token, 1, 2), month = month_of(token), year = number_of(token, 2, 4);
    if (!date->has_time && read_time(token, date)) {
        date->has_time = true;
    } else if (!date->has_day && day >= 0) {
        date->has_day = true;
        date->parts.tm_mday = day;
    } else if (!date->has_month && month >= 0) {
        date->has_month = true;
        date->parts.tm_mon = month;
    } else if (!date->has_year && year >= 0) {
        date->has_year = true;
        date->parts.tm_year = year >= 1000 ? year - 1900 : year >= 70 ? year : year + 100;
    }
}

static bool read_date(hafti_http_text_t text, time_t *time) {
    date_t date = {0};
    for (size_t at = 0; at < text.size;) {
        char token[32];
        size_t size = 0;
        for (; at < text.size && !is_delimiter(text.bytes[at]); at++)
            if (size < sizeof token - 1)
                token[size++] = text.bytes[at];
        token[size] = '\0';
        read_token(token, &date);
        at++;
    }
    const struct tm *parts = &date.parts;
    if (!date.has_time || !date.has_day || !date.has_month || !date.has_year ||
        parts->tm_mday < 1 || parts->tm_mday > 31 || parts->tm_year < 1601 - 1900 ||
        parts->tm_hour > 23 || parts->tm_min > 59 || parts->tm_sec > 59)
        return false;
    *time = timegm(&date.parts);
    return true;
}

/* ---- Attributes ---- */

/* RFC 6265, section 5.2.2: a number of seconds from now on; one that is 0 or negative removes the
   cookie. */
static bool read_age(hafti_http_text_t text, time_t now, time_t *expiry) {
    bool is_negative = text.size != 0 && *text.bytes == '-';
    int64_t seconds = 0;
    for (size_t i = is_negative; i < text.size; i++) {
        if (!is_digit(text.bytes[i]))
            return false;
        seconds = seconds < LONGEST ? seconds * 10 + text.bytes[i] - '0' : seconds;
    }
    if (text.size == (size_t)is_negative)
        return false;
    *expiry = is_negative || seconds == 0 ? 0 : now + seconds;
    return true;
}

/* The attributes about expiry; the last one of each name counts. */
typedef struct {
    bool has_age, has_date;
    time_t age, date;
} expiry_t;

static void read_attribute(hafti_http_text_t text, time_t now, hafti_http_set_cookie_t *set,
                           expiry_t *expiry) {
    hafti_http_text_t name, value;
    split(text, &name, &value);
    if (value.size > LARGEST_ATTRIBUTE)
        return;
    if (hafti_http_same(name.bytes, name.size, "Secure")) {
        set->is_secure = true;
    } else if (hafti_http_same(name.bytes, name.size, "Max-Age")) {
        expiry->has_age |= read_age(value, now, &expiry->age);
    } else if (hafti_http_same(name.bytes, name.size, "Expires")) {
        expiry->has_date |= read_date(value, &expiry->date);
    } else if (hafti_http_same(name.bytes, name.size, "Domain")) {
        bool has_dot = value.size != 0 && *value.bytes == '.';
        set->domain = (hafti_http_text_t){value.bytes + has_dot, value.size - has_dot};
    } else if (hafti_http_same(name.bytes, name.size, "Path")) {
        bool is_path = value.size != 0 && *value.bytes == '/';
        set->path = is_path ? value : none;
    }
}

bool hafti_http_read_set_cookie(hafti_http_text_t field, time_t now, hafti_http_set_cookie_t *set) {
    hafti_http_text_t pair, attribute;
    expiry_t expiry = {0};
    *set = (hafti_http_set_cookie_t){.domain = none, .path = none};
    hafti_http_next_part(&field, ';', &pair);
    if (memchr(pair.bytes, '=', pair.size) == NULL)
        return false;
    split(pair, &set->name, &set->value);
    while (hafti_http_next_part(&field, ';', &attribute))
        read_attribute(attribute, now, set, &expiry);
    set->expires = expiry.has_age || expiry.has_date;
    set->expiry = expiry.has_age ? expiry.age : expiry.date;
    if (set->expiry > now + LONGEST)
        set->expiry = now + LONGEST;
    return set->name.size != 0 && set->name.size + set->value.size <= LARGEST;
}
