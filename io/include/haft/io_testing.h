/* SPDX-License-Identifier: MIT */
/* Haft I/O: tests in simulations. Part of haft/io.h, which includes it. */
#ifndef HAFT_IO_TESTING_H
#define HAFT_IO_TESTING_H

#include "io.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_io_simulation {
    uint64_t seed;     /* 0: HAFT_IO_SEED in the environment; if that is unset, a new seed for each
                          run */
    bool short_counts; /* simulated objects read and write less than asked, at random */
    bool network;      /* sockets and pipes are the simulation's, see below; otherwise the
                          system's */
    bool files;        /* files and directories, likewise */
    unsigned faults_one_in; /* one in this many operations on simulated objects fails; 0: none */
    /* One in this many operations that need not wait lets another task go first; 1: every one; 0:
       none, so a task goes on until it waits. See below. */
    unsigned switches_one_in;
    int64_t date; /* when it begins, in seconds since 1970 began (UTC); 0: the year 2025 begins */
} haft_io_simulation_options_t;

/*
 * Runs `main(argument)` as haft_io_run does, for tests, and in the same way for the same seed. The
 * seed decides which ready task goes on; time stands still while a task can go on, and then jumps
 * to the next timer; blocking work (haft_io_call_blocking) is done by the task that asks for it,
 * and operations on real descriptors block. The date (haft_io_date) is the given one when the
 * simulation begins, and goes on with its time. `options` may be NULL.
 *
 * If the result is not 0, the simulation prints the seed on standard error. With this seed in
 * HAFT_IO_SEED the run is repeated; if HAFT_IO_SEED is not a seed, this returns -EINVAL.
 *
 * When no task can ever go on, the simulation prints which task waits for what, cancels all tasks,
 * and returns -EDEADLK. If the tasks are stuck again, it cancels the shielded scopes, the outer
 * ones first. If tasks then wait where no cancel reaches (haft_io_event_wait_to_the_end), it ends
 * the process with a message that has the seed.
 *
 * With haft_io_simulation_options_t.switches_one_in, another task may go on at any operation that
 * may wait, before the operation has done anything: reads, writes and their kin, a close, a lock, a
 * receive from a channel, a scope, a join. So the seed finds races between two operations, whether
 * of tasks on different threads or of tasks of which one happens to wait there. Operations that
 * never wait (an unlock, a release, a signal, setting an event) do not switch, nor do the program's
 * own instructions: use the thread sanitizer to find two threads that write to one variable at
 * once.
 */
int haft_io_simulate(void *(*main)(void *), void *argument);
int haft_io_simulate_with(const haft_io_simulation_options_t *options, void *(*main)(void *),
                          void *argument);

/* The seed of the simulation that the caller runs in, 0 outside of one. For messages of failing
   tests. */
uint64_t haft_io_seed(void);

/*
 * Makes the two ends of a stream that exists only in this simulation; for read, write, receive,
 * send, wait_ready, shutdown and close. Data flows in both directions, and each direction holds
 * 4096 bytes. Simulated and real descriptors can be passed over it (haft_io_send_descriptor); other
 * control data is -EOPNOTSUPP. MSG_PEEK, MSG_WAITALL and MSG_DONTWAIT are heeded; MSG_OOB and the
 * like are -EOPNOTSUPP. Returns 0, or -ENOMEM.
 *
 * Errors and events are those of a Unix socket, even for connections over TCP. After the other end
 * was closed, a poll reports POLLHUP, a write is -EPIPE at once, and a read returns first the data
 * that has arrived and then 0. If the other end was closed with bytes that it had not read, the
 * read is -ECONNRESET once, and then 0.
 */
int haft_io_simulated_pair(int ends[2]);
/* Breaks the stream: from now on both ends get -ECONNRESET. */
void haft_io_simulated_break(int end);

/*
 * With haft_io_simulation_options_t.network, haft_io_socket, haft_io_listen_tcp,
 * haft_io_listen_unix, haft_io_accept, haft_io_connect, haft_io_connect_tcp, haft_io_connect_unix,
 * haft_io_port, haft_io_bind, haft_io_pipe and haft_io_socket_pair act on a network that exists in
 * this simulation only. Every address and every name is its one host, and haft_io_resolve gives
 * 127.0.0.1 or ::1 for every name. A connection is a stream as of haft_io_simulated_pair.
 *
 * -EADDRINUSE: an open listener has the port or the path. Port 0 is given a number. A connect
 * without a listener is -ECONNREFUSED, and so is one that still waits when the listener is closed.
 * Up to `backlog` + 1 connections wait to be accepted, as under Linux; further connects wait for
 * room, in turn; another connect of the same socket meanwhile is -EALREADY. Closing a listener
 * resets the connections that were not accepted.
 *
 * Unlike the system's, a path is free as soon as its listener is closed, and there is no file of
 * that name. There are streams, and datagrams of UDP: sockets of other types are -EOPNOTSUPP, and
 * other families -EAFNOSUPPORT.
 *
 * Where libhaft-posix is linked, the calls of the C library on sockets (socket, connect, accept4,
 * setsockopt, getpeername, fcntl and their kin) are on this network, too: see haft/posix.h.
 * Elsewhere they do not know these descriptors and fail with EBADF.
 *
 * A socket of datagrams has a UDP port that no other socket has, of IPv4 or IPv6: the one given to
 * haft_io_bind, or one chosen when it first sends or connects. It holds 32 datagrams; further ones
 * are lost. A datagram comes from the address that the sender is bound to, or otherwise from the
 * address that it was sent to. After a send to a port where nobody receives, the next operation of
 * a connected socket is -ECONNREFUSED. A datagram is cut to the size of the buffer (MSG_TRUNC is
 * heeded); one larger than 65507 bytes, over IPv6 65527, is -EMSGSIZE.
 *
 * A pair of SOCK_STREAM is a stream as of haft_io_simulated_pair. A pair of SOCK_DGRAM exchanges
 * datagrams, none of which is lost: a send waits while the other end holds 32. (Descriptors cannot
 * be passed over such a pair.) A pipe holds 65536 bytes, and a write of up to PIPE_BUF bytes
 * arrives whole; otherwise it behaves as under Linux, except that a write without a reader is
 * -EPIPE without a signal. An end of a stream that is given to haft_io_process_start becomes the
 * system's, and so does the other end. Data that was written goes along; descriptors that were
 * passed are closed. From then on operations on both ends block, and the simulation makes none of
 * them fail. Other simulated descriptors are -EOPNOTSUPP there.
 */

/*
 * With haft_io_simulation_options_t.files, haft_io_open, haft_io_list_directory, haft_io_mkdir,
 * haft_io_remove, haft_io_rename and haft_io_stat act on files that exist in this simulation only;
 * their descriptors are for read, write, pread, pwrite, fsync and close. At first there is
 * "/", which is empty, and also ".".
 *
 * Where libhaft-posix is linked, the calls of the C library on files and directories (open, stat,
 * lseek, ftruncate, rename, opendir, flock and their kin) are on these files, too: see
 * haft/posix.h. haft_io_open_fifo is always the machine's.
 *
 * Errors are the system's: -ENOENT, -EEXIST, -EISDIR, -ENOTDIR, -ENOTEMPTY, -ENAMETOOLONG, -EBADF,
 * -EFBIG when a file would have more than 1 GiB, and -ENOSPC when there is no memory for it. Flags
 * of open(2) that ask for more than a file (O_TMPFILE, O_DIRECT) are not simulated, and are
 * -EOPNOTSUPP. There are no links; permissions are kept but not checked. Time stamps are dates of
 * the simulation (haft_io_date).
 */

/*
 * Simulates a crash of the machine and a restart: afterwards the files hold what they could hold
 * after a real crash, as the seed decides.
 *
 * Data that haft_io_fsync has synced survives, and so does data written through a descriptor that
 * was opened with O_SYNC or O_DSYNC. In a file that was written to since, each block of 512 bytes
 * has its old content or its new one, or zeros if there was no old one; data appended to the file
 * may be cut short. A truncated file is either as it was before, or its old content behind the
 * smallest size that it has had is lost (with O_TRUNC, all of it). The changes of a name (made,
 * removed, renamed) since its directory was synced are all lost or all kept, or only the first few
 * are kept; a rename survives whole or not at all, and the removal or rename of a directory only
 * with all renames before it. A lost directory loses its content, too. Syncing a file does not sync
 * its name: open its directory, and sync that. Beyond 1000 unsynced changes of names, the oldest
 * count as synced.
 *
 * Call this when the tasks that use files have ended. Descriptors opened before must be closed; any
 * other operation on them is -EIO. Sockets and pipes are not affected. Needs
 * haft_io_simulation_options_t.files.
 */
void haft_io_simulated_crash(void);

/*
 * With haft_io_simulation_options_t.faults_one_in, the seed decides which operations fail, and how.
 * They fail before they have done anything:
 *
 * - A read or write of a stream breaks it (-ECONNRESET).
 * - A read of a file is -EIO, and a write -EIO or -ENOSPC. A sync, or an operation on a path, is
 *   -EIO.
 * - haft_io_open and haft_io_socket are -EMFILE, and so is making a pipe or a pair of sockets.
 * - A connect is -ECONNREFUSED or -ETIMEDOUT.
 * - An accept fails with -EMFILE, so haft_io_accept waits and tries again: endlessly, if every
 *   operation fails (1).
 * - Of the datagrams sent over UDP one in that many is lost, arrives twice, or arrives up to 100 ms
 *   late, after others.
 *
 * Operations on sockets of UDP, on pipes and on pairs of datagrams do not fail, nor do a poll, a
 * close, haft_io_shutdown and haft_io_port.
 */

/* Makes the next operation that begins on this simulated descriptor fail with `code`, which is
   negative, without having done anything. A poll or a close does not fail. */
void haft_io_simulated_fail(int descriptor, int code);

/* The number of open descriptors of the simulation: ends, sockets, listeners and files. For tests
   that look for one that was not closed. A connection that has not been accepted counts, too. */
size_t haft_io_simulated_count(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
