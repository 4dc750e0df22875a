/* SPDX-License-Identifier: MIT */
/* Who is on the other side of a connection. */
#include "internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* An address of IPv4 that came to a socket of IPv6 is written as one of IPv4. */
static void write_address(const struct sockaddr_storage *address, char *into) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, into, HAFTI_HTTP_ADDRESS);
    else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], into, HAFTI_HTTP_ADDRESS);
    else if (address->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &six->sin6_addr, into, HAFTI_HTTP_ADDRESS);
}

void hafti_http_address_of(int descriptor, char into[HAFTI_HTTP_ADDRESS]) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    *into = '\0';
    if (getpeername(descriptor, (struct sockaddr *)&address, &size) == 0)
        write_address(&address, into);
}

/* The kernel is asked once a connection. */
const char *haft_http_peer(haft_http_request_t *request) {
    hafti_http_stream_t *stream = request->message.stream;
    if (!stream->knows_peer)
        hafti_http_address_of(stream->descriptor, stream->peer);
    stream->knows_peer = true;
    return stream->peer;
}
