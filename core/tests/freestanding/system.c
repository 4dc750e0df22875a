/*
 * The test program's replacement for a libc: an entry, two system calls, and the four functions
 * that compilers call by themselves and every freestanding program has to bring along.
 */
#include "system.h"

#if defined(__x86_64__)
enum { SYSTEM_WRITE = 1, SYSTEM_EXIT_GROUP = 231 };

static long system_call(long number, long first, const void *second, size_t third) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
}

__asm__(".globl _start\n"
        "_start:\n\t"
        "xorl %ebp, %ebp\n\t"
        "andq $-16, %rsp\n\t"
        "call run_tests\n\t"
        "ud2");
#elif defined(__aarch64__)
enum { SYSTEM_WRITE = 64, SYSTEM_EXIT_GROUP = 94 };

static long system_call(long number, long first, const void *second, size_t third) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register const void *x1 __asm__("x1") = second;
    register size_t x2 __asm__("x2") = third;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

__asm__(".globl _start\n"
        "_start:\n\t"
        "mov x29, #0\n\t"
        "mov x30, #0\n\t"
        "bl run_tests\n\t"
        "brk #1");
#endif

void print(const char *text) {
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    (void)system_call(SYSTEM_WRITE, 1, text, size);
}

void leave(int status) {
    (void)system_call(SYSTEM_EXIT_GROUP, status, NULL, 0);
    __builtin_trap();
}

/* The empty assembly keeps the compiler from making calls to these functions of their loops. */
#define AS_IT_STANDS() __asm__ volatile("" ::: "memory")

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        ((char *)to)[i] = ((const char *)from)[i];
        AS_IT_STANDS();
    }
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    if ((uintptr_t)to - (uintptr_t)from >= size)
        return memcpy(to, from, size);
    while (size-- > 0) {
        ((char *)to)[size] = ((const char *)from)[size];
        AS_IT_STANDS();
    }
    return to;
}

void *memset(void *to, int value, size_t size) {
    for (size_t i = 0; i < size; i++) {
        ((char *)to)[i] = (char)value;
        AS_IT_STANDS();
    }
    return to;
}

int memcmp(const void *first, const void *second, size_t size) {
    const unsigned char *a = first;
    const unsigned char *b = second;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            return a[i] - b[i];
    return 0;
}
/* SPDX-License-Identifier: MIT */
