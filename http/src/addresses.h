/* SPDX-License-Identifier: MIT */
/* Addresses and networks, which peer.c reads: of the proxies that a server trusts, and of the
   servers that a client asks without its proxy. */
#ifndef HAFTI_HTTP_ADDRESSES_H
#define HAFTI_HTTP_ADDRESSES_H

#include <netinet/in.h>
#include <stdbool.h>

/* All addresses are of IPv6; one of IPv4 is mapped. */
typedef struct {
    struct in6_addr address;
    int bits;
} hafti_http_network_t;

bool hafti_http_read_address(const char *text, struct in6_addr *address);
/* "10.0.0.0/8", or an address; changes the text. */
bool hafti_http_read_network(char *text, hafti_http_network_t *network);
bool hafti_http_is_in(const struct in6_addr *address, const hafti_http_network_t *network);
bool hafti_http_is_loopback(const struct in6_addr *address);

#endif
