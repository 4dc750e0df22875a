/* SPDX-License-Identifier: MIT */
/* The media types and codings that a client accepts: lists with weights (RFC 9110, section
   12.4.2). */
#include "text.h"

/* A weight in thousandths; a text that is no weight counts as 0, so nothing is sent that was not
   clearly wanted. */
static unsigned weight_of(hafti_http_text_t text) {
    unsigned weight = 0, factor = 100;
    if (text.size == 0 || text.size > 5 || (*text.bytes != '0' && *text.bytes != '1') ||
        (text.size > 1 && text.bytes[1] != '.'))
        return 0;
    for (size_t i = 2; i < text.size; i++, factor /= 10) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return 0;
        weight += factor * (unsigned)(text.bytes[i] - '0');
    }
    return *text.bytes == '0' ? weight : weight == 0 ? HAFTI_HTTP_WHOLE : 0;
}

/* How closely an item of the list names what is asked for: 3: by its name; 2: by a range of types;
   1: as anything; 0: not. */
static int closeness_of(hafti_http_text_t item, const char *name) {
    if (hafti_http_same(item.bytes, item.size, name))
        return 3;
    if ((item.size == 1 && *item.bytes == '*') || hafti_http_same(item.bytes, item.size, "*/*"))
        return 1;
    bool is_range = item.size > 2 && memcmp(item.bytes + item.size - 2, "/*", 2) == 0;
    return is_range && hafti_http_equal(item.bytes, name, item.size - 1) ? 2 : 0;
}

int hafti_http_weight_in(const char *accepted, const char *name) {
    hafti_http_text_t list = {accepted, strlen(accepted)}, item, part;
    int closest = 0, weight = -1;
    while (hafti_http_next_part(&list, ',', &item)) {
        hafti_http_next_part(&item, ';', &part);
        int closeness = closeness_of(part, name), has = HAFTI_HTTP_WHOLE;
        while (closeness > closest && hafti_http_next_part(&item, ';', &part))
            if (part.size > 1 && (*part.bytes | 32) == 'q' && part.bytes[1] == '=')
                has = (int)weight_of((hafti_http_text_t){part.bytes + 2, part.size - 2});
        if (closeness > closest) {
            closest = closeness;
            weight = has;
        }
    }
    return weight;
}
