/* SPDX-License-Identifier: MIT */
/* Many connections at once to the example's server, over which a line is asked in each round. Usage:
   load PORT CONNECTIONS ROUNDS. The addresses that it calls from are 127.0.0.2 and its neighbours,
   each of which has ports of its own. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OF_ADDRESS = 20000 };

static void fail(const char *what, int number) {
    fprintf(stderr, "connection %d: ", number);
    perror(what);
    exit(1);
}

static int connect_to(int port, int number) {
    struct sockaddr_in own = {.sin_family = AF_INET}, server = {.sin_family = AF_INET};
    int connection = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (in_addr_t)(number / OF_ADDRESS));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.sin_port = htons((in_port_t)port);
    setsockopt(connection, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    if (connection < 0 || bind(connection, (struct sockaddr *)&own, sizeof own) != 0 ||
        connect(connection, (struct sockaddr *)&server, sizeof server) != 0)
        fail("connect", number);
    return connection;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 4)
        return 2;
    int port = atoi(arguments[1]), count = atoi(arguments[2]), rounds = atoi(arguments[3]);
    int *connections = calloc((size_t)count, sizeof *connections);
    long answers = 0;
    if (connections == NULL)
        return 1;
    for (int i = 0; i < count; i++)
        connections[i] = connect_to(port, i);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++)
            if (write(connections[i], "count\n", 6) != 6)
                fail("write", i);
        for (int i = 0; i < count; i++) {
            char line[32];
            if (read(connections[i], line, sizeof line) <= 0)
                fail("read", i);
            answers++;
        }
    }
    printf("%d connections, %ld answers\n", count, answers);
    return write(connections[0], "quit\n", 5) == 5 ? 0 : 1;
}
