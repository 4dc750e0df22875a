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
    uint64_t seed;     /* 0: HAFT_IO_SEED in the environment, or else a new seed for each run */
    bool short_counts; /* what is simulated reads and writes less than asked, at random */
    bool network;      /* sockets and pipes are the simulation's, see below; else the system's */
    bool files;        /* files and directories, likewise */
    unsigned faults_one_in; /* of so many operations on what is simulated one fails; 0: none */
    /* Of so many operations that need not wait one lets another task go first; 1: each does; 0: none, a task goes on
       until it waits. See below. */
    unsigned switches_one_in;
} haft_io_simulation_options_t;

/*
 * Runs `main(argument)` as haft_io_run does, for tests, and the same way for the same seed: the
 * seed decides which ready task goes on; time stands still while a task can go on, and then jumps
 * to the next timer; blocking work is done on the thread of the run. When no task will ever go on,
 * it prints which task waits for what, cancels all tasks, and returns -EDEADLK. If the result is
 * not 0, it prints the seed on standard error; with this seed in HAFT_IO_SEED the run is repeated, and with
 * something else there it returns -EINVAL. `options` may be NULL. Operations on real descriptors block. When again no task will ever go on, the shielded
 * scopes are cancelled, the outer ones first. Tasks that wait for ever where no cancel reaches
 * (haft_io_event_wait_to_the_end) end the process with a message, which has the seed.
 *
 * With haft_io_simulation_options_t.switches_one_in, any operation that may wait may be where another task goes on, before it
 * has done anything: reads, writes and their kin, a close, a lock, a receive of a channel, the scope, the join. So the
 * seed finds what goes wrong between two operations of tasks on different threads of a run, and of tasks where one of
 * these happens to wait. What never waits (an unlock, a release, a signal, an event that is set) is no such place, nor
 * are the program's own instructions: that two threads write to one variable at once is for the thread sanitizer.
 */
int haft_io_simulate(void *(*main)(void *), void *argument);
int haft_io_simulate_with(const haft_io_simulation_options_t *options, void *(*main)(void *),
                          void *argument);

/* The seed of the simulation that the caller runs in, 0 outside of one: for messages of tests that
   fail. */
uint64_t haft_io_seed(void);

/*
 * Makes the two ends of a stream that exists only in this simulation; for read, write, receive, send, wait_for,
 * shutdown and close. Data flows in both directions; each holds 4096 bytes. Descriptors are passed along, of the
 * simulation and real ones (haft_io_send_descriptor); other control data is -EOPNOTSUPP. Returns 0, or -ENOMEM.
 * MSG_PEEK, MSG_WAITALL and MSG_DONTWAIT are heeded; MSG_OOB and the like are -EOPNOTSUPP.
 *
 * Errors and events are those of a Unix socket, also for connections over TCP: when the other end was closed, a poll
 * says POLLHUP, a write is -EPIPE at once, and a read after what has come is 0; if that end was closed with bytes
 * that it had not read, the read is -ECONNRESET once, and then 0.
 */
int haft_io_simulated_pair(int ends[2]);
/* The stream breaks: from now on both ends get -ECONNRESET. */
void haft_io_simulated_break(int end);

/*
 * With haft_io_simulation_options_t.network, haft_io_socket, haft_io_listen_tcp, haft_io_listen_unix, haft_io_accept,
 * haft_io_connect, haft_io_connect_tcp, haft_io_connect_unix, haft_io_port, haft_io_bind, haft_io_pipe and
 * haft_io_socket_pair are those of a network that exists in this simulation only. It has one host, which each
 * address and each name is, and haft_io_resolve gives 127.0.0.1 or ::1 for every name. A connection is a stream as
 * of haft_io_simulated_pair.
 *
 * -EADDRINUSE: a listener that is open has the port or the path. Port 0 is given a number. A connect where nobody
 * listens gets -ECONNREFUSED, and so does one that waits when the listener is closed. As under Linux, `backlog` + 1
 * connections wait to be accepted, and a connect that comes then waits for room, in turn; another one of the same
 * socket meanwhile gets -EALREADY. Who closes a listener resets the connections that were not accepted.
 *
 * Unlike the system's, a path is free as soon as its listener is closed, and there is no file of that name. There
 * are streams and datagrams of UDP: sockets of other types, and a haft_io_bind of a stream, are -EOPNOTSUPP, those
 * of other families -EAFNOSUPPORT. The calls of the system that take a socket, such as setsockopt(2), getpeername(2)
 * and shutdown(2), do not know these, and say EBADF.
 *
 * A socket of datagrams has one of the ports of UDP, which one other cannot have, too, of IPv4 or IPv6: that of
 * haft_io_bind, or one that is chosen when it sends or connects. It holds 32 datagrams, and what comes then is lost.
 * Datagrams come from the address that the sender is bound to, or from that which they were sent to. Who is
 * connected to a port where nobody receives gets -ECONNREFUSED by his next operation after a send. A datagram is cut
 * to the size of the buffer (MSG_TRUNC is heeded); one larger than 65507 bytes, over IPv6 65527, is -EMSGSIZE.
 *
 * A pair of SOCK_STREAM is a stream as of haft_io_simulated_pair; one of SOCK_DGRAM exchanges datagrams, none of
 * which is lost: who sends waits while the other end holds 32. (Descriptors are not passed along with these.) A pipe
 * holds 65536 bytes, and a write of up to PIPE_BUF bytes comes whole; otherwise it is as Linux has it, but that a
 * write where nobody reads is -EPIPE without a signal. An end that haft_io_process_start is given becomes the
 * system's, and so does the other: what was written goes along, but for descriptors, which are closed; from then on
 * operations on both block, and the simulation lets none of them fail. What is simulated and no end of a stream is -EOPNOTSUPP there.
 */

/*
 * With haft_io_simulation_options_t.files, haft_io_open, haft_io_list_directory, haft_io_mkdir, haft_io_remove,
 * haft_io_rename and haft_io_stat are those of files that exist in this simulation only; for their descriptors are
 * read, write, pread, pwrite, fsync and close. At first there are the directories "/" and ".", both empty and
 * apart from each other; "/" is above both.
 *
 * Errors are the system's: -ENOENT, -EEXIST, -EISDIR, -ENOTDIR, -ENOTEMPTY, -ENAMETOOLONG, -EBADF, -ENOSPC when
 * there is no memory for what is written. Not simulated, and -EOPNOTSUPP, are flags of open(2) that ask for more
 * than a file: O_TMPFILE, O_DIRECT, O_PATH. There are no links; permissions are kept, and not checked. Time stamps
 * are virtual.
 */

/*
 * The machine crashes, and has come up again: the files are what they may be then, as the seed decides.
 *
 * What haft_io_fsync has synced is there, and what was written by a descriptor that was opened with O_SYNC or
 * O_DSYNC. Of a file that was written to since, each block of 512 bytes is the old one or the new one, or zeros
 * where there was no old one; and what was written at its end may end sooner. If it was truncated by O_TRUNC, it is
 * as it was before, or nothing old is left. Of a name that was made, removed or renamed since its directory was
 * synced, the first few changes have been made, or none, or all; a rename has been made whole or not at all. To sync
 * a file does not sync its name: open its directory, and sync that. Beyond 1000 changes of names that nobody has
 * synced, the oldest has been.
 *
 * Call it when the tasks that use files have ended. What was opened before has to be closed, and is -EIO otherwise.
 * Sockets and pipes are left alone. Needs haft_io_simulation_options_t.files.
 */
void haft_io_simulated_crash(void);

/*
 * With haft_io_simulation_options_t.faults_one_in, the seed decides which operations fail, before they have done anything,
 * and as what: a read or write of a stream breaks it (-ECONNRESET); of a file, -EIO, and a write -EIO or -ENOSPC; a
 * sync, and what is done with a path, -EIO; haft_io_open and haft_io_socket, -EMFILE; a connect, -ECONNREFUSED or
 * -ETIMEDOUT. An accept fails with -EMFILE, so that haft_io_accept waits and tries again: with 1, where every
 * operation fails, for ever. A poll, a close, haft_io_shutdown and haft_io_port do not fail; nor does what is done
 * with a pipe, or a pair of datagrams, but there may be no descriptors for one, nor for another pair (-EMFILE). Nor
 * do operations on sockets of UDP: but of so many datagrams that are sent one is lost, or comes twice, or up to 100
 * ms late, after others.
 */

/* The next operation that begins on the descriptor, of the simulation, fails so, and has done nothing; `code` is
   negative. Likewise no poll and no close. */
void haft_io_simulated_fail(int descriptor, int code);

/* How many descriptors of the simulation, ends, sockets, listeners and files, are open: for tests that look for one that was
   not closed. A connection that has not been accepted counts, too. */
size_t haft_io_simulated_count(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
