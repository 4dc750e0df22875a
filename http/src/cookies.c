/* SPDX-License-Identifier: MIT */
/* A client's cookies (RFC 6265). */
#include "addresses.h"
#include "cookies.h"

#include <stdio.h>
#include <stdlib.h>

enum { OF_DOMAIN = 50, IN_ALL = 3000, SENT = 8192 /* bytes */ };

typedef struct cookie {
    struct cookie *next;
    time_t expiry;        /* if it expires */
    uint64_t begun, used; /* when it was set first, and set or sent last: numbers of the jar's */
    bool expires, is_secure;
    bool is_of_host;                    /* it has no domain, only a host */
    char *name, *value, *domain, *path; /* behind the cookie */
} cookie_t;

struct haft_http_cookie_jar {
    pthread_mutex_t mutex; /* never held over a wait */
    cookie_t *first;
    size_t count;
    uint64_t uses;
};

haft_http_cookie_jar_t *haft_http_cookie_jar_new(void) {
    haft_http_cookie_jar_t *jar = calloc(1, sizeof *jar);
    if (jar != NULL)
        pthread_mutex_init(&jar->mutex, NULL);
    return jar;
}

static void remove_at(haft_http_cookie_jar_t *jar, cookie_t **at) {
    cookie_t *removed = *at;
    *at = removed->next;
    jar->count--;
    free(removed);
}

void haft_http_cookie_jar_clear(haft_http_cookie_jar_t *jar) {
    pthread_mutex_lock(&jar->mutex);
    while (jar->first != NULL)
        remove_at(jar, &jar->first);
    pthread_mutex_unlock(&jar->mutex);
}

void haft_http_cookie_jar_free(haft_http_cookie_jar_t *jar) {
    if (jar == NULL)
        return;
    haft_http_cookie_jar_clear(jar);
    pthread_mutex_destroy(&jar->mutex);
    free(jar);
}

/* ---- Domains and paths ---- */

/* RFC 6265, section 5.1.3: domains that match. An address has no domains above it. */
static bool is_below(const char *host, const char *domain, size_t size) {
    size_t whole = strlen(host);
    struct in6_addr address;
    if (size > whole || !hafti_http_equal(host + whole - size, domain, size))
        return false;
    return size == whole ||
           (host[whole - size - 1] == '.' && !hafti_http_read_address(host, &address));
}

/* A dot at the end only marks the name as complete: it is the same host's. */
static hafti_http_text_t without_last_dot(hafti_http_text_t name) {
    name.size -= name.size != 0 && name.bytes[name.size - 1] == '.';
    return name;
}

static hafti_http_url_t as_asked(const hafti_http_url_t *url) {
    hafti_http_url_t asked = *url;
    asked.host[without_last_dot((hafti_http_text_t){url->host, strlen(url->host)}).size] = '\0';
    return asked;
}

/* The path of the URL, without its query. */
static hafti_http_text_t path_of(const hafti_http_url_t *url) {
    hafti_http_text_t target = url->target;
    if (target.size == 0 || *target.bytes != '/')
        return (hafti_http_text_t){"/", 1};
    const char *mark = memchr(target.bytes, '?', target.size);
    return (hafti_http_text_t){target.bytes,
                               mark != NULL ? (size_t)(mark - target.bytes) : target.size};
}

/* RFC 6265, section 5.1.4: the default path is the folder of the URL. */
static hafti_http_text_t default_path(const hafti_http_url_t *url) {
    hafti_http_text_t path = path_of(url);
    const char *slash = memrchr(path.bytes, '/', path.size);
    path.size = slash != path.bytes ? (size_t)(slash - path.bytes) : 1;
    return path;
}

/* RFC 6265, section 5.1.4: paths that match. */
static bool is_in_path(hafti_http_text_t path, const char *folder) {
    size_t size = strlen(folder);
    return path.size >= size && memcmp(path.bytes, folder, size) == 0 &&
           (path.size == size || folder[size - 1] == '/' || path.bytes[size] == '/');
}

static bool is_for(const cookie_t *cookie, const hafti_http_url_t *url) {
    size_t size = strlen(cookie->domain);
    return (cookie->is_of_host ? hafti_http_same_text(cookie->domain, url->host)
                               : is_below(url->host, cookie->domain, size)) &&
           is_in_path(path_of(url), cookie->path) && (!cookie->is_secure || url->is_secure);
}

/* ---- Setting one ---- */

static bool begins_with(hafti_http_text_t text, const char *word) {
    size_t size = strlen(word);
    return text.size >= size && hafti_http_equal(text.bytes, word, size);
}

/* Whether a server of this URL may set it (RFC 6265, section 5.3, and rules that browsers have
   added). */
static bool may_set(const hafti_http_set_cookie_t *set, const hafti_http_url_t *url) {
    bool is_slash = set->path.size == 1;
    bool is_for_secure = begins_with(set->name, "__Secure-");
    bool is_for_host = begins_with(set->name, "__Host-");
    if (set->is_secure && !url->is_secure)
        return false;
    if ((is_for_secure || is_for_host) && !set->is_secure)
        return false;
    if (is_for_host && (set->domain.size != 0 || !is_slash))
        return false;
    if (set->domain.size == 0 || hafti_http_same(set->domain.bytes, set->domain.size, url->host))
        return true;
    return is_below(url->host, set->domain.bytes, set->domain.size) &&
           !hafti_http_is_public_suffix(set->domain);
}

static char *copy_text(char **to, hafti_http_text_t text) {
    char *copy = *to;
    memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    *to += text.size + 1;
    return copy;
}

static cookie_t *new_cookie(const hafti_http_set_cookie_t *set, const hafti_http_url_t *url) {
    struct in6_addr address;
    bool is_of_host =
        hafti_http_is_public_suffix(set->domain) || hafti_http_read_address(url->host, &address);
    hafti_http_text_t domain =
        is_of_host ? (hafti_http_text_t){url->host, strlen(url->host)} : set->domain;
    hafti_http_text_t path = set->path.size != 0 ? set->path : default_path(url);
    cookie_t *cookie =
        malloc(sizeof *cookie + set->name.size + set->value.size + domain.size + path.size + 4);
    if (cookie == NULL)
        return NULL;
    char *to = (char *)(cookie + 1);
    *cookie = (cookie_t){.expiry = set->expiry,
                         .expires = set->expires,
                         .is_secure = set->is_secure,
                         .is_of_host = is_of_host};
    cookie->name = copy_text(&to, set->name);
    cookie->value = copy_text(&to, set->value);
    cookie->domain = copy_text(&to, domain);
    cookie->path = copy_text(&to, path);
    return cookie;
}

static bool is_same(const cookie_t *one, const cookie_t *other) {
    return strcmp(one->name, other->name) == 0 && one->is_of_host == other->is_of_host &&
           hafti_http_same_text(one->domain, other->domain) && strcmp(one->path, other->path) == 0;
}

/* Whether the cookie, which comes by http, would cover one that only https may set. */
static bool covers_secure(const haft_http_cookie_jar_t *jar, const cookie_t *cookie,
                          const hafti_http_url_t *url) {
    if (url->is_secure)
        return false;
    for (const cookie_t *other = jar->first; other != NULL; other = other->next) {
        hafti_http_text_t path = {cookie->path, strlen(cookie->path)};
        if (other->is_secure && strcmp(other->name, cookie->name) == 0 &&
            (is_below(cookie->domain, other->domain, strlen(other->domain)) ||
             is_below(other->domain, cookie->domain, strlen(cookie->domain))) &&
            is_in_path(path, other->path))
            return true;
    }
    return false;
}

static bool is_over(const cookie_t *cookie, time_t now) {
    return cookie->expires && cookie->expiry <= now;
}

static void forget_expired(haft_http_cookie_jar_t *jar, time_t now) {
    for (cookie_t **at = &jar->first; *at != NULL;)
        if (is_over(*at, now))
            remove_at(jar, at);
        else
            at = &(*at)->next;
}

static bool goes_before(const cookie_t *one, const cookie_t *other) {
    return one->is_secure != other->is_secure ? other->is_secure : one->used < other->used;
}

/* Removes what was sent longest ago, of a domain, or, for NULL, of all, if there are too many:
   cookies that http has set go first, so that an attacker on the way cannot push out those that
   only https sets. */
static void make_room(haft_http_cookie_jar_t *jar, const char *domain, size_t most) {
    cookie_t **oldest = NULL;
    size_t count = 0;
    for (cookie_t **at = &jar->first; *at != NULL; at = &(*at)->next) {
        if (domain != NULL && !hafti_http_same_text((*at)->domain, domain))
            continue;
        count++;
        if (oldest == NULL || goes_before(*at, *oldest))
            oldest = at;
    }
    if (count > most)
        remove_at(jar, oldest);
}

/* Puts the cookie in the place of the one that it replaces, whose turn it keeps (RFC 6265, section
   5.3). */
static void put(haft_http_cookie_jar_t *jar, cookie_t *cookie, time_t now) {
    cookie_t **at = &jar->first;
    while (*at != NULL && !is_same(*at, cookie))
        at = &(*at)->next;
    cookie->begun = cookie->used = ++jar->uses;
    if (*at != NULL) {
        cookie->begun = (*at)->begun;
        remove_at(jar, at);
    }
    forget_expired(jar, now);
    if (is_over(cookie, now)) {
        free(cookie);
        return;
    }
    cookie->next = jar->first;
    jar->first = cookie;
    jar->count++;
    make_room(jar, cookie->domain, OF_DOMAIN);
    make_room(jar, NULL, IN_ALL);
}

static int set_cookie(haft_http_cookie_jar_t *jar, const hafti_http_url_t *from,
                      hafti_http_text_t field) {
    hafti_http_set_cookie_t set;
    const hafti_http_url_t asked = as_asked(from), *url = &asked;
    time_t now = hafti_http_now();
    if (!hafti_http_is_value(field.bytes, field.size) ||
        !hafti_http_read_set_cookie(field, now, &set))
        return -EINVAL;
    set.domain = without_last_dot(set.domain);
    if (!may_set(&set, url))
        return -EINVAL;
    cookie_t *cookie = new_cookie(&set, url);
    if (cookie == NULL)
        return -ENOMEM;
    pthread_mutex_lock(&jar->mutex);
    bool is_refused = covers_secure(jar, cookie, url);
    if (is_refused)
        free(cookie);
    else
        put(jar, cookie, now);
    pthread_mutex_unlock(&jar->mutex);
    return is_refused ? -EINVAL : 0;
}

int haft_http_cookie_jar_set(haft_http_cookie_jar_t *jar, const char *text, const char *field) {
    hafti_http_url_t url;
    int code = hafti_http_url_parse(text, &url);
    return code == 0 ? set_cookie(jar, &url, (hafti_http_text_t){field, strlen(field)}) : -EINVAL;
}

void hafti_http_cookies_take(haft_http_cookie_jar_t *jar, const haft_http_reply_t *reply) {
    hafti_http_text_t field;
    for (size_t from = 0; hafti_http_message_field(&reply->message, "Set-Cookie", &from, &field);)
        set_cookie(jar, &reply->url, field);
}

/* ---- Sending them ---- */

/* RFC 6265, section 5.4: longer paths come first, then the cookies that were set first. */
static int compare(const void *one, const void *other) {
    const cookie_t *const *first = one, *const *second = other;
    size_t first_size = strlen((*first)->path), second_size = strlen((*second)->path);
    bool is_first =
        first_size != second_size ? first_size > second_size : (*first)->begun < (*second)->begun;
    return is_first ? -1 : 1;
}

static size_t find_all(const haft_http_cookie_jar_t *jar, const hafti_http_url_t *url, time_t now,
                       cookie_t **found) {
    size_t count = 0;
    for (cookie_t *cookie = jar->first; cookie != NULL; cookie = cookie->next)
        if (!is_over(cookie, now) && is_for(cookie, url))
            found[count++] = cookie;
    return count;
}

/* "a=b; c=d", of as many as fit, at least one of which does. */
static void write_all(haft_http_cookie_jar_t *jar, cookie_t *const *cookies, size_t count,
                      char *text) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t needed = strlen(cookies[i]->name) + strlen(cookies[i]->value) + 3;
        if (size + needed > SENT)
            continue;
        size += (size_t)snprintf(text + size, SENT - size, "%s%s=%s", size != 0 ? "; " : "",
                                 cookies[i]->name, cookies[i]->value);
        cookies[i]->used = ++jar->uses;
    }
}

int hafti_http_cookies_for(haft_http_cookie_jar_t *jar, const hafti_http_url_t *url, char **text) {
    const hafti_http_url_t asked = as_asked(url);
    *text = NULL;
    pthread_mutex_lock(&jar->mutex);
    cookie_t **found = jar->count != 0 ? malloc(jar->count * sizeof(cookie_t *)) : NULL;
    size_t count = found != NULL ? find_all(jar, &asked, hafti_http_now(), found) : 0;
    int code = found == NULL && jar->count != 0 ? -ENOMEM : 0;
    if (count != 0) {
        *text = malloc(SENT);
        code = *text != NULL ? 0 : -ENOMEM;
    }
    if (count != 0 && code == 0) {
        qsort(found, count, sizeof *found, compare);
        write_all(jar, found, count, *text);
    }
    pthread_mutex_unlock(&jar->mutex);
    free(found);
    return code;
}

int haft_http_cookie_jar_get(haft_http_cookie_jar_t *jar, const char *text, char **cookies) {
    hafti_http_url_t url;
    *cookies = NULL;
    return hafti_http_url_parse(text, &url) == 0 ? hafti_http_cookies_for(jar, &url, cookies)
                                                 : -EINVAL;
}
