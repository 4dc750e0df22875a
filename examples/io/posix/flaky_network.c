/* SPDX-License-Identifier: MIT */
/*
 * A client of libcurl that tries again, tested in a hundred worlds: in each the network of a
 * simulation breaks other connections, refuses others, and cuts what is sent in other pieces.
 * Client and server know nothing of it; both are written with the calls of the C library, and sleep
 * for as long as they like.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <haft/io.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The server ---- */

static void *answer(void *argument) {
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    int connection = (int)(intptr_t)argument;
    char request[1024] = "";
    size_t got = 0;
    ssize_t more = 1;
    while (strstr(request, "\r\n\r\n") == NULL && more > 0) {
        more = read(connection, request + got, sizeof request - 1 - got);
        got += more > 0 ? (size_t)more : 0;
    }
    sleep(10); /* it is slow; the test is not */
    if (more > 0)
        send(connection, text, sizeof text - 1, MSG_NOSIGNAL);
    close(connection);
    return NULL;
}

static void *serve(void *unused) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(80)};
    int listener;
    while ((listener = socket(AF_INET, SOCK_STREAM, 0)) < 0)
        sleep(1);
    bind(listener, (struct sockaddr *)&here, sizeof here);
    listen(listener, 16);
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection >= 0)
            haft_io_spawn(answer, (void *)(intptr_t)connection);
        else
            haft_io_sleep(HAFT_IO_SECOND);
    }
    return unused;
}

/* ---- The client ---- */

static size_t keep(char *data, size_t one, size_t size, void *page) {
    strncat(page, data, size);
    return one * size;
}

/* How often it asked, or 0 if it has given up. */
static int fetch(char page[16]) {
    CURL *curl = curl_easy_init();
    int attempts = 0;
    CURLcode code = CURLE_FAILED_INIT;
    while (code != CURLE_OK && attempts < 20) {
        page[0] = '\0';
        sleep((unsigned)attempts++);
        curl_easy_setopt(curl, CURLOPT_URL, "http://192.0.2.1/");
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, page);
        curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
        code = curl_easy_perform(curl);
    }
    curl_easy_cleanup(curl);
    return code == CURLE_OK ? attempts : 0;
}

/* ---- The worlds ---- */

static int attempts;
static bool right;

static void *ask(void *unused) {
    char page[16];
    haft_io_spawn(serve, NULL);
    attempts = fetch(page);
    right = strcmp(page, "hello") == 0;
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

static void *live(void *unused) {
    haft_io_scope(ask, NULL, NULL);
    return unused;
}

int main(void) {
    enum { WORLDS = 100 };
    int fetched = 0, again = 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        haft_io_simulation_options_t how = {
            .seed = seed, .network = true, .short_counts = true, .faults_one_in = 40};
        if (haft_io_simulate_with(&how, live, NULL) != 0)
            return 1;
        fetched += right && attempts != 0;
        again += attempts > 1;
    }
    curl_global_cleanup();
    printf("%d of %d worlds fetched the page, %s of them at a further attempt\n", fetched, WORLDS,
           again > 10 ? "many" : "few");
}
