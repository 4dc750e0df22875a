/* SPDX-License-Identifier: MIT */
/*
 * The system of a run that has a tape, beside the run's operations: each call is made and kept, or,
 * in a replay, answered. The number of an answer is the call's result; the bytes are those that the
 * call has written.
 */
#include "addresses.h"

#include <stdlib.h>

/* A call that writes `size` bytes to `into`, unless it fails or `into` is NULL. */
#define TAPED_INTO(kind, descriptor, into, size, call)                                             \
    const hafti_io_entry_t *entry;                                                                 \
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_##kind, descriptor, &entry);   \
    if (entry != NULL)                                                                             \
        return (int)hafti_io_tape_result(entry, into, size);                                       \
    int result = call;                                                                             \
    return (int)hafti_io_tape_ends(&taped, result, into, result >= 0 && (into) != NULL ? (size) : 0)
#define TAPED(kind, descriptor, call) TAPED_INTO(kind, descriptor, (void *)NULL, 0, call)

int hafti_io_taped_descriptor(int descriptor) {
    hafti_io_tape_occupy(hafti_io_worker()->tape, descriptor);
    return descriptor;
}

/* Two descriptors, in a replay. */
static int new_pair(const hafti_io_entry_t *entry, int ends[2]) {
    int code = (int)hafti_io_tape_result(entry, ends, 2 * sizeof *ends);
    for (int i = 0; code == 0 && i < 2; i++)
        hafti_io_taped_descriptor(ends[i]);
    return code;
}
#define TAPED_PAIR(kind, ends, call)                                                               \
    const hafti_io_entry_t *entry;                                                                 \
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_##kind, -1, &entry);           \
    if (entry != NULL)                                                                             \
        return new_pair(entry, ends);                                                              \
    int code = call;                                                                               \
    return (int)hafti_io_tape_ends(&taped, code, ends, code == 0 ? 2 * sizeof *(ends) : 0)

/* ---- Sockets ---- */

static int taped_pipe2(int ends[2], int flags) {
    TAPED_PAIR(PIPE, ends, hafti_io_machine.pipe2(ends, flags));
}
static int taped_socketpair(int domain, int type, int protocol, int ends[2]) {
    TAPED_PAIR(SOCKET_PAIR, ends, hafti_io_machine.socketpair(domain, type, protocol, ends));
}
static int taped_socket(int domain, int type, int protocol) {
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_SOCKET, -1, &entry);
    if (entry != NULL)
        return hafti_io_taped_descriptor((int)hafti_io_tape_result(entry, NULL, 0));
    return (int)hafti_io_tape_ends(&taped, hafti_io_machine.socket(domain, type, protocol), NULL,
                                   0);
}
static int taped_bind(int socket, const struct sockaddr *address, socklen_t size) {
    TAPED(BIND, socket, hafti_io_machine.bind(socket, address, size));
}
static int taped_listen(int socket, int backlog) {
    TAPED(LISTEN, socket, hafti_io_machine.listen(socket, backlog));
}
static int taped_shutdown(int socket, int how) {
    TAPED(SHUTDOWN, socket, hafti_io_machine.shutdown(socket, how));
}
static int taped_setsockopt(int socket, int level, int option, const void *value, socklen_t size) {
    TAPED(SET_OPTION, socket, hafti_io_machine.setsockopt(socket, level, option, value, size));
}
/* (The caller has a whole int, or a whole address: its size is not kept.) */
static int taped_getsockopt(int socket, int level, int option, void *value, socklen_t *size) {
    TAPED_INTO(GET_OPTION, socket, value, *size,
               hafti_io_machine.getsockopt(socket, level, option, value, size));
}
static int taped_getsockname(int socket, struct sockaddr *address, socklen_t *size) {
    TAPED_INTO(NAME, socket, address, *size, hafti_io_machine.getsockname(socket, address, size));
}

/* ---- The names in a directory: each entry, as long as it is, after its size (4 bytes) ---- */

static uint32_t size_of_name(const struct dirent *entry) {
    return (uint32_t)(offsetof(struct dirent, d_name) + strlen(entry->d_name) + 1);
}

static void free_names(struct dirent **names, int count) {
    while (count-- > 0)
        free(names[count]);
    free(names);
}

int hafti_io_taped_names(const hafti_io_entry_t *answer, struct dirent ***entries) {
    int count = (int)hafti_io_tape_result(answer, NULL, 0);
    if (count < 0)
        return count;
    struct dirent **names = calloc((size_t)count + 1, sizeof *names);
    const unsigned char *at = answer->bytes, *end = at + answer->size;
    for (int i = 0; names != NULL && i < count; i++) {
        uint32_t size = 0;
        if (end - at >= (ptrdiff_t)sizeof size)
            memcpy(&size, at, sizeof size);
        at += sizeof size;
        names[i] = size != 0 && end - at >= (ptrdiff_t)size ? calloc(1, sizeof **names) : NULL;
        if (names[i] == NULL) {
            free_names(names, i);
            return -ENOMEM;
        }
        memcpy(names[i], at, size < sizeof **names ? size : sizeof **names);
        at += size;
    }
    *entries = names;
    return names != NULL ? count : -ENOMEM;
}

int hafti_io_tape_names(hafti_io_taped_call_t *call, int count, struct dirent **entries) {
    hafti_io_tape_t *tape = call->tape;
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += sizeof(uint32_t) + size_of_name(entries[i]);
    call->runner->taped = false;
    call->tape = NULL;
    hafti_io_keep_head(tape, call->kind, -1, count, size);
    for (int i = 0; i < count; i++) {
        uint32_t own = size_of_name(entries[i]);
        hafti_io_keep_bytes(tape, &own, sizeof own);
        hafti_io_keep_bytes(tape, entries[i], own);
    }
    return count;
}

/* ---- The table ---- */

static haft_io_calls_t taped_calls;

/* Calls on files are the machine's: files.c keeps them where they come back from the pool. */
static void make_table(void) {
    taped_calls = hafti_io_machine;
    taped_calls.pipe2 = taped_pipe2;
    taped_calls.socket = taped_socket;
    taped_calls.socketpair = taped_socketpair;
    taped_calls.bind = taped_bind;
    taped_calls.listen = taped_listen;
    taped_calls.shutdown = taped_shutdown;
    taped_calls.getsockname = taped_getsockname;
    taped_calls.getsockopt = taped_getsockopt;
    taped_calls.setsockopt = taped_setsockopt;
}

const haft_io_calls_t *hafti_io_taped_calls(void) {
    static pthread_once_t is_made = PTHREAD_ONCE_INIT;
    pthread_once(&is_made, make_table);
    return &taped_calls;
}

/* ---- The addresses of a name ---- */

typedef struct address_head {
    int32_t flags, family, type, protocol;
    uint32_t size;
} address_head_t;

int hafti_io_tape_addresses(hafti_io_taped_call_t *call, int code,
                            const struct addrinfo *addresses) {
    hafti_io_tape_t *tape = call->tape;
    size_t size = 0;
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next)
        size += sizeof(address_head_t) + one->ai_addrlen;
    const char *name = addresses != NULL ? addresses->ai_canonname : NULL;
    size_t name_size = name != NULL ? strlen(name) + 1 : 0;
    call->runner->taped = false;
    call->tape = NULL;
    hafti_io_keep_head(tape, call->kind, call->descriptor, code, size + name_size);
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next) {
        address_head_t head = {one->ai_flags, one->ai_family, one->ai_socktype, one->ai_protocol,
                               one->ai_addrlen};
        hafti_io_keep_bytes(tape, &head, sizeof head);
        hafti_io_keep_bytes(tape, one->ai_addr, one->ai_addrlen);
    }
    hafti_io_keep_bytes(tape, name, name_size);
    return code;
}

/* glibc has each address behind its struct, in one piece of memory. */
static struct addrinfo *address_new(const address_head_t *head, const unsigned char *bytes) {
    struct addrinfo *one = calloc(1, sizeof *one + head->size);
    if (one == NULL)
        return NULL;
    *one = (struct addrinfo){.ai_flags = head->flags,
                             .ai_family = head->family,
                             .ai_socktype = head->type,
                             .ai_protocol = head->protocol,
                             .ai_addrlen = head->size,
                             .ai_addr = (struct sockaddr *)(void *)(one + 1)};
    memcpy(one + 1, bytes, head->size);
    return one;
}

int hafti_io_taped_addresses(const hafti_io_entry_t *entry, struct addrinfo **result) {
    if (entry->result != 0)
        return (int)hafti_io_tape_result(entry, NULL, 0);
    const unsigned char *at = entry->bytes, *end = at + entry->size;
    struct addrinfo *first = NULL, **last = &first;
    address_head_t head;
    while (end - at >= (ptrdiff_t)sizeof head) {
        memcpy(&head, at, sizeof head);
        if (head.size > (size_t)(end - at) - sizeof head)
            break;
        *last = address_new(&head, at + sizeof head);
        if (*last == NULL)
            return -ENOMEM;
        last = &(*last)->ai_next;
        at += sizeof head + head.size;
    }
    if (first != NULL && at != end && end[-1] == '\0')
        first->ai_canonname = strdup((const char *)at);
    *result = first;
    return 0;
}
