/* SPDX-License-Identifier: MIT */
/*
 * The system of a run that has a tape, beside the run's operations: each call is made and kept, or,
 * in a replay, answered. The number of an answer is the call's result; the bytes are those that the
 * call has written.
 */
#include "../system.h"
#include "addresses.h"

#include <stdlib.h>

/* A call that writes `size` bytes to `into`, or none (NULL) if it has failed. */
#define TAPED_INTO(kind, descriptor, into, size, call)                                             \
    const hafti_io_entry_t *entry;                                                                 \
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_##kind, descriptor, &entry);   \
    if (entry != NULL)                                                                             \
        return (__typeof__(call))hafti_io_tape_result(entry, into, size);                          \
    int64_t result = (int64_t)call;                                                                \
    return (__typeof__(call))hafti_io_tape_ends(&taped, result, into,                              \
                                                result >= 0 && (into) != NULL ? (size) : 0)
/* A call that gives a descriptor. */
#define TAPED_NEW(kind, call)                                                                      \
    const hafti_io_entry_t *entry;                                                                 \
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_##kind, -1, &entry);           \
    return entry != NULL ? new_descriptor((int)hafti_io_tape_result(entry, NULL, 0))               \
                         : (int)hafti_io_tape_ends(&taped, call, NULL, 0)
#define TAPED(kind, descriptor, call) TAPED_INTO(kind, descriptor, (void *)NULL, 0, call)

static int new_descriptor(int descriptor) {
    hafti_io_tape_occupy(hafti_io_worker()->tape, descriptor);
    return descriptor;
}

/* Two descriptors, in a replay. */
static int new_pair(const hafti_io_entry_t *entry, int ends[2]) {
    int code = (int)hafti_io_tape_result(entry, ends, 2 * sizeof *ends);
    for (int i = 0; code == 0 && i < 2; i++)
        new_descriptor(ends[i]);
    return code;
}
#define TAPED_PAIR(kind, ends, call)                                                               \
    const hafti_io_entry_t *entry;                                                                 \
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_##kind, -1, &entry);           \
    if (entry != NULL)                                                                             \
        return new_pair(entry, ends);                                                              \
    int code = call;                                                                               \
    return (int)hafti_io_tape_ends(&taped, code, ends, code == 0 ? 2 * sizeof *(ends) : 0)

/* ---- The network ---- */

static int taped_pipe(int ends[2]) {
    TAPED_PAIR(PIPE, ends, hafti_io_real_network.pipe(ends));
}
static int taped_socket(int domain, int type, int protocol) {
    TAPED_NEW(SOCKET, hafti_io_real_network.socket(domain, type, protocol));
}
static int taped_socket_pair(int domain, int type, int protocol, int ends[2]) {
    TAPED_PAIR(SOCKET_PAIR, ends, hafti_io_real_network.socket_pair(domain, type, protocol, ends));
}
static int taped_bind(int socket, const struct sockaddr *address, socklen_t size) {
    TAPED(BIND, socket, hafti_io_real_network.bind(socket, address, size));
}
static int taped_listen(int socket, const struct sockaddr *address, socklen_t size,
                        const haft_io_listen_options_t *options) {
    TAPED(LISTEN, socket, hafti_io_real_network.listen(socket, address, size, options));
}
static int taped_port(int socket) {
    TAPED(PORT, socket, hafti_io_real_network.port(socket));
}
static int taped_shutdown(int socket, int how) {
    TAPED(SHUTDOWN, socket, hafti_io_real_network.shutdown(socket, how));
}
static int real_of_itself(int descriptor) {
    return descriptor;
}
static const char *host_itself(const char *host, int family) {
    (void)family;
    return host;
}

/* ---- Files ---- */

static int taped_open(const char *path, int flags, mode_t mode) {
    TAPED_NEW(OPEN, hafti_io_real_files.open(path, flags, mode));
}
static ssize_t taped_pread(int file, void *buffer, size_t size, int64_t offset) {
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_PREAD, file, &entry);
    if (entry != NULL)
        return hafti_io_tape_result(entry, buffer, size);
    ssize_t got = hafti_io_real_files.pread(file, buffer, size, offset);
    return hafti_io_tape_ends(&taped, got, buffer, got > 0 ? (size_t)got : 0);
}
static ssize_t taped_pwrite(int file, const void *buffer, size_t size, int64_t offset) {
    TAPED(PWRITE, file, hafti_io_real_files.pwrite(file, buffer, size, offset));
}
static int taped_fsync(int file) {
    TAPED(FSYNC, file, hafti_io_real_files.fsync(file));
}
static int64_t taped_seek(int file, int64_t by) {
    TAPED(SEEK, file, hafti_io_real_files.seek(file, by));
}
static int taped_mkdir(const char *path, mode_t mode) {
    TAPED(MKDIR, -1, hafti_io_real_files.mkdir(path, mode));
}
static int taped_remove(const char *path) {
    TAPED(REMOVE, -1, hafti_io_real_files.remove(path));
}
static int taped_rename(const char *from, const char *to) {
    TAPED(RENAME, -1, hafti_io_real_files.rename(from, to));
}
static int taped_stat(const char *path, struct stat *status) {
    TAPED_INTO(STAT, -1, status, sizeof *status, hafti_io_real_files.stat(path, status));
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

static int give_names(const hafti_io_entry_t *answer, struct dirent ***entries) {
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

static int taped_list(const char *path, struct dirent ***entries) {
    const hafti_io_entry_t *answer;
    HAFTI_IO_TAPED_CALL taped = hafti_io_tape_begins(HAFTI_IO_TAPED_LIST, -1, &answer);
    if (answer != NULL)
        return give_names(answer, entries);
    int count = hafti_io_real_files.list(path, entries);
    hafti_io_tape_t *tape = taped.tape;
    if (tape == NULL || count < 0)
        return (int)hafti_io_tape_ends(&taped, count, NULL, 0);
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += sizeof(uint32_t) + size_of_name((*entries)[i]);
    taped.runner->taped = false;
    taped.tape = NULL;
    tape = taped.runner->worker->tape;
    hafti_io_keep_head(tape, HAFTI_IO_TAPED_LIST, -1, count, size);
    for (int i = 0; i < count; i++) {
        uint32_t own = size_of_name((*entries)[i]);
        hafti_io_keep_bytes(tape, &own, sizeof own);
        hafti_io_keep_bytes(tape, (*entries)[i], own);
    }
    return count;
}

static bool is_stream(int descriptor) {
    return hafti_io_is_stream(descriptor);
}

const hafti_io_system_t hafti_io_taped = {
    .is_stream = is_stream,
    .network = {.pipe = taped_pipe,
                .socket = taped_socket,
                .socket_pair = taped_socket_pair,
                .bind = taped_bind,
                .listen = taped_listen,
                .port = taped_port,
                .shutdown = taped_shutdown,
                .real_of = real_of_itself,
                .host_of = host_itself},
    .files = {.open = taped_open,
              .pread = taped_pread,
              .pwrite = taped_pwrite,
              .fsync = taped_fsync,
              .seek = taped_seek,
              .list = taped_list,
              .mkdir = taped_mkdir,
              .remove = taped_remove,
              .rename = taped_rename,
              .stat = taped_stat},
};

/* ---- The addresses of a name ---- */

typedef struct address_head {
    int32_t flags, family, type, protocol;
    uint32_t size;
} address_head_t;

int hafti_io_tape_addresses(hafti_io_taped_call_t *call, int code,
                            const struct addrinfo *addresses) {
    hafti_io_tape_t *tape = call->runner->worker->tape;
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
