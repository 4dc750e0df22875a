/* SPDX-License-Identifier: MIT */
/* Pages for the operator: the counters, and the tasks of the run. */
#include "exposition.h"

#include <sys/mman.h>

int haft_http_server_serve_counters(haft_http_server_t *server, const char *path) {
    haft_http_server_count(server);
    return haft_http_server_get(server, path, hafti_http_show_counters, NULL);
}

/* ---- For balancers ---- */

static int show_readiness(haft_http_request_t *request, void *unused) {
    (void)unused;
    bool is_stopping = haft_http_server_is_stopping(request->server);
    int code = haft_http_answer_set_header(request, "Cache-Control", "no-store");
    return code != 0     ? code
           : is_stopping ? haft_http_answer_text(request, 503, "stopping\n")
                         : haft_http_answer_text(request, 200, "ready\n");
}

int haft_http_server_serve_readiness(haft_http_server_t *server, const char *path) {
    return haft_http_server_get(server, path, show_readiness, NULL);
}

/* ---- Pages ---- */

typedef struct {
    void *bytes;
    size_t size;
} mapped_t;

static void unmap(const mapped_t *text) {
    if (text->bytes != MAP_FAILED)
        munmap(text->bytes, text->size);
}

static int dump(haft_io_scope_t *run, int file) {
    static const haft_io_dump_options_t options = {.backtraces = true};
    return run != NULL ? haft_io_dump_run(run, &options, file) : haft_io_dump_with(&options, file);
}

int hafti_http_show_tasks(haft_http_request_t *request, void *run) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = memfd_create("tasks", MFD_CLOEXEC);
    if (file < 0)
        return -errno;
    int code = dump(run, file);
    if (code != 0)
        return code;
    off_t size = lseek(file, 0, SEEK_END);
    __attribute__((cleanup(unmap)))
    mapped_t text = {mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0), (size_t)size};
    if (text.bytes == MAP_FAILED)
        return -ENOMEM;
    __attribute__((cleanup(hafti_http_text_page_end))) hafti_http_text_page_t page = {0};
    if (!hafti_http_text_page_begin(&page))
        return -ENOMEM;
    code = hafti_http_write_grouped(page.file, request, text.bytes, text.size);
    if (code == 0)
        code = haft_http_answer_set_header(request, "Cache-Control", "no-store");
    return code == 0 ? hafti_http_text_page_answer(&page, request, "text/plain; charset=utf-8")
                     : code;
}

static int show_list(haft_http_request_t *request, void *unused) {
    static const char page[] =
        "<!doctype html><title>Haft</title><ul>"
        "<li><a href=tasks>tasks</a><li><a href=counters>counters</a></ul>\n";
    (void)unused;
    return haft_http_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

int haft_http_server_serve_debug_pages(haft_http_server_t *server, const char *prefix) {
    haft_http_server_t *group = haft_http_server_group(server, prefix);
    if (group == NULL)
        return -ENOMEM;
    int code = haft_http_server_get(group, "/", show_list, NULL);
    code = code == 0 ? haft_http_server_get(group, "/tasks", hafti_http_show_tasks, NULL) : code;
    return code == 0 ? haft_http_server_serve_counters(group, "/counters") : code;
}
