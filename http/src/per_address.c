/* SPDX-License-Identifier: MIT */
/* Counts the connections of each address; of IPv6, of its first 64 bits, because one peer may have
   all addresses that begin with them. */
#include "addresses.h"
#include "internal.h"

#include <netinet/in.h>
#include <stdlib.h>

enum { BUCKETS = 1024 };

struct hafti_http_address {
    hafti_http_address_t *next;
    struct in6_addr address;
    size_t connections;
};

/* The counts, made by the first connection that is counted. */
struct hafti_http_addresses {
    uint64_t seed; /* so that nobody can choose addresses that share a bucket */
    hafti_http_address_t *buckets[BUCKETS];
};

static hafti_http_address_t **bucket_of(hafti_http_addresses_t *table,
                                        const struct in6_addr *address) {
    uint64_t words[2];
    memcpy(words, address, sizeof words);
    uint64_t hash = table->seed;
    for (size_t i = 0; i < 2; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return &table->buckets[hash % BUCKETS];
}

static hafti_http_address_t *find_or_make(hafti_http_addresses_t *table,
                                          const struct in6_addr *address) {
    hafti_http_address_t **bucket = bucket_of(table, address), *entry = *bucket;
    while (entry != NULL && memcmp(&entry->address, address, sizeof *address) != 0)
        entry = entry->next;
    if (entry == NULL && (entry = malloc(sizeof *entry)) != NULL) {
        *entry = (hafti_http_address_t){*bucket, *address, 0};
        *bucket = entry;
    }
    return entry;
}

static hafti_http_addresses_t *make(void) {
    hafti_http_addresses_t *table = calloc(1, sizeof *table);
    if (table != NULL && haft_io_random(&table->seed, sizeof table->seed) != 0)
        table->seed = (uintptr_t)table;
    return table;
}

/* Counts a connection. It is accepted if there is no memory to count it. */
bool hafti_http_addresses_enter(haft_http_server_t *server, int descriptor,
                                hafti_http_address_t **entry) {
    struct in6_addr address;
    *entry = NULL;
    if (!hafti_http_peer_of(descriptor, &address) ||
        (!server->limits_loopback && hafti_http_is_loopback(&address)) ||
        hafti_http_is_proxy(server->proxies, &address))
        return true;
    if (!IN6_IS_ADDR_V4MAPPED(&address))
        memset(&address.s6_addr[8], 0, 8);
    pthread_mutex_lock(&server->mutex);
    if (server->addresses == NULL)
        server->addresses = make();
    hafti_http_address_t *found =
        server->addresses != NULL ? find_or_make(server->addresses, &address) : NULL;
    bool has_room = found == NULL || found->connections < server->limits.connections_of_client;
    if (found != NULL && has_room) {
        found->connections++;
        *entry = found;
    }
    pthread_mutex_unlock(&server->mutex);
    return has_room;
}

void hafti_http_addresses_leave(haft_http_server_t *server, hafti_http_address_t *entry) {
    if (entry == NULL)
        return;
    pthread_mutex_lock(&server->mutex);
    bool is_last = --entry->connections == 0;
    if (is_last) {
        hafti_http_address_t **at = bucket_of(server->addresses, &entry->address);
        while (*at != entry)
            at = &(*at)->next;
        *at = entry->next;
    }
    pthread_mutex_unlock(&server->mutex);
    if (is_last)
        free(entry);
}
