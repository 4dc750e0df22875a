/* SPDX-License-Identifier: MIT */
/*
 * Notes which sockets block without limits of time, so that a read or write of one need not ask the
 * system before each wait (F_GETFL, SO_RCVTIMEO, SO_SNDTIMEO). The result is kept by number until
 * the number becomes another file's, or until any descriptor of the process gets another mode: it
 * is unknown which of them share one.
 *
 *   a word, by number | bits 0 to 31                                     | 32 to 63
 *   UNKNOWN           | 0                                                | how often the
 *   found out         | `changes` then, and whether it is plain (below)  | number has changed
 *   being closed      | CHANGING                                         |
 *
 * Only calls that come to this library are noticed: not those of other processes that share a
 * socket, nor system calls by other ways.
 */
#include "internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/ioctl.h>

enum { NUMBERS = 1 << 16 }; /* that are known; the others are asked each time */
enum { PLAIN = 1, A_CHANGE = 2 };
static const uint32_t CHANGING = UINT32_MAX;

static uint64_t words[NUMBERS];
static uint32_t changes = A_CHANGE; /* of modes */
static bool low_water;              /* a low-water mark has been set on some socket */

static uint32_t changes_now(void) {
    return __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
}

void hafti_posix_mode_has_changed(void) {
    __atomic_fetch_add(&changes, A_CHANGE, __ATOMIC_ACQ_REL);
}

static void change_number(int number, uint32_t to) {
    if (number < 0 || number >= NUMBERS)
        return;
    uint64_t word = __atomic_load_n(&words[number], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&words[number], &word, ((word >> 32) + 1) << 32 | to, true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        continue;
}
void hafti_posix_number_changes(int number) {
    change_number(number, CHANGING);
}
void hafti_posix_number_has_changed(int number) {
    change_number(number, 0);
}

bool hafti_posix_is_plain(int number) {
    return number >= 0 && number < NUMBERS &&
           (uint32_t)__atomic_load_n(&words[number], __ATOMIC_ACQUIRE) == (changes_now() | PLAIN);
}

hafti_posix_look_t hafti_posix_look(int number) {
    uint64_t word = number >= 0 && number < NUMBERS
                        ? __atomic_load_n(&words[number], __ATOMIC_ACQUIRE)
                        : CHANGING;
    return (hafti_posix_look_t){word, changes_now()};
}

/* Whether the socket may have TLS in the kernel, where the end of a record ends a read and no event
   reports further bytes. Also true for what is no socket. */
static bool may_have_layer(int number) {
    char name[16] = "";
    socklen_t size = sizeof name;
    int code =
        HAFTI_IO_RESULT(SYSTEM_OF(number, getsockopt)(number, IPPROTO_TCP, TCP_ULP, name, &size));
    return code == 0 ? size != 0 && name[0] != '\0' : code == -ENOTSOCK || code == -EBADF;
}

void hafti_posix_note_wait(int number, hafti_posix_look_t look) {
    uint32_t found = (uint32_t)look.word;
    if (found == CHANGING || (found & ~(uint32_t)PLAIN) == look.changes)
        return;
    bool is_plain = !__atomic_load_n(&low_water, __ATOMIC_RELAXED) && !may_have_layer(number) &&
                    hafti_posix_socket_deadline(number, SO_SNDTIMEO) == HAFT_IO_FOREVER;
    uint64_t noted = look.word >> 32 << 32 | look.changes | (is_plain ? PLAIN : 0);
    __atomic_compare_exchange_n(&words[number], &look.word, noted, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

bool hafti_posix_some_low_water(void) {
    return __atomic_load_n(&low_water, __ATOMIC_RELAXED);
}

/* ---- Functions that change modes ---- */

static bool concerns_waits(int level, int option) {
    if (level == IPPROTO_TCP)
        return option == TCP_ULP;
    return level == SOL_SOCKET &&
           (option == SO_RCVTIMEO || option == SO_SNDTIMEO || option == SO_RCVLOWAT);
}

HAFT_POSIX_EXPORT int setsockopt(int socket, int level, int option, const void *value,
                                 socklen_t size) {
    if (level == SOL_SOCKET && option == SO_RCVLOWAT)
        __atomic_store_n(&low_water, true, __ATOMIC_RELAXED);
    int code = SYSTEM_OF(socket, setsockopt)(socket, level, option, value, size);
    if (concerns_waits(level, option))
        hafti_posix_mode_has_changed();
    return code;
}

HAFT_POSIX_EXPORT int ioctl(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *); /* or a number, which the system takes from it */
    va_end(arguments);
    int code = SYSTEM_OF(descriptor, ioctl)(descriptor, request, argument);
    if (request == FIONBIO)
        hafti_posix_mode_has_changed();
    return code;
}
