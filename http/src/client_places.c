/* SPDX-License-Identifier: MIT */
/*
 * How many connections a client has to an origin: each open connection holds a place until it is
 * closed or kept. A task that gets a place takes a connection that is kept, if there is one. So a
 * new one is only made where none is kept, and there are never more than there are places.
 */
#include "client.h"

#include <stdlib.h>

struct hafti_http_places {
    hafti_http_places_t *next;
    hafti_http_url_t url; /* its texts are gone */
    size_t users;         /* tasks that have a place or wait for one; by the client's mutex */
    haft_io_semaphore_t left;
};

static hafti_http_places_t *use_places(haft_http_client_t *client, const hafti_http_url_t *url) {
    pthread_mutex_lock(&client->mutex);
    hafti_http_places_t *places = client->places;
    while (places != NULL && !hafti_http_same_origin(&places->url, url))
        places = places->next;
    if (places == NULL && (places = calloc(1, sizeof *places)) != NULL) {
        places->url = *url;
        places->left.count = client->connections;
        places->next = client->places;
        client->places = places;
    }
    if (places != NULL)
        places->users++;
    pthread_mutex_unlock(&client->mutex);
    return places;
}

static void drop_places(haft_http_client_t *client, hafti_http_places_t *places) {
    pthread_mutex_lock(&client->mutex);
    bool is_unused = --places->users == 0;
    if (is_unused) {
        hafti_http_places_t **at = &client->places;
        while (*at != places)
            at = &(*at)->next;
        *at = places->next;
    }
    pthread_mutex_unlock(&client->mutex);
    if (is_unused)
        free(places);
}

typedef struct {
    haft_http_client_t *client;
    hafti_http_places_t *places; /* NULL: it has got its place */
} waiting_t;

static void stop_waiting(const waiting_t *waiting) {
    if (waiting->places != NULL)
        drop_places(waiting->client, waiting->places);
}

int hafti_http_places_enter(haft_http_client_t *client, const hafti_http_url_t *url,
                            hafti_http_places_t **result) {
    *result = NULL;
    if (client->connections == 0)
        return 0;
    hafti_http_places_t *places = use_places(client, url);
    __attribute__((cleanup(stop_waiting))) waiting_t waiting = {client, places};
    int code = places != NULL ? haft_io_semaphore_acquire(&places->left) : -ENOMEM;
    if (code == 0) {
        waiting.places = NULL;
        *result = places;
    }
    return code;
}

void hafti_http_places_leave(haft_http_client_t *client, hafti_http_places_t **places) {
    if (*places == NULL)
        return;
    haft_io_semaphore_release(&(*places)->left);
    drop_places(client, *places);
    *places = NULL;
}
