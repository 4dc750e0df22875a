/* SPDX-License-Identifier: MIT */
/* Errors as application/problem+json: RFC 9457, section 3. */
#include "internal.h"

#include <stdio.h>

/* Both texts are in the request's memory: the answer may wait, and its task be unwound there. */
int haft_http_answer_problem(haft_http_request_t *request, const haft_http_error_t *error,
                             void *unused) {
    enum { FRAME = 64 }; /* bytes of what is around the texts */
    (void)unused;
    const char *title = hafti_http_reason_of(error->status);
    size_t most = HAFTI_HTTP_JSON_BYTE * strlen(error->text), size_of_detail = 0;
    size_t room = FRAME + strlen(title) + most;
    char *detail = haft_http_request_allocate(request, most + 1);
    char *body = haft_http_request_allocate(request, room);
    if (detail == NULL || body == NULL)
        return -ENOMEM;
    for (const char *at = error->text; *at != '\0'; at++)
        size_of_detail += hafti_http_put_json(detail + size_of_detail, *at, true);
    detail[size_of_detail] = '\0';
    bool says_more = strcmp(error->text, title) != 0 && *error->text != '\0';
    int size =
        snprintf(body, room, "{\"title\":\"%s\",\"status\":%d%s%s%s}\n", title, error->status,
                 says_more ? ",\"detail\":\"" : "", says_more ? detail : "", says_more ? "\"" : "");
    return haft_http_answer(request, error->status, "application/problem+json", body, (size_t)size);
}
