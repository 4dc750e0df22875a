/* SPDX-License-Identifier: MIT */
/* Clients by their addresses: the peer of a connection, or the one that a trusted proxy names. */
#include "addresses.h"
#include "internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

/* ---- Addresses ---- */

static void map_address(const struct in_addr *four, struct in6_addr *address) {
    memset(address, 0, sizeof *address);
    memset(&address->s6_addr[10], 0xff, 2);
    memcpy(&address->s6_addr[12], four, sizeof *four);
}

bool hafti_http_read_address(const char *text, struct in6_addr *address) {
    struct in_addr four;
    if (inet_pton(AF_INET6, text, address) == 1)
        return true;
    if (inet_pton(AF_INET, text, &four) != 1)
        return false;
    map_address(&four, address);
    return true;
}

bool hafti_http_is_loopback(const struct in6_addr *address) {
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

static void write_address(const struct in6_addr *address, char into[HAFTI_HTTP_ADDRESS]) {
    if (IN6_IS_ADDR_V4MAPPED(address))
        inet_ntop(AF_INET, &address->s6_addr[12], into, HAFTI_HTTP_ADDRESS);
    else
        inet_ntop(AF_INET6, address, into, HAFTI_HTTP_ADDRESS);
}

bool hafti_http_peer_of(int descriptor, struct in6_addr *address) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } peer;
    socklen_t size = sizeof peer;
    if (getpeername(descriptor, &peer.any, &size) != 0 ||
        (peer.any.sa_family != AF_INET && peer.any.sa_family != AF_INET6))
        return false;
    if (peer.any.sa_family == AF_INET6)
        *address = peer.six.sin6_addr;
    else
        map_address(&peer.four.sin_addr, address);
    return true;
}

/* Asks the kernel once for each connection. */
const char *haft_http_request_peer(haft_http_request_t *request) {
    hafti_http_stream_t *stream = request->message.stream;
    struct in6_addr address;
    if (!stream->knows_peer && hafti_http_peer_of(stream->descriptor, &address))
        write_address(&address, stream->peer);
    stream->knows_peer = true;
    return stream->peer;
}

/* ---- Proxies that are trusted ---- */

struct hafti_http_proxies {
    char *field;
    bool unix_sockets;
    size_t count;
    hafti_http_network_t networks[];
};

bool hafti_http_is_in(const struct in6_addr *address, const hafti_http_network_t *network) {
    int whole = network->bits / 8, rest = network->bits % 8;
    unsigned mask = 0xff00u >> rest & 0xff;
    return memcmp(address, &network->address, (size_t)whole) == 0 &&
           (rest == 0 || ((address->s6_addr[whole] ^ network->address.s6_addr[whole]) & mask) == 0);
}

bool hafti_http_is_proxy(const hafti_http_proxies_t *proxies, const struct in6_addr *address) {
    for (size_t i = 0; proxies != NULL && i < proxies->count; i++)
        if (hafti_http_is_in(address, &proxies->networks[i]))
            return true;
    return false;
}

bool hafti_http_is_from_proxy(const hafti_http_proxies_t *proxies, int descriptor) {
    struct in6_addr address;
    return hafti_http_peer_of(descriptor, &address) ? hafti_http_is_proxy(proxies, &address)
                                                    : proxies != NULL && proxies->unix_sockets;
}

/* "" is a peer without an address. */
static bool is_trusted(const hafti_http_proxies_t *proxies, const char *text) {
    struct in6_addr address;
    return *text == '\0'
               ? proxies->unix_sockets
               : hafti_http_read_address(text, &address) && hafti_http_is_proxy(proxies, &address);
}

bool hafti_http_is_peer_trusted(haft_http_request_t *request) {
    const hafti_http_proxies_t *proxies = request->server->proxies;
    return proxies != NULL && is_trusted(proxies, haft_http_request_peer(request));
}

bool hafti_http_read_network(char *text, hafti_http_network_t *network) {
    char *slash = strchr(text, '/'), *end = NULL;
    if (slash != NULL)
        *slash = '\0';
    if (!hafti_http_read_address(text, &network->address))
        return false;
    int most = strchr(text, ':') != NULL ? 128 : 32;
    long bits = slash != NULL ? strtol(slash + 1, &end, 10) : most;
    if (bits < 0 || bits > most || (slash != NULL && (end == slash + 1 || *end != '\0')))
        return false;
    network->bits = (int)bits + 128 - most;
    return true;
}

static int read_networks(hafti_http_proxies_t *proxies, char *text) {
    char *rest = text;
    for (char *word; (word = strtok_r(NULL, " ,", &rest)) != NULL;)
        if (strcmp(word, "unix") == 0)
            proxies->unix_sockets = true;
        else if (!hafti_http_read_network(word, &proxies->networks[proxies->count++]))
            return -EINVAL;
    return 0;
}

void hafti_http_proxies_free(hafti_http_proxies_t *proxies) {
    if (proxies != NULL)
        free(proxies->field);
    free(proxies);
}

static int refuse_networks(const char *networks) {
    return haft_io_refuse(-EINVAL, "haft_http_server_trust_proxies",
                          "'%s' is no list of networks: write the proxies' addresses, such as "
                          "\"10.0.0.0/8 ::1 unix\"",
                          networks);
}

int haft_http_server_trust_proxies(haft_http_server_t *server, const char *networks,
                                   const char *field) {
    if (networks == NULL)
        return refuse_networks("(NULL)");
    size_t most = strlen(networks) / 2 + 1;
    hafti_http_proxies_t *proxies = calloc(1, sizeof *proxies + most * sizeof proxies->networks[0]);
    char *text = strdup(networks);
    int code = proxies == NULL || text == NULL ? -ENOMEM : read_networks(proxies, text);
    if (code == 0 && field != NULL && (proxies->field = strdup(field)) == NULL)
        code = -ENOMEM;
    free(text);
    if (code != 0) {
        hafti_http_proxies_free(proxies);
        return code == -EINVAL ? refuse_networks(networks) : code;
    }
    hafti_http_proxies_free(server->proxies);
    server->proxies = proxies;
    return 0;
}

/* The address in an element of the field (RFC 7239, sections 4 and 6), without its port:
   "for=\"[2001:db8::1]:80\"", or "192.0.2.1". */
static bool read_element(hafti_http_text_t element, bool has_parameters,
                         char into[HAFTI_HTTP_ADDRESS]) {
    hafti_http_text_t part = element;
    bool is_found = !has_parameters;
    while (has_parameters && !is_found && hafti_http_next_part(&element, ';', &part))
        is_found = part.size > 4 && hafti_http_equal(part.bytes, "for=", 4);
    if (!is_found)
        return false;
    if (has_parameters)
        part = (hafti_http_text_t){part.bytes + 4, part.size - 4};
    if (part.size > 1 && *part.bytes == '"' && part.bytes[part.size - 1] == '"')
        part = (hafti_http_text_t){part.bytes + 1, part.size - 2};
    const char *colon = memchr(part.bytes, ':', part.size),
               *bracket = memchr(part.bytes, ']', part.size);
    if (part.size != 0 && *part.bytes == '[' && bracket != NULL)
        part = (hafti_http_text_t){part.bytes + 1, (size_t)(bracket - part.bytes) - 1};
    else if (colon != NULL &&
             memchr(colon + 1, ':', part.size - (size_t)(colon + 1 - part.bytes)) == NULL)
        part.size = (size_t)(colon - part.bytes);
    struct in6_addr address;
    if (part.size >= HAFTI_HTTP_ADDRESS)
        return false;
    memcpy(into, part.bytes, part.size);
    into[part.size] = '\0';
    if (!hafti_http_read_address(into, &address))
        return false;
    write_address(&address, into);
    return true;
}

/* Takes the last element off a list: the text behind its last comma. */
static hafti_http_text_t take_last(hafti_http_text_t *list) {
    const char *comma = memrchr(list->bytes, ',', list->size);
    size_t before = comma != NULL ? (size_t)(comma - list->bytes) : 0;
    hafti_http_text_t rest = {comma != NULL ? comma + 1 : list->bytes,
                              comma != NULL ? list->size - before - 1 : list->size},
                      last = {"", 0};
    list->size = before;
    hafti_http_next_part(&rest, ',', &last); /* without spaces around it */
    return last;
}

/* Each proxy appends the address of its own client. So addresses are true from the end of the list
   on, as long as the proxy that appended them is trusted. */
const char *haft_http_request_client_address(haft_http_request_t *request) {
    const hafti_http_proxies_t *proxies = request->server->proxies;
    const char *known = haft_http_request_peer(request), *text;
    if (proxies == NULL || proxies->field == NULL || !is_trusted(proxies, known) ||
        (text = haft_http_request_header(request, proxies->field)) == NULL)
        return known;
    hafti_http_text_t list = {text, strlen(text)};
    bool has_parameters = hafti_http_same_text(proxies->field, "Forwarded");
    char *address = haft_http_request_allocate(request, HAFTI_HTTP_ADDRESS);
    char next[HAFTI_HTTP_ADDRESS];
    while (address != NULL && list.size != 0 && is_trusted(proxies, known) &&
           read_element(take_last(&list), has_parameters, next))
        known = strcpy(address, next);
    return known;
}
