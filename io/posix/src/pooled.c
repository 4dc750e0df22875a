/* SPDX-License-Identifier: MIT */
/* Calls that can only block, and are made by the pool: resolving names, which the C library does
   with its own sockets; copies between files; commands; the ends of threads. */
#include "thread_tasks.h"

/* ---- Names ---- */

const char *hafti_posix_host_of(const char *name, int family) {
    const haft_io_calls_t *calls = haft_io_simulated_network_calls();
    return calls != NULL && name != NULL ? calls->host_of(name, family) : name;
}

HAFT_POSIX_POOLED(
    getaddrinfo, int,
    {
        const char *name;
        const char *service;
        const struct addrinfo *hints;
        struct addrinfo **addresses;
    },
    c->name, c->service, c->hints, c->addresses)
HAFT_POSIX_EXPORT int getaddrinfo(const char *restrict name, const char *restrict service,
                                  const struct addrinfo *restrict hints,
                                  struct addrinfo **restrict addresses) {
    if (!hafti_posix_on_task())
        return SYSTEM(getaddrinfo)(name, service, hints, addresses);
    if (hints == NULL || (hints->ai_flags & AI_NUMERICHOST) == 0) /* which asks whether it is one */
        name = hafti_posix_host_of(name, hints != NULL ? hints->ai_family : AF_UNSPEC);
    getaddrinfo_call_t call = {{name, service, hints, addresses}, EAI_SYSTEM};
    hafti_posix_call_pooled(call_getaddrinfo, &call);
    return call.done;
}

HAFT_POSIX_POOLED(
    getnameinfo, int,
    {
        const struct sockaddr *address;
        socklen_t address_size;
        char *name;
        socklen_t name_size;
        char *service;
        socklen_t service_size;
        int flags;
    },
    c->address, c->address_size, c->name, c->name_size, c->service, c->service_size, c->flags)
HAFT_POSIX_EXPORT int getnameinfo(const struct sockaddr *restrict address, socklen_t address_size,
                                  char *restrict name, socklen_t name_size, char *restrict service,
                                  socklen_t service_size, int flags) {
    if (!hafti_posix_on_task())
        return SYSTEM(getnameinfo)(address, address_size, name, name_size, service, service_size,
                                   flags);
    getnameinfo_call_t call = {
        {address, address_size, name, name_size, service, service_size, flags}, EAI_SYSTEM};
    hafti_posix_call_pooled(call_getnameinfo, &call);
    return call.done;
}

/* ---- Questions to name servers ---- */

/* `state` is an argument of the last two. The others use the state of the calling thread, here the
   pool's, as it was initialised. */
#define ASK(function)                                                                              \
    HAFT_POSIX_POOLED(                                                                             \
        function, int,                                                                             \
        {                                                                                          \
            const char *name;                                                                      \
            int class;                                                                             \
            int type;                                                                              \
            unsigned char *answer;                                                                 \
            int size;                                                                              \
        },                                                                                         \
        c->name, c->class, c->type, c->answer, c->size)                                            \
    HAFT_POSIX_EXPORT int function(const char *name, int class, int type, unsigned char *answer,   \
                                   int size) {                                                     \
        if (!hafti_posix_on_task())                                                                \
            return SYSTEM(function)(name, class, type, answer, size);                              \
        function##_call_t call = {{name, class, type, answer, size}, -1};                          \
        hafti_posix_call_pooled(call_##function, &call);                                           \
        return call.done;                                                                          \
    }
ASK(res_query)
ASK(res_search)

#define ASK_WITH_STATE(function)                                                                   \
    HAFT_POSIX_POOLED(                                                                             \
        function, int,                                                                             \
        {                                                                                          \
            res_state state;                                                                       \
            const char *name;                                                                      \
            int class;                                                                             \
            int type;                                                                              \
            unsigned char *answer;                                                                 \
            int size;                                                                              \
        },                                                                                         \
        c->state, c->name, c->class, c->type, c->answer, c->size)                                  \
    HAFT_POSIX_EXPORT int function(res_state state, const char *name, int class, int type,         \
                                   unsigned char *answer, int size) {                              \
        if (!hafti_posix_on_task())                                                                \
            return SYSTEM(function)(state, name, class, type, answer, size);                       \
        function##_call_t call = {{state, name, class, type, answer, size}, -1};                   \
        hafti_posix_call_pooled(call_##function, &call);                                           \
        return call.done;                                                                          \
    }
ASK_WITH_STATE(res_nquery)
ASK_WITH_STATE(res_nsearch)

/* ---- Copies between files ---- */

HAFT_POSIX_POOLED(
    copy_file_range, ssize_t,
    {
        int from;
        off64_t *from_offset;
        int to;
        off64_t *to_offset;
        size_t size;
        unsigned flags;
    },
    c->from, c->from_offset, c->to, c->to_offset, c->size, c->flags)
HAFT_POSIX_EXPORT ssize_t copy_file_range(int from, off64_t *from_offset, int to,
                                          off64_t *to_offset, size_t size, unsigned flags) {
    if (hafti_posix_may_be_simulated(from) || hafti_posix_may_be_simulated(to)) {
        hafti_posix_set_error(EXDEV); /* after which callers read and write */
        return -1;
    }
    if (!hafti_posix_on_task())
        return SYSTEM(copy_file_range)(from, from_offset, to, to_offset, size, flags);
    copy_file_range_call_t call = {{from, from_offset, to, to_offset, size, flags}, -1};
    hafti_posix_call_to_the_end(call_copy_file_range, &call);
    return call.done;
}

/* ---- Commands ---- */

/* Threads of libhaft-io block nearly all signals, so a program started on one is given the signal
   mask of the program's own threads. */
typedef struct command {
    const char *text, *mode;
    bool opens; /* as popen */
    sigset_t mask;
    int done;
    FILE *stream;
} command_t;

static void call_command(void *argument) {
    command_t *command = argument;
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &command->mask, &before);
    if (command->opens)
        command->stream = SYSTEM(popen)(command->text, command->mode);
    else
        command->done = SYSTEM(system)(command->text);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void run_command(command_t *command) {
    haft_io_signal_mask(&command->mask);
    if (hafti_posix_on_task())
        hafti_posix_call_pooled(call_command, command);
    else
        call_command(command);
}

HAFT_POSIX_EXPORT int system(const char *text) {
    if (text == NULL)
        return SYSTEM(system)(text);
    command_t command = {.text = text, .done = -1};
    run_command(&command);
    return command.done;
}

HAFT_POSIX_EXPORT FILE *popen(const char *text, const char *mode) {
    command_t command = {.text = text, .mode = mode, .opens = true};
    run_command(&command);
    return command.stream;
}

/* The attributes; or, if they set no mask, a copy of them that does. */
static const posix_spawnattr_t *with_mask(const posix_spawnattr_t *attributes,
                                          posix_spawnattr_t *copy) {
    short flags = 0;
    sigset_t mask;
    posix_spawnattr_init(copy);
    if (attributes != NULL) {
        *copy = *attributes;
        posix_spawnattr_getflags(copy, &flags);
    }
    if ((flags & POSIX_SPAWN_SETSIGMASK) != 0)
        return attributes;
    haft_io_signal_mask(&mask);
    posix_spawnattr_setsigmask(copy, &mask);
    posix_spawnattr_setflags(copy, (short)(flags | POSIX_SPAWN_SETSIGMASK));
    return copy;
}

HAFT_POSIX_EXPORT int posix_spawn(pid_t *restrict process, const char *restrict path,
                                  const posix_spawn_file_actions_t *restrict actions,
                                  const posix_spawnattr_t *restrict attributes,
                                  char *const arguments[restrict],
                                  char *const environment[restrict]) {
    posix_spawnattr_t copy;
    return SYSTEM(posix_spawn)(process, path, actions, with_mask(attributes, &copy), arguments,
                               environment);
}
HAFT_POSIX_EXPORT int posix_spawnp(pid_t *process, const char *name,
                                   const posix_spawn_file_actions_t *actions,
                                   const posix_spawnattr_t *attributes, char *const arguments[],
                                   char *const environment[]) {
    posix_spawnattr_t copy;
    return SYSTEM(posix_spawnp)(process, name, actions, with_mask(attributes, &copy), arguments,
                                environment);
}

/* ---- Ends, after which the caller frees what they may still use ---- */

HAFT_POSIX_POOLED(
    pclose, int, { FILE *stream; }, c->stream)
HAFT_POSIX_EXPORT int pclose(FILE *stream) {
    hafti_posix_end_waits(stream);
    if (!hafti_posix_on_task())
        return SYSTEM(pclose)(stream);
    pclose_call_t call = {{stream}, -1};
    hafti_posix_call_to_the_end(call_pclose, &call);
    return call.done;
}

HAFT_POSIX_POOLED(
    pthread_join, int,
    {
        pthread_t thread;
        void **result;
    },
    c->thread, c->result)
HAFT_POSIX_EXPORT int pthread_join(pthread_t thread, void **result) {
    int code;
    if (hafti_posix_join(thread, result, HAFT_IO_FOREVER, &code))
        return code;
    if (!hafti_posix_on_task() || pthread_equal(thread, pthread_self()) != 0)
        return SYSTEM(pthread_join)(thread, result);
    pthread_join_call_t call = {{thread, result}, 0};
    hafti_posix_call_to_the_end(call_pthread_join, &call);
    return call.done;
}
