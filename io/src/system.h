/* SPDX-License-Identifier: MIT */
/*
 * A run's requests to the system beside the operations of its back end: to make sockets and pipes,
 * and all that concerns files by their names. The system's own functions stand in network.c and
 * files.c, those of a simulation in its folder; a public function takes the table of the calling
 * task's run, or that of the descriptor it was given.
 */
#ifndef HAFTI_IO_SYSTEM_H
#define HAFTI_IO_SYSTEM_H

#include "tape/tape.h"

#include <dirent.h>
#include <sys/stat.h>

/* Each returns as the public function of its name does. */
typedef struct hafti_io_network {
    int (*pipe)(int ends[2]);
    int (*socket)(int domain, int type, int protocol);
    int (*socket_pair)(int domain, int type, int protocol, int ends[2]);
    int (*bind)(int socket, const struct sockaddr *address, socklen_t size);
    int (*listen)(int socket, const struct sockaddr *address, socklen_t size,
                  const haft_io_listen_options_t *options); /* binds it first */
    int (*port)(int socket);
    int (*shutdown)(int socket, int how);
    /* For a child process: the system's descriptor of an end, which is closed with that. */
    int (*real_of)(int end);
    /* Under which name the resolver knows the host. */
    const char *(*host_of)(const char *host, int family);
} hafti_io_network_t;

typedef struct hafti_io_files {
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*pread)(int file, void *buffer, size_t size, int64_t offset);
    ssize_t (*pwrite)(int file, const void *buffer, size_t size, int64_t offset);
    int (*fsync)(int file);
    int64_t (*seek)(int file, int64_t by); /* moves the position, and says where it is */
    int (*list)(const char *path, struct dirent ***entries);
    int (*mkdir)(const char *path, mode_t mode);
    int (*remove)(const char *path);
    int (*rename)(const char *from, const char *to);
    int (*stat)(const char *path, struct stat *status);
} hafti_io_files_t;

typedef struct hafti_io_system {
    hafti_io_network_t network;
    hafti_io_files_t files;
    bool (*is_stream)(int descriptor); /* as hafti_io_is_stream */
} hafti_io_system_t;

extern const hafti_io_network_t hafti_io_real_network; /* network.c */
extern const hafti_io_files_t hafti_io_real_files;     /* files.c */

/* The machine's, where it is not simulated: by the tape, if the run has one. */
static inline const hafti_io_network_t *hafti_io_network_below(void) {
    const hafti_io_tape_t *tape = hafti_io_tape_here();
    return HAFTI_IO_UNLIKELY(tape != NULL) ? &tape->system->network : &hafti_io_real_network;
}
static inline const hafti_io_files_t *hafti_io_files_below(void) {
    const hafti_io_tape_t *tape = hafti_io_tape_here();
    return HAFTI_IO_UNLIKELY(tape != NULL) ? &tape->system->files : &hafti_io_real_files;
}

/* For what is made, or named. */
static inline const hafti_io_network_t *hafti_io_network(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return HAFTI_IO_UNLIKELY(simulated != NULL) && simulated->network ? &simulated->system->network
                                                                      : hafti_io_network_below();
}
static inline const hafti_io_files_t *hafti_io_files(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return HAFTI_IO_UNLIKELY(simulated != NULL) && simulated->files ? &simulated->system->files
                                                                    : hafti_io_files_below();
}
/* For a descriptor that is there. */
static inline const hafti_io_network_t *hafti_io_network_of(int descriptor) {
    return HAFTI_IO_UNLIKELY(hafti_io_is_simulated(descriptor))
               ? &hafti_io_simulated()->system->network
               : hafti_io_network_below();
}
static inline const hafti_io_files_t *hafti_io_files_of(int descriptor) {
    return HAFTI_IO_UNLIKELY(hafti_io_is_simulated(descriptor))
               ? &hafti_io_simulated()->system->files
               : hafti_io_files_below();
}

#endif
