/* SPDX-License-Identifier: MIT */
/*
 * Line server: keeps words by number, on all processors, and ends gracefully. SIGTERM or SIGINT
 * cancels the scope of the connections: no more are accepted, and a connection that waits for a
 * request sends "bye". A request that has come is still answered: it is a task of an outer scope,
 * which is cancelled after a grace period, or at a second signal. With a port as its argument the
 * program serves until then; without one it has clients of its own, three of which are still there
 * when the signals come.
 */
#include <haft/io.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t grace = 10 * HAFT_IO_SECOND;

typedef struct {
    haft_io_mutex_t mutex;
    char word[32];
    haft_io_event_t has_word;
} place_t;
static place_t store[1000];

static void set(place_t *place, const char *word) {
    haft_io_mutex_lock(&place->mutex);
    strcpy(place->word, word);
    haft_io_mutex_unlock(&place->mutex);
    haft_io_event_set(&place->has_word);
}

typedef struct {
    int connection;
    char *line;
} request_t;

/* "set 7 tea", "get 7", or "wait 7", which waits until there is a word. */
static void *answer(void *argument) {
    const request_t *request = argument;
    char command[8] = "", word[32] = "";
    unsigned key = 0;
    sscanf(request->line, "%7s %u %30s", command, &key, word);
    place_t *place = &store[key % 1000];
    if (strcmp(command, "set") == 0) {
        set(place, word);
    } else if (strcmp(command, "wait") == 0) {
        haft_io_write_all(request->connection, "waiting\n", 8);
        haft_io_event_wait(&place->has_word);
    }
    haft_io_mutex_lock(&place->mutex);
    strcpy(word, place->word);
    haft_io_mutex_unlock(&place->mutex);
    strcat(word, "\n");
    haft_io_write_all(request->connection, word, strlen(word));
    return NULL;
}

static haft_io_scope_t *requests;
static atomic_int cut_off;

static void *answer_in_time(void *request) {
    haft_io_task_options_t options = {.scope = requests};
    haft_io_task_t *task = haft_io_async_with(&options, answer, request);
    if (task == NULL || haft_io_join(task, NULL) != 0)
        cut_off++;
    return NULL;
}

static void say_bye(const int *connection) {
    haft_io_send(*connection, "bye\n", 4, MSG_DONTWAIT);
    haft_io_close(*connection);
}

static void *talk(void *argument) {
    __attribute__((cleanup(say_bye))) int connection = (int)(intptr_t)argument;
    char memory[128];
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    request_t request = {.connection = connection};
    while (haft_io_reader_line(&lines, &request.line) > 0 && strcmp(request.line, "quit\n") != 0) {
        haft_io_shield(answer_in_time, &request);
        haft_io_yield(); /* a cancel takes effect here, even if the next line has come */
    }
    return NULL;
}

static int listener;
static sigset_t signals;
static haft_io_event_t ending;

static void *wait_for_signal(void *unused) {
    haft_io_signal_wait(&signals);
    return unused;
}

static void *end_connections(void *unused) {
    wait_for_signal(unused);
    haft_io_event_set(&ending);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

static void *accept_connections(void *unused) {
    HAFT_IO_SCOPED_DESCRIPTOR int accepting = listener; /* closed when this task is cancelled */
    haft_io_spawn(end_connections, NULL);
    for (int connection; (connection = haft_io_accept(accepting)) >= 0;)
        haft_io_spawn(talk, (void *)(intptr_t)connection);
    return unused;
}

static void *serve(void *unused) {
    requests = haft_io_this_scope();
    haft_io_scope(accept_connections, NULL, NULL);
    return unused;
}

static void *end_requests(void *unused) {
    haft_io_event_wait(&ending);
    haft_io_scope_options_t options = {.deadline = haft_io_now() + grace};
    haft_io_scope_with(&options, wait_for_signal, NULL, NULL);
    return unused;
}

static void *run_server(void *unused) {
    haft_io_first((haft_io_call_t[]){{serve, NULL, NULL}, {end_requests, NULL, NULL}}, 2);
    return unused;
}

typedef struct {
    char says[48], hears[48];
    haft_io_event_t has_heard;
} client_t;

static void *come(void *argument) {
    client_t *client = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    haft_io_write_all(connection, client->says, strlen(client->says));
    size_t size = 0;
    for (ssize_t got; (got = haft_io_read(connection, client->hears + size,
                                          sizeof client->hears - 1 - size)) > 0;) {
        size += (size_t)got;
        haft_io_event_set(&client->has_heard);
    }
    return NULL;
}

static void *talk_to_itself(void *unused) {
    enum { CLIENTS = 100 };
    client_t clients[CLIENTS] = {0};
    haft_io_call_t calls[CLIENTS];
    int answered = 0;
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(clients[i].says, sizeof clients->says, "set %d word\nget %d\nquit\n", i, i);
        calls[i] = (haft_io_call_t){come, &clients[i], NULL};
    }
    haft_io_all(calls, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        answered += strcmp(clients[i].hears, "word\nword\nbye\n") == 0;
    printf("%d clients were answered\n", answered);

    client_t late[] = {{.says = "get 7\n"}, {.says = "wait 500\n"}, {.says = "wait 501\n"}};
    haft_io_task_t *tasks[3];
    for (int i = 0; i < 3; i++) {
        tasks[i] = haft_io_async(come, &late[i]);
        haft_io_event_wait(&late[i].has_heard);
    }
    kill(getpid(), SIGTERM);
    haft_io_join(tasks[0], NULL);
    set(&store[500], "at last");
    haft_io_join(tasks[1], NULL);
    kill(getpid(), SIGTERM); /* the grace period is over */
    haft_io_join(tasks[2], NULL);
    for (int i = 0; i < 3; i++)
        printf("%s%s", late[i].says, late[i].hears);
    return unused;
}

static void *run_with_clients(void *unused) {
    haft_io_spawn(talk_to_itself, NULL);
    return run_server(unused);
}

int main(int count, char **arguments) {
    bool serves = count > 1;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* the threads of the run inherit this */
    listener = haft_io_listen_tcp(serves ? "::" : "127.0.0.1",
                                  serves ? (uint16_t)atoi(arguments[1]) : 0, 0);
    if (listener < 0) {
        fprintf(stderr, "%s\n", haft_io_error_text(listener));
        return 1;
    }
    haft_io_run_options_t options = {.threads = 0}; /* one for each processor */
    int code = haft_io_run_with(&options, serves ? run_server : run_with_clients, NULL);
    printf("requests that were cut off: %d\n", cut_off);
    return code != 0;
}
