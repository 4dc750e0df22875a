/* SPDX-License-Identifier: MIT */
/*
 * Haft for debuggers: where fields lie, for a debugger that reads the memory of a process or a core
 * file without debug information (tools/debug). docs/debugging.md is the user's page.
 *
 * A library that keeps fibers or tasks has a table of such records, and an ELF note that leads to
 * the table. The note stays in a program that is linked statically and stripped. Both are
 * constants: a running program never reads them.
 *
 *   note of kind 1, named "Haft-shown":   | distance from here to the table |
 *   table (haft_shown_table_t):          | magic | version | lists ... NULL |
 *   list:                                 | record | record | ... | record without a name |
 *
 * A record is a field ("task.name", its offset), a size ("task", in bytes), a constant ("=ENDED"),
 * or an address ("&runs"). Where a version of the library lacks a record, the debugger names it.
 */
#ifndef HAFT_SHOWN_H
#define HAFT_SHOWN_H

#include <stddef.h>
#include <stdint.h>

typedef struct haft_shown {
    char name[32];
    uintptr_t value;
} haft_shown_t;
#define HAFT_SHOWN_FIELD(name, type, field)                                                        \
    { name "." #field, offsetof(type, field) }
#define HAFT_SHOWN_SIZE(name, type)                                                                \
    { name, sizeof(type) }
#define HAFT_SHOWN_NUMBER(name, number)                                                            \
    { "=" name, (uintptr_t)(number) }
#define HAFT_SHOWN_ADDRESS(name, object)                                                           \
    { "&" name, (uintptr_t) & (object) }
/* The thread pointer of the ABI, from which debuggers find a thread-local variable whose distance
   from it the library has written down. */
static inline uintptr_t haft_thread_pointer(void) {
    uintptr_t pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}
/* The last of a list. */
#define HAFT_SHOWN_END                                                                             \
    { "", 0 }

#define HAFT_SHOWN_MAGIC "HaftShow"
/* Version of the meaning of the records. A new name needs no new version. */
#define HAFT_SHOWN_VERSION 1
enum { HAFT_SHOWN_MOST = 15 };
typedef struct haft_shown_table {
    char magic[8];
    uint32_t version;
    uint32_t address_size;
    const haft_shown_t *lists[HAFT_SHOWN_MOST + 1]; /* NULL after the last */
} haft_shown_table_t;

/* Defines the table, of the lists that follow, and its note. `name` is a symbol of the library's
   own. Once in a library, in an object that every program with it has. */
#define HAFT_SHOWN_TABLE(name, ...)                                                                \
    __attribute__((used, visibility("hidden")))                                                    \
    const haft_shown_table_t name = {{'H', 'a', 'f', 't', 'S', 'h', 'o', 'w'},                     \
                                     HAFT_SHOWN_VERSION,                                           \
                                     sizeof(void *),                                               \
                                     {__VA_ARGS__}};                                               \
    __asm__(".pushsection .note.haft.shown, \"a\", %note\n\t"                                      \
            ".balign 4\n\t"                                                                        \
            ".long 11\n\t" /* lengths of the note's name and of its content; its kind */           \
            ".long 4\n\t"                                                                          \
            ".long 1\n\t"                                                                          \
            ".asciz \"Haft-shown\"\n\t"                                                            \
            ".balign 4\n\t"                                                                        \
            ".long " #name " - .\n\t"                                                              \
            ".popsection")

#endif
