/* SPDX-License-Identifier: MIT */
/* The calls of the test program to the outside. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stddef.h>
#include <stdint.h>

void print(const char *text);
__attribute__((noreturn)) void leave(int status);
__attribute__((noreturn)) void run_tests(void);

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *first, const void *second, size_t size);

#endif
