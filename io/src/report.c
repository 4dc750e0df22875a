/* SPDX-License-Identifier: MIT */
/* A text that grows, for the dump and the summary of a run, which write it when no lock is held. */
#include "inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool grow(hafti_io_text_t *text, size_t needed) {
    enum { FIRST = 512 };
    size_t room = text->room * 2 + FIRST;
    if (room < needed)
        room = needed;
    char *bytes = realloc(text->bytes, room);
    text->failed = bytes == NULL;
    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    text->room = room;
    return true;
}

/* Adds text of any length: names of C++ functions and of tasks may be long. */
void hafti_io_add(hafti_io_text_t *text, const char *format, ...) {
    while (!text->failed) {
        size_t room = text->room - text->size;
        va_list arguments;
        va_start(arguments, format);
        int size = vsnprintf(room != 0 ? text->bytes + text->size : NULL, room, format, arguments);
        va_end(arguments);
        if (size >= 0 && (size_t)size < room) {
            text->size += (size_t)size;
            return;
        }
        text->failed = size < 0 || !grow(text, text->size + (size_t)size + 1);
    }
}

/* Bytes that are no UTF-8 stay as they are. */
void hafti_io_add_quoted(hafti_io_text_t *text, const char *words) {
    hafti_io_add(text, "\"");
    while (words != NULL && *words != '\0') {
        size_t plain = 0;
        while ((unsigned char)words[plain] >= ' ' && words[plain] != '"' && words[plain] != '\\')
            plain++;
        hafti_io_add(text, "%.*s", (int)plain, words);
        words += plain;
        if (*words != '\0')
            hafti_io_add(text, "\\u%04x", (unsigned)(unsigned char)*words++);
    }
    hafti_io_add(text, "\"");
}

static int write_all(int descriptor, const char *bytes, size_t size) {
    while (size != 0) {
        ssize_t done = HAFTI_IO_RESULT(write(descriptor, bytes, size));
        if (done < 0 && done != -EINTR)
            return (int)done;
        bytes += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

int hafti_io_text_write(hafti_io_text_t *text, int descriptor) {
    int code = text->failed ? -ENOMEM : write_all(descriptor, text->bytes, text->size);
    free(text->bytes);
    return code;
}
