/* SPDX-License-Identifier: MIT */
/* The places of a simulated network, ports and paths: which socket is at one, and which are
   free. */
#include "simulation.h"

#include <netinet/in.h>
#include <search.h>
#include <string.h>
#include <sys/un.h>

enum { FIRST_PORT = 32768, LAST_PORT = 60999 }; /* that are chosen, as by Linux */

int hafti_io_place_of(const struct sockaddr *address, socklen_t size,
                      hafti_io_place_there_t *place) {
    static const socklen_t least[] = {
        [AF_UNIX] = offsetof(struct sockaddr_un, sun_path) + 1,
        [AF_INET] = sizeof(struct sockaddr_in),
        [AF_INET6] = offsetof(struct sockaddr_in6, sin6_scope_id), /* as the system has it */
    };
    *place = (hafti_io_place_there_t){.family = AF_UNSPEC};
    if (address == NULL)
        return -EFAULT;
    if (size < sizeof address->sa_family)
        return -EINVAL;
    sa_family_t family = address->sa_family;
    if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
        return -EAFNOSUPPORT;
    if (size < least[family] || (family == AF_UNIX && size > sizeof(struct sockaddr_un)))
        return -EINVAL;
    place->family = family;
    if (family == AF_UNIX) {
        /* To the end of the word; or all, of a name that is no path. */
        const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;
        size -= offsetof(struct sockaddr_un, sun_path);
        memcpy(place->path, path, path[0] != '\0' ? strnlen(path, size) : size);
        return 0;
    }
    /* The port is at the same place in both. */
    const struct sockaddr_in *v4 = (const void *)address;
    place->port = ntohs(v4->sin_port);
    if (family == AF_INET6)
        place->address = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    else
        place->address = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (family == AF_INET)
        memcpy(&place->address.s6_addr[12], &v4->sin_addr, sizeof v4->sin_addr);
    return 0;
}

bool hafti_io_is_some_address(const hafti_io_place_there_t *place) {
    static const struct in6_addr any_of_v4 = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    return !IN6_IS_ADDR_UNSPECIFIED(&place->address) &&
           memcmp(&place->address, &any_of_v4, sizeof any_of_v4) != 0;
}

hafti_io_place_there_t hafti_io_place_seen(const hafti_io_place_there_t *place,
                                           const hafti_io_place_there_t *to) {
    static const struct in6_addr own = IN6ADDR_LOOPBACK_INIT;
    static const struct in6_addr own_of_v4 = {
        .s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    hafti_io_place_there_t seen = *place;
    if (!hafti_io_is_some_address(&seen))
        seen.address = hafti_io_is_some_address(to) ? to->address
                       : to->family == AF_INET      ? own_of_v4
                                                    : own;
    return seen;
}

/* A name that is no path has no end, but zeros behind it. */
static socklen_t size_of_path(const char *path, size_t room) {
    size_t size = path[0] != '\0' ? strnlen(path, room - 1) + 1 : room;
    while (size != 0 && path[0] == '\0' && path[size - 1] == '\0')
        size--;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

void hafti_io_place_tell(const hafti_io_place_there_t *place, sa_family_t family, void *address,
                         socklen_t *size) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } all;
    socklen_t whole = 0;
    memset(&all, 0, sizeof all);
    all.any.sa_family = family;
    if (family == AF_INET) {
        whole = sizeof all.v4;
        all.v4.sin_port = htons(place->port);
        if (IN6_IS_ADDR_V4MAPPED(&place->address))
            memcpy(&all.v4.sin_addr, &place->address.s6_addr[12], sizeof all.v4.sin_addr);
        else if (!IN6_IS_ADDR_UNSPECIFIED(&place->address))
            all.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else if (family == AF_INET6) {
        whole = sizeof all.v6;
        all.v6.sin6_port = htons(place->port);
        all.v6.sin6_addr = place->address;
    } else if (family == AF_UNIX) {
        whole = size_of_path(place->path, sizeof place->path);
        memcpy(all.local.sun_path, place->path, sizeof place->path);
    }
    memcpy(address, &all, *size < whole ? *size : whole);
    *size = whole;
}

static int by_place(const void *one, const void *other) {
    const hafti_io_place_there_t *first = one, *second = other;
    bool is_path = first->family == AF_UNIX;
    if (is_path != (second->family == AF_UNIX))
        return is_path ? 1 : -1;
    return is_path ? memcmp(first->path, second->path, sizeof first->path)
                   : first->port - second->port;
}

hafti_io_object_t *hafti_io_object_at(void *const *places, const hafti_io_place_there_t *place) {
    hafti_io_place_there_t **found = tfind(place, places, by_place);
    return found != NULL ? HAFTI_IO_OWNER(*found, hafti_io_object_t, place) : NULL;
}

void hafti_io_stand_for_place(void *const *places, hafti_io_place_there_t *place) {
    hafti_io_place_there_t **found = tfind(place, places, by_place);
    if (found != NULL)
        *found = place;
}

/* One that none of these has; false: they have all. */
bool hafti_io_choose_port(hafti_io_simulated_state_t *state, void *const *places,
                          hafti_io_place_there_t *place) {
    for (int i = FIRST_PORT; i <= LAST_PORT; i++) {
        bool more = state->last_port >= FIRST_PORT && state->last_port < LAST_PORT;
        place->port = state->last_port = more ? (uint16_t)(state->last_port + 1) : FIRST_PORT;
        if (hafti_io_object_at(places, place) == NULL)
            return true;
    }
    return false;
}

int hafti_io_occupy(hafti_io_simulated_state_t *state, void **places,
                    hafti_io_place_there_t *place) {
    bool chosen = place->family != AF_UNIX && place->port == 0;
    if (chosen ? !hafti_io_choose_port(state, places, place)
               : hafti_io_object_at(places, place) != NULL)
        return -EADDRINUSE;
    return tsearch(place, places, by_place) != NULL ? 0 : -ENOMEM;
}

void hafti_io_vacate(void **places, const hafti_io_place_there_t *place) {
    tdelete(place, places, by_place);
}
