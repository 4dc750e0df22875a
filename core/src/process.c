/* SPDX-License-Identifier: MIT */
/*
 * Work of a process when it loads the object (program or shared library) that holds this copy of
 * the library: it looks for other copies, and keeps the object.
 *
 * Each copy has handlers and threads' states of its own, and knows nothing of what the others
 * switch. A copy that is linked into a program or a plugin exports nothing; but it has a note,
 * which is found in the program headers.
 *
 * The object stays for as long as the process: threads that have used the library end in it, and
 * the handlers of faults and of fork are in it. A plugin would otherwise leave nothing there when
 * it is closed.
 */
#define _GNU_SOURCE
#include "whole.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#define NOTE_NAME "Haft"
__asm__(".pushsection .note.haft, \"a\", %note\n\t"
        ".balign 4\n\t"
        ".long 5\n\t" /* lengths of the name and of the content; the kind */
        ".long 0\n\t"
        ".long 1\n\t"
        ".asciz \"" NOTE_NAME "\"\n\t"
        ".balign 4\n\t"
        ".popsection");

typedef struct copies {
    char others[200]; /* the last one before this */
    bool found, this_is_last;
} copies_t;

static void on_load(void);

static bool has_note(const ElfW(Phdr) * header, const char *base) {
    const char *at = base + header->p_vaddr, *end = at + header->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
        if (note->n_namesz == sizeof NOTE_NAME &&
            memcmp(at + sizeof *note, NOTE_NAME, sizeof NOTE_NAME) == 0)
            return true;
        at += sizeof *note + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
    }
    return false;
}

static int look(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    copies_t *copies = argument;
    const char *base = (const char *)object->dlpi_addr;
    bool noted = false, mine = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_LOAD)
            mine |= (uintptr_t)on_load - (uintptr_t)(base + header->p_vaddr) < header->p_memsz;
        if (header->p_type == PT_NOTE)
            noted |= has_note(header, base);
    }
    if (mine) {
        copies->this_is_last = true;
    } else if (noted) {
        copies->found = true;
        copies->this_is_last = false;
        const char *name = object->dlpi_name[0] != '\0' ? object->dlpi_name : "the program";
        snprintf(copies->others, sizeof copies->others, "%s", name);
    }
    return 0;
}

extern int dladdr(const void *address, Dl_info *information) __attribute__((weak));
extern void *dlopen(const char *file, int mode) __attribute__((weak));

static void keep(const Dl_info *own) {
    const char *headers = (const char *)(uintptr_t)getauxval(AT_PHDR);
    bool is_program = headers >= (const char *)own->dli_fbase &&
                      headers < (const char *)own->dli_fbase + sizeof(ElfW(Ehdr)) + 1;
    if (!is_program && dlopen != NULL)
        (void)dlopen(own->dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Not on first use: a thread may then hold the loader's lock and wait for that use to end. */
__attribute__((constructor)) static void on_load(void) {
    Dl_info own = {.dli_fname = NULL};
    if (dladdr != NULL && dladdr((const void *)(uintptr_t)on_load, &own) != 0)
        keep(&own);
    copies_t copies = {.found = false};
    dl_iterate_phdr(look, &copies);
    if (copies.found && copies.this_is_last)
        haft_report(
            HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
            "This process has two copies of the library, in %s and in %s. What is performed "
            "through one is not seen by handlers of the other. Link all of the program and "
            "its plugins with libhaft.so.",
            copies.others, own.dli_fname != NULL ? own.dli_fname : "the program");
}

/* Makes this file and the table for debuggers parts of every program with libhaft.a. */
void haft_process_knows(void) {
    __asm__ volatile("" : : "r"(&haft_shown));
}
