/* SPDX-License-Identifier: MIT */
/*
 * `tls_idle FOLDER PORT CONNECTIONS [SERVER ARGUMENT...]`: KiB that a server takes for a connection
 * over TLS that has had one answer and is idle. SERVER is a program that listens at PORT with
 * FOLDER's chain.pem and key.pem; without it, the server is OpenSSL itself in here, which keeps of
 * each connection what OpenSSL does, and nothing else.
 */
#define _GNU_SOURCE
#include "../server.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int port;
static pid_t server;

static struct sockaddr_in address_of_server(void) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port)};
}

/* Reads up to the first empty line, and what comes with it: one record, or a few. */
static void read_message(SSL *stream) {
    static char bytes[32768];
    int got, all = 0;
    do {
        got = SSL_read(stream, bytes + all, (int)sizeof bytes - 1 - all);
        if (got <= 0)
            give_up("no message");
        bytes[all += got] = '\0';
    } while (strstr(bytes, "\r\n\r\n") == NULL);
}

static void write_message(SSL *stream, const char *text) {
    if (SSL_write(stream, text, (int)strlen(text)) <= 0)
        give_up("write");
}

/* ---- The server that is OpenSSL alone ---- */

static void serve(const char *folder) {
    char chain[4096], key[4096];
    snprintf(chain, sizeof chain, "%s/chain.pem", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    struct sockaddr_in address = address_of_server();
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (SSL_CTX_use_certificate_chain_file(context, chain) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, SOMAXCONN) != 0)
        give_up("the server");
    for (int connection; (connection = accept(listener, NULL, NULL)) >= 0;) {
        SSL *stream = SSL_new(context);
        SSL_set_fd(stream, connection);
        if (SSL_accept(stream) != 1)
            continue; /* a look whether it listens */
        read_message(stream);
        write_message(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }
}

static void start(char **command, const char *folder) {
    server = fork();
    if (server != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(1);
    if (command == NULL)
        serve(folder);
    else
        execv(command[0], command);
    _exit(127);
}

/* ---- The clients ---- */

static int connect_to_server(void) {
    struct sockaddr_in address = address_of_server();
    for (int attempt = 0; attempt < 1000 && waitpid(server, NULL, WNOHANG) == 0; attempt++) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0)
            return connection;
        close(connection);
        usleep(10000);
    }
    give_up("connect");
    return -1;
}

/* They stay open. */
static void connect_some(SSL_CTX *context, int count) {
    for (int i = 0; i < count; i++) {
        SSL *stream = SSL_new(context);
        SSL_set_fd(stream, connect_to_server());
        if (SSL_connect(stream) != 1)
            give_up("handshake");
        write_message(stream, "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
        read_message(stream);
    }
}

int main(int count, char **arguments) {
    if (count < 4)
        return 2;
    enum { FIRST = 10 }; /* as many as make the server's own memory */
    int connections = atoi(arguments[3]);
    port = atoi(arguments[2]);
    allow_connections(connections);
    start(count > 4 ? arguments + 4 : NULL, arguments[1]);
    pin(0);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    connect_some(context, FIRST);
    double before = kibibytes_of(server);
    connect_some(context, connections - FIRST);
    printf("%.2f\n", (kibibytes_of(server) - before) / (connections - FIRST));
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
