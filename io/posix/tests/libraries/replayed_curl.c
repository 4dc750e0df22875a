/* SPDX-License-Identifier: MIT */
/* libcurl as it is, in several tasks at once, asks a server that draws its answers and takes its
   time. Each answer is printed as it comes. For replayed.sh. */
#include "../../../tests/check_io.h"

#include <curl/curl.h>
#include <stdio.h>

enum { TASKS = 10, QUESTIONS = 3 };
static int port;

static void *answer(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char question[4096], reply[200];
    while (haft_io_read(connection, question, sizeof question) > 0) {
        unsigned char drawn[2];
        CHECK_EQUAL(haft_io_random(drawn, sizeof drawn), 0);
        haft_io_sleep(drawn[0] % 4 * HAFT_IO_MILLISECOND);
        int size = snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%03d",
                            drawn[1]);
        haft_io_write_all(connection, reply, (size_t)size);
    }
    return NULL;
}

static void *serve(void *argument) {
    for (int i = 0; i < TASKS; i++)
        haft_io_spawn(answer, (void *)(intptr_t)haft_io_accept((int)(intptr_t)argument));
    return NULL;
}

static size_t take(char *bytes, size_t one, size_t size, void *argument) {
    printf("task %d: %.*s\n", (int)(intptr_t)argument, (int)size, bytes);
    return one * size;
}

static void *ask(void *argument) {
    CURL *curl = curl_easy_init();
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, argument);
    for (int i = 0; i < QUESTIONS; i++)
        CHECK_EQUAL(curl_easy_perform(curl), CURLE_OK);
    double time = 0;
    curl_easy_getinfo(curl, CURLINFO_TOTAL_TIME, &time);
    printf("task %d has taken %f s\n", (int)(intptr_t)argument, time);
    curl_easy_cleanup(curl);
    return NULL;
}

BODY(ask_all) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = haft_io_port(listener);
    haft_io_task_t *tasks[TASKS + 1];
    tasks[TASKS] = haft_io_async(serve, (void *)(intptr_t)listener);
    for (int i = 0; i < TASKS; i++)
        tasks[i] = haft_io_async(ask, (void *)(intptr_t)i);
    for (int i = 0; i <= TASKS; i++)
        haft_io_join(tasks[i], NULL);
    return NULL;
}

int main(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CHECK_RUNS(ask_all);
    return check_end();
}
