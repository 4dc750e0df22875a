/* SPDX-License-Identifier: MIT */
/*
 * Fetches a hundred pages at once on one thread, with libcurl's easy interface, which knows nothing
 * of tasks: libhaft-posix replaces the blocking functions that it calls. The server is in the same
 * thread, and answers only when all the requests have come.
 */
#include <curl/curl.h>
#include <haft/io.h>
#include <stdio.h>
#include <string.h>

enum { PAGES = 100 };
static int listener, in_flight, most_in_flight, good_pages;
static haft_io_event_t all_have_come;

/* ---- The server ---- */

static void *answer(void *argument) {
    int connection = (int)(intptr_t)argument;
    char request[1024] = "", answer[128];
    size_t got = 0;
    while (strstr(request, "\r\n\r\n") == NULL) {
        ssize_t more = haft_io_read(connection, request + got, sizeof request - 1 - got);
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    if (++in_flight > most_in_flight)
        most_in_flight = in_flight;
    if (in_flight == PAGES)
        haft_io_event_set(&all_have_come);
    haft_io_event_wait_until(&all_have_come, haft_io_now() + 10 * HAFT_IO_SECOND);
    in_flight--;
    int page = 0;
    sscanf(request, "GET /%d", &page);
    char text[16];
    int size = snprintf(text, sizeof text, "page %d", page);
    size = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size,
                    text);
    haft_io_write_all(connection, answer, (size_t)size);
    haft_io_close(connection);
    return NULL;
}

static void *serve(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        haft_io_spawn(answer, (void *)(intptr_t)connection);
    return unused;
}

/* ---- The clients: plain libcurl ---- */

static size_t keep(char *data, size_t one, size_t size, void *page) {
    strncat(page, data, size);
    return one * size;
}

static void *fetch(void *number) {
    char url[64], expected[16], page[64] = "";
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", haft_io_port(listener),
             (int)(intptr_t)number);
    snprintf(expected, sizeof expected, "page %d", (int)(intptr_t)number);
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, page);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    good_pages += code == CURLE_OK && strcmp(page, expected) == 0;
    return NULL;
}

static void *fetch_all(void *unused) {
    haft_io_call_t calls[PAGES];
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    haft_io_spawn(serve, NULL);
    for (int i = 0; i < PAGES; i++)
        calls[i] = (haft_io_call_t){fetch, (void *)(intptr_t)i, NULL};
    haft_io_all(calls, PAGES);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

int main(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    haft_io_run(fetch_all, NULL);
    printf("%d pages, %d in flight at once\n", good_pages, most_in_flight);
    curl_global_cleanup();
    return good_pages == PAGES ? 0 : 1;
}
