/* SPDX-License-Identifier: MIT */
/* How many connections each client has: a table by address, of IPv6 by its first 64 bits, which
   one client may have all of. */
#include "addresses.h"
#include "internal.h"

#include <netinet/in.h>
#include <stdlib.h>

enum { BUCKETS = 1024 };

struct hafti_http_client {
    hafti_http_client_t *next;
    struct in6_addr address;
    size_t connections;
};

/* Made by the first connection that is counted. */
struct hafti_http_clients {
    uint64_t seed; /* so that nobody can choose addresses that share a bucket */
    hafti_http_client_t *buckets[BUCKETS];
};

static hafti_http_client_t **bucket_of(hafti_http_clients_t *clients,
                                       const struct in6_addr *address) {
    uint64_t words[2];
    memcpy(words, address, sizeof words);
    uint64_t hash = clients->seed;
    for (size_t i = 0; i < 2; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return &clients->buckets[hash % BUCKETS];
}

static hafti_http_client_t *find_or_make(hafti_http_clients_t *clients,
                                         const struct in6_addr *address) {
    hafti_http_client_t **bucket = bucket_of(clients, address), *client = *bucket;
    while (client != NULL && memcmp(&client->address, address, sizeof *address) != 0)
        client = client->next;
    if (client == NULL && (client = malloc(sizeof *client)) != NULL) {
        *client = (hafti_http_client_t){*bucket, *address, 0};
        *bucket = client;
    }
    return client;
}

static hafti_http_clients_t *make(void) {
    hafti_http_clients_t *clients = calloc(1, sizeof *clients);
    if (clients != NULL && haft_io_random(&clients->seed, sizeof clients->seed) != 0)
        clients->seed = (uintptr_t)clients;
    return clients;
}

/* Where there is no memory to count a connection, it is taken. */
bool hafti_http_clients_enter(haft_http_server_t *server, int descriptor,
                              hafti_http_client_t **client) {
    struct in6_addr address;
    *client = NULL;
    if (!hafti_http_peer_of(descriptor, &address) ||
        (!server->limits_loopback && hafti_http_is_loopback(&address)) ||
        hafti_http_is_proxy(server->proxies, &address))
        return true;
    if (!IN6_IS_ADDR_V4MAPPED(&address))
        memset(&address.s6_addr[8], 0, 8);
    pthread_mutex_lock(&server->mutex);
    if (server->clients == NULL)
        server->clients = make();
    hafti_http_client_t *found =
        server->clients != NULL ? find_or_make(server->clients, &address) : NULL;
    bool has_room = found == NULL || found->connections < server->limits.connections_of_client;
    if (found != NULL && has_room) {
        found->connections++;
        *client = found;
    }
    pthread_mutex_unlock(&server->mutex);
    return has_room;
}

void hafti_http_clients_leave(haft_http_server_t *server, hafti_http_client_t *client) {
    if (client == NULL)
        return;
    pthread_mutex_lock(&server->mutex);
    bool is_last = --client->connections == 0;
    if (is_last) {
        hafti_http_client_t **at = bucket_of(server->clients, &client->address);
        while (*at != client)
            at = &(*at)->next;
        *at = client->next;
    }
    pthread_mutex_unlock(&server->mutex);
    if (is_last)
        free(client);
}
