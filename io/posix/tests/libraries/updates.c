/* SPDX-License-Identifier: MIT */
/* A hundred statements at once, on one thread, with MySQL's client library (MariaDB's) as it is, also
   where each task has thread-locals of its own. The server answers when all have asked. */
#include "served.h"

#include <haft/posix.h>
#include <mysql.h>
#include <signal.h>

static int asked;

/* ---- The server: the part of the protocol that a statement needs which has no rows ---- */

static void send_packet(int connection, int place, const void *bytes, size_t size) {
    char packet[256] = {(char)size, 0, 0, (char)place};
    memcpy(packet + 4, bytes, size);
    CHECK_EQUAL(write(connection, packet, size + 4), (ssize_t)size + 4);
}
static bool read_all(int connection, void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t more = read(connection, (char *)bytes + done, size - done);
        if (more <= 0)
            return false;
        done += (size_t)more;
    }
    return true;
}
/* The size; 0: the end. The text is ended by a 0. */
static size_t receive_packet(int connection, char bytes[1024]) {
    unsigned char head[4];
    if (!read_all(connection, head, sizeof head))
        return 0;
    size_t size = head[0] + ((size_t)head[1] << 8);
    CHECK(size < 1024);
    bytes[size % 1024] = '\0';
    return read_all(connection, bytes, size) ? size : 0;
}

/* Tells that so many rows were changed. */
static void *answer(void *argument) {
    enum { QUERY = 3, QUIT = 1 };
    static const char hello[] =
        "\x0a"
        "8.0.0\0\x01\0\0\0abcdefgh\0\x00\x82\x21\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0"
        "mysql_native_password";
    int connection = (int)(intptr_t)argument, rows;
    char packet[1024], done[] = {0, 0, 0, 2, 0, 0, 0};
    send_packet(connection, 0, hello, sizeof hello);
    CHECK(receive_packet(connection, packet) > 0);
    send_packet(connection, 2, done, sizeof done);
    while (receive_packet(connection, packet) > 0 && packet[0] != QUIT) {
        done[1] = 0;
        if (packet[0] == QUERY && sscanf(packet + 1, "UPDATE %d", &rows) == 1) {
            done[1] = (char)rows;
            for (asked++; asked < CLIENTS;)
                usleep(1000);
        }
        send_packet(connection, 1, done, sizeof done);
    }
    CHECK_EQUAL(close(connection), 0);
    return NULL;
}

/* ---- The clients ---- */

static void *update(void *argument) {
    int number = (int)(intptr_t)argument;
    unsigned tcp = MYSQL_PROTOCOL_TCP;
    char text[32];
    MYSQL *connection = mysql_init(NULL);
    mysql_options(connection, MYSQL_OPT_PROTOCOL, &tcp);
    CHECK(mysql_real_connect(connection, "127.0.0.1", "user", "", NULL, ntohs(address.sin_port),
                             NULL, 0) == connection);
    snprintf(text, sizeof text, "UPDATE %d", number);
    CHECK_EQUAL(mysql_query(connection, text), 0);
    CHECK_EQUAL((int)mysql_affected_rows(connection), number);
    mysql_close(connection);
    mysql_thread_end();
    return NULL;
}
BODY(update_all) {
    asked = 0;
    serve_clients(answer, update);
    return NULL;
}
static void update_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, update_all, NULL), 0);
}
static void a_hundred_updates_are_with_the_server_at_once(void) {
    check_everywhere_twice(update_on);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    check_backend();
    CHECK(haft_posix_answers());
    CHECK_EQUAL(mysql_library_init(0, NULL, NULL), 0);
    RUN(a_hundred_updates_are_with_the_server_at_once);
    mysql_library_end();
    return check_end();
}
