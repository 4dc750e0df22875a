/* SPDX-License-Identifier: MIT */
/*
 * A server as it is written first: a thread for each connection, blocking reads and writes, a mutex
 * around what they share. It knows nothing of Haft. So it runs in two ways:
 *
 *     ./server 8080                  a thread of the system for each connection
 *     haft-threads ./server 8080     a task for each connection, all on one thread
 *
 * It answers each line with the line's number among all; `quit` ends it. Port 0 is one that the
 * system chooses. Without a port it asks itself, over so many connections at once.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 200, LINES = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long lines;
static _Thread_local char line[128]; /* each thread has its own */

static long count_line(void) {
    pthread_mutex_lock(&lock);
    long number = ++lines;
    pthread_mutex_unlock(&lock);
    return number;
}

static void *serve_connection(void *argument) {
    int connection = (int)(long)argument;
    for (ssize_t size; (size = read(connection, line, sizeof line - 1)) > 0;) {
        line[size] = '\0';
        if (strncmp(line, "quit", 4) == 0)
            exit(0);
        int written = snprintf(line, sizeof line, "%ld\n", count_line());
        if (write(connection, line, (size_t)written) != written)
            break;
    }
    close(connection);
    return NULL;
}

static void *serve(void *argument) {
    int listener = (int)(long)argument;
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        pthread_t thread;
        if (connection < 0 ||
            pthread_create(&thread, NULL, serve_connection, (void *)(long)connection) != 0)
            exit(1);
        pthread_detach(thread);
    }
}

static int listen_on(struct sockaddr_in *address) {
    socklen_t size = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)address, size) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)address, &size) != 0) {
        perror("server");
        exit(1);
    }
    return listener;
}

static struct sockaddr_in address = {.sin_family = AF_INET};

static void *ask(void *sum) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        return NULL;
    for (int i = 0; i < LINES; i++) {
        if (write(connection, "count\n", 6) != 6 || read(connection, line, sizeof line) <= 0)
            return NULL;
        pthread_mutex_lock(&lock);
        *(long *)sum += atol(line);
        pthread_mutex_unlock(&lock);
    }
    close(connection);
    return sum;
}

int main(int count, char **arguments) {
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((in_port_t)(count > 1 ? atoi(arguments[1]) : 0));
    int listener = listen_on(&address);
    if (count > 1) {
        printf("port %d\n", ntohs(address.sin_port));
        fflush(stdout);
        serve((void *)(long)listener);
    }
    pthread_t server, clients[CLIENTS];
    long sum = 0, asked = 0;
    pthread_create(&server, NULL, serve, (void *)(long)listener);
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&clients[i], NULL, ask, &sum);
    for (int i = 0; i < CLIENTS; i++) {
        void *result = NULL;
        pthread_join(clients[i], &result);
        asked += result != NULL ? LINES : 0;
    }
    printf("%ld lines were counted, their numbers sum up to %ld\n", asked, sum);
    return 0;
}
