/* SPDX-License-Identifier: MIT */
/*
 * Chat room: every message goes to all members. Each member has a task that reads and one that
 * writes, and a channel from the room to the writer. A member that reads too slowly gets no more
 * messages, so that no other member waits for it. A hundred clients join, each sends its name, and
 * each gets all the others' names.
 */
#include <errno.h>
#include <haft/io.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 100, LINE = 16 };
typedef char line_t[LINE]; /* a message, padded with zeros */

typedef struct member {
    int connection;
    haft_io_channel_t *hears;
    struct member *next;
} member_t;
static member_t *room;

/* Does not wait, so the room does not change meanwhile. */
static void say_to_all(const char *line) {
    for (member_t *member = room; member != NULL; member = member->next)
        if (haft_io_channel_try_send(member->hears, line) == -EAGAIN)
            haft_io_channel_close(member->hears);
}

static bool read_line(int connection, line_t line) {
    size_t got = 0;
    for (ssize_t more; got < LINE; got += (size_t)more)
        if ((more = haft_io_read(connection, line + got, LINE - got)) <= 0)
            return false;
    return true;
}

static void *write_to(void *argument) {
    member_t *member = argument;
    for (line_t line; haft_io_channel_receive(member->hears, line) == 0;)
        if (haft_io_write_all(member->connection, line, LINE) < 0)
            break;
    return NULL;
}

static void *talk(void *argument) {
    member_t *member = argument;
    haft_io_spawn(write_to, member);
    for (line_t line; read_line(member->connection, line);)
        say_to_all(line);
    haft_io_channel_close(member->hears);
    return NULL;
}

static void leave(member_t *member) {
    member_t **place = &room;
    while (*place != member)
        place = &(*place)->next;
    *place = member->next;
    haft_io_channel_free(member->hears);
    haft_io_close(member->connection);
}

static void *join_room(void *argument) {
    __attribute__((cleanup(leave)))
    member_t member = {(int)(intptr_t)argument, haft_io_channel_new(LINE, 2 * CLIENTS), room};
    room = &member;
    haft_io_scope(talk, &member, NULL);
    return NULL;
}

static int listener, heard;

static void *serve(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        haft_io_spawn(join_room, (void *)(intptr_t)connection);
    return unused;
}

static haft_io_semaphore_t joined;
static haft_io_event_t all_joined;

static void *client(void *argument) {
    line_t line = "";
    snprintf(line, LINE, "client %d", (int)(intptr_t)argument);
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    haft_io_write_all(connection, "here I am\0\0\0\0\0\0", LINE);
    while (read_line(connection, line) && strcmp(line, "here I am") != 0)
        continue;
    haft_io_semaphore_release(&joined);
    haft_io_event_wait(&all_joined);
    snprintf(line, LINE, "client %d", (int)(intptr_t)argument);
    haft_io_write_all(connection, line, LINE);
    for (int names = 0; names < CLIENTS && read_line(connection, line);)
        if (strncmp(line, "client", 6) == 0) {
            names++;
            heard++;
        }
    return NULL;
}

static void *evening(void *unused) {
    haft_io_task_t *clients[CLIENTS];
    haft_io_spawn(serve, NULL);
    for (intptr_t i = 0; i < CLIENTS; i++)
        clients[i] = haft_io_async(client, (void *)i);
    for (int i = 0; i < CLIENTS; i++)
        haft_io_semaphore_acquire(&joined);
    haft_io_event_set(&all_joined);
    for (int i = 0; i < CLIENTS; i++)
        haft_io_join(clients[i], NULL);
    printf("%d clients heard %d names\n", CLIENTS, heard);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

int main(void) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int code = haft_io_run(evening, NULL);
    haft_io_close(listener);
    return code == -ECANCELED ? 0 : code;
}
