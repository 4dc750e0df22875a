/* SPDX-License-Identifier: MIT */
/*
 * Streams of stdio, for haft-threads: a task that reads from a pipe, a socket or a terminal by a
 * FILE waits as a task, and so does one that comes to a FILE which another has locked meanwhile.
 *
 *     fgets (below)          locks the stream: if another task has it, this one waits, as a task
 *       fgets of the C library   locks it once more, finds its buffer empty
 *         read_as_task           stands in the table of functions by which the C library's streams
 *                                read files: it calls read(2) of libhaft-posix, which waits
 *       unlocks it, and wakes the next
 *
 * The lock of a stream has the task as its owner, since a thread that is a task has thread-locals
 * of its own. Without the functions below, the C library would wait for the lock by itself, and
 * the thread of the system with it. It still does where it locks a stream inside of another
 * function (fflush(NULL), perror).
 *
 * Files of disks are read as ever: the C library reads some under locks that are not a stream's
 * (the time zone, the names of hosts). Writes are as ever, too.
 */
#include "streams.h"

#include <haft/io.h>
#include <haft/io_binding.h>

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

/* ---- Reading ---- */

typedef ssize_t read_t(FILE *, void *, ssize_t);
static read_t *read_plainly;

/* Not by an effect alone: constructors of libraries print before those of libhaft-io have run. */
static bool is_on_task(void) {
    return haft_io_runs_here() && haft_io_self() != NULL;
}

/* Whether a read of the descriptor may wait for another program: a pipe, a socket, a terminal. */
static bool may_wait(int descriptor) {
    struct stat status;
    return is_on_task() && fstat(descriptor, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode));
}

static ssize_t read_as_task(FILE *stream, void *buffer, ssize_t size) {
    int descriptor = fileno_unlocked(stream);
    return may_wait(descriptor) ? read(descriptor, buffer, (size_t)size)
                                : read_plainly(stream, buffer, size);
}

/* The tables lie in the part of the C library that is written only while it is loaded. */
typedef struct tables {
    uintptr_t one; /* of them, which stdin has */
    char *low, *high;
} tables_t;

static int find_tables(struct dl_phdr_info *file, size_t size, void *argument) {
    tables_t *tables = argument;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    for (int i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        uintptr_t low = file->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;
        if (part->p_type == PT_GNU_RELRO && tables->one >= low && tables->one < high) {
            tables->low = (char *)(low & -page);
            tables->high = (char *)(high & -page);
            return 1;
        }
    }
    return 0;
}

/* With a C library of another structure, streams are read as ever. */
void haft_threads_wait_in_streams(void) {
    struct {
        FILE stream;
        uintptr_t table;
    } const *standard = (const void *)stdin;
    tables_t tables = {.one = standard->table};
    void *found = dlsym(RTLD_DEFAULT, "_IO_file_read");
    read_t *replacement = read_as_task;
    if (found == NULL || dl_iterate_phdr(find_tables, &tables) == 0 ||
        mprotect(tables.low, (size_t)(tables.high - tables.low), PROT_READ | PROT_WRITE) != 0)
        return;
    memcpy(&read_plainly, &found, sizeof found);
    for (char *place = tables.low; place < tables.high; place += sizeof found)
        if (memcmp(place, &found, sizeof found) == 0)
            memcpy(place, &replacement, sizeof replacement);
    mprotect(tables.low, (size_t)(tables.high - tables.low), PROT_READ);
}

/* ---- Locks ---- */

static FILE *lock(FILE *stream) {
    if (stream == NULL || !is_on_task())
        return NULL;
    flockfile(stream);
    return stream;
}
/* Called at the end of the function, also when its thread is cancelled in it. */
static void unlock(FILE **locked) {
    if (*locked != NULL)
        funlockfile(*locked);
}
#define LOCK(stream) __attribute__((cleanup(unlock), unused)) FILE *locked = lock(stream)

/* Finds the function that comes after this library's. */
static void *find(void **kept, const char *name) {
    void *found = __atomic_load_n(kept, __ATOMIC_RELAXED);
    if (found == NULL) {
        found = dlsym(RTLD_NEXT, name);
        __atomic_store_n(kept, found, __ATOMIC_RELAXED);
    }
    return found;
}

/* Declares `next`, the function of this name and type that is behind this library's. */
#define NEXT(type, name, parameters)                                                               \
    static void *kept;                                                                             \
    void *found = find(&kept, #name);                                                              \
    type(*next) parameters;                                                                        \
    memcpy(&next, &found, sizeof found)

/* Defines the function, by another name in C: headers have macros and other forms for some. */
#define DEFINE(type, name, parameters)                                                             \
    __attribute__((visibility("default"))) type haft_threads_##name parameters __asm__(#name);     \
    type haft_threads_##name parameters

#define LOCKED(type, name, parameters, arguments, stream)                                          \
    DEFINE(type, name, parameters) {                                                               \
        NEXT(type, name, parameters);                                                              \
        LOCK(stream);                                                                              \
        return next arguments;                                                                     \
    }
#define LOCKED_VOID(name, parameters, arguments, stream)                                           \
    DEFINE(void, name, parameters) {                                                               \
        NEXT(void, name, parameters);                                                              \
        LOCK(stream);                                                                              \
        next arguments;                                                                            \
    }
/* One with further arguments, by the function that takes them as a list. */
#define LISTED(name, parameters, last, by, by_parameters, by_arguments, stream)                    \
    DEFINE(int, name, parameters) {                                                                \
        NEXT(int, by, by_parameters);                                                              \
        LOCK(stream);                                                                              \
        va_list list;                                                                              \
        va_start(list, last);                                                                      \
        int result = next by_arguments;                                                            \
        va_end(list);                                                                              \
        return result;                                                                             \
    }

/* ---- Bytes ---- */

LOCKED(int, fgetc, (FILE * s), (s), s)
LOCKED(int, getc, (FILE * s), (s), s)
LOCKED(int, _IO_getc, (FILE * s), (s), s)
LOCKED(int, getchar, (void), (), stdin)
LOCKED(int, getw, (FILE * s), (s), s)
LOCKED(int, ungetc, (int c, FILE *s), (c, s), s)
LOCKED(char *, fgets, (char *to, int size, FILE *s), (to, size, s), s)
LOCKED(char *, __fgets_chk, (char *to, size_t room, int size, FILE *s), (to, room, size, s), s)
LOCKED(size_t, fread, (void *to, size_t size, size_t count, FILE *s), (to, size, count, s), s)
LOCKED(size_t, __fread_chk, (void *to, size_t room, size_t size, size_t count, FILE *s),
       (to, room, size, count, s), s)
LOCKED(ssize_t, getline, (char **to, size_t *room, FILE *s), (to, room, s), s)
LOCKED(ssize_t, getdelim, (char **to, size_t *room, int end, FILE *s), (to, room, end, s), s)
LOCKED(ssize_t, __getdelim, (char **to, size_t *room, int end, FILE *s), (to, room, end, s), s)

LOCKED(int, fputc, (int c, FILE *s), (c, s), s)
LOCKED(int, putc, (int c, FILE *s), (c, s), s)
LOCKED(int, _IO_putc, (int c, FILE *s), (c, s), s)
LOCKED(int, putchar, (int c), (c), stdout)
LOCKED(int, putw, (int word, FILE *s), (word, s), s)
LOCKED(int, fputs, (const char *text, FILE *s), (text, s), s)
LOCKED(int, puts, (const char *text), (text), stdout)
LOCKED(size_t, fwrite, (const void *of, size_t size, size_t count, FILE *s), (of, size, count, s),
       s)
LOCKED(int, fflush, (FILE * s), (s), s)

/* ---- Places and states ---- */

LOCKED(int, fseek, (FILE * s, long to, int from), (s, to, from), s)
LOCKED(int, fseeko, (FILE * s, off_t to, int from), (s, to, from), s)
LOCKED(int, fseeko64, (FILE * s, off64_t to, int from), (s, to, from), s)
LOCKED(long, ftell, (FILE * s), (s), s)
LOCKED(off_t, ftello, (FILE * s), (s), s)
LOCKED(off64_t, ftello64, (FILE * s), (s), s)
LOCKED(int, fgetpos, (FILE * s, fpos_t *to), (s, to), s)
LOCKED(int, fgetpos64, (FILE * s, fpos64_t *to), (s, to), s)
LOCKED(int, fsetpos, (FILE * s, const fpos_t *to), (s, to), s)
LOCKED(int, fsetpos64, (FILE * s, const fpos64_t *to), (s, to), s)
LOCKED_VOID(rewind, (FILE * s), (s), s)
LOCKED(int, feof, (FILE * s), (s), s)
LOCKED(int, ferror, (FILE * s), (s), s)
LOCKED_VOID(clearerr, (FILE * s), (s), s)
LOCKED(int, setvbuf, (FILE * s, char *buffer, int mode, size_t size), (s, buffer, mode, size), s)
LOCKED_VOID(setbuf, (FILE * s, char *buffer), (s, buffer), s)
LOCKED_VOID(setbuffer, (FILE * s, char *buffer, size_t size), (s, buffer, size), s)
LOCKED_VOID(setlinebuf, (FILE * s), (s), s)

/* ---- Ends ---- */

static int leave_open(void *unused) {
    (void)unused;
    return 0;
}
/* Ends the wait of a task in the stream: it gets the error of a closed descriptor, and gives back
   the lock. */
static void let_out(FILE *stream) {
    if (!is_on_task())
        return;
    if (ftrylockfile(stream) != 0) {
        haft_io_close_by(fileno_unlocked(stream), leave_open, NULL);
        flockfile(stream);
    }
    funlockfile(stream);
}

#define ENDS(type, name, parameters, arguments)                                                    \
    DEFINE(type, name, parameters) {                                                               \
        NEXT(type, name, parameters);                                                              \
        let_out(s);                                                                                \
        return next arguments;                                                                     \
    }
ENDS(int, fclose, (FILE * s), (s))
ENDS(int, pclose, (FILE * s), (s))
ENDS(FILE *, freopen, (const char *path, const char *mode, FILE *s), (path, mode, s))
ENDS(FILE *, freopen64, (const char *path, const char *mode, FILE *s), (path, mode, s))

/* ---- Formats ---- */

#define PRINT (FILE *, const char *, va_list)
#define PRINT_CHECKED (FILE *, int, const char *, va_list)

LISTED(fprintf, (FILE * s, const char *format, ...), format, vfprintf, PRINT, (s, format, list), s)
LISTED(printf, (const char *format, ...), format, vfprintf, PRINT, (stdout, format, list), stdout)
LISTED(__fprintf_chk, (FILE * s, int flag, const char *format, ...), format, __vfprintf_chk,
       PRINT_CHECKED, (s, flag, format, list), s)
LISTED(__printf_chk, (int flag, const char *format, ...), format, __vfprintf_chk, PRINT_CHECKED,
       (stdout, flag, format, list), stdout)
LOCKED(int, vfprintf, (FILE * s, const char *format, va_list list), (s, format, list), s)
LOCKED(int, vprintf, (const char *format, va_list list), (format, list), stdout)
LOCKED(int, __vfprintf_chk, (FILE * s, int flag, const char *format, va_list list),
       (s, flag, format, list), s)
LOCKED(int, __vprintf_chk, (int flag, const char *format, va_list list), (flag, format, list),
       stdout)

/* The names are of the standards before C99, of C99 and of C23. */
#define SCANS(prefix)                                                                              \
    LISTED(prefix##fscanf, (FILE * s, const char *format, ...), format, prefix##vfscanf, PRINT,    \
           (s, format, list), s)                                                                   \
    LISTED(prefix##scanf, (const char *format, ...), format, prefix##vfscanf, PRINT,               \
           (stdin, format, list), stdin)                                                           \
    LOCKED(int, prefix##vfscanf, (FILE * s, const char *format, va_list list), (s, format, list),  \
           s)                                                                                      \
    LOCKED(int, prefix##vscanf, (const char *format, va_list list), (format, list), stdin)
SCANS()
SCANS(__isoc99_)
SCANS(__isoc23_)

/* ---- Wide characters ---- */

LOCKED(wint_t, fgetwc, (FILE * s), (s), s)
LOCKED(wint_t, getwc, (FILE * s), (s), s)
LOCKED(wint_t, getwchar, (void), (), stdin)
LOCKED(wint_t, ungetwc, (wint_t c, FILE *s), (c, s), s)
LOCKED(wchar_t *, fgetws, (wchar_t * to, int size, FILE *s), (to, size, s), s)
LOCKED(wint_t, fputwc, (wchar_t c, FILE *s), (c, s), s)
LOCKED(wint_t, putwc, (wchar_t c, FILE *s), (c, s), s)
LOCKED(wint_t, putwchar, (wchar_t c), (c), stdout)
LOCKED(int, fputws, (const wchar_t *text, FILE *s), (text, s), s)
LOCKED(int, vfwprintf, (FILE * s, const wchar_t *format, va_list list), (s, format, list), s)
LISTED(fwprintf, (FILE * s, const wchar_t *format, ...), format, vfwprintf,
       (FILE *, const wchar_t *, va_list), (s, format, list), s)
LISTED(wprintf, (const wchar_t *format, ...), format, vfwprintf, (FILE *, const wchar_t *, va_list),
       (stdout, format, list), stdout)
