/* SPDX-License-Identifier: MIT */
/* Clients that ask for much and reset their connection while it comes, from another thread: the
   server goes on, although SIGPIPE is at its default and would end the program. */
#define _GNU_SOURCE
#include "check_http.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MUCH = 8 << 20 };

static char much[MUCH];
static haft_http_server_t *server;
static uint16_t port;

static const char *const paths[] = {"/files/much.bin", "/body", "/pieces"};
enum { PATHS = sizeof paths / sizeof paths[0] };

/* ---- The server ---- */

static int answer_much(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer(request, 200, NULL, much, MUCH);
}

static int answer_pieces(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    for (size_t at = 0; at < MUCH && code == 0; at += 10000)
        code = haft_http_answer_write(request, much + at, 10000);
    return code;
}

static void no_line(void *unused, const char *line) {
    (void)unused, (void)line;
}

static void make_server(const char *folder) {
    server = haft_http_server_new();
    haft_http_server_set_log(server, no_line, NULL);
    haft_http_server_get(server, "/body", answer_much, NULL);
    haft_http_server_get(server, "/pieces", answer_pieces, NULL);
    CHECK(haft_http_server_serve_files(server, "/files", folder) == 0);
}

/* ---- The clients ---- */

static void *ask_and_reset(void *argument) {
    static char heard[100000];
    const struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *campaign = getenv("HAFT_CAMPAIGN");
    int count = campaign != NULL && strcmp(campaign, "long") == 0 ? 500 : 100;
    unsigned seed = 1;
    for (int i = 0; i < count; i++) {
        char says[100];
        int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(connection, (const struct sockaddr *)&place, sizeof place) == 0);
        size_t size = (size_t)snprintf(says, sizeof says, "GET %s" END, paths[i % PATHS]);
        CHECK(send(connection, says, size, MSG_NOSIGNAL) == (ssize_t)size);
        if (i % 2 != 0)
            shutdown(connection, SHUT_WR);
        for (int parts = rand_r(&seed) % 5; parts > 0; parts--)
            if (recv(connection, heard, (size_t)rand_r(&seed) % sizeof heard + 1, 0) <= 0)
                break;
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
                   sizeof(struct linger));
        close(connection);
    }
    haft_http_server_stop(server);
    return argument;
}

static void *attack(void *unused) {
    pthread_t clients;
    (void)unused;
    port = start_server(server);
    CHECK(pthread_create(&clients, NULL, ask_and_reset, NULL) == 0);
    pthread_detach(clients);
    return NULL;
}

int main(void) {
    char folder[] = "/tmp/haft_resets_XXXXXX", path[100];
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/much.bin", folder);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CHECK(file >= 0 && write(file, much, MUCH) == MUCH);
    close(file);
    make_server(folder);
    int code = haft_io_run(attack, NULL);
    haft_http_server_free(server);
    unlink(path);
    rmdir(folder);
    CHECK(code == 0);
    return 0;
}
