/* SPDX-License-Identifier: MIT */
/*
 * The proxy of a client: the one that it was given, or else the one that the environment names when
 * the client is made. There a name of small letters comes before the one of capitals; HTTP_PROXY is
 * not read where REQUEST_METHOD is set, since a CGI program's client chooses its value, by the
 * field "Proxy" of its request ("httpoxy").
 */
#include "addresses.h"
#include "client.h"
#include "websocket.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

struct hafti_http_proxying {
    hafti_http_proxy_t plain, secure; /* for http, and for https */
    char *exempt;                     /* hosts that are asked without them, with commas between */
    bool is_given;                    /* then nothing is */
};

/* ---- A proxy ---- */

/* The user and the password, %-encoded, as a Basic authorization (RFC 7617). */
static int read_credentials(hafti_http_text_t text, hafti_http_proxy_t *proxy) {
    static const char basic[] = "Basic ";
    char plain[text.size + 2];
    ssize_t size = hafti_http_decode(text.bytes, text.size, false, plain);
    if (size < 0)
        return (int)size;
    if (memchr(text.bytes, ':', text.size) == NULL)
        plain[size++] = ':';
    proxy->authorization = malloc(sizeof basic + ((size_t)size + 2) / 3 * 4);
    if (proxy->authorization == NULL)
        return -ENOMEM;
    strcpy(proxy->authorization, basic);
    hafti_http_put_base64((unsigned char *)plain, (size_t)size,
                          proxy->authorization + sizeof basic - 1);
    return 0;
}

/* "http://user:password@host:port", of which only the host need be there. */
static int read_proxy(const char *text, hafti_http_proxy_t *proxy) {
    static const char scheme[] = "http://";
    const char *colon = strstr(text, "://");
    if (colon != NULL && !hafti_http_begins(text, scheme))
        return -EPROTONOSUPPORT;
    const char *start = colon != NULL ? colon + 3 : text;
    size_t size = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', size);
    char url[sizeof scheme + size];
    if (at != NULL) {
        int code = read_credentials((hafti_http_text_t){start, (size_t)(at - start)}, proxy);
        if (code != 0)
            return code;
        size -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    snprintf(url, sizeof url, "%s%.*s", scheme, (int)size, start);
    int code = hafti_http_url_parse(url, &proxy->url);
    proxy->url.authority = proxy->url.target = (hafti_http_text_t){0};
    return code;
}

static void set_proxy(hafti_http_proxy_t *proxy, const char *text) {
    proxy->is_there = text != NULL && *text != '\0';
    if (proxy->is_there)
        proxy->code = read_proxy(text, proxy);
}

/* ---- The environment ---- */

static const char *value_of(const char *small, const char *capitals) {
    const char *value = getenv(small);
    return value != NULL && *value != '\0' ? value : capitals != NULL ? getenv(capitals) : NULL;
}

static int read_environment(hafti_http_proxying_t *proxying) {
    const char *exempt = value_of("no_proxy", "NO_PROXY");
    bool is_cgi = getenv("REQUEST_METHOD") != NULL;
    set_proxy(&proxying->plain, value_of("http_proxy", is_cgi ? NULL : "HTTP_PROXY"));
    set_proxy(&proxying->secure, value_of("https_proxy", "HTTPS_PROXY"));
    proxying->exempt = strdup(exempt != NULL ? exempt : "");
    if (proxying->exempt == NULL)
        return -ENOMEM;
    for (char *at = proxying->exempt; *at != '\0'; at++)
        if (*at == ' ')
            *at = ',';
    return 0;
}

hafti_http_proxying_t *hafti_http_proxying_new(const char *given) {
    hafti_http_proxying_t *proxying = calloc(1, sizeof *proxying);
    if (proxying == NULL)
        return NULL;
    proxying->is_given = given != NULL;
    set_proxy(&proxying->plain, given);
    set_proxy(&proxying->secure, given);
    bool has_memory = proxying->is_given || read_environment(proxying) == 0;
    if (has_memory && proxying->plain.code != -ENOMEM && proxying->secure.code != -ENOMEM)
        return proxying;
    hafti_http_proxying_free(proxying);
    return NULL;
}

void hafti_http_proxying_free(hafti_http_proxying_t *proxying) {
    if (proxying == NULL)
        return;
    free(proxying->plain.authorization);
    free(proxying->secure.authorization);
    free(proxying->exempt);
    free(proxying);
}

/* ---- Hosts that are asked without a proxy ---- */

/* The number behind the colon, which becomes the name's end; 0: there is none. An address of IPv6
   has several colons, unless it stands in brackets. */
static unsigned long split_port(char *name) {
    char *colon = strrchr(name, ':');
    if (colon == NULL || (strchr(name, ':') != colon && colon[-1] != ']'))
        return 0;
    *colon = '\0';
    return strtoul(colon + 1, NULL, 10);
}

static char *without_brackets(char *name) {
    size_t size = strlen(name);
    if (size < 2 || *name != '[' || name[size - 1] != ']')
        return name;
    name[size - 1] = '\0';
    return name + 1;
}

/* "here.example" is this host and those below it, ".here.example" and "*.here.example" only
   those. */
static bool names_host(const char *name, const char *host) {
    size_t size = strlen(host), most = strlen(name);
    if (strncmp(name, "*.", 2) == 0)
        name++, most--;
    if (most == 0 || most > size || !hafti_http_equal(host + size - most, name, most))
        return false;
    return *name == '.' ? size > most : size == most || host[size - most - 1] == '.';
}

static bool exempts(hafti_http_text_t part, const hafti_http_url_t *url,
                    const struct in6_addr *address) {
    char text[HAFTI_HTTP_HOST + 8];
    hafti_http_network_t network;
    if (part.size == 0 || part.size >= sizeof text)
        return false;
    memcpy(text, part.bytes, part.size);
    text[part.size] = '\0';
    unsigned long port = split_port(text);
    if (port != 0 && port != url->port)
        return false;
    char *name = without_brackets(text);
    if (strcmp(name, "*") == 0)
        return true;
    if (address == NULL)
        return names_host(name, url->host);
    return hafti_http_read_network(name, &network) && hafti_http_is_in(address, &network);
}

/* Whether the host is exempt, as the machine itself is. */
static bool is_exempt(const char *list, const hafti_http_url_t *url) {
    struct in6_addr read;
    const struct in6_addr *address = hafti_http_read_address(url->host, &read) ? &read : NULL;
    if (address != NULL ? hafti_http_is_loopback(address)
                        : hafti_http_same_text(url->host, "localhost"))
        return true;
    hafti_http_text_t rest = {list, strlen(list)}, part;
    while (hafti_http_next_part(&rest, ',', &part))
        if (exempts(part, url, address))
            return true;
    return false;
}

int hafti_http_proxy_of(const hafti_http_proxying_t *proxying, const hafti_http_url_t *url,
                        const hafti_http_proxy_t **result) {
    const hafti_http_proxy_t *proxy = url->is_secure ? &proxying->secure : &proxying->plain;
    *result = NULL;
    if (!proxy->is_there || (!proxying->is_given && is_exempt(proxying->exempt, url)))
        return 0;
    *result = proxy;
    return proxy->code;
}

/* ---- A tunnel ---- */

static void free_text(char *const *text) {
    free(*text);
}

int hafti_http_write_connect(hafti_http_stream_t *stream, const hafti_http_proxy_t *proxy,
                             const hafti_http_url_t *url) {
    __attribute__((cleanup(free_text))) char *head = NULL;
    bool is_address = strchr(url->host, ':') != NULL, knows = proxy->authorization != NULL;
    char place[HAFTI_HTTP_HOST + 10];
    snprintf(place, sizeof place, "%s%s%s:%d", is_address ? "[" : "", url->host,
             is_address ? "]" : "", url->port);
    int size = asprintf(&head, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", place, place,
                        knows ? "Proxy-Authorization: " : "", knows ? proxy->authorization : "",
                        knows ? "\r\n" : "");
    if (size < 0) {
        head = NULL;
        return -ENOMEM;
    }
    return stream->operations->write_all(stream, head, (size_t)size);
}
