/* SPDX-License-Identifier: MIT */
/* The pages of haft-top's figures: below a prefix, and on a listener of their own, on its thread. */
#include "check_http.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static haft_io_event_t paid;
static char folder[] = "/tmp/haft-debug-XXXXXX";
static char path[64], place[80];

static int take_order(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_io_event_wait(&paid);
    return code == 0 ? haft_http_answer_text(request, 200, "paid\n") : code;
}

static void *order(void *port) {
    char heard[1000];
    static const char request[] = "GET /order/7" END;
    say_and_hear(*(uint16_t *)port, request, sizeof request - 1, false, heard, sizeof heard);
    CHECK(strstr(heard, "paid") != NULL);
    return NULL;
}

/* The reply of the operator's listener. */
static const char *ask(const char *target) {
    static char heard[200000];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connection >= 0);
    while (haft_io_connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND); /* until it listens */
    char request[200];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", target);
    CHECK(haft_io_write_all(connection, request, (size_t)size) == 0);
    size_t got = 0;
    for (ssize_t piece;
         (piece = haft_io_read(connection, heard + got, sizeof heard - 1 - got)) > 0;)
        got += (size_t)piece;
    heard[got] = '\0';
    return heard;
}

/* All of the words, in this order. */
static void shows(const char *target, const char *const *words) {
    const char *heard = ask(target), *at = heard;
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *found = strstr(at, words[i]);
        if (found == NULL) {
            fprintf(stderr, "%s does not show %s:\n%s\n", target, words[i], heard);
            abort();
        }
        at = found;
    }
}

static void *serve(void *server) {
    const haft_http_run_options_t options = {.listen = "127.0.0.1:0", .debug_listen = place};
    CHECK(haft_http_server_serve_with(&options, server) == 0);
    return NULL;
}

static void *look(void *argument) {
    haft_http_server_t *server = argument;
    haft_io_spawn(serve, server);
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    uint16_t port = haft_http_server_port(server);
    haft_io_task_t *orderer = haft_io_async(order, &port);
    while (strstr(ask("/debug/summary"), "\"waits_for\":\"an event\"") == NULL)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    shows("/debug/summary",
          (const char *const[]){"HTTP/1.1 200 ", "application/json", "{\"version\":1,\"process\":",
                                "\"threads\":[{\"thread\":", "\"tasks\":[{\"name\":",
                                "\"spans\":[{\"name\":\"GET\",\"open\":true", "]}\n", NULL});
    haft_io_event_set(&paid);
    haft_io_join(orderer, NULL);
    shows("/debug/summary", (const char *const[]){"\"name\":\"GET /order/{number}\",\"open\":false",
                                                  "\"value\":200", NULL});
    shows("/debug/top", (const char *const[]){" 200 ", "text/html", "fetch('summary')", NULL});
    shows("/debug/tasks", (const char *const[]){" 200 ", "scope 'main'", NULL});
    shows("/order/7", (const char *const[]){" 404 ", NULL}); /* nothing else is served there */
    talk_t elsewhere = {"GET /summary" END, {" 404 "}, 1},
           below = {"GET /debug/top" END, {" 200 "}, 1};
    run_talk(port, &elsewhere, "version");
    run_talk(port, &below, NULL);
    haft_http_server_stop(server);
    return NULL;
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(place, sizeof place, "unix:%s", path);
    haft_http_server_t *server = haft_http_server_new();
    CHECK(haft_http_server_get(server, "/order/{number}", take_order, NULL) == 0);
    CHECK(haft_http_server_serve_debug_pages(server, "/debug") == 0);
    const haft_io_run_options_t observed = {.threads = 1, .observed = true};
    CHECK(haft_io_run_with(&observed, look, server) == 0);
    haft_http_server_free(server);
    CHECK(access(path, F_OK) != 0);
    rmdir(folder);
    return 0;
}
