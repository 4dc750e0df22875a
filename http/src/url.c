/* SPDX-License-Identifier: MIT */
/* URLs: their parts, and the meaning of a reference in the page of another URL (RFC 3986, section
   5.2). */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

/* The scheme with its slashes: how many letters; 0: it is none that the client speaks. */
static size_t scheme_of(const char *text) {
    return hafti_http_begins(text, "http://") ? 7 : hafti_http_begins(text, "https://") ? 8 : 0;
}

static bool has_scheme(const char *text) {
    const char *colon = strchr(text, ':');
    return colon != NULL && (size_t)(colon - text) < strcspn(text, "/?#");
}

/* Takes the port off: the number behind the last colon that is not in an address of IPv6; -EINVAL.
   One that is empty is the scheme's (RFC 3986, section 3.2.3). */
static int port_of(hafti_http_text_t *authority, int without) {
    size_t size = authority->size, number = 0;
    while (size != 0 && authority->bytes[size - 1] >= '0' && authority->bytes[size - 1] <= '9')
        size--;
    if (size == 0 || authority->bytes[size - 1] != ':')
        return without;
    for (size_t i = size; i < authority->size && number <= UINT16_MAX; i++)
        number = number * 10 + (size_t)(authority->bytes[i] - '0');
    bool is_empty = size == authority->size;
    authority->size = size - 1;
    if (is_empty)
        return without;
    return number != 0 && number <= UINT16_MAX ? (int)number : -EINVAL;
}

static int copy_host(hafti_http_text_t host, hafti_http_url_t *url) {
    bool is_address = host.size > 2 && *host.bytes == '[' && host.bytes[host.size - 1] == ']';
    if (is_address)
        host = (hafti_http_text_t){host.bytes + 1, host.size - 2};
    if (host.size == 0 || host.size >= sizeof url->host ||
        (!is_address && memchr(host.bytes, ':', host.size) != NULL))
        return -EINVAL;
    memcpy(url->host, host.bytes, host.size);
    url->host[host.size] = '\0';
    return 0;
}

bool hafti_http_same_origin(const hafti_http_url_t *one, const hafti_http_url_t *other) {
    return one->is_secure == other->is_secure && one->port == other->port &&
           hafti_http_same_text(one->host, other->host);
}

int hafti_http_url_parse(const char *text, hafti_http_url_t *url) {
    size_t scheme = scheme_of(text);
    if (scheme == 0)
        return has_scheme(text) ? -EPROTONOSUPPORT : -EINVAL;
    url->is_secure = text[4] != ':';
    const char *start = text + scheme;
    url->authority = (hafti_http_text_t){start, strcspn(start, "/?#")};
    url->target =
        (hafti_http_text_t){start + url->authority.size, strcspn(start + url->authority.size, "#")};
    hafti_http_text_t host = url->authority;
    int port = port_of(&host, url->is_secure ? 443 : 80);
    if (port < 0 || !hafti_http_is_authority(url->authority) || !hafti_http_is_target(url->target))
        return -EINVAL;
    url->port = (uint16_t)port;
    if (url->authority.size == host.size + 1)
        url->authority = host; /* without a colon that nothing follows */
    return copy_host(host, url);
}

static char *joined(hafti_http_text_t one, const char *other) {
    char *text = NULL;
    return asprintf(&text, "%.*s%s", (int)one.size, one.bytes, other) >= 0 ? text : NULL;
}

/* The base up to the last slash of its path, or up to its query; or all of it, for an empty
   reference. */
static char *beside(const char *base, const char *relative) {
    bool is_same = *relative == '\0' || *relative == '#', is_query = *relative == '?';
    size_t size = strcspn(base, is_same ? "#" : "?#");
    size_t scheme = scheme_of(base), path = scheme + strcspn(base + scheme, "/?#");
    while (!is_same && !is_query && size > path && base[size - 1] != '/')
        size--;
    bool lacks_slash = size == path && !is_same && !is_query;
    char *text = NULL;
    int made = asprintf(&text, "%.*s%s%s", (int)size, base, lacks_slash ? "/" : "", relative);
    return made >= 0 ? text : NULL;
}

/* RFC 3986, section 5.2.4, in place: "/a/./b/../c" becomes "/a/c". */
static void remove_dots(char *path) {
    char *end = path + strcspn(path, "?#"), *to = path;
    for (char *at = path; at != end;) {
        size_t size = 1 + strcspn(at + 1, "/?#");
        bool is_up = size == 3 && memcmp(at, "/..", 3) == 0;
        bool is_dots = is_up || (size == 2 && memcmp(at, "/.", 2) == 0);
        while (is_up && to != path && *--to != '/')
            continue;
        if (!is_dots) {
            memmove(to, at, size);
            to += size;
        }
        at += size;
        if (is_dots && at == end)
            *to++ = '/';
    }
    memmove(to, end, strlen(end) + 1);
}

static char *resolve(const char *base, const char *reference) {
    if (has_scheme(reference))
        return strdup(reference);
    size_t scheme = scheme_of(base);
    if (strncmp(reference, "//", 2) == 0)
        return joined((hafti_http_text_t){base, scheme - 2}, reference);
    if (*reference == '/')
        return joined((hafti_http_text_t){base, scheme + strcspn(base + scheme, "/?#")}, reference);
    return beside(base, reference);
}

/* Encodes the path, from here on: servers send spaces and letters outside of ASCII as they are, and
   browsers encode them. */
static char *encode_path(char *text, const char *path) {
    char *encoded = malloc(3 * strlen(text) + 1), *to = encoded;
    for (const char *at = text; encoded != NULL && *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (at >= path && (byte == ' ' || byte > 126))
            to += sprintf(to, "%%%02X", byte);
        else
            *to++ = *at;
    }
    if (encoded != NULL)
        *to = '\0';
    free(text);
    return encoded;
}

char *hafti_http_url_resolve(const char *base, const char *reference) {
    char *text = resolve(base, reference);
    size_t scheme = text != NULL ? scheme_of(text) : 0;
    if (scheme == 0)
        return text;
    char *path = text + scheme + strcspn(text + scheme, "/?#");
    remove_dots(path);
    return encode_path(text, path);
}
