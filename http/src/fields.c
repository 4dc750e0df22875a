/* SPDX-License-Identifier: MIT */
/* The fields that handlers set. Values are checked, so that none begins another line, or another
   answer. */
#include "internal.h"

#include <stdio.h>

static bool is_ours(const char *name) {
    static const char *const ours[] = {
        "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",
        "Date",           "Trailer",           "TE",         NULL};
    return hafti_http_is_one_of(name, ours);
}

/* Makes room for `size` more bytes at the end of lines. */
static char *grow(haft_http_request_t *request, char **lines, size_t used, size_t *room,
                  size_t size) {
    if (size > *room - used) {
        size_t wanted = 2 * *room > used + size ? 2 * *room : used + size + 128;
        char *grown = hafti_http_allocate(&request->message, wanted);
        if (grown == NULL)
            return NULL;
        if (used != 0)
            memcpy(grown, *lines, used);
        *lines = grown;
        *room = wanted;
    }
    return *lines + used;
}

/* Name and value have been checked. */
static int put_line(haft_http_request_t *request, char **lines, size_t *used, size_t *room,
                    const char *name, const char *value) {
    hafti_http_text_t trimmed = hafti_http_trim((hafti_http_text_t){value, strlen(value)});
    size_t name_size = strlen(name), size = name_size + trimmed.size + 4;
    char *to = grow(request, lines, *used, room, size);
    if (to == NULL)
        return -ENOMEM;
    to = mempcpy(mempcpy(to, name, name_size), ": ", 2);
    memcpy(mempcpy(to, trimmed.bytes, trimmed.size), "\r\n", 2);
    *used += size;
    return 0;
}

static int add_line(haft_http_request_t *request, char **lines, size_t *used, size_t *room,
                    const char *name, const char *value) {
    return hafti_http_is_given_token(name) && hafti_http_is_given_value(value) && !is_ours(name)
               ? put_line(request, lines, used, room, name, value)
               : -EINVAL;
}

static int set_header(haft_http_request_t *request, const char *name, const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    if (answer->progress != HAFTI_HTTP_NOT_BEGUN)
        return -EALREADY;
    return add_line(request, &answer->fields, &answer->fields_size, &answer->fields_room, name,
                    value);
}

/* A value may be a client's text, and is no mistake of the program. */
static __attribute__((cold)) int refuse_field(const char *function, const char *name,
                                              const char *value) {
    if (!hafti_http_is_given_token(name))
        return haft_io_refuse(-EINVAL, function,
                              "'%s' is no name of a field: write letters, digits and '-'",
                              name != NULL ? name : "(NULL)");
    if (is_ours(name))
        return haft_io_refuse(
            -EINVAL, function,
            "the library sets %s itself: leave it out, and give the body's size to "
            "haft_http_answer or haft_http_answer_begin",
            name);
    if (value == NULL)
        return haft_io_refuse(-EINVAL, function,
                              "the value of %s is NULL: write a text, or leave the field out",
                              name);
    return -EINVAL;
}

int hafti_http_answer_pass_header(haft_http_request_t *request, const char *name,
                                  const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    bool is_date = hafti_http_same_text(name, "Date");
    if (!is_date)
        return set_header(request, name, value);
    if (answer->has_date || !hafti_http_is_given_value(value))
        return 0;
    answer->has_date = true;
    return put_line(request, &answer->fields, &answer->fields_size, &answer->fields_room, name,
                    value);
}

int haft_http_answer_set_header(haft_http_request_t *request, const char *name, const char *value) {
    int code = set_header(request, name, value);
    return code != -EINVAL ? code : refuse_field(__func__, name, value);
}

/* The lasting fields stand before the others. */
int haft_http_answer_set_lasting_header(haft_http_request_t *request, const char *name,
                                        const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    size_t others = answer->fields_size - answer->lasting_size, before = answer->fields_size;
    char *kept = others != 0 ? hafti_http_copy(&request->message,
                                               answer->fields + answer->lasting_size, others)
                             : NULL;
    if (others != 0 && kept == NULL)
        return -ENOMEM;
    int code = haft_http_answer_set_header(request, name, value);
    if (code != 0)
        return code;
    size_t added = answer->fields_size - before;
    char *at = answer->fields + answer->lasting_size;
    memmove(at, answer->fields + before, added);
    if (others != 0)
        memcpy(at + added, kept, others);
    answer->lasting_size += added;
    return 0;
}

int haft_http_answer_set_trailer(haft_http_request_t *request, const char *name,
                                 const char *value) {
    hafti_http_answer_t *answer = &request->answer;
    if (!answer->chunked || answer->progress != HAFTI_HTTP_BEGUN)
        return -ENOTSUP;
    int code = add_line(request, &answer->trailers, &answer->trailers_size, &answer->trailers_room,
                        name, value);
    return code != -EINVAL ? code : refuse_field(__func__, name, value);
}

/* RFC 6265, section 4.1.1. */
static bool is_cookie_value(const char *value) {
    for (; *value != '\0'; value++)
        if (*value <= ' ' || *value > '~' || strchr("\",;\\", *value) != NULL)
            return false;
    return true;
}

static bool is_attribute(const char *value) {
    return value == NULL || strchr(value, ';') == NULL;
}

int haft_http_answer_set_cookie_with(const haft_http_cookie_options_t *options,
                                     haft_http_request_t *request, const char *name,
                                     const char *value) {
    static const haft_http_cookie_options_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    if (!hafti_http_is_given_token(name) || value == NULL)
        return haft_io_refuse(-EINVAL, "haft_http_answer_set_cookie",
                              "'%s' is no name of a cookie, or its value is NULL: write letters, "
                              "digits, '-' and '_', and a text",
                              name != NULL ? name : "(NULL)");
    if (!is_cookie_value(value) || !is_attribute(options->path) || !is_attribute(options->domain) ||
        !is_attribute(options->same_site))
        return -EINVAL;
    char age[40] = "";
    if (options->max_age != 0)
        snprintf(age, sizeof age, "; Max-Age=%lld",
                 options->max_age > 0 ? (long long)options->max_age : 0LL);
    static const char format[] = "%s=%s%s%s%s%s%s%s%s; SameSite=%s";
    char *line = NULL;
    int size = 0;
    for (int pass = 0; pass < 2; pass++) {
        size = snprintf(
                   line, (size_t)size, format, name, value, options->path != NULL ? "; Path=" : "",
                   options->path != NULL ? options->path : "",
                   options->domain != NULL ? "; Domain=" : "",
                   options->domain != NULL ? options->domain : "", age,
                   options->for_scripts ? "" : "; HttpOnly", options->for_http ? "" : "; Secure",
                   options->same_site != NULL ? options->same_site : "Lax") +
               1;
        if (pass == 0 && (line = hafti_http_allocate(&request->message, (size_t)size)) == NULL)
            return -ENOMEM;
    }
    return haft_http_answer_set_header(request, "Set-Cookie", line);
}

bool hafti_http_answer_field(const hafti_http_answer_t *answer, size_t *at, const char *name,
                             hafti_http_text_t *value) {
    hafti_http_text_t lines = {answer->fields, answer->fields_size}, found;
    while (hafti_http_next_line(lines, at, &found, value))
        if (hafti_http_same(found.bytes, found.size, name))
            return true;
    return false;
}
