/* SPDX-License-Identifier: MIT */
/* Opening FIFOs. The kernel does not notify when the other end is opened, so the open is tried
   again after pauses that grow. FIFOs are the machine's, also where libhaft-posix uses a
   simulation's files for openat(2). */
#include "operations.h"
#include "system_call.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool hafti_io_waits_for_other_end(int directory, const char *path, int flags) {
    struct stat status;
    return (flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) == 0 && (flags & O_ACCMODE) != O_RDWR &&
           HAFTI_IO_RESULT(fstatat(directory, path, &status, 0)) == 0 && S_ISFIFO(status.st_mode);
}

/* Sleeps, and makes the next pause longer. 0, or -ECANCELED. */
static int wait_a_little(int64_t *pause) {
    enum { LONGEST = 32 * HAFT_IO_MILLISECOND };
    *pause = *pause == 0 ? HAFT_IO_MILLISECOND : *pause < LONGEST ? 2 * *pause : LONGEST;
    return haft_io_sleep(*pause);
}

/* Whether the non-blocking FIFO has, or had, a writer. tee takes nothing from it, and returns
   EAGAIN only if there is a writer. */
static bool has_writer(int fifo, int copy) {
    return HAFTI_IO_RESULT(tee(fifo, copy, 1, SPLICE_F_NONBLOCK)) != 0 ||
           hafti_io_poll_blocking(&(struct pollfd){fifo, POLLIN, 0}, 1, 0) != 0;
}

static int wait_for_writer(int fifo) {
    int ends[2];
    int code = HAFTI_IO_RESULT(pipe2(ends, O_CLOEXEC));
    if (code != 0)
        return code;
    HAFT_IO_SCOPED_DESCRIPTOR int copy = ends[1];
    HAFT_IO_SCOPED_DESCRIPTOR __attribute__((unused)) int unread = ends[0];
    int64_t pause = 0;
    while (code == 0 && !has_writer(fifo, copy))
        code = wait_a_little(&pause);
    return code;
}

int haft_io_open_fifo(int directory, const char *path, int flags, mode_t mode) {
    int64_t pause = 0;
    int code = 0;
    HAFT_IO_SCOPED_DESCRIPTOR int fifo = -1;
    for (;;) {
        fifo = (int)hafti_io_system_call(SYS_openat, directory, (long)path,
                                         flags | O_NONBLOCK | O_CLOEXEC, (long)mode, 0, 0);
        if (fifo != -ENXIO && fifo != -EINTR)
            break;
        code = wait_a_little(&pause);
        if (code != 0)
            return code;
    }
    if (fifo >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        code = wait_for_writer(fifo);
    if (fifo < 0 || code != 0)
        return code != 0 ? code : fifo;
    fcntl(fifo, F_SETFL, fcntl(fifo, F_GETFL) & ~O_NONBLOCK); /* No other task has it. */
    int opened = fifo;
    fifo = -1;
    return opened;
}
