/* SPDX-License-Identifier: MIT */
/*
 * Functions by address, from the symbol tables of the files that are loaded. The table that the linker leaves (.symtab) has
 * static functions as well, without debug information and without -rdynamic; where it was stripped, the dynamic one
 * is looked at.
 *
 * In a program that is linked with the archives the library's own static functions are told from the program's by a
 * variable that internal.h defines in each of the library's files: a table lists the local symbols file by file, each
 * after an entry with the file's name.
 *
 *   FILE scope.c, haft_io_own, cancel_tasks, ... FILE main.c, serve, ... (global symbols:) haft_io_scope, main
 */
#include "symbols.h"

#include "internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Files ---- */

typedef struct search {
    uintptr_t address;
    haft_io_module_t *module;
} search_t;

static int is_there(struct dl_phdr_info *info, size_t size, void *argument) {
    search_t *search = argument;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD ||
            search->address - info->dlpi_addr - part->p_vaddr >= part->p_memsz)
            continue;
        search->module->base = info->dlpi_addr;
        snprintf(search->module->path, sizeof search->module->path, "%s", info->dlpi_name);
        return 1;
    }
    return 0;
}

static void map(haft_io_module_t *module) {
    /* (By no function that libhaft-posix answers: the caller may be in a signal handler.) */
    const char *path = module->path[0] != '\0' ? module->path : "/proc/self/exe";
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    module->bytes = NULL;
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && (size_t)status.st_size >= sizeof(ElfW(Ehdr))) {
        module->size = (size_t)status.st_size;
        void *bytes = mmap(NULL, module->size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED)
            module->bytes = bytes;
    }
    syscall(SYS_close, file);
}

static void unmap(haft_io_module_t *module) {
    if (module->bytes != NULL)
        munmap((void *)(uintptr_t)module->bytes, module->size);
}

/* NULL: no file has it. */
static const haft_io_module_t *module_of(haft_io_modules_t *modules, uintptr_t address) {
    haft_io_module_t found;
    search_t search = {address, &found};
    if (dl_iterate_phdr(is_there, &search) == 0)
        return NULL;
    for (size_t i = 0; i < modules->count; i++)
        if (modules->of[i].base == found.base)
            return &modules->of[i];
    if (modules->count == HAFT_IO_MOST_MODULES) /* The last one makes room. */
        unmap(&modules->of[--modules->count]);
    modules->of[modules->count] = found;
    map(&modules->of[modules->count]);
    return &modules->of[modules->count++];
}

void haft_io_close_modules(haft_io_modules_t *modules) {
    while (modules->count != 0)
        unmap(&modules->of[--modules->count]);
}

/* ---- Symbols ---- */

typedef struct table {
    const ElfW(Sym) * symbols;
    size_t count;
    const char *names;
    size_t names_size;
} table_t;

/* So many bytes of the file, or NULL. */
static const void *part_of(const haft_io_module_t *module, uint64_t at, uint64_t size) {
    return at <= module->size && size <= module->size - at ? module->bytes + at : NULL;
}

static const ElfW(Shdr) *
    section_of(const haft_io_module_t *module, const ElfW(Ehdr) * header, uint64_t index) {
    return index < header->e_shnum
               ? part_of(module, header->e_shoff + index * sizeof(ElfW(Shdr)), sizeof(ElfW(Shdr)))
               : NULL;
}

/* Of this type; empty: there is none. */
static table_t table_of(const haft_io_module_t *module, uint32_t type) {
    static const table_t none;
    const ElfW(Ehdr) *header = part_of(module, 0, sizeof *header);
    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(ElfW(Shdr)))
        return none;
    for (uint64_t i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *section = section_of(module, header, i);
        if (section == NULL || section->sh_type != type)
            continue;
        const ElfW(Shdr) *names = section_of(module, header, section->sh_link);
        table_t table = {part_of(module, section->sh_offset, section->sh_size),
                         section->sh_size / sizeof(ElfW(Sym)), NULL, 0};
        if (names != NULL && table.symbols != NULL && names->sh_size != 0) {
            table.names = part_of(module, names->sh_offset, names->sh_size);
            table.names_size = names->sh_size;
        }
        /* The last name ends in the table. */
        if (table.names != NULL && table.names[table.names_size - 1] == '\0')
            return table;
    }
    return none;
}

static const char *name_of(const table_t *table, const ElfW(Sym) * symbol) {
    return symbol->st_name < table->names_size ? table->names + symbol->st_name : "";
}

static bool begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Names of functions that are not static. The last ones are between io.hpp and what it calls, and __morestack is the first
   frame of a fiber. */
static bool is_own_name(const char *name) {
    static const char *const beginnings[] = {"haft",          "_ZN4haft",    "_ZNK4haft",
                                             "_ZSt8__invoke", "_ZSt6invoke", "_ZSt13__invoke",
                                             "__morestack"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (begins_with(name, beginnings[i]))
            return true;
    return false;
}

/* Finds the function with the address in the file; false: there is none. */
static bool find_function(const table_t *table, uintptr_t at, haft_io_frame_t *frame) {
    const ElfW(Sym) *found = NULL;
    size_t file = 0, files_own = SIZE_MAX, founds_file = SIZE_MAX;
    bool is_own = false;
    for (size_t i = 0; i < table->count; i++) {
        const ElfW(Sym) *symbol = &table->symbols[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        bool is_local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
        if (type == STT_FILE)
            file = i;
        if (type == STT_OBJECT && is_local && strcmp(name_of(table, symbol), "haft_io_own") == 0)
            files_own = file;
        if (type == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            at - symbol->st_value < symbol->st_size) {
            found = symbol;
            founds_file = is_local ? file : SIZE_MAX - 1;
            is_own = false;
        }
        is_own |= files_own == founds_file;
    }
    if (found == NULL)
        return false;
    frame->function = name_of(table, found);
    frame->offset = at - found->st_value;
    frame->is_own |= is_own || is_own_name(frame->function);
    return true;
}

static const char *file_of(const haft_io_module_t *module) {
    if (module->path[0] == '\0')
        return program_invocation_short_name;
    const char *slash = strrchr(module->path, '/');
    return slash != NULL ? slash + 1 : module->path;
}

haft_io_frame_t haft_io_frame_of(haft_io_modules_t *modules, const void *address) {
    uintptr_t called = (uintptr_t)address - 1; /* The function may end with the call. */
    const haft_io_module_t *module = module_of(modules, called);
    if (module == NULL)
        return (haft_io_frame_t){NULL, (uintptr_t)address, "no file", false};
    haft_io_frame_t frame = {NULL, called - module->base, file_of(module), false};
    frame.is_own = begins_with(frame.file, "libhaft");
    if (module->bytes != NULL) {
        static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
            table_t table = table_of(module, types[i]);
            if (find_function(&table, called - module->base, &frame))
                break;
        }
    }
    frame.offset++;
    return frame;
}

/* ---- On standard error ---- */

void haft_io_print_frames(void *const *addresses, int count) {
    haft_io_modules_t modules = {.count = 0};
    for (int i = 0; i < count; i++) {
        haft_io_frame_t frame = haft_io_frame_of(&modules, addresses[i]);
        if (!frame.is_own)
            dprintf(STDERR_FILENO, "  %s+0x%zx (%s)\n",
                    frame.function != NULL ? frame.function : "", (size_t)frame.offset, frame.file);
    }
    haft_io_close_modules(&modules);
}
