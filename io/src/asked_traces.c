/* SPDX-License-Identifier: MIT */
/* Traces that the environment asks for: from the first run on, or between two signals. */
#include "workers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char *path; /* NULL: none is asked for */
    int signal; /* at which one begins or ends; 0: it begins at once */
    unsigned begun;
} asked;

static void start_asked(const char *path) {
    const char *effects = getenv("HAFT_IO_TRACE_EFFECTS");
    haft_io_trace_options_t options = {.effects = effects != NULL && *effects != '\0'};
    int code = haft_io_trace_start_with(&options, path);
    if (code != 0 && code != -EALREADY)
        dprintf(STDERR_FILENO, "haft-io: no trace is kept in HAFT_IO_TRACE=%s: %s\n", path,
                haft_io_error_text(code));
}

static int signal_named(const char *name) {
    static const struct {
        const char *name;
        int number;
    } known[] = {{"USR1", SIGUSR1},
                 {"USR2", SIGUSR2},
                 {"HUP", SIGHUP},
                 {"PROF", SIGPROF},
                 {"WINCH", SIGWINCH}};
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].number;
    int number = atoi(name);
    bool faults = number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;
    return number > 0 && number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP && !faults
               ? number
               : 0;
}

static void start_as_asked(void) {
    const char *path = secure_getenv("HAFT_IO_TRACE"), *name = getenv("HAFT_IO_TRACE_SIGNAL");
    if (path == NULL || *path == '\0')
        return;
    asked.path = strdup(path);
    atexit(haft_io_trace_stop);
    if (name == NULL || *name == '\0') {
        start_asked(path);
        return;
    }
    asked.signal = signal_named(name);
    if (asked.signal == 0)
        dprintf(STDERR_FILENO,
                "haft-io: no trace can be begun by HAFT_IO_TRACE_SIGNAL=%s: name a signal that can "
                "be caught, such as USR2.\n",
                name);
}

int hafti_io_trace_as_asked(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_as_asked);
    return asked.signal;
}

/* The second trace is in FILE.2, and so on: what was kept is not written over. */
void hafti_io_trace_toggle(void) {
    if (hafti_io_watches() & HAFTI_IO_TRACES) {
        haft_io_trace_stop();
        return;
    }
    char path[4096];
    unsigned number = __atomic_add_fetch(&asked.begun, 1, __ATOMIC_RELAXED);
    const char *first = asked.path != NULL ? asked.path : "";
    int size = snprintf(path, sizeof path, number > 1 ? "%s.%u" : "%s", first, number);
    if (asked.path != NULL && size > 0 && (size_t)size < sizeof path)
        start_asked(path);
}
