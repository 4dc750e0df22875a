/* SPDX-License-Identifier: MIT */
/* Pages for the operator: the counters, and the tasks of the run. */
#include "exposition.h"

#include <haft/io_binding.h>

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

/* Answers with what `write` has written of the run, as it is or grouped. */
static int show_written(haft_http_request_t *request, int (*write)(haft_io_scope_t *run, int file),
                        haft_io_scope_t *run, const char *type, bool grouped) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = memfd_create("page", MFD_CLOEXEC);
    if (file < 0)
        return -errno;
    int code = write(run, file);
    if (code != 0)
        return code;
    off_t size = lseek(file, 0, SEEK_END);
    __attribute__((cleanup(unmap)))
    mapped_t text = {mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0), (size_t)size};
    if (text.bytes == MAP_FAILED)
        return -ENOMEM;
    code = haft_http_answer_set_header(request, "Cache-Control", "no-store");
    if (code != 0 || !grouped)
        return code != 0 ? code : haft_http_answer(request, 200, type, text.bytes, text.size);
    __attribute__((cleanup(hafti_http_text_page_end))) hafti_http_text_page_t page = {0};
    if (!hafti_http_text_page_begin(&page))
        return -ENOMEM;
    code = hafti_http_write_grouped(page.file, request, text.bytes, text.size);
    return code == 0 ? hafti_http_text_page_answer(&page, request, type) : code;
}

static int dump(haft_io_scope_t *run, int file) {
    static const haft_io_dump_options_t options = {.backtraces = true};
    return run != NULL ? haft_io_dump_run(run, &options, file) : haft_io_dump_with(&options, file);
}
static int show_tasks(haft_http_request_t *request, void *run) {
    return show_written(request, dump, run, "text/plain; charset=utf-8", true);
}

static int summarize(haft_io_scope_t *run, int file) {
    return run != NULL ? haft_io_summarize_run(run, file) : haft_io_summarize(file);
}
static int show_summary(haft_http_request_t *request, void *run) {
    return show_written(request, summarize, run, "application/json", false);
}

/* Shows the same as haft-top: the browser asks for the summary each second. */
static int show_top(haft_http_request_t *request, void *unused) {
    static const char page[] =
        "<!doctype html><meta charset=utf-8><title>Haft: top</title>"
        "<style>body{font:14px monospace}td,th{padding:0 1em 0 0;text-align:left}</style>"
        "<p id=head><table id=threads></table><p><table id=tasks></table><p><table "
        "id=spans></table>"
        "<script>\n"
        "const fill = (id, rows) => document.getElementById(id).replaceChildren(...rows.map(row => "
        "{"
        "const line = document.createElement('tr');"
        "line.append(...row.map(text => { const cell = document.createElement('td');"
        "cell.textContent = text; return cell; })); return line; }));\n"
        "const time = ns => ns >= 1e9 ? (ns / 1e9).toFixed(1) + ' s' : (ns / 1e6).toFixed(1) + ' "
        "ms';"
        "\nconst counters = ['resumed', 'tasks', 'operations', 'polls', 'wakes', 'steals'];\n"
        "let before;\n"
        "async function show() {\n"
        "  const now = await (await fetch('summary')).json(), old = before || now;\n"
        "  const seconds = (now.time - old.time) / 1e9 || 1;\n"
        "  document.getElementById('head').textContent ="
        " `process ${now.process}, ${now.backend}, ${now.threads.length} threads`;\n"
        "  fill('threads', [['thread', 'use', ...counters.map(name => name + '/s')],"
        " ...now.threads.map((thread, i) => { const was = old.threads[i] || thread;"
        " return [i, ((thread.processor - was.processor) / seconds / 1e7).toFixed(0) + ' %',"
        " ...counters.map(name => Math.round((thread[name] - was[name]) / seconds))]; })]);\n"
        "  fill('tasks', [['tasks', 'longest', 'name', 'wait'],"
        " ...now.tasks.sort((a, b) => b.count - a.count).map(group => [group.count,"
        " time(group.oldest), group.name, group.waits_for || group.state])]);\n"
        "  fill('spans', [['time', 'request or span', 'result'],"
        " ...now.spans.sort((a, b) => b.duration - a.duration).map(span =>"
        " [time(span.duration), span.name, span.open ? 'goes on' : span.value])]);\n"
        "  before = now;\n"
        "}\n"
        "show(); setInterval(show, 1000);\n"
        "</script>\n";
    (void)unused;
    return haft_http_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

static int show_list(haft_http_request_t *request, void *unused) {
    static const char page[] = "<!doctype html><title>Haft</title><ul>"
                               "<li><a href=top>top</a><li><a href=tasks>tasks</a><li><a "
                               "href=counters>counters</a></ul>\n";
    (void)unused;
    return haft_http_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

/* Spans are kept until the server is freed. */
static void free_spans(hafti_http_owned_t *owned) {
    haft_io_keep_spans(false);
    free(owned);
}

static int keep_spans(haft_http_server_t *server) {
    hafti_http_owned_t *owned = malloc(sizeof *owned);
    int code = owned != NULL ? haft_io_keep_spans(true) : -ENOMEM;
    if (code != 0) {
        free(owned);
        return code;
    }
    owned->free = free_spans;
    hafti_http_own(server, owned);
    return 0;
}

int hafti_http_serve_run_pages(haft_http_server_t *group, haft_io_scope_t *run) {
    int code = haft_http_server_get(group, "/tasks", show_tasks, run);
    code = code == 0 ? haft_http_server_get(group, "/summary", show_summary, run) : code;
    code = code == 0 ? haft_http_server_get(group, "/top", show_top, NULL) : code;
    return code == 0 ? keep_spans(hafti_http_root_of(group)) : code;
}

int haft_http_server_serve_debug_pages(haft_http_server_t *server, const char *prefix) {
    haft_http_server_t *group = haft_http_server_group(server, prefix);
    if (group == NULL)
        return -ENOMEM;
    int code = haft_http_server_get(group, "/", show_list, NULL);
    code = code == 0 ? hafti_http_serve_run_pages(group, NULL) : code;
    return code == 0 ? haft_http_server_serve_counters(group, "/counters") : code;
}
