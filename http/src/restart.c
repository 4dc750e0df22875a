/* SPDX-License-Identifier: MIT */
/*
 * A restart without a refused connection: the program is started again, and gets the sockets at
 * which this process listens, each with the place for which it was made. The new process takes them
 * where it would have made the same ones, and reports that it serves; then this one stops as by a
 * signal. Until then both accept from the same queues.
 *
 *     HAFT_HTTP_PASSED="7=127.0.0.1:8080 8=unix:/run/service.sock"  HAFT_HTTP_READY=9
 */
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static const char passed_name[] = "HAFT_HTTP_PASSED", ready_name[] = "HAFT_HTTP_READY";
enum { TIME_TO_BEGIN = 30, MOST_OF_ARGUMENTS = 131072 };

extern char **environ;

/* ---- The new process ---- */

/* Taken by the first server of the process only; listeners that it does not take are closed. */
static bool is_taken[HAFTI_HTTP_LISTENERS];
static atomic_bool has_listened;

bool hafti_http_inherits(void) {
    return getenv(passed_name) != NULL && !atomic_exchange(&has_listened, true);
}

/* The next "number=place" of the list; its number. */
static bool next_passed(hafti_http_text_t *list, int *number, hafti_http_text_t *place) {
    hafti_http_text_t item;
    if (!hafti_http_next_part(list, ' ', &item))
        return false;
    const char *equals = memchr(item.bytes, '=', item.size);
    *number = equals != NULL ? atoi(item.bytes) : -1;
    *place = equals != NULL
                 ? (hafti_http_text_t){equals + 1, item.size - (size_t)(equals + 1 - item.bytes)}
                 : (hafti_http_text_t){item.bytes, 0};
    return true;
}

static bool is_listener(int descriptor) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
}

static bool is_place(hafti_http_text_t one, const char *other) {
    return strlen(other) == one.size && memcmp(one.bytes, other, one.size) == 0;
}

int hafti_http_take_inherited(const char *place, int *descriptors, int most) {
    const char *passed = getenv(passed_name);
    hafti_http_text_t list = {passed, strlen(passed)}, for_place;
    int count = 0, number;
    for (int i = 0; i < HAFTI_HTTP_LISTENERS && next_passed(&list, &number, &for_place); i++) {
        if (is_taken[i] || count == most || !is_place(for_place, place) || !is_listener(number) ||
            fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
            continue;
        is_taken[i] = true;
        descriptors[count++] = number;
    }
    return count;
}

void hafti_http_forget_inherited(void) {
    const char *passed = getenv(passed_name);
    hafti_http_text_t list = {passed, strlen(passed)}, place;
    int number;
    for (int i = 0; i < HAFTI_HTTP_LISTENERS && next_passed(&list, &number, &place); i++)
        if (!is_taken[i] && is_listener(number))
            close(number);
    const char *ready = getenv(ready_name);
    if (ready != NULL)
        fcntl(atoi(ready), F_SETFD, FD_CLOEXEC);
}

void hafti_http_tell_ready(void) {
    const char *ready = getenv(ready_name);
    if (ready == NULL)
        return;
    haft_io_write_all(atoi(ready), "1", 1);
    haft_io_close(atoi(ready));
}

/* ---- This process ---- */

typedef struct {
    char *memory;     /* of the arguments */
    char **arguments; /* then NULL */
    char **variables; /* the environment; the last two before NULL are ours */
    char *passed, ready_text[40];
    int copies[HAFTI_HTTP_LISTENERS]; /* which the new process inherits */
    size_t copy_count;
    int said, ready; /* the ends of a pipe */
} handover_t;

static void close_if_open(int *descriptor) {
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void close_inherited(handover_t *handover) {
    while (handover->copy_count != 0)
        close(handover->copies[--handover->copy_count]);
    close_if_open(&handover->ready);
}

static void end_handover(handover_t *handover) {
    close_inherited(handover);
    if (handover->said >= 0)
        haft_io_close(handover->said);
    free(handover->memory);
    free(handover->arguments);
    free(handover->variables);
    free(handover->passed);
}

/* The arguments with which this process was started. A function of its own, like the next ones, so
   that errno is this thread's. */
__attribute__((noinline)) static int read_arguments(handover_t *handover) {
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    handover->memory = malloc(MOST_OF_ARGUMENTS + 1);
    ssize_t size =
        file >= 0 && handover->memory != NULL ? read(file, handover->memory, MOST_OF_ARGUMENTS) : 0;
    close_if_open(&file);
    if (size <= 0 || size == MOST_OF_ARGUMENTS)
        return handover->memory == NULL ? -ENOMEM : -E2BIG;
    size_t count = 0;
    handover->memory[size] = '\0';
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(handover->memory + at) + 1)
        count++;
    handover->arguments = calloc(count + 1, sizeof *handover->arguments);
    if (handover->arguments == NULL)
        return -ENOMEM;
    char *at = handover->memory;
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        handover->arguments[i] = at;
    return 0;
}

/* A copy has no flag to be closed at exec. */
__attribute__((noinline)) static int copy_listeners(handover_t *handover,
                                                    const hafti_http_listeners_t *listeners) {
    size_t room = sizeof passed_name + 2;
    for (size_t i = 0; i < listeners->passed; i++)
        room += strlen(listeners->places[i]) + 16;
    handover->passed = malloc(room);
    if (handover->passed == NULL)
        return -ENOMEM;
    size_t size = (size_t)snprintf(handover->passed, room, "%s=", passed_name);
    for (size_t i = 0; i < listeners->passed; i++) {
        int copy = dup(listeners->descriptors[i]);
        if (copy < 0)
            return -errno;
        handover->copies[handover->copy_count++] = copy;
        size += (size_t)snprintf(handover->passed + size, room - size, "%s%d=%s", i != 0 ? " " : "",
                                 copy, listeners->places[i]);
    }
    return 0;
}

__attribute__((noinline)) static int make_pipe(handover_t *handover) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    handover->said = ends[0];
    handover->ready = dup(ends[1]);
    close(ends[1]);
    snprintf(handover->ready_text, sizeof handover->ready_text, "%s=%d", ready_name,
             handover->ready);
    return handover->ready >= 0 ? 0 : -EMFILE;
}

/* Whether the variable is one of these, or names this process as the one that systemd watches,
   which the new one will be. */
static bool is_ours(const char *variable) {
    static const char watched_name[] = "WATCHDOG_PID=";
    return strncmp(variable, passed_name, strlen(passed_name)) == 0 ||
           strncmp(variable, ready_name, strlen(ready_name)) == 0 ||
           strncmp(variable, watched_name, strlen(watched_name)) == 0;
}

static int make_variables(handover_t *handover) {
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    handover->variables = calloc(count + 3, sizeof *handover->variables);
    if (handover->variables == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!is_ours(environ[i]))
            handover->variables[kept++] = environ[i];
    handover->variables[kept++] = handover->passed;
    handover->variables[kept] = handover->ready_text;
    return 0;
}

/* Waits until the new process reports that it serves, or has ended. */
static int wait_for_word(const handover_t *handover, pid_t process) {
    char word;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + TIME_TO_BEGIN * HAFT_IO_SECOND);
    ssize_t got = haft_io_read(handover->said, &word, 1);
    if (got == 1)
        return 0;
    kill(process, SIGKILL);
    return got == 0 ? -ECHILD : (int)got;
}

/* Starts the new process, and returns its number when it serves; or an error. */
static pid_t start_anew(const hafti_http_listeners_t *listeners) {
    __attribute__((cleanup(end_handover))) handover_t handover = {.said = -1, .ready = -1};
    int code = read_arguments(&handover);
    code = code == 0 ? copy_listeners(&handover, listeners) : code;
    code = code == 0 ? make_pipe(&handover) : code;
    code = code == 0 ? make_variables(&handover) : code;
    if (code != 0)
        return code;
    haft_io_process_options_t options = {.environment = (const char *const *)handover.variables};
    pid_t process = haft_io_process_start_with(&options, (const char *const *)handover.arguments);
    close_inherited(&handover);
    code = process < 0 ? (int)process : wait_for_word(&handover, process);
    if (code != 0 && process > 0)
        haft_io_process_wait(process, NULL);
    return code != 0 ? code : process;
}

int haft_http_server_restart(haft_http_server_t *server) {
    hafti_http_listeners_t *listeners = server->listening;
    if (listeners == NULL || hafti_http_is_simulated())
        return -ENOTSUP;
    if (atomic_exchange(&server->restarting, true))
        return -EALREADY;
    pid_t code = start_anew(listeners);
    if (code > 0) {
        listeners->paths_size = 0; /* the sockets are the new process's */
        hafti_http_log(server, "a new process has taken over");
        hafti_http_notify_successor(server, code);
        atomic_store(&server->is_handed_over, true);
        haft_http_server_stop(server);
        return 0;
    }
    atomic_store(&server->restarting, false);
    hafti_http_log(server, "cannot restart: %s",
                   code == -ECHILD ? "the new process does not serve" : haft_io_error_text(code));
    return code;
}
