/* SPDX-License-Identifier: MIT */
/* Terminals for tests, which define _GNU_SOURCE. Where none can be opened, as in a folder that is
   the root without /dev/pts, what needs one is left out, and the test ends as one that cannot run
   here. */
#ifndef HAFT_IO_TESTS_TERMINALS_H
#define HAFT_IO_TESTS_TERMINALS_H

#include "../../core/tests/check.h"

#include <fcntl.h>
#include <termios.h>

/* Opens the master, and the side of the program that would run in the terminal; false: there are
   none. */
static inline bool check_open_terminal(int ends[2], int flags) {
    char name[64];
    flags |= O_RDWR | O_NOCTTY | O_CLOEXEC;
    ends[0] = posix_openpt(flags);
    if (ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0 &&
        ptsname_r(ends[0], name, sizeof name) == 0 && (ends[1] = open(name, flags)) >= 0)
        return true;
    if (ends[0] >= 0)
        close(ends[0]);
    check_lacks = "a terminal (/dev/pts)";
    return false;
}

static inline void check_make_raw(int end) {
    struct termios mode;
    tcgetattr(end, &mode);
    cfmakeraw(&mode);
    tcsetattr(end, TCSANOW, &mode);
}

static inline bool check_has_terminals(void) {
    int ends[2];
    bool has_some = check_open_terminal(ends, 0);
    if (has_some) {
        close(ends[0]);
        close(ends[1]);
    }
    return has_some;
}

#endif
