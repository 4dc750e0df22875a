/* A hundred clients of Redis at once, on one thread, with hiredis as it is: each waits for a list
   that has no element before the last client has come. Usage: commands SOCKET */
#include "../../../tests/check_io.h"

#include <haft/posix.h>
#include <hiredis/hiredis.h>

enum { CLIENTS = 100, LONG_VALUE = 1 << 20 };
static const char *path;
static int waiting;

static redisContext *connect_to_server(void) {
    redisContext *connection = redisConnectUnix(path);
    CHECK(connection != NULL && connection->err == 0);
    return connection;
}

static void *wait_for_an_element(void *argument) {
    int number = (int)(intptr_t)argument;
    redisContext *connection = connect_to_server();
    waiting++;
    redisReply *reply = redisCommand(connection, "BLPOP list%d 60", number);
    CHECK(reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    CHECK_EQUAL(atoi(reply->element[1]->str), number);
    freeReplyObject(reply);
    redisFree(connection);
    return NULL;
}

BODY(push_elements) {
    redisContext *connection = connect_to_server();
    for (int i = 0; i < 10000 && waiting < CLIENTS; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(waiting, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        redisAppendCommand(connection, "RPUSH list%d %d", i, i);
    for (int i = 0; i < CLIENTS; i++) {
        redisReply *reply = NULL;
        CHECK_EQUAL(redisGetReply(connection, (void **)&reply), REDIS_OK);
        CHECK_EQUAL(reply->integer, 1);
        freeReplyObject(reply);
    }
    redisFree(connection);
    return NULL;
}
BODY(wait_for_elements) {
    for (intptr_t i = 0; i < CLIENTS; i++)
        haft_io_spawn(wait_for_an_element, check_number(i));
    haft_io_spawn(push_elements, NULL);
    return NULL;
}
static void a_hundred_commands_are_with_the_server_at_once(void) {
    CHECK(haft_posix_answers());
    CHECK_RUNS(wait_for_elements);
}

static char value[LONG_VALUE];
BODY(set_and_get) {
    redisContext *connection = connect_to_server();
    memset(value, 'v', sizeof value);
    redisReply *reply = redisCommand(connection, "SET long %b", value, sizeof value);
    CHECK(reply != NULL && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    reply = redisCommand(connection, "GET long");
    CHECK(reply != NULL && reply->len == sizeof value &&
          memcmp(reply->str, value, reply->len) == 0);
    freeReplyObject(reply);
    redisFree(connection);
    return NULL;
}
static void a_long_value_goes_there_and_back(void) {
    CHECK_RUNS(set_and_get);
}

/* The client's own limit: SO_RCVTIMEO on a socket that blocks. */
BODY(wait_with_a_limit) {
    redisContext *connection = connect_to_server();
    CHECK_EQUAL(redisSetTimeout(connection, (struct timeval){0, 10000}), REDIS_OK);
    CHECK(redisCommand(connection, "BLPOP nothing 60") == NULL);
    CHECK_EQUAL(connection->err, REDIS_ERR_IO);
    CHECK_EQUAL(errno, EAGAIN);
    redisFree(connection);
    return NULL;
}
static void the_time_limit_of_a_socket_holds(void) {
    CHECK_RUNS(wait_with_a_limit);
}

int main(int count, char **arguments) {
    path = count > 1 ? arguments[1] : "";
    check_backend();
    RUN(a_hundred_commands_are_with_the_server_at_once);
    RUN(a_long_value_goes_there_and_back);
    RUN(the_time_limit_of_a_socket_holds);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
