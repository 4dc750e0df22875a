/* SPDX-License-Identifier: MIT */
/*
 * The system call itself, which changes no errno. The C library's `syscall` may be libhaft-posix's,
 * which serves futexes of tasks by waits that in the end use this function. libhaft-posix includes
 * this file, too.
 */
#ifndef HAFTI_IO_SYSTEM_CALL_H
#define HAFTI_IO_SYSTEM_CALL_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* The result, or the negative error number. */
static inline long hafti_io_system_call(long number, long first, long second, long third,
                                        long fourth, long fifth, long sixth) {
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = fourth;
    register long r8 __asm__("r8") = fifth;
    register long r9 __asm__("r9") = sixth;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    register long x2 __asm__("x2") = third;
    register long x3 __asm__("x3") = fourth;
    register long x4 __asm__("x4") = fifth;
    register long x5 __asm__("x5") = sixth;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}

/* A futex call on a word that no other process uses. */
static inline long hafti_io_futex(uint32_t *word, int operation, uint32_t value,
                                  const struct timespec *until) {
    return hafti_io_system_call(SYS_futex, (long)word, operation | FUTEX_PRIVATE_FLAG, value,
                                (long)until, 0, FUTEX_BITSET_MATCH_ANY);
}

#endif
