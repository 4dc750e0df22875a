/* SPDX-License-Identifier: MIT */
/*
 * A writer gathers what is written to a stream, in the caller's memory:
 *
 *   | written already ... | gathered ... | room ... |
 *   memory                start          end        size
 *
 * Only a write that has returned moves `start`: so one that is cancelled, or fails, has lost
 * nothing, and the next flush goes on.
 */
#include "objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

static size_t gathered(const haft_io_writer_t *writer) {
    return writer->end - writer->start;
}

/* Removes bytes that the kernel has taken: first gathered ones, and then some of the further ones,
   whose number is returned. */
static size_t take(haft_io_writer_t *writer, size_t done) {
    size_t first = done < gathered(writer) ? done : gathered(writer);
    writer->start += first;
    if (writer->start == writer->end)
        writer->start = writer->end = 0;
    return done - first;
}

int haft_io_writer_flush(haft_io_writer_t *writer) {
    HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(writer->descriptor);
    int code = 0;
    while (code == 0 && gathered(writer) != 0) {
        ssize_t done =
            haft_io_write(use.descriptor, writer->memory + writer->start, gathered(writer));
        if (done < 0)
            return (int)done;
        take(writer, (size_t)done);
        if (gathered(writer) != 0)
            code = hafti_io_next_part(&use);
    }
    return code;
}

static void gather(haft_io_writer_t *writer, const char *bytes, size_t size) {
    memcpy(writer->memory + writer->end, bytes, size);
    writer->end += size;
}

/* Writes the gathered and the new bytes together, until the rest fits; returns how many of the new
   ones are written. */
static ssize_t write_until_fits(haft_io_writer_t *writer, const char *bytes, size_t size) {
    HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(writer->descriptor);
    for (size_t written = 0;;) {
        struct iovec parts[] = {{writer->memory + writer->start, gathered(writer)},
                                {(void *)(uintptr_t)(bytes + written), size - written}};
        ssize_t done = haft_io_writev(use.descriptor, parts, 2);
        if (done < 0)
            return done;
        written += take(writer, (size_t)done);
        if (size - written <= writer->size - writer->end)
            return (ssize_t)written;
        int code = hafti_io_next_part(&use);
        if (code != 0)
            return code;
    }
}

int haft_io_writer_write(haft_io_writer_t *writer, const void *bytes, size_t size) {
    ssize_t written = 0;
    if (size > writer->size - writer->end)
        written = write_until_fits(writer, bytes, size);
    if (written < 0)
        return (int)written;
    if (size != (size_t)written)
        gather(writer, (const char *)bytes + written, size - (size_t)written);
    return 0;
}

int haft_io_writer_print(haft_io_writer_t *writer, const char *format, ...) {
    for (;;) {
        va_list arguments;
        va_start(arguments, format);
        size_t room = writer->size - writer->end;
        int size = vsnprintf(writer->memory + writer->end, room, format, arguments);
        va_end(arguments);
        if (size < 0)
            return HAFTI_IO_RESULT(-1);
        if ((size_t)size < room) {
            writer->end += (size_t)size;
            return 0;
        }
        if (gathered(writer) == 0 && (size_t)size >= writer->size)
            return -EMSGSIZE;
        int code = haft_io_writer_flush(writer);
        if (code != 0)
            return code;
    }
}
