/* SPDX-License-Identifier: MIT */
/*
 * Bodies of the type multipart/form-data (RFC 7578, RFC 2046), part by part, as they come.
 *
 *     --boundary CRLF  field CRLF ... CRLF  bytes CRLF --boundary CRLF  ... CRLF --boundary-- CRLF
 *
 * A part ends before CRLF "--" boundary, the delimiter. The window, bytes[at] to bytes[end], is
 * what has been read of the body and not yet given out; it begins with a CRLF of our own, so that
 * the first delimiter is one like the others. `known` bytes of it are known to belong to the part.
 *
 * Input that two readers could read in two ways is an error, and the status of the request is 400:
 * text before the first delimiter or behind the last, spaces behind one, folded fields, bytes that
 * no field may have, a part without a name, a parameter twice, encodings of old mail.
 */
#include "internal.h"

#include <fcntl.h>
#include <stdlib.h>

enum { WINDOW = 8192, MOST_OF_BOUNDARY = 70, MOST_OF_DELIMITER = MOST_OF_BOUNDARY + 4 };

struct haft_http_multipart {
    haft_http_request_t *request;
    haft_http_multipart_limits_t limits;
    size_t parts;   /* so far */
    uint64_t size;  /* bytes of the part that were given */
    bool in_part;   /* its bytes come */
    bool has_ended; /* the last delimiter has come */
    size_t delimiter_size;
    char delimiter[MOST_OF_DELIMITER + 1];
    size_t head_size;
    char head[HAFT_HTTP_PART_HEAD + 1], name[HAFT_HTTP_PART_HEAD + 1],
        file_name[HAFT_HTTP_PART_HEAD + 1], value[HAFT_HTTP_PART_HEAD + 1];
    size_t at, end, known;
    char bytes[WINDOW];
};
_Static_assert(WINDOW > HAFT_HTTP_PART_HEAD + MOST_OF_DELIMITER + 8,
               "the window has room for a delimiter and a head");

static int refuse(haft_http_multipart_t *multipart, int code) {
    return hafti_http_message_fail(&multipart->request->message, code);
}

/* ---- The window ---- */

static size_t unread_size(const haft_http_multipart_t *multipart) {
    return multipart->end - multipart->at;
}

/* Reads more of the body behind the window. 1; 0 at the end of the body; or an error. */
static ssize_t fill(haft_http_multipart_t *multipart) {
    memmove(multipart->bytes, multipart->bytes + multipart->at, unread_size(multipart));
    multipart->end -= multipart->at;
    multipart->at = 0;
    ssize_t got = haft_http_request_read(multipart->request, multipart->bytes + multipart->end,
                                         WINDOW - multipart->end);
    multipart->end += got > 0 ? (size_t)got : 0;
    return got > 0 ? 1 : got;
}

/* Reads until the window has `size` bytes; the body must not end before. */
static int read_at_least(haft_http_multipart_t *multipart, size_t size) {
    while (unread_size(multipart) < size) {
        ssize_t got = fill(multipart);
        if (got <= 0)
            return got == 0 ? refuse(multipart, -EBADMSG) : (int)got;
    }
    return 0;
}

static char *find(const haft_http_multipart_t *multipart, const char *what, size_t size) {
    return memmem(multipart->bytes + multipart->at, unread_size(multipart), what, size);
}

/* Finds out how many bytes in the window are the part's: 0 in front of the delimiter. */
static int know(haft_http_multipart_t *multipart) {
    int code = read_at_least(multipart, multipart->delimiter_size);
    if (code != 0)
        return code;
    const char *delimiter = find(multipart, multipart->delimiter, multipart->delimiter_size);
    multipart->known = delimiter != NULL ? (size_t)(delimiter - multipart->bytes) - multipart->at
                                         : unread_size(multipart) - multipart->delimiter_size + 1;
    return 0;
}

/* ---- The head of a part ---- */

static bool is_word(hafti_http_text_t text, const char *word) {
    return hafti_http_same(text.bytes, text.size, word);
}

/* A token, or a text in quotes, in which \" and \\ stand for " and \ (a \ before another letter is
   that of a Windows path). Returns the rest of the field; NULL: it is malformed. */
static const char *copy_value(const char *at, const char *end, char *into) {
    char *to = into;
    if (at != end && *at == '"') {
        for (at++; at != end && *at != '"'; *to++ = *at++)
            if (*at == '\\' && end - at > 1 && (at[1] == '"' || at[1] == '\\'))
                at++;
        if (at == end)
            return NULL;
        at++;
    } else {
        while (at != end && *at != ';' && *at != ' ' && *at != '\t')
            *to++ = *at++;
        if (!hafti_http_is_token(into, (size_t)(to - into)))
            return NULL;
    }
    *to = '\0';
    return at;
}

static const char *skip_spaces(const char *at, const char *end) {
    while (at != end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* Calls `take` for each parameter behind the first word of a field's value: whether all are well
   formed, and wanted. */
static bool read_parameters(hafti_http_text_t value, char *memory,
                            bool (*take)(void *argument, hafti_http_text_t name, const char *value),
                            void *argument) {
    const char *end = value.bytes + value.size, *at = memchr(value.bytes, ';', value.size);
    while (at != NULL && at != end) {
        const char *name = skip_spaces(at + 1, end);
        const char *equals = memchr(name, '=', (size_t)(end - name));
        if (*at != ';' || equals == NULL || !hafti_http_is_token(name, (size_t)(equals - name)))
            return false;
        at = copy_value(equals + 1, end, memory);
        hafti_http_text_t word = {name, (size_t)(equals - name)};
        if (at == NULL || !take(argument, word, memory))
            return false;
        at = skip_spaces(at, end);
    }
    return true;
}

typedef struct {
    haft_http_multipart_t *multipart;
    bool has_name, has_file_name;
} disposition_t;

static bool take_disposition(void *argument, hafti_http_text_t name, const char *value) {
    disposition_t *disposition = argument;
    haft_http_multipart_t *multipart = disposition->multipart;
    bool is_name = is_word(name, "name"), is_file_name = is_word(name, "filename");
    if ((is_name && disposition->has_name) || (is_file_name && disposition->has_file_name))
        return false;
    if (is_name || is_file_name)
        strcpy(is_name ? multipart->name : multipart->file_name, value);
    disposition->has_name |= is_name;
    disposition->has_file_name |= is_file_name;
    return true;
}

/* The value of a field in the head, of which there may be one. 1: there is; 0; -EBADMSG. */
static int find_field(const haft_http_multipart_t *multipart, const char *name,
                      hafti_http_text_t *value) {
    hafti_http_text_t head = {multipart->head, multipart->head_size}, line;
    int count = 0;
    while (hafti_http_next_part(&head, '\n', &line)) {
        const char *colon = memchr(line.bytes, ':', line.size);
        if (colon == NULL || !hafti_http_same(line.bytes, (size_t)(colon - line.bytes), name))
            continue;
        hafti_http_text_t rest = {colon + 1, line.size - (size_t)(colon + 1 - line.bytes) - 1};
        hafti_http_next_part(&rest, '\n', value); /* without spaces around it */
        count++;
    }
    return count <= 1 ? count : -EBADMSG;
}

/* Whether all lines are fields, each with its CRLF. */
static bool are_fields(const char *at, const char *end) {
    while (at != end) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        const char *colon = line_end != NULL ? memchr(at, ':', (size_t)(line_end - at)) : NULL;
        if (colon == NULL || !hafti_http_is_token(at, (size_t)(colon - at)) ||
            !hafti_http_is_value(colon + 1, (size_t)(line_end - colon - 1)))
            return false;
        at = line_end + 2;
    }
    return true;
}

/* RFC 7578, section 4.7: whether the part has one of the encodings of mail. */
static bool is_encoded(const haft_http_multipart_t *multipart) {
    hafti_http_text_t value;
    int count = find_field(multipart, "Content-Transfer-Encoding", &value);
    return count < 0 || (count > 0 && !is_word(value, "binary") && !is_word(value, "8bit") &&
                         !is_word(value, "7bit"));
}

static int read_fields(haft_http_multipart_t *multipart, haft_http_part_t *part) {
    disposition_t disposition = {.multipart = multipart};
    hafti_http_text_t value, word, rest;
    if (!are_fields(multipart->head, multipart->head + multipart->head_size) ||
        find_field(multipart, "Content-Disposition", &value) != 1 || is_encoded(multipart))
        return -EBADMSG;
    rest = value;
    hafti_http_next_part(&rest, ';', &word);
    if (!is_word(word, "form-data") ||
        !read_parameters(value, multipart->value, take_disposition, &disposition) ||
        !disposition.has_name)
        return -EBADMSG;
    int types = find_field(multipart, "Content-Type", &value);
    if (types == 1) {
        memcpy(multipart->value, value.bytes, value.size);
        multipart->value[value.size] = '\0';
    }
    *part = (haft_http_part_t){.name = multipart->name,
                               .file_name = disposition.has_file_name ? multipart->file_name : NULL,
                               .type = types == 1 ? multipart->value : NULL};
    return types < 0 ? -EBADMSG : 0;
}

/* Reads the head of a part, up to the next empty line. The window begins behind a delimiter, with a
   CRLF. */
static int read_head(haft_http_multipart_t *multipart, haft_http_part_t *part) {
    static const char empty_line[] = "\r\n\r\n";
    const char *end;
    while ((end = find(multipart, empty_line, 4)) == NULL) {
        int code = unread_size(multipart) > multipart->limits.head + 4
                       ? refuse(multipart, -EMSGSIZE)
                       : read_at_least(multipart, unread_size(multipart) + 1);
        if (code != 0)
            return code;
    }
    const char *delimiter = find(multipart, multipart->delimiter, multipart->delimiter_size);
    if (delimiter != NULL && delimiter < end)
        return refuse(multipart, -EBADMSG);
    const char *begin = multipart->bytes + multipart->at + 2;
    multipart->head_size = end + 2 > begin ? (size_t)(end + 2 - begin) : 0;
    if (multipart->head_size > multipart->limits.head)
        return refuse(multipart, -EMSGSIZE);
    memcpy(multipart->head, begin, multipart->head_size);
    multipart->at = (size_t)(end + 4 - multipart->bytes);
    int code = read_fields(multipart, part);
    return code != 0 ? refuse(multipart, code) : 0;
}

/* ---- Parts ---- */

/* Nothing may stand behind the last delimiter but the end of its line. */
static int read_end(haft_http_multipart_t *multipart) {
    ssize_t got;
    multipart->has_ended = true;
    do
        got = unread_size(multipart) <= 2 ? fill(multipart) : 0;
    while (got > 0);
    if (got < 0)
        return (int)got;
    bool is_end = unread_size(multipart) == 0 ||
                  (unread_size(multipart) == 2 && find(multipart, "\r\n", 2) != NULL);
    return is_end ? 0 : refuse(multipart, -EBADMSG);
}

static int skip_part(haft_http_multipart_t *multipart) {
    char piece[512];
    ssize_t got = 0;
    while (multipart->in_part && got >= 0)
        got = haft_http_multipart_read(multipart, piece, sizeof piece);
    return got < 0 ? (int)got : 0;
}

static int begin_part(haft_http_multipart_t *multipart, haft_http_part_t *part) {
    multipart->at += multipart->delimiter_size;
    int code = read_at_least(multipart, 2);
    if (code != 0)
        return code;
    const char *next = multipart->bytes + multipart->at;
    if (memcmp(next, "--", 2) == 0) {
        multipart->at += 2;
        return read_end(multipart);
    }
    if (memcmp(next, "\r\n", 2) != 0)
        return refuse(multipart, -EBADMSG);
    if (multipart->parts == multipart->limits.parts)
        return refuse(multipart, -EMSGSIZE);
    code = read_head(multipart, part);
    multipart->parts++;
    multipart->size = 0;
    multipart->in_part = code == 0;
    return code == 0 ? 1 : code;
}

int haft_http_multipart_next(haft_http_multipart_t *multipart, haft_http_part_t *part) {
    int code = multipart->request->message.error;
    if (code == 0)
        code = skip_part(multipart);
    if (code != 0 || multipart->has_ended)
        return code;
    code = know(multipart);
    if (code == 0 && multipart->known != 0) /* before the first delimiter */
        code = refuse(multipart, -EBADMSG);
    return code == 0 ? begin_part(multipart, part) : code;
}

ssize_t haft_http_multipart_read(haft_http_multipart_t *multipart, void *buffer, size_t size) {
    int code = multipart->request->message.error;
    if (code != 0 || !multipart->in_part || size == 0)
        return code;
    if (buffer == NULL)
        return -EFAULT;
    code = multipart->known == 0 ? know(multipart) : 0;
    if (code != 0)
        return code;
    size = size < multipart->known ? size : multipart->known;
    memcpy(buffer, multipart->bytes + multipart->at, size);
    multipart->at += size;
    multipart->known -= size;
    multipart->size += size;
    multipart->in_part = size != 0;
    if (multipart->size > multipart->limits.part)
        return refuse(multipart, -EMSGSIZE);
    return (ssize_t)size;
}

static void free_text(char **text) {
    free(*text);
}

ssize_t haft_http_multipart_text(haft_http_multipart_t *multipart, char **text) {
    __attribute__((cleanup(free_text))) char *bytes = NULL;
    size_t size = 0, room = 0;
    *text = NULL;
    for (;;) {
        if (size == room) {
            char *grown = realloc(bytes, room = room != 0 ? 2 * room : 256);
            if (grown == NULL)
                return -ENOMEM;
            bytes = grown;
        }
        ssize_t got = haft_http_multipart_read(multipart, bytes + size, room - size);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        size += (size_t)got;
    }
    *text = hafti_http_copy(&multipart->request->message, bytes, size);
    return *text != NULL ? (ssize_t)size : -ENOMEM;
}

/* ---- Files ---- */

/* Makes a file whose name exists for a moment, for file systems that cannot make one without a
   name. A function of its own, so that errno is this thread's. */
__attribute__((noinline)) static int make_and_remove(char *name) {
    int file = mkostemp(name, O_CLOEXEC);
    if (file < 0)
        return -errno;
    unlink(name);
    return file;
}

static int open_nameless(const char *folder) {
    int file = haft_io_open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file != -EOPNOTSUPP && file != -EISDIR)
        return file;
    static const char ending[] = "/.haft-XXXXXX";
    char name[strlen(folder) + sizeof ending];
    strcpy(stpcpy(name, folder), ending);
    return make_and_remove(name);
}

static int write_at(int file, const char *bytes, size_t size, int64_t offset) {
    while (size != 0) {
        ssize_t written = haft_io_pwrite(file, bytes, size, offset);
        if (written < 0)
            return (int)written;
        bytes += written;
        offset += written;
        size -= (size_t)written;
    }
    return 0;
}

static int copy_to(int file, haft_http_multipart_t *multipart) {
    char *block = haft_io_lend();
    HAFT_IO_SCOPED_LENT const void *const lent = block; /* also when the task is cancelled */
    int64_t offset = 0;
    if (lent == NULL)
        return -ENOMEM;
    for (;;) {
        size_t size = 0;
        ssize_t got = 1;
        while (got > 0 && size < HAFT_IO_LENT_SIZE) {
            got = haft_http_multipart_read(multipart, block + size, HAFT_IO_LENT_SIZE - size);
            size += got > 0 ? (size_t)got : 0;
        }
        int code = got < 0 ? (int)got : write_at(file, block, size, offset);
        if (code != 0 || got == 0)
            return code;
        offset += (int64_t)size;
    }
}

int haft_http_multipart_store(haft_http_multipart_t *multipart, const char *folder) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_nameless(folder);
    int code = file >= 0 ? copy_to(file, multipart) : file;
    if (code != 0)
        return code;
    int stored = file;
    file = -1;
    return stored;
}

/* ---- */

const char *haft_http_multipart_header(haft_http_multipart_t *multipart, const char *name) {
    hafti_http_text_t value;
    if (name == NULL || find_field(multipart, name, &value) != 1)
        return NULL;
    return hafti_http_copy(&multipart->request->message, value.bytes, value.size);
}

/* RFC 2046, section 5.1.1: the boundary. */
static bool take_boundary(void *argument, hafti_http_text_t name, const char *value) {
    haft_http_multipart_t *multipart = argument;
    static const char others[] = "'()+_,-./:=? ";
    size_t size = strlen(value);
    if (!is_word(name, "boundary"))
        return true;
    if (multipart->delimiter_size != 0 || size == 0 || size > MOST_OF_BOUNDARY ||
        value[size - 1] == ' ')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!((value[i] >= '0' && value[i] <= '9') ||
              ((value[i] | 32) >= 'a' && (value[i] | 32) <= 'z')) &&
            strchr(others, value[i]) == NULL)
            return false;
    strcpy(stpcpy(multipart->delimiter, "\r\n--"), value);
    multipart->delimiter_size = size + 4;
    return true;
}

static void set_limits(haft_http_multipart_t *multipart,
                       const haft_http_multipart_limits_t *limits) {
    haft_http_multipart_limits_t *set = &multipart->limits;
    if (limits != NULL)
        *set = *limits;
    if (set->parts == 0)
        set->parts = 100;
    if (set->head == 0 || set->head > HAFT_HTTP_PART_HEAD)
        set->head = HAFT_HTTP_PART_HEAD;
    if (set->part == 0)
        set->part = UINT64_MAX;
}

int haft_http_multipart_begin_with(const haft_http_multipart_limits_t *limits,
                                   haft_http_request_t *request, haft_http_multipart_t **result) {
    hafti_http_text_t type, word, rest;
    size_t from = 0;
    *result = NULL;
    if (!hafti_http_message_field(&request->message, "Content-Type", &from, &type))
        return -ENOTSUP;
    rest = type;
    hafti_http_next_part(&rest, ';', &word);
    if (!is_word(word, "multipart/form-data"))
        return -ENOTSUP;
    haft_http_multipart_t *multipart = hafti_http_allocate(&request->message, sizeof *multipart);
    char *memory = hafti_http_allocate(&request->message, type.size + 1);
    if (multipart == NULL || memory == NULL)
        return -ENOMEM;
    memset(multipart, 0, offsetof(haft_http_multipart_t, head));
    multipart->request = request;
    set_limits(multipart, limits);
    bool is_good = read_parameters(type, memory, take_boundary, multipart);
    if (!is_good || multipart->delimiter_size == 0 ||
        hafti_http_message_field(&request->message, "Content-Type", &from, &type))
        return refuse(multipart, -EBADMSG);
    memcpy(multipart->bytes, "\r\n", 2);
    multipart->at = multipart->known = 0;
    multipart->end = 2;
    *result = multipart;
    return 0;
}
