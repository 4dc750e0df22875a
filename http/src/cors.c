/* SPDX-License-Identifier: MIT */
/* CORS: which pages of other origins may use a service (the Fetch standard, section 3.3). */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

/* A copy of the options. It is kept by the server, and so are the texts behind it. */
typedef struct {
    hafti_http_owned_t owned; /* must be first: free_cors casts its address */
    haft_http_cors_options_t options;
} cors_t;

static bool is_origin(const char *text) {
    const char *colon = text != NULL ? strstr(text, "://") : NULL;
    return colon != NULL && colon != text && colon[3] != '\0' && strchr(colon + 3, '/') == NULL &&
           hafti_http_is_given_value(text);
}

static int check(const haft_http_cors_options_t *options) {
    static const char function[] = "haft_http_server_set_cors";
    const char *const texts[] = {options->methods, options->fields, options->exposed};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] != NULL && !hafti_http_is_given_value(texts[i]))
            return haft_io_refuse(-EINVAL, function,
                                  "'%s' is no list for a field: write words with commas between "
                                  "them, in one line",
                                  texts[i]);
    for (size_t i = 0; i < options->origin_count; i++)
        if (!is_origin(options->origins[i]))
            return haft_io_refuse(-EINVAL, function,
                                  "'%s' is no origin: write scheme://host, or scheme://host:port, "
                                  "without a path",
                                  options->origins[i] != NULL ? options->origins[i] : "(NULL)");
    if (options->max_age < 0)
        return haft_io_refuse(-EINVAL, function,
                              "max_age is %lld s: write the seconds for which a browser keeps the "
                              "answer, or 0",
                              (long long)options->max_age);
    if (options->credentials && options->origin_count == 0)
        return haft_io_refuse(-EINVAL, function,
                              "credentials are for origins that are named: write them to .origins, "
                              "because every site could act for its visitors otherwise");
    return 0;
}

static void free_cors(hafti_http_owned_t *owned) {
    free((cors_t *)owned);
}

static size_t size_of(const char *text) {
    return text != NULL ? strlen(text) + 1 : 0;
}

/* The copy of a text in the memory that begins at `*to`. */
static const char *put(char **to, const char *text) {
    char *copy = *to;
    if (text == NULL)
        return NULL;
    memcpy(copy, text, size_of(text));
    *to += size_of(text);
    return copy;
}

/* The copy of an origin as browsers send it (RFC 6454, section 6.2): scheme and host in small
   letters, without the scheme's own port. */
static const char *put_origin(char **to, const char *text) {
    char *copy = *to;
    put(to, text);
    for (char *at = copy; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at += 'a' - 'A';
    char *port = strrchr(copy, ':');
    const char *own = strncmp(copy, "https:", 6) == 0  ? ":443"
                      : strncmp(copy, "http:", 5) == 0 ? ":80"
                                                       : "";
    if (strcmp(port, own) == 0)
        *port = '\0';
    return copy;
}

/* Behind it the array of origins, and behind that the texts. */
static cors_t *copy_of(const haft_http_cors_options_t *options) {
    size_t size = sizeof(cors_t) + options->origin_count * sizeof(char *) +
                  size_of(options->methods) + size_of(options->fields) + size_of(options->exposed);
    for (size_t i = 0; i < options->origin_count; i++)
        size += size_of(options->origins[i]);
    cors_t *cors = malloc(size);
    if (cors == NULL)
        return NULL;
    const char **origins = (const char **)(cors + 1);
    char *to = (char *)(origins + options->origin_count);
    cors->options = *options;
    cors->options.origins = origins;
    for (size_t i = 0; i < options->origin_count; i++)
        origins[i] = put_origin(&to, options->origins[i]);
    cors->options.methods = put(&to, options->methods);
    cors->options.fields = put(&to, options->fields);
    cors->options.exposed = put(&to, options->exposed);
    return cors;
}

/* Origins are compared byte by byte (RFC 6454, section 6.2). */
static bool is_listed(const haft_http_cors_options_t *options, const char *origin) {
    for (size_t i = 0; i < options->origin_count; i++)
        if (strcmp(options->origins[i], origin) == 0)
            return true;
    return options->origin_count == 0;
}

/* Sets a lasting field, unless its value is NULL or `code`, the result before, is an error. */
static int set(int code, haft_http_request_t *request, const char *name, const char *value) {
    return code == 0 && value != NULL ? haft_http_answer_set_lasting_header(request, name, value)
                                      : code;
}

static int set_origin(const haft_http_cors_options_t *options, haft_http_request_t *request,
                      const char *origin) {
    int code =
        set(0, request, "Access-Control-Allow-Origin", options->origin_count != 0 ? origin : "*");
    return set(code, request, "Access-Control-Allow-Credentials",
               options->credentials ? "true" : NULL);
}

static int answer_question(const haft_http_cors_options_t *options, haft_http_request_t *request,
                           const char *method, bool may_ask) {
    const char *asked = haft_http_request_header(request, "Access-Control-Request-Headers");
    char age[24];
    snprintf(age, sizeof age, "%lld", (long long)options->max_age);
    int code =
        set(0, request, "Vary", "Access-Control-Request-Method, Access-Control-Request-Headers");
    if (may_ask) {
        code = set(code, request, "Access-Control-Allow-Methods",
                   options->methods != NULL ? options->methods : method);
        code = set(code, request, "Access-Control-Allow-Headers",
                   options->fields != NULL ? options->fields : asked);
        code = set(code, request, "Access-Control-Max-Age", options->max_age != 0 ? age : NULL);
    }
    return code == 0 ? haft_http_answer(request, 204, NULL, "", 0) : code;
}

/* Whether the answer has the field already, from the group: a browser accepts one, and not two. */
static bool has_origin(const haft_http_request_t *request) {
    hafti_http_text_t value;
    size_t at = 0;
    return request->answer.fields_size != 0 &&
           hafti_http_answer_field(&request->answer, &at, "Access-Control-Allow-Origin", &value);
}

/* The answer depends on the origin where only some may: caches learn that from every answer. */
static int around(haft_http_request_t *request, haft_http_next_t *next, void *argument) {
    const haft_http_cors_options_t *options = &((const cors_t *)argument)->options;
    const char *origin = haft_http_request_header(request, "Origin");
    const char *method = haft_http_request_header(request, "Access-Control-Request-Method");
    bool is_allowed = origin != NULL && is_listed(options, origin) && !has_origin(request);
    int code = set(0, request, "Vary", options->origin_count != 0 ? "Origin" : NULL);
    if (code == 0 && is_allowed)
        code = set_origin(options, request, origin);
    if (code == 0 && origin != NULL && method != NULL &&
        strcmp(haft_http_request_method(request), "OPTIONS") == 0)
        return answer_question(options, request, method, is_allowed);
    if (code == 0 && is_allowed)
        code = set(code, request, "Access-Control-Expose-Headers", options->exposed);
    return code == 0 ? next->call(next, request) : code;
}

int haft_http_server_set_cors(haft_http_server_t *server, const haft_http_cors_options_t *options) {
    static const haft_http_cors_options_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    int code = check(options);
    if (code != 0)
        return code;
    cors_t *cors = copy_of(options);
    code = cors != NULL ? haft_http_server_use(server, around, cors) : -ENOMEM;
    if (code != 0) {
        free(cors);
        return code;
    }
    cors->owned.free = free_cors;
    hafti_http_own(server, &cors->owned);
    return 0;
}
