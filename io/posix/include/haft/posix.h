/* SPDX-License-Identifier: MIT */
/*
 * Haft POSIX: libraries that know nothing of tasks, on tasks.
 *
 * libhaft-posix answers the blocking calls of the C library. On a task of libhaft-io a call that would block
 * suspends that task, and the others go on; anywhere else (threads without a scheduler, the scheduler itself,
 * a child of fork) the call is the system's own, with the system's errno. So a client library written
 * for one blocking thread serves as many tasks as there are.
 *
 * Link with -lhaft-posix, or by pkg-config haft-posix, before the C library; or run a program that is linked
 * with the shared libhaft-io with LD_PRELOAD=libhaft-posix.so. There is nothing to call. (With libhaft-io.a
 * in the program there would be two libraries of tasks, and this one would see none of the program's.)
 *
 * What is answered, beside the names of large files, of glibc (__read) and of the fortified headers (__read_chk):
 *   read, readv, pread, preadv, preadv2, write, writev, pwrite, pwritev, pwritev2, fsync, fdatasync,
 *   close, close_range, closefrom, dup2, dup3, fclose, freopen, closedir,
 *   recv, recvfrom, recvmsg, recvmmsg, send, sendto, sendmsg, sendmmsg, accept, accept4, connect,
 *   sendfile, splice, tee, copy_file_range, open, openat, creat, flock, lockf, fcntl,
 *   poll, ppoll, select, pselect, epoll_wait, epoll_pwait, sigsuspend, sigwait, sigwaitinfo, sigtimedwait,
 *   sleep, usleep, nanosleep, clock_nanosleep, thrd_sleep, sched_yield,
 *   getaddrinfo, getnameinfo, gethostbyname, gethostbyname2, gethostbyaddr and their _r,
 *   res_query, res_search, res_nquery, res_nsearch,
 *   wait, waitpid, wait3, wait4, waitid, system, popen, pclose, posix_spawn, posix_spawnp, pthread_join,
 *   pthread_mutex_lock, pthread_rwlock_rdlock, pthread_rwlock_wrlock,
 *   pthread_cond_wait, pthread_cond_timedwait, pthread_cond_clockwait, pthread_cond_signal, pthread_cond_broadcast,
 *   mtx_lock, cnd_wait, cnd_timedwait, cnd_signal, cnd_broadcast, thrd_join,
 *   __cxa_guard_acquire, __cxa_guard_release, __cxa_guard_abort.
 *
 * On a task:
 * - A descriptor that does not block, and MSG_DONTWAIT, give EAGAIN at once. SO_RCVTIMEO and SO_SNDTIMEO
 *   hold, for all the waits of a call together. What a blocking call would write in full is written in full.
 * - A cancel does not unwind the stack of a library, which could not be. The call fails with ECANCELED
 *   (getaddrinfo: EAI_SYSTEM), and so does every wait that follows, until the task comes to a wait of its
 *   own, which unwinds. What can be done at once is done; what the pool has begun is waited for.
 * - select and pselect with a count beyond FD_SETSIZE look at no more members of the sets than the process's
 *   table of descriptors has room for (FDSize in /proc/self/status; without it, at FD_SETSIZE), as the kernel.
 * - A handler of a signal does not end a wait: there is no EINTR, but for the signals that the mask of
 *   ppoll, pselect, epoll_pwait or sigsuspend lets through and the thread blocks. Where a program relies on it, let
 *   the handler write to a pipe that does not block, and wait for that pipe, too; docs/io.md shows this and more.
 * - Files: what the system has in memory is read at once, and writes go there; the rest (a read from the
 *   disk, O_SYNC, O_DIRECT, fsync) is done by the pool of blocking work, as names are resolved.
 * - A FIFO that is opened for one direction, and a lock of a file (flock, F_SETLKW, F_OFD_SETLKW, lockf) that
 *   another has, are tried again after pauses of 1 to 32 milliseconds, since nothing tells when they can be had. Who
 *   waits longest may not be served first, and there is no EDEADLK. A record lock belongs to the process: it does
 *   not keep its own tasks out.
 * - The pool waits for any of several children, for the command of system, and in pclose and pthread_join. These two
 *   wait to the end also in a task that is cancelled, since their caller frees what is still used until then.
 * - What system, popen, posix_spawn and posix_spawnp start blocks the signals that the program blocks, not all that
 *   threads of libhaft-io do.
 * - A mutex that another task of the thread holds while it waits, as libraries do that initialise themselves under one,
 *   and a read-write lock, are tried again after turns of other tasks and pauses. A condition wakes the tasks that
 *   wait for it in their order, before threads. No cancel ends these waits, whose callers expect no error. A mutex
 *   notes the thread for its owner, not the task: who locks one twice waits for ever, also where the system says
 *   EDEADLK; and a recursive one lets another task of the thread in. So tasks that hold one over a wait are not to move
 *   (haft_io_run_options_t.moves).
 * - A static local variable of C++ whose initialiser waits: another task that comes there waits until it is
 *   initialised, also where both tasks are of one thread. No cancel ends that wait. An initialiser that comes to its own
 *   variable waits for ever.
 * - res_query and res_search use the settings of the thread of the pool, not what the caller has put into _res.
 * - errno is the task's. In a simulated run time is virtual, and read, pread, write, pwrite, recv, send, recvmsg, sendmsg
 *   and their kin, poll, fsync, fdatasync and close take what is simulated, too: ends of streams, sockets of datagrams,
 *   files that haft_io_open has opened. So a library can be tested with what may go wrong. Any other call says EBADF of
 *   these numbers, and so do MSG_DONTWAIT and a transfer of nothing.
 *
 * Not answered, so these block the thread with all its tasks:
 * - what the C library does inside: FILE (fread, fgets, fprintf to a pipe that is full, fopen of a FIFO). A task that
 *   waited there would keep the lock of the FILE, which is the thread's: another of its tasks would take the FILE
 *   half changed, and exit and fflush(NULL) on other threads would wait for it;
 * - pause, vmsplice, epoll_pwait2, message queues, semaphores of System V, asynchronous I/O, users and groups (getpwnam);
 * - semaphores, which a handler of a signal or another process may post; conditions that processes share; barriers,
 *   pthread_once, locks with a time limit, and futexes. If only a task of the same thread would end such a wait, it waits
 *   for ever. Where threads of a library's own do, call the library in the pool, by haft_io_call_blocking.
 *
 * Mind:
 * - A handler of a signal that runs on a task makes no call that blocks; to write to a descriptor that does
 *   not block is right as ever.
 * - A child of vfork has its parent's memory: it sets up its numbers, where what closes is the system's, and then calls
 *   exec or _exit.
 * - What closes a number, or gives it to another file, ends the waits of tasks on it with EBADF, also on a thread that
 *   has no tasks. If a task has waited on it in a run of one thread, and that is another: after close the number is free
 *   after the next poll of that thread (haft_io_close); the others wait for that poll (haft_io_close_by). dup2 is
 *   one step as ever, and ends no wait where it does nothing or fails, but for want of memory. close_range and
 *   closefrom close what libhaft-io has for itself, too, and with it the runs: they are for children, where they are the
 *   system's, whatever runs the child has begun.
 * - With io_uring, in a run of one thread, what the kernel has given libhaft-io beforehand is not seen by these calls:
 *   let a library have a connection that you have read by haft_io_read, not by haft_io_read_lent or haft_io_exchange,
 *   and a listener that you have not asked by haft_io_accept.
 * - A library takes more stack than a task that echoes. The default, 1 MiB of addresses of which only
 *   what is used takes memory, is enough for libcurl, libpq and hiredis.
 */
#ifndef HAFT_POSIX_H
#define HAFT_POSIX_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Whether the calls of this process come here: false where the library was linked after the C library. */
bool haft_posix_answers(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
