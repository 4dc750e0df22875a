/* SPDX-License-Identifier: MIT */
/* Errors as application/problem+json: RFC 9457, section 3. */
#include "internal.h"

#include <stdio.h>

/* Writes the text as the inside of a JSON string (RFC 8259, section 7); bytes of UTF-8 stay as they
   are. The number of bytes; `into` may be NULL. */
static size_t put_string(char *into, const char *text) {
    size_t size = 0;
    for (; *text != '\0'; text++) {
        char escaped[8] = {*text, '\0'};
        if (*text == '"' || *text == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*text);
        size_t length = strlen(escaped);
        if (into != NULL)
            memcpy(into + size, escaped, length + 1);
        size += length;
    }
    return size;
}

/* Both texts are in the request's memory: the answer may wait, and its task be unwound there. */
int haft_http_answer_problem(haft_http_request_t *request, const haft_http_error_t *error,
                             void *unused) {
    enum { FRAME = 64 }; /* bytes of what is around the texts */
    (void)unused;
    const char *title = hafti_http_reason_of(error->status);
    size_t detail_size = put_string(NULL, error->text);
    size_t room = FRAME + strlen(title) + detail_size;
    char *detail = haft_http_request_allocate(request, detail_size + 1);
    char *body = haft_http_request_allocate(request, room);
    if (detail == NULL || body == NULL)
        return -ENOMEM;
    detail[put_string(detail, error->text)] = '\0';
    bool says_more = strcmp(error->text, title) != 0 && *error->text != '\0';
    int size =
        snprintf(body, room, "{\"title\":\"%s\",\"status\":%d%s%s%s}\n", title, error->status,
                 says_more ? ",\"detail\":\"" : "", says_more ? detail : "", says_more ? "\"" : "");
    return haft_http_answer(request, error->status, "application/problem+json", body, (size_t)size);
}
