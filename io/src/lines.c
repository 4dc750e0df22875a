/* SPDX-License-Identifier: MIT */
/*
 * Lines of a stream, or other parts that end with a certain byte, in the caller's memory:
 *
 *   | given before ... | not asked for yet ... | room ... |
 *   memory             start                   end        size
 *
 * A line that is given ends with '\0', which stands in the place of the next one's first byte; that
 * is kept in `under` meanwhile. A wait begins when `start` is 0, and only what it returns moves
 * `end`: so a cancelled one has changed nothing.
 */
#include "objects.h"

#include <string.h>

static ssize_t give(haft_io_reader_t *lines, size_t size, char **line) {
    *line = lines->memory + lines->start;
    lines->start += size;
    lines->under = lines->memory[lines->start];
    lines->memory[lines->start] = '\0';
    return (ssize_t)size;
}

/* Puts back the byte under the '\0' of the line that was given, which is no string any more. */
static void take_back(haft_io_reader_t *lines) {
    if (lines->start != 0)
        lines->memory[lines->start] = lines->under;
}

static void move_to_front(haft_io_reader_t *lines) {
    lines->end -= lines->start;
    memmove(lines->memory, lines->memory + lines->start, lines->end);
    lines->start = 0;
}

/* The size of the next line, if it ends past its first `looked` bytes; or 0. */
static size_t size_of_next(const haft_io_reader_t *lines, size_t looked, char last_byte) {
    const char *first = lines->memory + lines->start, *end = lines->memory + lines->end;
    const char *last = memchr(first + looked, last_byte, (size_t)(end - first) - looked);
    return last != NULL ? (size_t)(last + 1 - first) : 0;
}

static ssize_t read_until(haft_io_reader_t *lines, char last_byte, char **line) {
    HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(lines->descriptor);
    for (;;) {
        /* The last byte is for the '\0', or shows that the line is longer. */
        size_t looked = lines->end, room = lines->size - looked;
        ssize_t got = haft_io_read(use.descriptor, lines->memory + looked, room > 1 ? room - 1 : 1);
        if (got < 0)
            return got;
        if (got == 0)
            return give(lines, looked, line);
        lines->end += (size_t)got;
        if (lines->end == lines->size)
            return -EMSGSIZE;
        size_t size = size_of_next(lines, looked, last_byte);
        if (size != 0)
            return give(lines, size, line);
        int code = hafti_io_next_part(&use);
        if (code != 0)
            return code;
    }
}

ssize_t haft_io_reader_until(haft_io_reader_t *lines, char last_byte, char **line) {
    take_back(lines);
    if (lines->end == lines->size)
        return -EMSGSIZE;
    size_t size = size_of_next(lines, 0, last_byte);
    if (size != 0)
        return give(lines, size, line);
    move_to_front(lines);
    return read_until(lines, last_byte, line);
}

ssize_t haft_io_reader_line(haft_io_reader_t *lines, char **line) {
    return haft_io_reader_until(lines, '\n', line);
}

ssize_t haft_io_reader_read(haft_io_reader_t *lines, void *buffer, size_t size) {
    size_t ahead = lines->end - lines->start;
    if (ahead == 0)
        return haft_io_read(lines->descriptor, buffer, size);
    take_back(lines);
    size_t taken = size < ahead ? size : ahead;
    memcpy(buffer, lines->memory + lines->start, taken);
    lines->start += taken;
    if (lines->end == lines->size) /* A line did not fit: there is room for more of it now. */
        move_to_front(lines);
    lines->under = lines->memory[lines->start];
    return (ssize_t)taken;
}

ssize_t haft_io_reader_read_all(haft_io_reader_t *lines, void *buffer, size_t size) {
    HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(lines->descriptor);
    size_t got = 0;
    int code = 0;
    while (got < size && code == 0) {
        ssize_t more = haft_io_reader_read(lines, (char *)buffer + got, size - got);
        if (more < 0)
            return more;
        if (more == 0)
            break;
        got += (size_t)more;
        if (got != size)
            code = hafti_io_next_part(&use);
    }
    return code == 0 ? (ssize_t)got : code;
}

ssize_t haft_io_read_all(int descriptor, void *buffer, size_t size) {
    haft_io_reader_t none_ahead = {.descriptor = descriptor};
    return haft_io_reader_read_all(&none_ahead, buffer, size);
}
