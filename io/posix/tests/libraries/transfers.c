/* SPDX-License-Identifier: MIT */
/* A hundred transfers at once, on one thread, with libcurl as it is, also where each task has
   thread-locals of its own. The server answers when all have asked. */
#include "served.h"

#include <curl/curl.h>
#include <haft/posix.h>
#include <signal.h>

static int asked;
static __thread int number; /* of the task, where it has thread-locals of its own */
static bool own;

/* ---- The server: its answer is the path ---- */

static void *answer(void *argument) {
    int connection = (int)(intptr_t)argument, path = -1;
    char text[1024] = "";
    size_t size = 0;
    while (strstr(text, "\r\n\r\n") == NULL) {
        ssize_t more = read(connection, text + size, sizeof text - 1 - size);
        CHECK(more > 0);
        if (more <= 0)
            return NULL;
        size += (size_t)more;
    }
    CHECK_EQUAL(sscanf(text, "GET /%d ", &path), 1);
    for (asked++; asked < CLIENTS;)
        usleep(1000);
    int written =
        snprintf(text, sizeof text,
                 "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n%06d", path);
    CHECK_EQUAL(write(connection, text, (size_t)written), written);
    CHECK_EQUAL(close(connection), 0);
    return NULL;
}

/* ---- The clients ---- */

static size_t take(char *bytes, size_t one, size_t size, void *argument) {
    char *text = argument;
    CHECK_EQUAL(one, 1);
    CHECK(!own || number == *(int *)(void *)(text + 16));
    strncat(text, bytes, size);
    return size;
}
static void *transfer(void *argument) {
    struct {
        char text[16];
        int number;
    } got = {"", (int)(intptr_t)argument};
    char place[64];
    CURL *handle = curl_easy_init();
    number = got.number;
    snprintf(place, sizeof place, "http://127.0.0.1:%d/%d", ntohs(address.sin_port), got.number);
    curl_easy_setopt(handle, CURLOPT_URL, place);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &got);
    CHECK_EQUAL(curl_easy_perform(handle), CURLE_OK);
    CHECK_EQUAL(atoi(got.text), got.number);
    curl_easy_cleanup(handle);
    return NULL;
}
BODY(transfer_all) {
    asked = 0;
    serve_clients(answer, transfer);
    return NULL;
}
static void transfer_on(const haft_io_run_options_t *options) {
    if (options->threads != 1)
        return;
    own = options->own_thread_locals;
    CHECK_EQUAL(haft_io_run_with(options, transfer_all, NULL), 0);
}
static void a_hundred_transfers_are_with_the_server_at_once(void) {
    check_everywhere_twice(transfer_on);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    check_backend();
    CHECK(haft_posix_answers());
    curl_global_init(CURL_GLOBAL_DEFAULT);
    RUN(a_hundred_transfers_are_with_the_server_at_once);
    curl_global_cleanup();
    return check_end();
}
