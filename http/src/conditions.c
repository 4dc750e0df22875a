/* SPDX-License-Identifier: MIT */
/*
 * Conditions of a request on a representation with a tag and a date: preconditions (RFC 9110,
 * section 13), and a range of its bytes (RFC 9110, section 14). A field that cannot be read is as
 * if it were not there.
 */
#include "internal.h"

/* Whether a list of tags has ours, or is "*". A weak tag is never the same in the strong comparison
   (RFC 9110, section 8.8.3.2). */
static bool lists_tag(const char *list, const hafti_http_version_t *ours, bool strong) {
    list += strspn(list, " \t,");
    if (*list == '*')
        return true;
    for (size_t size = strlen(ours->tag); *list != '\0'; list += strspn(list, " \t,")) {
        bool is_weak = strncmp(list, "W/", 2) == 0;
        list += is_weak ? 2 : 0;
        const char *end = *list == '"' ? strchr(list + 1, '"') : NULL;
        if (end == NULL)
            return false;
        bool is_same = (size_t)(end + 1 - list) == size && memcmp(list, ours->tag, size) == 0;
        if (is_same && !(strong && (is_weak || ours->is_weak)))
            return true;
        list = end + 1;
    }
    return false;
}

static bool has_date(haft_http_request_t *request, const char *name, time_t *date) {
    const char *text = haft_http_request_header(request, name);
    return text != NULL && hafti_http_parse_date(text, date);
}

static bool is_for_reading(const haft_http_request_t *request) {
    return request->is_head || request->message.parser.method == HTTP_GET;
}

/* RFC 9110, section 13.2.2: the order of preconditions. */
int hafti_http_precondition(haft_http_request_t *request, const hafti_http_version_t *version) {
    time_t date;
    const char *match = haft_http_request_header(request, "If-Match");
    if (match != NULL ? !lists_tag(match, version, true)
                      : has_date(request, "If-Unmodified-Since", &date) && version->modified > date)
        return 412;
    const char *none = haft_http_request_header(request, "If-None-Match");
    if (none != NULL)
        return !lists_tag(none, version, false) ? 0 : is_for_reading(request) ? 304 : 412;
    bool is_old = is_for_reading(request) && has_date(request, "If-Modified-Since", &date) &&
                  version->modified <= date;
    return is_old ? 304 : 0;
}

/* RFC 9110, section 13.1.5: If-Range has one validator, which is no list; a date has to be exactly
   equal. */
static bool holds_if_range(haft_http_request_t *request, const hafti_http_version_t *version) {
    time_t date;
    const char *text = haft_http_request_header(request, "If-Range");
    if (text == NULL)
        return true;
    if (*text == '"' || strncmp(text, "W/", 2) == 0)
        return !version->is_weak && strcmp(text, version->tag) == 0;
    return hafti_http_parse_date(text, &date) && date == version->modified && !version->is_weak;
}

/* Digits; false: there are none. A number that is too large becomes UINT64_MAX. */
static bool take_number(const char **text, uint64_t *number) {
    const char *at = *text;
    for (*number = 0; *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
    }
    bool has_some = at != *text;
    *text = at;
    return has_some;
}

/* first-last, first-, or -count (RFC 9110, section 14.1.2). 0: that is none; 206; 416: the file has
   no such bytes. */
static int read_range(const char *text, uint64_t size, hafti_http_range_t *range) {
    uint64_t first, last = UINT64_MAX;
    bool has_first = take_number(&text, &first);
    if (*text++ != '-')
        return 0;
    bool has_last = take_number(&text, &last);
    if (!has_last)
        last = UINT64_MAX;
    if (*text != '\0' || (!has_first && !has_last) || (has_first && last < first))
        return 0;
    if (!has_first) {
        if (last == 0)
            return 416;
        if (size == 0)
            return 0; /* a range of an empty file, which no Content-Range can name */
        first = last < size ? size - last : 0;
        last = UINT64_MAX;
    }
    if (first >= size)
        return 416;
    *range = (hafti_http_range_t){first, (last < size ? last + 1 : size) - first};
    return 206;
}

/* The ranges that the file has of those in a list. 0: that is no list, or one that a file has no
   need of (RFC 9110, section 14.2): of too many, or of some that overlap. */
static int read_ranges(hafti_http_text_t list, uint64_t size, hafti_http_range_t *ranges,
                       size_t *count) {
    enum { LONGEST = 2 * 20 + 1 };
    uint64_t behind = 0;
    int status = 0;
    *count = 0;
    for (hafti_http_text_t part; hafti_http_next_part(&list, ',', &part);) {
        char text[LONGEST + 1];
        hafti_http_range_t range = {0, 0};
        if (part.size == 0)
            continue;
        if (part.size > LONGEST)
            return 0;
        memcpy(text, part.bytes, part.size);
        text[part.size] = '\0';
        int found = read_range(text, size, &range);
        if (found == 0 || (found == 206 && (*count == HAFTI_HTTP_RANGES || range.first < behind)))
            return 0;
        if (found == 206) {
            ranges[(*count)++] = range;
            behind = range.first + range.count;
        }
        status = *count != 0 ? 206 : 416;
    }
    return status;
}

int hafti_http_ranges(haft_http_request_t *request, const hafti_http_version_t *version,
                      uint64_t size, hafti_http_range_t ranges[HAFTI_HTTP_RANGES], size_t *count) {
    static const char unit[] = "bytes=";
    const char *text = request->message.parser.method == HTTP_GET
                           ? haft_http_request_header(request, "Range")
                           : NULL;
    int status = 0;
    if (text != NULL && hafti_http_begins(text, unit) && holds_if_range(request, version)) {
        const char *list = text + sizeof unit - 1;
        status = read_ranges((hafti_http_text_t){list, strlen(list)}, size, ranges, count);
    }
    if (status != 0)
        return status;
    ranges[0] = (hafti_http_range_t){0, size};
    *count = 1;
    return 200;
}
