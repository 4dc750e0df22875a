/* SPDX-License-Identifier: MIT */
/*
 * Haft POSIX: runs blocking libraries, which know nothing of tasks, on tasks.
 *
 * libhaft-posix replaces the blocking calls of the C library. On a task of libhaft-io a call that
 * would block suspends that task, and the others go on. Anywhere else (threads without a scheduler,
 * the scheduler itself, a child of fork) the call is the system's own, with the system's errno. So
 * a client library written for one blocking thread serves as many tasks as there are.
 *
 * Link with -lhaft-posix, or by pkg-config haft-posix, before the C library; or run a program that
 * is linked with the shared libhaft-io with LD_PRELOAD=libhaft-posix.so. The program calls nothing
 * of this library. (If libhaft-io.a were linked into the program there would be two copies of
 * libhaft-io, and this library would not see the program's tasks.)
 *
 * It replaces these functions, and their variants for large files, of glibc (__read) and of the
 * fortified headers (__read_chk):
 *   read, readv, pread, preadv, preadv2, write, writev, pwrite, pwritev, pwritev2, fsync,
 *   fdatasync,
 *   close, close_range, closefrom, dup2, dup3, fclose, freopen, closedir,
 *   recv, recvfrom, recvmsg, recvmmsg, send, sendto, sendmsg, sendmmsg, accept, accept4, connect,
 *   socket, socketpair, bind, listen, shutdown, getsockname, getpeername, getsockopt, setsockopt,
 *   ioctl, dup,
 *   sendfile, splice, tee, copy_file_range, open, openat, creat, flock, lockf, fcntl,
 *   poll, ppoll, select, pselect, epoll_wait, epoll_pwait, sigsuspend, sigwait, sigwaitinfo,
 *   sigtimedwait,
 *   sleep, usleep, nanosleep, clock_nanosleep, thrd_sleep, sched_yield, clock_gettime,
 *   gettimeofday, time, timespec_get, getrandom, getentropy, arc4random, arc4random_buf,
 *   arc4random_uniform, std::random_device,
 *   stat, lstat, fstat, fstatat, statx, access, faccessat, euidaccess, eaccess, lseek, truncate,
 *   ftruncate, fallocate, posix_fallocate, posix_fadvise, chmod, lchmod, fchmod, fchmodat, chown,
 *   lchown, fchown, fchownat, utime, utimes, lutimes, futimes, futimesat, utimensat, futimens,
 *   mkdir, mkdirat, mkfifo, mkfifoat, mknod, mknodat, unlink, unlinkat, rmdir, remove, rename,
 *   renameat, renameat2, link, linkat, symlink, symlinkat, readlink, readlinkat, realpath,
 *   canonicalize_file_name, getcwd, chdir, fchdir, mkstemp, mkostemp, mkstemps, mkostemps, mkdtemp,
 *   fopen, fdopen,
 *   opendir, fdopendir, readdir, readdir_r, rewinddir, seekdir, telldir, dirfd, scandir,
 *   getaddrinfo, getnameinfo, gethostbyname, gethostbyname2, gethostbyaddr and their _r,
 *   res_query, res_search, res_nquery, res_nsearch,
 *   getpwnam, getpwuid, getgrnam, getgrgid, getservbyname, getservbyport, getprotobyname,
 *   getprotobynumber and their _r,
 *   wait, waitpid, wait3, wait4, waitid, system, popen, pclose, posix_spawn, posix_spawnp,
 *   pthread_join,
 *   pthread_mutex_lock, pthread_mutex_timedlock, pthread_mutex_clocklock, pthread_mutex_trylock,
 *   pthread_mutex_unlock,
 *   pthread_rwlock_rdlock, pthread_rwlock_wrlock and their forms with a limit,
 *   pthread_rwlock_unlock, pthread_spin_lock, pthread_once, pthread_barrier_init,
 *   pthread_barrier_wait, pthread_barrier_destroy, flockfile, funlockfile,
 *   sem_wait, sem_timedwait, sem_clockwait, sem_post,
 *   pthread_cond_wait, pthread_cond_timedwait, pthread_cond_clockwait, pthread_cond_signal,
 *   pthread_cond_broadcast,
 *   mtx_lock, mtx_timedlock, mtx_unlock, cnd_wait, cnd_timedwait, cnd_signal, cnd_broadcast,
 *   thrd_join, thrd_yield, call_once,
 *   and for threads that are tasks (below) pthread_create, pthread_exit, pthread_detach,
 *   pthread_tryjoin_np, pthread_timedjoin_np, pthread_clockjoin_np, pthread_cancel,
 *   pthread_testcancel, pthread_kill, pthread_sigqueue, pthread_setname_np, pthread_getname_np,
 *   pthread_getattr_np, pthread_getcpuclockid, pthread_setaffinity_np, pthread_getaffinity_np,
 *   pthread_setschedparam, pthread_getschedparam, pthread_setschedprio, thrd_create, thrd_detach,
 *   thrd_exit, sigaction, signal,
 *   syscall, of which only SYS_futex is replaced, and of that FUTEX_WAIT, FUTEX_WAIT_BITSET,
 *   FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_REQUEUE and FUTEX_CMP_REQUEUE, __cxa_guard_acquire,
 *   __cxa_guard_release, __cxa_guard_abort.
 *
 * On a task:
 * - A non-blocking descriptor, and MSG_DONTWAIT, give EAGAIN at once. SO_RCVTIMEO and SO_SNDTIMEO
 *   apply to all the waits of one call together. A write is complete where a blocking call's would
 *   be.
 * - A cancel does not unwind the frames of a library, which are not prepared for it. The table
 *   "what a cancel does" below has each call. After a cancel every wait of the library is cut
 *   alike, until the task comes to a wait of its own, which unwinds. The passing of a deadline
 *   (haft_io_deadline_set) does the same with ETIMEDOUT.
 * - select and pselect with a count beyond FD_SETSIZE look, like the kernel, at no more members of
 *   the sets than the process's table of descriptors has room for (FDSize in /proc/self/status;
 *   FD_SETSIZE if that cannot be read).
 * - A signal handler does not end a wait with EINTR. Exceptions are signals that the thread blocks
 *   and that the mask of ppoll, pselect, epoll_pwait or sigsuspend lets through. If a program
 *   relies on EINTR, let the handler write to a non-blocking pipe, and wait for that pipe, too;
 *   docs/io.md shows this and more.
 * - Files: data that the system has in memory is read at once, and so are the files of /proc;
 *   writes go to that memory. Everything else (a read from the disk, O_SYNC, O_DIRECT, fsync) is
 *   done by the pool of blocking work, and so is the resolution of names.
 * - A FIFO that is opened for one direction, and a lock of a file (flock, F_SETLKW, F_OFD_SETLKW,
 *   lockf) that another has, are tried again after pauses of 1 to 32 milliseconds, because the
 *   kernel does not notify when they become available. So the longest waiter may not be served
 *   first, and there is no EDEADLK. A record lock belongs to the process, so it does not exclude
 *   tasks of the same process from each other.
 * - Waits for any of several children, for the command of system, and in pclose and pthread_join
 *   are done by the pool. pclose and pthread_join wait to the end even in a cancelled task, because
 *   their caller then frees what is in use until that end.
 * - Programs started by system, popen, posix_spawn and posix_spawnp block the signals that the
 *   program blocks, not those that threads of libhaft-io block.
 * - A mutex may be held by another task of the thread that waits meanwhile, for example in a
 *   library that initialises itself under a mutex. The task waits for such a mutex, and for a
 *   read-write lock, until an unlock wakes it. A condition wakes the tasks that wait for it in
 *   their order, before threads. No cancel ends these waits, because their callers expect no error.
 *   A mutex records its thread as its owner, not the task. So a task that locks a mutex twice waits
 *   forever, even where the system returns EDEADLK; and a recursive mutex lets in another task of
 *   the same thread. Tasks that hold a mutex across a wait must not move
 *   (haft_io_run_options_t.moves).
 * - A static local variable of C++ whose initialiser waits: another task that reaches it waits
 *   until it is initialised, even if both tasks are on one thread. No cancel ends that wait. An
 *   initialiser that reaches its own variable waits forever. (With -fsanitize=thread the sanitizer
 *   guards these variables itself, and a second task blocks the thread.)
 * - A futex that is waited for by syscall (the locks of Rust's std, std::atomic<T>::wait of C++)
 *   suspends the task. Tasks and threads of the process wake each other through syscall; a wake
 *   takes the tasks in their order, then threads. Results are the kernel's, without EINTR. No
 *   cancel ends the wait, because its callers expect no such error. A limit by CLOCK_REALTIME is
 *   that of the clock as it stands when the wait begins. Not seen are the wakes of other processes,
 *   of the C library itself, of the kernel (for the end of a thread, and robust lists), of
 *   FUTEX_WAKE_OP and of other system calls; nor that one word has two addresses. A word that
 *   cannot be read is a fault. A signal handler must not wake a task in this way.
 * - A futex in a thread-local variable is the thread's: a wait for it blocks the thread with all
 *   its tasks. Its caller assumes that it is the only one on the thread, and two tasks would count
 *   as one waiter. A task must not hold, over a wait, what another task of its thread waits for in
 *   this way.
 * - res_query and res_search use the settings of the pool's thread, not what the caller has put
 *   into _res.
 * - errno is the task's.
 *
 * Table: what a cancel does to a call of the task.
 *
 *   call                                     | what a cancel does
 *   -----------------------------------------|-----------------------------------------------------
 *   anything that can be done at once        | nothing: it is done
 *   what waits for a socket, a pipe, a       | cuts it: ECANCELED. If something was transferred
 *   terminal, a timer, a notification; poll, | before, that is the result. (An exception for pipes
 *   select and their kin; accept, connect;   | is below.)
 *   the opening of a FIFO; flock, lockf,     |
 *   F_SETLKW; sigwait and its kin; splice,   |
 *   tee, sendfile to a socket                |
 *   sleep                                    | cuts it: the result is what is left
 *   nanosleep, clock_nanosleep, thrd_sleep   | cuts it: EINTR, and nothing is left; such callers
 *   that is to tell what is left             | know of no other error
 *   other sleeps                             | cuts it: ECANCELED (thrd_sleep: -1)
 *   getaddrinfo, getnameinfo                 | EAI_SYSTEM and ECANCELED, unless the pool has begun
 *   gethostbyname and its kin, res_query and | TRY_AGAIN and ECANCELED, unless the pool has begun
 *   its kin                                  |
 *   system, popen                            | ECANCELED, unless the pool has begun
 *   wait, waitpid, waitid and their kin      | cuts it: ECANCELED; the child is still to be waited
 *                                            | for. (An exception is below.)
 *   -----------------------------------------|-----------------------------------------------------
 *   reads and writes of regular files and    | nothing: it runs to its end
 *   block devices; fsync, fdatasync,         |
 *   copy_file_range, sendfile to a file      |
 *   epoll_wait, epoll_pwait                  | nothing: it waits for an event, or for its limit
 *   reads and writes of an eventfd           | nothing: it runs to its end
 *   pclose, pthread_join, thrd_join;         | nothing: it runs to its end
 *   getpwnam and the other lookups of users, |
 *   groups, services and protocols           |
 *   mutexes and other locks, conditions,     | nothing: it runs to its end
 *   futexes, guards of static variables      |
 *   after a fork by the task: its reads of a | nothing: the task learns whether exec has failed in
 *   pipe, or of a pair of SOCK_SEQPACKET,    | the child, as std::process of Rust and Python do
 *   with FD_CLOEXEC, up to the first end or  |
 *   error; and, if they have read something, |
 *   its next wait for a child                |
 *
 *   The callers of the functions below the line take an error for a broken invariant, and give up
 *   what tasks share: a database after a failed write, an event loop after a failed wait. After
 *   such a call the cancel takes effect at the next wait that it can cut.
 *
 *   A task that ignores this, and goes on to call what waits, is not stopped: nothing can unwind
 *   it. It keeps neither its thread nor the processor busy. From the second call on that is cut,
 *   other tasks go first; from the 65th on the call also pauses, for 2, 4, 8 and then 16
 *   milliseconds each time. (This holds for haft/io.h and its C++ and Rust forms, too.)
 *
 * Functions of the C library whose result is in memory that a later call overwrites:
 *
 *   function                                  | on a task
 *   ------------------------------------------|----------------------------------------------------
 *   gethostbyname, gethostbyname2,            | made by the pool; the result is the task's own, and
 *   gethostbyaddr; getpwnam, getpwuid,        | is overwritten by the task's next call of the same
 *   getgrnam, getgrgid; getservbyname,        | function only
 *   getservbyport, getprotobyname,            |
 *   getprotobynumber                          |
 *   readdir                                   | the result is the stream's, overwritten by the next
 *                                             | call for the same stream only
 *   res_query and res_search (_res)           | made by the pool, with the settings of its thread
 *   dlerror, strerror, getlogin, ttyname,     | the C library's own, which never suspend the task.
 *   inet_ntoa, localtime, gmtime, asctime,    | The result is as it was until the task waits; while
 *   ctime, strtok, crypt, ptsname, tmpnam,    | it does, another task may overwrite it, as another
 *   getmntent, fgetpwent                      | thread would. Use the form whose name ends in _r.
 *   getpwent, getgrent, getservent, gethostent| the C library's own, with one position for all: as
 *   and their set and end                     | above; and modules of the system may suspend the
 *                                             | task in them. Call a whole loop of them by
 *                                             | haft_io_call_blocking.
 *
 * In a simulation (haft/io_testing.h), for its tasks:
 * - Time is virtual, also for time, gettimeofday, timespec_get, clock_gettime, and syscall with
 *   their numbers; clocks of a processor's or a process's work stay the machine's. The date begins
 *   at haft_io_simulation_options_t.date.
 * - getrandom, getentropy, arc4random and its kin, std::random_device, and what is read from
 *   /dev/urandom and /dev/random are bytes that the seed decides. docs/simulation.md lists what is
 *   not.
 * - With .network, socket and socketpair make simulated sockets (SOCK_STREAM of AF_INET, AF_INET6
 *   and AF_UNIX; SOCK_DGRAM of AF_INET and AF_INET6; pairs of both), and every name given to
 *   getaddrinfo or gethostbyname is the one host's. The calls on sockets give what the machine's
 *   give, in virtual time and with the faults that the seed decides (at each try of a call that
 *   waits, so a long one meets more). Options are kept; SO_RCVTIMEO, SO_SNDTIMEO, SO_REUSEADDR,
 *   SO_REUSEPORT and SO_ERROR have their effects. MSG_OOB, and MSG_TRUNC on a stream, are
 *   EOPNOTSUPP. So a server and its clients are tested as they are.
 * - With .files, paths are the simulation's, except those below /dev, /proc and /sys (but see
 *   above); so is what open and its kin open, and the calls above give what the machine's give for
 *   it. Permissions and owners are kept (chmod) or ignored (chown), never checked, and the umask
 *   does not apply. There are no links and FIFOs, and mknod makes nothing (EPERM); a file has at
 *   most 1 GiB (EFBIG). Time stamps are of the virtual date; a read does not change them. flock is
 * as under Linux; a record
 *   lock is the process's, so it excludes nobody. readdir returns names in an order that the seed
 *   decides. copy_file_range (EXDEV) and sendfile (EINVAL) refuse simulated files, after which
 *   callers read and write; mmap fails with EBADF.
 * - Each call on a path lets other tasks go first, as if it waited for a disk. For C the C library
 *   declares many of these (stat, mkdir, rename) as leaf functions. So gcc with -O2 keeps a static
 *   variable of the caller's file in a register over them, and undoes what other tasks have done to
 *   it. Code that is right with threads, by locks or atomic variables, is right here, too.
 * - At first there is nothing: a program that expects /tmp or a home directory has them made. With
 *   .files and without .network, the paths of Unix sockets are the machine's, where unlink and stat
 *   do not see them.
 * - The current directory is at first, and after haft_io_simulated_crash, the simulation's "/".
 *   chdir is for all its tasks.
 * - fopen and fdopen make FILEs of simulated files, which let no other task go on; std::fstream of
 *   C++ uses them. freopen refuses them (EOPNOTSUPP), and they take no wide characters. dprintf is
 *   not replaced.
 * - tmpfile, nftw, fts and glob are the machine's; so are statfs and statvfs, extended attributes,
 *   programs that are started, and system calls that code makes by itself (Rust's rustix).
 * - Simulated descriptors are large numbers, for which a fd_set of select has no room. Calls that
 *   are not replaced, and epoll and dup2, fail with EBADF for these; splice, tee and sendfile with
 *   EINVAL. pipe makes a real pipe, because a child process may be given it, and a task that waits
 *   on it blocks the thread. A poll of real descriptors beside simulated ones looks at the real
 *   ones when no task can go on, and so sees what another task has written there.
 * - What a thread of the program's own does, and what haft_io_block_thread calls, is the machine's;
 *   a simulated descriptor is none there (EBADF). Virtual time does not wait for such a thread: a
 *   task that waits for it with a time limit may get the limit at once, and one that waits without
 *   is reported as one that nobody can wake. So a library must not use threads of its own: libcurl
 *   is given an address or CURLOPT_RESOLVE, because it resolves names in a thread.
 *   So are the files of functions that a task's exit calls, if they were registered (atexit) before
 *   the process used files of a simulation for the first time: gcov writes its report.
 *
 * Not replaced, so these block the thread with all its tasks:
 * - system calls that code makes by itself, and not by the C library: rustix for Rust as it is by
 *   default (--cfg=rustix_use_libc makes it call the C library), and some languages' runtimes;
 * - what the C library calls internally: FILE (fread, fgets, fprintf to a pipe that is full, fopen
 *   of a FIFO). A task that waited there would keep the lock of the FILE, which belongs to the
 *   thread: another task of the thread could use the FILE half changed, and exit and fflush(NULL)
 *   on other threads would wait for the task. (Under haft-threads(1), where the lock is the task's,
 *   reads by a FILE from a pipe, a socket or a terminal wait as tasks;)
 * - pause, vmsplice, epoll_pwait2, message queues, semaphores of System V, asynchronous I/O;
 * - conditions that processes share. If only a task of the same thread could end such a wait, the
 *   wait lasts forever. If threads of a library's own end it, call the library in the pool, by
 *   haft_io_call_blocking.
 *
 * Mind:
 * - A signal handler that runs on a task must not make a call that blocks; writing to a
 *   non-blocking descriptor is allowed, as always.
 * - A child of vfork shares its parent's memory: it may arrange its descriptors, where closing is
 *   the system's, and change its directory, which is the machine's in a simulation, too, and must
 *   then call exec or _exit.
 * - Closing a number, or giving it to another file, ends the waits of tasks on it with EBADF, even
 *   if the call is made on a thread without tasks. If a task has waited on the number in a run of
 *   one thread, and another thread closes it, then after close the number becomes free at the next
 *   poll of the run's thread (haft_io_close); the other functions wait for that poll
 *   (haft_io_close_by). dup2 is one step as always, and ends no wait if it does nothing or fails,
 *   unless it fails for lack of memory. close_range and closefrom also close libhaft-io's own
 *   descriptors, and so break its runs: they are for children, where they are the system's own,
 *   whatever runs the child has begun.
 * - With io_uring, in a run of one thread, these calls do not see data and connections that the
 *   kernel has given to libhaft-io ahead of time. So hand a connection to a library only if you
 *   have read it by haft_io_read, not by haft_io_read_lent, and a listener only if you have not
 *   used haft_io_accept on it.
 * - Libraries need more stack than small tasks. The default, 1 MiB of addresses of which only the
 *   used part takes memory, is enough for libcurl, libpq and hiredis.
 * - What may not be interrupted by other tasks of the thread is called by haft_io_block_thread: the
 *   calls in it are the system's own. Do not close a number in it that tasks have waited on.
 * - A read that has waited on a socket looks at the socket's mode (O_NONBLOCK, SO_RCVTIMEO) again
 *   after calls of this process that change modes: not after those of another process that shares
 *   the socket.
 */
#ifndef HAFT_POSIX_H
#define HAFT_POSIX_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Whether the calls of this process reach this library: false if it was linked after the C
   library. */
bool haft_posix_answers(void);

/*
 * Writes to the descriptor, one of the first 32, are the system's own from now on and block the
 * thread, like those to a FILE: for a descriptor to which a library writes under a lock that
 * belongs to the thread, as Rust's std does to standard output and standard error.
 */
void haft_posix_block_writes(int descriptor);

/*
 * For the crate of Rust, whose std parks threads and knows nothing of tasks: the function returns
 * whether a task that waits for this word parks its thread, which is the calling one. A second task
 * of the thread that parks meanwhile is then reported on standard error, with the names and
 * backtraces of both.
 */
void haft_posix_know_parks(bool (*is_of_this_thread)(const uint32_t *word));

/* ---- Threads as tasks ------------------------------------------------------------------------ */

/*
 * From now on pthread_create on a task makes a task of the caller's run, with thread-locals of its
 * own (haft/io.h), and so do what is made of it: thrd_create, std::thread, Rust's and Python's
 * threads. On threads without tasks, and in a child of fork, it makes threads as ever. Returns 0;
 * -ENOTSUP where tasks cannot have thread-locals of their own
 * (haft_io_own_thread_locals_refused returns the reason). Any thread may call it, any number of
 * times.
 *
 * The task is a thread to the program: joined, detached, ended by pthread_exit, known by
 * pthread_self(), with values of keys and destructors of its own. It belongs to the run, which does
 * not end before it. A stack size larger than the run's is heeded, a stack that the caller gives is
 * not used. haft-threads(1) does this for programs that are not linked with this library.
 */
int haft_posix_threads_as_tasks(void);

struct haft_io_run_options;
/*
 * The same for a whole program, as haft-threads calls it: runs `main` as the first task of a run
 * with these options, NULL: the defaults, and ends the process by exit(3) with what it returns. Its
 * task has the thread-locals of the calling thread. Returns 0 if `main` has called pthread_exit,
 * when all of the program's threads have ended; -ENOTSUP as above; the errors of haft_io_run_with,
 * before `main` was called.
 */
int haft_posix_main_as_task(const struct haft_io_run_options *options,
                            int (*main)(int, char **, char **), int count, char **arguments,
                            char **environment);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
