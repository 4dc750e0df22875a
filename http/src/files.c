/* SPDX-License-Identifier: MIT */
/*
 * Static files. A path becomes a name below the folder: its parts are decoded and checked one by
 * one, so none of them is "..", or has a slash. The kernel looks that name up, and is told not to
 * leave the folder. The first lookup only uses the kernel's cache; where that is not enough, a
 * thread of the pool looks up once more, on the disk.
 */
#include "internal.h"
#include "trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    hafti_http_owned_t owned; /* must be first: free_files casts its address */
    int folder;
    haft_http_files_options_t options;
    char *index, *cache_control;
} files_t;

/* ---- Looking up ---- */

/* struct open_how and the flags of openat2(2), whose header old systems do not have. */
typedef struct {
    uint64_t flags, mode, resolve;
} how_t;
enum { NO_MAGIC_LINKS = 0x02, BENEATH = 0x08, CACHED = 0x20, OPENAT2 = 437 };
enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

/* The endings of the names of encoded files, the best encoding first. */
static const struct {
    const char *name, *ending;
} encodings[] = {{"br", ".br"}, {"zstd", ".zst"}, {"gzip", ".gz"}};
enum { ENCODINGS = sizeof encodings / sizeof *encodings, ENDING = 4 };

typedef struct {
    int folder;
    char *name; /* with room for the index and an ending */
    size_t size;
    const char *index;
    bool accepts[ENCODINGS];
    bool only_cached;
    int file; /* open, or an error: -EISDIR; -EAGAIN: the kernel would have to look at the disk */
    int encoding; /* of the file; -1: none */
    struct stat status;
} lookup_t;

/* Opens the name without openat2: one part after the other, and through no symbolic link. */
static int walk(int folder, char *name) {
    for (int at = folder;;) {
        char *slash = strchr(name, '/');
        if (slash != NULL)
            *slash = '\0';
        int next =
            openat(at, name, FLAGS | O_NOFOLLOW | (slash != NULL ? O_PATH | O_DIRECTORY : 0));
        int code = next >= 0 ? next : -errno;
        if (slash != NULL)
            *slash = '/';
        if (at != folder)
            close(at);
        if (slash == NULL || code < 0)
            return code;
        at = next;
        name = slash + 1;
    }
}

static int open_beneath(const lookup_t *lookup) {
    how_t how = {FLAGS, 0, BENEATH | NO_MAGIC_LINKS | (lookup->only_cached ? CACHED : 0)};
    long file = syscall(OPENAT2, lookup->folder, lookup->name, &how, sizeof how);
    if (file >= 0)
        return (int)file;
    if (errno == EBADF) /* a folder of a simulation, which the kernel does not know */
        return walk(lookup->folder, lookup->name);
    bool is_refused = errno == ENOSYS || errno == EPERM;
    if (lookup->only_cached && (is_refused || errno == EINVAL))
        return -EAGAIN;
    return is_refused ? walk(lookup->folder, lookup->name) : -errno;
}

/* Opens what has the name, if that is a regular file. */
static int open_file(const lookup_t *lookup, struct stat *status) {
    int file = open_beneath(lookup);
    if (file < 0)
        return file;
    int code = fstat(file, status) != 0   ? -errno
               : S_ISREG(status->st_mode) ? 0
               : S_ISDIR(status->st_mode) ? -EISDIR
                                          : -ENOENT;
    if (code == 0)
        return file;
    close(file);
    return code;
}

/* Takes the first encoded file that there is, instead of the one that is open. */
static void choose_encoding(lookup_t *lookup) {
    size_t size = strlen(lookup->name);
    for (int i = 0; i < ENCODINGS && lookup->encoding < 0; i++) {
        struct stat status;
        if (!lookup->accepts[i])
            continue;
        strcpy(lookup->name + size, encodings[i].ending);
        int file = open_file(lookup, &status);
        lookup->name[size] = '\0';
        if (file < 0 && file != -EAGAIN)
            continue;
        close(lookup->file);
        lookup->file = file;
        if (file < 0)
            return;
        lookup->status = status;
        lookup->encoding = i;
    }
}

/* Looks the file up; blocks, unless only the cache is to be used. */
static void look_up(void *argument) {
    lookup_t *lookup = argument;
    lookup->name[lookup->size] = '\0';
    lookup->encoding = -1;
    if (lookup->size == 0 || lookup->name[lookup->size - 1] == '/')
        strcpy(lookup->name + lookup->size, lookup->index);
    lookup->file = open_file(lookup, &lookup->status);
    if (lookup->file >= 0)
        choose_encoding(lookup);
}

/* ---- Names ---- */

/* Decodes a part of the path: its size; -ENOENT: that is no name that is served. */
static ssize_t decode_name(const files_t *files, hafti_http_text_t part, char *into) {
    ssize_t size = hafti_http_decode(part.bytes, part.size, false, into);
    bool is_name = size > 0 && memchr(into, '/', (size_t)size) == NULL &&
                   memchr(into, '\0', (size_t)size) == NULL;
    if (!is_name || (*into == '.' && !files->options.dot_files))
        return -ENOENT;
    bool is_dots = *into == '.' && (size == 1 || (size == 2 && into[1] == '.'));
    return is_dots ? -ENOENT : size;
}

/* The name for a path, which has a slash at its end where the path has one: its size. */
static ssize_t name_of(const files_t *files, hafti_http_text_t path, char *into) {
    hafti_http_text_t part;
    char *to = into;
    while (hafti_http_next_part(&path, '/', &part)) {
        bool is_last = path.bytes == NULL;
        if (part.size == 0 && is_last)
            break;
        ssize_t size = decode_name(files, part, to);
        if (size < 0)
            return size;
        to += size;
        if (!is_last)
            *to++ = '/';
    }
    return to - into;
}

/* RFC 9110, section 12.5.3: Accept-Encoding. */
static void read_accepted(haft_http_request_t *request, bool accepts[ENCODINGS]) {
    const char *accepted = haft_http_request_header(request, "Accept-Encoding");
    for (int i = 0; i < ENCODINGS && accepted != NULL; i++)
        accepts[i] = hafti_http_weight_in(accepted, encodings[i].name) > 0;
}

/* ---- Answers ---- */

/* A file that was changed within the last second may be changed again without a new time: its tag
   is weak (RFC 9110, section 8.8.2.2). */
static void read_version(const struct stat *status, const char *encoding,
                         hafti_http_version_t *version) {
    struct timespec now = haft_io_date();
    version->is_weak = status->st_mtim.tv_sec + 1 >= now.tv_sec;
    version->modified =
        status->st_mtim.tv_sec < now.tv_sec ? status->st_mtim.tv_sec : now.tv_sec; /* RFC 9110,
                                                                                      section
                                                                                      8.8.2.1 */
    snprintf(version->tag, sizeof version->tag, "\"%llx.%lx-%llx%s%s\"",
             (unsigned long long)status->st_mtim.tv_sec, (unsigned long)status->st_mtim.tv_nsec,
             (unsigned long long)status->st_size, *encoding != '\0' ? "-" : "", encoding);
}

static int set_version(haft_http_request_t *request, const hafti_http_version_t *version,
                       bool with_date) {
    char tag[sizeof version->tag + 2], date[HAFTI_HTTP_DATE + 1];
    snprintf(tag, sizeof tag, "%s%s", version->is_weak ? "W/" : "", version->tag);
    hafti_http_put_date(version->modified, date);
    int code = haft_http_answer_set_header(request, "ETag", tag);
    return code == 0 && with_date ? haft_http_answer_set_header(request, "Last-Modified", date)
                                  : code;
}

static int set_range(haft_http_request_t *request, const hafti_http_range_t *range, uint64_t size) {
    char text[80];
    if (range != NULL)
        snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
                 (unsigned long long)(range->first + range->count - 1), (unsigned long long)size);
    else
        snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    return haft_http_answer_set_header(request, "Content-Range", text);
}

/* ---- Several ranges: each is a part of its own (RFC 9110, section 14.6) ---- */

typedef struct {
    const char *type;      /* of the file, or NULL */
    uint64_t size;         /* of the file */
    uint64_t boundary;     /* is in no file, but by chance */
    hafti_http_range_t at; /* of the part */
} part_t;

/* Writes the head of a part, as far as there is room; returns its size. */
static size_t put_part_head(char *into, size_t room, const part_t *part) {
    return (size_t)snprintf(
        into, room, "\r\n--%016llx\r\n%s%s%sContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
        (unsigned long long)part->boundary, part->type != NULL ? "Content-Type: " : "",
        part->type != NULL ? part->type : "", part->type != NULL ? "\r\n" : "",
        (unsigned long long)part->at.first,
        (unsigned long long)(part->at.first + part->at.count - 1), (unsigned long long)part->size);
}

static int write_part(haft_http_request_t *request, int file, const part_t *part) {
    size_t size = put_part_head(NULL, 0, part);
    char *head = haft_http_request_allocate(request, size + 1);
    if (head == NULL)
        return -ENOMEM;
    put_part_head(head, size + 1, part);
    int code = haft_http_answer_write(request, head, size);
    return code == 0 ? hafti_http_write_file(request, file, (int64_t)part->at.first, part->at.count)
                     : code;
}

static int answer_parts(haft_http_request_t *request, int file, const part_t *given,
                        const hafti_http_range_t *ranges, size_t count) {
    char type[60], end[30];
    part_t part = *given;
    uint64_t size = 0;
    if (part.type != NULL && !hafti_http_is_given_value(part.type))
        return -EINVAL;
    part.boundary = hafti_http_identifier();
    snprintf(type, sizeof type, "multipart/byteranges; boundary=%016llx",
             (unsigned long long)part.boundary);
    int end_size =
        snprintf(end, sizeof end, "\r\n--%016llx--\r\n", (unsigned long long)part.boundary);
    for (size_t i = 0; i < count; i++) {
        part.at = ranges[i];
        size += put_part_head(NULL, 0, &part) + part.at.count;
    }
    int code = haft_http_answer_begin(request, 206, type, size + (uint64_t)end_size);
    for (size_t i = 0; i < count && code == 0; i++) {
        part.at = ranges[i];
        code = write_part(request, file, &part);
    }
    return code == 0 ? haft_http_answer_write(request, end, (size_t)end_size) : code;
}

/* ---- One file ---- */

/* Whether the handler has set a type, which would be that of all parts together. */
static bool has_type(const haft_http_request_t *request) {
    hafti_http_text_t value;
    size_t at = 0;
    return hafti_http_answer_field(&request->answer, &at, "Content-Type", &value);
}

static int answer_file(haft_http_request_t *request, int file, const struct stat *status,
                       const char *type, const char *encoding) {
    uint64_t size = (uint64_t)status->st_size;
    hafti_http_version_t version;
    hafti_http_range_t ranges[HAFTI_HTTP_RANGES];
    size_t count;
    request->answer.is_plain = true;
    read_version(status, encoding, &version);
    int answered = hafti_http_precondition(request, &version);
    if (answered == 412)
        return hafti_http_answer_status(request, 412);
    int code = set_version(request, &version, answered == 0);
    if (code != 0)
        return code;
    if (answered == 304)
        return haft_http_answer(request, 304, NULL, "", 0);
    answered = hafti_http_ranges(request, &version, size, ranges, &count);
    if (count > 1 && has_type(request)) {
        answered = 200;
        ranges[0] = (hafti_http_range_t){0, size};
        count = 1;
    }
    if (answered != 200 && count <= 1)
        code = set_range(request, answered == 206 ? ranges : NULL, size);
    if (code == 0 && answered == 416)
        return hafti_http_answer_status(request, 416);
    code = code == 0 ? haft_http_answer_set_header(request, "Accept-Ranges", "bytes") : code;
    if (code == 0 && *encoding != '\0')
        code = haft_http_answer_set_header(request, "Content-Encoding", encoding);
    if (code == 0 && count > 1)
        return answer_parts(request, file, &(part_t){.type = type, .size = size}, ranges, count);
    code = code == 0 ? haft_http_answer_begin(request, answered, type, ranges->count) : code;
    return code == 0 ? hafti_http_write_file(request, file, (int64_t)ranges->first, ranges->count)
                     : code;
}

/* A file is sent as it is: what is compressed lies beside it. */
int haft_http_answer_file(haft_http_request_t *request, int file, const char *type) {
    struct stat status;
    if (fstat(file, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return haft_io_refuse(
            -EINVAL, __func__,
            "descriptor %d is no regular file: read it, and write what comes with "
            "haft_http_answer_write",
            file);
    return answer_file(request, file, &status, type, "");
}

/* The path with a slash; "//host" at its begin would be another server's. */
static int redirect_to_folder(haft_http_request_t *request) {
    const char *target = haft_http_request_target(request), *query = strchr(target, '?');
    size_t size = query != NULL ? (size_t)(query - target) : strlen(target);
    size_t room = strlen(target) + 2;
    char *place = haft_http_request_allocate(request, room);
    if (place == NULL)
        return -ENOMEM;
    while (size > 1 && target[0] == '/' && target[1] == '/')
        target++, size--;
    snprintf(place, room, "%.*s/%s", (int)size, target, query != NULL ? query : "");
    int code = haft_http_answer_set_header(request, "Location", place);
    return code == 0 ? hafti_http_answer_status(request, 301) : code;
}

static int answer_error(haft_http_request_t *request, int code) {
    static const int missing[] = {ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, EINVAL, ENXIO};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (code == -missing[i])
            return hafti_http_answer_status(request, 404);
    return code == -EACCES ? hafti_http_answer_status(request, 403) : code;
}

static int answer_found(haft_http_request_t *request, const files_t *files, lookup_t *lookup) {
    const char *encoding = lookup->encoding >= 0 ? encodings[lookup->encoding].name : "";
    const char *type = files->options.type_of != NULL ? files->options.type_of(lookup->name) : NULL;
    int code = files->options.precompressed
                   ? haft_http_answer_set_header(request, "Vary", "Accept-Encoding")
                   : 0;
    if (code == 0 && files->cache_control != NULL)
        code = haft_http_answer_set_header(request, "Cache-Control", files->cache_control);
    return code == 0 ? answer_file(request, lookup->file, &lookup->status,
                                   type != NULL ? type : hafti_http_type_of(lookup->name), encoding)
                     : code;
}

static void close_found(lookup_t *lookup) {
    if (lookup->file >= 0)
        haft_io_close(lookup->file);
}

static int serve_file(haft_http_request_t *request, void *argument) {
    const files_t *files = argument;
    hafti_http_text_t path = request->match.captures[request->match.count - 1];
    __attribute__((cleanup(close_found))) lookup_t lookup = {
        .folder = files->folder, .index = files->index, .only_cached = true, .file = -1};
    lookup.name =
        haft_http_request_allocate(request, path.size + strlen(files->index) + ENDING + 1);
    if (lookup.name == NULL)
        return -ENOMEM;
    ssize_t size = name_of(files, path, lookup.name);
    if (size < 0)
        return answer_error(request, (int)size);
    lookup.size = (size_t)size;
    if (files->options.precompressed)
        read_accepted(request, lookup.accepts);
    look_up(&lookup);
    if (lookup.file == -EAGAIN) {
        lookup.only_cached = false;
        int code = haft_io_call_blocking(look_up, &lookup);
        if (code != 0)
            return code;
    }
    if (lookup.file == -EISDIR)
        return redirect_to_folder(request);
    return lookup.file < 0 ? answer_error(request, lookup.file)
                           : answer_found(request, files, &lookup);
}

static int redirect(haft_http_request_t *request, void *unused) {
    (void)unused;
    return redirect_to_folder(request);
}

/* ---- Routes ---- */

static void free_files(hafti_http_owned_t *owned) {
    files_t *files = (files_t *)owned;
    if (files->folder >= 0)
        close(files->folder);
    free(files->index);
    free(files->cache_control);
    free(files);
}

static int make_files(const char *folder, const haft_http_files_options_t *options,
                      files_t **made) {
    files_t *files = calloc(1, sizeof *files);
    if (files == NULL)
        return -ENOMEM;
    files->owned.free = free_files;
    files->options = *options;
    files->index = strdup(options->index != NULL ? options->index : "index.html");
    if (options->cache_control != NULL)
        files->cache_control = strdup(options->cache_control);
    files->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int code = files->folder < 0 ? -errno : 0;
    if (files->index == NULL || (options->cache_control != NULL && files->cache_control == NULL))
        code = -ENOMEM;
    if (code != 0)
        free_files(&files->owned);
    else
        *made = files;
    return code;
}

int haft_http_server_serve_files_with(const haft_http_files_options_t *options,
                                      haft_http_server_t *server, const char *prefix,
                                      const char *folder) {
    static const haft_http_files_options_t defaults = {0};
    files_t *files;
    if (prefix == NULL || folder == NULL)
        return haft_io_refuse(-EINVAL, "haft_http_server_serve_files",
                              "the %s is NULL: write a path of URLs, such as \"/static\", and the "
                              "folder's path",
                              prefix == NULL ? "prefix" : "folder");
    size_t size = strlen(prefix);
    while (size != 0 && prefix[size - 1] == '/')
        size--;
    char below[size + sizeof "/{path...}"], itself[size + 1];
    snprintf(below, sizeof below, "%.*s/{path...}", (int)size, prefix);
    snprintf(itself, sizeof itself, "%.*s", (int)size, prefix);
    int code = make_files(folder, options != NULL ? options : &defaults, &files);
    if (code != 0)
        return code;
    hafti_http_own(server, &files->owned);
    code = haft_http_server_get(server, below, serve_file, files);
    return code == 0 && size != 0 ? haft_http_server_get(server, itself, redirect, NULL) : code;
}
