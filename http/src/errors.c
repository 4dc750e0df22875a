/* SPDX-License-Identifier: MIT */
/* Errors as answers: in the form of the application's function, or as a line of text. Tasks and
   exceptions of that function end with the call. */
#include "internal.h"

/* The text is for the client, unless a handler has failed. */
static const char *text_of(const haft_http_request_t *request, int status, int code) {
    return code == HAFT_HTTP_REFUSED && request->refusal != NULL ? request->refusal
                                                                 : hafti_http_reason_of(status);
}

int haft_http_request_refuse(haft_http_request_t *request, int status, const char *text) {
    if (status < 400 || status > 599)
        return haft_io_refuse(-EINVAL, __func__, "%d is no status of an error: write 400 to 599",
                              status);
    request->refused = status;
    request->refusal = text != NULL ? hafti_http_copy(&request->message, text, strlen(text)) : NULL;
    return HAFT_HTTP_REFUSED;
}

int haft_http_request_refused(const haft_http_request_t *request, const char **text) {
    if (text != NULL)
        *text = request->refusal;
    return request->refused;
}

/* Lets the application's function answer; whether it has, otherwise the library does. */
static bool answer_by_application(haft_http_request_t *request, const haft_http_error_t *error) {
    const haft_http_server_t *server = request->server;
    if (server->on_error == NULL)
        return false;
    haft_http_request_t *before = request->served->request;
    request->served->request = request; /* its tasks are the request's, like a handler's */
    int code = server->on_error(request, error, server->on_error_argument);
    request->served->request = before;
    code = hafti_http_tasks_end(request, code);
    hafti_http_forget_thrown(request);
    const hafti_http_answer_t *answer = &request->answer;
    bool is_whole = code == 0 && answer->progress != HAFTI_HTTP_NOT_BEGUN &&
                    !hafti_http_answer_lacks_bytes(answer);
    return is_whole || haft_http_answer_discard(request) != 0;
}

int hafti_http_answer_error(haft_http_request_t *request, int status, int code) {
    haft_http_error_t error = {.status = status,
                               .code = code,
                               .text = text_of(request, status, code),
                               .failure = request->failure};
    if (answer_by_application(request, &error))
        return 0;
    return code == HAFT_HTTP_REFUSED && request->refusal != NULL
               ? haft_http_answer_text(request, status, error.text)
               : hafti_http_answer_status(request, status);
}
