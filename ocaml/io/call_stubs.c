/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait, on a stack of a task of C: files, names, connects, processes. A call has copies
 * of its texts; its bytes are in memory that the OCaml task keeps, which waits to the end. Results
 * that are more than a number are made into values of OCaml when the loop has taken the call.
 */
#include "stubs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CAML_INTERNALS
#include <caml/signals.h>
#undef CAML_INTERNALS
#include <caml/socketaddr.h>

/* In the order of the constructors of `kind` in haft_io__calls.ml. */
enum kind {
    OPEN,      /* path, flags, mode */
    READ,      /* descriptor, memory */
    WRITE,     /* descriptor, memory */
    READ_AT,   /* descriptor, memory, offset */
    WRITE_AT,  /* descriptor, memory, offset */
    SYNC,      /* descriptor */
    LIST,      /* path */
    MAKE,      /* path, mode */
    REMOVE,    /* path */
    RENAME,    /* path, other */
    STATUS,    /* path */
    RESOLVE,   /* host, service */
    CONNECT,   /* descriptor, address */
    START,     /* arguments, environment, folder, streams */
    WAIT_CHILD /* process */
};

typedef struct call {
    haft_ocaml_work_t work;
    enum kind kind;
    int descriptor, mode;
    int64_t offset;
    char *path, *other;
    void *memory;
    size_t size;
    union sock_addr_union address;
    socklen_t address_size;
    char **arguments, **environment; /* each list in one block */
    int streams[3];
    struct dirent **entries;
    struct stat status;
    struct addrinfo *addresses;
    int ended; /* the status of a child */
} call_t;

static int flags_of(int bits) {
    static const int flags[] = {O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY};
    int all = O_CLOEXEC;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if ((bits >> i & 1) != 0)
            all |= flags[i];
    return all;
}

static intptr_t do_call(haft_ocaml_work_t *work) {
    call_t *call = (call_t *)(void *)work;
    switch (call->kind) {
    case OPEN:
        return haft_io_open(call->path, flags_of(call->descriptor), (mode_t)call->mode);
    case READ:
        return haft_io_read(call->descriptor, call->memory, call->size);
    case WRITE:
        return haft_io_write(call->descriptor, call->memory, call->size);
    case READ_AT:
        return haft_io_pread(call->descriptor, call->memory, call->size, call->offset);
    case WRITE_AT:
        return haft_io_pwrite(call->descriptor, call->memory, call->size, call->offset);
    case SYNC:
        return haft_io_fsync(call->descriptor);
    case LIST:
        return haft_io_list_directory(call->path, &call->entries);
    case MAKE:
        return haft_io_mkdir(call->path, (mode_t)call->mode);
    case REMOVE:
        return haft_io_remove(call->path);
    case RENAME:
        return haft_io_rename(call->path, call->other);
    case STATUS:
        return haft_io_stat(call->path, &call->status);
    case RESOLVE:
        return haft_io_resolve(call->path, call->other[0] == '\0' ? NULL : call->other, NULL,
                               &call->addresses);
    case CONNECT:
        return haft_io_connect(call->descriptor, &call->address.s_gen, call->address_size);
    case START:
        return haft_io_process_start_with(
            &(haft_io_process_options_t){
                .streams = call->streams,
                .environment = (const char *const *)call->environment,
                .folder = call->other[0] == '\0' ? NULL : call->other,
            },
            (const char *const *)call->arguments);
    case WAIT_CHILD:
        return haft_io_process_wait(call->descriptor, &call->ended);
    }
    return -EINVAL;
}

static void free_call(haft_ocaml_work_t *work) {
    call_t *call = (call_t *)(void *)work;
    if (call->entries != NULL)
        for (intptr_t i = 0; i < work->result; i++)
            free(call->entries[i]);
    free(call->entries);
    if (call->addresses != NULL)
        freeaddrinfo(call->addresses);
    free(call->arguments);
    free(call->environment);
    free(call->path);
    free(call->other);
    free(call);
}

static char **list_of(value texts) {
    size_t count = Wosize_val(texts), size = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++)
        size += caml_string_length(Field(texts, i)) + 1;
    char **list = malloc(size);
    if (list == NULL)
        return NULL;
    char *place = (char *)(list + count + 1);
    for (size_t i = 0; i < count; i++) {
        list[i] = strcpy(place, String_val(Field(texts, i)));
        place += strlen(place) + 1;
    }
    list[count] = NULL;
    return list;
}

static int begin(call_t *call, value slot) {
    call->work.work = do_call;
    call->work.free = free_call;
    return haft_ocaml_io_begin(&call->work, Long_val(slot));
}

value haft_ocaml_io_call(value given, value slot);
/* `given` is a record: kind, descriptor, mode, offset, path, other, memory, at, size. */
value haft_ocaml_io_call(value given, value slot) {
    CAMLparam1(given); /* a simulation may let another task go first */
    call_t *call = calloc(1, sizeof *call);
    if (call == NULL)
        CAMLreturn(Val_long(-ENOMEM));
    call->kind = (enum kind)Long_val(Field(given, 0));
    call->descriptor = (int)Long_val(Field(given, 1));
    call->mode = (int)Long_val(Field(given, 2));
    call->offset = Long_val(Field(given, 3));
    call->path = strdup(String_val(Field(given, 4)));
    call->other = strdup(String_val(Field(given, 5)));
    call->memory = HAFT_OCAML_MEMORY(Field(given, 6)) + Long_val(Field(given, 7));
    call->size = (size_t)Long_val(Field(given, 8));
    if (call->path == NULL || call->other == NULL) {
        free_call(&call->work);
        CAMLreturn(Val_long(-ENOMEM));
    }
    CAMLreturn(Val_long(begin(call, slot)));
}

value haft_ocaml_io_connect(value descriptor, value address, value slot);
value haft_ocaml_io_connect(value descriptor, value address, value slot) {
    call_t *call = calloc(1, sizeof *call);
    if (call == NULL)
        return Val_long(-ENOMEM);
    call->kind = CONNECT;
    call->descriptor = (int)Long_val(descriptor);
    socklen_param_type size;
    get_sockaddr(address, &call->address, &size);
    call->address_size = size;
    return Val_long(begin(call, slot));
}

value haft_ocaml_io_start(value given, value slot);
/* `given` is a record: arguments, environment, folder, streams. */
value haft_ocaml_io_start(value given, value slot) {
    call_t *call = calloc(1, sizeof *call);
    if (call == NULL)
        return Val_long(-ENOMEM);
    call->kind = START;
    call->arguments = list_of(Field(given, 0));
    call->environment = list_of(Field(given, 1));
    call->other = strdup(String_val(Field(given, 2)));
    for (int i = 0; i < 3; i++)
        call->streams[i] = (int)Long_val(Field(Field(given, 3), i));
    if (call->arguments == NULL || call->environment == NULL || call->other == NULL) {
        free_call(&call->work);
        return Val_long(-ENOMEM);
    }
    return Val_long(begin(call, slot));
}

/* ---- Results ---- */

static const call_t *taken_call(void) {
    return (const call_t *)(const void *)haft_ocaml_io_taken();
}

value haft_ocaml_io_taken_names(value unit);
value haft_ocaml_io_taken_names(value unit) {
    CAMLparam1(unit);
    CAMLlocal2(names, name);
    const call_t *call = taken_call();
    names = caml_alloc((mlsize_t)call->work.result, 0);
    for (intptr_t i = 0; i < call->work.result; i++) {
        name = caml_copy_string(call->entries[i]->d_name);
        Store_field(names, i, name);
    }
    CAMLreturn(names);
}

value haft_ocaml_io_taken_addresses(value unit);
/* Each with the type of its socket: 0: a stream; 1: datagrams; 2: another. */
value haft_ocaml_io_taken_addresses(value unit) {
    CAMLparam1(unit);
    CAMLlocal4(list, cell, pair, address);
    list = Val_emptylist;
    for (const struct addrinfo *entry = taken_call()->addresses; entry != NULL;
         entry = entry->ai_next) {
        union sock_addr_union it;
        if (entry->ai_addrlen > sizeof it ||
            (entry->ai_family != AF_INET && entry->ai_family != AF_INET6))
            continue;
        memcpy(&it, entry->ai_addr, entry->ai_addrlen);
        address = alloc_sockaddr(&it, entry->ai_addrlen, -1);
        pair = caml_alloc_tuple(2);
        Store_field(pair, 0, address);
        Store_field(pair, 1,
                    Val_long(entry->ai_socktype == SOCK_STREAM  ? 0
                             : entry->ai_socktype == SOCK_DGRAM ? 1
                                                                : 2));
        cell = caml_alloc_small(2, Tag_cons);
        Field(cell, 0) = pair;
        Field(cell, 1) = list;
        list = cell;
    }
    CAMLreturn(list); /* the last first */
}

static double time_of(const struct timespec *time) {
    return (double)time->tv_sec + (double)time->tv_nsec / 1e9;
}

value haft_ocaml_io_taken_status(value unit);
/* Integers (kind: by its bits of S_IFMT; mode, links, owner, group, device, number, size), then
   times. */
value haft_ocaml_io_taken_status(value unit) {
    CAMLparam1(unit);
    CAMLlocal2(status, number);
    const struct stat *it = &taken_call()->status;
    const intptr_t numbers[] = {(intptr_t)(it->st_mode & S_IFMT) >> 12,
                                (intptr_t)(it->st_mode & 07777),
                                (intptr_t)it->st_nlink,
                                (intptr_t)it->st_uid,
                                (intptr_t)it->st_gid,
                                (intptr_t)it->st_dev,
                                (intptr_t)it->st_ino,
                                (intptr_t)it->st_size};
    const double times[] = {time_of(&it->st_atim), time_of(&it->st_mtim), time_of(&it->st_ctim)};
    status = caml_alloc_tuple(11);
    for (int i = 0; i < 8; i++)
        Store_field(status, i, Val_long(numbers[i]));
    for (int i = 0; i < 3; i++) {
        number = caml_copy_double(times[i]);
        Store_field(status, 8 + i, number);
    }
    CAMLreturn(status);
}

value haft_ocaml_io_taken_ended(value unit);
/* The exit code of a child, or OCaml's number of the signal that has ended it, plus 100000. */
value haft_ocaml_io_taken_ended(value unit) {
    (void)unit;
    int ended = taken_call()->ended;
    return Val_long(WIFSIGNALED(ended) ? 100000 + caml_rev_convert_signal_number(WTERMSIG(ended))
                                       : WEXITSTATUS(ended));
}
