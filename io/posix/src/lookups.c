/* SPDX-License-Identifier: MIT */
/*
 * Lookups of hosts, users, groups, services and protocols, which are made by the pool: modules of
 * the system may query servers, under locks of the C library that belong to threads.
 *
 * Each lookup has two functions. One, whose name ends in _r, puts its result into memory of the
 * caller. The other returns a pointer to memory of the C library, which the next call of any task
 * would overwrite. Here each task has such memory of its own for each function, until its next call
 * of that function, or its end; so its result stays there while other tasks run.
 *
 * A cancel cuts lookups of hosts. The others run to their end: to their callers no result means
 * that there is no such user.
 */
#include "internal.h"

/* The arguments of the lookups; each function uses some. */
typedef struct question {
    const char *name, *protocol;
    const void *address;
    long number; /* a user, a group, a port, a size */
    int family;
} question_t;

/* Where the answer is put. */
typedef struct answer {
    void *result; /* of the type that the function returns a pointer to */
    char *room;
    size_t size;
    void *found; /* `result`, or NULL */
    int error;   /* for h_errno */
} answer_t;

/* A call of the system's function that ends in _r. 0, or an error number. */
typedef int ask_t(const question_t *q, answer_t *a);

typedef struct lookup {
    ask_t *ask;
    const question_t *question;
    answer_t *answer;
    int code;
} lookup_t;

static void call_lookup(void *argument) {
    lookup_t *lookup = argument;
    lookup->code = lookup->ask(lookup->question, lookup->answer);
}

static int look_up(ask_t *ask, bool of_host, const question_t *question, answer_t *answer) {
    enum { NOT_MADE = -1 };
    lookup_t lookup = {ask, question, answer, NOT_MADE};
    answer->found = NULL;
    answer->error = TRY_AGAIN;
    (of_host ? hafti_posix_call_pooled : hafti_posix_call_to_the_end)(call_lookup, &lookup);
    return lookup.code != NOT_MADE ? lookup.code : hafti_posix_error(); /* with the reason */
}

/* ---- Memory of a task for the results of a function ---- */

typedef struct kept {
    const haft_io_task_t *owner; /* tasks that it spawns inherit the address, and have their own */
    size_t size;                 /* of the room */
    union {
        struct hostent host;
        struct passwd user;
        struct group group;
        struct servent service;
        struct protoent protocol;
    } result;
    char room[];
} kept_t;

/* NULL: there is no memory. */
static kept_t *kept_for(const void *key, size_t size) {
    kept_t *kept = haft_io_local_get(key);
    const haft_io_task_t *self = haft_io_self();
    if (kept != NULL && kept->owner == self && kept->size >= size)
        return kept;
    kept = malloc(sizeof *kept + size);
    if (kept != NULL && haft_io_local_give(key, kept, free) != 0) {
        free(kept);
        kept = NULL;
    }
    if (kept != NULL) {
        kept->owner = self;
        kept->size = size;
    }
    return kept;
}

static void *look_up_and_keep(const void *key, ask_t *ask, bool of_host,
                              const question_t *question) {
    answer_t answer = {0};
    int code = ERANGE;
    for (size_t size = 1024; code == ERANGE; size *= 2) {
        kept_t *kept = kept_for(key, size);
        if (kept == NULL) {
            hafti_posix_set_error(ENOMEM);
            hafti_posix_set_host_error(NETDB_INTERNAL);
            return NULL;
        }
        answer = (answer_t){.result = &kept->result, .room = kept->room, .size = kept->size};
        code = look_up(ask, of_host, question, &answer);
    }
    if (code != 0)
        hafti_posix_set_error(code);
    if (of_host && answer.found == NULL)
        hafti_posix_set_host_error(answer.error);
    return answer.found;
}

/* ---- The functions ---- */

/* `call`: the arguments of the system's functions, by q; `question`: that of the caller's. */
#define LOOKUP(function, type, parameters, arguments, call, ...)                                   \
    static int ask_##function(const question_t *q, answer_t *a) {                                  \
        return SYSTEM(function##_r)(EXPAND call, a->result, a->room, a->size, (type **)&a->found); \
    }                                                                                              \
    HAFT_POSIX_EXPORT type *function(EXPAND parameters) {                                          \
        static char key;                                                                           \
        if (!hafti_posix_on_task())                                                                \
            return SYSTEM(function)(EXPAND arguments);                                             \
        return look_up_and_keep(&key, ask_##function, false, &(question_t){__VA_ARGS__});          \
    }                                                                                              \
    HAFT_POSIX_EXPORT int function##_r(EXPAND parameters, type *restrict result,                   \
                                       char *restrict room, size_t size, type **restrict found) {  \
        if (!hafti_posix_on_task())                                                                \
            return SYSTEM(function##_r)(EXPAND arguments, result, room, size, found);              \
        answer_t answer = {.result = result, .room = room, .size = size};                          \
        int code = look_up(ask_##function, false, &(question_t){__VA_ARGS__}, &answer);            \
        *found = answer.found;                                                                     \
        return code;                                                                               \
    }
#define EXPAND(...) __VA_ARGS__

LOOKUP(getpwnam, struct passwd, (const char *name), (name), (q->name), .name = name)
LOOKUP(getpwuid, struct passwd, (uid_t user), (user), ((uid_t)q->number), .number = user)
LOOKUP(getgrnam, struct group, (const char *name), (name), (q->name), .name = name)
LOOKUP(getgrgid, struct group, (gid_t group), (group), ((gid_t)q->number), .number = group)
LOOKUP(getservbyname, struct servent, (const char *name, const char *protocol), (name, protocol),
       (q->name, q->protocol), .name = name, .protocol = protocol)
LOOKUP(getservbyport, struct servent, (int port, const char *protocol), (port, protocol),
       ((int)q->number, q->protocol), .number = port, .protocol = protocol)
LOOKUP(getprotobyname, struct protoent, (const char *name), (name), (q->name), .name = name)
LOOKUP(getprotobynumber, struct protoent, (int number), (number), ((int)q->number),
       .number = number)

/* In a simulation with a network every name is of its one host. */
#define LOOKUP_OF_HOST(function, parameters, arguments, call, ...)                                 \
    static int ask_##function(const question_t *q, answer_t *a) {                                  \
        return SYSTEM(function##_r)(EXPAND call, a->result, a->room, a->size,                      \
                                    (struct hostent **)&a->found, &a->error);                      \
    }                                                                                              \
    HAFT_POSIX_EXPORT struct hostent *function(EXPAND parameters) {                                \
        static char key;                                                                           \
        if (!hafti_posix_on_task())                                                                \
            return SYSTEM(function)(EXPAND arguments);                                             \
        return look_up_and_keep(&key, ask_##function, true, &(question_t){__VA_ARGS__});           \
    }                                                                                              \
    HAFT_POSIX_EXPORT int function##_r(EXPAND parameters, struct hostent *restrict host,           \
                                       char *restrict room, size_t size,                           \
                                       struct hostent **restrict found, int *restrict error) {     \
        if (!hafti_posix_on_task())                                                                \
            return SYSTEM(function##_r)(EXPAND arguments, host, room, size, found, error);         \
        answer_t answer = {.result = host, .room = room, .size = size};                            \
        int code = look_up(ask_##function, true, &(question_t){__VA_ARGS__}, &answer);             \
        *found = answer.found;                                                                     \
        *error = answer.error;                                                                     \
        return code;                                                                               \
    }

LOOKUP_OF_HOST(gethostbyname, (const char *name), (name), (q->name),
               .name = hafti_posix_host_of(name, AF_INET))
LOOKUP_OF_HOST(gethostbyname2, (const char *name, int family), (name, family), (q->name, q->family),
               .name = hafti_posix_host_of(name, family), .family = family)
LOOKUP_OF_HOST(gethostbyaddr, (const void *address, socklen_t size_of_address, int family),
               (address, size_of_address, family), (q->address, (socklen_t)q->number, q->family),
               .address = address, .number = size_of_address, .family = family)
