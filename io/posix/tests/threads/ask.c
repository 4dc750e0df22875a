/* SPDX-License-Identifier: MIT */
/* Sends a command to a Unix socket, and prints the first line of the answer: SOCKET COMMAND. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (count != 3)
        return 2;
    strncpy(address.sun_path, arguments[1], sizeof address.sun_path - 1);
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    FILE *stream = fdopen(connection, "r+");
    char line[256];
    if (stream == NULL || connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        return 1;
    for (const char *at = arguments[2]; *at != '\0'; at++)
        fputs((char[]){*at == '\n' ? '\r' : *at, *at == '\n' ? '\n' : '\0', '\0'}, stream);
    fputs("\r\n", stream);
    fflush(stream);
    if (fgets(line, sizeof line, stream) == NULL)
        return 1;
    line[strcspn(line, "\r\n")] = '\0';
    return puts(line) == EOF;
}
