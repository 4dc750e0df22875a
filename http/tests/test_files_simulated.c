/* SPDX-License-Identifier: MIT */
/* A folder of a simulation is served where libhaft-posix is linked. */
#define _GNU_SOURCE
#include "../../io/tests/check_io.h"

#include <haft/http.h>
#include <haft/posix.h>

#include <sys/stat.h>

enum { PORT = 80, LARGE = 100000 };

static void write_file(const char *path, const char *text, size_t times) {
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0);
    for (size_t i = 0; i < times; i++)
        CHECK_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_EQUAL(close(file), 0);
}

static int listener;

BODY(serve) {
    CHECK_EQUAL(haft_http_server_serve(argument, listener), 0);
    return NULL;
}

static void check_answer(haft_http_client_t *client, const char *url, int status, size_t size,
                         const char *begin) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char *body;
    CHECK_EQUAL(haft_http_client_ask(client, &(haft_http_question_t){.url = url}, &reply), 0);
    CHECK_EQUAL(haft_http_reply_status(reply), status);
    ssize_t got = haft_http_reply_body(reply, &body);
    if (status != 200)
        return;
    CHECK_EQUAL(got, (ssize_t)size);
    CHECK(strncmp(body, begin, strlen(begin)) == 0);
}

BODY(serve_and_ask) {
    CHECK_EQUAL(mkdir("/site", 0700), 0);
    CHECK_EQUAL(mkdir("/site/inner", 0700), 0);
    write_file("/site/index.html", "hello", 1);
    write_file("/site/inner/large", "0123456789", LARGE / 10);
    haft_http_server_t *server = haft_http_server_new();
    CHECK_EQUAL(haft_http_server_serve_files(server, "/", "/none"), -ENOENT);
    CHECK_EQUAL(haft_http_server_serve_files(server, "/", "/site"), 0);
    CHECK((listener = haft_io_listen_tcp("127.0.0.1", PORT, 8)) >= 0);
    haft_io_task_t *task = haft_io_async(serve, server);
    haft_http_client_t *client =
        haft_http_client_new_with(&(haft_http_client_options_t){.proxy = "", .uncompressed = true});
    check_answer(client, "http://localhost:80/", 200, 5, "hello");
    check_answer(client, "http://localhost:80/inner/large", 200, LARGE, "0123456789");
    check_answer(client, "http://localhost:80/inner/none", 404, 0, "");
    haft_http_client_free(client);
    haft_http_server_stop(server);
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    haft_http_server_free(server);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void a_folder_of_the_simulation_is_served(void) {
    check_seeds(serve_and_ask, 10, (haft_io_simulation_options_t){.network = true, .files = true});
}

int main(void) {
    RUN(a_folder_of_the_simulation_is_served);
    return check_end();
}
